//! Opening stored single-use hints, and changing over to the next generation.

use super::hints::{Loaded, drop_records, for_good, hints_servers, no_hints, sources, stream_of};
use super::interface::{ChosenTable, Output, Persist};
use super::open::{Open, OpenStage};
use super::options::SessionOptions;
use super::pins::keys_of;
use super::preparation::{Preparing, Schedule};
use super::resends::{Resends, Unanswered};
use super::shared::Shared;
use crate::state::{HintsKey, NextGeneration, SavedHints};
use privet_core::{Error, Reason, Result, TableIdentity};
use privet_schemes::contract::ReservationId;
use privet_schemes::registry::{ErasedClient, ErasedHints};
use std::collections::BTreeSet;
use std::time::Duration;

impl Open {
    pub(super) fn open_hints(&mut self, shared: &mut Shared) -> Result<()> {
        let (chosen, options) = (&self.chosen, &shared.options);
        // A caller who accepts any table that the servers show does not want hints of another.
        let to_follow = keys_of(chosen, options).is_some() && !self.versions.accepting;
        if chosen.scheme.plan.servers > 1 && options.addresses_digest.is_none() {
            return Err(Error::api_misuse(
                "hints of this scheme stay with the same servers in the same order, so the session needs the digest of the servers' addresses, and has none",
            ));
        }
        let key = self.hints_key(options);
        shared.outputs.push_back(Output::OpenHints { key, to_follow });
        self.stage = OpenStage::OpeningHints;
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

    /// Starts with the stored generation, if it is not used up; otherwise has one prepared.
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

    /// The stored generation with all its changes, which lead to `version`, if there is one.
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
            // For a rehearsal, a generation without its changes is good enough, unless the table
            // has grown since.
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
                "the stored hints belong to another version of the table than the note with them says",
            ));
        }
        check_unfinished(hints, &unfinished)?;
        let supply = hints.supply();
        if supply.total == 0 || (supply.left() == 0 && changes.is_empty()) {
            return Err(Error::corrupted("the stored hints serve no query at all"));
        }
        Ok(Some(Loaded { client, unfinished, next, state_len }))
    }

    /// Lookups go on with the loaded hints, unless they are used up.
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
        let mut unwanted = BTreeSet::new();
        unwanted.extend((0..supply.used).map(ReservationId));
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
        // For hints that never run out, a stored next generation is of no use: see `endless`.
        let preparing = preparing.of_replies(reply_len).from(sources(offline, &shared.options));
        self.hints.preparing = (!endless).then_some(preparing);
        self.begin_lookups(shared, client, table_len);
        Ok(())
    }

    /// No generation is in use, or it is used up.
    fn prepare_or_switch(&mut self, shared: &mut Shared, next: NextGeneration, now: Duration) {
        if let NextGeneration::Ready = next {
            let first = !matches!(self.stage, OpenStage::Switching { first: false });
            return self.switch(shared, first);
        }
        let offline = self.chosen.scheme.plan.offline;
        let (table_len, reply_len) = stream_of(offline);
        self.stage = OpenStage::Preparing;
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
        match std::mem::replace(&mut self.stage, OpenStage::Ready(client)) {
            OpenStage::Switching { first: false } => return,
            OpenStage::OpeningHints => self.stream_progress(shared, table_len, false),
            _ => {}
        }
        self.lookups_begin(shared);
    }

    /// `first`: lookups have not begun.
    pub(super) fn switch(&mut self, shared: &mut Shared, first: bool) {
        self.hints.preparing = None;
        shared.outputs.push_back(Output::Persist(Persist::SwitchHints));
        self.stage = OpenStage::Switching { first };
    }
}

/// The journal and the hints must agree on which queries are unfinished.
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
