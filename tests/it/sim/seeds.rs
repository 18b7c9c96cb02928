//! Seeds that once failed, each with what it found. They run with every test, however many others do.

/// Seed, finding.
pub(super) const FOUND: &[(u64, &str)] = &[
    (
        4,
        "what `ZONE_SEES_ACTING_MASTER` is about; and, put in by hand, a KV change seen though it could not be written",
    ),
    (
        79,
        "put in by hand: a heartbeat that bound a later life of its address",
    ),
];

/// Known and open: the zone filter reads the body of the answer (spec 7.2), in which a slave that acts as master has id 0
/// already, so its group is kept only for its own zone. The server judges by the ids as registered and keeps it for every zone.
/// With `true` here the model follows the protocol, and seed 4 fails with one registration and one query.
pub(super) const ZONE_SEES_ACTING_MASTER: bool = false;
