//! Single-use hints: opening what is kept of them, what lookups need of them, and changing over to the next generation.

use super::compared::{Leads, Sources};
use super::interface::{ChosenTable, FetchId, Output, Persist};
use super::open::{Open, Stage};
use super::options::SessionOptions;
use super::pins::publisher_of;
use super::preparation::{Preparing, Schedule};
use super::resends::{Resends, Unanswered};
use super::shared::Shared;
use crate::state::{HintsKey, NextGeneration, SavedHints};
use privet_core::{Error, Reason, Result, TableIdentity};
use privet_schemes::contract::{ReservationId, Supply};
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::{ErasedClient, ErasedHints};
use privet_schemes::reservation::StoredRecord;
use std::collections::BTreeSet;
use std::time::Duration;

/// What a session keeps of single-use hints, beside the client that holds them. Stays empty for schemes of the other kind.
#[derive(Default)]
pub(super) struct HintsInUse {
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
pub(super) enum NextLookup {
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

impl HintsInUse {
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

    /// Has everything that is unanswered sent again. False: that was done already, or there is
    /// nothing to send.
    pub(super) fn send_again(&mut self) -> bool {
        let Some(resends) = self.unanswered.send_again() else { return false };
        self.resends = resends;
        true
    }

    /// The fetch under way is over.
    pub(super) fn fetched(&mut self, given_up: bool) {
        self.leads.begin(0);
        if let Some(preparing) = &mut self.preparing {
            preparing.fetched(given_up);
        }
    }
}

/// What one server has seen of the hints, no other must be shown later, whether it computed them or
/// not: this names the servers.
pub(super) fn hints_servers(options: &SessionOptions) -> [u8; 32] {
    match options.servers {
        1 => [0; 32],
        _ => options.addresses_digest.unwrap_or_default(),
    }
}

/// Opening.
impl Open {
    pub(super) fn open_hints(&mut self, shared: &mut Shared) -> Result<()> {
        let (chosen, options) = (&self.chosen, &shared.options);
        // Who accepts whatever the servers show does not want what was kept of something else.
        let to_follow = publisher_of(chosen, options).is_some() && !self.versions.accepting;
        if chosen.scheme.plan.servers > 1 && options.addresses_digest.is_none() {
            return Err(Error::api_misuse(
                "by this scheme hints are used with the same servers in the same order only; the session must be told the digest of the servers' addresses, and was not",
            ));
        }
        let key = self.hints_key(options);
        shared.outputs.push_back(Output::OpenHints { key, to_follow });
        self.stage = Stage::OpeningHints;
        Ok(())
    }

    /// Names the hints for the chosen version.
    pub(super) fn hints_key(&self, options: &SessionOptions) -> HintsKey {
        let ChosenTable { identity, scheme, .. } = &self.chosen;
        HintsKey {
            table: *identity,
            scheme: scheme.plan.scheme,
            parameter_digest: scheme.parameter_digest,
            servers: hints_servers(options),
        }
    }

    /// Starts with the generation that is kept, if it is not used up; otherwise sees to one.
    pub(super) fn use_hints(
        &mut self,
        shared: &mut Shared,
        mut saved: SavedHints,
        now: Duration,
    ) -> Result<()> {
        if let Some(why) = saved.ended {
            return Err(Error::integrity(why).because(Reason::HintsEnded));
        }
        if let Some(stand_at) = saved.stands_at.take() {
            return self.hints_of_another_version(shared, saved, stand_at, now);
        }
        let next = saved.next;
        match self.load_hints(shared, saved, self.chosen.identity)? {
            Some(loaded) => self.use_loaded(shared, loaded, now),
            None => {
                self.prepare_or_switch(shared, next, now);
                Ok(())
            }
        }
    }

    /// The generation that is kept with all its changes, which lead to `version`, if there is one.
    pub(super) fn load_hints(
        &self,
        shared: &mut Shared,
        saved: SavedHints,
        version: TableIdentity,
    ) -> Result<Option<Loaded>> {
        let SavedHints { generation, changes, unfinished, next, prepared_for, .. } = saved;
        let Some(generation) = generation else { return Ok(None) };
        let (plan, kernels) = (&self.chosen.scheme.plan, shared.options.kernels);
        let first = prepared_for.unwrap_or(version);
        // Its parameters are those of the version that it was prepared for.
        let plan = match first == self.chosen.identity {
            true => plan.clone(),
            false => (shared.parts.plan_in)(plan, &first)?,
        };
        let state_len = generation.len() as u64;
        let start = shared.parts.start_hinted;
        self.rehearse(shared, &|| {
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
        Ok(Some(Loaded { client, unfinished, next, state_len }))
    }

    /// Lookups go on with what was loaded, unless it is used up.
    pub(super) fn use_loaded(
        &mut self,
        shared: &mut Shared,
        mut loaded: Loaded,
        now: Duration,
    ) -> Result<()> {
        if loaded.is_used_up() {
            self.prepare_or_switch(shared, loaded.next, now);
            return Ok(());
        }
        let offline = self.chosen.scheme.plan.offline;
        let (table_len, reply_len) = stream_of(offline);
        let hints = loaded.hints()?;
        let (supply, endless) = (hints.supply(), hints.is_endless());
        let mut unwanted: BTreeSet<_> = (0..supply.used).map(ReservationId).collect();
        drop_records(hints, &mut unwanted);
        let Loaded { client, unfinished, next, state_len } = loaded;
        let resends = unfinished.into_iter().map(|(id, record)| (id, record.into_sendable()));
        self.hints.resends = Resends::new(resends);
        let pace = shared.parts.pace;
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
        let preparing = preparing.of_replies(reply_len).from(sources(offline, &shared.options));
        self.hints.preparing = (!endless).then_some(preparing);
        self.begin_lookups(shared, client, table_len);
        Ok(())
    }

    /// There is no generation in use, or it is used up.
    fn prepare_or_switch(&mut self, shared: &mut Shared, next: NextGeneration, now: Duration) {
        if let NextGeneration::Ready = next {
            let first = !matches!(self.stage, Stage::Switching { first: false });
            return self.switch(shared, first);
        }
        let offline = self.chosen.scheme.plan.offline;
        let (table_len, reply_len) = stream_of(offline);
        self.stage = Stage::Preparing;
        let preparing = Preparing::foreground(table_len, shared.parts.pace);
        let preparing = preparing.of_replies(reply_len).from(sources(offline, &shared.options));
        self.hints.preparing = Some(preparing);
        self.prepare(shared, now);
    }

    fn begin_lookups(
        &mut self,
        shared: &mut Shared,
        client: Box<dyn ErasedClient>,
        table_len: u64,
    ) {
        match std::mem::replace(&mut self.stage, Stage::Ready(client)) {
            Stage::Switching { first: false } => return,
            Stage::OpeningHints => self.stream_progress(shared, table_len, false),
            _ => {}
        }
        self.lookups_begin(shared);
    }

    /// `first`: lookups have not begun.
    pub(super) fn switch(&mut self, shared: &mut Shared, first: bool) {
        self.hints.preparing = None;
        shared.outputs.push_back(Output::Persist(Persist::SwitchHints));
        self.stage = Stage::Switching { first };
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

/// Which servers send what is streamed.
fn sources(offline: OfflinePhase, options: &SessionOptions) -> Sources {
    match (offline, options.servers as u64) {
        (_, 1) => Sources::First,
        (OfflinePhase::StreamTable { .. } | OfflinePhase::StreamShuffled { .. }, servers) => {
            match options.compare_streams {
                true => Sources::All(servers),
                false => Sources::Shares(servers),
            }
        }
        _ => Sources::First,
    }
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
impl Open {
    /// Whether no reservation is between its journal record and its record.
    pub(super) fn hints_are_idle(&self, shared: &Shared) -> bool {
        !shared.lookups.have_reservations() && self.hints.resends.is_empty()
    }

    /// Whether a reservation is between its journal record and the settling of its answers.
    pub(super) fn is_any_under_way(&self, shared: &Shared) -> bool {
        shared.lookups.reservations_under_way().next().is_some() || !self.hints.resends.is_empty()
    }

    /// Whether a reservation may still be answered in this session, as things are.
    pub(super) fn may_be_answered(&self, shared: &Shared, id: ReservationId) -> bool {
        let mut under_way = shared.lookups.reservations_under_way();
        under_way.any(|under_way| under_way == id) || self.hints.resends.contains(id)
    }

    /// The oldest settled reservation and its fetch, if no older one may still be answered in this
    /// session. (What an even older one would have to bring will not come.)
    pub(super) fn next_to_tell(&self, shared: &Shared) -> Option<(ReservationId, FetchId)> {
        let next = shared.lookups.oldest_settled()?;
        let mut open = shared.lookups.reservations_under_way().chain(self.hints.resends.oldest());
        open.all(|open| open > next.0).then_some(next)
    }

    /// The single-use hints, if there are such and lookups go on.
    pub(super) fn hinted(&mut self) -> Option<&mut dyn ErasedHints> {
        match &mut self.stage {
            Stage::Ready(client) => client.hints(),
            _ => None,
        }
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
    pub(super) fn lookup_refused(&mut self, shared: &mut Shared, now: Duration) {
        let used_up = self.hinted().is_some_and(|hints| hints.supply().left() == 0);
        if let Some(preparing) = self.hints.preparing.as_mut().filter(|_| used_up) {
            preparing.lookup_refused();
            self.prepare(shared, now);
        }
    }

    /// A lookup's queries are on their way: now is the time for the share of the next generation that comes with them.
    pub(super) fn lookup_sent(&mut self, shared: &mut Shared, now: Duration) {
        let supply: Option<Supply> = self.hinted().map(|hints| hints.supply());
        if let (Some(supply), Some(preparing)) = (supply, &mut self.hints.preparing) {
            preparing.lookup_sent(supply);
            self.prepare(shared, now);
        }
    }
}

/// What becomes of a lookup that waits for an older reservation's answer when the session is over.
pub(super) fn ended_before() -> Error {
    Error::selective(
        "the session ended before the answer to an earlier query came, which this lookup's record depends on. Do not look it up again because of that: a server that held the answer back would learn about the record",
    )
}

/// `error`, and what it means for hints that ended with it.
pub(super) fn for_good(error: &Error) -> Error {
    Error::integrity(format!(
        "{}. Nothing more is asked until the hints are erased",
        error.message().trim_end_matches('.')
    ))
    .because(Reason::HintsEnded)
}
