//! A table that is open, or being opened: everything that a session has of it once it is chosen.
//!
//! The methods take messages and news of storage; each stands in the module of its subject. Their
//! errors end the session. When the session opens again, for a later version of the table, all of
//! this is dropped.

use super::calls::Purpose;
use super::epochs::{Followed, Following};
use super::hints::{HintsInUse, Loaded};
use super::interface::{ChosenTable, ExchangeId, FetchId, Request, Response};
use super::late::Late;
use super::records::RecordReader;
use super::served::Versions;
use super::shared::{Fault, Shared};
use crate::state::{PartKey, PartState, SavedHints};
use privet_core::{Error, Reason, Result};
use privet_schemes::contract::ReservationId;
use privet_schemes::offline::Download;
use privet_schemes::registry::{BlankMaker, ErasedClient, ErasedHints};
use privet_schemes::reservation::Receipt;
use privet_table::update_log::{Left, PublisherId, TableKeys};
use privet_wire::PartKind;
use std::time::Duration;

/// See the [module](self).
pub(super) struct Open {
    pub(super) chosen: ChosenTable,
    /// The versions that all servers serve, the latest first.
    pub(super) served: Vec<ChosenTable>,
    /// The epochs from the pinned version to the latest.
    pub(super) followed: Option<Followed>,
    /// Who signs for the newest version, if a succession or the epochs since the pin have led
    /// there.
    pub(super) keys: Option<TableKeys>,
    /// Who signed before, if a lineage has led from there.
    pub(super) first_publisher: Option<PublisherId>,
    /// The tables that are left when the pins move.
    pub(super) left: Vec<Left>,
    pub(super) versions: Versions,
    /// How to read records, once the layout is there.
    pub(super) records: Option<RecordReader>,
    pub(super) hints: HintsInUse,
    /// Bytes received before the first lookup, and useless bytes since.
    pub(super) came: u64,
    /// Makes queries ahead, if the scheme's client can.
    pub(super) blanks: Option<BlankMaker>,
    /// The hint, if it comes beside the first queries.
    pub(super) late: Option<Late>,
    pub(super) stage: OpenStage,
}

pub(super) enum OpenStage {
    /// Fetches the epochs that lead to the chosen version.
    Following(Box<Following>),
    /// Waits until the hints are those of the chosen version.
    MovingHints { loaded: Box<Loaded>, outstanding: usize },
    /// Waits for a part.
    Incoming(Incoming),
    /// Waits to hear what is stored of the single-use hints.
    OpeningHints,
    /// Prepares the first generation of hints.
    Preparing,
    /// Waits until the prepared generation is in use. `first`: lookups have not begun.
    Switching { first: bool },
    /// Lookups can be made.
    Ready(Box<dyn ErasedClient>),
    /// An answer failed verification. Waits until the end of the hints is durable, and then tells
    /// the error: first to the fetch that the answer was for, if there is one.
    Ending { fetch: Option<FetchId>, error: Error },
}

/// A part on its way from storage or a server.
pub(super) enum Incoming {
    /// Waits to hear what is stored of it. `again`: the stored part was once found damaged.
    Opening { part: PartKey, again: bool },
    /// Fetches the missing bytes.
    Fetching { part: PartKey, download: Box<Download> },
    /// Waits until it is stored as complete.
    Completing(PartKey),
}

impl Open {
    /// The session uses the first of the versions that are `served`.
    pub(super) fn new(chosen: ChosenTable, served: Vec<ChosenTable>, servers: usize) -> Self {
        let layout = chosen.part(PartKind::Layout, chosen.layout);
        Self {
            chosen,
            served,
            followed: None,
            keys: None,
            first_publisher: None,
            left: Vec::new(),
            versions: Versions::of(servers),
            records: None,
            hints: HintsInUse::default(),
            came: 0,
            blanks: None,
            late: None,
            stage: OpenStage::Incoming(Incoming::Opening { part: layout, again: false }),
        }
    }

    /// Whether lookups can be made.
    pub(super) fn is_ready(&self) -> bool {
        matches!(self.stage, OpenStage::Ready(_))
    }

    /// Whether nothing is under way that is worth waiting for.
    pub(super) fn is_at_rest(&self, shared: &Shared) -> bool {
        self.is_ready()
            && self.late.is_none()
            && shared.lookups.is_empty()
            && self.hints.is_at_rest()
            && !shared.calls.is_in_flight(Purpose::Background)
    }

    /// A response, or a piece of one, came. It is not a description.
    pub(super) fn heard(
        &mut self,
        shared: &mut Shared,
        exchange: ExchangeId,
        response: Response,
        now: Duration,
    ) -> Result<(), Fault> {
        let response = match response {
            Response::Chunk(chunk) => match shared.calls.new_part(exchange, chunk, now) {
                Some(chunk) => Response::Chunk(chunk),
                None => return Ok(()),
            },
            other => other,
        };
        let Some(call) = shared.calls.waiting_for(exchange) else { return Ok(()) };
        if let Purpose::Fetch | Purpose::Stream = call.purpose {
            self.came = self.came.saturating_add(match &response {
                Response::Chunk(chunk) => chunk.data.len() as u64,
                Response::Prepared(response) => response.reply.len() as u64,
                _ => 0,
            });
        }
        let asked = matches!(call.request, Request::Prepare(_));
        let outcome = match (call.purpose, response) {
            (Purpose::Fetch, Response::Chunk(chunk)) => {
                self.chunk(shared, exchange, &chunk, now).map_err(Fault::from)
            }
            (Purpose::Stream | Purpose::Background, Response::Chunk(chunk)) if !asked => {
                self.streamed_chunk(shared, exchange, chunk, now).map_err(Fault::from)
            }
            (Purpose::Fetch | Purpose::Stream | Purpose::Background, Response::End) if !asked => {
                self.stream_ended(shared, exchange, now)
            }
            (Purpose::Stream | Purpose::Background, Response::Prepared(response)) if asked => {
                self.replied(shared, exchange, &response, now)
            }
            (Purpose::Answer(_) | Purpose::Resend(_), Response::Answered(response)) => {
                self.answered(shared, exchange, response);
                Ok(())
            }
            _ => Err(shared.does_not_belong(call.server)),
        };
        if matches!(outcome, Err(Fault::Session(_))) || self.came <= shared.options.max_download {
            return outcome;
        }
        let error = Error::exhausted(format!(
            "the server sent more than the {} bytes that are allowed before the first lookup; if the table that you expect is that large, allow more",
            shared.options.max_download
        ));
        Err(Fault::Session(error.because(Reason::TooMuchToDownload)))
    }

    /// The stored state of the part that was to be opened or completed.
    pub(super) fn part_is(
        &mut self,
        shared: &mut Shared,
        state: PartState,
        now: Duration,
    ) -> Result<()> {
        let Some(incoming) = self.incoming() else { return Ok(()) };
        match (incoming, state) {
            (Incoming::Opening { part, again }, PartState::Complete(source)) => {
                let (part, again) = (part.clone(), *again);
                shared.progress(&part, part.len, false);
                self.use_part(shared, part, source, again, now)
            }
            (Incoming::Completing(part), PartState::Complete(source)) => {
                let part = part.clone();
                self.use_part(shared, part, source, true, now)
            }
            (Incoming::Opening { part, .. }, PartState::Partial(download)) => {
                let part = part.clone();
                self.fetch(shared, part, download, now)
            }
            // The session did not ask for it.
            _ => Ok(()),
        }
    }

    /// The stored state of the single-use hints that were to be opened or switched.
    pub(super) fn hints_are(
        &mut self,
        shared: &mut Shared,
        saved: SavedHints,
        now: Duration,
    ) -> Result<()> {
        if !matches!(self.stage, OpenStage::OpeningHints | OpenStage::Switching { .. }) {
            return Ok(());
        }
        let outcome = self.use_hints(shared, saved, now);
        shared.timetable.end_opening();
        outcome
    }

    /// The journal record of a fetch is durable: `receipt` proves it.
    pub(super) fn journal_record_is_durable(
        &mut self,
        shared: &mut Shared,
        fetch: FetchId,
        receipt: Receipt,
        now: Duration,
    ) {
        let Some(reservation) = shared.lookups.committed(fetch) else { return };
        match reservation.commit_with(receipt) {
            Ok(prepared) => self.ask(shared, fetch, prepared, now),
            Err(error) => self.fetch_ended(shared, fetch, Err(error)),
        }
    }

    /// The journal record of a fetch may not be durable.
    pub(super) fn journal_record_failed(
        &mut self,
        shared: &mut Shared,
        fetch: FetchId,
        error: Error,
    ) {
        if shared.lookups.committed(fetch).is_some() {
            self.hints.broken.get_or_insert(error.clone());
            self.fetch_ended(shared, fetch, Err(error));
        }
    }
}

/// Single-use hints, while lookups go on.
impl Open {
    /// The single-use hints, if the scheme has them and lookups go on.
    pub(super) fn hinted(&mut self) -> Option<&mut dyn ErasedHints> {
        match &mut self.stage {
            OpenStage::Ready(client) => client.hints(),
            _ => None,
        }
    }

    /// Whether no reservation is between its journal record and its record.
    pub(super) fn hints_are_idle(&self, shared: &Shared) -> bool {
        !shared.lookups.have_reservations() && self.hints.resends.is_empty()
    }

    /// Whether a reservation is between its journal record and the settling of its answers.
    pub(super) fn is_any_under_way(&self, shared: &Shared) -> bool {
        shared.lookups.reservations_under_way().next().is_some() || !self.hints.resends.is_empty()
    }

    /// Whether a reservation may still be answered in this session.
    pub(super) fn may_be_answered(&self, shared: &Shared, id: ReservationId) -> bool {
        let mut under_way = shared.lookups.reservations_under_way();
        under_way.any(|under_way| under_way == id) || self.hints.resends.contains(id)
    }
}
