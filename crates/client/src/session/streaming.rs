//! Preparing a generation of single-use hints: handing the worker what it is made from, the streamed table or a server's replies. How much of it when is in the module
//! `preparation`.

use super::agreement::server_name;
use super::calls::Purpose;
use super::compared::{Sources, wrong_shares};
use super::interface::{Event, ExchangeId, Output, PreparationEvent, Prepare, Request};
use super::preparation::{Preparing, Step};
use super::{Phase, Session, erased_at_last};
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

impl Session {
    /// Does what is due for the generation in the making.
    pub(super) fn prepare(&mut self, now: Duration) {
        while let Some(preparing) = &mut self.hints.preparing
            && let Some(step) = preparing.next(now)
        {
            let purpose = preparing.purpose();
            match step {
                Step::Begin => self.outputs.push_back(Output::Prepare(Prepare::Begin)),
                Step::Checkpoint => self.outputs.push_back(Output::Prepare(Prepare::Checkpoint)),
                Step::Finish => self.outputs.push_back(Output::Prepare(Prepare::Finish)),
                Step::Ask => self.outputs.push_back(Output::Prepare(Prepare::Ask)),
                Step::Fetch { offset, len } => {
                    let servers = preparing.servers(offset);
                    let part = self.streamed_part();
                    let Some(request) = self.fetch_request(part, offset, len) else { return };
                    self.hints.leads.begin(servers.len());
                    for server in servers {
                        let request = request.clone();
                        self.calls.start(server, purpose, request, now, &mut self.outputs);
                    }
                }
            }
        }
    }

    /// The part that is streamed. Where replies take its place, progress is told as that of a hint.
    fn streamed_part(&self) -> PartKind {
        let chosen = self.chosen.as_deref();
        chosen.and_then(|chosen| chosen.scheme.hint_kind()).unwrap_or(PartKind::Hint)
    }

    /// A stretch of the table arrived.
    pub(super) fn streamed_chunk(
        &mut self,
        exchange: ExchangeId,
        chunk: FetchChunk,
        now: Duration,
    ) {
        let Some(call) = self.calls.waiting_for(exchange) else { return };
        let (server, purpose) = (call.server, call.purpose);
        let Some((due, end)) = self.hints.awaited(server) else { return };
        let len = chunk.data.len() as u64;
        let chunk_end = chunk.offset.saturating_add(len);
        if chunk_end <= due {
            // Said already. Does not count as progress, so a server that only repeats itself is given up.
            self.came += match purpose {
                Purpose::Background => len,
                _ => 0,
            };
            return;
        }
        if chunk.offset != due || chunk_end > end {
            let name = server_name(server, self.options.servers);
            return self.fail(Error::peer_misbehaved(format!(
                "{name} sent bytes {} to {chunk_end} of the {} when bytes {due} to {end} were due",
                chunk.offset,
                self.streamed_part()
            )));
        }
        if let Err(error) = self.take_streamed(server, chunk.data) {
            return self.fail(error);
        }
        let rest = end - chunk_end;
        let part = self.streamed_part();
        let rest = (rest > 0).then(|| self.fetch_request(part, chunk_end, rest));
        self.calls.progressed(exchange, len as usize, rest.flatten(), now);
    }

    /// Hands the worker what `server` sent, as far as it is to be believed.
    fn take_streamed(&mut self, server: usize, bytes: Bytes) -> Result<()> {
        let Some(preparing) = &mut self.hints.preparing else { return Ok(()) };
        let Some((mut offset, _)) = preparing.awaited() else { return Ok(()) };
        for bytes in self.hints.leads.take(server, bytes, offset)? {
            let len = bytes.len() as u64;
            self.outputs.push_back(Output::Prepare(Prepare::Absorb { offset, bytes }));
            preparing.received(len);
            offset += len;
        }
        Ok(())
    }

    /// The worker made the next request: sends it to the server that is asked for hints. No other ever gets it, whatever becomes of it.
    fn ask_for_hints(&mut self, request: Zeroizing<Vec<u8>>, now: Duration) {
        let (Some(chosen), Some(preparing)) = (self.chosen.as_deref(), &self.hints.preparing)
        else {
            return;
        };
        let OfflinePhase::Ask { role, .. } = chosen.scheme.plan.offline else { return };
        let message = Request::Prepare(PrepareRequest {
            table: chosen.identity.id,
            epoch: chosen.identity.epoch,
            parameter_digest: chosen.scheme.parameter_digest,
            role,
            request: erased_at_last(request),
        });
        let (server, purpose) = (usize::from(role.0), preparing.purpose());
        self.calls.start(server, purpose, message, now, &mut self.outputs);
    }

    /// A reply to a request for hints arrived.
    pub(super) fn replied(
        &mut self,
        exchange: ExchangeId,
        response: &PrepareResponse,
        now: Duration,
    ) {
        let (Some(chosen), Some(call)) = (self.chosen.as_deref(), self.calls.waiting_for(exchange))
        else {
            return;
        };
        let (OfflinePhase::Ask { reply_len, .. }, Request::Prepare(request)) =
            (chosen.scheme.plan.offline, &call.request)
        else {
            return;
        };
        let len = response.reply.len();
        let checked = response.check_belongs_to(request).and_then(|()| match len == reply_len {
            true => Ok(()),
            false => Err(Error::invalid_message(format!(
                "a reply has {reply_len} bytes here, the server sent {len}"
            ))),
        });
        if let Err(error) = checked {
            let error = match self.options.servers {
                1 => error,
                servers => error.within(server_name(call.server, servers)),
            };
            return self.handle_failure(exchange, error, now);
        }
        self.calls.answered(exchange);
        if let Some(preparing) = &mut self.hints.preparing
            && let Some((offset, _)) = preparing.awaited()
        {
            let bytes = erased_at_last(Zeroizing::new(response.reply.to_vec()));
            self.outputs.push_back(Output::Prepare(Prepare::Absorb { offset, bytes }));
            preparing.received(len as u64);
            preparing.fetched(false);
        }
        self.prepare(now);
    }

    /// What the worker did.
    pub(super) fn preparation_went_on(&mut self, event: PreparationEvent, now: Duration) {
        let Some(preparing) = &mut self.hints.preparing else { return };
        match event {
            PreparationEvent::Resumed { offset } => {
                preparing.resumed(offset);
                self.stream_progress(offset, false);
            }
            PreparationEvent::Request { offset, request } => {
                if preparing.requested(offset) {
                    self.ask_for_hints(request, now);
                }
            }
            PreparationEvent::Absorbed { offset } => {
                preparing.absorbed(offset);
                self.stream_progress(offset, true);
            }
            PreparationEvent::Saved { .. } => preparing.saved(),
            PreparationEvent::Complete => {
                preparing.ended(true);
                if matches!(self.phase, Phase::Preparing) {
                    self.switch(true);
                }
            }
            PreparationEvent::Failed(error) => {
                // Other bytes than announced: the server is not to be believed in anything.
                let shares = matches!(preparing.sources, Sources::Shares(_));
                if preparing.foreground || error.blame() == Blame::Integrity {
                    let error = match error.blame() {
                        Blame::Integrity if shares => wrong_shares(&error),
                        _ => error,
                    };
                    return self.fail(error.within(format!("the {}", self.streamed_part())));
                }
                preparing.ended(false);
                preparing.fetched(true);
                self.calls.abandon(Purpose::Background, &mut self.outputs);
                self.event(Event::NotPrepared(error));
            }
        }
    }

    pub(super) fn stream_progress(&mut self, done: u64, fetched: bool) {
        let total = self.chosen.as_deref().map_or(0, |chosen| chosen.scheme.plan.offline.len());
        self.event(if matches!(self.phase, Phase::Ready(_)) && fetched {
            Event::NextGeneration { done, total }
        } else {
            Event::Progress { part: self.streamed_part(), done, total, fetched }
        });
    }
}
