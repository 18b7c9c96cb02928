//! The KV table as it lies in `kvConfig.json` (spec 4): `{"configTable":{"namespace":{"key":"value"}}}`.

use std::collections::BTreeMap;

use super::{
    body::BodyError,
    fastjson::{Dialect, write_string, write_string_map},
    json::Reader,
};

/// Namespace → key → value.
pub type KvTable = BTreeMap<String, BTreeMap<String, String>>;

/// What a KV file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KvFile {
    /// Nothing: no bytes, blanks or JSON `null`. Java writes an empty file only when it dies meanwhile (Q28).
    Empty,
    /// A table, which may be empty.
    Table(KvTable),
}

/// Reads a KV file. Null values and namespaces are left out, numbers are taken as texts, bad UTF-8 becomes U+FFFD.
///
/// # Errors
/// When it is not JSON, or an object without a `configTable`.
pub fn decode_kv_file(bytes: &[u8]) -> Result<KvFile, BodyError> {
    let text = String::from_utf8_lossy(bytes);
    let mut reader = Reader::from_text(&text);
    if reader.is_at_end()? {
        return Ok(KvFile::Empty);
    }
    if !reader.begin_object_or_null()? {
        reader.end()?;
        return Ok(KvFile::Empty);
    }
    let mut table = None;
    while let Some(key) = reader.next_key()? {
        match key.as_ref() {
            "configTable" => table = config_table(&mut reader)?,
            _ => reader.skip_value()?,
        }
    }
    reader.end()?;
    match table {
        Some(table) => Ok(KvFile::Table(table)),
        None => Err(BodyError::Missing {
            member: "configTable",
        }),
    }
}

fn config_table(reader: &mut Reader<'_>) -> Result<Option<KvTable>, BodyError> {
    if !reader.begin_object_or_null()? {
        return Ok(None);
    }
    let mut table = KvTable::new();
    while let Some(namespace) = reader.next_key()? {
        match entries(reader)? {
            Some(entries) => table.insert(namespace.into_owned(), entries),
            None => table.remove(namespace.as_ref()),
        };
    }
    Ok(Some(table))
}

fn entries(reader: &mut Reader<'_>) -> Result<Option<BTreeMap<String, String>>, BodyError> {
    if !reader.begin_object_or_null()? {
        return Ok(None);
    }
    let mut entries = BTreeMap::new();
    while let Some(key) = reader.next_key()? {
        match reader.text_or_null()? {
            Some(value) => entries.insert(key.into_owned(), value.into_owned()),
            None => entries.remove(key.as_ref()),
        };
    }
    Ok(Some(entries))
}

/// A KV file with an empty table.
pub const EMPTY_FILE: &[u8] = br#"{"configTable":{}}"#;

/// Appends a KV file with these namespaces and their entries, in the order given.
pub fn write_kv_file<'a, E>(out: &mut Vec<u8>, namespaces: impl IntoIterator<Item = (&'a str, E)>)
where
    E: IntoIterator<Item = (&'a str, &'a str)>,
{
    out.extend_from_slice(b"{\"configTable\":{");
    for (index, (namespace, entries)) in namespaces.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(out, namespace, Dialect::Plain);
        out.push(b':');
        write_string_map(out, entries, Dialect::Plain);
    }
    out.extend_from_slice(b"}}");
}
