//! The offline phase: the shuffled table streams by once, every hint takes in its records, and the
//! client keeps some records of every chunk (§2.4 of the paper).
//!
//! A backup of a chunk does not contain a record of that chunk, because the wanted record will take
//! that place. It takes in a record of the chunk like all other hints, and removes it when the
//! chunk is done. Touching some hundred hints once more costs less than a condition in the loop
//! over half a million.

use super::generation::{Layout, Offsets, key};
use super::{AnswerForm, PianoParameters, PianoScheme};
use crate::contract::{Preparation, SchemeOf};
use crate::offline::StreamConsumer;
use privet_core::codec::Reader;
use privet_core::hints::{PartitionStream, xor};
use privet_core::{Error, Result, SecretRng};
use privet_kernels::Kernels;
use privet_kernels::subset_hints::PartitionGroup;
use std::marker::PhantomData;
use zeroize::Zeroizing;

/// The hints of a window in preparation.
pub struct PianoPreparation<F> {
    pub(super) hints: HintsInTheMaking<F>,
    stream: PartitionStream,
}

pub(super) struct HintsInTheMaking<F> {
    parameters: PianoParameters,
    kernels: Kernels,
    layout: Layout,
    pub(super) generation: Zeroizing<Vec<u8>>,
    offsets: Offsets,
    form: PhantomData<F>,
}

impl<F: AnswerForm> HintsInTheMaking<F> {
    fn new(
        parameters: PianoParameters,
        generation: Zeroizing<Vec<u8>>,
        kernels: Kernels,
    ) -> Result<Self> {
        let layout = Layout::of::<F>(&parameters);
        let offsets = Offsets::new(&parameters, kernels)?;
        Ok(Self { parameters, kernels, layout, generation, offsets, form: PhantomData })
    }

    /// Lets every hint take its records from a group of chunks.
    fn take_in(&mut self, first_chunk: u32, group: &mut PartitionGroup) {
        let key = key(&self.generation);
        let hints = &mut self.generation[self.layout.all_hints()];
        self.kernels.subset_accumulate_all(&key, 0, first_chunk, group, hints);
        for number in 0..group.len() {
            let chunk = first_chunk + number as u32;
            self.put_back(&key, chunk, group.partition_mut(number));
            if F::REPLACES_THE_WANTED {
                self.leave_pairs(&key, chunk, group.partition_mut(number));
            }
        }
    }

    /// Removes from the chunk's own backups what they took from it.
    fn put_back(&mut self, key: &[u8; 16], chunk: u32, records: &[u8]) {
        let spares = self.parameters.spares();
        let offsets = self.offsets.of(key, self.parameters.first_backup(chunk), chunk, spares);
        let first = chunk as usize * spares as usize;
        for (backup, offset) in (first..).zip(offsets.iter()) {
            let parity = &mut self.generation[self.layout.backup(backup)];
            xor(parity, record(records, *offset, parity.len()));
        }
    }

    /// Keeps the records of the chunk's pairs.
    fn leave_pairs(&mut self, key: &[u8; 16], chunk: u32, records: &[u8]) {
        let spares = self.parameters.spares();
        let offsets = self.offsets.of(key, self.parameters.first_pair(chunk), chunk, spares);
        let first = chunk as usize * spares as usize;
        for (pair, offset) in (first..).zip(offsets.iter()) {
            let kept = &mut self.generation[self.layout.pair(pair)];
            kept.copy_from_slice(record(records, *offset, kept.len()));
        }
    }
}

fn record(records: &[u8], offset: u16, record_len: usize) -> &[u8] {
    &records[usize::from(offset) * record_len..][..record_len]
}

impl<F: AnswerForm> StreamConsumer for PianoPreparation<F> {
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

impl<F: AnswerForm> Preparation for PianoPreparation<F> {
    fn begin(
        parameters: PianoParameters,
        records_digest: [u8; 32],
        rng: &mut SecretRng,
        kernels: Kernels,
    ) -> Result<Self> {
        let stream = PartitionStream::new(*parameters.cut(), records_digest)?;
        let generation = Layout::of::<F>(&parameters).fresh(rng)?;
        Ok(Self { hints: HintsInTheMaking::new(parameters, generation, kernels)?, stream })
    }

    fn resume(
        parameters: PianoParameters,
        records_digest: [u8; 32],
        checkpoint: &[u8],
        kernels: Kernels,
    ) -> Result<Self> {
        let mut reader = Reader::new("a checkpoint", checkpoint);
        let stream = PartitionStream::decode(*parameters.cut(), records_digest, &mut reader)?;
        let generation = Zeroizing::new(reader.bytes(reader.remaining())?.to_vec());
        Layout::of::<F>(&parameters).check(&generation)?;
        Ok(Self { hints: HintsInTheMaking::new(parameters, generation, kernels)?, stream })
    }

    /// `chunks taken in and digest so far ‖ generation so far`
    fn checkpoint(&self) -> Zeroizing<Vec<u8>> {
        // Reserves room for everything at once: a vector that grows would leave copies behind.
        let generation = &self.hints.generation;
        let mut bytes = Zeroizing::new(Vec::with_capacity(generation.len() + (1 << 17)));
        self.stream.encode(&mut bytes);
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
        Ok(self.hints.generation.clone())
    }
}

impl<F: AnswerForm> SchemeOf for PianoPreparation<F> {
    type Scheme = PianoScheme<F>;
}
