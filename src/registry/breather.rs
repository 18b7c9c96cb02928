//! Where in its work the registry can be interrupted.

use std::fmt::Debug;

/// Lets other threads have the processor in the middle of long work. The registry says where that may be; whoever runs it, whether
/// and how. A `()` never does.
pub trait Breather: Debug + Send {
    /// Between two steps of a microsecond or so each: topics that change, handfuls of topics that are compared.
    fn breathe(&mut self);

    /// The batch is done. Its length counts anew.
    fn finished(&mut self);
}

impl Breather for () {
    fn breathe(&mut self) {}

    fn finished(&mut self) {}
}
