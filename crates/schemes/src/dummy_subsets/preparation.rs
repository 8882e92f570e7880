//! The offline phase: the table streams by once, and every hint takes in its records (Algorithm 4
//! of the paper).

use super::generation::Generation;
use super::{DummySubsets, DummySubsetsParameters};
use crate::contract::{Preparation, SchemeOf};
use crate::offline::StreamConsumer;
use privet_core::codec::Reader;
use privet_core::hints::PartitionStream;
use privet_core::{Error, Result, SecretRng};
use privet_kernels::Kernels;
use privet_kernels::subset_hints::PartitionGroup;
use zeroize::Zeroizing;

/// A generation of hints in preparation.
pub struct DummySubsetsPreparation {
    stream: PartitionStream,
    hints: GrowingHints,
}

/// The part that takes the stream in.
struct GrowingHints {
    parameters: DummySubsetsParameters,
    kernels: Kernels,
    generation: Generation,
    cutoffs_ready: bool,
}

impl GrowingHints {
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

    /// Lets every hint take its records from the group.
    fn take_in(&mut self, first: u32, group: &PartitionGroup) {
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

impl StreamConsumer for DummySubsetsPreparation {
    fn next_offset(&self) -> u64 {
        self.stream.next_offset()
    }

    fn absorb(&mut self, offset: u64, chunk: &[u8]) -> Result<()> {
        let hints = &mut self.hints;
        self.stream.absorb(offset, chunk, |first, group| hints.take_in(first, group))
    }

    fn finish(&mut self) -> Result<()> {
        self.stream.finish()
    }
}

impl Preparation for DummySubsetsPreparation {
    fn begin(
        parameters: DummySubsetsParameters,
        records_digest: [u8; 32],
        rng: &mut SecretRng,
        kernels: Kernels,
    ) -> Result<Self> {
        let stream = PartitionStream::new(*parameters.cut(), records_digest)?;
        let generation = Generation::fresh(&parameters, rng)?;
        Ok(Self {
            stream,
            hints: GrowingHints { parameters, kernels, generation, cutoffs_ready: false },
        })
    }

    fn resume(
        parameters: DummySubsetsParameters,
        records_digest: [u8; 32],
        checkpoint: &[u8],
        kernels: Kernels,
    ) -> Result<Self> {
        let mut reader = Reader::new("a checkpoint", checkpoint);
        let stream = PartitionStream::decode(*parameters.cut(), records_digest, &mut reader)?;
        let read = |error: Error| {
            Error::corrupted("the checkpoint of unfinished hints cannot be read").caused_by(error)
        };
        let cutoffs_ready = reader.u8().map_err(read)? != 0;
        let rest = Zeroizing::new(reader.bytes(reader.remaining()).map_err(read)?.to_vec());
        let generation = Generation::decode(&parameters, rest)?;
        Ok(Self { stream, hints: GrowingHints { parameters, kernels, generation, cutoffs_ready } })
    }

    /// `the stream so far ‖ whether cutoffs are computed (u8) ‖ generation so far`
    fn checkpoint(&self) -> Zeroizing<Vec<u8>> {
        let generation = self.hints.generation.encoded();
        // Reserves room for everything at once: a vector that grows would leave copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(generation.len() + (1 << 17)));
        self.stream.encode(&mut bytes);
        bytes.push(u8::from(self.hints.cutoffs_ready));
        bytes.extend_from_slice(generation);
        bytes
    }

    fn checkpoint_offset(&self) -> u64 {
        self.stream.checkpoint_offset()
    }

    fn generation(&self) -> Result<Zeroizing<Vec<u8>>> {
        if !self.stream.is_finished() {
            return Err(Error::api_misuse(
                "a generation of hints is asked for before it is finished",
            ));
        }
        Ok(Zeroizing::new(self.hints.generation.encoded().to_vec()))
    }
}

#[cfg(test)]
impl DummySubsetsPreparation {
    pub(super) fn generation_mut(&mut self) -> &mut Generation {
        &mut self.hints.generation
    }
}

impl SchemeOf for DummySubsetsPreparation {
    type Scheme = DummySubsets;
}
