//! How many file descriptors the process may have.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Allows this process as many descriptors as the system lets it have, which is what a Java process does: the limit that shells
/// and service managers set, usually 1024, is one that a name server meets. Returns the number; `None` means no limit.
///
/// # Errors
///
/// When the system refuses; the limit is then what it was.
pub fn raise_limit() -> io::Result<Option<u64>> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, raised)?;
    Ok(maximum)
}
