//! Single values, converted as generously as fastjson converts them.

use std::borrow::Cow;

use super::{JsonError, Kind, Reader, number};

/// A word or number outside quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bare<'a> {
    /// `null`, `NULL`, `undefined`, `NaN`
    Null,
    Bool(bool),
    /// Digits and what may stand around them, unchecked.
    Number(&'a str),
}

impl<'a> Reader<'a> {
    /// Reads `null` or one of its other spellings if that is next; else reads nothing.
    ///
    /// # Errors
    /// When a comment does not end.
    pub fn take_null(&mut self) -> Result<bool, JsonError> {
        if !matches!(self.peek()?, Some(b'n' | b'N' | b'u')) {
            return Ok(false);
        }
        let before = self.at;
        let is_null = self.bare()? == Bare::Null;
        if !is_null {
            self.at = before;
        }
        Ok(is_null)
    }

    /// Reads a 64-bit integer: a number in any of Java's spellings, the same in quotes, or a truth value.
    ///
    /// # Errors
    /// When the value is something else or beyond 64 bits.
    pub fn int64_or_null(&mut self) -> Result<Option<i64>, JsonError> {
        let first = self.peek()?;
        if matches!(first, Some(b'0'..=b'9' | b'-'))
            && let Some(integer) = self.short_integer()
        {
            return Ok(Some(integer));
        }
        let offset = self.at;
        match self.kind()? {
            Kind::Text => {
                let text = self.quoted()?;
                checked_integer(&text, offset).map(Some)
            }
            Kind::Bare => match self.bare()? {
                Bare::Null => Ok(None),
                Bare::Bool(truth) => Ok(Some(i64::from(truth))),
                Bare::Number(text) => checked_integer(text, offset).map(Some),
            },
            Kind::Object | Kind::List => Err(self.unexpected("a number")),
        }
    }

    /// Reads a 32-bit integer like [`Self::int64_or_null`].
    ///
    /// # Errors
    /// When the value is something else or beyond 32 bits.
    pub fn int32_or_null(&mut self) -> Result<Option<i32>, JsonError> {
        self.peek()?;
        let offset = self.at;
        let Some(wide) = self.int64_or_null()? else {
            return Ok(None);
        };
        match i32::try_from(wide) {
            Ok(narrow) => Ok(Some(narrow)),
            Err(_) => Err(JsonError::OutOfRange {
                offset,
                expected: "a 32-bit integer",
            }),
        }
    }

    /// Reads a truth value: `true`, `"TRUE"` and every number but 0 are true, every other text and 0 false.
    ///
    /// # Errors
    /// When the value is an object or a list.
    pub fn bool_or_null(&mut self) -> Result<Option<bool>, JsonError> {
        match self.kind()? {
            Kind::Text => Ok(Some(self.quoted()?.eq_ignore_ascii_case("true"))),
            Kind::Bare => Ok(match self.bare()? {
                Bare::Null => None,
                Bare::Bool(truth) => Some(truth),
                Bare::Number(text) => Some(number::integer(text) != Some(0)),
            }),
            Kind::Object | Kind::List => Err(self.unexpected("a truth value")),
        }
    }

    /// Reads any value as text: a text as it is, a number in its digits, an object or list as compact JSON (spec 1.2).
    ///
    /// # Errors
    /// When the value is malformed or nests too deep.
    pub fn text_or_null(&mut self) -> Result<Option<Cow<'a, str>>, JsonError> {
        match self.kind()? {
            Kind::Text => self.quoted().map(Some),
            Kind::Bare => {
                let offset = self.at;
                Ok(match self.bare()? {
                    Bare::Null => None,
                    Bare::Bool(true) => Some(Cow::Borrowed("true")),
                    Bare::Bool(false) => Some(Cow::Borrowed("false")),
                    Bare::Number(text) => Some(number_text(text, offset)?),
                })
            }
            Kind::Object | Kind::List => self.compact_value().map(|text| Some(Cow::Owned(text))),
        }
    }

    /// Reads a word or number.
    pub(super) fn bare(&mut self) -> Result<Bare<'a>, JsonError> {
        let rest = &self.text[self.at..];
        let len = rest
            .bytes()
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
            .count();
        let text = &rest[..len];
        let bare = match text {
            "null" | "NULL" | "undefined" | "NaN" => Bare::Null,
            "true" => Bare::Bool(true),
            "false" => Bare::Bool(false),
            _ if text.starts_with(|first: char| matches!(first, '0'..='9' | '+' | '-')) => {
                Bare::Number(text)
            }
            _ => return Err(self.unexpected("a value")),
        };
        self.at += len;
        Ok(bare)
    }

    /// Reads the usual kind of number: a few digits and then something that cannot belong to it. `None`: nothing was read.
    fn short_integer(&mut self) -> Option<i64> {
        /// So many digits fit an `i64` whatever they are.
        const DIGITS_MAX: usize = 18;
        let rest = &self.text.as_bytes()[self.at..];
        let sign_len = usize::from(rest.first() == Some(&b'-'));
        let mut magnitude = 0;
        let mut len = sign_len;
        while let Some(digit @ b'0'..=b'9') = rest.get(len) {
            if len == sign_len + DIGITS_MAX {
                return None;
            }
            magnitude = magnitude * 10 + i64::from(digit - b'0');
            len += 1;
        }
        let is_complete = matches!(
            rest.get(len),
            None | Some(b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t')
        );
        if len == sign_len || !is_complete {
            return None;
        }
        self.at += len;
        Some(if sign_len == 0 { magnitude } else { -magnitude })
    }
}

fn checked_integer(text: &str, offset: usize) -> Result<i64, JsonError> {
    number::integer(text).ok_or(JsonError::OutOfRange {
        offset,
        expected: "a 64-bit integer",
    })
}

/// A number as Java would print it: an integer loses its sign, zeros and suffix, anything else stays as it was written.
pub(super) fn number_text(text: &str, offset: usize) -> Result<Cow<'_, str>, JsonError> {
    let Some(integer) = number::integer(text) else {
        return if is_number(text) {
            Ok(Cow::Borrowed(text))
        } else {
            Err(JsonError::Unexpected {
                offset,
                found: text.bytes().next(),
                expected: "a number",
            })
        };
    };
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit())
        && (text.len() == 1 || !text.starts_with('0'));
    let is_fraction = text.contains(['.', 'e', 'E']);
    if is_plain || is_fraction {
        return Ok(Cow::Borrowed(text));
    }
    Ok(Cow::Owned(itoa::Buffer::new().format(integer).to_owned()))
}

/// Whether a number that is no 64-bit integer is a number at all.
fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| {
        byte.is_ascii_digit()
            || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E' | b'L' | b'D' | b'F')
    }) && text
        .strip_suffix(['L', 'F', 'D'])
        .unwrap_or(text)
        .parse::<f64>()
        .is_ok()
}
