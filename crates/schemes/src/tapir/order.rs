//! The order of things, by types: Query → Recover → (Query | UpdateHint), or the end.
//!
//! ```text
//!            ask                   every record of both answers verified
//!   Ready ─────────► Asked ──────────────────────────────────────────────► Ready
//!     │                │
//!     │ update         └── anything wrong ──► Ended
//!     ▼
//!   Ready, or Ended if the servers tell different ones
//! ```
//!
//! A client that is [`Ready`] has no way to take in an answer, and one that has [`Asked`] none to
//! ask again or to follow an update: there is no such method. What has [`Ended`] holds no hints any
//! more, and nothing leads out of it.
//!
//! TAPIR is SinglePass, verified: a [`Ready`] client owns a [`SinglePassClient`] and lets nothing
//! reach it that was not checked.

use super::change::Reason;
use super::{Form, TapirAnswer, TapirParameters, TapirQuery, generation};
use crate::contract::{HintedClient, ReservationId, Reserved};
use crate::singlepass::SinglePassClient;
use crate::singlepass::draws::Seed;
use privet_core::commit::{Opened, Rejected, VectorCommitment, Verifier};
use privet_core::{Error, RecordIndex, Result, SecretRng, TableDelta};
use zeroize::Zeroizing;

/// What a change leads to, or where the client still is if it is none that it can go through.
type OrStays<To, From> = std::result::Result<To, (From, Error)>;

/// A client between lookups.
pub(super) struct Ready<F: Form> {
    pub(super) parameters: TapirParameters<F>,
    /// Permutations, hints, and which lookups were made.
    pub(super) hints: SinglePassClient,
    pub(super) verifier: <F::Commitment as VectorCommitment>::Verifier,
    /// From which the permutations of later partitions are drawn.
    pub(super) later: Seed,
}

/// A client whose last query waits for its answers. The queries are known from the permutations,
/// which have changed since by this one lookup alone.
pub(super) struct Asked<F: Form> {
    ready: Box<Ready<F>>,
    id: ReservationId,
}

/// A client that met a lie.
pub(super) struct Ended {
    pub(super) reason: Reason,
    /// The lookup that it met it at, if its record was not asked for yet.
    pub(super) lookup: Option<ReservationId>,
}

impl<F: Form> Ready<F> {
    /// Query, Figure 5, but for the exchange in the permutations.
    pub(super) fn show(
        &self,
        index: &RecordIndex,
        rng: &mut SecretRng,
    ) -> Result<Reserved<TapirQuery>> {
        let Reserved { id, change, queries } = self.hints.reserve(index, rng)?;
        Ok(Reserved { id, change, queries: queries.into_iter().map(TapirQuery).collect() })
    }

    /// The exchange.
    pub(super) fn ask(mut self: Box<Self>, change: &[u8]) -> OrStays<Asked<F>, Box<Self>> {
        let before = self.hints.supply().used;
        match self.hints.apply(change) {
            Ok(()) if self.hints.supply().used == before + 1 => {
                Ok(Asked { ready: self, id: ReservationId(before) })
            }
            // Nothing else can be applied to a client without a lookup under way.
            Ok(()) => Err((self, Error::corrupted("the journal of hints is out of order"))),
            Err(error) => Err((self, error)),
        }
    }

    /// The state as a generation, given that of SinglePass.
    pub(super) fn written_down(&self, pass: &[u8]) -> Zeroizing<Vec<u8>> {
        let mut verifier = Vec::new();
        self.verifier.encode(&mut verifier);
        generation::encode(&self.later, &verifier, pass)
    }

    /// UpdateHint, Figure 6. Nothing is changed if it fails.
    pub(super) fn update(&mut self, delta: &TableDelta) -> Result<()> {
        delta.check_before(self.parameters.shape())?;
        let after = self.parameters.grown(delta.shape_after())?;
        // What can fail comes first.
        let permutations = self.hints.later_permutations(after.pass(), &self.later)?;
        self.verifier.update(after.commitment().vectors(), delta.commitments())?;
        self.hints.follow_grown(after.pass().clone(), permutations, delta)?;
        self.parameters = after;
        Ok(())
    }
}

impl<F: Form> Asked<F> {
    pub(super) fn id(&self) -> ReservationId {
        self.id
    }

    pub(super) fn ready(&self) -> &Ready<F> {
        &self.ready
    }

    /// Recon, Figure 5, lines 9 to 15: every record of both answers, in an order that depends on
    /// nothing.
    pub(super) fn verify(
        &self,
        answers: [&TapirAnswer; 2],
    ) -> Result<std::result::Result<(), Rejected>> {
        self.opened(answers, |verifier, answers| verifier.verify(answers))
    }

    /// The same, without finding out which answer is wrong.
    pub(super) fn accepts(&self, answers: [&TapirAnswer; 2]) -> Result<bool> {
        self.opened(answers, |verifier, answers| verifier.accepts(answers))
    }

    fn opened<T>(
        &self,
        [first, second]: [&TapirAnswer; 2],
        check: impl FnOnce(&<F::Commitment as VectorCommitment>::Verifier, [Opened<'_>; 2]) -> T,
    ) -> Result<T> {
        let [fresh, used] = self.ready.hints.shown(self.id).ok_or_else(|| {
            Error::corrupted("the hints do not know the query that waits for answers")
        })?;
        // Each server knows which offsets it was shown; both together they are secret.
        let (fresh, used) = (Zeroizing::new(fresh.offsets), Zeroizing::new(used.offsets));
        Ok(check(&self.ready.verifier, [first.opened(&fresh), second.opened(&used)]))
    }

    /// Lines 16 to 21, for answers that were verified: the state change.
    pub(super) fn brought(&self, [first, second]: [&TapirAnswer; 2]) -> Result<Zeroizing<Vec<u8>>> {
        self.ready.hints.settle_records(self.id, [&first.records, &second.records])
    }

    /// The state change takes place.
    pub(super) fn take_in(mut self, change: &[u8]) -> OrStays<Box<Ready<F>>, Self> {
        match self.ready.hints.apply(change) {
            Ok(()) if self.ready.hints.open().is_empty() => Ok(self.ready),
            Ok(()) => Err((self, Error::corrupted("the journal of hints is out of order"))),
            Err(error) => Err((self, error)),
        }
    }
}
