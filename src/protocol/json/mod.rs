//! One lenient, pulling JSON reader for headers, bodies and the KV file.
//!
//! It takes the union of what fastjson 1 and fastjson2 accept (spec 1.2, 2.1, Q47): unquoted and single-quoted names, comments,
//! spare commas, Java's number spellings, raw control characters, every escape of fastjson. A comma is read like a blank inside
//! objects and lists, so a missing one passes too, as it does in 5.4 and later. It refuses what both libraries refuse.
//!
//! It borrows what it can, recurses never, and looks at every byte a bounded number of times.

mod error;
mod number;
mod scalar;
mod text;
mod walk;

use std::borrow::Cow;

pub use error::JsonError;

/// What the next value is, told by its first character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `{`
    Object,
    /// `[`
    List,
    /// A quoted text.
    Text,
    /// A number, `true`, `false`, `null` or one of their other spellings.
    Bare,
}

/// A position in a JSON text.
///
/// ```
/// # use waypost::protocol::json::{JsonError, Reader};
/// # fn main() -> Result<(), JsonError> {
/// let mut reader = Reader::new(b"{code:'105',}\n")?;
/// reader.begin_object()?;
/// while let Some(key) = reader.next_key()? {
///     match key.as_ref() {
///         "code" => assert_eq!(reader.int32_or_null()?, Some(105)),
///         _ => reader.skip_value()?,
///     }
/// }
/// reader.end()
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    /// Starts before the first value, behind a byte order mark if there is one.
    ///
    /// # Errors
    /// When the bytes are not UTF-8.
    pub fn new(bytes: &'a [u8]) -> Result<Self, JsonError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self::from_text(text)),
            Err(error) => Err(JsonError::NotUtf8 {
                offset: error.valid_up_to(),
            }),
        }
    }

    /// The same for text.
    #[must_use]
    pub fn from_text(text: &'a str) -> Self {
        let at = if text.starts_with('\u{feff}') {
            '\u{feff}'.len_utf8()
        } else {
            0
        };
        Self { text, at }
    }

    /// How many bytes have been read.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Reads a value of the usual form with `scan`, which says how long it is; if it is of another form nothing is read.
    pub(in crate::protocol) fn scanned<T>(
        &mut self,
        scan: impl FnOnce(&'a str) -> Option<(T, usize)>,
    ) -> Option<T> {
        let (value, len) = scan(&self.text[self.at..])?;
        self.at += len;
        Some(value)
    }

    /// What the next value is.
    ///
    /// # Errors
    /// When no value starts here.
    pub fn kind(&mut self) -> Result<Kind, JsonError> {
        match self.peek()? {
            Some(b'{') => Ok(Kind::Object),
            Some(b'[') => Ok(Kind::List),
            Some(b'"' | b'\'') => Ok(Kind::Text),
            Some(b'0'..=b'9' | b'+' | b'-' | b'a'..=b'z' | b'A'..=b'Z') => Ok(Kind::Bare),
            _ => Err(self.unexpected("a value")),
        }
    }

    /// Whether only blanks and comments are left.
    ///
    /// # Errors
    /// When a comment does not end.
    pub fn is_at_end(&mut self) -> Result<bool, JsonError> {
        Ok(self.peek()?.is_none())
    }

    /// Checks that nothing follows but blanks and comments.
    ///
    /// # Errors
    /// When something does.
    pub fn end(mut self) -> Result<(), JsonError> {
        match self.peek()? {
            None => Ok(()),
            Some(_) => Err(self.unexpected("the end of the text")),
        }
    }

    /// Reads `{`.
    ///
    /// # Errors
    /// When the next value is no object.
    pub fn begin_object(&mut self) -> Result<(), JsonError> {
        self.expect(b'{', "an object")
    }

    /// Reads `{`, or `null` (then false: there is nothing to read).
    ///
    /// # Errors
    /// When the next value is neither.
    pub fn begin_object_or_null(&mut self) -> Result<bool, JsonError> {
        self.begin_or_null(b'{', "an object or null")
    }

    /// Reads `[`, or `null` (then false: there is nothing to read).
    ///
    /// # Errors
    /// When the next value is neither.
    pub fn begin_list_or_null(&mut self) -> Result<bool, JsonError> {
        self.begin_or_null(b'[', "a list or null")
    }

    /// Inside an object: reads the next name and its colon, or the closing brace (then `None`).
    ///
    /// # Errors
    /// When there is neither.
    #[inline]
    pub fn next_key(&mut self) -> Result<Option<Cow<'a, str>>, JsonError> {
        let key = match self.peek_behind_commas()? {
            Some(b'}') => {
                self.at += 1;
                return Ok(None);
            }
            Some(b'"' | b'\'') => self.quoted()?,
            _ => Cow::Borrowed(self.unquoted_key()?),
        };
        self.expect(b':', "a colon")?;
        Ok(Some(key))
    }

    /// The same where the names are integers, quoted or not (spec 2.1, Q2).
    ///
    /// # Errors
    /// When there is neither, or the name is no 32-bit integer.
    pub fn next_int32_key(&mut self) -> Result<Option<i32>, JsonError> {
        self.peek_behind_commas()?;
        let offset = self.at;
        let Some(key) = self.next_key()? else {
            return Ok(None);
        };
        match key.parse() {
            Ok(key) => Ok(Some(key)),
            Err(_) => Err(JsonError::OutOfRange {
                offset,
                expected: "a 32-bit integer",
            }),
        }
    }

    /// Inside a list: whether another item follows; reads the closing bracket if none does.
    ///
    /// # Errors
    /// When the text ends inside the list.
    pub fn next_item(&mut self) -> Result<bool, JsonError> {
        match self.peek_behind_commas()? {
            Some(b']') => {
                self.at += 1;
                Ok(false)
            }
            Some(_) => Ok(true),
            None => Err(self.unexpected("an item or a closing bracket")),
        }
    }

    fn begin_or_null(&mut self, open: u8, expected: &'static str) -> Result<bool, JsonError> {
        if self.peek()? == Some(open) {
            self.at += 1;
            return Ok(true);
        }
        if self.take_null()? {
            return Ok(false);
        }
        Err(self.unexpected(expected))
    }

    #[inline(always)]
    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), JsonError> {
        if self.peek()? != Some(byte) {
            return Err(self.unexpected(expected));
        }
        self.at += 1;
        Ok(())
    }

    #[inline(always)]
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The next byte that is neither blank nor in a comment, not yet read.
    #[inline(always)]
    fn peek(&mut self) -> Result<Option<u8>, JsonError> {
        // Peers write compact JSON: hardly ever is there anything to skip.
        match self.byte() {
            Some(byte) if byte > b' ' && byte != b'/' => Ok(Some(byte)),
            _ => self.peek_behind_blanks(),
        }
    }

    #[inline(never)]
    fn peek_behind_blanks(&mut self) -> Result<Option<u8>, JsonError> {
        loop {
            match self.byte() {
                Some(byte) if is_blank(byte) => self.at += 1,
                Some(b'/') => self.skip_comment()?,
                other => return Ok(other),
            }
        }
    }

    /// Like `peek`, but commas are blanks as well.
    #[inline(always)]
    fn peek_behind_commas(&mut self) -> Result<Option<u8>, JsonError> {
        loop {
            match self.peek()? {
                Some(b',') => self.at += 1,
                other => return Ok(other),
            }
        }
    }

    fn skip_comment(&mut self) -> Result<(), JsonError> {
        let rest = &self.text[self.at..];
        let len = if let Some(comment) = rest.strip_prefix("/*") {
            comment.find("*/").map(|at| 2 + at + 2)
        } else if rest.starts_with("//") {
            Some(rest.find('\n').unwrap_or(rest.len()))
        } else {
            None
        };
        match len {
            Some(len) => {
                self.at += len;
                Ok(())
            }
            None => Err(self.unexpected("a complete comment")),
        }
    }

    /// A name without quotes: a word or a number, as Java writes the keys of `brokerAddrs` and `currIdMap` (spec 2.1).
    #[cold]
    fn unquoted_key(&mut self) -> Result<&'a str, JsonError> {
        let rest = &self.text[self.at..];
        let len = rest.bytes().take_while(|byte| is_name_byte(*byte)).count();
        if len == 0 {
            return Err(self.unexpected("a name or a closing brace"));
        }
        self.at += len;
        Ok(&rest[..len])
    }

    #[cold]
    fn unexpected(&self, expected: &'static str) -> JsonError {
        JsonError::Unexpected {
            offset: self.at,
            found: self.byte(),
            expected,
        }
    }
}

/// What fastjson calls whitespace, and NUL, which may trail (spec 1.2).
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | 0x0c | 0x08 | 0)
}

/// Bytes of multi-byte characters belong to a name, so a name ends at a character's border.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'-' | b'+' | b'.') || byte >= 0x80
}
