//! Bounded zlib (RFC 1950).

use flate2::{Decompress, FlushDecompress, Status};

use crate::{limits::INFLATED_LEN_MAX, protocol::body::BodyError};

/// What topic tables usually inflate to, in multiples of their compressed length.
const USUAL_RATIO: usize = 8;

/// The least to grow by.
const GROWTH_MIN: usize = 1024;

/// Whether a body starts like a zlib stream (Q17). JSON cannot: it would have to start with `x`.
pub(super) fn is_zlib(body: &[u8]) -> bool {
    body.first_chunk()
        .is_some_and(|head| head[0] == 0x78 && u16::from_be_bytes(*head) % 31 == 0)
}

/// Inflates one stream. Bytes behind it are ignored, and one that is cut yields what it has: whether that is enough, its
/// contents say, as in Java (spec 2.3). A wrong checksum is an error.
pub(super) fn inflate(body: &[u8]) -> Result<Vec<u8>, BodyError> {
    let mut stream = Decompress::new(true);
    let first_guess = body.len().saturating_mul(USUAL_RATIO);
    let mut inflated = Vec::with_capacity(first_guess.clamp(GROWTH_MIN, INFLATED_LEN_MAX));
    let mut read = 0;
    loop {
        let len_before = inflated.len();
        let before = stream.total_in();
        let status = stream.decompress_vec(&body[read..], &mut inflated, FlushDecompress::None);
        let taken = usize::try_from(stream.total_in() - before).unwrap_or(usize::MAX);
        read = read.saturating_add(taken).min(body.len());
        if inflated.len() > INFLATED_LEN_MAX {
            return Err(BodyError::InflatedTooLarge {
                max: INFLATED_LEN_MAX,
            });
        }
        match status {
            Err(_) => {
                return Err(BodyError::Inflate {
                    inflated: inflated.len(),
                });
            }
            Ok(Status::StreamEnd) => return Ok(inflated),
            Ok(Status::Ok | Status::BufError) if inflated.len() == inflated.capacity() => {
                // One byte above the limit shows that it is exceeded.
                let room = INFLATED_LEN_MAX + 1 - inflated.len();
                inflated.reserve_exact(inflated.len().max(GROWTH_MIN).min(room));
            }
            Ok(Status::Ok | Status::BufError) if taken == 0 && inflated.len() == len_before => {
                return Ok(inflated);
            }
            Ok(Status::Ok | Status::BufError) => {}
        }
    }
}
