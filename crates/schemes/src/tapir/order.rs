//! The order of steps, enforced by types: Query → Recover → (Query | UpdateHint), or the end.
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
//! A client that is [`Ready`] cannot take in an answer, and a client that has [`Asked`] can neither
//! ask again nor follow an update: there are no such methods. A client that has [`Ended`] holds no
//! hints any more, and no method leads out of this state.
//!
//! TAPIR is verified SinglePass: a [`Ready`] client owns a [`SinglePassClient`], and passes only
//! checked data to it.

use super::change::Reason;
use super::{Form, TapirAnswer, TapirParameters, TapirQuery, generation};
use crate::contract::{HintedClient, ReservationId, Reserved};
use crate::singlepass::SinglePassClient;
use crate::singlepass::draws::Seed;
use privet_core::commit::{Opened, Rejected, VectorCommitment, Verifier};
use privet_core::{Error, RecordIndex, Result, SecretRng, TableDelta};
use zeroize::Zeroizing;

/// The state after a change; or the unchanged state and an error, if the change does not fit the
/// state.
type OrStays<To, From> = std::result::Result<To, (From, Error)>;

/// A client between lookups.
pub(super) struct Ready<F: Form> {
    pub(super) parameters: TapirParameters<F>,
    /// Permutations, hints, and which lookups were made.
    pub(super) hints: SinglePassClient,
    pub(super) verifier: <F::Commitment as VectorCommitment>::Verifier,
    /// The seed for the permutations of later partitions.
    pub(super) later: Seed,
}

/// A client whose last query waits for its answers. The queries follow from the permutations, which
/// have changed since then only by this lookup.
pub(super) struct Asked<F: Form> {
    ready: Box<Ready<F>>,
    id: ReservationId,
}

/// A client that has noticed a lie.
pub(super) struct Ended {
    pub(super) reason: Reason,
    /// The lookup at which it noticed the lie, if its result was not taken yet.
    pub(super) lookup: Option<ReservationId>,
}

impl<F: Form> Ready<F> {
    /// Query, Figure 5, without the exchange in the permutations.
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
            // No other change fits a client without an open lookup.
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

    /// UpdateHint, Figure 6. Changes nothing if it fails.
    pub(super) fn update(&mut self, delta: &TableDelta) -> Result<()> {
        delta.check_before(self.parameters.shape())?;
        let after = self.parameters.grown(delta.shape_after())?;
        // The steps that can fail come first.
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

    /// Recon, Figure 5, lines 9 to 15: checks every record of both answers, always in the same
    /// order.
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
        // Each server knows the offsets that it was shown; both lists together are secret.
        let (fresh, used) = (Zeroizing::new(fresh.offsets), Zeroizing::new(used.offsets));
        Ok(check(&self.ready.verifier, [first.opened(&fresh), second.opened(&used)]))
    }

    /// Lines 16 to 21, for answers that were verified: the state change.
    pub(super) fn brought(&self, [first, second]: [&TapirAnswer; 2]) -> Result<Zeroizing<Vec<u8>>> {
        self.ready.hints.settle_records(self.id, [&first.records, &second.records])
    }

    /// Applies the state change.
    pub(super) fn take_in(mut self, change: &[u8]) -> OrStays<Box<Ready<F>>, Self> {
        match self.ready.hints.apply(change) {
            Ok(()) if self.ready.hints.open().is_empty() => Ok(self.ready),
            Ok(()) => Err((self, Error::corrupted("the journal of hints is out of order"))),
            Err(error) => Err((self, error)),
        }
    }
}
