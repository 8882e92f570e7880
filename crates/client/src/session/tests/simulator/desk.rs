//! The desk of a simulated client, where hints are prepared beside it, one step now and then.

use super::slow::Passing;
use crate::conductor::Desk;
use crate::preparation::Preparer;
use crate::session::{PreparationEvent, Prepare};
use privet_core::Result;
use std::collections::VecDeque;
use std::time::Duration;

#[derive(Default)]
pub(super) struct SimulatedDesk {
    preparer: Option<Preparer>,
    steps: VecDeque<Prepare>,
    done: VecDeque<PreparationEvent>,
    passing: Passing,
    /// When the first of the waiting steps was handed over, or the step before it was done.
    since: Duration,
    /// Whether it is planned when the next step will be done.
    is_planned: bool,
}

impl SimulatedDesk {
    pub(super) fn new(passing: Passing) -> Self {
        Self { passing, ..Self::default() }
    }

    /// The time from which a step waits whose end is not planned yet. Each is returned once.
    pub(super) fn next_step(&mut self) -> Option<Duration> {
        let is_new = !self.is_planned && !self.steps.is_empty();
        self.is_planned |= is_new;
        is_new.then_some(self.since)
    }

    /// Does the next step, at `when`.
    pub(super) fn work(&mut self, when: Duration) {
        let step = self.steps.pop_front();
        let event = step.and_then(|step| self.preparer.as_mut()?.step(step));
        self.done.extend(event);
        (self.is_planned, self.since) = (false, when);
    }
}

impl Desk for SimulatedDesk {
    fn start(&mut self, preparer: Preparer) -> Result<()> {
        self.preparer = Some(preparer);
        Ok(())
    }

    fn step(&mut self, step: Prepare) {
        if self.preparer.is_some() {
            if self.steps.is_empty() && !self.is_planned {
                self.since = self.passing.now();
            }
            self.steps.push_back(step);
        }
    }

    fn stop(&mut self) {
        self.preparer = None;
        self.steps.clear();
        self.done.clear();
    }

    fn done(&mut self) -> Option<PreparationEvent> {
        self.done.pop_front()
    }
}
