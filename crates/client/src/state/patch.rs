//! Making a downloaded part out of the stored one of an earlier version of the table.

use super::{Opened, PartKey, PartState, State};
use crate::session::Patch;
use privet_core::{Error, Result};
use privet_kernels::Kernels;
use privet_schemes::offline::{Download, HintSource, StreamConsumer as _};
use privet_schemes::registry;
use std::sync::Arc;

type Source = Arc<dyn HintSource>;

/// Makes the part `patch.to` out of `patch.from`, which `state` keeps, and returns what is stored
/// of it then: all of it, with its digest checked over every byte; or, if that failed, as much as
/// [`State::open`] would say, so that the rest is fetched. Needs memory for the changes and for a
/// piece of the part.
///
/// # Errors
/// As [`State::open`] and [`State::append`]. It is no error if the earlier part is missing or
/// damaged, or does not lead to the later one.
pub fn patch_part(state: &mut dyn State, patch: &Patch, kernels: Kernels) -> Result<Opened> {
    let Patch { from, to, changes, .. } = patch;
    let (before, after) = ((&patch.before, &from.table), (&patch.after, &to.table));
    if !registry::patches_downloads(before, after) {
        return state.open(to);
    }
    let (source, damage) = kept(state, from)?;
    let (download, notice) = match state.open(to)? {
        Opened::Have { part: PartState::Partial(download), notice } => {
            (download, damage.or(notice))
        }
        other => return Ok(other),
    };
    let Some(source) = source else {
        return Ok(Opened::Have { part: PartState::Partial(download), notice });
    };
    let written = write(state, to, *download, |sink| {
        registry::patch_downloaded(before, after, changes, &*source, sink, kernels)
    });
    match written {
        Ok(source) => Ok(Opened::Have { part: PartState::Complete(source), notice }),
        Err(Failure::Storage(error)) => Err(error),
        Err(Failure::Patch) => {
            state.discard(to)?;
            state.open(to)
        }
    }
}

/// All of `part`, if it is stored, and the notice for people. An incomplete part is useless here.
fn kept(state: &mut dyn State, part: &PartKey) -> Result<(Option<Source>, Option<String>)> {
    Ok(match state.open(part)? {
        Opened::Have { part: PartState::Complete(source), notice } => (Some(source), notice),
        Opened::Have { part: PartState::Partial(_), notice } => {
            state.discard(part)?;
            (None, notice)
        }
        // Then the later part is busy too, and its caller hears of that.
        Opened::Busy { .. } => (None, None),
    })
}

/// Why a part could not be made.
enum Failure {
    /// It cannot be kept.
    Storage(Error),
    /// The result was not the expected part.
    Patch,
}

/// Has `rewrite` write the part `to` from its beginning, and stores what `download` does not have
/// yet.
fn write(
    state: &mut dyn State,
    to: &PartKey,
    mut download: Download,
    rewrite: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>,
) -> std::result::Result<Source, Failure> {
    // An earlier process ended after writing this much. Its bytes are checked with the rest at the
    // end.
    let mut known = download.next_offset();
    let mut refused = None;
    let rewritten = rewrite(&mut |piece| {
        let skipped = known.min(piece.len() as u64);
        known -= skipped;
        let (piece, offset) = (&piece[skipped as usize..], download.next_offset());
        download.absorb(offset, piece)?;
        state.append(to, offset, piece).map_err(|error| {
            refused = Some(error);
            Error::unavailable("a part that was patched cannot be kept")
        })
    });
    if let Some(error) = refused {
        return Err(Failure::Storage(error));
    }
    rewritten.and_then(|()| download.finish()).map_err(|_| Failure::Patch)?;
    state.complete(to).map_err(Failure::Storage)
}
