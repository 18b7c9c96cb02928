//! Java `.properties` text ⇄ entries, by the rules of `java.util.Properties#load` and `#store`.
//!
//! Knows no key. Reading differs from Java in two points: the text is UTF-8 where it can be, and half a surrogate pair
//! becomes U+FFFD, since no text of ours can hold it.

use std::{borrow::Cow, fmt::Write as _, iter::Peekable, str::CharIndices};

/// One `key=value` of a text, unescaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where it begins, counted from 1.
    pub line: usize,
    /// The key; empty in `=value`.
    pub key: String,
    /// The value: blanks in front are gone, those at the end are part of it.
    pub value: String,
}

/// A line that Java refuses to load, and the whole text with it: `\u` without four hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed {
    /// Where the entry begins, counted from 1.
    pub line: usize,
}

/// How the bytes of a text were understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// As they should be.
    Utf8,
    /// UTF-8 with a byte order mark, which was skipped.
    Utf8WithMark,
    /// UTF-16 with a byte order mark.
    Utf16,
    /// Not UTF-8, so every byte is a character, as in Java.
    Latin1,
}

/// Turns bytes into text and says how. It always succeeds.
#[must_use]
pub fn decode(bytes: &[u8]) -> (Cow<'_, str>, Encoding) {
    let wide = |two: fn([u8; 2]) -> u16| {
        let units = bytes[2..]
            .chunks(2)
            .map(|unit| two([unit[0], *unit.get(1).unwrap_or(&0)]));
        let text =
            char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER));
        (Cow::Owned(text.collect()), Encoding::Utf16)
    };
    match bytes {
        [0xFE, 0xFF, ..] => return wide(u16::from_be_bytes),
        [0xFF, 0xFE, ..] => return wide(u16::from_le_bytes),
        _ => {}
    }
    let (rest, encoding) = match bytes.strip_prefix(b"\xEF\xBB\xBF") {
        Some(rest) => (rest, Encoding::Utf8WithMark),
        None => (bytes, Encoding::Utf8),
    };
    match std::str::from_utf8(rest) {
        Ok(text) => (Cow::Borrowed(text), encoding),
        Err(_) => (
            Cow::Owned(bytes.iter().map(|&byte| char::from(byte)).collect()),
            Encoding::Latin1,
        ),
    }
}

/// Reads every entry of `text`, in order. A malformed one does not hide those after it.
pub fn parse(text: &str) -> impl Iterator<Item = Result<Entry, Malformed>> {
    LogicalLines {
        rest: text,
        line: 1,
    }
    .map(|(line, text)| {
        let (key, value) = split(&text);
        match (unescape(key), unescape(value)) {
            (Some(key), Some(value)) => Ok(Entry { line, key, value }),
            _ => Err(Malformed { line }),
        }
    })
}

/// Appends `key=value` and a line break, so escaped that [`parse`] and Java read back exactly that, in any encoding that
/// contains ASCII.
pub fn write(out: &mut String, key: &str, value: &str) {
    for character in key.chars() {
        if matches!(character, ' ' | '=' | ':' | '#' | '!') {
            out.push('\\');
        }
        escape(out, character);
    }
    out.push('=');
    let last = value.chars().count().saturating_sub(1);
    for (at, character) in value.chars().enumerate() {
        // Blanks in front would be skipped; one at the end is easily lost in an editor.
        if character == ' ' && (at == 0 || at == last) {
            out.push('\\');
        }
        escape(out, character);
    }
    out.push('\n');
}

fn escape(out: &mut String, character: char) {
    match character {
        '\\' => out.push_str("\\\\"),
        '\t' => out.push_str("\\t"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\u{C}' => out.push_str("\\f"),
        ' '..='~' => out.push(character),
        _ => {
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04X}").expect("a String takes all that is written to it");
            }
        }
    }
}

/// Natural lines joined where a backslash ends one; comments and blank lines left out (`Properties.LineReader#readLine`).
struct LogicalLines<'t> {
    rest: &'t str,
    line: usize,
}

impl<'t> LogicalLines<'t> {
    /// Takes one natural line without its end, which is `\n`, `\r` or `\r\n`.
    fn natural_line(&mut self) -> Option<&'t str> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.find(['\n', '\r']).unwrap_or(self.rest.len());
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest
            .strip_prefix("\r\n")
            .or_else(|| rest.get(1..))
            .unwrap_or("");
        self.line += 1;
        Some(line.trim_start_matches(is_blank))
    }
}

impl Iterator for LogicalLines<'_> {
    type Item = (usize, String);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let at = self.line;
            let line = self.natural_line()?;
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            let mut joined = line.to_owned();
            // The line added last decides alone, since an even number of backslashes is left before it: looking at all that is
            // joined would take a peer's many short lines quadratic time.
            let mut last = line;
            while continues(last) {
                joined.pop();
                let Some(line) = self.natural_line() else {
                    break;
                };
                joined.push_str(line);
                last = line;
            }
            if !joined.is_empty() {
                return Some((at, joined));
            }
        }
    }
}

/// Whether an odd number of backslashes ends `line`: the last one escapes the line's end.
fn continues(line: &str) -> bool {
    line.bytes().rev().take_while(|&byte| byte == b'\\').count() % 2 == 1
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\u{C}')
}

/// Separates key and value, both still escaped (`Properties#load0`).
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line.find(|character| {
        let ends = !escaped && (is_blank(character) || matches!(character, '=' | ':'));
        escaped = character == '\\' && !escaped;
        ends
    });
    let (key, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start_matches(is_blank);
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (key, rest.trim_start_matches(is_blank))
}

/// Resolves escapes; `None` if `\u` is not followed by four hexadecimal digits (`Properties#loadConvert`).
fn unescape(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.char_indices().peekable();
    while let Some((_, character)) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        match characters.next() {
            Some((_, 'u')) => unescape_units(text, &mut characters, &mut out)?,
            Some((_, 't')) => out.push('\t'),
            Some((_, 'n')) => out.push('\n'),
            Some((_, 'r')) => out.push('\r'),
            Some((_, 'f')) => out.push('\u{C}'),
            Some((_, other)) => out.push(other),
            None => {}
        }
    }
    Some(out)
}

/// Reads the digits after a `\u`, and a directly following `\u` too if both make one character.
fn unescape_units(
    text: &str,
    characters: &mut Peekable<CharIndices<'_>>,
    out: &mut String,
) -> Option<()> {
    let rest = characters.peek().map_or("", |&(at, _)| &text[at..]);
    let first = hex_unit(rest)?;
    let second = rest[4..].strip_prefix("\\u").and_then(hex_unit);
    let pair = second.and_then(|second| char::decode_utf16([first, second]).next()?.ok());
    let (character, length) = match pair {
        Some(character) if character.len_utf16() == 2 => (character, 10),
        _ => (
            char::from_u32(first.into()).unwrap_or(char::REPLACEMENT_CHARACTER),
            4,
        ),
    };
    out.push(character);
    // The digits are ASCII, so characters are bytes here.
    characters.nth(length - 1).map(|_| ())
}

fn hex_unit(text: &str) -> Option<u16> {
    let digits = text.get(..4)?;
    let all_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    all_digits
        .then(|| u16::from_str_radix(digits, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Joins lines by the rule as it is written down: the end of all that is joined decides.
    fn joined_slowly(text: &str) -> Vec<(usize, String)> {
        let mut lines = LogicalLines {
            rest: text,
            line: 1,
        };
        let mut all = Vec::new();
        loop {
            let at = lines.line;
            let Some(line) = lines.natural_line() else {
                return all;
            };
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            let mut joined = line.to_owned();
            while continues(&joined) {
                joined.pop();
                let Some(line) = lines.natural_line() else {
                    break;
                };
                joined.push_str(line);
            }
            if !joined.is_empty() {
                all.push((at, joined));
            }
        }
    }

    proptest! {
        #[test]
        fn lines_of_nothing_but_backslashes_are_joined_as_the_rule_says(text in "[a\\\\\n# ]{0,40}") {
            let lines = LogicalLines { rest: &text, line: 1 };
            prop_assert_eq!(lines.collect::<Vec<_>>(), joined_slowly(&text));
        }
    }

    fn entries(text: &str) -> Vec<(usize, String, String)> {
        parse(text)
            .map(|entry| entry.expect("well-formed"))
            .map(|entry| (entry.line, entry.key, entry.value))
            .collect()
    }

    fn one(text: &str) -> (String, String) {
        let mut all = entries(text);
        assert_eq!(all.len(), 1, "{text:?} holds one entry: {all:?}");
        let (_, key, value) = all.remove(0);
        (key, value)
    }

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    #[test]
    fn every_separator_of_java_is_one() {
        for text in [
            "a=b",
            "a:b",
            "a b",
            "a\tb",
            "a\u{C}b",
            " a = b",
            "a  :  b",
            "a \t= \tb",
            "a=b\r\n",
            "a=b\r",
            "a=b\n",
        ] {
            assert_eq!(one(text), pair("a", "b"), "{text:?}");
        }
        assert_eq!(one("a==b"), pair("a", "=b"));
        assert_eq!(one("a = = b"), pair("a", "= b"));
        assert_eq!(one("a:=b"), pair("a", "=b"));
        assert_eq!(one("a"), pair("a", ""));
        assert_eq!(one("a="), pair("a", ""));
        assert_eq!(one("=b"), pair("", "b"));
    }

    #[test]
    fn blanks_at_the_end_belong_to_the_value() {
        assert_eq!(one("a=b \t"), pair("a", "b \t"));
        assert_eq!(one("a = "), pair("a", ""));
    }

    #[test]
    fn comments_and_blank_lines_count_as_lines_but_hold_nothing() {
        let text = "# one\r\n  ! two \\\r\n\r\n   \t\na=1\r# five\nb=2 # part of the value";
        assert_eq!(
            entries(text),
            [
                (5, "a".to_owned(), "1".to_owned()),
                (7, "b".to_owned(), "2 # part of the value".to_owned())
            ]
        );
    }

    #[test]
    fn a_backslash_at_the_end_joins_lines_and_two_do_not() {
        assert_eq!(one("a=b\\\n   c"), pair("a", "bc"));
        assert_eq!(one("kvConfig\\\r\n  Path=x"), pair("kvConfigPath", "x"));
        assert_eq!(one("a=b\\\n#c"), pair("a", "b#c"));
        assert_eq!(one("a=b\\"), pair("a", "b"));
        assert_eq!(
            entries("a=b\\\\\nc=d"),
            [
                (1, "a".to_owned(), "b\\".to_owned()),
                (2, "c".to_owned(), "d".to_owned())
            ]
        );
        assert_eq!(entries("a=b\\\n\nc=d").len(), 2);
        assert_eq!(
            entries("\\\n\\\n\nc=d"),
            [(4, "c".to_owned(), "d".to_owned())]
        );
    }

    #[test]
    fn escapes_are_resolved_in_keys_and_values() {
        assert_eq!(one(r"\u006bvConfigPath=x"), pair("kvConfigPath", "x"));
        assert_eq!(one(r"a\=b\ c\:d=x"), pair("a=b c:d", "x"));
        assert_eq!(one(r"a=\t\n\r\f\\\q\u00e9"), pair("a", "\t\n\r\u{C}\\qé"));
        assert_eq!(one(r"a=\ud83d\ude00!"), pair("a", "😀!"));
        assert_eq!(one(r"a=\ud83dx"), pair("a", "\u{FFFD}x"));
        assert_eq!(one(r"a=\ud83d\u0041"), pair("a", "\u{FFFD}A"));
    }

    #[test]
    fn a_short_unicode_escape_is_malformed_and_hides_nothing_after_it() {
        for text in ["a=\\u12", "a=\\u", "a=\\u12G4", "\\u+123=a", "a=\\u00é9"] {
            assert_eq!(
                parse(text).collect::<Vec<_>>(),
                [Err(Malformed { line: 1 })],
                "{text:?}"
            );
        }
        let all: Vec<_> = parse("\na=\\u1\nb=c").collect();
        assert_eq!(all[0], Err(Malformed { line: 2 }));
        assert_eq!(
            all[1],
            Ok(Entry {
                line: 3,
                key: "b".to_owned(),
                value: "c".to_owned()
            })
        );
    }

    #[test]
    fn bytes_are_utf_8_or_else_latin_1_and_marks_are_skipped() {
        assert_eq!(decode("ä".as_bytes()), (Cow::Borrowed("ä"), Encoding::Utf8));
        assert_eq!(
            decode(b"\xEF\xBB\xBFa=b"),
            (Cow::Borrowed("a=b"), Encoding::Utf8WithMark)
        );
        assert_eq!(decode(b"\xE4=b"), (Cow::Borrowed("ä=b"), Encoding::Latin1));
        assert_eq!(
            decode(b"\xFF\xFEa\0=\0"),
            (Cow::Borrowed("a="), Encoding::Utf16)
        );
        assert_eq!(
            decode(b"\xFE\xFF\0a\0="),
            (Cow::Borrowed("a="), Encoding::Utf16)
        );
        assert_eq!(decode(b""), (Cow::Borrowed(""), Encoding::Utf8));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(pairs in proptest::collection::vec((".{0,8}", "(?s).{0,12}"), 0..6)) {
            let mut text = "# header\n".to_owned();
            for (key, value) in &pairs {
                write(&mut text, key, value);
            }
            prop_assert!(text.is_ascii());
            let read: Vec<_> = entries(&text).into_iter().map(|(_, key, value)| (key, value)).collect();
            prop_assert_eq!(read, pairs);
        }

        #[test]
        fn no_bytes_make_the_reader_fail(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let (text, _) = decode(&bytes);
            let lines = text.len() + 1;
            for entry in parse(&text) {
                let line = entry.map_or_else(|malformed| malformed.line, |entry| entry.line);
                prop_assert!(line <= lines);
            }
        }

        #[test]
        fn no_line_made_of_the_special_characters_makes_the_reader_fail(text in "[\\\\u0=: \t\n\r#a]{0,40}") {
            prop_assert!(parse(&text).count() <= text.len());
        }
    }
}
