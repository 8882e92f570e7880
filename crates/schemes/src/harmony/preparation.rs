//! The offline phase: the table streams by once, in its natural order, and each record is XORed
//! onto the hint of the segment in which it lies.

use super::generation::Generation;
use super::{Harmony, HarmonyParameters};
use crate::stored_hints::rest;
use crate::streamed_hints::{GrowingHints, StreamedHints};
use privet_core::codec::Reader;
use privet_core::hints::Partitions;
use privet_core::{Result, SecretRng};
use privet_kernels::subset_hints::PartitionGroup;
use privet_kernels::{Kernels, SwapOrNot};
use zeroize::Zeroizing;

/// Indices that are permuted at once: many, and few enough to stay in the first-level cache.
const BATCH: usize = 1 << 11;

/// A generation of hints in preparation.
pub type HarmonyPreparation = StreamedHints<GrowingHarmony>;

/// The part that takes the stream in.
pub struct GrowingHarmony {
    parameters: HarmonyParameters,
    kernels: Kernels,
    permutation: SwapOrNot,
    generation: Generation,
    /// Room for indices, which become cells.
    cells: Zeroizing<Vec<u32>>,
}

impl GrowingHarmony {
    pub(super) fn new(
        parameters: HarmonyParameters,
        generation: Generation,
        kernels: Kernels,
    ) -> Self {
        let permutation = SwapOrNot::new(generation.key().expose(), parameters.cells_log2());
        let cells = Zeroizing::new(vec![0; BATCH]);
        Self { parameters, kernels, permutation, generation, cells }
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

impl GrowingHints for GrowingHarmony {
    type Scheme = Harmony;

    fn cut(parameters: &HarmonyParameters) -> &Partitions {
        parameters.pieces()
    }

    fn begin(parameters: HarmonyParameters, rng: &mut SecretRng, kernels: Kernels) -> Result<Self> {
        let generation = Generation::fresh(&parameters, rng)?;
        Ok(Self::new(parameters, generation, kernels))
    }

    fn decode(
        parameters: HarmonyParameters,
        reader: &mut Reader<'_>,
        kernels: Kernels,
    ) -> Result<Self> {
        let generation = Generation::decode(&parameters, rest(reader)?)?;
        Ok(Self::new(parameters, generation, kernels))
    }

    fn generation(&self) -> &[u8] {
        self.generation.encoded()
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
}
