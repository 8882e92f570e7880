//! What clients must know of a layered table: public, and the same for all clients.
//!
//! # As bytes
//!
//! Numbers are little-endian; *sized* bytes are preceded by their number (u32).
//!
//! | bytes | content |
//! |---|---|
//! | 2 | format version, 1 |
//! | 16 | id of the layered table |
//! | 4 | number of events |
//! | | the events |
//!
//! | event | first byte | then |
//! |---|---|---|
//! | [`KeyChanged`](Event::Changed) | 1 | number of the change (u64), key (sized), 0 for a deletion or 1 and the value (sized) |
//! | [`Built`](Event::Built) | 2 | first and last change (u64 each), the change with which it takes over (u64), digest of its records (32), digest of what clients fetch (32), the scheme's parameters (sized), key map (sized) |
//! | [`TakesOver`](Event::TakesOver) | 3 | first and last change (u64 each) |

use super::{KeyChange, Span};
use privet_core::codec::Reader;
use privet_core::{Epoch, Error, PublicSeed, Result, TableId, TableIdentity};
use privet_table::digest::{DigestParts, layout_digest};
use privet_table::key_map::KeyMap;
use std::sync::Arc;

const VERSION: u16 = 1;

/// The changes of a layered table, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The layered table.
    pub table: TableId,
    /// The events.
    pub events: Vec<Event>,
}

/// One event of a layered table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A key was changed; the change is in the list.
    Changed {
        /// The number of the change, from 1.
        number: u64,
        /// The change.
        change: KeyChange,
    },
    /// A layer was built: clients can prepare for it.
    Built {
        /// The layer.
        layer: Arc<LayerDescription>,
        /// The number of the change at which it takes over.
        takes_over_at: u64,
    },
    /// A layer takes over from everything that its span covers, in the list and in older layers.
    TakesOver(Span),
}

/// The public description of one layer.
#[derive(PartialEq, Eq)]
pub struct LayerDescription {
    /// The changes that it holds.
    pub span: Span,
    /// The BLAKE3 digest of its records.
    pub records: [u8; 32],
    /// The BLAKE3 digest of what clients fetch before they can query it; zeros if there is nothing
    /// to fetch, or each client gets its own.
    pub fetched: [u8; 32],
    /// The scheme's parameters.
    pub parameters: Vec<u8>,
    /// How keys map to records.
    pub key_map: KeyMap,
    /// Digest of the encoded key map.
    layout: [u8; 32],
}

impl LayerDescription {
    pub(super) fn new(
        span: Span,
        records: [u8; 32],
        fetched: [u8; 32],
        parameters: Vec<u8>,
        key_map: KeyMap,
    ) -> Self {
        let layout = layout_digest(&key_map.encode());
        Self { span, records, fetched, parameters, key_map, layout }
    }

    /// The layer's table, a part of the layered table `table`. It has an id of its own, because for
    /// its scheme each layer is a separate table. Its version is the last change that it holds.
    pub fn identity(&self, table: TableId) -> TableIdentity {
        let shape = self.key_map.shape();
        let parts = DigestParts { layout: self.layout, records: self.records };
        TableIdentity {
            id: self.span.table(table),
            epoch: Epoch(self.span.last),
            digest: parts.combine(shape),
            shape,
        }
    }
}

impl std::fmt::Debug for LayerDescription {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("LayerDescription").field("span", &self.span).finish_non_exhaustive()
    }
}

impl Span {
    /// The id of the layer of this span, as a table of its own.
    pub(super) fn table(self, table: TableId) -> TableId {
        let mut material = table.0.to_vec();
        material.extend(self.first.to_le_bytes());
        material.extend(self.last.to_le_bytes());
        let seed = PublicSeed::derive("privet layered table v1, id of a layer", &material);
        let mut id = [0; 16];
        id.copy_from_slice(&seed.as_bytes()[..16]);
        TableId(id)
    }
}

impl Announcement {
    /// The canonical encoding, which is the only one that [`decode`](Self::decode) accepts.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = VERSION.to_le_bytes().to_vec();
        out.extend(self.table.0);
        out.extend((self.events.len() as u32).to_le_bytes());
        for event in &self.events {
            match event {
                Event::Changed { number, change } => {
                    out.push(1);
                    out.extend(number.to_le_bytes());
                    put_sized(&mut out, &change.key);
                    out.push(u8::from(change.value.is_some()));
                    if let Some(value) = &change.value {
                        put_sized(&mut out, value);
                    }
                }
                Event::Built { layer, takes_over_at } => {
                    out.push(2);
                    put_span(&mut out, layer.span);
                    out.extend(takes_over_at.to_le_bytes());
                    out.extend(layer.records);
                    out.extend(layer.fetched);
                    put_sized(&mut out, &layer.parameters);
                    put_sized(&mut out, &layer.key_map.encode());
                }
                Event::TakesOver(span) => {
                    out.push(3);
                    put_span(&mut out, *span);
                }
            }
        }
        out
    }

    /// Reads an announcement from outside. Allocates no more than a small multiple of the length of
    /// `bytes`.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) unless `bytes` is exactly one
    /// valid encoding.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("an announcement of a layered table", bytes);
        let version = reader.u16()?;
        if version != VERSION {
            return Err(Error::invalid_message(format!(
                "an announcement of a layered table has version {version}; this program reads version {VERSION}"
            )));
        }
        let table = TableId(reader.array()?);
        let count = reader.u32()?;
        // Grows with the bytes that are there, not with the announced number.
        let mut events = Vec::new();
        for _ in 0..count {
            events.push(read_event(&mut reader)?);
        }
        reader.finish()?;
        Ok(Self { table, events })
    }
}

fn read_event(reader: &mut Reader<'_>) -> Result<Event> {
    match reader.u8()? {
        1 => {
            let number = reader.u64()?;
            let key = read_sized(reader)?.to_vec();
            let value = match reader.u8()? {
                0 => None,
                1 => Some(read_sized(reader)?.to_vec()),
                _ => return Err(unknown()),
            };
            Ok(Event::Changed { number, change: KeyChange { key, value } })
        }
        2 => {
            let span = read_span(reader)?;
            let takes_over_at = reader.u64()?;
            let (records, fetched) = (reader.array()?, reader.array()?);
            let parameters = read_sized(reader)?.to_vec();
            let key_map = KeyMap::decode(read_sized(reader)?)?;
            let layer = LayerDescription::new(span, records, fetched, parameters, key_map);
            Ok(Event::Built { layer: Arc::new(layer), takes_over_at })
        }
        3 => Ok(Event::TakesOver(read_span(reader)?)),
        _ => Err(unknown()),
    }
}

fn put_span(out: &mut Vec<u8>, span: Span) {
    out.extend(span.first.to_le_bytes());
    out.extend(span.last.to_le_bytes());
}

fn read_span(reader: &mut Reader<'_>) -> Result<Span> {
    let span = Span { first: reader.u64()?, last: reader.u64()? };
    if span.first > span.last {
        return Err(Error::invalid_message("a layer ends before it begins"));
    }
    Ok(span)
}

fn put_sized(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend(bytes);
}

fn read_sized<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8]> {
    let len = reader.u32()? as usize;
    reader.bytes(len)
}

fn unknown() -> Error {
    Error::invalid_message(
        "an announcement of a layered table holds something this program does not know",
    )
}
