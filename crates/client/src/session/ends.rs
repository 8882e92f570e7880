//! What ends a call, a session, or what a session keeps.

use super::calls::{Ended, Purpose};
use super::interface::{Errand, Output};
use super::open::{Open, OpenStage};
use super::shared::Shared;
use super::{Phase, Session};
use privet_core::{Blame, Error, Result};

impl Session {
    /// The caller waits no longer: ends the session, and every open lookup, with `error`. If an end
    /// of the hints is being kept, the session reports that first.
    pub fn stop(&mut self, error: Error) {
        let is_ending = match &self.phase {
            Phase::Open(open) => matches!(open.stage, OpenStage::Ending { .. }),
            _ => false,
        };
        if !is_ending {
            self.fail(error);
        }
    }

    /// Something could not be kept or read. Ends the session unless it is ready. A ready session
    /// needs no more of storage, unless it has single-use hints: then it sends no more queries. If
    /// stored state contradicts what the servers show, the session sends nothing more at all.
    pub fn handle_storage_failure(&mut self, error: Error) {
        let Phase::Open(open) = &mut self.phase else { return self.fail(error) };
        match &open.stage {
            OpenStage::Ending { .. } => {
                self.in_open(|open, shared| open.tell_the_end(shared, Some(&error)));
            }
            OpenStage::Ready(_) if error.blame() == Blame::Integrity => {
                let leaves =
                    |output: &Output| matches!(output, Output::Errand(Errand::Send { .. }));
                self.shared.outputs.retain(|output| !leaves(output));
                self.fail(error);
            }
            OpenStage::Ready(_) if open.late.is_none() => {
                open.hints.broken.get_or_insert(error);
            }
            _ => self.fail(error),
        }
    }

    /// Acts on the open table, if one is open. If that fails, the session is over.
    pub(super) fn in_open(&mut self, act: impl FnOnce(&mut Open, &mut Shared) -> Result<()>) {
        if let Phase::Open(open) = &mut self.phase
            && let Err(error) = act(open, &mut self.shared)
        {
            self.fail(error);
        }
    }

    pub(super) fn call_ended(&mut self, Ended { server, purpose, error }: Ended) {
        let is_opening_again = self.is_opening_again();
        match (purpose, &mut self.phase) {
            (Purpose::Answer(fetch), _) => {
                self.shared.lookups.server_answered(fetch, server, Err(error));
            }
            (Purpose::Resend(id), Phase::Open(open)) => {
                open.hints.resends.settled(id, server, Err(error));
            }
            (Purpose::Background, Phase::Open(open)) => {
                // To compare streams, another server may have been asked for the same stretch.
                self.shared.calls.abandon(Purpose::Background, &mut self.shared.outputs);
                open.hints.fetched(true);
            }
            (Purpose::Resend(_) | Purpose::Background, _) => {}
            // A server that was given up is asked again when there is something to ask it.
            _ if is_opening_again => self.put_off(&error),
            (Purpose::Describe, Phase::Open(open))
                if matches!(
                    open.stage,
                    OpenStage::Ready(_) | OpenStage::Switching { first: false }
                ) =>
            {
                open.versions.given_up(server);
            }
            _ => self.fail(error),
        }
    }

    /// The session is over.
    pub(super) fn fail(&mut self, error: Error) {
        if matches!(self.phase, Phase::Over(..)) {
            return;
        }
        self.shared.calls.abandon_all(&mut self.shared.outputs);
        if let Phase::Open(open) = &mut self.phase {
            open.tell_all_waiting(&mut self.shared);
        }
        self.shared.fail_all(&error);
        let over = Phase::Over(error.clone(), self.table().cloned().map(Box::new));
        self.phase = over;
        self.shared.outputs.push_back(Output::Failed(error));
    }
}
