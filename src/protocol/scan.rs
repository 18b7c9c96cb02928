//! JSON as every known peer writes it, read in one pass without looking back: compact, numbers of up to nine digits, texts
//! without escapes or control characters.
//!
//! Whoever scans says nothing of what is not of that form and leaves it to the lenient [`super::json::Reader`], so this never has to
//! be complete; property tests hold that the two agree wherever this one speaks.

use std::ops::Range;

use super::words;

/// A place in a JSON text of the usual form.
pub(super) struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
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
        &self.text[self.at..]
    }

    pub(super) fn expect(&mut self, byte: u8) -> Option<()> {
        (*self.bytes().first()? == byte).then(|| self.at += 1)
    }

    /// Of constant length, so that comparing is a few machine words.
    pub(super) fn literal<const LEN: usize>(&mut self, literal: &[u8; LEN]) -> Option<()> {
        (self.bytes().first_chunk::<LEN>()? == literal).then(|| self.at += LEN)
    }

    /// Steps over bytes that are known; the library compares them as many at a time as the processor can.
    #[inline]
    pub(super) fn same(&mut self, known: &[u8]) -> Option<()> {
        self.bytes()
            .starts_with(known)
            .then(|| self.at += known.len())
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

    /// A text in quotes, without them. Whether it is UTF-8 is for the caller to know.
    #[inline]
    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        self.expect(b'"')?;
        let string = self.plain();
        self.expect(b'"')?;
        Some(string)
    }

    /// The text up to the first quote, backslash or control character.
    #[inline]
    pub(super) fn plain(&mut self) -> &'a [u8] {
        let plain = &self.bytes()[..plain_len(self.bytes())];
        self.at += plain.len();
        plain
    }

    /// The same of a text that is known as such, of which this reads the bytes.
    #[inline]
    pub(super) fn plain_of(&mut self, text: &'a str) -> Option<&'a str> {
        let start = self.at;
        self.plain();
        text.get(start..self.at)
    }

    /// A decimal number that cannot leave 32 bits, as Java writes it: no blanks, no plus, no leading zero.
    #[inline]
    pub(super) fn number(&mut self) -> Option<i32> {
        let negative = *self.bytes().first()? == b'-';
        self.at += usize::from(negative);
        let digits = self.bytes();
        let (value, len) = match words::short_number(digits) {
            Some(read) => read,
            None => long_number(digits)?,
        };
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

/// A text that is read by one before it, its model: what a peer writes one behind the other differs in a value or two. The two
/// are compared eight bytes at a time, and only values that differ are read.
pub(super) struct Alike<'m, 'a> {
    model: &'m [u8],
    scan: Scan<'a>,
    /// Where in the model `scan` stands: behind the last value that differed.
    at: usize,
    /// Up to here, in the model, the two are the same from there on.
    equal_until: usize,
}

impl<'m, 'a> Alike<'m, 'a> {
    pub(super) fn new(model: &'m [u8], text: &'a [u8]) -> Self {
        Self {
            model,
            scan: Scan::new(text),
            at: 0,
            equal_until: common_len(model, text),
        }
    }

    /// Goes on to a value that the model has at `place`, behind those before: `models`, or what `read` finds if it is another.
    /// `None` if the two differ before it, or nothing can be read.
    #[inline]
    pub(super) fn value<T>(
        &mut self,
        place: &Range<usize>,
        models: T,
        read: impl FnOnce(&mut Scan<'a>) -> Option<T>,
    ) -> Option<T> {
        // Where the two differ right behind a value, the other's is longer.
        if place.end < self.equal_until {
            return Some(models);
        }
        self.read(place, read)
    }

    /// Where in the model the two differ next; that is within a value or right behind it, or they are not alike. `None`: nowhere.
    #[inline]
    pub(super) fn difference(&self) -> Option<usize> {
        (self.equal_until < self.model.len()).then_some(self.equal_until)
    }

    /// Goes on to a value that differs.
    #[inline]
    pub(super) fn read<T>(
        &mut self,
        place: &Range<usize>,
        read: impl FnOnce(&mut Scan<'a>) -> Option<T>,
    ) -> Option<T> {
        if self.equal_until < place.start {
            return None;
        }
        self.scan.skip(place.start - self.at);
        let value = read(&mut self.scan)?;
        self.at = place.end;
        self.equal_until = self.at + common_len(&self.model[self.at..], self.scan.bytes());
        Some(value)
    }

    /// How long the text is that is alike, if it is to the model's end.
    pub(super) fn end(self) -> Option<usize> {
        let len = self.scan.len() + self.model.len() - self.at;
        (self.equal_until == self.model.len()).then_some(len)
    }
}

/// The digits that `bytes` begin with as a number, and how many there are; `None` when it might leave 32 bits.
fn long_number(bytes: &[u8]) -> Option<(i32, usize)> {
    let (mut value, mut len) = (0_i32, 0);
    while let Some(digit) = bytes.get(len).filter(|byte| byte.is_ascii_digit()) {
        if len == 9 {
            return None;
        }
        value = value * 10 + i32::from(digit - b'0');
        len += 1;
    }
    Some((value, len))
}

/// How many bytes two texts begin with in common. Most of a header is compared here and nowhere else, so as many bytes at a time
/// as a vector register or two hold, then eight (`cargo bench --bench codec`, `behind_another`).
fn common_len(one: &[u8], other: &[u8]) -> usize {
    let len = one.len().min(other.len());
    let (one, other) = (&one[..len], &other[..len]);
    let blocks = one
        .as_chunks::<32>()
        .0
        .iter()
        .zip(other.as_chunks::<32>().0);
    let mut same = 32 * blocks.take_while(|(one, other)| one == other).count();
    let words = one[same..].as_chunks::<8>().0.iter();
    for (one, other) in words.zip(other[same..].as_chunks::<8>().0) {
        if let Some(at) = words::difference(*one, *other) {
            return same + at;
        }
        same += 8;
    }
    // The last word over again with what is left behind it.
    if let (Some(one), Some(other)) = (one.last_chunk::<8>(), other.last_chunk::<8>()) {
        return words::difference(*one, *other).map_or(len, |at| len - 8 + at);
    }
    let pairs = one.iter().zip(other);
    pairs.take_while(|(one, other)| one == other).count()
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

        #[test]
        fn a_number_is_read_like_any_other_decimal_up_to_nine_digits(number in any::<i32>(), shift in 0..32, behind in "[,}:/ a]?[0-9]{0,10}") {
            let text = format!("{}{behind}", number >> shift);
            let digit = |(at, letter): &(usize, char)| letter.is_ascii_digit() || (*at, *letter) == (0, '-');
            let digits = &text[..text.char_indices().take_while(digit).count()];
            let usual = digits.trim_start_matches('-').len() <= 9;
            let expected = usual.then(|| digits.parse::<i32>().expect("nine digits at most"));
            let expected = expected.filter(|number| number.to_string() == digits);
            let mut scan = Scan::new(text.as_bytes());
            prop_assert_eq!(scan.number(), expected, "{}", text);
            if expected.is_some() {
                prop_assert_eq!(scan.len(), digits.len(), "{}", text);
            }
        }

        #[test]
        fn texts_have_in_common_what_comes_before_the_first_difference(one in "[ab]{0,20}", other in "[ab]{0,20}", both in "[ab]{0,80}") {
            let (one, other) = (format!("{both}{one}"), format!("{both}{other}"));
            let slowly = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
            prop_assert_eq!(common_len(one.as_bytes(), other.as_bytes()), slowly);
        }
    }
}
