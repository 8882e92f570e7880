//! Turns the streamed table, or a server's replies, into a stored generation of single-use hints,
//! step by step.
//!
//! A [`Session`](crate::session::Session) says which steps to do ([`Prepare`]). A [`Preparer`] does
//! them, with the scheme's [`Preparation`](privet_schemes::contract::Preparation) and a
//! [`PreparationStore`], and reports the outcome of each. A step can take long (a checkpoint is as
//! large as the client's state), and no query may wait for it. So native clients run the preparer
//! on a thread of its own, the `Worker`; a browser may run it in a web worker.

use crate::session::{ChosenTable, PreparationEvent, Prepare};
use crate::state::PreparationStore;
use privet_core::{Blame, Error, Result, TableIdentity};
use privet_kernels::Kernels;
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::{self, ErasedPreparation, SchemePlan};
use std::mem;

#[cfg(test)]
mod tests;
#[cfg(feature = "net")]
mod worker;
#[cfg(feature = "net")]
pub use worker::Worker;

/// Begins a generation, or goes on from a checkpoint. This is the registry, except in tests.
pub(crate) type StartPreparation = fn(
    &SchemePlan,
    &TableIdentity,
    [u8; 32],
    Option<&[u8]>,
    Kernels,
) -> Result<Box<dyn ErasedPreparation>>;

/// Does the steps of one preparation.
pub struct Preparer(PreparerStage);

enum PreparerStage {
    Waiting {
        table: Box<ChosenTable>,
        kernels: Kernels,
        start: StartPreparation,
        store: Keeper,
    },
    Streaming {
        preparation: Box<dyn ErasedPreparation>,
        store: Keeper,
    },
    /// Nothing is left to do, and others may use the store.
    Over,
}

type Keeper = Box<dyn PreparationStore>;

impl Preparer {
    /// Prepares hints for `table`, as [`Session::table`](crate::session::Session::table) describes
    /// it, and keeps them in `store`.
    pub fn new(table: &ChosenTable, store: Box<dyn PreparationStore>, kernels: Kernels) -> Self {
        Self::with_start(table, store, kernels, registry::preparation)
    }

    pub(crate) fn with_start(
        table: &ChosenTable,
        store: Box<dyn PreparationStore>,
        kernels: Kernels,
        start: StartPreparation,
    ) -> Self {
        Self(PreparerStage::Waiting { table: Box::new(table.clone()), kernels, start, store })
    }

    /// Does one step. `None`: there is nothing more to do. After the last step, or a failed one,
    /// the preparer drops the store.
    pub fn step(&mut self, step: Prepare) -> Option<PreparationEvent> {
        let done = match (step, mem::replace(&mut self.0, PreparerStage::Over)) {
            (_, PreparerStage::Over) => return None,
            (Prepare::Begin, PreparerStage::Waiting { table, kernels, start, store }) => {
                self.begin(&table, kernels, start, store)
            }
            (Prepare::Ask, PreparerStage::Streaming { mut preparation, store }) => {
                let (offset, request) = (preparation.next_offset(), preparation.request());
                request.ok_or_else(nothing_to_ask).map(|request| {
                    self.0 = PreparerStage::Streaming { preparation, store };
                    PreparationEvent::Request { offset, request }
                })
            }
            (
                Prepare::Absorb { offset, bytes },
                PreparerStage::Streaming { mut preparation, store },
            ) => preparation.absorb(offset, &bytes).map(|()| {
                let offset = preparation.next_offset();
                self.0 = PreparerStage::Streaming { preparation, store };
                PreparationEvent::Absorbed { offset }
            }),
            (Prepare::Checkpoint, PreparerStage::Streaming { preparation, mut store }) => {
                let offset = preparation.checkpoint_offset();
                store.save_checkpoint(offset, &preparation.checkpoint()).map(|()| {
                    self.0 = PreparerStage::Streaming { preparation, store };
                    PreparationEvent::Saved { offset }
                })
            }
            (Prepare::Finish, PreparerStage::Streaming { preparation, store }) => {
                finish(preparation, store)
            }
            _ => Err(Error::api_misuse("a preparation begins once, and before anything else")),
        };
        Some(done.unwrap_or_else(PreparationEvent::Failed))
    }

    fn begin(
        &mut self,
        table: &ChosenTable,
        kernels: Kernels,
        start: StartPreparation,
        mut store: Keeper,
    ) -> Result<PreparationEvent> {
        let ChosenTable { identity, scheme, .. } = table;
        let digest = match (scheme.plan.offline, scheme.hint) {
            // Replies are made for one client, so no server can announce a digest of them.
            (OfflinePhase::Ask { .. }, _) => [0; 32],
            (_, Some(streamed)) => streamed.digest,
            _ => return Err(Error::api_misuse("the scheme has no hints to prepare")),
        };
        let start = |checkpoint| start(&scheme.plan, identity, digest, checkpoint, kernels);
        let preparation = match store.checkpoint()? {
            None => start(None)?,
            Some((offset, checkpoint)) => match start(Some(&checkpoint)) {
                Ok(preparation) if preparation.next_offset() == offset => preparation,
                // A checkpoint holds nothing that cannot be prepared again.
                Ok(_) => start(None)?,
                Err(error) if error.blame() == Blame::Corrupted => start(None)?,
                Err(error) => return Err(error),
            },
        };
        let offset = preparation.next_offset();
        self.0 = PreparerStage::Streaming { preparation, store };
        Ok(PreparationEvent::Resumed { offset })
    }
}

fn nothing_to_ask() -> Error {
    Error::api_misuse("there is nothing more to ask the server for")
}

fn finish(
    mut preparation: Box<dyn ErasedPreparation>,
    mut store: Keeper,
) -> Result<PreparationEvent> {
    if let Err(error) = preparation.finish() {
        // The checkpoint may hold wrong bytes.
        return Err(match store.discard() {
            Ok(()) => error,
            Err(storage) => error.caused_by(storage),
        });
    }
    store.save_generation(&preparation.generation()?)?;
    Ok(PreparationEvent::Complete)
}
