//! JSON as text: a tree that keeps every key and scalar exactly as it was written.
//!
//! A server's JSON is compared byte for byte except where Java's order is that of a hash table. So the normaliser
//! must be able to reorder members and put everything else back untouched: escapes, unquoted keys, number forms.

/// A JSON value whose scalars and keys are the verbatim source text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tree {
    /// A string, number, `true`, `false` or `null`, as written.
    Scalar(String),
    /// An array.
    Array(Vec<Tree>),
    /// An object; keys as written, quotes included where there were any.
    Object(Vec<(String, Tree)>),
}

/// Nothing a name server sends is deeper.
const DEEPEST: usize = 64;

/// Parses compact JSON, in which integer (and `null`) keys may be unquoted.
///
/// Text with blanks between its tokens is not compact and yields `None`, like text that is not JSON: both are then
/// compared as they stand.
#[must_use]
pub fn parse(text: &str) -> Option<Tree> {
    let mut parser = Parser { rest: text };
    let tree = parser.value(0)?;
    parser.rest.is_empty().then_some(tree)
}

impl Tree {
    /// The text again.
    #[must_use]
    pub fn write(&self) -> String {
        match self {
            Tree::Scalar(text) => text.clone(),
            Tree::Array(items) => {
                format!(
                    "[{}]",
                    items.iter().map(Tree::write).collect::<Vec<_>>().join(",")
                )
            }
            Tree::Object(members) => {
                let members: Vec<String> = members
                    .iter()
                    .map(|(key, value)| format!("{key}:{}", value.write()))
                    .collect();
                format!("{{{}}}", members.join(","))
            }
        }
    }

    /// The member of an object by the plain (unescaped) key.
    pub fn member_mut(&mut self, name: &str) -> Option<&mut Tree> {
        let Tree::Object(members) = self else {
            return None;
        };
        let (_, value) = members.iter_mut().find(|(key, _)| plain(key) == name)?;
        Some(value)
    }
}

/// A key without its quotes.
#[must_use]
pub fn plain(key: &str) -> &str {
    key.strip_prefix('"')
        .and_then(|key| key.strip_suffix('"'))
        .unwrap_or(key)
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn value(&mut self, depth: usize) -> Option<Tree> {
        if depth > DEEPEST {
            return None;
        }
        match self.rest.as_bytes().first()? {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => Some(Tree::Scalar(self.string()?)),
            _ => Some(Tree::Scalar(self.bare()?)),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Tree> {
        let mut members = Vec::new();
        self.skip('{')?;
        if self.skip('}').is_some() {
            return Some(Tree::Object(members));
        }
        loop {
            let key = if self.rest.starts_with('"') {
                self.string()?
            } else {
                self.bare()?
            };
            self.skip(':')?;
            members.push((key, self.value(depth + 1)?));
            if self.skip('}').is_some() {
                return Some(Tree::Object(members));
            }
            self.skip(',')?;
        }
    }

    fn array(&mut self, depth: usize) -> Option<Tree> {
        let mut items = Vec::new();
        self.skip('[')?;
        if self.skip(']').is_some() {
            return Some(Tree::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.skip(']').is_some() {
                return Some(Tree::Array(items));
            }
            self.skip(',')?;
        }
    }

    fn string(&mut self) -> Option<String> {
        let mut escaped = false;
        for (index, byte) in self.rest.bytes().enumerate().skip(1) {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => return Some(self.take(index + 1)),
                _ => {}
            }
        }
        None
    }

    fn bare(&mut self) -> Option<String> {
        let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        let length = self.rest.bytes().take_while(|byte| is_bare(*byte)).count();
        (length > 0).then(|| self.take(length))
    }

    fn skip(&mut self, character: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(character)?;
        Some(())
    }

    fn take(&mut self, length: usize) -> String {
        let (front, rest) = self.rest.split_at(length);
        self.rest = rest;
        front.to_owned()
    }
}
