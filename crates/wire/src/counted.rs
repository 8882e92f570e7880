//! How many tables, schemes and versions a description lists, counted before it is decoded.
//!
//! An empty entry takes two bytes in a message and some hundred in memory. So a description of the
//! greatest length could take gigabytes if it were decoded first and counted then.

use crate::limits::{MAX_EARLIER, MAX_SCHEMES, MAX_TABLES};
use privet_core::{Error, Result};
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// The numbers of fields in the protocol's definition: of a description, and of a table.
const TABLES: u32 = 3;
const SCHEMES: u32 = 8;
const EARLIER: u32 = 10;
const PREDECESSORS: u32 = 11;

/// # Errors
/// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if `description` is not an encoded
/// description, or lists more than any may.
pub(crate) fn check(description: &[u8]) -> Result<()> {
    let mut tables = Count::up_to(MAX_TABLES, "tables");
    each_field(description, |number, table| match number {
        TABLES => {
            tables.add()?;
            check_table(table, MAX_EARLIER)
        }
        _ => Ok(()),
    })
}

/// `most`: how many earlier versions the table may have.
fn check_table(table: &[u8], most: usize) -> Result<()> {
    let mut schemes = Count::up_to(MAX_SCHEMES, "schemes");
    let mut earlier = Count::up_to(most, "earlier versions");
    each_field(table, |number, field| match number {
        SCHEMES => schemes.add(),
        EARLIER | PREDECESSORS => {
            earlier.add()?;
            check_table(field, 0)
        }
        _ => Ok(()),
    })
}

struct Count {
    left: usize,
    most: usize,
    what: &'static str,
}

impl Count {
    fn up_to(most: usize, what: &'static str) -> Self {
        Self { left: most, most, what }
    }

    fn add(&mut self) -> Result<()> {
        let Self { left, most, what } = self;
        *left = left.checked_sub(1).ok_or_else(|| {
            Error::invalid_message(format!("the server lists more {what} than {most}"))
        })?;
        Ok(())
    }
}

/// Calls `visit` with the number and the bytes of each field that is text, bytes or a message.
fn each_field(mut bytes: &[u8], mut visit: impl FnMut(u32, &[u8]) -> Result<()>) -> Result<()> {
    while !bytes.is_empty() {
        let (number, kind) = decode_key(&mut bytes).map_err(malformed)?;
        if kind != WireType::LengthDelimited {
            skip_field(kind, number, &mut bytes, DecodeContext::default()).map_err(malformed)?;
            continue;
        }
        let len = decode_varint(&mut bytes).map_err(malformed)?;
        let field = usize::try_from(len).ok().and_then(|len| bytes.split_at_checked(len));
        let (field, rest) =
            field.ok_or_else(|| Error::invalid_message("a description is cut off"))?;
        visit(number, field)?;
        bytes = rest;
    }
    Ok(())
}

pub(crate) fn malformed(error: prost::DecodeError) -> Error {
    Error::invalid_message("a description is not as the protocol prescribes").caused_by(error)
}
