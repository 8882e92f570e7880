//! Following a table from a version that is known to the one that is served, epoch by epoch.
//!
//! A client that has pinned a table, and who publishes it, needs no second decision to believe a later version: the publisher has signed every epoch between. So the epochs are fetched and each is
//! checked to be the next one (`privet_table::update_log` says how); at their end must be the version that the servers describe, and every pin must lie on the way. Anything else, a gap, a fork, a step
//! back or a wrong signature, ends the session before anything is asked.
//!
//! What the epochs changed then brings up to date what is kept:
//!
//! - A hint or table that was *downloaded* is patched ([`Patch`]) where the scheme can, and fetched again where it cannot. Either way its digest has to be the announced one.
//! - *Single-use hints* stand at a version of their own, usually the pinned one. They follow by a change in their journal, as by any other, and the journal has to be durable before they are used.
//!   Verified ones also need to know the new commitments, which come with each epoch, from every server, and are the same from all. If two servers tell
//!   different commitments to one version, or different epochs that the publisher has signed, one of them lies: that is the end of the hints, as a wrong
//!   answer is (the module `verified`). A server that is behind, or sends what does not follow, proves nothing of the kind: then nothing is lost.
//! - Hints with queries that were never answered cannot follow: the answers belong to the version before. If that is still served, the session stays with it until they have come, and then moves on (the
//!   module `versions`). If not, or if hints cannot follow for another reason (the epochs are gone, the parameters changed, the table outgrew them), they are erased, and new ones are prepared.
//!
//! The pins move last, when everything else is at hand: whatever is interrupted is done again from where they stand.

use super::calls::Purpose;
use super::choose::{check_download, check_root, check_table_digest};
use super::hints::Loaded;
use super::interface::{ChosenTable, Event, ExchangeId, Output, Patch, Persist, Request};
use super::pins::publisher_of;
use super::{Phase, Session, part_key, plan_in};
use crate::state::{HintsKey, Pin, SavedHints};
use privet_core::{Error, Reason, Result, TableChanges, TableDelta, TableIdentity};
use privet_schemes::registry;
use privet_table::update_log::{Chain, EpochHash};
use privet_wire::prost::bytes::Bytes;
use privet_wire::updates::EpochReader;
use privet_wire::{FetchChunk, FetchRequest, PartKind, SchemeDescription};
use std::time::Duration;

/// The epochs that are followed at once are held in memory: no more than so many bytes, whatever may be downloaded.
const MEMORY_LIMIT: u64 = 1 << 30;

/// Why hints are left behind if the first of the epochs that they would follow cannot be checked.
const LAYOUT_UNKNOWN: &str = "how their version was laid out is not known any more";

/// What led from one version to another, checked.
pub(super) struct Followed {
    /// The pin that it began with.
    pin: Box<Pin>,
    to: TableIdentity,
    changes: TableChanges,
    /// The epoch that made the later version what it is.
    pub(super) last_epoch: Option<EpochHash>,
}

/// Epochs on their way.
pub(super) struct Following {
    /// What is brought up to date.
    whom: Whom,
    /// Where it begins.
    start: Chain,
    /// How far it came, by the present server's word.
    chain: Chain,
    target: TableIdentity,
    /// Which server is asked, the first of `servers`.
    server: usize,
    servers: usize,
    reader: EpochReader,
    received: u64,
    changes: TableChanges,
    steps: Vec<Step>,
    /// How many epochs the present server has told.
    told: usize,
    /// Versions that have to lie on the way.
    milestones: Vec<TableIdentity>,
    /// The layout that it begins with is taken to be that of the target. If that is wrong, the first epoch does not follow.
    layout_is_guessed: bool,
}

enum Whom {
    Pins(Box<Pin>),
    Hints(Box<Loaded>),
}

/// How what a server tells compares with what those before it have told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    /// It is the same, or nobody was asked before.
    TheSame,
    /// An epoch of the same number that the publisher has signed as well, and that is another.
    Otherwise,
}

/// One epoch.
struct Step {
    hash: EpochHash,
    after: TableIdentity,
    /// What it changed, if it is followed one by one.
    delta: Option<TableDelta>,
    /// What each server said of the commitments after it.
    commitments: Vec<Bytes>,
}

/// Fetching and checking.
impl Session {
    /// Goes from the version of `pin` to the one that is chosen.
    pub(super) fn follow_pin(&mut self, pin: Box<Pin>, now: Duration) -> Result<()> {
        let layout = pin.layout.digest;
        let (table, last) = (pin.table, pin.last_epoch);
        // Under whatever name: by now it is certain that they are of this table.
        let pins = self.options.pins.iter().filter(|known| known.pin.table.id == table.id);
        let milestones = pins.map(|known| known.pin.table).filter(|pinned| *pinned != table);
        let milestones = milestones.collect();
        self.follow(Whom::Pins(pin), table, layout, last, milestones, 1, false, now)
    }

    #[allow(clippy::too_many_arguments)]
    fn follow(
        &mut self,
        whom: Whom,
        from: TableIdentity,
        layout_digest: [u8; 32],
        last_epoch: Option<EpochHash>,
        milestones: Vec<TableIdentity>,
        servers: usize,
        layout_is_guessed: bool,
        now: Duration,
    ) -> Result<()> {
        let Some(chosen) = self.chosen.as_deref() else { return Ok(()) };
        let publisher = publisher_of(chosen, &self.options).ok_or_else(|| {
            Error::api_misuse("a table is followed only if it is known who publishes it")
        })?;
        let start = Chain::knowing_digest(from, layout_digest, publisher, last_epoch);
        let following = Following {
            whom,
            chain: start.clone(),
            start,
            target: chosen.identity,
            server: 0,
            servers,
            reader: EpochReader::default(),
            received: 0,
            changes: TableChanges::none(from.shape),
            steps: Vec::new(),
            told: 0,
            milestones,
            layout_is_guessed,
        };
        let request = self.updates_request(from, 0);
        self.phase = Phase::Following(Box::new(following));
        if let Some(request) = request {
            self.calls.start(0, Purpose::Fetch, request, now, &mut self.outputs);
        }
        Ok(())
    }

    fn updates_request(&self, from: TableIdentity, offset: u64) -> Option<Request> {
        let ChosenTable { identity, scheme, .. } = self.chosen.as_deref()?;
        Some(Request::Fetch(FetchRequest {
            table: identity.id,
            epoch: from.epoch,
            parameter_digest: scheme.parameter_digest,
            part: PartKind::Updates,
            offset,
            len: 0,
        }))
    }

    /// The next bytes of the epochs.
    pub(super) fn epochs_came(&mut self, exchange: ExchangeId, chunk: &FetchChunk, now: Duration) {
        let limit = self.options.max_download.min(MEMORY_LIMIT);
        let Phase::Following(following) = &mut self.phase else { return };
        if chunk.offset.saturating_add(chunk.data.len() as u64) <= following.received {
            // Said already. Does not count as progress, so a server that only repeats itself is given up.
            return;
        }
        let taken = following.take(chunk, limit);
        if matches!(taken, Ok(Told::Otherwise)) {
            return self.updates_differ();
        }
        if let Err(error) = taken {
            let in_vain = following.layout_is_guessed;
            self.calls.abandon(Purpose::Fetch, &mut self.outputs);
            let outcome = match in_vain {
                true => self.leave_hints_behind(LAYOUT_UNKNOWN),
                false => Err(error),
            };
            return outcome.unwrap_or_else(|error| self.fail(error));
        }
        let (from, received) = (following.start.identity(), following.received);
        let rest = self.updates_request(from, received);
        self.calls.progressed(exchange, chunk.data.len(), rest, now);
    }

    /// Servers have told different epochs, each signed.
    fn updates_differ(&mut self) {
        let before = std::mem::replace(&mut self.phase, Phase::OpeningHints);
        // Only for hints are several servers asked.
        let Phase::Following(following) = before else { return };
        let Whom::Hints(mut loaded) = following.whom else {
            return self.fail(Error::api_misuse("updates differ of which one server was asked"));
        };
        let ended = loaded.hints().and_then(|hints| Ok((hints.disagree()?, hints.ended())));
        match ended {
            Ok((change, Some(error))) => self.end_hints(None, change, None, &error),
            Ok((_, None)) => self.fail(Error::api_misuse("the hints did not end with their end")),
            Err(error) => self.fail(error),
        }
    }

    /// A server has sent all epochs.
    pub(super) fn epochs_complete(&mut self, now: Duration) {
        let Phase::Following(following) = &mut self.phase else { return };
        if following.server + 1 < following.servers {
            let (server, from) = (following.server + 1, following.start.identity());
            following.ask_another(server);
            if let Some(request) = self.updates_request(from, 0) {
                self.calls.start(server, Purpose::Fetch, request, now, &mut self.outputs);
            }
            return;
        }
        let signed = following.chain.layout_digest();
        let outcome = following.check_milestones().and_then(|()| match &self.chosen {
            Some(chosen) if chosen.layout.digest != signed => Err(Error::integrity(format!(
                "the record layout that the server describes for table {} is not the one that its publisher has signed; nothing was asked",
                chosen.name
            ))),
            _ => Ok(()),
        });
        if let Err(error) = outcome {
            return self.fail(error);
        }
        let Phase::Following(following) = std::mem::replace(&mut self.phase, Phase::OpeningHints)
        else {
            return;
        };
        if let Err(error) = self.followed(*following) {
            self.fail(error);
        }
    }

    /// Whether nothing but the end of the epochs is outstanding.
    pub(super) fn epochs_are_complete(&self) -> bool {
        matches!(&self.phase, Phase::Following(following) if following.is_complete())
    }

    fn followed(&mut self, following: Following) -> Result<()> {
        let Following { whom, changes, steps, target, received, chain, .. } = following;
        match whom {
            Whom::Pins(pin) => {
                self.event(Event::Updated {
                    from: pin.table.epoch,
                    to: target.epoch,
                    records: changes.len() as u64,
                    bytes: received,
                });
                let last_epoch = chain.previous();
                self.followed = Some(Followed { pin, to: target, changes, last_epoch });
                self.open_layout();
                Ok(())
            }
            Whom::Hints(loaded) => self.bring_up_to_date(*loaded, &changes, steps),
        }
    }
}

impl Following {
    fn take(&mut self, chunk: &FetchChunk, limit: u64) -> Result<Told> {
        let end = chunk.offset.saturating_add(chunk.data.len() as u64);
        if chunk.offset != self.received {
            return Err(Error::peer_misbehaved(format!(
                "the server sent byte {} of the updates when byte {} was due",
                chunk.offset, self.received
            )));
        }
        if end > limit {
            return Err(Error::api_misuse(format!(
                "the updates since version {} of the table have more than the {limit} bytes that are allowed; allow more, or start over with the table as it is now",
                self.start.identity().epoch.0
            ))
            .because(Reason::TooManyUpdates));
        }
        self.received = end;
        for fetched in self.reader.take(&chunk.data)? {
            if self.chain.identity().epoch >= self.target.epoch {
                return Err(Error::peer_misbehaved(
                    "the server sent updates beyond the version that was asked for",
                ));
            }
            let update = self.chain.follow(&fetched.epoch)?;
            let hash = update.hash();
            if self.server == 0 {
                let changes = update.changes()?;
                let one_by_one = self.servers > 1;
                let delta = one_by_one.then(|| changes.delta());
                self.changes.then(changes)?;
                // Unsigned, and of no use where nothing is verified.
                let commitments = one_by_one.then_some(fetched.commitments).into_iter().collect();
                self.steps.push(Step { hash, after: update.after(), delta, commitments });
            } else {
                let same = self.steps.get_mut(self.told).filter(|step| step.hash == hash);
                let Some(same) = same else { return Ok(Told::Otherwise) };
                same.commitments.push(fetched.commitments);
            }
            self.told += 1;
        }
        let reached = self.chain.identity();
        if reached.epoch == self.target.epoch && reached != self.target {
            return Err(Error::integrity(format!(
                "the updates that the table's publisher has signed lead to other contents of version {} than the server describes: the server shows a table that is not the publisher's; nothing was asked",
                reached.epoch.0
            )));
        }
        Ok(Told::TheSame)
    }

    fn ask_another(&mut self, server: usize) {
        self.server = server;
        self.chain = self.start.clone();
        self.reader = EpochReader::default();
        (self.received, self.told) = (0, 0);
    }

    fn is_complete(&self) -> bool {
        self.chain.identity() == self.target && self.reader.is_empty()
    }

    /// Each version that was pinned somewhere is one of those passed through.
    fn check_milestones(&self) -> Result<()> {
        let start = self.start.identity();
        let passed = |pinned: &TableIdentity| {
            *pinned == start || self.steps.iter().any(|step| step.after == *pinned)
        };
        match self.milestones.iter().find(|pinned| !passed(pinned)) {
            None => Ok(()),
            Some(pinned) => Err(Error::integrity(format!(
                "version {} of the table, as it was pinned at one of the servers, is not one that its publisher's updates lead through; nothing was asked. One of the servers has shown another table before",
                pinned.epoch.0
            ))),
        }
    }
}

/// What follows.
impl Session {
    /// How the downloaded part that `chosen` needs can be made of the one that was pinned, if it can.
    pub(super) fn patch_for(&self, kind: PartKind) -> Option<Patch> {
        let (chosen, followed) = (self.chosen.as_deref()?, self.followed.as_ref()?);
        let (from, to) = (followed.pin.hint?, chosen.scheme.hint?);
        if followed.to != chosen.identity {
            return None;
        }
        let after = &chosen.scheme.plan;
        let before = plan_in(after, &followed.pin.table).ok()?;
        let same = before.digest(&followed.pin.table) == followed.pin.parameter_digest;
        let (table_before, table_after) = (followed.pin.table, chosen.identity);
        if !same || !registry::patches_downloads((&before, &table_before), (after, &table_after)) {
            return None;
        }
        let earlier = ChosenTable { identity: table_before, ..chosen.clone() };
        Some(Patch {
            from: part_key(&earlier, kind, from),
            to: part_key(chosen, kind, to),
            before,
            after: after.clone(),
            changes: followed.changes.clone(),
        })
    }

    /// Single-use hints are kept that stand at another version of the table than the chosen one.
    pub(super) fn hints_of_another_version(
        &mut self,
        saved: SavedHints,
        stand_at: HintsKey,
        now: Duration,
    ) -> Result<()> {
        let Some(chosen) = self.chosen.as_deref() else { return Ok(()) };
        let (then, target) = (stand_at.table, chosen.identity);
        if then.epoch >= target.epoch {
            return Err(Error::integrity(format!(
                "the hints that are kept are for version {} of table {}, and what the server shows as version {} is not a later one of the same history; nothing was asked, and they were kept. If you believe this server, accept its table, which erases them",
                then.epoch.0, chosen.name, target.epoch.0
            ))
            .because(Reason::HintsOfAnotherVersion));
        }
        if !saved.unfinished.is_empty() {
            return match self.still_served(&stand_at) {
                Some(version) => {
                    self.stay_with(version);
                    Ok(())
                }
                None => self.leave_hints_behind(
                    "some of their queries were not answered as long as the former version was served",
                ),
            };
        }
        let plan = &chosen.scheme.plan;
        let before = plan_in(plan, &then);
        let same_parameters =
            before.is_ok_and(|before| before.digest(&then) == stand_at.parameter_digest);
        if !same_parameters {
            return self.leave_hints_behind("the scheme's parameters have changed");
        }
        if saved.generation.is_none() {
            return self.leave_hints_behind("");
        }
        let updates = chosen.updates;
        let mut loaded = self.load_hints(saved, then)?;
        if loaded.is_used_up() {
            return self.leave_hints_behind("");
        }
        let hints = loaded.hints()?;
        if !hints.follows(target.shape) {
            return self.leave_hints_behind("the table outgrew them");
        }
        let verifies = hints.verifies();
        // What is verified is told by every server.
        let first_epoch = match verifies {
            true => self.versions.first_epoch_everywhere(),
            false => updates.map(|updates| updates.first_epoch),
        };
        if first_epoch.is_none_or(|first_epoch| first_epoch > then.epoch) {
            return self.leave_hints_behind("the epochs between are no longer to be had");
        }
        let followed = self
            .followed
            .take_if(|followed| !verifies && followed.pin.table == then && followed.to == target);
        if let Some(followed) = followed {
            let outcome = self.bring_up_to_date(loaded, &followed.changes, Vec::new());
            self.followed = Some(followed);
            return outcome;
        }
        let known = self.layout_digest_at(then);
        let layout = known.or(self.chosen.as_deref().map(|chosen| chosen.layout.digest));
        let servers = if verifies { self.options.servers } else { 1 };
        let whom = Whom::Hints(Box::new(loaded));
        let layout_is_guessed = known.is_none();
        let layout = layout.unwrap_or_default();
        self.follow(whom, then, layout, None, Vec::new(), servers, layout_is_guessed, now)
    }

    /// The version at which hints stand, as the servers still serve it, if it is what this client has known it to be.
    fn still_served(&self, stand_at: &HintsKey) -> Option<ChosenTable> {
        let version = self.served.iter().find(|version| {
            let SchemeDescription { plan, parameter_digest, .. } = &version.scheme;
            version.identity == stand_at.table
                && plan.scheme == stand_at.scheme
                && *parameter_digest == stand_at.parameter_digest
        })?;
        let known = self.layout_digest_at(stand_at.table) == Some(version.layout.digest);
        let checked = check_root(version, &self.options)
            .and_then(|()| check_table_digest(version))
            .and_then(|()| check_download(version, &self.options));
        (known && checked.is_ok()).then(|| version.clone())
    }

    /// The hints follow what the epochs changed: at once, or, with `steps` that have deltas of their own, one by one.
    fn bring_up_to_date(
        &mut self,
        mut loaded: Loaded,
        changes: &TableChanges,
        steps: Vec<Step>,
    ) -> Result<()> {
        let Some(chosen) = self.chosen.as_deref() else { return Ok(()) };
        let (servers, target) = (self.options.servers, chosen.identity);
        let key = |chosen: &ChosenTable, table: TableIdentity| -> Result<HintsKey> {
            let plan = &chosen.scheme.plan;
            // Of a version between, nothing is announced: its parameters are those of the versions before and after.
            let plan = plan_in(plan, &table)?;
            let (scheme, parameter_digest) = (plan.scheme, plan.digest(&table));
            Ok(HintsKey { table, scheme, parameter_digest, servers: self.hints_servers() })
        };
        let mut one_by_one = Vec::new();
        for step in steps {
            let Some(delta) = step.delta else { continue };
            let told = step.commitments.iter();
            let told = told.map(|told| delta.clone().with_commitments(told.to_vec()));
            one_by_one.push((step.after, told.collect()));
        }
        if one_by_one.is_empty() {
            one_by_one.push((target, vec![changes.delta(); servers]));
        }
        let hints = loaded.hints()?;
        let mut moves = Vec::new();
        for (after, deltas) in one_by_one {
            let before = hints.table();
            let change = hints.apply_deltas(&before, &after, &deltas)?;
            if let Some(error) = hints.ended() {
                // What was agreed on before that is not kept: no hints are left to follow it.
                self.end_hints(None, change, None, &error);
                return Ok(());
            }
            moves.push((change, key(chosen, after)?));
        }
        // What was prepared of the next ones belongs to the version before, and goes with it.
        loaded.begin_next_anew();
        let outstanding = moves.len();
        for (change, to) in moves {
            self.outputs.push_back(Output::Persist(Persist::FollowHints { change, to }));
        }
        self.phase = Phase::MovingHints { loaded: Box::new(loaded), outstanding };
        self.timetable.end_opening();
        Ok(())
    }

    /// A step by which the hints follow the table is durable.
    pub fn handle_hints_followed(&mut self, now: Duration) {
        let now = self.timetable.at(now);
        let Phase::MovingHints { outstanding, .. } = &mut self.phase else { return };
        *outstanding -= 1;
        if *outstanding > 0 {
            return;
        }
        if let Phase::MovingHints { loaded, .. } =
            std::mem::replace(&mut self.phase, Phase::OpeningHints)
            && let Err(error) = self.use_loaded(*loaded, now)
        {
            self.fail(error);
        }
        // What was looked up before is erased then, which takes its time.
        self.timetable.end_opening();
    }

    /// Gives up the hints that are kept, and begins anew. `why` is empty if nothing is lost by it.
    fn leave_hints_behind(&mut self, why: &str) -> Result<()> {
        if !why.is_empty() {
            self.event(Event::HintsLeftBehind(why.to_owned()));
        }
        let Some(key) = self.hints_key() else { return Ok(()) };
        self.outputs.push_back(Output::Persist(Persist::RestartHints(key)));
        self.phase = Phase::OpeningHints;
        Ok(())
    }

    /// The digest of the layout in a version that this client has pinned. (What servers say of an earlier version was not signed for them.)
    fn layout_digest_at(&self, version: TableIdentity) -> Option<[u8; 32]> {
        let followed = self.followed.iter().map(|followed| &*followed.pin);
        let mut pins = self.options.pins.iter().map(|known| &known.pin).chain(followed);
        pins.find(|pin| pin.table == version).map(|pin| pin.layout.digest)
    }
}
