//! A downloaded table follows edits: the client writes them over it.

use super::{Download, DownloadParameters};
use crate::contract::PatchedDownload;
use crate::offline::{HintSource, check_len};
use privet_core::{Error, Result, TableChanges};
use privet_kernels::Kernels;

/// Bytes of the table that are read, patched and written at a time.
const PIECE: u64 = 1 << 20;

impl PatchedDownload for Download {
    /// True unless records have become wider, or fewer.
    fn patches(before: &DownloadParameters, after: &DownloadParameters) -> bool {
        let (before, after) = (before.shape(), after.shape());
        before.record_len() == after.record_len() && before.records() <= after.records()
    }

    fn patch(
        before: &DownloadParameters,
        after: &DownloadParameters,
        changes: &TableChanges,
        part: &dyn HintSource,
        _kernels: Kernels,
        sink: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        if !Self::patches(before, after) {
            return Err(Error::api_misuse("this is another table, which has to be fetched"));
        }
        let (len, record_len) = (before.shape().bytes(), after.shape().record_len());
        check_len("the table", part.len(), len)?;
        let changes: Vec<(u64, &[u8])> =
            changes.records().map(|(index, _, record)| (index * record_len, record)).collect();
        let end = after.shape().bytes();
        let mut piece = vec![0; PIECE.min(end) as usize];
        for start in (0..end).step_by(PIECE as usize) {
            let piece = &mut piece[..PIECE.min(end - start) as usize];
            let stop = start + piece.len() as u64;
            let (old, new) = piece.split_at_mut((len.clamp(start, stop) - start) as usize);
            part.read_at(start.min(len), old)?;
            new.fill(0);
            let first = changes.partition_point(|(at, _)| at + record_len <= start);
            let here = changes[first..].iter().take_while(|(at, _)| *at < stop);
            for (at, record) in here {
                // A record may begin in the piece before, or end in the next.
                let record = &record[start.saturating_sub(*at) as usize..];
                let place = &mut piece[at.saturating_sub(start) as usize..];
                let len = record.len().min(place.len());
                place[..len].copy_from_slice(&record[..len]);
            }
            sink(piece)?;
        }
        Ok(())
    }
}
