//! Whole values of any shape: skipped, or copied in compact form.

use super::{
    JsonError, Kind, Reader,
    scalar::{Bare, number_text},
};
use crate::{
    limits::JSON_DEPTH_MAX,
    protocol::fastjson::{Dialect, write_string},
};

impl Reader<'_> {
    /// Reads past one value of any kind.
    ///
    /// # Errors
    /// When it is malformed or nests too deep.
    pub fn skip_value(&mut self) -> Result<(), JsonError> {
        match self.kind()? {
            Kind::Text => self.quoted().map(|_| ()),
            Kind::Object | Kind::List | Kind::Bare => self.walk(&mut None),
        }
    }

    /// Reads one value and writes it without blanks and comments, names in the order sent.
    pub(super) fn compact_value(&mut self) -> Result<String, JsonError> {
        let mut out = Some(Vec::new());
        self.walk(&mut out)?;
        Ok(String::from_utf8(out.unwrap_or_default()).expect("JSON written from texts is a text"))
    }

    /// The open objects and lists are bits, so the depth costs neither stack nor heap.
    fn walk(&mut self, out: &mut Option<Vec<u8>>) -> Result<(), JsonError> {
        let mut open = Containers::default();
        loop {
            let kind = self.kind()?;
            let mut is_first = false;
            match kind {
                Kind::Object | Kind::List => {
                    if !open.push(kind) {
                        return Err(JsonError::TooDeep {
                            offset: self.at,
                            max: JSON_DEPTH_MAX,
                        });
                    }
                    self.at += 1;
                    put(out, opening(kind));
                    is_first = true;
                }
                Kind::Text => {
                    let text = self.quoted()?;
                    if let Some(out) = out {
                        write_string(out, &text, Dialect::Plain);
                    }
                }
                Kind::Bare => self.walk_bare(out)?,
            }
            if self.close_finished(&mut open, is_first, out)? {
                return Ok(());
            }
        }
    }

    /// Behind a value: reads closing brackets, then what leads to the next value. True when the outermost value is complete.
    fn close_finished(
        &mut self,
        open: &mut Containers,
        mut is_first: bool,
        out: &mut Option<Vec<u8>>,
    ) -> Result<bool, JsonError> {
        while let Some(kind) = open.innermost() {
            let next = self.peek_behind_commas()?;
            if next == Some(closing(kind)) {
                self.at += 1;
                put(out, closing(kind));
                open.pop();
                is_first = false;
                continue;
            }
            if !is_first {
                put(out, b',');
            }
            if kind == Kind::Object
                && let Some(key) = self.next_key()?
                && let Some(out) = out
            {
                write_string(out, &key, Dialect::Plain);
                out.push(b':');
            }
            return Ok(false);
        }
        Ok(true)
    }

    fn walk_bare(&mut self, out: &mut Option<Vec<u8>>) -> Result<(), JsonError> {
        let offset = self.at;
        let bare = self.bare()?;
        if let Bare::Number(text) = bare {
            let text = number_text(text, offset)?;
            if let Some(out) = out {
                out.extend_from_slice(text.as_bytes());
            }
        } else if let Some(out) = out {
            out.extend_from_slice(match bare {
                Bare::Bool(true) => b"true",
                Bare::Bool(false) => b"false",
                Bare::Null | Bare::Number(_) => b"null",
            });
        }
        Ok(())
    }
}

fn put(out: &mut Option<Vec<u8>>, byte: u8) {
    if let Some(out) = out {
        out.push(byte);
    }
}

fn opening(kind: Kind) -> u8 {
    if kind == Kind::Object { b'{' } else { b'[' }
}

fn closing(kind: Kind) -> u8 {
    if kind == Kind::Object { b'}' } else { b']' }
}

const WORDS: usize = JSON_DEPTH_MAX.div_ceil(64);

/// A stack of object-or-list, one bit each.
#[derive(Debug, Default)]
struct Containers {
    /// Set for an object.
    bits: [u64; WORDS],
    depth: usize,
}

impl Containers {
    /// False when it is full.
    fn push(&mut self, kind: Kind) -> bool {
        if self.depth == JSON_DEPTH_MAX {
            return false;
        }
        let bit = 1 << (self.depth % 64);
        let word = &mut self.bits[self.depth / 64];
        *word = if kind == Kind::Object {
            *word | bit
        } else {
            *word & !bit
        };
        self.depth += 1;
        true
    }

    fn pop(&mut self) {
        self.depth -= 1;
    }

    fn innermost(&self) -> Option<Kind> {
        let index = self.depth.checked_sub(1)?;
        let is_object = self.bits[index / 64] >> (index % 64) & 1 == 1;
        Some(if is_object { Kind::Object } else { Kind::List })
    }
}
