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

/// Where two words read from memory differ first.
pub(super) fn difference(one: [u8; 8], other: [u8; 8]) -> Option<usize> {
    let differing = u64::from_le_bytes(one) ^ u64::from_le_bytes(other);
    (differing != 0).then(|| first(differing))
}

/// The up to seven digits that `bytes` begin with as a number, and how many there are; `None` if more may follow, or there are
/// too few bytes to be read as a word. A digit by itself costs a load, two comparisons and a multiplication that waits for the
/// one before it; this is three multiplications for all (`cargo bench --bench codec`, `behind_another`).
#[inline]
pub(super) fn short_number(bytes: &[u8]) -> Option<(i32, usize)> {
    let digits = u64::from_le_bytes(*bytes.first_chunk()?) ^ all(b'0');
    // A carry out of a byte that is no digit spoils only those behind it.
    let others = (digits.wrapping_add(all(0x80 - 10)) | digits) & all(0x80);
    if others == 0 {
        return None;
    }
    let len = first(others);
    if len == 0 {
        return Some((0, 0));
    }
    // The last digit to the highest byte, so that there are eight, the first of them zeros.
    let eight = digits << (64 - 8 * len);
    let pairs = eight.wrapping_mul(10).wrapping_add(eight >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    let [b0, b1, b2, b3, ..] = fours
        .wrapping_mul(10_000)
        .wrapping_add(fours >> 32)
        .to_le_bytes();
    Some((i32::from_le_bytes([b0, b1, b2, b3]), len))
}
