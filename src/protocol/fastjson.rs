//! Writes JSON byte for byte as the Java server of 4.9.4 to 5.3.3 does (spec 2.1, 10.5).

/// Which of the Java server's two JSON writers to imitate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `RemotingSerializable#encode()`: integer keys unquoted, non-ASCII as it is. Not quite JSON.
    Plain,
    /// `BrowserCompatible`: pure ASCII and standard JSON; used for routes of clients from 4.9.4 on.
    Strict,
}

/// The largest integer that a JavaScript number holds exactly: `Strict` quotes what lies beyond.
const SAFE_INTEGER_MAX: i64 = 9_007_199_254_740_991;

const HEX_DIGITS: &[u8; 16] = b"0123456789ABCDEF";

/// Bytes that end a run which can be copied. Bit 0: in `Plain`, bit 1: in `Strict`.
static SPECIAL: [u8; 256] = special_bytes();

const fn special_bytes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte {
            0..0x20 | 0x22 | 0x5c | 0x7f => 0b11,
            // 0xc2 starts U+0080 to U+00BF, 0xe2 U+2000 to U+2FFF: some of them are escaped in both dialects.
            0xc2 | 0xe2 => 0b11,
            0x2f | 0x80.. => 0b10,
            _ => 0,
        };
        byte += 1;
    }
    table
}

/// Appends `text` in quotes.
pub fn write_string(out: &mut Vec<u8>, text: &str, dialect: Dialect) {
    out.push(b'"');
    write_escaped(out, text, dialect);
    out.push(b'"');
}

/// How many bytes [`write_string`] appends.
#[must_use]
pub fn string_len(text: &str, dialect: Dialect) -> usize {
    let mut escaped = Counted(0);
    write_escaped(&mut escaped, text, dialect);
    escaped.0 + "\"\"".len()
}

/// Where a text goes.
trait Sink {
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Nowhere: only its length is asked for.
struct Counted(usize);

impl Sink for Counted {
    fn put(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }
}

fn write_escaped(out: &mut impl Sink, mut rest: &str, dialect: Dialect) {
    let mask = match dialect {
        Dialect::Plain => 0b01,
        Dialect::Strict => 0b10,
    };
    while let Some(clean_len) = rest
        .bytes()
        .position(|byte| SPECIAL[usize::from(byte)] & mask != 0)
    {
        let (clean, special) = rest.split_at(clean_len);
        out.put(clean.as_bytes());
        let mut characters = special.chars();
        if let Some(character) = characters.next() {
            write_character(out, character, dialect);
        }
        rest = characters.as_str();
    }
    out.put(rest.as_bytes());
}

fn write_character(out: &mut impl Sink, character: char, dialect: Dialect) {
    let short = match character {
        '"' => b'"',
        '\\' => b'\\',
        '\u{8}' => b'b',
        '\t' => b't',
        '\n' => b'n',
        '\u{c}' => b'f',
        '\r' => b'r',
        '/' if dialect == Dialect::Strict => b'/',
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' => {
            return write_utf16_escapes(out, character);
        }
        '\u{80}'.. if dialect == Dialect::Strict => return write_utf16_escapes(out, character),
        _ => {
            let mut utf8 = [0; 4];
            return out.put(character.encode_utf8(&mut utf8).as_bytes());
        }
    };
    out.put(&[b'\\', short]);
}

fn write_utf16_escapes(out: &mut impl Sink, character: char) {
    let mut units = [0; 2];
    for unit in character.encode_utf16(&mut units) {
        let [high, low] = unit.to_be_bytes();
        let digit = |nibble: u8| HEX_DIGITS[usize::from(nibble & 0xf)];
        let digits = [digit(high >> 4), digit(high), digit(low >> 4), digit(low)];
        out.put(b"\\u");
        out.put(&digits);
    }
}

/// Appends a number; `Strict` quotes one that a JavaScript number cannot hold.
pub fn write_i64(out: &mut Vec<u8>, number: i64, dialect: Dialect) {
    let is_safe = (-SAFE_INTEGER_MAX..=SAFE_INTEGER_MAX).contains(&number);
    write_number(out, number, dialect == Dialect::Strict && !is_safe);
}

/// Appends an integer map key: quoted in `Strict` only.
pub fn write_int_key(out: &mut Vec<u8>, key: i64, dialect: Dialect) {
    write_number(out, key, dialect == Dialect::Strict);
}

fn write_number(out: &mut Vec<u8>, number: i64, quoted: bool) {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(number).as_bytes();
    if quoted {
        out.push(b'"');
        out.extend_from_slice(digits);
        out.push(b'"');
    } else {
        out.extend_from_slice(digits);
    }
}

/// Appends `true` or `false`.
pub fn write_bool(out: &mut Vec<u8>, truth: bool) {
    out.extend_from_slice(if truth { b"true" } else { b"false" });
}

/// Appends a list of texts.
pub fn write_string_list<'a>(
    out: &mut Vec<u8>,
    texts: impl IntoIterator<Item = &'a str>,
    dialect: Dialect,
) {
    out.push(b'[');
    for (index, text) in texts.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(out, text, dialect);
    }
    out.push(b']');
}

/// Appends an object of texts in the order given.
pub fn write_string_map<'a>(
    out: &mut Vec<u8>,
    entries: impl IntoIterator<Item = (&'a str, &'a str)>,
    dialect: Dialect,
) {
    out.push(b'{');
    for (index, (key, value)) in entries.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(out, key, dialect);
        out.push(b':');
        write_string(out, value, dialect);
    }
    out.push(b'}');
}

/// The members of one object: names in the order given, commas between them.
#[derive(Debug)]
pub struct ObjectWriter<'o> {
    out: &'o mut Vec<u8>,
    dialect: Dialect,
    is_first: bool,
}

impl<'o> ObjectWriter<'o> {
    /// Appends `{`.
    pub fn begin(out: &'o mut Vec<u8>, dialect: Dialect) -> Self {
        out.push(b'{');
        Self {
            out,
            dialect,
            is_first: true,
        }
    }

    /// Appends the name, and hands out where its value is to be written.
    pub fn member(&mut self, name: &str) -> &mut Vec<u8> {
        if !self.is_first {
            self.out.push(b',');
        }
        self.is_first = false;
        write_string(self.out, name, self.dialect);
        self.out.push(b':');
        self.out
    }

    /// Appends a text member.
    pub fn string(&mut self, name: &str, text: &str) {
        let dialect = self.dialect;
        write_string(self.member(name), text, dialect);
    }

    /// Appends a text member unless it is null.
    pub fn optional_string(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.string(name, text);
        }
    }

    /// Appends a number member.
    pub fn number(&mut self, name: &str, number: i64) {
        let dialect = self.dialect;
        write_i64(self.member(name), number, dialect);
    }

    /// Appends a truth member.
    pub fn bool(&mut self, name: &str, truth: bool) {
        write_bool(self.member(name), truth);
    }

    /// Appends `}`.
    pub fn end(self) {
        self.out.push(b'}');
    }
}
