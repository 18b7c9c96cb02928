//! What is looked at in a reply: its length prefix, its code, its flag and its opaque. The body's content is the tests' business.

use crate::frame::find;

/// Longest reply accepted, its length prefix included.
pub const REPLY_LEN_MAX: usize = 1024 * 1024;

/// What a reply says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Result code; 0 is success.
    pub code: u32,
    /// The request it answers, or 0 from the null server, which does not look at requests.
    pub opaque: u32,
    /// Whether the flag says that this is a response (spec 1.1). The null server's says so too.
    pub is_response: bool,
    /// Bytes of the body.
    pub body_len: usize,
}

/// Length of the frame that starts here, once its prefix is there.
///
/// # Errors
/// A length that no reply has.
pub fn frame_len(bytes: &[u8]) -> Result<Option<usize>, BadFrame> {
    let Some(prefix) = bytes.first_chunk::<4>() else {
        return Ok(None);
    };
    let total = usize::try_from(u32::from_be_bytes(*prefix)).map_err(|_| BadFrame)?;
    if !(4..=REPLY_LEN_MAX - 4).contains(&total) {
        return Err(BadFrame);
    }
    Ok(Some(total + 4))
}

/// Bytes that are no reply frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadFrame;

/// Where the last header had its keys: a server writes all alike.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hints {
    flag: usize,
    opaque: usize,
}

/// What a header says.
struct Head {
    code: u32,
    flag: u32,
    opaque: u32,
}

/// Bit of the flag that responses have.
const RESPONSE_FLAG: u32 = 1;

/// Reads a whole frame.
///
/// # Errors
/// A frame without a readable header.
pub fn inspect(frame: &[u8], hints: &mut Hints) -> Result<Reply, BadFrame> {
    let word = frame
        .get(4..8)
        .and_then(|bytes| bytes.first_chunk::<4>())
        .ok_or(BadFrame)?;
    let word = u32::from_be_bytes(*word);
    let header_len = usize::try_from(word & 0x00ff_ffff).map_err(|_| BadFrame)?;
    let header = frame.get(8..8 + header_len).ok_or(BadFrame)?;
    let body_len = frame.len() - 8 - header_len;
    let head = match word >> 24 {
        0 => json_head(header, hints).ok_or(BadFrame)?,
        1 => binary_head(header).ok_or(BadFrame)?,
        _ => return Err(BadFrame),
    };
    Ok(Reply {
        code: head.code,
        opaque: head.opaque,
        is_response: head.flag & RESPONSE_FLAG != 0,
        body_len,
    })
}

fn json_head(header: &[u8], hints: &mut Hints) -> Option<Head> {
    const CODE: &[u8] = b"{\"code\":";
    // The server writes its keys in alphabetical order (spec 1.2), so the code comes first.
    let code_at = if header.starts_with(CODE) {
        CODE.len()
    } else {
        find(header, &CODE[1..])? + CODE.len() - 1
    };
    Some(Head {
        code: number(&header[code_at..])?,
        // A header without one has none of its bits.
        flag: hinted(header, b"\"flag\":", &mut hints.flag).unwrap_or(0),
        opaque: hinted(header, b"\"opaque\":", &mut hints.opaque)?,
    })
}

/// The number behind a key, which is looked for where it was the last time first.
fn hinted(header: &[u8], key: &[u8], hint: &mut usize) -> Option<u32> {
    if header.get(*hint..*hint + key.len()) != Some(key) {
        *hint = find(header, key)?;
    }
    number(&header[*hint + key.len()..])
}

fn binary_head(header: &[u8]) -> Option<Head> {
    let code = u16::from_be_bytes(*header.get(..2)?.first_chunk()?);
    let int_at = |at| Some(u32::from_be_bytes(*header.get(at..at + 4)?.first_chunk()?));
    Some(Head {
        code: u32::from(code),
        opaque: int_at(5)?,
        flag: int_at(9)?,
    })
}

/// The digits at the start; neither codes nor our opaques are negative.
fn number(bytes: &[u8]) -> Option<u32> {
    let mut value: u32 = 0;
    let mut digits = 0;
    for byte in bytes.iter().take_while(|byte| byte.is_ascii_digit()) {
        value = value.checked_mul(10)?.checked_add(u32::from(byte - b'0'))?;
        digits += 1;
    }
    (digits > 0).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(header: &str, body: &[u8]) -> Vec<u8> {
        let header_len = u32::try_from(header.len()).unwrap();
        let total = header_len + 4 + u32::try_from(body.len()).unwrap();
        let mut frame = total.to_be_bytes().to_vec();
        frame.extend_from_slice(&header_len.to_be_bytes());
        frame.extend_from_slice(header.as_bytes());
        frame.extend_from_slice(body);
        frame
    }

    #[test]
    fn code_flag_and_opaque_are_found_wherever_they_stand() {
        let ours = json(
            r#"{"code":17,"flag":1,"language":"JAVA","opaque":16777217,"version":479}"#,
            b"",
        );
        let other = json(r#"{"opaque":5,"flag":3,"code":0}"#, b"{}");
        let mut hints = Hints::default();
        let reply = |code, opaque, body_len| {
            Ok(Reply {
                code,
                opaque,
                is_response: true,
                body_len,
            })
        };
        for _ in 0..2 {
            assert_eq!(inspect(&ours, &mut hints), reply(17, 16_777_217, 0));
            assert_eq!(inspect(&other, &mut hints), reply(0, 5, 2));
        }
    }

    #[test]
    fn a_frame_without_the_flag_of_responses_is_none() {
        for header in [
            r#"{"code":0,"flag":0,"opaque":5}"#,
            r#"{"code":0,"flag":2,"opaque":5}"#,
            r#"{"code":0,"opaque":5}"#,
        ] {
            let reply = inspect(&json(header, b""), &mut Hints::default()).unwrap();
            assert!(!reply.is_response, "{header}");
        }
        let mut frame = BINARY;
        frame[20] = 2;
        let reply = inspect(&frame, &mut Hints::default()).unwrap();
        assert!(!reply.is_response);
    }

    /// The binary reply of the spec.
    const BINARY: [u8; 29] = [
        0, 0, 0, 0x19, 1, 0, 0, 0x15, 0, 0, 0, 1, 0xdf, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0,
        0, 0,
    ];

    #[test]
    fn a_binary_reply_is_that_of_the_spec() {
        let expected = Reply {
            code: 0,
            opaque: 1,
            is_response: true,
            body_len: 0,
        };
        assert_eq!(inspect(&BINARY, &mut Hints::default()), Ok(expected));
    }

    #[test]
    fn what_is_no_reply_is_said_to_be_none() {
        let mut hints = Hints::default();
        assert_eq!(inspect(&json("{}", b""), &mut hints), Err(BadFrame));
        assert_eq!(
            inspect(&[0, 0, 0, 4, 0, 0, 0, 9], &mut hints),
            Err(BadFrame)
        );
        assert_eq!(frame_len(&[0, 0, 0]), Ok(None));
        assert_eq!(frame_len(&[0, 0, 0, 3]), Err(BadFrame));
        assert_eq!(frame_len(&[0x7f, 0, 0, 0]), Err(BadFrame));
    }
}
