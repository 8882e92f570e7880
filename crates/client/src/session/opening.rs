//! Before the first lookup: descriptions, the layout, and the download of a hint or the table.

use super::agreement::{Difference, changed_midway, difference, no_longer, server_name};
use super::boundaries::Boundaries;
use super::calls::Purpose;
use super::choose::{
    check_comparable, check_download, check_root, check_table_digest, choose, demanded,
};
use super::interface::{ChosenTable, ExchangeId, Output, Persist, Progress, Request};
use super::open::{Incoming, Open, OpenStage};
use super::options::{KnownPin, TableLeft};
use super::pins::{Standing, compare, keys_of, pin_of};
use super::records::RecordReader;
use super::shared::{Fault, Shared};
use super::succession::{Ways, check_announced, is_a_successor, needs_lineage};
use super::{Phase, Session};
use crate::state::{PartKey, Pin};
use privet_core::{Blame, Epoch, Error, Reason, Result};
use privet_schemes::offline::{Download, HintSource, OfflinePhase, StreamConsumer};
use privet_schemes::registry::ErasedClient;
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
        let Shared { calls, outputs, options, .. } = &mut self.shared;
        let Some(call) = calls.answered(exchange) else { return };
        let server = call.server;
        match &mut self.phase {
            Phase::Describing(descriptions) => {
                calls.trust(server, now, outputs);
                descriptions[server] = Some(description);
                if let Some(all) = descriptions.iter().cloned().collect::<Option<Vec<_>>>() {
                    match Open::begin(&mut self.shared, &all, now) {
                        Ok(open) => self.phase = Phase::Open(Box::new(open)),
                        Err(error) => self.fail(error),
                    }
                }
            }
            Phase::Open(open) => {
                open.note_version(server, &description, now);
                let difference = difference(&open.chosen, &description);
                let succeeded = matches!(difference, Some(Difference::Table(_)))
                    && is_a_successor(&open.chosen, &description, options);
                if succeeded && open.may_open_again() {
                    calls.trust(server, now, outputs);
                    return self.open_again(now);
                }
                if let Some(Difference::Version(epoch)) = difference
                    && open.can_move_to(epoch, options)
                    && open.may_open_again()
                {
                    // The calls that were on their way to it cannot be answered any more.
                    calls.trust(server, now, outputs);
                    return self.open_again(now);
                }
                if let Some(difference) = difference {
                    let servers = options.servers;
                    if let (Difference::Version(epoch), Some(digest)) =
                        (&difference, options.digest)
                    {
                        let error = no_longer(&open.chosen, server, servers, *epoch, digest);
                        return self.fail(error);
                    }
                    let error = changed_midway(&open.chosen, server, servers, difference);
                    return self.fail(error);
                }
                for ended in calls.trust(server, now, outputs) {
                    self.call_ended(ended);
                }
            }
            Phase::Over(..) => {}
        }
    }
}

impl Open {
    /// Every server has described itself.
    fn begin(
        shared: &mut Shared,
        descriptions: &[ServerDescription],
        now: Duration,
    ) -> Result<Self> {
        let options = &mut shared.options;
        let served = choose(options, descriptions, shared.parts.plan_in)?;
        let served = demanded(served, options)?;
        let Some(chosen) = served.first().cloned() else {
            return Err(Error::api_misuse(
                "there is no version of the table that all servers serve",
            ));
        };
        check_root(&chosen, options)?;
        let needs_lineage = needs_lineage(&chosen, options);
        if needs_lineage.is_none() {
            check_announced(&chosen, options, &Ways::default(), None)?;
        }
        let standing = match options.accept_new_table {
            true => Standing::AsPinned,
            false if needs_lineage.is_some() => Standing::AsPinned,
            false => compare(&chosen, options, shared.parts.plan_in, &Ways::default())?,
        };
        check_table_digest(&chosen)?;
        check_download(&chosen, options)?;
        check_comparable(&chosen, options)?;
        let (servers, accepted) = (options.servers, options.accept_new_table);
        shared.tell(Progress::Described(Box::new(chosen.clone())));
        let mut open = Self::new(chosen, served, servers);
        for (server, description) in descriptions.iter().enumerate() {
            open.note_version(server, description, now);
        }
        if let Some(lineage) = needs_lineage {
            let part = open.chosen.part(PartKind::Lineage, lineage);
            open.open(shared, part, false);
            return Ok(open);
        }
        open.stand(shared, standing, now)?;
        // Accepting counts only once.
        open.versions.accepting = accepted;
        shared.options.accept_new_table = false;
        Ok(open)
    }

    /// The table is compared with its pins: goes on from there.
    pub(super) fn stand(
        &mut self,
        shared: &mut Shared,
        standing: Standing,
        now: Duration,
    ) -> Result<()> {
        match standing {
            Standing::AsPinned => {
                self.move_pins(shared);
                self.open_layout(shared);
                Ok(())
            }
            Standing::Behind(pin) => self.follow_pin(shared, pin, now),
        }
    }

    pub(super) fn open_layout(&mut self, shared: &mut Shared) {
        let layout = self.chosen.part(PartKind::Layout, self.chosen.layout);
        self.open(shared, layout, false);
    }

    pub(super) fn open(&mut self, shared: &mut Shared, part: PartKey, again: bool) {
        shared.outputs.push_back(Output::Open(part.clone()));
        self.stage = OpenStage::Incoming(Incoming::Opening { part, again });
    }

    pub(super) fn fetch(
        &mut self,
        shared: &mut Shared,
        part: PartKey,
        mut download: Box<Download>,
        now: Duration,
    ) -> Result<()> {
        let offset = download.next_offset();
        shared.progress(&part, offset, false);
        if offset == part.len {
            // All bytes had arrived before; only the last step was missing.
            let finished = download.finish();
            return self.complete_download(shared, part, finished);
        }
        let told = self.chosen.layout_bytes.as_ref().filter(|_| part.kind == PartKind::Layout);
        if let Some(bytes) = told.and_then(|told| told.get(offset as usize..)) {
            // It came with the description.
            let bytes = bytes.to_vec();
            download.absorb(offset, &bytes)?;
            shared.progress(&part, download.next_offset(), true);
            let append = Persist::Append { part: part.clone(), offset, bytes };
            shared.outputs.push_back(Output::Persist(append));
            let finished = download.finish();
            return self.complete_download(shared, part, finished);
        }
        let request = self.fetch_request(part.kind, offset, 0);
        let boundaries = Boundaries::of(part.len, &shared.parts.pace);
        let incoming = Incoming::Fetching { part, download };
        match self.may_come_late(shared, &incoming) {
            true => self.begin_without_hint(shared, incoming)?,
            false => self.stage = OpenStage::Incoming(incoming),
        }
        shared.start(boundaries, 0, Purpose::Fetch, request, now);
        Ok(())
    }

    /// A request for `len` bytes of a part, or for all to its end if `len` is 0.
    pub(super) fn fetch_request(&self, part: PartKind, offset: u64, len: u64) -> Request {
        self.fetch_request_at(self.chosen.identity.epoch, part, offset, len)
    }

    /// The same for what leads on from `epoch`.
    pub(super) fn fetch_request_at(
        &self,
        epoch: Epoch,
        part: PartKind,
        offset: u64,
        len: u64,
    ) -> Request {
        let ChosenTable { identity, scheme, .. } = &self.chosen;
        let (table, parameter_digest) = (identity.id, scheme.parameter_digest);
        Request::Fetch(FetchRequest { table, epoch, parameter_digest, part, offset, len })
    }

    pub(super) fn chunk(
        &mut self,
        shared: &mut Shared,
        exchange: ExchangeId,
        chunk: &FetchChunk,
        now: Duration,
    ) -> Result<()> {
        if let OpenStage::Following(_) = self.stage {
            return self.epochs_came(shared, exchange, chunk, now);
        }
        let Some(Incoming::Fetching { part, download }) = self.incoming() else { return Ok(()) };
        let due = download.next_offset();
        if chunk.offset.saturating_add(chunk.data.len() as u64) <= due {
            // Received before. This is not progress, so a server that only repeats itself is given
            // up.
            return Ok(());
        }
        download.absorb(chunk.offset, &chunk.data)?;
        let (part, done, len) = (part.clone(), download.next_offset(), chunk.data.len());
        let bytes = chunk.data.to_vec();
        shared.outputs.push_back(Output::Persist(Persist::Append {
            part: part.clone(),
            offset: chunk.offset,
            bytes,
        }));
        shared.progress(&part, done, true);
        let rest = self.fetch_request(part.kind, done, 0);
        shared.calls.progressed(exchange, len, Some(rest), now);
        Ok(())
    }

    pub(super) fn stream_ended(
        &mut self,
        shared: &mut Shared,
        exchange: ExchangeId,
        now: Duration,
    ) -> Result<(), Fault> {
        if self.everything_arrived(shared, exchange) {
            return Ok(self.finish_fetch(shared, exchange, now)?);
        }
        let server = shared.calls.waiting_for(exchange).map_or(0, |call| call.server);
        let name = server_name(server, shared.options.servers);
        let error = Error::unavailable(format!("{name} ended a download before its end"));
        Err(Fault::Exchange(error))
    }

    /// Whether `exchange` is a fetch whose bytes have all arrived and which has not ended.
    pub(super) fn everything_arrived(&self, shared: &Shared, exchange: ExchangeId) -> bool {
        let Some(call) = shared.calls.waiting_for(exchange) else { return false };
        match call.purpose {
            Purpose::Fetch => match (self.expected(), &self.stage) {
                (Some(Incoming::Fetching { part, download }), _) => {
                    download.next_offset() == part.len
                }
                (_, OpenStage::Following(_)) => self.epochs_are_complete(),
                _ => false,
            },
            Purpose::Stream | Purpose::Background => {
                self.hints.awaited(call.server).is_some_and(|(due, end)| due == end)
            }
            _ => false,
        }
    }

    pub(super) fn finish_fetch(
        &mut self,
        shared: &mut Shared,
        exchange: ExchangeId,
        now: Duration,
    ) -> Result<()> {
        match shared.calls.answered(exchange).map(|call| call.purpose) {
            Some(Purpose::Fetch) if matches!(self.stage, OpenStage::Following(_)) => {
                self.epochs_complete(shared, now)
            }
            Some(Purpose::Fetch) => match self.incoming() {
                Some(Incoming::Fetching { part, download }) => {
                    let (part, finished) = (part.clone(), download.finish());
                    self.complete_download(shared, part, finished)
                }
                _ => Ok(()),
            },
            // Other servers send the same stretch, and have not finished.
            Some(purpose) if shared.calls.is_open(purpose) => Ok(()),
            Some(Purpose::Stream | Purpose::Background) => {
                self.hints.fetched(false);
                self.prepare(shared, now);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// All bytes of a part have arrived, and `finished` says whether they have the right digest.
    fn complete_download(
        &mut self,
        shared: &mut Shared,
        part: PartKey,
        finished: Result<()>,
    ) -> Result<()> {
        let persist = match &finished {
            Ok(()) => Persist::Complete(part.clone()),
            Err(_) => Persist::Discard(part.clone()),
        };
        shared.outputs.push_back(Output::Persist(persist));
        finished.map_err(|error| error.within(format!("the {}", part.kind)))?;
        let completing = Incoming::Completing(part);
        match self.incoming() {
            Some(incoming) => *incoming = completing,
            None => self.stage = OpenStage::Incoming(completing),
        }
        Ok(())
    }

    /// A part is complete. `last_chance`: if it cannot be read now, fetching it again will not
    /// help.
    pub(super) fn use_part(
        &mut self,
        shared: &mut Shared,
        part: PartKey,
        source: Arc<dyn HintSource>,
        last_chance: bool,
        now: Duration,
    ) -> Result<()> {
        let outcome = match part.kind {
            PartKind::Lineage => self.use_lineage(shared, &source, now),
            PartKind::Layout => self.use_layout(shared, &source),
            _ if self.late.is_some() => return self.hint_came(&source),
            _ => self.use_downloaded(shared, source),
        };
        match outcome {
            Err(error) if error.blame() == Blame::Corrupted && !last_chance => {
                self.open(shared, part, true);
                Ok(())
            }
            outcome => outcome,
        }
    }

    fn use_layout(&mut self, shared: &mut Shared, source: &Arc<dyn HintSource>) -> Result<()> {
        // The wire's limit for layouts bounds this.
        let mut bytes = vec![0; source.len() as usize];
        source.read_at(0, &mut bytes)?;
        let ChosenTable { identity, scheme, name, .. } = &self.chosen;
        let servers = shared.options.servers;
        let records = RecordReader::decode(&bytes, identity.shape, servers)?;
        let root = records.root();
        if shared.options.root.is_some() && root.is_none() {
            return Err(Error::integrity(format!(
                "table {name} is not authenticated, so no record of it can be verified against the root that was given; nothing was asked. Leave out the root only if you trust those who serve it"
            ))
            .because(Reason::NotAuthenticated));
        }
        self.records = Some(records);
        if let Some(root) = root {
            shared.tell(Progress::Authenticated(root));
        }
        match (scheme.plan.offline, scheme.hint) {
            (OfflinePhase::Nothing, _) => self.use_downloaded(shared, Arc::new(Vec::new())),
            (OfflinePhase::Download { .. }, Some(hint)) => {
                self.open_or_patch(shared, self.chosen.part(PartKind::Hint, hint));
                Ok(())
            }
            (OfflinePhase::KeepTable { .. }, Some(table)) => {
                self.open_or_patch(shared, self.chosen.part(PartKind::Table, table));
                Ok(())
            }
            (OfflinePhase::StreamTable { .. } | OfflinePhase::StreamArranged { .. }, Some(_)) => {
                self.open_hints(shared)
            }
            (OfflinePhase::Ask { role, .. }, _) if usize::from(role.0) < servers => {
                self.open_hints(shared)
            }
            _ => Err(Error::api_misuse(format!(
                "this version of the client cannot prepare for {}",
                scheme.plan.scheme
            ))),
        }
    }

    fn use_downloaded(&mut self, shared: &mut Shared, source: Arc<dyn HintSource>) -> Result<()> {
        self.start_client(shared, Arc::clone(&source), source)
    }

    /// Starts the scheme's client with what was downloaded. The session measures lookups with
    /// `like_it`, which takes as long to read.
    pub(super) fn start_client(
        &mut self,
        shared: &mut Shared,
        downloaded: Arc<dyn HintSource>,
        like_it: Arc<dyn HintSource>,
    ) -> Result<()> {
        let (plan, table) = (&self.chosen.scheme.plan, self.chosen.identity);
        let (start, kernels) = (shared.parts.start_client, shared.options.kernels);
        let start =
            |source: &Arc<dyn HintSource>| start(plan.clone(), &table, Arc::clone(source), kernels);
        let client = start(&downloaded)?;
        self.rehearse(shared, &|| start(&like_it))?;
        self.blanks = client.blanks();
        if let Some(shelf) = &shared.options.shelf {
            shelf.stock(self.blanks.clone());
        }
        self.stage = OpenStage::Ready(client);
        self.lookups_begin(shared);
        Ok(())
    }

    /// Opens a stored part, or has it made of an earlier version's part if that is possible.
    fn open_or_patch(&mut self, shared: &mut Shared, part: PartKey) {
        match self.patch_for(part.kind, shared.parts.plan_in) {
            Some(patch) => {
                shared.outputs.push_back(Output::Patch(Box::new(patch)));
                self.stage = OpenStage::Incoming(Incoming::Opening { part, again: false });
            }
            None => self.open(shared, part, false),
        }
    }

    /// Everything is at hand.
    pub(super) fn lookups_begin(&mut self, shared: &mut Shared) {
        self.move_pins(shared);
        if !std::mem::replace(&mut shared.opened_before, true) {
            shared.tell(Progress::Ready);
        }
    }

    /// Measures how long lookups take, with copies that `start` makes of the scheme's client.
    pub(super) fn rehearse(
        &self,
        shared: &mut Shared,
        start: &dyn Fn() -> Result<Box<dyn ErasedClient>>,
    ) -> Result<()> {
        match &self.records {
            Some(records) => shared.timetable.rehearse(&self.chosen, records, start),
            None => Ok(()),
        }
    }
}

/// Pins.
impl Open {
    /// Pins the version that is used now at every server where another is pinned, and notes that
    /// this table was used last.
    pub(super) fn move_pins(&mut self, shared: &mut Shared) {
        let Some(newest) = self.served.first() else { return };
        // While an earlier version is used, the pin must stay there.
        if self.chosen.identity != newest.identity {
            return;
        }
        let keys = self.keys.or(keys_of(newest, &shared.options));
        let left = std::mem::take(&mut self.left);
        let last_epoch = self.followed.as_ref().and_then(|followed| followed.last_epoch);
        let (name, identity) = (newest.name.clone(), newest.identity);
        let elsewhere = shared.options.pins_elsewhere.iter().map(|known| &known.pin);
        let pins = shared.options.pins.iter().map(|known| &known.pin).chain(elsewhere);
        let of_publisher = |pin: &&Pin| {
            pin.table.id == identity.id && pin.publisher == keys.map(|keys| keys.publisher)
        };
        let first_publisher = self
            .first_publisher
            .or_else(|| pins.filter(of_publisher).find_map(|pin| pin.first_publisher));
        for server in 0..shared.options.servers {
            let pins = &shared.options.pins;
            let here = || pins.iter().filter(move |known| known.server == server);
            let known = here().find(|known| known.pin.table == identity);
            let last_epoch = last_epoch.or(known.and_then(|known| known.pin.last_epoch));
            let pin = Pin { first_publisher, ..pin_of(newest, keys, last_epoch) };
            // The other names of the table come first, so that the name in use comes last.
            let others = here()
                .filter(|known| known.name != name && known.pin.table.id == identity.id)
                .filter(|known| known.pin != pin);
            let mut changed: Vec<_> = others.map(|known| known.name.clone()).collect();
            let is_last =
                here().next_back().is_some_and(|last| last.name == name && last.pin == pin);
            if !is_last || !changed.is_empty() {
                changed.push(name.clone());
            }
            for name in changed {
                shared.options.pins.retain(|known| known.server != server || known.name != name);
                shared.options.pins.push(KnownPin { server, name: name.clone(), pin });
                let (pin, left) = (Box::new(pin), left.clone());
                shared.outputs.push_back(Output::Persist(Persist::Pin { server, name, pin, left }));
            }
        }
        let tables_left = left.iter().map(|left| TableLeft { here: true, left: *left });
        // Whoever has accepted a table that was left comes back to it.
        shared.options.tables_left.retain(|known| known.left.id != identity.id);
        shared.options.tables_left.extend(tables_left);
    }
}
