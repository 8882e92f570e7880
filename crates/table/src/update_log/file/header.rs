//! The fixed parts of an update log: its header and its commit records, as the [parent
//! module](super) lays them out.

use super::damaged;
use crate::update_log::{
    EpochHash, Lineage, MAX_LINEAGE_LEN, NextKeyDigest, PublisherId, TableKeys,
};
use privet_core::codec::Reader;
use privet_core::{Epoch, Error, Result, TableDigest, TableId, TableIdentity};

pub(crate) const MAGIC: [u8; 8] = *b"\x89PRVL\r\n\x1a";
/// The version of a log whose table has neither a next key nor a lineage. Programs that know of
/// neither read it.
const VERSION: u32 = 2;
const VERSION_WITH_LINEAGE: u32 = 3;
const CHECKSUM_LEN: usize = 32;

/// The longest header.
pub(crate) const HEADER_LEN: usize = 241;

/// Far enough apart that one interrupted write touches only one of header, commit records and
/// epochs.
pub(crate) const COMMIT_OFFSETS: [u64; 2] = [4096, 8192];

/// Where the lineage begins, if there is one; otherwise the first epoch.
pub(crate) const LINEAGE_OFFSET: u64 = 12_288;

const PAGE: u64 = 4096;

/// Identifies a log's table, and where the log begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) id: TableId,
    pub(crate) base: Epoch,
    pub(crate) digest: TableDigest,
    /// Who signs the first epoch.
    pub(crate) keys: TableKeys,
    /// The hash of the epoch that made the base.
    pub(crate) previous: EpochHash,
    /// How many records the table had when its first log was begun.
    pub(crate) first_records: u64,
    /// The length and the BLAKE3 digest of the lineage before the base; 0 and zeros if it is
    /// empty.
    pub(crate) lineage: (u32, [u8; 32]),
}

impl Header {
    /// The header of a log that begins with this table.
    pub(crate) fn new(base: TableIdentity, keys: TableKeys, previous: EpochHash) -> Self {
        let TableIdentity { id, epoch, digest, shape } = base;
        let first_records = shape.records();
        Self { id, base: epoch, digest, keys, previous, first_records, lineage: (0, [0; 32]) }
    }

    /// The same after the encoded lineage `lineage`.
    pub(crate) fn after(self, lineage: &[u8]) -> Self {
        let digest = if lineage.is_empty() { [0; 32] } else { *blake3::hash(lineage).as_bytes() };
        // At most `MAX_LINEAGE_LEN`.
        Self { lineage: (lineage.len() as u32, digest), ..self }
    }

    fn version(&self) -> u32 {
        match (self.keys.next, self.lineage.0) {
            (None, 0) => VERSION,
            _ => VERSION_WITH_LINEAGE,
        }
    }

    /// Where the first epoch begins.
    pub(crate) fn first_epoch(&self) -> u64 {
        LINEAGE_OFFSET + u64::from(self.lineage.0).next_multiple_of(PAGE)
    }

    /// Where the lineage lies.
    pub(crate) fn lineage_place(&self) -> std::ops::Range<u64> {
        LINEAGE_OFFSET..LINEAGE_OFFSET + u64::from(self.lineage.0)
    }

    /// Reads the lineage, whose bytes are these.
    pub(crate) fn read_lineage(&self, bytes: &[u8]) -> Result<Lineage> {
        if self.clone().after(bytes) != *self {
            return Err(damaged("its lineage has another digest than its header says"));
        }
        let as_damage = |error: Error| damaged(error.message()).caused_by(error);
        Lineage::decode(bytes).map_err(as_damage)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_LEN);
        out.extend_from_slice(&MAGIC);
        let version = self.version();
        out.extend_from_slice(&version.to_le_bytes());
        out.extend_from_slice(&self.id.0);
        out.extend_from_slice(&self.base.0.to_le_bytes());
        for field in [self.digest.0, self.keys.publisher.0, self.previous.0] {
            out.extend_from_slice(&field);
        }
        out.extend_from_slice(&self.first_records.to_le_bytes());
        if version == VERSION_WITH_LINEAGE {
            out.push(u8::from(self.keys.next.is_some()));
            out.extend_from_slice(&self.keys.next.map_or([0; 32], |next| next.0));
            out.extend_from_slice(&self.lineage.0.to_le_bytes());
            out.extend_from_slice(&self.lineage.1);
        }
        let checksum = blake3::hash(&out);
        out.extend_from_slice(checksum.as_bytes());
        out
    }

    /// Reads the header at the begin of `bytes`: the first [`HEADER_LEN`] of a file, or as many as
    /// it has.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        if !bytes.starts_with(&MAGIC) {
            return Err(if MAGIC.starts_with(bytes) {
                damaged("it ends within its first bytes")
            } else {
                Error::api_misuse("this is no update log of a table")
            });
        }
        let cut = |error: Error| damaged(error.message());
        let mut reader = Reader::new("the header", &bytes[MAGIC.len()..]);
        let version = reader.u32().map_err(cut)?;
        if version != VERSION && version != VERSION_WITH_LINEAGE {
            return Err(Error::api_misuse(format!(
                "this update log has version {version}, and this program reads versions {VERSION} \
                 and {VERSION_WITH_LINEAGE}; use the program that wrote it"
            )));
        }
        let mut header = Self {
            id: TableId(reader.array().map_err(cut)?),
            base: Epoch(reader.u64().map_err(cut)?),
            digest: TableDigest(reader.array().map_err(cut)?),
            keys: PublisherId(reader.array().map_err(cut)?).into(),
            previous: EpochHash(reader.array().map_err(cut)?),
            first_records: reader.u64().map_err(cut)?,
            lineage: (0, [0; 32]),
        };
        if version == VERSION_WITH_LINEAGE {
            let (has_next, next) = (reader.u8().map_err(cut)?, reader.array().map_err(cut)?);
            header.keys.next = (has_next == 1).then_some(NextKeyDigest(next));
            header.lineage = (reader.u32().map_err(cut)?, reader.array().map_err(cut)?);
        }
        let encoded = header.encode();
        let too_long = header.lineage.0 as usize > MAX_LINEAGE_LEN;
        let rest = bytes.strip_prefix(&encoded[..]);
        if rest.is_none_or(|gap| gap.iter().any(|&byte| byte != 0)) || too_long {
            return Err(damaged("the checksum of its header does not match"));
        }
        Ok(header)
    }

    pub(crate) fn check_belongs_to(&self, snapshot: TableIdentity) -> Result<()> {
        if self.id != snapshot.id {
            return Err(Error::api_misuse(format!(
                "this is the update log of the table {}, and the snapshot is of the table {}",
                self.id, snapshot.id
            )));
        }
        if self.base > snapshot.epoch {
            return Err(Error::unavailable(format!(
                "the update log begins after epoch {}, and the snapshot is of epoch {}: if it was compacted just now, open both again; if not, bring back the newer snapshot",
                self.base.0, snapshot.epoch.0
            )));
        }
        if self.first_records == 0 || self.first_records > snapshot.shape.records() {
            return Err(damaged("it began with more records than the table has"));
        }
        if self.base == snapshot.epoch && self.digest != snapshot.digest {
            return Err(damaged("it begins with other contents than the snapshot has"));
        }
        Ok(())
    }
}

/// How far a log is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Commit {
    /// The last epoch.
    pub(crate) epoch: u64,
    /// Where it ends.
    pub(crate) end: u64,
    /// The hash of the last epoch.
    pub(crate) last: EpochHash,
}

impl Commit {
    pub(crate) const LEN: usize = 80;

    /// The position of the commit record for this epoch.
    pub(crate) fn offset(&self) -> u64 {
        COMMIT_OFFSETS[(self.epoch % 2) as usize]
    }

    pub(crate) fn encode(&self, header: &Header) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::LEN);
        out.extend_from_slice(&self.epoch.to_le_bytes());
        out.extend_from_slice(&self.end.to_le_bytes());
        out.extend_from_slice(&self.last.0);
        let mut hasher = blake3::Hasher::new();
        let header = header.encode();
        hasher.update(&header[header.len() - CHECKSUM_LEN..]);
        hasher.update(&out);
        out.extend_from_slice(hasher.finalize().as_bytes());
        out
    }

    /// `None` if this is not a commit record of the log with this header.
    pub(crate) fn parse(header: &Header, bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new("a commit record", bytes);
        let epoch = reader.u64().ok()?;
        let end = reader.u64().ok().filter(|end| *end >= header.first_epoch())?;
        let commit = Self { epoch, end, last: EpochHash(reader.array().ok()?) };
        (commit.encode(header) == bytes).then_some(commit)
    }
}
