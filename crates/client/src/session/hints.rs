//! Single-use hints: what a session keeps of them, apart from the scheme's client that holds them.

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

/// What a session keeps of single-use hints, apart from the scheme's client that holds them. Stays
/// empty for other schemes.
#[derive(Default)]
pub(super) struct HintsInUse {
    /// What an earlier process left unfinished.
    pub(super) resends: Resends,
    /// Why no query may be sent any more: storage failed.
    pub(super) broken: Option<Error>,
    /// Sent and unanswered queries, for hints that never run out.
    pub(super) unanswered: Unanswered,
    /// The generation that is being prepared. Always `None` for hints that never run out.
    pub(super) preparing: Option<Preparing>,
    /// What servers sent of the stretch of the stream that is being compared.
    pub(super) leads: Leads,
    /// Reservations whose records no lookup waits for: their process or their lookup ended. If such
    /// a record can be told, it is erased instead.
    pub(super) unwanted: BTreeSet<ReservationId>,
}

/// What to do with the next lookup.
pub(super) enum NextLookup {
    Go,
    Wait,
    Refuse(Error),
    /// Switch to the prepared next generation.
    Switch,
    /// Prepare the rest of the next generation now, and wait for it.
    AwaitHints,
    /// For hints that never run out: condense this generation into the next.
    Condense,
    /// Send earlier queries again first.
    SendAgain,
}

impl HintsInUse {
    /// No lookup waits for the record of this settled reservation; `depends`: the record cannot be
    /// told yet.
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

    /// The next byte of the stream that `server` must send, and where the fetch under way ends.
    pub(super) fn awaited(&self, server: usize) -> Option<(u64, u64)> {
        let (due, end) = self.preparing.as_ref().and_then(Preparing::fetch_range)?;
        Some((due + self.leads.ahead(server), end))
    }

    /// Has all unanswered queries sent again. False: that was done already, or there are none.
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

/// The digest that names the servers. What one server has seen of the hints, no other server may
/// see later, whether or not it computed them.
pub(super) fn hints_servers(options: &SessionOptions) -> [u8; 32] {
    match options.servers {
        1 => [0; 32],
        _ => options.addresses_digest.unwrap_or_default(),
    }
}

/// Stored hints, with all journal changes applied.
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

    /// Drops whatever is stored of the next generation.
    pub(super) fn begin_next_anew(&mut self) {
        self.next = NextGeneration::None;
    }

    /// Whether they serve no more lookups.
    pub(super) fn is_used_up(&mut self) -> bool {
        self.client.hints().is_none_or(|hints| hints.supply().left() == 0 && !hints.is_endless())
    }
}

pub(super) fn no_hints() -> Error {
    Error::api_misuse("the scheme was to have single-use hints and has none")
}

/// How many bytes are streamed for a generation, and how many of these each reply has, if replies
/// are streamed.
pub(super) fn stream_of(offline: OfflinePhase) -> (u64, Option<u64>) {
    let reply_len = match offline {
        OfflinePhase::Ask { reply_len, .. } => Some(reply_len as u64),
        _ => None,
    };
    (offline.len(), reply_len)
}

/// Which servers send the stream.
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

/// Erases the records that the `unwanted` reservations have, and leaves the others.
pub(super) fn drop_records(hints: &mut dyn ErasedHints, unwanted: &mut BTreeSet<ReservationId>) {
    unwanted.retain(|id| hints.take_record(*id).is_none());
}

/// `error`, and what it means for the hints that ended with it.
pub(super) fn for_good(error: &Error) -> Error {
    Error::integrity(format!(
        "{}. Nothing more is asked until the hints are erased",
        error.message().trim_end_matches('.')
    ))
    .because(Reason::HintsEnded)
}
