//! A table that is read piece by piece, wherever its records lie.

use super::{TableIdentity, TableShape, TableView};
use crate::{Error, Result};

/// Records that can be read: in memory, or in a file with later changes over it.
#[expect(clippy::len_without_is_empty, reason = "a table has a record at least")]
pub trait ReadRecords: Send + Sync {
    /// How many bytes they have together: the same on every call.
    fn len(&self) -> u64;

    /// Fills `into` with their bytes from byte `offset` on, which must lie within. May wait for a
    /// disk.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](crate::Blame::Corrupted) if a file was cut short,
    /// [`Blame::Unavailable`](crate::Blame::Unavailable) if it cannot be read. Both name it.
    fn read(&self, offset: u64, into: &mut [u8]) -> Result<()>;

    /// All of them, in memory.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn to_vec(&self) -> Result<Vec<u8>> {
        let mut records = vec![0; self.len() as usize];
        self.read(0, &mut records)?;
        Ok(records)
    }
}

impl ReadRecords for Vec<u8> {
    fn len(&self) -> u64 {
        self.as_slice().len() as u64
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        let start = offset as usize;
        into.copy_from_slice(&self[start..start + into.len()]);
        Ok(())
    }
}

/// Bytes that are read at a time where nothing asks for another number: enough to occupy several
/// threads, few beside a table.
pub const PIECE_BYTES: usize = 4 << 20;

/// A table to be copied: its identity, and its records in their natural order. A server reads them
/// straight into the memory from which it answers, so that they are in memory only once.
#[derive(Clone, Copy)]
pub struct TableSource<'a> {
    identity: TableIdentity,
    records: SourceRecords<'a>,
}

#[derive(Clone, Copy)]
enum SourceRecords<'a> {
    Here(&'a [u8]),
    Read(&'a dyn ReadRecords),
}

impl<'a> From<TableView<'a>> for TableSource<'a> {
    fn from(table: TableView<'a>) -> Self {
        Self { identity: table.identity(), records: SourceRecords::Here(table.bytes()) }
    }
}

impl<'a> TableSource<'a> {
    /// Pairs an identity with its records.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse) if there are not
    /// `identity.shape.bytes()` bytes of them.
    pub fn new(identity: TableIdentity, records: &'a dyn ReadRecords) -> Result<Self> {
        identity.shape.check_bytes(records.len())?;
        Ok(Self { identity, records: SourceRecords::Read(records) })
    }

    /// Which table this is.
    pub fn identity(&self) -> TableIdentity {
        self.identity
    }

    /// Number and width of the records.
    pub fn shape(&self) -> TableShape {
        self.identity.shape
    }

    /// Checks that the table has the shape for which a server's parameters were made.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse) if it has another.
    pub fn check_shape(&self, shape: TableShape) -> Result<()> {
        match shape == self.identity.shape {
            true => Ok(()),
            false => Err(Error::api_misuse("the parameters belong to a table of another shape")),
        }
    }

    /// Reads all records to the beginning of `into`.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](crate::Blame::ApiMisuse) if there is no room for them; as
    /// [`ReadRecords::read`].
    pub fn copy_to(&self, into: &mut [u8]) -> Result<()> {
        let len = usize::try_from(self.shape().bytes()).ok();
        let into = len.and_then(|len| into.get_mut(..len));
        let into = into.ok_or_else(|| Error::api_misuse("there is no room for the table"))?;
        match self.records {
            SourceRecords::Here(records) => into.copy_from_slice(records),
            SourceRecords::Read(records) => records.read(0, into)?,
        }
        Ok(())
    }

    /// Whether its records are these.
    ///
    /// # Errors
    /// As [`ReadRecords::read`].
    pub fn has(&self, records: &[u8]) -> Result<bool> {
        let mut same = records.len() as u64 == self.shape().bytes();
        let mut others = records.chunks(PIECE_BYTES);
        self.pieces(PIECE_BYTES, |_, piece| {
            same &= others.next() == Some(piece);
            Ok(())
        })?;
        Ok(same)
    }

    /// Reads all records once, in pieces of `len` bytes (at least 1); the last may be shorter.
    /// `each` gets the offset of a piece, and its bytes. Holds one piece in memory, or none if the
    /// records are in memory already.
    ///
    /// # Errors
    /// As [`ReadRecords::read`]; the first error of `each` ends the reading.
    pub fn pieces(&self, len: usize, mut each: impl FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        let offsets = (0..).step_by(len.max(1));
        match self.records {
            SourceRecords::Here(records) => {
                let pieces = offsets.zip(records.chunks(len.max(1)));
                pieces.into_iter().try_for_each(|(offset, piece)| each(offset, piece))
            }
            SourceRecords::Read(records) => {
                let total = self.shape().bytes();
                let left = |offset: u64| usize::try_from(total - offset).unwrap_or(usize::MAX);
                let mut buffer = vec![0; left(0).min(len.max(1))];
                for offset in offsets.take_while(|offset| *offset < total) {
                    let piece = buffer.len().min(left(offset));
                    let piece = &mut buffer[..piece];
                    records.read(offset, piece)?;
                    each(offset, piece)?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Epoch, TableDigest, TableId};

    fn identity(records: u64) -> TableIdentity {
        TableIdentity {
            id: TableId([1; 16]),
            epoch: Epoch(0),
            digest: TableDigest([2; 32]),
            shape: TableShape::new(records, 3).unwrap(),
        }
    }

    #[test]
    fn all_records_are_read_once_in_pieces_of_any_length() {
        let (identity, records) = (identity(7), (0..21).collect::<Vec<u8>>());
        let here = TableSource::from(TableView::new(identity, &records).unwrap());
        let read = TableSource::new(identity, &records).unwrap();
        for source in [here, read] {
            for len in [1, 2, 3, 20, 21, 22, 100] {
                let mut found = Vec::new();
                let pieces = source.pieces(len, |offset, piece| {
                    assert_eq!(offset, found.len() as u64);
                    assert!(piece.len() == len || found.len() + piece.len() == 21);
                    found.extend_from_slice(piece);
                    Ok(())
                });
                pieces.unwrap();
                assert_eq!(found, records, "{len}");
            }
            let mut room = vec![9; 23];
            source.copy_to(&mut room).unwrap();
            assert_eq!(room, [&records[..], &[9, 9]].concat());
            assert!(source.copy_to(&mut room[..20]).is_err());
            let error = source.pieces(5, |offset, _| match offset {
                0 => Ok(()),
                _ => Err(Error::api_misuse("enough")),
            });
            assert_eq!(error.unwrap_err().message(), "enough");
            source.check_shape(identity.shape).unwrap();
            assert!(source.check_shape(TableShape::new(8, 3).unwrap()).is_err());
        }
        assert!(TableSource::new(self::identity(8), &records).is_err());
    }
}
