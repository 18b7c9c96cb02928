//! Where in its work the registry can be interrupted.

use std::fmt::Debug;

/// Lets other threads have the processor in the middle of long work. The registry says where that may be; whoever runs it, whether
/// and how. A `()` never does.
pub trait Breather: Debug + Send {
    /// Between two topics that change, which are a microsecond or so apart.
    fn breathe(&mut self);

    /// The batch is done. Its length counts anew.
    fn finished(&mut self);
}

impl Breather for () {
    fn breathe(&mut self) {}

    fn finished(&mut self) {}
}
