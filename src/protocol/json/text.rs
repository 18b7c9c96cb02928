//! Quoted texts: found eight bytes at a time, borrowed unless an escape forces a copy.

use std::borrow::Cow;

use super::{JsonError, Reader};
use crate::protocol::words;

/// What an escaped surrogate without its partner becomes; Java writes it back as this (spec 1.2, 2.1).
const LONE_SURROGATE: char = '?';

impl<'a> Reader<'a> {
    /// Reads a text whose opening quote is the next byte.
    #[inline]
    pub(super) fn quoted(&mut self) -> Result<Cow<'a, str>, JsonError> {
        let Some(quote) = self.byte() else {
            return Err(self.unexpected("a text"));
        };
        let start = self.at + 1;
        let end = self.find_quote_or_escape(start, quote)?;
        if self.text.as_bytes()[end] == quote {
            self.at = end + 1;
            return Ok(Cow::Borrowed(&self.text[start..end]));
        }
        self.unescape(start, end, quote).map(Cow::Owned)
    }

    #[inline(never)]
    fn unescape(&mut self, start: usize, mut end: usize, quote: u8) -> Result<String, JsonError> {
        let mut text = String::from(&self.text[start..end]);
        while self.text.as_bytes()[end] != quote {
            self.at = end + 1;
            let character = self.escaped_character()?;
            text.push(character);
            let clean = self.at;
            end = self.find_quote_or_escape(clean, quote)?;
            text.push_str(&self.text[clean..end]);
        }
        self.at = end + 1;
        Ok(text)
    }

    /// Reads what follows a backslash. `\0` to `\7` are the characters of that number, as in fastjson.
    fn escaped_character(&mut self) -> Result<char, JsonError> {
        let character = match self.byte() {
            Some(byte @ (b'"' | b'\'' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b't') => '\t',
            Some(b'n') => '\n',
            Some(b'v') => '\u{b}',
            Some(b'f' | b'F') => '\u{c}',
            Some(b'r') => '\r',
            Some(digit @ b'0'..=b'7') => char::from(digit - b'0'),
            Some(b'x') => {
                self.at += 1;
                let unit = self.hex_digits(2)?;
                return Ok(char::from_u32(unit).unwrap_or(LONE_SURROGATE));
            }
            Some(b'u') => {
                self.at += 1;
                return self.utf16_character();
            }
            _ => return Err(self.unexpected("an escape")),
        };
        self.at += 1;
        Ok(character)
    }

    /// Reads the digits behind `\u`, and a second such escape if both together are one character.
    fn utf16_character(&mut self) -> Result<char, JsonError> {
        let first = self.hex_digits(4)?;
        if let Some(character) = char::from_u32(first) {
            return Ok(character);
        }
        let behind_first = self.at;
        if first < 0xdc00 && self.text[behind_first..].starts_with("\\u") {
            self.at += 2;
            let second = self.hex_digits(4)?;
            if (0xdc00..0xe000).contains(&second) {
                let scalar = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(scalar).unwrap_or(LONE_SURROGATE));
            }
            self.at = behind_first;
        }
        Ok(LONE_SURROGATE)
    }

    fn hex_digits(&mut self, count: usize) -> Result<u32, JsonError> {
        let mut number = 0;
        for _ in 0..count {
            let digit = self.byte().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return Err(self.unexpected("a hexadecimal digit"));
            };
            number = number << 4 | digit;
            self.at += 1;
        }
        Ok(number)
    }

    fn find_quote_or_escape(&mut self, from: usize, quote: u8) -> Result<usize, JsonError> {
        match find_either(&self.text.as_bytes()[from..], quote, b'\\') {
            Some(len) => Ok(from + len),
            None => {
                self.at = self.text.len();
                Err(self.unexpected("a closing quote"))
            }
        }
    }
}

/// The first place of `a` or `b`.
fn find_either(haystack: &[u8], a: u8, b: u8) -> Option<usize> {
    let (whole, tail) = haystack.as_chunks::<8>();
    let (all_a, all_b) = (words::all(a), words::all(b));
    for (index, word) in whole.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let hits = words::zero_bytes(word ^ all_a) | words::zero_bytes(word ^ all_b);
        if hits != 0 {
            return Some(index * 8 + words::first(hits));
        }
    }
    let place = tail.iter().position(|byte| *byte == a || *byte == b)?;
    Some(whole.len() * 8 + place)
}

#[cfg(test)]
mod tests {
    use super::find_either;

    #[test]
    fn the_first_of_two_bytes_is_found_wherever_it_stands() {
        for len in 0..40 {
            for place in 0..len {
                for decoy in place..len {
                    let mut haystack = vec![b'#'; len];
                    haystack[decoy] = b'\\';
                    haystack[place] = b'"';
                    assert_eq!(find_either(&haystack, b'"', b'\\'), Some(place));
                    assert_eq!(find_either(&haystack, b'\\', b'"'), Some(place));
                }
            }
            assert_eq!(find_either(&vec![b'!'; len], b'"', b'\\'), None);
        }
    }
}
