//! Preparing a generation of single-use hints: the worker gets what they are made from, the
//! streamed table or a server's replies. The module `preparation` says how much is due when.

use super::agreement::server_name;
use super::boundaries::Boundaries;
use super::calls::Purpose;
use super::compared::{Sources, wrong_shares};
use super::interface::{ExchangeId, Output, PreparationEvent, Prepare, Progress, Request};
use super::open::{Open, OpenStage};
use super::preparation::{PreparationStep, Preparing};
use super::query::erased_at_last;
use super::shared::{Fault, Shared};
use privet_core::{Blame, Error, Result};
use privet_schemes::offline::OfflinePhase;
use privet_wire::prost::bytes::Bytes;
use privet_wire::{FetchChunk, PartKind, PrepareRequest, PrepareResponse};
use std::time::Duration;
use zeroize::Zeroizing;

impl Preparing {
    fn purpose(&self) -> Purpose {
        if self.foreground { Purpose::Stream } else { Purpose::Background }
    }
}

impl Open {
    /// Does what is due for the generation that is being prepared.
    pub(super) fn prepare(&mut self, shared: &mut Shared, now: Duration) {
        while let Some(preparing) = &mut self.hints.preparing
            && let Some(step) = preparing.next(now)
        {
            let purpose = preparing.purpose();
            let step = match step {
                PreparationStep::Begin => Prepare::Begin,
                PreparationStep::Checkpoint => Prepare::Checkpoint,
                PreparationStep::Finish => Prepare::Finish,
                PreparationStep::Ask => Prepare::Ask,
                PreparationStep::Fetch { offset, len } => {
                    let servers = preparing.servers(offset);
                    let boundaries = preparing.boundaries(offset);
                    let part = self.streamed_part();
                    let request = self.fetch_request(part, offset, len);
                    self.hints.leads.begin(servers.len());
                    for server in servers {
                        shared.start(boundaries, server, purpose, request.clone(), now);
                    }
                    continue;
                }
            };
            shared.outputs.push_back(Output::Prepare(step));
        }
    }

    /// The part that is streamed. For replies, progress is reported as that of a hint.
    fn streamed_part(&self) -> PartKind {
        self.chosen.scheme.hint_kind().unwrap_or(PartKind::Hint)
    }

    /// A stretch of the table arrived.
    pub(super) fn streamed_chunk(
        &mut self,
        shared: &mut Shared,
        exchange: ExchangeId,
        chunk: FetchChunk,
        now: Duration,
    ) -> Result<()> {
        let Some(call) = shared.calls.waiting_for(exchange) else { return Ok(()) };
        let (server, purpose) = (call.server, call.purpose);
        let Some((due, end)) = self.hints.awaited(server) else { return Ok(()) };
        let len = chunk.data.len() as u64;
        let chunk_end = chunk.offset.saturating_add(len);
        if chunk_end <= due {
            // Received before. This is not progress, so a server that only repeats itself is given
            // up.
            self.came += match purpose {
                Purpose::Background => len,
                _ => 0,
            };
            return Ok(());
        }
        if chunk.offset != due || chunk_end > end {
            let name = server_name(server, shared.options.servers);
            return Err(Error::peer_misbehaved(format!(
                "{name} sent bytes {} to {chunk_end} of the {} when bytes {due} to {end} were due",
                chunk.offset,
                self.streamed_part()
            )));
        }
        self.take_streamed(shared, server, chunk.data)?;
        let rest = end - chunk_end;
        let part = self.streamed_part();
        let rest = (rest > 0).then(|| self.fetch_request(part, chunk_end, rest));
        shared.calls.progressed(exchange, len as usize, rest, now);
        Ok(())
    }

    /// Hands the worker what `server` sent, as far as all servers that send it agree.
    fn take_streamed(&mut self, shared: &mut Shared, server: usize, bytes: Bytes) -> Result<()> {
        let Some(preparing) = &mut self.hints.preparing else { return Ok(()) };
        let Some((mut offset, _)) = preparing.fetch_range() else { return Ok(()) };
        for bytes in self.hints.leads.take(server, bytes, offset)? {
            let len = bytes.len() as u64;
            shared.outputs.push_back(Output::Prepare(Prepare::Absorb { offset, bytes }));
            preparing.received(len);
            offset += len;
        }
        Ok(())
    }

    /// The worker made the next request: sends it to the server that is asked for hints. No other
    /// server ever gets it, also after failures.
    fn ask_for_hints(&mut self, shared: &mut Shared, request: Zeroizing<Vec<u8>>, now: Duration) {
        let (chosen, Some(preparing)) = (&self.chosen, &self.hints.preparing) else { return };
        let OfflinePhase::Ask { role, .. } = chosen.scheme.plan.offline else { return };
        let message = Request::Prepare(PrepareRequest {
            table: chosen.identity.id,
            epoch: chosen.identity.epoch,
            parameter_digest: chosen.scheme.parameter_digest,
            role,
            request: erased_at_last(request),
        });
        let (server, purpose) = (usize::from(role.0), preparing.purpose());
        shared.start(Boundaries::NONE, server, purpose, message, now);
    }

    /// A reply to a request for hints arrived.
    pub(super) fn replied(
        &mut self,
        shared: &mut Shared,
        exchange: ExchangeId,
        response: &PrepareResponse,
        now: Duration,
    ) -> Result<(), Fault> {
        let Some(call) = shared.calls.waiting_for(exchange) else { return Ok(()) };
        let (OfflinePhase::Ask { reply_len, .. }, Request::Prepare(request)) =
            (self.chosen.scheme.plan.offline, &call.request)
        else {
            return Ok(());
        };
        let len = response.reply.len();
        let checked = response.check_belongs_to(request).and_then(|()| match len == reply_len {
            true => Ok(()),
            false => Err(Error::invalid_message(format!(
                "a reply has {reply_len} bytes here, the server sent {len}"
            ))),
        });
        if let Err(error) = checked {
            return Err(Fault::Exchange(shared.caused_by(call.server, error)));
        }
        shared.calls.answered(exchange);
        if let Some(preparing) = &mut self.hints.preparing
            && let Some((offset, _)) = preparing.fetch_range()
        {
            let bytes = erased_at_last(Zeroizing::new(response.reply.to_vec()));
            shared.outputs.push_back(Output::Prepare(Prepare::Absorb { offset, bytes }));
            preparing.received(len as u64);
            preparing.fetched(false);
        }
        self.prepare(shared, now);
        Ok(())
    }

    /// An event from the worker.
    pub(super) fn preparation_went_on(
        &mut self,
        shared: &mut Shared,
        event: PreparationEvent,
        now: Duration,
    ) -> Result<()> {
        let Some(preparing) = &mut self.hints.preparing else { return Ok(()) };
        match event {
            PreparationEvent::Resumed { offset } => {
                preparing.resumed(offset);
                self.stream_progress(shared, offset, false);
            }
            PreparationEvent::Request { offset, request } => {
                if preparing.requested(offset) {
                    self.ask_for_hints(shared, request, now);
                }
            }
            PreparationEvent::Absorbed { offset } => {
                preparing.absorbed(offset);
                self.stream_progress(shared, offset, true);
            }
            PreparationEvent::Saved { .. } => preparing.saved(),
            PreparationEvent::Complete => {
                preparing.ended(true);
                if matches!(self.stage, OpenStage::Preparing) {
                    self.switch(shared, true);
                }
            }
            PreparationEvent::Failed(error) => {
                // The bytes differ from what was announced, so the session believes nothing more
                // from the server.
                let shares = matches!(preparing.sources, Sources::Shares(_));
                if preparing.foreground || error.blame() == Blame::Integrity {
                    let error = match error.blame() {
                        Blame::Integrity if shares => wrong_shares(&error),
                        _ => error,
                    };
                    return Err(error.within(format!("the {}", self.streamed_part())));
                }
                preparing.ended(false);
                preparing.fetched(true);
                shared.calls.abandon(Purpose::Background, &mut shared.outputs);
                shared.tell(Progress::Notice(format!(
                    "the next hints cannot be prepared for now ({error}); the present ones stay in use"
                )));
            }
        }
        Ok(())
    }

    pub(super) fn stream_progress(&self, shared: &mut Shared, done: u64, fetched: bool) {
        let total = self.chosen.scheme.plan.offline.len();
        shared.tell(if self.is_ready() && fetched {
            Progress::NextGeneration { done, total }
        } else {
            Progress::Part { part: self.streamed_part(), done, total, fetched }
        });
    }
}
