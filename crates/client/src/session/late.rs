//! A hint that comes beside the first queries.
//!
//! The clients of some schemes read their hint only to recover a record ([`About::queries_first`]).
//! If such a hint is not stored, the session starts the client with a [`LateHint`], and fetches the
//! hint and sends the first queries at once: a client that has never been here needs one round trip
//! after the layout. Answers that come before the hint wait for it, unread. So the queries do not
//! depend on the hint, and nothing that is sent later depends on an answer.
//!
//! Such a hint is short, and the session keeps it in memory. That is also why the time of reading
//! answers can be measured before the hint has come: zeros in memory take as long to read.
//!
//! If the hint does not come, or has another digest than the server announced, the lookups that
//! wait for it fail, whatever they look up.

use super::open::{Incoming, Open, OpenStage};
use super::shared::Shared;
use privet_core::{Error, Result};
use privet_schemes::offline::{HintSource, LateHint, OfflinePhase};
#[cfg(doc)]
use privet_schemes::registry::About;
use privet_wire::PartKind;
use std::sync::Arc;

/// A longer hint comes before the first query, as by other schemes: it would have to be kept in
/// memory.
const LONGEST: u64 = 16 << 20;

/// A hint on its way while lookups are made.
pub(super) struct Late {
    incoming: Incoming,
    hint: Arc<LateHint>,
}

impl Open {
    /// The part that is on its way: one that everything waits for, or a late hint.
    pub(super) fn incoming(&mut self) -> Option<&mut Incoming> {
        match (&mut self.stage, &mut self.late) {
            (OpenStage::Incoming(incoming), _) => Some(incoming),
            (_, late) => late.as_mut().map(|late| &mut late.incoming),
        }
    }

    /// The same, to look at.
    pub(super) fn expected(&self) -> Option<&Incoming> {
        match (&self.stage, &self.late) {
            (OpenStage::Incoming(incoming), _) => Some(incoming),
            (_, late) => late.as_ref().map(|late| &late.incoming),
        }
    }

    /// Whether queries can be made before this part has come.
    pub(super) fn may_come_late(&self, shared: &Shared, incoming: &Incoming) -> bool {
        let Incoming::Fetching { part, .. } = incoming else { return false };
        let plan = &self.chosen.scheme.plan;
        part.kind == PartKind::Hint
            && part.len <= LONGEST
            && matches!(plan.offline, OfflinePhase::Download { .. })
            && (shared.parts.queries_first)(plan)
    }

    /// Lets lookups begin while the hint is on its way.
    pub(super) fn begin_without_hint(
        &mut self,
        shared: &mut Shared,
        incoming: Incoming,
    ) -> Result<()> {
        let len = self.chosen.scheme.plan.offline.len();
        let hint = Arc::new(LateHint::new(len));
        self.late = Some(Late { incoming, hint: Arc::clone(&hint) });
        // At most `LONGEST`.
        self.start_client(shared, hint, Arc::new(vec![0; len as usize]))
    }

    /// The late hint is there and verified: answers can be read.
    pub(super) fn hint_came(&mut self, stored: &Arc<dyn HintSource>) -> Result<()> {
        let Some(Late { hint, .. }) = self.late.take() else { return Ok(()) };
        if stored.len() > LONGEST {
            return Err(Error::corrupted("a stored hint is longer than the one that was fetched"));
        }
        let mut bytes = vec![0; stored.len() as usize];
        stored.read_at(0, &mut bytes)?;
        hint.set(bytes)
    }
}
