//! All pins of one server in one small file.
//!
//! ```text
//! magic "privetpn" ‖ version u32 ‖ server length u32 ‖ server ‖ number of pins u32 ‖ for each:
//!     name length u32 ‖ name ‖
//!     table id 16 ‖ epoch u64 ‖ table digest 32 ‖ records u64 ‖ bytes of a record u64 ‖ parameter digest 32 ‖
//!     layout: length u64 ‖ digest 32 ‖ hint: whether there is one u8 ‖ length u64 ‖ digest 32 ‖
//!     publisher: whether known u8 ‖ 32 ‖ hash of the last epoch: whether known u8 ‖ 32 ‖
//!     digest of the next key: whether known u8 ‖ 32 ‖ first publisher: whether another u8 ‖ 32 ‖
//!     length of the scheme's name u32 ‖ name
//! ‖ number of tombstones u32 ‖ for each: table id 16 ‖ hash of the succession that ended it 32
//! ‖ BLAKE3 of all that 32
//! ```
//!
//! Pins are in the order in which they were written: the last is of the table that was used last.
//!
//! A tombstone is of a table that the client has left for its successor. It stands in the same file
//! as the successor's pin, so that one write makes both.
//!
//! A missing or unknown field is zeros. Version 1 had one digest for layout and hint together and
//! nothing about who signs updates. Version 2 had no next keys, first publishers, schemes
//! and tombstones; it is read.
//!
//! The file is replaced as a whole, so a crash leaves the old pins or the new ones. A damaged file
//! is refused, not rebuilt: a server that changes what it shows would profit from a forgotten pin.

use super::Pins;
use super::files;
use super::identity::{IDENTITY_LEN, put_identity, read_identity};
use crate::disk::Folder;
use crate::state::Pin;
use privet_core::codec::Reader;
use privet_core::{Blame, Error, Reason, Result, TableId};
use privet_table::update_log::{EpochHash, Left, NextKeyDigest, PublisherId};
use privet_wire::PartDescription;
use privet_wire::limits::{MAX_NAME_LEN, MAX_TABLES};

const MAGIC: &[u8; 8] = b"privetpn";
const VERSION: u32 = 3;
const VERSION_WITHOUT_TOMBSTONES: u32 = 2;
const MAX_SERVER_LEN: usize = 4096;
const PART_LEN: usize = 8 + 32;
const PIN_LEN: usize =
    IDENTITY_LEN + 32 + PART_LEN + (1 + PART_LEN) + 4 * (1 + 32) + 4 + MAX_NAME_LEN;
const TOMBSTONE_LEN: usize = 16 + 32;

/// How many tombstones a file has at most: with one each week, for seventy-eight years.
pub(crate) const MAX_TOMBSTONES: usize = 4096;

/// The largest file of this kind.
const MAX_LEN: u64 = (8
    + 4
    + 4
    + MAX_SERVER_LEN
    + 4
    + MAX_TABLES * (4 + MAX_NAME_LEN + PIN_LEN)
    + TOMBSTONES_LEN
    + 32) as u64;
const TOMBSTONES_LEN: usize = 4 + MAX_TOMBSTONES * TOMBSTONE_LEN;

/// What a file says.
#[derive(Default)]
pub(crate) struct PinFile {
    pub(crate) server: String,
    pub(crate) pins: Pins,
    /// The tables that were left for their successors.
    pub(crate) left: Vec<Left>,
    /// Names of tables whose pinned scheme this program does not know, and that scheme's name. It
    /// is written back for programs that know it.
    pub(crate) unknown_schemes: Vec<(String, String)>,
}

impl PinFile {
    /// Pins `pin` for the table called `name`, or the later version to which another process has
    /// followed the table, and notes that the tables `left` were left. Returns the pin that is kept
    /// and the one that it replaces.
    ///
    /// When the session began, it compared `pin` with the pins that were `known` then, by the
    /// table's name and by its id. This compares what another process has written since, also by
    /// both: a server may have told that process another name. Without `known`, the user believes
    /// whatever the server shows.
    ///
    /// # Errors
    /// [`Blame::Integrity`] if another process has meanwhile seen something else, and
    /// [`Blame::Unavailable`] if there are too many pins. Then do not write the file.
    pub(crate) fn pin(
        &mut self,
        name: &str,
        pin: &Pin,
        left: &[Left],
        known: Option<&[(String, Pin)]>,
    ) -> Result<(Pin, Option<Pin>)> {
        let kept = match known {
            None => *pin,
            Some(known) => self.compared(name, pin, known)?,
        };
        let server = &self.server;
        let before = self.pins.iter().position(|(known, _)| known == name);
        let replaced = before.map(|at| self.pins.remove(at).1);
        if self.pins.len() >= MAX_TABLES {
            return Err(Error::unavailable(format!(
                "{MAX_TABLES} tables of {server} are remembered, and no more are; forget that server, or keep some of its tables in a place of their own"
            ))
            .because(Reason::TooManyTablesRemembered));
        }
        self.pins.push((name.to_owned(), kept));
        if known.is_some() && self.left.iter().any(|known| known.id == pin.table.id) {
            return Err(Error::integrity(format!(
                "another process has just left table {name} of {server} for its successor, so this \
                 one does not come back to it"
            )));
        }
        // Whoever accepts a table that was left comes back to it.
        self.left.retain(|known| known.id != pin.table.id);
        let new: Vec<_> = left.iter().filter(|new| !self.left.contains(new)).collect();
        self.left.extend(new);
        if self.left.len() > MAX_TOMBSTONES {
            return Err(Error::unavailable(format!(
                "{MAX_TOMBSTONES} tables of {server} that were succeeded by others are remembered, \
                 and no more are; forget that server"
            ))
            .because(Reason::TooManyTablesRemembered));
        }
        Ok((kept, replaced))
    }

    /// The pin to keep for the table called `name`: `pin`, or a later version in the file.
    fn compared(&self, name: &str, pin: &Pin, known: &[(String, Pin)]) -> Result<Pin> {
        let server = &self.server;
        let mut latest = *pin;
        let same =
            |(known, other): &&(String, Pin)| known == name || other.table.id == pin.table.id;
        for there in self.pins.iter().filter(same) {
            let (other_name, other) = there;
            let both_known = other.publisher.is_some() && latest.publisher.is_some();
            let other_publisher = both_known && !latest.shares_publisher(other);
            if other.follows(&latest) {
                latest = *other;
                continue;
            }
            let leads_here = other.agrees_with(&latest) || latest.follows(other);
            if !known.contains(there) && (other_publisher || !leads_here) {
                let seen = match other_name == name {
                    true => format!("another table as table {name} of {server}"),
                    false => format!(
                        "table {name} of {server} as table {other_name}, with other contents"
                    ),
                };
                return Err(Error::integrity(format!(
                    "another process has just used {seen}, or a version of it that does not lead to this one, or that has another publisher: the server may be showing different clients different tables"
                )));
            }
        }
        Ok(latest)
    }
}

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

pub(crate) fn encode(PinFile { server, pins, left, unknown_schemes }: &PinFile) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    put(&mut bytes, server);
    bytes.extend((pins.len() as u32).to_le_bytes());
    for (name, pin) in pins {
        put(&mut bytes, name);
        put_identity(&mut bytes, &pin.table);
        bytes.extend(pin.parameter_digest);
        bytes.extend(part(pin.layout));
        put_option(&mut bytes, pin.hint.map(part));
        put_option(&mut bytes, pin.publisher.map(|publisher| publisher.0));
        put_option(&mut bytes, pin.last_epoch.map(|epoch| epoch.0));
        put_option(&mut bytes, pin.next_key.map(|next| next.0));
        put_option(&mut bytes, pin.first_publisher.map(|publisher| publisher.0));
        let unknown = unknown_schemes.iter().find(|(table, _)| table == name);
        let unknown = unknown.map_or("", |(_, scheme)| scheme);
        put(&mut bytes, pin.scheme.map_or(unknown, |scheme| scheme.name()));
    }
    bytes.extend((left.len() as u32).to_le_bytes());
    for Left { id, by } in left {
        bytes.extend(id.0);
        bytes.extend(by.0);
    }
    let checksum = blake3::hash(&bytes);
    bytes.extend(checksum.as_bytes());
    bytes
}

fn put(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text.as_bytes());
}

fn part(part: PartDescription) -> [u8; PART_LEN] {
    let mut bytes = [0; PART_LEN];
    bytes[..8].copy_from_slice(&part.len.to_le_bytes());
    bytes[8..].copy_from_slice(&part.digest);
    bytes
}

/// A flag, and then the value or as many zeros.
fn put_option<const N: usize>(bytes: &mut Vec<u8>, option: Option<[u8; N]>) {
    bytes.push(u8::from(option.is_some()));
    bytes.extend(option.unwrap_or([0; N]));
}

/// Reads the file called `name`: its contents, `None` if there is none, or how it is damaged.
///
/// # Errors
/// [`Blame::Unavailable`] if it cannot be read.
pub(crate) fn read(folder: &dyn Folder, name: &str) -> Result<Result<Option<PinFile>>> {
    match files::read_if_there(folder, name, MAX_LEN) {
        Err(error) if error.blame() == Blame::Unavailable => Err(error),
        Err(damage) => Ok(Err(damage)),
        Ok(bytes) => Ok(bytes.map(|bytes| decode(&bytes)).transpose()),
    }
}

/// # Errors
/// If the bytes are not exactly such a file; the caller adds its name.
pub(crate) fn decode(bytes: &[u8]) -> Result<PinFile> {
    let damaged = || Error::corrupted("it is damaged");
    let (fields, checksum) =
        bytes.split_at_checked(bytes.len().wrapping_sub(32)).ok_or_else(damaged)?;
    let mut reader = Reader::new("the list of pins", fields);
    let version = files::format_version(&mut reader, MAGIC, 0..=VERSION)?;
    if version < VERSION_WITHOUT_TOMBSTONES {
        return Err(Error::corrupted(format!(
            "an earlier version of Privet wrote it, in format {version}, which does not say enough to follow a table's updates"
        )));
    }
    if blake3::hash(fields).as_bytes() != checksum {
        return Err(damaged());
    }
    let server = text(&mut reader, MAX_SERVER_LEN)?;
    let count = reader.u32()?;
    let (mut pins, mut unknown_schemes) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let name = text(&mut reader, MAX_NAME_LEN)?;
        let mut pin = Pin {
            table: read_identity(&mut reader)?,
            parameter_digest: reader.array()?,
            layout: read_part(&mut reader)?,
            hint: read_option(&mut reader, read_part)?,
            publisher: read_option(&mut reader, |reader| reader.array().map(PublisherId))?,
            last_epoch: read_option(&mut reader, |reader| reader.array().map(EpochHash))?,
            next_key: None,
            first_publisher: None,
            scheme: None,
        };
        if version == VERSION {
            pin.next_key = read_option(&mut reader, |reader| reader.array().map(NextKeyDigest))?;
            pin.first_publisher =
                read_option(&mut reader, |reader| reader.array().map(PublisherId))?;
            // A scheme that this program does not know cannot be used here either.
            let scheme = text(&mut reader, MAX_NAME_LEN)?;
            pin.scheme = scheme.parse().ok();
            if pin.scheme.is_none() && !scheme.is_empty() {
                unknown_schemes.push((name.clone(), scheme));
            }
        }
        pins.push((name, pin));
    }
    let mut left = Vec::new();
    if version == VERSION {
        for _ in 0..reader.u32()? {
            left.push(Left { id: TableId(reader.array()?), by: EpochHash(reader.array()?) });
        }
    }
    reader.finish()?;
    Ok(PinFile { server, pins, left, unknown_schemes })
}

fn read_part(reader: &mut Reader<'_>) -> Result<PartDescription> {
    Ok(PartDescription { len: reader.u64()?, digest: reader.array()? })
}

fn read_option<T>(
    reader: &mut Reader<'_>,
    read: impl FnOnce(&mut Reader<'_>) -> Result<T>,
) -> Result<Option<T>> {
    let (is_there, value) = (reader.u8()?, read(reader)?);
    match is_there {
        0 => Ok(None),
        1 => Ok(Some(value)),
        _ => Err(Error::corrupted("its fields make no sense")),
    }
}

fn text(reader: &mut Reader<'_>, limit: usize) -> Result<String> {
    let len = reader.u32()? as usize;
    if len > limit {
        return Err(Error::corrupted("it has a name that is too long"));
    }
    String::from_utf8(reader.bytes(len)?.to_vec())
        .map_err(|_| Error::corrupted("it has a name that is not text"))
}
