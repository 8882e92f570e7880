//! Harmony end to end without a network.

mod known_answers;
mod lookups;
mod messages;
mod state;
mod statistics;

use super::generation::Generation;
use super::*;
use crate::conformance::hinted::{self, Hinted, follow, hinted_suite};
use crate::contract::{HintedClient as _, Message as _, Parameters as _};
use crate::test_tables::{Sequence, identity};
use privet_core::{Blame, SecretRng, TableShape, TableView};
use privet_kernels::Kernels;
use proptest::prelude::*;

pub(super) struct Tested;

pub(super) type World = hinted::World<Tested>;

hinted_suite!(suite: Tested);

pub(super) fn cut(records: u64, record_len: u64, segment_records: u64) -> HarmonyParameters {
    let shape = TableShape::new(records, record_len).unwrap();
    HarmonyParameters::with_segment_records(shape, segment_records).unwrap()
}

/// The same with fewer cells than tables of that size have.
pub(super) fn cut_small(
    records: u64,
    record_len: u64,
    segment_records: u64,
    cells_log2: u32,
) -> HarmonyParameters {
    cut(records, record_len, segment_records).with_cells_log2(cells_log2)
}

impl Hinted for Tested {
    type Parameters = HarmonyParameters;
    type Scheme = Harmony;
    type Server = HarmonyServer;
    type Client = HarmonyClient;
    type Preparation = HarmonyPreparation;
    /// Hints, and segments in the order in which they were used.
    type State = (Vec<u8>, Vec<u32>);

    const TELLS_IN_ORDER: bool = true;

    fn parameters(shape: TableShape, cut: Option<u64>) -> HarmonyParameters {
        match cut {
            Some(records) => HarmonyParameters::with_segment_records(shape, records),
            None => HarmonyParameters::new(shape),
        }
        .unwrap()
    }

    fn shape(parameters: &HarmonyParameters) -> TableShape {
        parameters.shape()
    }

    fn cut(parameters: &HarmonyParameters) -> u64 {
        parameters.segment_records().into()
    }

    fn cuts() -> BoxedStrategy<u64> {
        (1u32..=6).prop_map(|log2| 1 << log2).boxed()
    }

    fn server(parameters: &HarmonyParameters, table: TableView<'_>) -> HarmonyServer {
        HarmonyServer::new(parameters.clone(), table, Kernels::detect()).unwrap()
    }

    fn stream(world: &World) -> Option<Vec<u8>> {
        Some(world.records.clone())
    }

    fn state(client: &HarmonyClient) -> Self::State {
        (client.generation.encoded().to_vec(), client.history.used().to_vec())
    }

    fn check(world: &World, client: &HarmonyClient) {
        assert!(world.hints_fit(client), "hints and permutation do not fit each other");
    }

    /// One field is wrong at a time: the kind, the number, the cell (in a used segment, or beyond
    /// the last), a content, the wanted record, and where that moves.
    fn wrong_changes(world: &World, used: &[u8], good: &[u8]) -> Vec<Vec<u8>> {
        let number = |at: usize| u32::from_le_bytes(good[at..at + 4].try_into().unwrap());
        let wanted = 13 + 4 * (number(9) % world.parameters.segment_records()) as usize;
        let records = world.parameters.records();
        let cells = world.parameters.cells() as u32;
        let to = wanted + 4 * world.parameters.segment_records() as usize;
        let wrong: [(usize, &[u8]); 9] = [
            (0, &[2]),
            (0, &[7]),
            (1, &[2]),
            (9, &used[9..13]),
            (9, &(number(9) + cells).to_le_bytes()),
            (13, &(records + 1).to_le_bytes()),
            (wanted, &records.to_le_bytes()),
            (to, &[0xff; 4]),
            (to, &world.parameters.segments().to_le_bytes()),
        ];
        let changed = wrong.map(|(at, bytes)| {
            let mut change = good.to_vec();
            change[at..at + bytes.len()].copy_from_slice(bytes);
            change
        });
        changed.into()
    }
}

impl World {
    /// Whether every record lies in one unused segment, and every hint is the XOR of the records
    /// that lie in its segment: zero for those that are used.
    pub(super) fn hints_fit(&self, client: &HarmonyClient) -> bool {
        let records = self.parameters.records();
        let mut contents = client.history.all_contents();
        let segment_records = self.parameters.segment_records() as usize;
        let mut of_segments = contents.chunks_exact(segment_records);
        let mut fit = true;
        for segment in 0..self.parameters.segments() {
            let mut sum = vec![0; self.parameters.record_len()];
            if !client.history.is_used(segment) {
                let contents = of_segments.next().unwrap();
                for index in contents.iter().filter(|content| **content != records) {
                    let record = self.record(u64::from(*index));
                    sum.iter_mut().zip(record).for_each(|(sum, byte)| *sum ^= byte);
                }
            }
            fit &= client.generation.hint(segment) == sum;
        }
        contents.retain(|content| *content != records);
        contents.sort_unstable();
        fit && contents.into_iter().eq(0..records)
    }

    /// A client with a random permutation, whose hints have no values: for tests of what is asked.
    pub(super) fn blank_client(&mut self) -> HarmonyClient {
        let generation = Generation::fresh(&self.parameters, &mut self.rng).unwrap();
        self.load(generation.encoded())
    }
}
