//! JSON as text, written and compacted. Numbers are never parsed, because that could change them.

use privet_core::{Error, Result};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Appends `text` as a JSON string, with no more escapes than JSON demands.
pub(super) fn write_string(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(&mut *out, text).expect("writing a string to memory cannot fail");
}

/// Appends the name of the next field to the object that `out` ends with.
pub(super) fn write_name(name: &str, out: &mut Vec<u8>) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    write_string(name, out);
    out.push(b':');
}

/// Appends `value` without white space between tokens, and its strings without needless escapes.
/// Numbers stay as they are.
pub(super) fn write_compact(value: &RawValue, out: &mut Vec<u8>) -> Result<()> {
    let text = value.get();
    let bytes = text.as_bytes();
    let mut position = 0;
    while let Some(&byte) = bytes.get(position) {
        let end = match byte {
            b'"' => string_end(bytes, position),
            _ => position + 1,
        };
        match byte {
            b'"' => write_string_token(&text[position..end], out)?,
            b' ' | b'\t' | b'\n' | b'\r' => {}
            _ => out.push(byte),
        }
        position = end;
    }
    Ok(())
}

/// The text that a JSON string token stands for.
pub(super) fn string_text(token: &str) -> Result<Cow<'_, str>> {
    if !token.contains('\\') {
        return Ok(Cow::Borrowed(&token[1..token.len() - 1]));
    }
    serde_json::from_str(token).map(Cow::Owned).map_err(|error| {
        Error::api_misuse(format!("a string is not valid: {}", reason(&error))).caused_by(error)
    })
}

fn write_string_token(token: &str, out: &mut Vec<u8>) -> Result<()> {
    if token.contains('\\') {
        write_string(&string_text(token)?, out);
    } else {
        out.extend_from_slice(token.as_bytes());
    }
    Ok(())
}

/// Where the string ends that begins at `start`. The text is valid JSON, so there is an end.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut position = start + 1;
    while position < bytes.len() {
        match bytes[position] {
            b'\\' => position += 2,
            b'"' => return position + 1,
            _ => position += 1,
        }
    }
    bytes.len()
}

/// The parser's message without its position: the parser has seen a single line.
pub(super) fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
