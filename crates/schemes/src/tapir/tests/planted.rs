//! A verifier that checks only what it needs: the mistake that the selective failure attack uses.

use super::super::order::Asked;
use super::{Form, TapirAnswer};
use privet_core::commit::Rejected;
use std::cell::RefCell;

/// A mistake planted in a client.
#[derive(Default)]
pub(in super::super) struct Planted {
    /// The honest answers to the open lookup. If they are set, the verifier takes from them
    /// everything that the record does not depend on: the first server's answer, and what the
    /// second server sent in the place of the wanted record.
    pub(super) overlooked: RefCell<Option<[TapirAnswer; 2]>>,
}

impl Planted {
    pub(in super::super) fn overlook<F: Form>(
        &self,
        asked: &Asked<F>,
        answers: [&TapirAnswer; 2],
        verified: Result<(), Rejected>,
    ) -> Result<(), Rejected> {
        let overlooked = self.overlooked.borrow();
        let Some([first, second]) = overlooked.as_ref() else { return verified };
        let (pass, wanted) = (
            asked.ready().parameters.pass(),
            asked.ready().hints.wanted_partition(asked.id()) as usize,
        );
        let patched = |own: &[u8], honest: &[u8]| {
            let each = own.len() / pass.partitions() as usize;
            let mut own = own.to_vec();
            own[wanted * each..][..each].copy_from_slice(&honest[wanted * each..][..each]);
            own
        };
        let patched = TapirAnswer {
            records: patched(&answers[1].records, &second.records),
            proof: patched(&answers[1].proof, &second.proof),
        };
        asked.verify([first, &patched]).unwrap()
    }
}
