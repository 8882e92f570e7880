//! Single-use hints: opening what is kept of them, what lookups need of them, and changing over to the next generation.

use super::compared::{Leads, Sources};
use super::endless::{Before, Unanswered};
use super::interface::{ChosenTable, FetchId, Output, Persist};
use super::pins::publisher_of;
use super::preparation::{Preparing, Schedule};
use super::resends::Resends;
use super::verified::for_good;
use super::{Phase, Session, plan_in};
use crate::state::{HintsKey, NextGeneration, SavedHints};
use privet_core::{Error, Reason, Result, TableIdentity};
use privet_schemes::contract::{ReservationId, Supply};
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::{ErasedClient, ErasedHints};
use privet_schemes::reservation::StoredRecord;
use std::collections::BTreeSet;
use std::time::Duration;

/// With so many reservations that were never answered, no more are made: something is wrong with the server, and each takes memory.
const UNFINISHED_LIMIT: usize = 256;

/// What a session keeps of single-use hints, beside the client that holds them. Stays empty for schemes of the other kind.
#[derive(Default)]
pub(super) struct Hints {
    /// What an earlier process left unfinished.
    pub(super) resends: Resends,
    /// Why no query may be sent any more: storage failed.
    pub(super) broken: Option<Error>,
    /// What was sent and not answered, of hints that never run out.
    pub(super) unanswered: Unanswered,
    /// The generation in the making. `None` also for hints that never run out.
    pub(super) preparing: Option<Preparing>,
    /// What servers sent of the stretch of the stream that is compared.
    pub(super) leads: Leads,
    /// Reservations whose records nobody waits for: their process ended, or their lookup did. A record of theirs that can be told is erased, not kept.
    unwanted: BTreeSet<ReservationId>,
}

/// What is to become of the next lookup.
pub(super) enum Turn {
    Go,
    Wait,
    Refuse(Error),
    /// To the next generation, which is prepared.
    Switch,
    /// Hints that never run out: to the next generation, which is made of this one.
    Condense,
    /// Earlier queries are sent again first.
    SendAgain,
}

impl Hints {
    /// Nobody waits for the record of this settled reservation; `depends`: which cannot be told yet.
    pub(super) fn unwanted(&mut self, id: ReservationId, depends: bool) {
        match depends {
            true => self.unwanted.insert(id),
            false => self.unwanted.remove(&id),
        };
    }

    pub(super) fn is_at_rest(&self) -> bool {
        let preparing = self.preparing.as_ref();
        self.resends.is_empty() && !preparing.is_some_and(Preparing::is_at_work)
    }

    /// The next byte of the stream that is wanted from `server`, and where the fetch under way ends.
    pub(super) fn awaited(&self, server: usize) -> Option<(u64, u64)> {
        let (due, end) = self.preparing.as_ref().and_then(Preparing::awaited)?;
        Some((due + self.leads.ahead(server), end))
    }

    /// The fetch under way is over.
    pub(super) fn fetched(&mut self, given_up: bool) {
        self.leads.begin(0);
        if let Some(preparing) = &mut self.preparing {
            preparing.fetched(given_up);
        }
    }
}

/// Opening.
impl Session {
    pub(super) fn open_hints(&mut self) {
        let Some(chosen) = self.chosen.as_deref() else { return };
        // Who accepts whatever the servers show does not want what was kept of something else.
        let to_follow = publisher_of(chosen, &self.options).is_some() && !self.versions.accepting;
        if chosen.scheme.plan.servers > 1 && self.options.addresses_digest.is_none() {
            return self.fail(Error::api_misuse(
                "by this scheme hints are used with the same servers in the same order only; the session must be told the digest of the servers' addresses, and was not",
            ));
        }
        let Some(key) = self.hints_key() else { return };
        self.outputs.push_back(Output::OpenHints { key, to_follow });
        self.phase = Phase::OpeningHints;
    }

    /// Names the hints for the chosen version.
    pub(super) fn hints_key(&self) -> Option<HintsKey> {
        let ChosenTable { identity, scheme, .. } = self.chosen.as_deref()?;
        Some(HintsKey {
            table: *identity,
            scheme: scheme.plan.scheme,
            parameter_digest: scheme.parameter_digest,
            servers: self.hints_servers(),
        })
    }

    /// What one server has seen of the hints, no other must be shown later, whether it computed them or not.
    pub(super) fn hints_servers(&self) -> [u8; 32] {
        match self.options.servers {
            1 => [0; 32],
            _ => self.options.addresses_digest.unwrap_or_default(),
        }
    }

    /// Starts with the generation that is kept, if it is not used up; otherwise sees to one.
    pub(super) fn use_hints(&mut self, mut saved: SavedHints, now: Duration) -> Result<()> {
        if let Some(why) = saved.ended {
            return Err(Error::integrity(why).because(Reason::HintsEnded));
        }
        if let Some(stand_at) = saved.stands_at.take() {
            return self.hints_of_another_version(saved, stand_at, now);
        }
        let Some(ChosenTable { identity, .. }) = self.chosen.as_deref() else { return Ok(()) };
        let next = saved.next;
        if saved.generation.is_none() {
            return self.prepare_or_switch(next, now);
        }
        let loaded = self.load_hints(saved, *identity)?;
        self.use_loaded(loaded, now)
    }

    /// The generation that is kept with all its changes, which lead to `version`.
    pub(super) fn load_hints(
        &mut self,
        saved: SavedHints,
        version: TableIdentity,
    ) -> Result<Loaded> {
        let SavedHints { generation, changes, unfinished, next, prepared_for, .. } = saved;
        let (Some(chosen), Some(generation)) = (self.chosen.as_deref(), generation) else {
            return Err(Error::api_misuse("there are no hints to be loaded"));
        };
        let (plan, kernels) = (&chosen.scheme.plan, self.options.kernels);
        let first = prepared_for.unwrap_or(version);
        // Its parameters are those of the version that it was prepared for.
        let plan = match first == chosen.identity {
            true => plan.clone(),
            false => plan_in(plan, &first)?,
        };
        let state_len = generation.len() as u64;
        let start = self.parts.start_hinted;
        self.rehearse(&|| {
            let mut copy = start(plan.clone(), &first, generation.clone(), kernels)?;
            // A generation is as good as new for it, unless the table has grown since.
            if first != version
                && let Some(hints) = copy.hints()
            {
                changes.iter().try_for_each(|change| hints.apply(change))?;
            }
            Ok(copy)
        })?;
        let mut client = start(plan, &first, generation, kernels)?;
        let hints = client.hints().ok_or_else(no_hints)?;
        for change in &changes {
            hints.apply(change).map_err(|error| error.within("the stored hints"))?;
        }
        if let Some(error) = hints.ended() {
            return Err(for_good(&error));
        }
        if hints.table() != version {
            return Err(Error::corrupted(
                "the stored hints belong to another version of the table than was noted with them",
            ));
        }
        check_unfinished(hints, &unfinished)?;
        let supply = hints.supply();
        if supply.total == 0 || (supply.left() == 0 && changes.is_empty()) {
            return Err(Error::corrupted("the stored hints serve no query at all"));
        }
        Ok(Loaded { client, unfinished, next, state_len })
    }

    /// Lookups go on with what was loaded, unless it is used up.
    pub(super) fn use_loaded(&mut self, mut loaded: Loaded, now: Duration) -> Result<()> {
        if loaded.is_used_up() {
            return self.prepare_or_switch(loaded.next, now);
        }
        let Some(ChosenTable { scheme, .. }) = self.chosen.as_deref() else { return Ok(()) };
        let (table_len, reply_len) = stream_of(scheme.plan.offline);
        let sources = self.sources(scheme.plan.offline);
        let hints = loaded.hints()?;
        let (supply, endless) = (hints.supply(), hints.is_endless());
        let mut unwanted: BTreeSet<_> = (0..supply.used).map(ReservationId).collect();
        drop_records(hints, &mut unwanted);
        let Loaded { client, unfinished, next, state_len } = loaded;
        let resends = unfinished.into_iter().map(|(id, record)| (id, record.into_sendable()));
        self.hints.resends = Resends::new(resends);
        let pace = self.parts.pace;
        let schedule = Schedule::new(table_len, state_len, &pace);
        let preparing = match next {
            NextGeneration::None => Preparing::next_generation(schedule, pace, 0),
            NextGeneration::Partial { offset } => {
                Preparing::next_generation(schedule, pace, offset.min(table_len))
            }
            NextGeneration::Ready => Preparing::complete(schedule, pace),
        };
        self.hints.unanswered = Unanswered::default();
        self.hints.unwanted = unwanted;
        // Whatever is kept of a next generation of hints that never run out is of no use: see `endless`.
        let preparing = preparing.of_replies(reply_len).from(sources);
        self.hints.preparing = (!endless).then_some(preparing);
        self.begin_lookups(client, table_len);
        Ok(())
    }

    /// There is no generation in use, or it is used up.
    fn prepare_or_switch(&mut self, next: NextGeneration, now: Duration) -> Result<()> {
        let Some(ChosenTable { scheme, .. }) = self.chosen.as_deref() else { return Ok(()) };
        let (table_len, reply_len) = stream_of(scheme.plan.offline);
        let sources = self.sources(scheme.plan.offline);
        match next {
            NextGeneration::Ready => {
                let first = !matches!(self.phase, Phase::Switching { first: false });
                self.switch(first);
            }
            _ => {
                self.phase = Phase::Preparing;
                let preparing = Preparing::foreground(table_len, self.parts.pace);
                self.hints.preparing = Some(preparing.of_replies(reply_len).from(sources));
                self.prepare(now);
            }
        }
        Ok(())
    }

    /// Which servers send what is streamed.
    fn sources(&self, offline: OfflinePhase) -> Sources {
        let servers = self.options.servers as u64;
        match (offline, servers) {
            (_, 1) => Sources::First,
            (OfflinePhase::StreamTable { .. } | OfflinePhase::StreamShuffled { .. }, _) => {
                match self.options.compare_streams {
                    true => Sources::All(servers),
                    false => Sources::Shares(servers),
                }
            }
            _ => Sources::First,
        }
    }

    fn begin_lookups(&mut self, client: Box<dyn ErasedClient>, table_len: u64) {
        let before = std::mem::replace(&mut self.phase, Phase::Ready(client));
        if matches!(before, Phase::Switching { first: false }) {
            return;
        }
        if matches!(before, Phase::OpeningHints) {
            self.stream_progress(table_len, false);
        }
        self.lookups_begin();
    }

    pub(super) fn switch(&mut self, first: bool) {
        self.hints.preparing = None;
        self.outputs.push_back(Output::Persist(Persist::SwitchHints));
        self.phase = Phase::Switching { first };
    }

    /// Changes over to the next generation in the midst of lookups.
    pub(super) fn switch_between_lookups(&mut self) {
        self.switch(false);
    }
}

/// Hints that are kept, with all that happened to them.
pub(super) struct Loaded {
    client: Box<dyn ErasedClient>,
    unfinished: Vec<(ReservationId, StoredRecord)>,
    next: NextGeneration,
    state_len: u64,
}

impl Loaded {
    pub(super) fn hints(&mut self) -> Result<&mut dyn ErasedHints> {
        self.client.hints().ok_or_else(no_hints)
    }

    /// Nothing is kept of the next generation.
    pub(super) fn begin_next_anew(&mut self) {
        self.next = NextGeneration::None;
    }

    /// Whether no lookup can be made with them any more.
    pub(super) fn is_used_up(&mut self) -> bool {
        self.client.hints().is_none_or(|hints| hints.supply().left() == 0 && !hints.is_endless())
    }
}

fn no_hints() -> Error {
    Error::api_misuse("the scheme was to have single-use hints and has none")
}

/// How many bytes are streamed for a generation, and how many of these each reply has, if they are replies.
fn stream_of(offline: OfflinePhase) -> (u64, Option<u64>) {
    let reply_len = match offline {
        OfflinePhase::Ask { reply_len, .. } => Some(reply_len as u64),
        _ => None,
    };
    (offline.len(), reply_len)
}

/// Erases the records of those `unwanted` reservations that have one, and leaves the others.
fn drop_records(hints: &mut dyn ErasedHints, unwanted: &mut BTreeSet<ReservationId>) {
    unwanted.retain(|id| hints.take_record(*id).is_none());
}

/// The journal and the hints must agree on what is unfinished.
fn check_unfinished<R>(
    hints: &mut dyn ErasedHints,
    unfinished: &[(ReservationId, R)],
) -> Result<()> {
    if hints.open().iter().eq(unfinished.iter().map(|(id, _)| id)) {
        return Ok(());
    }
    Err(Error::corrupted(
        "the stored hints and the journal of queries do not agree on which queries were answered",
    ))
}

/// While lookups go on.
impl Session {
    /// Whether no reservation is between its journal record and its record.
    pub(super) fn hints_are_idle(&self) -> bool {
        !self.lookups.have_reservations() && self.hints.resends.is_empty()
    }

    /// Whether a reservation is between its journal record and the settling of its answers.
    pub(super) fn is_any_under_way(&self) -> bool {
        self.lookups.reservations_under_way().next().is_some() || !self.hints.resends.is_empty()
    }

    /// Whether a reservation may still be answered in this session, as things are.
    pub(super) fn may_be_answered(&self, id: ReservationId) -> bool {
        let mut under_way = self.lookups.reservations_under_way();
        under_way.any(|under_way| under_way == id) || self.hints.resends.contains(id)
    }

    /// The oldest settled reservation and its fetch, if no older one may still be answered in this
    /// session. (What an even older one would have to bring will not come.)
    pub(super) fn next_to_tell(&self) -> Option<(ReservationId, FetchId)> {
        let next = self.lookups.oldest_settled()?;
        let mut open = self.lookups.reservations_under_way().chain(self.hints.resends.oldest());
        open.all(|open| open > next.0).then_some(next)
    }

    /// The single-use hints, if there are such and lookups go on.
    pub(super) fn hinted(&mut self) -> Option<&mut dyn ErasedHints> {
        match &mut self.phase {
            Phase::Ready(client) => client.hints(),
            _ => None,
        }
    }

    /// Whether the next lookup can have a hint.
    pub(super) fn turn(&mut self) -> Turn {
        let Some(hints) = self.hinted() else { return Turn::Go };
        let (supply, open, endless) = (hints.supply(), hints.open().len(), hints.is_endless());
        let verifies = hints.verifies();
        if let Some(error) = &self.hints.broken {
            return Turn::Refuse(error.clone());
        }
        if supply.left() == 0 && endless {
            return self.turn_at_the_end(open);
        }
        if supply.left() == 0 {
            let ready = self.hints.preparing.as_ref().is_some_and(Preparing::is_complete);
            return match (ready, self.hints_are_idle()) {
                (true, true) => Turn::Switch,
                (true, false) => Turn::Wait,
                (false, _) => Turn::Refuse(Error::exhausted(
                    "the hints are used up and the next ones are not ready, so nothing was asked; try again in a while, or start again: then they are prepared before the first lookup",
                )),
            };
        }
        if verifies {
            return self.turn_in_strict_order(open);
        }
        // The answers to earlier queries are a part of what a hint is made of that never runs out.
        match self.before_another() {
            Before::Nothing => {}
            Before::Wait => return Turn::Wait,
            Before::SentAgain => return Turn::SendAgain,
        }
        if open.saturating_sub(self.lookups.reservations_under_way().count()) >= UNFINISHED_LIMIT {
            // Some of them are on their way once more.
            if !self.hints.resends.is_empty() {
                return Turn::Wait;
            }
            return Turn::Refuse(Error::unavailable(format!(
                "{UNFINISHED_LIMIT} earlier queries have never been answered, so no new one is asked; they are sent again whenever the client starts: see to it that the server answers, and start again"
            )));
        }
        Turn::Go
    }

    /// Erases what queries that were sent again brought and nobody waits for, once all of them are over.
    pub(super) fn drop_unwanted(&mut self) {
        if self.hints.unwanted.is_empty() || !self.hints.resends.is_empty() {
            return;
        }
        let mut unwanted = std::mem::take(&mut self.hints.unwanted);
        if let Some(hints) = self.hinted() {
            drop_records(hints, &mut unwanted);
        }
        self.hints.unwanted = unwanted;
    }

    /// A lookup was refused. If that was for want of hints, whatever kept the next ones from being ready is tried again.
    pub(super) fn lookup_refused(&mut self, now: Duration) {
        let used_up = self.hinted().is_some_and(|hints| hints.supply().left() == 0);
        if let Some(preparing) = self.hints.preparing.as_mut().filter(|_| used_up) {
            preparing.lookup_refused();
            self.prepare(now);
        }
    }

    /// A lookup's queries are on their way: now is the time for the share of the next generation that comes with them.
    pub(super) fn lookup_sent(&mut self, now: Duration) {
        let supply: Option<Supply> = self.hinted().map(|hints| hints.supply());
        if let (Some(supply), Some(preparing)) = (supply, &mut self.hints.preparing) {
            preparing.lookup_sent(supply);
            self.prepare(now);
        }
    }
}

/// What becomes of a lookup that waits for an older reservation's answer when the session is over.
pub(super) fn ended_before() -> Error {
    Error::selective(
        "the session ended before the answer to an earlier query came, which this lookup's record depends on. Do not look it up again because of that: a server that held the answer back would learn about the record",
    )
}
