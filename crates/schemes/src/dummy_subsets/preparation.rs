//! The offline phase: the table streams by once, and every hint takes in its records (Algorithm 4
//! of the paper).

use super::generation::Generation;
use super::{DummySubsets, DummySubsetsParameters};
use crate::stored_hints::{rest, unreadable};
use crate::streamed_hints::{GrowingHints, StreamedHints};
use privet_core::codec::Reader;
use privet_core::hints::Partitions;
use privet_core::{Result, SecretRng};
use privet_kernels::Kernels;
use privet_kernels::subset_hints::PartitionGroup;

/// A generation of hints in preparation.
pub type DummySubsetsPreparation = StreamedHints<GrowingDummySubsets>;

/// The part that takes the stream in.
pub struct GrowingDummySubsets {
    parameters: DummySubsetsParameters,
    kernels: Kernels,
    pub(super) generation: Generation,
    cutoffs_ready: bool,
}

impl GrowingDummySubsets {
    fn compute_cutoffs(&mut self) {
        let (singles, partitions) = (self.parameters.singles(), self.parameters.partitions());
        let (key, cutoffs, _) = self.generation.parts_mut();
        let (for_singles, for_pairs) = cutoffs.split_at_mut(singles as usize);
        let (key, half) = (key.expose(), partitions / 2);
        self.kernels.subset_cutoffs(key, 0, partitions, half + 1, for_singles);
        self.kernels.subset_cutoffs(key, singles, partitions, half, for_pairs);
        self.generation.cutoffs_computed();
        self.cutoffs_ready = true;
    }
}

impl GrowingHints for GrowingDummySubsets {
    type Scheme = DummySubsets;

    fn cut(parameters: &DummySubsetsParameters) -> &Partitions {
        parameters.cut()
    }

    fn begin(
        parameters: DummySubsetsParameters,
        rng: &mut SecretRng,
        kernels: Kernels,
    ) -> Result<Self> {
        let generation = Generation::fresh(&parameters, rng)?;
        Ok(Self { parameters, kernels, generation, cutoffs_ready: false })
    }

    /// `whether cutoffs are computed (u8) ‖ generation so far`
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.cutoffs_ready));
        out.extend_from_slice(self.generation());
    }

    fn decode(
        parameters: DummySubsetsParameters,
        reader: &mut Reader<'_>,
        kernels: Kernels,
    ) -> Result<Self> {
        let cutoffs_ready = reader.u8().map_err(unreadable)? != 0;
        let generation = Generation::decode(&parameters, rest(reader)?)?;
        Ok(Self { parameters, kernels, generation, cutoffs_ready })
    }

    fn generation(&self) -> &[u8] {
        &self.generation.bytes
    }

    fn take_in(&mut self, first: u32, group: &mut PartitionGroup) {
        if !self.cutoffs_ready {
            self.compute_cutoffs();
        }
        let singles = self.parameters.singles();
        let (key, cutoffs, parities) = self.generation.parts_mut();
        let (single_cutoffs, pair_cutoffs) = cutoffs.split_at(singles as usize);
        let (single_parities, pair_parities) =
            parities.split_at_mut(singles as usize * self.parameters.cut().record_len());
        let key = key.expose();
        self.kernels.subset_accumulate_single(
            key,
            0,
            single_cutoffs,
            first,
            group,
            single_parities,
        );
        self.kernels.subset_accumulate_pairs(
            key,
            singles,
            pair_cutoffs,
            first,
            group,
            pair_parities,
        );
    }
}
