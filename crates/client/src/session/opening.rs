//! Before the first lookup: descriptions, the layout, and what is downloaded: a hint, or the table.

use super::agreement::{Difference, changed_midway, difference, server_name};
use super::calls::Purpose;
use super::choose::{check_comparable, check_download, check_root, check_table_digest, choose};
use super::interface::{ChosenTable, Event, ExchangeId, Output, Persist, Request};
use super::pins::{Standing, compare};
use super::records::Records;
use super::{Phase, Session, part_key};
use crate::state::PartKey;
use privet_core::{Blame, Error, Reason, Result};
use privet_schemes::offline::{Download, HintSource, OfflinePhase, StreamConsumer};
use privet_wire::{FetchChunk, FetchRequest, PartKind, ServerDescription};
use std::sync::Arc;
use std::time::Duration;

impl Session {
    pub(super) fn described(
        &mut self,
        exchange: ExchangeId,
        description: ServerDescription,
        now: Duration,
    ) {
        let Some(call) = self.calls.answered(exchange) else { return };
        let server = call.server;
        self.note_version(server, &description, now);
        if let Some(chosen) = &self.chosen {
            let difference = difference(chosen, &description);
            if let Some(Difference::Version(epoch)) = difference
                && self.can_move_to(epoch)
                && self.may_open_again()
            {
                // What was on its way there cannot be answered any more.
                self.calls.trust(server, now, &mut self.outputs);
                return self.open_again(now);
            }
            if let Some(difference) = difference {
                let error = changed_midway(chosen, server, self.options.servers, difference);
                return self.fail(error);
            }
            for ended in self.calls.trust(server, now, &mut self.outputs) {
                self.call_ended(ended);
            }
            return;
        }
        self.calls.trust(server, now, &mut self.outputs);
        let Phase::Describing(descriptions) = &mut self.phase else { return };
        descriptions[server] = Some(description);
        if let Some(descriptions) = descriptions.iter().cloned().collect::<Option<Vec<_>>>()
            && let Err(error) = self.begin(&descriptions, now)
        {
            self.fail(error);
        }
    }

    /// Every server has described itself.
    fn begin(&mut self, descriptions: &[ServerDescription], now: Duration) -> Result<()> {
        let served = choose(&self.options, descriptions)?;
        let Some(chosen) = served.first().cloned() else { return Ok(()) };
        check_root(&chosen, &self.options)?;
        let standing = match self.options.accept_new_table {
            true => Standing::AsPinned,
            false => compare(&chosen, &self.options)?,
        };
        check_table_digest(&chosen)?;
        check_download(&chosen, &self.options)?;
        check_comparable(&chosen, &self.options)?;
        self.event(Event::Described(Box::new(chosen.clone())));
        self.served = served;
        self.chosen = Some(Box::new(chosen));
        for (server, description) in descriptions.iter().enumerate() {
            self.note_version(server, description, now);
        }
        match standing {
            Standing::AsPinned => {
                self.move_pins();
                // That was the one time.
                self.versions.accepting = std::mem::take(&mut self.options.accept_new_table);
                self.open_layout();
                Ok(())
            }
            Standing::Behind(pin) => self.follow_pin(pin, now),
        }
    }

    pub(super) fn open_layout(&mut self) {
        let Some(chosen) = self.chosen.as_deref() else { return };
        let layout = part_key(chosen, PartKind::Layout, chosen.layout);
        self.open(layout, false);
    }

    fn open(&mut self, part: PartKey, again: bool) {
        self.outputs.push_back(Output::Open(part.clone()));
        self.phase = Phase::Opening { part, again };
    }

    pub(super) fn fetch(&mut self, part: PartKey, download: Box<Download>, now: Duration) {
        let offset = download.next_offset();
        self.progress(&part, offset, false);
        if offset == part.len {
            // Everything had arrived before, only the last step was missing.
            self.phase = Phase::Fetching { part, download };
            return self.complete_download();
        }
        let Some(request) = self.fetch_request(part.kind, offset, 0) else { return };
        self.phase = Phase::Fetching { part, download };
        self.calls.start(0, Purpose::Fetch, request, now, &mut self.outputs);
    }

    /// A request for `len` bytes of a part, or for all to its end if `len` is 0.
    pub(super) fn fetch_request(&self, part: PartKind, offset: u64, len: u64) -> Option<Request> {
        let ChosenTable { identity, scheme, .. } = self.chosen.as_deref()?;
        let (table, epoch, parameter_digest) =
            (identity.id, identity.epoch, scheme.parameter_digest);
        Some(Request::Fetch(FetchRequest { table, epoch, parameter_digest, part, offset, len }))
    }

    pub(super) fn chunk(&mut self, exchange: ExchangeId, chunk: &FetchChunk, now: Duration) {
        if matches!(self.phase, Phase::Following(_)) {
            return self.epochs_came(exchange, chunk, now);
        }
        let Phase::Fetching { part, download } = &mut self.phase else { return };
        let due = download.next_offset();
        if chunk.offset.saturating_add(chunk.data.len() as u64) <= due {
            // Said already. Does not count as progress, so a server that only repeats itself is given up.
            return;
        }
        if let Err(error) = download.absorb(chunk.offset, &chunk.data) {
            return self.fail(error);
        }
        let (part, done, len) = (part.clone(), download.next_offset(), chunk.data.len());
        let bytes = chunk.data.to_vec();
        self.outputs.push_back(Output::Persist(Persist::Append {
            part: part.clone(),
            offset: chunk.offset,
            bytes,
        }));
        self.progress(&part, done, true);
        let rest = self.fetch_request(part.kind, done, 0);
        self.calls.progressed(exchange, len, rest, now);
    }

    pub(super) fn stream_ended(&mut self, exchange: ExchangeId, now: Duration) {
        if self.everything_arrived(exchange) {
            return self.finish_fetch(exchange, now);
        }
        let server = self.calls.waiting_for(exchange).map_or(0, |call| call.server);
        let name = server_name(server, self.options.servers);
        let error = Error::unavailable(format!("{name} ended a download before its end"));
        self.handle_failure(exchange, error, now);
    }

    /// Whether `exchange` is a fetch that lacks nothing but its end.
    pub(super) fn everything_arrived(&self, exchange: ExchangeId) -> bool {
        let Some(call) = self.calls.waiting_for(exchange) else { return false };
        match (call.purpose, &self.phase) {
            (Purpose::Fetch, Phase::Fetching { part, download }) => {
                download.next_offset() == part.len
            }
            (Purpose::Fetch, Phase::Following(_)) => self.epochs_are_complete(),
            (Purpose::Stream | Purpose::Background, _) => {
                self.hints.awaited(call.server).is_some_and(|(due, end)| due == end)
            }
            _ => false,
        }
    }

    pub(super) fn finish_fetch(&mut self, exchange: ExchangeId, now: Duration) {
        match self.calls.answered(exchange).map(|call| call.purpose) {
            Some(Purpose::Fetch) if matches!(self.phase, Phase::Following(_)) => {
                self.epochs_complete(now)
            }
            Some(Purpose::Fetch) => self.complete_download(),
            // Others send the same stretch, and are not done.
            Some(purpose) if self.calls.is_open(purpose) => {}
            Some(Purpose::Stream | Purpose::Background) => {
                self.hints.fetched(false);
                self.prepare(now);
            }
            _ => {}
        }
    }

    fn complete_download(&mut self) {
        let Phase::Fetching { part, download } = &mut self.phase else { return };
        let (part, finished) = (part.clone(), download.finish());
        match finished {
            Ok(()) => {
                self.outputs.push_back(Output::Persist(Persist::Complete(part.clone())));
                self.phase = Phase::Completing(part);
            }
            Err(error) => {
                self.outputs.push_back(Output::Persist(Persist::Discard(part.clone())));
                self.fail(error.within(format!("the {}", part.kind)));
            }
        }
    }

    /// A part is complete. `last_chance`: if it cannot be read now, asking for it again will not help.
    pub(super) fn use_part(
        &mut self,
        part: PartKey,
        source: Arc<dyn HintSource>,
        last_chance: bool,
    ) {
        let outcome = match part.kind {
            PartKind::Layout => self.use_layout(&source),
            _ => self.use_downloaded(source),
        };
        match outcome {
            Err(error) if error.blame() == Blame::Corrupted && !last_chance => {
                self.open(part, true)
            }
            Err(error) => self.fail(error),
            Ok(()) => {}
        }
    }

    fn use_layout(&mut self, source: &Arc<dyn HintSource>) -> Result<()> {
        let Some(chosen) = self.chosen.as_deref() else { return Ok(()) };
        // The wire's limit for layouts bounds this.
        let mut bytes = vec![0; source.len() as usize];
        source.read_at(0, &mut bytes)?;
        let records = Records::decode(&bytes, chosen.identity.shape, self.options.servers)?;
        let root = records.root();
        if self.options.root.is_some() && root.is_none() {
            return Err(Error::integrity(format!(
                "table {} is not authenticated, so no record of it can be verified against the root that was given; nothing was asked. Leave out the root only if you trust whoever serves it",
                chosen.name
            ))
            .because(Reason::NotAuthenticated));
        }
        self.records = Some(records);
        if let Some(root) = root {
            self.outputs.push_back(Output::Event(Event::Authenticated(root)));
        }
        match (chosen.scheme.plan.offline, chosen.scheme.hint) {
            (OfflinePhase::Nothing, _) => self.use_downloaded(Arc::new(Vec::new())),
            (OfflinePhase::Download { .. }, Some(hint)) => {
                let part = part_key(chosen, PartKind::Hint, hint);
                self.open_or_patch(part);
                Ok(())
            }
            (OfflinePhase::KeepTable { .. }, Some(table)) => {
                let part = part_key(chosen, PartKind::Table, table);
                self.open_or_patch(part);
                Ok(())
            }
            (OfflinePhase::StreamTable { .. } | OfflinePhase::StreamShuffled { .. }, Some(_)) => {
                self.open_hints();
                Ok(())
            }
            (OfflinePhase::Ask { role, .. }, _) if usize::from(role.0) < self.options.servers => {
                self.open_hints();
                Ok(())
            }
            _ => Err(Error::api_misuse(format!(
                "this version of the client cannot prepare for {}",
                chosen.scheme.plan.scheme
            ))),
        }
    }

    fn use_downloaded(&mut self, source: Arc<dyn HintSource>) -> Result<()> {
        let Some(chosen) = self.chosen.as_deref() else { return Ok(()) };
        let (plan, table) = (chosen.scheme.plan.clone(), chosen.identity);
        let (start, kernels) = (self.parts.start_client, self.options.kernels);
        let client = start(plan.clone(), &table, Arc::clone(&source), kernels)?;
        self.rehearse(&|| start(plan.clone(), &table, Arc::clone(&source), kernels))?;
        self.phase = Phase::Ready(client);
        self.lookups_begin();
        Ok(())
    }

    /// Opens a part that is kept, having it made of the one of an earlier version if that can be done.
    fn open_or_patch(&mut self, part: PartKey) {
        match self.patch_for(part.kind) {
            Some(patch) => {
                self.outputs.push_back(Output::Patch(Box::new(patch)));
                self.phase = Phase::Opening { part, again: false };
            }
            None => self.open(part, false),
        }
    }

    /// Everything is at hand.
    pub(super) fn lookups_begin(&mut self) {
        self.move_pins();
        if !std::mem::replace(&mut self.versions.opened_before, true) {
            self.event(Event::Ready);
        }
    }

    pub(super) fn progress(&mut self, part: &PartKey, done: u64, fetched: bool) {
        self.event(Event::Progress { part: part.kind, done, total: part.len, fetched });
    }
}
