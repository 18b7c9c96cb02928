//! What a peer speaks, told from its first bytes (spec 1.11).
//!
//! This is the one place at which TLS and the PROXY protocol branch off, before any framing. Neither is spoken: a hello of
//! theirs ends the connection with a reason of its own. Decided as soon as a byte differs (spec Q35), so a peer that sends
//! ten bytes is not kept waiting for a twelfth.

/// First byte of a TLS record that carries a handshake.
const TLS_HANDSHAKE: u8 = 0x16;
/// How a PROXY protocol version 1 header starts.
const PROXY_V1: &[u8] = b"PROXY";
/// How a PROXY protocol version 2 header starts.
const PROXY_V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// What the first bytes of a connection are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Too few bytes to tell.
    Undecided,
    /// Frames (or rubbish, which framing finds out).
    Frames,
    /// A TLS `ClientHello`.
    Tls,
    /// A PROXY protocol header, version 1 or 2.
    Proxy,
}

/// Tells what a connection that starts with `bytes` speaks.
///
/// A frame's first byte is the top of its length, 0 below 16 MiB and far below `P` for any sensible limit, so the three
/// cannot be mistaken for frames.
#[must_use]
pub fn detect(bytes: &[u8]) -> Opening {
    match bytes.first() {
        None => Opening::Undecided,
        Some(&TLS_HANDSHAKE) => Opening::Tls,
        Some(_) => match (starts_like(bytes, PROXY_V1), starts_like(bytes, PROXY_V2)) {
            (Some(true), _) | (_, Some(true)) => Opening::Proxy,
            (Some(false), Some(false)) => Opening::Frames,
            (None, _) | (_, None) => Opening::Undecided,
        },
    }
}

/// Whether `bytes` start with `prefix`; `None` while they are a shorter piece of it.
fn starts_like(bytes: &[u8], prefix: &[u8]) -> Option<bool> {
    if bytes.len() >= prefix.len() {
        return Some(bytes.starts_with(prefix));
    }
    if prefix.starts_with(bytes) {
        None
    } else {
        Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_undecided() {
        assert_eq!(detect(b""), Opening::Undecided);
    }

    #[test]
    fn one_byte_tells_a_frame_from_everything_else() {
        assert_eq!(detect(&[0]), Opening::Frames);
        assert_eq!(detect(b"G"), Opening::Frames);
        assert_eq!(detect(&[0x16]), Opening::Tls);
    }

    #[test]
    fn a_proxy_header_is_recognised_at_its_last_byte_and_not_before() {
        for (prefix, shortest) in [(PROXY_V1, 5), (PROXY_V2, 12)] {
            for len in 1..shortest {
                assert_eq!(
                    detect(&prefix[..len]),
                    Opening::Undecided,
                    "{len} of {prefix:?}"
                );
            }
            assert_eq!(detect(prefix), Opening::Proxy);
            assert_eq!(detect(&[prefix, b" TCP4 more"].concat()), Opening::Proxy);
        }
    }

    #[test]
    fn a_byte_that_differs_from_a_proxy_header_decides_at_once() {
        assert_eq!(detect(b"PROXI"), Opening::Frames);
        assert_eq!(detect(b"PO"), Opening::Frames);
        assert_eq!(detect(b"\r\n\r\n\0\r\nQUIT\r"), Opening::Frames);
    }
}
