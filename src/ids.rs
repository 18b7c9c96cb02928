//! Identities shared by modules that must not know each other.

/// One accepted connection. Never reused: a late reply or close event of an earlier connection names another id than the
/// connection that sits in its slot, so it cannot reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    /// The worker that owns the connection for life.
    pub worker: u16,
    /// Its slot in that worker's slab.
    pub slot: u32,
    /// Counts the tenants of the slot.
    pub generation: u32,
}
