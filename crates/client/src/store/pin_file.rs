//! All pins of one server in one small file.
//!
//! ```text
//! magic "privetpn" ‖ version u32 ‖ server length u32 ‖ server ‖ number of pins u32 ‖ for each:
//!     name length u32 ‖ name ‖ table id 16 ‖ epoch u64 ‖ table digest 32 ‖ parameter digest 32 ‖ digest of the parts 32
//! ‖ BLAKE3 of all that 32
//! ```
//!
//! The file is replaced as a whole, so a crash leaves the old pins or the new ones. A damaged file is refused, not rebuilt: forgetting a pin is what a
//! server that changes its story would wish for.

use super::Pins;
use crate::state::Pin;
use privet_core::codec::Reader;
use privet_core::{Epoch, Error, Result, TableDigest, TableId};
use privet_wire::limits::{MAX_NAME_LEN, MAX_TABLES};

const MAGIC: &[u8; 8] = b"privetpn";
const VERSION: u32 = 1;
const MAX_SERVER_LEN: usize = 4096;
const PIN_LEN: usize = 16 + 8 + 32 + 32 + 32;

/// The largest file of this kind.
pub(crate) const MAX_LEN: u64 =
    (8 + 4 + 4 + MAX_SERVER_LEN + 4 + MAX_TABLES * (4 + MAX_NAME_LEN + PIN_LEN) + 32) as u64;

/// Checks that `server` fits into the file.
pub(crate) fn check_server(server: &str) -> Result<()> {
    if server.len() <= MAX_SERVER_LEN {
        return Ok(());
    }
    Err(Error::api_misuse(format!(
        "a server's address has at most {MAX_SERVER_LEN} bytes, not {}",
        server.len()
    )))
}

pub(crate) fn encode(server: &str, pins: &[(String, Pin)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    put(&mut bytes, server);
    bytes.extend((pins.len() as u32).to_le_bytes());
    for (name, pin) in pins {
        put(&mut bytes, name);
        bytes.extend(pin.table.0);
        bytes.extend(pin.epoch.0.to_le_bytes());
        bytes.extend(pin.digest.0);
        bytes.extend(pin.parameter_digest);
        bytes.extend(pin.parts_digest);
    }
    let checksum = blake3::hash(&bytes);
    bytes.extend(checksum.as_bytes());
    bytes
}

fn put(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text.as_bytes());
}

/// # Errors
/// If the bytes are not exactly such a file; the caller knows its name.
pub(crate) fn decode(bytes: &[u8]) -> Result<Pins> {
    decode_with_server(bytes).map(|(_, pins)| pins)
}

/// The same with the server's address.
pub(crate) fn decode_with_server(bytes: &[u8]) -> Result<(String, Pins)> {
    let damaged = || Error::corrupted("it is damaged");
    let (fields, checksum) =
        bytes.split_at_checked(bytes.len().wrapping_sub(32)).ok_or_else(damaged)?;
    let mut reader = Reader::new("the list of pins", fields);
    if reader.array::<8>()? != *MAGIC {
        return Err(Error::corrupted("it does not begin like a file of Privet's"));
    }
    let version = reader.u32()?;
    if version != VERSION {
        return Err(Error::corrupted(format!(
            "it has format version {version}, this program knows version {VERSION}"
        )));
    }
    if blake3::hash(fields).as_bytes() != checksum {
        return Err(damaged());
    }
    let server = text(&mut reader, MAX_SERVER_LEN)?;
    let count = reader.u32()?;
    let mut pins = Vec::new();
    for _ in 0..count {
        let name = text(&mut reader, MAX_NAME_LEN)?;
        let pin = Pin {
            table: TableId(reader.array()?),
            epoch: Epoch(reader.u64()?),
            digest: TableDigest(reader.array()?),
            parameter_digest: reader.array()?,
            parts_digest: reader.array()?,
        };
        pins.push((name, pin));
    }
    reader.finish()?;
    Ok((server, pins))
}

fn text(reader: &mut Reader<'_>, limit: usize) -> Result<String> {
    let len = reader.u32()? as usize;
    if len > limit {
        return Err(Error::corrupted("it has a name that is too long"));
    }
    String::from_utf8(reader.bytes(len)?.to_vec())
        .map_err(|_| Error::corrupted("it has a name that is no text"))
}
