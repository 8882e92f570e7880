//! Where hints are prepared.

use crate::preparation::Preparer;
use crate::session::{PreparationEvent, Prepare};
use privet_core::Result;
use std::collections::VecDeque;

/// Has the steps of a preparation done, one after the other: on a thread of its own where there are
/// threads, because they take long and no query is to wait for them.
pub trait Desk {
    /// Has `preparer` do the steps from now on. There is none at work.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if nobody can do them.
    fn start(&mut self, preparer: Preparer) -> Result<()>;

    /// Has a step done, after all those before it. Without a preparer, nothing is.
    fn step(&mut self, step: Prepare);

    /// Ends the preparation, if one is under way. On return the preparer's store is free for
    /// others, and nothing more is told of its steps.
    fn stop(&mut self);

    /// What came of the next step that is done, if one is. Whoever polls the conductor is to do so
    /// again when there is something here.
    fn done(&mut self) -> Option<PreparationEvent>;
}

/// Does the steps on the thread that polls, one at a time and each when there is nothing else to
/// do. What comes meanwhile waits for it.
#[derive(Default)]
pub struct SameThread {
    preparer: Option<Preparer>,
    steps: VecDeque<Prepare>,
}

impl Desk for SameThread {
    fn start(&mut self, preparer: Preparer) -> Result<()> {
        self.preparer = Some(preparer);
        Ok(())
    }

    fn step(&mut self, step: Prepare) {
        if self.preparer.is_some() {
            self.steps.push_back(step);
        }
    }

    fn stop(&mut self) {
        *self = Self::default();
    }

    fn done(&mut self) -> Option<PreparationEvent> {
        let preparer = self.preparer.as_mut()?;
        std::iter::from_fn(|| self.steps.pop_front()).find_map(|step| preparer.step(step))
    }
}
