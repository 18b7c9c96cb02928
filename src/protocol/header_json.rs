//! The JSON header codec's reading half (spec 1.2). The writing half is in [`super::encode`].

use super::{
    code::LANGUAGE_CODES,
    command::{ExtFields, RemotingCommand},
    header::{DecodeError, check_room},
    json::{JsonError, Kind, Reader},
};

/// Reads a header. A missing or null member counts as 0; a missing `opaque` too, where Java makes one up.
pub(super) fn decode<'a>(
    header: &'a [u8],
    command: &mut RemotingCommand<'a>,
) -> Result<(), DecodeError> {
    let mut reader = Reader::new(header)?;
    reader.begin_object()?;
    while let Some(key) = reader.next_key()? {
        match key.as_ref() {
            "code" => command.code = reader.int32_or_null()?.unwrap_or(0),
            "version" => command.version = reader.int32_or_null()?.unwrap_or(0),
            "opaque" => command.opaque = reader.int32_or_null()?.unwrap_or(0),
            "flag" => command.flag = reader.int32_or_null()?.unwrap_or(0),
            "extFields" => ext_fields(&mut reader, &mut command.ext)?,
            "language" => check_language(&mut reader)?,
            // `remark` and `serializeTypeCurrentRPC` of a request mean nothing to a server.
            _ => reader.skip_value()?,
        }
    }
    reader.end()?;
    Ok(())
}

/// Reads the map. Of a repeated one the last counts as a whole.
fn ext_fields<'a>(reader: &mut Reader<'a>, ext: &mut ExtFields<'a>) -> Result<(), DecodeError> {
    ext.clear();
    if !reader.begin_object_or_null()? {
        return Ok(());
    }
    while let Some(name) = reader.next_key()? {
        check_room(ext)?;
        match reader.text_or_null()? {
            Some(value) => ext.push(name, value),
            None => ext.push_null(name),
        }
    }
    Ok(())
}

/// Any name passes, a number only if a language has it (spec 1.2).
fn check_language(reader: &mut Reader<'_>) -> Result<(), JsonError> {
    if reader.kind()? == Kind::Text {
        return reader.skip_value();
    }
    let offset = reader.offset();
    match reader.int32_or_null()? {
        None => Ok(()),
        Some(ordinal) if (0..LANGUAGE_CODES).contains(&ordinal) => Ok(()),
        Some(_) => Err(JsonError::OutOfRange {
            offset,
            expected: "the number of a language",
        }),
    }
}
