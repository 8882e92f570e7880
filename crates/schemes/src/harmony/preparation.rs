//! The offline phase: the table streams by once, in its natural order, and each record is XORed
//! onto the hint of the segment in which it lies.

use super::generation::Generation;
use super::{Harmony, HarmonyParameters};
use crate::contract::{Preparation, SchemeOf};
use crate::offline::StreamConsumer;
use privet_core::codec::Reader;
use privet_core::hints::PartitionStream;
use privet_core::{Error, Result, SecretRng};
use privet_kernels::subset_hints::PartitionGroup;
use privet_kernels::{Kernels, SwapOrNot};
use zeroize::Zeroizing;

/// Indices that are permuted at once: many, and few enough to stay in the first-level cache.
const BATCH: usize = 1 << 11;

/// A generation of hints in preparation.
pub struct HarmonyPreparation {
    stream: PartitionStream,
    hints: GrowingHints,
}

/// The part that takes the stream in.
struct GrowingHints {
    parameters: HarmonyParameters,
    kernels: Kernels,
    permutation: SwapOrNot,
    generation: Generation,
    /// Room for indices, which become cells.
    cells: Zeroizing<Vec<u32>>,
}

impl GrowingHints {
    fn new(parameters: HarmonyParameters, generation: Generation, kernels: Kernels) -> Self {
        let permutation = SwapOrNot::new(generation.key().expose(), parameters.cells_log2());
        let cells = Zeroizing::new(vec![0; BATCH]);
        Self { parameters, kernels, permutation, generation, cells }
    }

    fn take_in(&mut self, first_piece: u32, group: &mut PartitionGroup) {
        let (records, piece) = (self.parameters.records(), self.parameters.pieces().records());
        let mut first = u64::from(first_piece) * u64::from(piece);
        for number in 0..group.len() {
            // The last piece is padded.
            let arrived = u64::from(piece).min(u64::from(records) - first);
            let bytes = arrived as usize * self.parameters.record_len();
            let piece_bytes = &group.partition_mut(number)[..bytes];
            for several in piece_bytes.chunks(BATCH * self.parameters.record_len()) {
                self.take_in_records(first as u32, several);
                first += (several.len() / self.parameters.record_len()) as u64;
            }
        }
    }

    fn take_in_records(&mut self, first: u32, records: &[u8]) {
        let record_len = self.parameters.record_len();
        let cells = &mut self.cells[..records.len() / record_len];
        (first..).zip(cells.iter_mut()).for_each(|(index, cell)| *cell = index);
        self.kernels.permute(&self.permutation, cells);
        cells.iter_mut().for_each(|cell| *cell >>= self.parameters.segment_log2());
        self.kernels.scatter_xor(self.generation.hints_mut(), record_len, cells, records);
    }
}

impl StreamConsumer for HarmonyPreparation {
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

impl Preparation for HarmonyPreparation {
    fn begin(
        parameters: HarmonyParameters,
        records_digest: [u8; 32],
        rng: &mut SecretRng,
        kernels: Kernels,
    ) -> Result<Self> {
        let stream = PartitionStream::new(*parameters.pieces(), records_digest)?;
        let generation = Generation::fresh(&parameters, rng)?;
        Ok(Self { stream, hints: GrowingHints::new(parameters, generation, kernels) })
    }

    fn resume(
        parameters: HarmonyParameters,
        records_digest: [u8; 32],
        checkpoint: &[u8],
        kernels: Kernels,
    ) -> Result<Self> {
        let mut reader = Reader::new("a checkpoint", checkpoint);
        let stream = PartitionStream::decode(*parameters.pieces(), records_digest, &mut reader)?;
        let rest = Zeroizing::new(reader.bytes(reader.remaining())?.to_vec());
        let generation = Generation::decode(&parameters, rest)?;
        Ok(Self { stream, hints: GrowingHints::new(parameters, generation, kernels) })
    }

    /// `the stream so far ‖ generation so far`
    fn checkpoint(&self) -> Zeroizing<Vec<u8>> {
        let generation = self.hints.generation.encoded();
        // Reserves room for everything at once: a vector that grows would leave copies behind.
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
        Ok(Zeroizing::new(self.hints.generation.encoded().to_vec()))
    }
}

#[cfg(test)]
impl HarmonyPreparation {
    /// Another key, before anything has arrived.
    pub(super) fn set_key(&mut self, key: &[u8; 32]) {
        let GrowingHints { parameters, kernels, .. } = &self.hints;
        let generation = Generation::with_key(parameters, key).unwrap();
        self.hints = GrowingHints::new(parameters.clone(), generation, *kernels);
    }
}

impl SchemeOf for HarmonyPreparation {
    type Scheme = Harmony;
}
