//! A verifier that checks only what it needs: the mistake that the selective failure attack uses.
//! See [`crate::planted`].

use super::order::Asked;
use super::{Form, TapirAnswer};
use privet_core::commit::Rejected;
use privet_core::planted::PLANTED_LEAKS;
use std::cell::RefCell;

thread_local! {
    static OVERLOOKING: RefCell<Option<Overlooking>> = const { RefCell::new(None) };
}

/// What the verifiers of this thread take from honest answers.
pub struct Overlooking {
    /// The partition of the wanted record.
    pub wanted: usize,
    /// The honest answers, for everything that the record does not depend on: the first server's
    /// answer, and what the second server sent in the place of the wanted record.
    pub honest: [TapirAnswer; 2],
}

/// Plants the mistake in this thread, or removes it.
pub fn overlook(overlooking: Option<Overlooking>) {
    OVERLOOKING.set(overlooking);
}

/// The mistake.
#[inline]
pub(super) fn verified<F: Form>(
    asked: &Asked<F>,
    answers: [&TapirAnswer; 2],
    verified: Result<(), Rejected>,
) -> Result<(), Rejected> {
    if !PLANTED_LEAKS {
        return verified;
    }
    OVERLOOKING.with_borrow(|overlooking| {
        let Some(Overlooking { wanted, honest: [first, second] }) = overlooking else {
            return verified;
        };
        let partitions = asked.ready().parameters.pass().partitions() as usize;
        let patched = |own: &[u8], honest: &[u8]| {
            let each = own.len() / partitions;
            let mut own = own.to_vec();
            own[wanted * each..][..each].copy_from_slice(&honest[wanted * each..][..each]);
            own
        };
        let patched = TapirAnswer {
            records: patched(&answers[1].records, &second.records),
            proof: patched(&answers[1].proof, &second.proof),
        };
        asked.verify([first, &patched]).unwrap_or(verified)
    })
}
