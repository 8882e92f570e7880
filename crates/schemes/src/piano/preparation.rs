//! The offline phase: the shuffled table streams by once, every hint takes in its records, and the
//! client keeps some records of every chunk (§2.4 of the paper).
//!
//! A backup of a chunk does not contain a record of that chunk, because the wanted record will take
//! that place. It takes in a record of the chunk like all other hints, and removes it when the
//! chunk is done. Touching some hundred hints once more costs less than a condition in the loop
//! over half a million.

use super::generation::{Layout, Offsets, key};
use super::{AnswerForm, PianoParameters, PianoScheme};
use crate::stored_hints::rest;
use crate::streamed_hints::{GrowingHints, StreamedHints};
use privet_core::codec::Reader;
use privet_core::hints::{Partitions, xor};
use privet_core::{Result, SecretRng};
use privet_kernels::Kernels;
use privet_kernels::subset_hints::PartitionGroup;
use std::marker::PhantomData;
use zeroize::Zeroizing;

/// The hints of a window in preparation.
pub type PianoPreparation<F> = StreamedHints<GrowingPiano<F>>;

/// The part that takes the stream in.
pub struct GrowingPiano<F> {
    parameters: PianoParameters,
    kernels: Kernels,
    layout: Layout,
    pub(super) generation: Zeroizing<Vec<u8>>,
    offsets: Offsets,
    form: PhantomData<F>,
}

impl<F: AnswerForm> GrowingPiano<F> {
    fn new(
        parameters: PianoParameters,
        generation: Zeroizing<Vec<u8>>,
        kernels: Kernels,
    ) -> Result<Self> {
        let layout = Layout::of::<F>(&parameters);
        let offsets = Offsets::new(&parameters, kernels)?;
        Ok(Self { parameters, kernels, layout, generation, offsets, form: PhantomData })
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

impl<F: AnswerForm> GrowingHints for GrowingPiano<F> {
    type Scheme = PianoScheme<F>;

    fn cut(parameters: &PianoParameters) -> &Partitions {
        parameters.cut()
    }

    fn begin(parameters: PianoParameters, rng: &mut SecretRng, kernels: Kernels) -> Result<Self> {
        let generation = Layout::of::<F>(&parameters).fresh(rng)?;
        Self::new(parameters, generation, kernels)
    }

    fn decode(
        parameters: PianoParameters,
        reader: &mut Reader<'_>,
        kernels: Kernels,
    ) -> Result<Self> {
        let generation = rest(reader)?;
        Layout::of::<F>(&parameters).check(&generation)?;
        Self::new(parameters, generation, kernels)
    }

    fn generation(&self) -> &[u8] {
        &self.generation
    }

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
}

fn record(records: &[u8], offset: u16, record_len: usize) -> &[u8] {
    &records[usize::from(offset) * record_len..][..record_len]
}
