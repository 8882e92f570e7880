//! Single-use hints: what a session keeps of them, beside the client that holds them.

use super::compared::{Leads, Sources};
use super::options::SessionOptions;
use super::preparation::Preparing;
use super::resends::{Resends, Unanswered};
use crate::state::NextGeneration;
use privet_core::{Error, Reason, Result};
use privet_schemes::contract::ReservationId;
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::{ErasedClient, ErasedHints};
use privet_schemes::reservation::StoredRecord;
use std::collections::BTreeSet;

/// What a session keeps of single-use hints, beside the client that holds them. Stays empty for
/// schemes of the other kind.
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
    /// Reservations whose records nobody waits for: their process ended, or their lookup did. A
    /// record of theirs that can be told is erased, not kept.
    pub(super) unwanted: BTreeSet<ReservationId>,
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
    /// Nobody waits for the record of this settled reservation; `depends`: which cannot be told
    /// yet.
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

    /// The next byte of the stream that is wanted from `server`, and where the fetch under way
    /// ends.
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

/// Hints that are kept, with all that happened to them.
pub(super) struct Loaded {
    pub(super) client: Box<dyn ErasedClient>,
    pub(super) unfinished: Vec<(ReservationId, StoredRecord)>,
    pub(super) next: NextGeneration,
    pub(super) state_len: u64,
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

pub(super) fn no_hints() -> Error {
    Error::api_misuse("the scheme was to have single-use hints and has none")
}

/// How many bytes are streamed for a generation, and how many of these each reply has, if they are
/// replies.
pub(super) fn stream_of(offline: OfflinePhase) -> (u64, Option<u64>) {
    let reply_len = match offline {
        OfflinePhase::Ask { reply_len, .. } => Some(reply_len as u64),
        _ => None,
    };
    (offline.len(), reply_len)
}

/// Which servers send what is streamed.
pub(super) fn sources(offline: OfflinePhase, options: &SessionOptions) -> Sources {
    match (offline, options.servers as u64) {
        (_, 1) => Sources::First,
        (OfflinePhase::StreamTable { .. } | OfflinePhase::StreamArranged { .. }, servers) => {
            match options.compare_streams {
                true => Sources::All(servers),
                false => Sources::Shares(servers),
            }
        }
        _ => Sources::First,
    }
}

/// Erases the records of those `unwanted` reservations that have one, and leaves the others.
pub(super) fn drop_records(hints: &mut dyn ErasedHints, unwanted: &mut BTreeSet<ReservationId>) {
    unwanted.retain(|id| hints.take_record(*id).is_none());
}

/// `error`, and what it means for hints that ended with it.
pub(super) fn for_good(error: &Error) -> Error {
    Error::integrity(format!(
        "{}. Nothing more is asked until the hints are erased",
        error.message().trim_end_matches('.')
    ))
    .because(Reason::HintsEnded)
}
