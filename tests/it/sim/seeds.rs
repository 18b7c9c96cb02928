//! Seeds that once failed, each with what it found. They run with every test.

/// Seed, finding.
pub(super) const FOUND: &[(u64, &str)] = &[];
