//! Where hints are prepared.

use crate::preparation::Preparer;
use crate::session::{PreparationEvent, Prepare};
use privet_core::Result;
use std::collections::VecDeque;

/// Has the steps of a preparation done, one after the other. They take long and no query may wait
/// for them, so they run on a thread of their own where there are threads.
pub trait Desk {
    /// Has `preparer` do the steps from now on. No preparer may be at work yet.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if no thread can do them.
    fn start(&mut self, preparer: Preparer) -> Result<()>;

    /// Has a step done, after all those before it. Does nothing if there is no preparer.
    fn step(&mut self, step: Prepare);

    /// Ends the preparation, if one is under way. On return others may use the preparer's store,
    /// and no more events of its steps come.
    fn stop(&mut self);

    /// The outcome of the next step that is done, if there is one. The thread that polls the
    /// conductor must poll again when there is something here.
    fn done(&mut self) -> Option<PreparationEvent>;
}

/// Does the steps on the thread that polls, one at a time, each when there is nothing else to do.
/// Whatever arrives meanwhile waits for the step.
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
