//! Following a table from a known version to the served one, epoch by epoch.
//!
//! A client that has pinned a table and its publisher needs no second decision to believe a later
//! version: the publisher has signed every epoch in between. So the client fetches the epochs and
//! checks that each is the next one (`privet_table::update_log` says how). They must end at the
//! version that the servers describe, and every pin must lie on the way. Anything else ends the
//! session before anything is asked: a gap, a fork, a step back or a wrong signature.
//!
//! The changes then bring stored state up to date:
//!
//! - A *downloaded* hint or table is patched ([`Patch`]) if the scheme can do that, and fetched
//!   again if not. In both cases its digest must be the announced one.
//! - *Single-use hints* stand at a version of their own, usually the pinned one. They follow by a
//!   change in their journal, like any other change, and the journal must be durable before they
//!   are used. Verified hints also need the new commitments. These come with each epoch, from every
//!   server, and must be the same from all. If two servers send different commitments for one
//!   version, or different epochs that the publisher has signed, one of them lies. That ends the
//!   hints, as a wrong answer does (the module `verified`). A server that is behind, or sends
//!   something that does not follow, proves no lie: then nothing is lost.
//! - Hints with unanswered queries cannot follow: the answers belong to the earlier version. If
//!   that version is still served, the session stays with it until the answers have come, and then
//!   moves on (the module `versions`). If it is not, the hints are erased, and new ones are
//!   prepared. The same happens if hints cannot follow for another reason: the epochs are gone, the
//!   parameters changed, or the table outgrew them.
//!
//! The pins move last, when everything else is there: if anything interrupts this, it is done again
//! from the version of the pins.

use super::boundaries::Boundaries;
use super::calls::Purpose;
use super::choose::{check_download, check_root, check_table_digest};
use super::epochs::{Followed, Follower, Following, Told, ToldEpoch};
use super::hints::{Loaded, hints_servers};
use super::interface::{ChosenTable, ExchangeId, Output, Patch, Persist, Progress, Request};
use super::open::{Open, OpenStage};
use super::pins::keys_of;
use super::shared::{PlanIn, Shared};
use crate::state::{HintsKey, Pin, SavedHints};
use privet_core::{Epoch, Error, Reason, Result, TableChanges, TableIdentity};
use privet_schemes::registry;
use privet_table::update_log::{Chain, EpochHash, PublisherId, TableKeys};
use privet_wire::{FetchChunk, PartKind, SchemeDescription};
use std::time::Duration;

/// All epochs that are followed together are held in memory: no more than so many bytes, even if
/// the client may download more.
const MEMORY_LIMIT: u64 = 1 << 30;

/// Why hints are given up if the first epoch that they would follow cannot be checked.
const LAYOUT_UNKNOWN: &str = "the layout of their version is no longer known";

/// `error`, and the first version for which the servers tell different updates: whoever looks into
/// the lie begins there.
fn differ_first_in(version: Epoch, error: &Error) -> Error {
    Error::integrity(format!(
        "{}. The updates differ first in version {}",
        error.message().trim_end_matches('.'),
        version.0
    ))
}

/// Fetching and checking.
impl Open {
    /// Goes from the version of `pin` to the one that is chosen.
    pub(super) fn follow_pin(
        &mut self,
        shared: &mut Shared,
        pin: Box<Pin>,
        now: Duration,
    ) -> Result<()> {
        let table = pin.table;
        let keys = pin.publisher.and(pin.keys()).or(keys_of(&self.chosen, &shared.options));
        let start = chain(keys, table, pin.layout.digest, pin.last_epoch)?;
        // Under any name: by now it is certain that they are of this table.
        let pins = shared.options.pins.iter().filter(|known| known.pin.table.id == table.id);
        let milestones = pins.map(|known| known.pin.table).filter(|pinned| *pinned != table);
        let mut following = Following::new(Follower::Pins(pin), start, self.chosen.identity, 1);
        following.milestones = milestones.collect();
        self.follow(shared, following, now);
        Ok(())
    }

    fn follow(&mut self, shared: &mut Shared, following: Following, now: Duration) {
        let request = self.updates_request(following.start.identity(), 0);
        self.stage = OpenStage::Following(Box::new(following));
        self.fetch_updates(shared, 0, request, now);
    }

    fn fetch_updates(&self, shared: &mut Shared, server: usize, request: Request, now: Duration) {
        let boundaries = Boundaries::of(0, &shared.parts.pace);
        shared.start(boundaries, server, Purpose::Fetch, request, now);
    }

    fn updates_request(&self, from: TableIdentity, offset: u64) -> Request {
        self.fetch_request_at(from.epoch, PartKind::Updates, offset, 0)
    }

    /// The next bytes of the epochs.
    pub(super) fn epochs_came(
        &mut self,
        shared: &mut Shared,
        exchange: ExchangeId,
        chunk: &FetchChunk,
        now: Duration,
    ) -> Result<()> {
        let limit = shared.options.max_download.min(MEMORY_LIMIT);
        let OpenStage::Following(following) = &mut self.stage else { return Ok(()) };
        if chunk.offset.saturating_add(chunk.data.len() as u64) <= following.received {
            // Received before. This is not progress, so a server that only repeats itself is given
            // up.
            return Ok(());
        }
        match following.take(chunk, limit) {
            Ok(Told::TheSame) => {
                let (from, received) = (following.start.identity(), following.received);
                let rest = self.updates_request(from, received);
                shared.calls.progressed(exchange, chunk.data.len(), Some(rest), now);
                Ok(())
            }
            Ok(Told::Otherwise) => self.updates_differ(shared),
            Err(error) => {
                let in_vain = following.layout_is_guessed;
                shared.calls.abandon(Purpose::Fetch, &mut shared.outputs);
                match in_vain {
                    true => self.leave_hints_behind(shared, LAYOUT_UNKNOWN),
                    false => Err(error),
                }
            }
        }
    }

    /// Ends the following and returns it: the hints are opened next, or nothing is.
    fn take_following(&mut self) -> Option<Following> {
        match std::mem::replace(&mut self.stage, OpenStage::OpeningHints) {
            OpenStage::Following(following) => Some(*following),
            other => {
                self.stage = other;
                None
            }
        }
    }

    /// Servers have sent different epochs, each signed.
    fn updates_differ(&mut self, shared: &mut Shared) -> Result<()> {
        // Several servers are asked only for hints.
        let Some(Following { follower: Follower::Hints(mut loaded), start, told, .. }) =
            self.take_following()
        else {
            return Err(Error::api_misuse("updates differ although only one server was asked"));
        };
        let hints = loaded.hints()?;
        let change = hints.disagree()?;
        let ended = hints.ended();
        let error =
            ended.ok_or_else(|| Error::api_misuse("the hints have an end and did not end"))?;
        let version = Epoch(start.identity().epoch.0.saturating_add(told as u64 + 1));
        self.end_hints(shared, None, change, None, &differ_first_in(version, &error));
        Ok(())
    }

    /// A server has sent all epochs.
    pub(super) fn epochs_complete(&mut self, shared: &mut Shared, now: Duration) -> Result<()> {
        let OpenStage::Following(following) = &mut self.stage else { return Ok(()) };
        if following.server + 1 < following.servers {
            let (server, from) = (following.server + 1, following.start.identity());
            following.ask_another(server);
            let request = self.updates_request(from, 0);
            self.fetch_updates(shared, server, request, now);
            return Ok(());
        }
        following.check_milestones()?;
        if self.chosen.layout.digest != following.chain.layout_digest() {
            return Err(Error::integrity(format!(
                "the record layout that the server describes for table {} is not the one that its publisher has signed; nothing was asked",
                self.chosen.name
            )));
        }
        let announced = self.chosen.updates.map(|updates| PublisherId(updates.publisher));
        if announced != Some(following.chain.publisher()) {
            return Err(Error::integrity(format!(
                "the publisher that the server names for table {} is not the one to whom its \
                 signed updates lead; nothing was asked",
                self.chosen.name
            ))
            .because(Reason::PublisherDiffers));
        }
        match self.take_following() {
            Some(following) => self.followed(shared, following),
            None => Ok(()),
        }
    }

    /// Whether only the end of the epochs is outstanding.
    pub(super) fn epochs_are_complete(&self) -> bool {
        matches!(&self.stage, OpenStage::Following(following) if following.is_complete())
    }

    fn followed(&mut self, shared: &mut Shared, following: Following) -> Result<()> {
        let Following { follower, changes, epochs, target, received, chain, .. } = following;
        match follower {
            Follower::Pins(pin) => {
                shared.tell(Progress::Updated {
                    from: pin.table.epoch,
                    to: target.epoch,
                    records: changes.len() as u64,
                    bytes: received,
                });
                let last_epoch = chain.previous();
                self.keys = Some(chain.keys());
                self.followed = Some(Followed { pin, to: target, changes, last_epoch });
                self.open_layout(shared);
                Ok(())
            }
            Follower::Hints(loaded) => self.bring_up_to_date(shared, *loaded, &changes, epochs),
        }
    }
}

/// A chain for the epochs that follow `table`, which has these `keys`; the client has none of them
/// yet.
fn chain(
    keys: Option<TableKeys>,
    table: TableIdentity,
    layout_digest: [u8; 32],
    last_epoch: Option<EpochHash>,
) -> Result<Chain> {
    let keys = keys.ok_or_else(|| {
        Error::api_misuse("a table is followed only if it is known who publishes it")
    })?;
    Ok(Chain::knowing_digest(table, layout_digest, keys, last_epoch))
}

/// What depends on the epochs.
impl Open {
    /// How to make the downloaded part that `chosen` needs out of the pinned version's part, if
    /// that is possible.
    pub(super) fn patch_for(&self, kind: PartKind, plan_in: PlanIn) -> Option<Patch> {
        let (chosen, followed) = (&self.chosen, self.followed.as_ref()?);
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
            from: earlier.part(kind, from),
            to: chosen.part(kind, to),
            before,
            after: after.clone(),
            changes: followed.changes.clone(),
        })
    }

    /// Stored single-use hints stand at another version of the table than the chosen one.
    pub(super) fn hints_of_another_version(
        &mut self,
        shared: &mut Shared,
        saved: SavedHints,
        stand_at: HintsKey,
        now: Duration,
    ) -> Result<()> {
        let chosen = &self.chosen;
        let (then, target) = (stand_at.table, chosen.identity);
        if then.epoch >= target.epoch {
            return Err(Error::integrity(format!(
                "the stored hints are for version {} of table {}, and the server's version {} is not a later one of the same history; nothing was asked, and the hints were kept. If you believe this server, accept its table, which erases them",
                then.epoch.0, chosen.name, target.epoch.0
            ))
            .because(Reason::HintsOfAnotherVersion));
        }
        if !saved.unfinished.is_empty() {
            let Some(version) = self.still_served(shared, &stand_at) else {
                let why =
                    "some of their queries were not answered while the earlier version was served";
                return self.leave_hints_behind(shared, why);
            };
            self.stay_with(shared, version);
            return Ok(());
        }
        let before = (shared.parts.plan_in)(&chosen.scheme.plan, &then);
        let same_parameters =
            before.is_ok_and(|before| before.digest(&then) == stand_at.parameter_digest);
        if !same_parameters {
            return self.leave_hints_behind(shared, "the scheme's parameters have changed");
        }
        let updates = chosen.updates;
        let Some(mut loaded) = self.load_hints(shared, saved, then)? else {
            return self.leave_hints_behind(shared, "");
        };
        if loaded.is_used_up() {
            return self.leave_hints_behind(shared, "");
        }
        let hints = loaded.hints()?;
        if !hints.follows(target.shape) {
            return self.leave_hints_behind(shared, "the table outgrew them");
        }
        let verifies = hints.verifies();
        // Every server must send what will be verified.
        let first_epoch = match verifies {
            true => self.versions.first_epoch_everywhere(),
            false => updates.map(|updates| updates.first_epoch),
        };
        if first_epoch.is_none_or(|first_epoch| first_epoch > then.epoch) {
            return self
                .leave_hints_behind(shared, "the epochs in between are no longer available");
        }
        let followed = self
            .followed
            .take_if(|followed| !verifies && followed.pin.table == then && followed.to == target);
        if let Some(followed) = followed {
            let outcome = self.bring_up_to_date(shared, loaded, &followed.changes, Vec::new());
            self.followed = Some(followed);
            return outcome;
        }
        let known = self.pin_at(shared, then);
        let layout = known.map_or(self.chosen.layout.digest, |pin| pin.layout.digest);
        let keys = known.and_then(|pin| pin.keys()).or(keys_of(&self.chosen, &shared.options));
        let start = chain(keys, then, layout, None)?;
        let servers = if verifies { shared.options.servers } else { 1 };
        let mut following =
            Following::new(Follower::Hints(Box::new(loaded)), start, target, servers);
        following.layout_is_guessed = known.is_none();
        self.follow(shared, following, now);
        Ok(())
    }

    /// The version at which hints stand, as the servers still serve it, if it agrees with what this
    /// client knows of it.
    fn still_served(&self, shared: &Shared, stand_at: &HintsKey) -> Option<ChosenTable> {
        let version = self.served.iter().find(|version| {
            let SchemeDescription { plan, parameter_digest, .. } = &version.scheme;
            version.identity == stand_at.table
                && plan.scheme == stand_at.scheme
                && *parameter_digest == stand_at.parameter_digest
        })?;
        let pinned = self.pin_at(shared, stand_at.table);
        let known = pinned.is_some_and(|pin| pin.layout.digest == version.layout.digest);
        let checked = check_root(version, &shared.options)
            .and_then(|()| check_table_digest(version))
            .and_then(|()| check_download(version, &shared.options));
        (known && checked.is_ok()).then(|| version.clone())
    }

    /// The hints follow the changes of the epochs: all at once, or one by one, with `epochs` that
    /// hold a delta each.
    fn bring_up_to_date(
        &mut self,
        shared: &mut Shared,
        mut loaded: Loaded,
        changes: &TableChanges,
        epochs: Vec<ToldEpoch>,
    ) -> Result<()> {
        let (servers, target) = (shared.options.servers, self.chosen.identity);
        let (plan, plan_in) = (&self.chosen.scheme.plan, shared.parts.plan_in);
        let seen_by = hints_servers(&shared.options);
        let key = |table: TableIdentity| -> Result<HintsKey> {
            // The servers announce nothing of the versions in between: these have the parameters of
            // the first and last.
            let plan = plan_in(plan, &table)?;
            let (scheme, parameter_digest) = (plan.scheme, plan.digest(&table));
            Ok(HintsKey { table, scheme, parameter_digest, servers: seen_by })
        };
        let mut one_by_one = Vec::new();
        for epoch in epochs {
            let Some(delta) = epoch.delta else { continue };
            let told = epoch.commitments.iter();
            let told = told.map(|told| delta.clone().with_commitments(told.to_vec()));
            one_by_one.push((epoch.after, told.collect()));
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
                // Nothing agreed on before that is kept: no hints are left to follow it.
                let error = differ_first_in(after.epoch, &error);
                self.end_hints(shared, None, change, None, &error);
                return Ok(());
            }
            moves.push((change, key(after)?));
        }
        // Whatever was prepared of the next generation belongs to the earlier version, so it is
        // dropped.
        loaded.begin_next_anew();
        let outstanding = moves.len();
        for (change, to) in moves {
            shared.outputs.push_back(Output::Persist(Persist::FollowHints { change, to }));
        }
        self.stage = OpenStage::MovingHints { loaded: Box::new(loaded), outstanding };
        shared.timetable.end_opening();
        Ok(())
    }

    /// A step by which the hints follow the table is durable.
    pub(super) fn hints_followed(&mut self, shared: &mut Shared, now: Duration) -> Result<()> {
        let OpenStage::MovingHints { outstanding, .. } = &mut self.stage else { return Ok(()) };
        *outstanding -= 1;
        if *outstanding > 0 {
            return Ok(());
        }
        let outcome = match std::mem::replace(&mut self.stage, OpenStage::OpeningHints) {
            OpenStage::MovingHints { loaded, .. } => self.use_loaded(shared, *loaded, now),
            _ => Ok(()),
        };
        // This erases earlier lookups' data, which takes time.
        shared.timetable.end_opening();
        outcome
    }

    /// Erases the stored hints, and begins anew. `why` is empty if that loses nothing.
    fn leave_hints_behind(&mut self, shared: &mut Shared, why: &str) -> Result<()> {
        if !why.is_empty() {
            shared.tell(Progress::Notice(format!(
                "the single-use hints cannot follow the table ({why}); new ones are prepared"
            )));
        }
        let key = self.hints_key(&shared.options);
        shared.outputs.push_back(Output::Persist(Persist::RestartHints(key)));
        self.stage = OpenStage::OpeningHints;
        Ok(())
    }

    /// The pin of a version that this client has pinned. (What servers say of an earlier version's
    /// layout is not signed.)
    fn pin_at(&self, shared: &Shared, version: TableIdentity) -> Option<Pin> {
        let followed = self.followed.iter().map(|followed| &*followed.pin);
        let mut pins = shared.options.pins.iter().map(|known| &known.pin).chain(followed);
        pins.find(|pin| pin.table == version).copied()
    }
}
