//! Eight bytes at a time in one machine word.

/// `byte` eight times.
pub(super) const fn all(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The high bit of each zero byte; of the bytes above a zero byte it may tell nonsense, and nobody asks.
pub(super) fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(all(1)) & !word & all(0x80)
}

/// The same for bytes below `bound`, which is at most 128.
pub(super) fn bytes_below(word: u64, bound: u8) -> u64 {
    word.wrapping_sub(all(bound)) & !word & all(0x80)
}

/// Which byte the lowest of these bits is in, counted from the front of what was read little-endian.
pub(super) fn first(bits: u64) -> usize {
    bits.trailing_zeros() as usize / 8
}
