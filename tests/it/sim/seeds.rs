//! Seeds that once failed, each with what it found. They run with every test, however many others do.

/// Seed, finding.
pub(super) const FOUND: &[(u64, &str)] = &[
    (
        4,
        "the zone filter judged a group with an acting master by the ids as registered, not as shown; and, put in by hand, a KV change seen though it could not be written",
    ),
    (
        79,
        "put in by hand: a heartbeat that bound a later life of its address",
    ),
];
