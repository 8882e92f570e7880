//! Writes a points file, either whole or not at all.

use super::header::PointsHeader;
use privet_core::{Error, Result, TableIdentity};
use privet_table::file_pass::Pass;
use privet_table::new_file::{Existing, NewFile, cannot};
use privet_table::positioned::{read_exact_at, write_all_at};
use std::fs::File;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};

/// What must be known before the first point is written.
#[derive(Clone, Debug)]
pub(crate) struct PointsPlan {
    /// The table, in its version, that the points are computed from.
    pub(crate) identity: TableIdentity,
    /// The name of the scheme that answers from them.
    pub(crate) scheme: String,
    /// The scheme's parameters in their canonical encoding.
    pub(crate) parameters: Vec<u8>,
    /// How many bytes of points there will be.
    pub(crate) points_len: u64,
    /// The table's file: a user who may not read that file must not be able to read this one.
    pub(crate) table_file: PathBuf,
}

/// A points file that is being written. Several threads may write points to it and read them back,
/// in any order. If it is dropped unfinished, it leaves nothing.
///
/// Points that were not written yet read as zeros.
pub(crate) struct PointsWriter {
    file: NewFile,
    header: PointsHeader,
}

impl PointsWriter {
    /// Begins the points file `output`, under a temporary name beside it, and reserves its space on
    /// disk.
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the header cannot hold `plan`, or
    ///   as [`NewFile::create`].
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the file cannot be written: the
    ///   disk has no room for it, for example.
    pub(crate) fn create(output: &Path, existing: Existing, plan: PointsPlan) -> Result<Self> {
        let PointsPlan { identity, scheme, parameters, points_len, table_file } = plan;
        let header = PointsHeader {
            identity,
            scheme,
            parameters,
            points_len,
            // Known only at the end, when the header is written.
            digest: [0; 32],
            created_by: concat!("privet ", env!("CARGO_PKG_VERSION")).to_owned(),
        };
        header.check_encodable().map_err(|error| error.within(output.display()))?;
        let file = NewFile::create_like(output, existing, &table_file)?;
        let file_len = header.points_offset() + points_len;
        reserve(file.as_file(), file_len)
            .map_err(|error| cannot(&format!("reserve {file_len} bytes for"), output, error))?;
        Ok(Self { file, header })
    }

    /// Writes `bytes` as points, from byte `offset` of the points on.
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if they go beyond the last point.
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if they cannot be written: the
    ///   disk is full, for example.
    pub(crate) fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let place = self.place(offset, bytes.len())?;
        write_all_at(self.file.as_file(), place, bytes)
            .map_err(|error| cannot("write", self.file.output(), error))
    }

    /// Reads points into `bytes`, from byte `offset` of the points on.
    ///
    /// # Errors
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if they go beyond the last point.
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if they cannot be read.
    pub(crate) fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let place = self.place(offset, bytes.len())?;
        read_exact_at(self.file.as_file(), place, bytes)
            .map_err(|error| cannot("read back", self.file.output(), error))
    }

    /// The position in the file of a stretch of points.
    fn place(&self, offset: u64, len: usize) -> Result<u64> {
        let end = offset.checked_add(len as u64);
        if end.is_none_or(|end| end > self.header.points_len) {
            return Err(Error::api_misuse(format!(
                "{len} bytes from byte {offset} on are not within {} bytes of points",
                self.header.points_len
            )));
        }
        Ok(self.header.points_offset() + offset)
    }

    /// Completes the file: reads all points once more, with so many threads, for their digest,
    /// writes the header, syncs the file and gives it its name. `progress` is called with the
    /// number of bytes read and the total. Returns the header and the file's length in bytes.
    ///
    /// # Errors
    /// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the file cannot be read,
    ///   written or renamed.
    /// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) as [`NewFile::publish`].
    pub(crate) fn finish(
        self,
        threads: NonZero<usize>,
        progress: impl FnMut(u64, u64),
    ) -> Result<(PointsHeader, u64)> {
        let Self { file, mut header } = self;
        let offset = header.points_offset();
        let mut pass = Pass::new(file.as_file(), offset, header.points_len, threads, progress);
        pass.read_all().map_err(|error| cannot("read back", file.output(), error))?;
        header.digest = pass.digest();
        write_all_at(file.as_file(), 0, &header.encode())
            .map_err(|error| cannot("write", file.output(), error))?;
        file.publish()?;
        let file_len = offset + header.points_len;
        Ok((header, file_len))
    }
}

/// Gives the file its length, and reserves its space if the file system can: then a full disk shows
/// before anything is computed. On other file systems it shows while writing.
fn reserve(file: &File, len: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::{Errno, retry_on_intr};
        match retry_on_intr(|| fallocate(file, FallocateFlags::empty(), 0, len)) {
            Ok(()) => return Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(error) => return Err(error.into()),
        }
    }
    file.set_len(len)
}
