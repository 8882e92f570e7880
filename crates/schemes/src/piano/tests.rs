//! Piano end to end without a network, in both forms of answers.

mod known_answers;
mod lookups;
mod messages;
mod numbers;
mod state;
mod statistics;

use super::*;
use crate::conformance::hinted::{self, Hinted, hinted_suite};
use crate::contract::{
    Answerer as _, HintedClient as _, Message as _, Parameters as _, Preparation as _,
    ReservationId,
};
use crate::offline::StreamConsumer as _;
use privet_core::hints::{Exchange, StateChange};
use privet_core::{Epoch, SecretRng, TableDigest, TableId, TableIdentity, TableShape, TableView};
use privet_kernels::Kernels;
use proptest::prelude::*;
use std::marker::PhantomData;

/// Runs a test for either form.
macro_rules! for_both_forms {
    ($name:ident) => {
        mod $name {
            #[test]
            fn single_parity() {
                super::$name::<crate::piano::SingleParity>();
            }

            #[test]
            fn all_parities() {
                super::$name::<crate::piano::AllParities>();
            }
        }
    };
}
pub(super) use for_both_forms;

pub(super) struct Tested<F>(PhantomData<F>);

pub(super) type World<F> = hinted::World<Tested<F>>;

hinted_suite!(suite_of_single_parity: Tested<SingleParity>);
hinted_suite!(suite_of_all_parities: Tested<AllParities>);

pub(super) fn identity(shape: TableShape) -> TableIdentity {
    TableIdentity { id: TableId([7; 16]), epoch: Epoch(1), digest: TableDigest([8; 32]), shape }
}

pub(super) fn shape(records: u64, record_len: u64) -> TableShape {
    TableShape::new(records, record_len).unwrap()
}

/// Parameters of a cut into chunks of `chunk_records`.
pub(super) fn cut(records: u64, record_len: u64, chunk_records: u64) -> PianoParameters {
    let identity = identity(shape(records, record_len));
    PianoParameters::with_chunk_records(&identity, chunk_records).unwrap()
}

impl<F: AnswerForm> Hinted for Tested<F> {
    type Parameters = PianoParameters;
    type Scheme = PianoScheme<F>;
    type Server = PianoServer<F>;
    type Client = PianoClient<F>;
    type Preparation = PianoPreparation<F>;
    /// The table of hints, and what they contain.
    type State = (Vec<u8>, Vec<Vec<u16>>);

    fn parameters(shape: TableShape, cut: Option<u64>) -> PianoParameters {
        match cut {
            Some(records) => PianoParameters::with_chunk_records(&identity(shape), records),
            None => PianoParameters::new(&identity(shape)),
        }
        .unwrap()
    }

    fn shape(parameters: &PianoParameters) -> TableShape {
        parameters.shape()
    }

    fn cut(parameters: &PianoParameters) -> u64 {
        parameters.chunk_records().into()
    }

    fn cuts() -> BoxedStrategy<u64> {
        (0u32..=12).prop_map(|log2| 1 << log2).boxed()
    }

    fn server(parameters: &PianoParameters, table: TableView<'_>) -> PianoServer<F> {
        PianoServer::new(parameters.clone(), table, Kernels::detect()).unwrap()
    }

    fn stream(world: &World<F>) -> Option<Vec<u8>> {
        Some(world.server.streamed().unwrap().to_vec())
    }

    fn state(client: &PianoClient<F>) -> Self::State {
        (client.table.bytes().to_vec(), all_contents(client))
    }

    fn check(world: &World<F>, client: &PianoClient<F>) {
        assert_eq!(client.supply().total, world.parameters.window());
    }

    fn wrong_changes(world: &World<F>, used: &[u8], good: &[u8]) -> Vec<Vec<u8>> {
        let [used, exchange] = [used, good].map(|change| match StateChange::decode(change, 3, 3) {
            Ok(StateChange::Exchange(exchange)) => exchange,
            _ => panic!("a reservation is an exchange"),
        });
        let wrong = [
            Exchange { id: exchange.id + 1, ..exchange },
            Exchange { successor: exchange.successor + 1, ..exchange },
            Exchange { index: world.parameters.shape().records(), ..exchange },
            Exchange { note: exchange.id + 1, ..exchange },
            Exchange { hint: used.hint, ..exchange },
            // A backup without a hint; and ids that no hint has.
            Exchange { hint: None, ..exchange },
            Exchange { hint: Some(u32::MAX - 1), ..exchange },
        ];
        wrong.map(|exchange| StateChange::Exchange(exchange).encode().to_vec()).into()
    }
}

impl<F: AnswerForm> World<F> {
    pub(super) fn position(&self, index: u64) -> u64 {
        self.parameters.permutation().position(&self.index(index))
    }

    /// The records that lie in a chunk, in the order of their places.
    pub(super) fn indices_in_chunk(&self, chunk: u32) -> Vec<u64> {
        let start = u64::from(chunk) * u64::from(self.parameters.chunk_records());
        let end = (start + u64::from(self.parameters.chunk_records()))
            .min(self.parameters.shape().records());
        (start..end).map(|at| self.parameters.permutation().index_at(at)).collect()
    }
}

/// What each hint in use contains: for each chunk the offset of its record there.
pub(super) fn all_contents<F: AnswerForm>(client: &PianoClient<F>) -> Vec<Vec<u16>> {
    let hints = (0..client.table.len()).filter_map(|row| client.table.hint(row));
    let contents = hints.map(|hint| {
        let chunks = client.parameters.chunks() as usize;
        let (mut selects, mut offsets) = (vec![0; chunks], vec![0; chunks]);
        let records = client.parameters.chunk_records();
        let key = client.table.key();
        Kernels::detect().subset_rebuild(key, hint.id, records, &mut selects, &mut offsets);
        if let Some(extra) = hint.extra {
            let (chunk, offset) = client.parameters.cut().place(extra);
            offsets[chunk as usize] = offset as u16;
        }
        offsets
    });
    contents.collect()
}
