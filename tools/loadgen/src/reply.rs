//! What is looked at in a reply: its length prefix, its code and its opaque. The body's content is the tests' business.

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

/// Reads a whole frame. `opaque_hint` remembers where the last header had its opaque: a server writes all alike.
///
/// # Errors
/// A frame without a readable header.
pub fn inspect(frame: &[u8], opaque_hint: &mut usize) -> Result<Reply, BadFrame> {
    let word = frame
        .get(4..8)
        .and_then(|bytes| bytes.first_chunk::<4>())
        .ok_or(BadFrame)?;
    let word = u32::from_be_bytes(*word);
    let header_len = usize::try_from(word & 0x00ff_ffff).map_err(|_| BadFrame)?;
    let header = frame.get(8..8 + header_len).ok_or(BadFrame)?;
    let body_len = frame.len() - 8 - header_len;
    let (code, opaque) = match word >> 24 {
        0 => json_head(header, opaque_hint).ok_or(BadFrame)?,
        1 => binary_head(header).ok_or(BadFrame)?,
        _ => return Err(BadFrame),
    };
    Ok(Reply {
        code,
        opaque,
        body_len,
    })
}

fn json_head(header: &[u8], opaque_hint: &mut usize) -> Option<(u32, u32)> {
    const CODE: &[u8] = b"{\"code\":";
    const OPAQUE: &[u8] = b"\"opaque\":";
    // The server writes its keys in alphabetical order (spec 1.2), so the code comes first.
    let code_at = if header.starts_with(CODE) {
        CODE.len()
    } else {
        find(header, &CODE[1..])? + CODE.len() - 1
    };
    let hinted = header.get(*opaque_hint..*opaque_hint + OPAQUE.len()) == Some(OPAQUE);
    if !hinted {
        *opaque_hint = find(header, OPAQUE)?;
    }
    let opaque = number(&header[*opaque_hint + OPAQUE.len()..])?;
    Some((number(&header[code_at..])?, opaque))
}

fn binary_head(header: &[u8]) -> Option<(u32, u32)> {
    let code = u16::from_be_bytes(*header.get(..2)?.first_chunk()?);
    let opaque = u32::from_be_bytes(*header.get(5..9)?.first_chunk()?);
    Some((u32::from(code), opaque))
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
    fn code_and_opaque_are_found_wherever_they_stand() {
        let ours = json(
            r#"{"code":17,"flag":1,"language":"JAVA","opaque":16777217,"version":479}"#,
            b"",
        );
        let other = json(r#"{"opaque":5,"flag":1,"code":0}"#, b"{}");
        let mut hint = 0;
        let reply = |code, opaque, body_len| {
            Ok(Reply {
                code,
                opaque,
                body_len,
            })
        };
        for _ in 0..2 {
            assert_eq!(inspect(&ours, &mut hint), reply(17, 16_777_217, 0));
            assert_eq!(inspect(&other, &mut hint), reply(0, 5, 2));
        }
    }

    #[test]
    fn a_binary_reply_is_that_of_the_spec() {
        let frame = [
            0, 0, 0, 0x19, 1, 0, 0, 0x15, 0, 0, 0, 1, 0xdf, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0,
            0, 0, 0,
        ];
        let expected = Reply {
            code: 0,
            opaque: 1,
            body_len: 0,
        };
        assert_eq!(inspect(&frame, &mut 0), Ok(expected));
    }

    #[test]
    fn what_is_no_reply_is_said_to_be_none() {
        let mut hint = 0;
        assert_eq!(inspect(&json("{}", b""), &mut hint), Err(BadFrame));
        assert_eq!(inspect(&[0, 0, 0, 4, 0, 0, 0, 9], &mut hint), Err(BadFrame));
        assert_eq!(frame_len(&[0, 0, 0]), Ok(None));
        assert_eq!(frame_len(&[0, 0, 0, 3]), Err(BadFrame));
        assert_eq!(frame_len(&[0x7f, 0, 0, 0]), Err(BadFrame));
    }
}
