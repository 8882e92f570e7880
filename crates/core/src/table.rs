//! A table: `records` records of `record_len` bytes each, with an identity that stays the same when
//! its contents change.

mod changes;
mod delta;
mod source;

pub use changes::TableChanges;
pub use delta::TableDelta;
pub use source::{PIECE_BYTES, ReadRecords, TableSource};

use crate::quantities::from_hexadecimal;
use crate::{Error, Reason, Result};
use std::fmt;
use std::str::FromStr;

/// The most bytes of a record, 16 MiB. It bounds the memory that is allocated because a peer claims
/// a size.
pub const MAX_RECORD_LEN: u64 = 1 << 24;

/// The most bytes of a table, 2^48: products of smaller sizes never overflow, and no scheme's proof
/// covers more.
pub const MAX_TABLE_BYTES: u64 = 1 << 48;

/// The most bytes of a record layout, 64 MiB: a client holds it in memory.
pub const MAX_LAYOUT_LEN: u64 = 1 << 26;

/// The most bytes of an epoch of the update log, and of the data that belongs to it: 256 MiB. A
/// client holds one epoch in memory.
pub const MAX_EPOCH_LEN: usize = 1 << 28;

/// The longest encoded lineage of a table: 512 KiB.
pub const MAX_LINEAGE_LEN: u64 = 1 << 19;

/// The number of records and their width. A value of this type is valid: at least one record of at
/// least one byte, and sizes within [`MAX_RECORD_LEN`] and [`MAX_TABLE_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableShape {
    records: u64,
    record_len: u64,
}

impl TableShape {
    /// A shape of `records` records of `record_len` bytes.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse), with the numbers, if either is zero or too
    /// large.
    pub fn new(records: u64, record_len: u64) -> Result<Self> {
        if records == 0 || record_len == 0 {
            return Err(Error::api_misuse(format!(
                "a table needs at least one record of at least one byte, not {records} records of {record_len} bytes"
            )));
        }
        if record_len > MAX_RECORD_LEN {
            return Err(Error::api_misuse(format!(
                "a record of {record_len} bytes is too long: the limit is {MAX_RECORD_LEN} bytes"
            )));
        }
        match records.checked_mul(record_len) {
            Some(bytes) if bytes <= MAX_TABLE_BYTES => Ok(Self { records, record_len }),
            _ => Err(Error::api_misuse(format!(
                "{records} records of {record_len} bytes are too much for one table: the limit is {MAX_TABLE_BYTES} bytes"
            ))),
        }
    }

    /// The number of records, at least 1.
    pub fn records(self) -> u64 {
        self.records
    }

    /// The width of a record in bytes, at least 1.
    pub fn record_len(self) -> u64 {
        self.record_len
    }

    /// The size of all records in bytes.
    pub fn bytes(self) -> u64 {
        self.records * self.record_len
    }

    /// Checks that a table of this shape has `bytes` bytes.
    fn check_bytes(self, bytes: u64) -> Result<()> {
        if bytes == self.bytes() {
            return Ok(());
        }
        Err(Error::api_misuse(format!("a table of {self} has {} bytes, not {bytes}", self.bytes())))
    }

    /// Checks that edits can turn a table of this shape into one of shape `after`.
    fn check_becomes(self, after: Self) -> Result<()> {
        if after.records >= self.records && after.record_len == self.record_len {
            return Ok(());
        }
        Err(Error::invalid_message(format!(
            "a table of {self} cannot become one of {after} by edits"
        )))
    }
}

impl fmt::Display for TableShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} records of {} bytes", self.records, self.record_len)
    }
}

/// Names a table for its whole life, through all its epochs: 16 random bytes drawn when it is first
/// built.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub [u8; 16]);

/// The version of a table's contents: 0 when built, and one more after every update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Epoch(pub u64);

/// The BLAKE3 digest of a table's records (and of the key map that interprets them, if it has one).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TableDigest(pub [u8; 32]);

/// Shows types around an array of bytes in hexadecimal digits.
#[macro_export]
macro_rules! shown_in_hexadecimal {
    ($($name:ident),*) => {$(
        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
            }
        }
        impl std::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, concat!(stringify!($name), "({})"), self)
            }
        }
    )*};
}
shown_in_hexadecimal!(TableId, TableDigest);

impl FromStr for TableDigest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        from_hexadecimal(text).map(Self).ok_or_else(|| {
            Error::api_misuse("a digest has 64 hexadecimal digits").because(Reason::NotADigest)
        })
    }
}

/// Which table, in which version, with which contents. Every message of the protocol is about
/// exactly one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableIdentity {
    /// The table, through all its versions.
    pub id: TableId,
    /// The version.
    pub epoch: Epoch,
    /// The contents of that version.
    pub digest: TableDigest,
    /// Number and width of the records of that version.
    pub shape: TableShape,
}

/// A borrowed table: its identity, and its records one after the other in their natural order.
#[derive(Clone, Copy)]
pub struct TableView<'a> {
    identity: TableIdentity,
    records: &'a [u8],
}

impl<'a> TableView<'a> {
    /// Pairs an identity with its records.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse) if `records` is not `identity.shape.bytes()`
    /// long.
    pub fn new(identity: TableIdentity, records: &'a [u8]) -> Result<Self> {
        identity.shape.check_bytes(records.len() as u64)?;
        Ok(Self { identity, records })
    }

    /// Which table this is.
    pub fn identity(&self) -> TableIdentity {
        self.identity
    }

    /// All records, for a server whose parameters were made for tables of shape `shape`.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse) if the table has another shape.
    pub fn bytes_for(&self, shape: TableShape) -> Result<&'a [u8]> {
        TableSource::from(*self).check_shape(shape)?;
        Ok(self.records)
    }

    /// Number and width of the records.
    pub fn shape(&self) -> TableShape {
        self.identity.shape
    }

    /// All records, `shape().bytes()` bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.records
    }

    /// The record numbered `number`, or `None` beyond the end. For code that holds the whole table;
    /// the number is not treated as a secret.
    pub fn record(&self, number: u64) -> Option<&'a [u8]> {
        let len = self.shape().record_len() as usize;
        let start = usize::try_from(number).ok()?.checked_mul(len)?;
        self.records.get(start..start.checked_add(len)?)
    }
}
