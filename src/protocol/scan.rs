//! JSON as every known peer writes it, read in one pass without looking back: compact, numbers of up to nine digits, texts
//! without escapes or control characters.
//!
//! Whoever scans says nothing of what is not of that form and leaves it to the lenient [`super::json::Reader`], so this never has to
//! be complete; property tests hold that the two agree wherever this one speaks.

use super::words;

/// A place in a JSON text of the usual form.
pub(super) struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// How many bytes are read.
    pub(super) fn len(&self) -> usize {
        self.at
    }

    /// Steps over bytes that have been looked at.
    pub(super) fn skip(&mut self, count: usize) {
        self.at += count;
    }

    /// What is still to be read.
    pub(super) fn bytes(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    pub(super) fn expect(&mut self, byte: u8) -> Option<()> {
        (*self.bytes().first()? == byte).then(|| self.at += 1)
    }

    /// Of constant length, so that comparing is a few machine words.
    pub(super) fn literal<const LEN: usize>(&mut self, literal: &[u8; LEN]) -> Option<()> {
        (self.bytes().first_chunk::<LEN>()? == literal).then(|| self.at += LEN)
    }

    /// Whether another member follows; the comma or the bracket is read.
    pub(super) fn goes_on(&mut self) -> Option<bool> {
        let byte = *self.bytes().first()?;
        self.at += 1;
        match byte {
            b',' => Some(true),
            b'}' => Some(false),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn string(&mut self) -> Option<&'a str> {
        self.expect(b'"')?;
        let string = self.plain()?;
        self.expect(b'"')?;
        Some(string)
    }

    /// The text up to the first quote, backslash or control character.
    #[inline]
    pub(super) fn plain(&mut self) -> Option<&'a str> {
        let len = plain_len(self.bytes());
        let plain = self.text.get(self.at..self.at + len)?;
        self.at += len;
        Some(plain)
    }

    /// A decimal number that cannot leave 32 bits, as Java writes it: no blanks, no plus, no leading zero.
    #[inline]
    pub(super) fn number(&mut self) -> Option<i32> {
        let negative = *self.bytes().first()? == b'-';
        self.at += usize::from(negative);
        let digits = self.bytes();
        let (mut value, mut len) = (0_i32, 0);
        while let Some(digit) = digits.get(len).filter(|byte| byte.is_ascii_digit()) {
            if len == 9 {
                return None;
            }
            value = value * 10 + i32::from(digit - b'0');
            len += 1;
        }
        if len == 0 || (digits[0] == b'0' && (len > 1 || negative)) {
            return None;
        }
        self.at += len;
        Some(if negative { -value } else { value })
    }

    /// The C++ client ends its header with a line feed.
    pub(super) fn is_at_end(&self) -> bool {
        matches!(self.bytes(), [] | [b'\n'])
    }
}

/// How many bytes come before the first quote, backslash or control character; eight at a time, since the texts of a header
/// are most of it.
#[inline]
fn plain_len(bytes: &[u8]) -> usize {
    let (whole, rest) = bytes.as_chunks::<8>();
    for (index, word) in whole.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = words::zero_bytes(word ^ words::all(b'"'))
            | words::zero_bytes(word ^ words::all(b'\\'))
            | words::bytes_below(word, b' ');
        if found != 0 {
            return index * 8 + words::first(found);
        }
    }
    let ends = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1F);
    let tail = rest.iter().position(ends).unwrap_or(rest.len());
    bytes.len() - rest.len() + tail
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_text_ends_at_its_first_special_byte(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'"'), Just(b'\\'), Just(0x1f), Just(b' '), Just(0x80)], 0..40)) {
            let special = |byte: &u8| *byte < b' ' || *byte == b'"' || *byte == b'\\';
            prop_assert_eq!(plain_len(&bytes), bytes.iter().position(special).unwrap_or(bytes.len()));
        }
    }
}
