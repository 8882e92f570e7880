//! APIR-Matrix end to end without a network.

mod known_answers;
mod lies;
mod sizes;
mod statistics;

use super::tree::NODE_LEN;
use super::*;
use crate::conformance::stateless::{self, Stateless, Table, by_default, stateless_suite};
use crate::contract::{Answerer, Message, Record, Role, Setup, StatelessClient};
use crate::test_tables::{identity, public_bytes};
use privet_core::{Result, Secret, SecretRng, TableIdentity, TableView};
use privet_kernels::Kernels;
use proptest::prelude::*;
use zeroize::Zeroizing;

struct Tested;

type World = stateless::World<Tested>;

stateless_suite!(Tested);

impl Stateless for Tested {
    type Scheme = ApirMatrix;
    type Server = ApirMatrixServer;
    type Client = ApirMatrixClient;
    /// Records of a row.
    type Form = Option<u64>;

    const VERIFIES: bool = true;
    const BOUND_TO_ITS_TABLE: bool = false;
    const FORM_IS_ANNOUNCED: bool = false;
    const INDEX_OF_ANOTHER_TABLE: Option<&'static str> = Some("the index belongs to another table");

    fn tables() -> BoxedStrategy<Table<Self>> {
        let rows = (0u32..=12).prop_map(|records_log2| Some(1 << records_log2));
        prop_oneof![(1u64..=5_000, 1u64..=300, Just(None)), (1u64..=3_000, 1u64..=40, rows),]
            .boxed()
    }

    fn small() -> Vec<Table<Self>> {
        let of_one_record = (1..=24).map(|rows| (rows, 9, Some(1)));
        let rows = (0..=5).flat_map(|log2| [(16, 3, Some(1 << log2)), (17, 3, Some(1 << log2))]);
        by_default(&stateless::SMALL).into_iter().chain(of_one_record).chain(rows).collect()
    }

    fn kinds() -> Vec<Table<Self>> {
        let in_rows = [(3_001, 13, Some(8)), (20_000, 1, Some(16)), (700, 1_100, Some(1))];
        in_rows.into_iter().chain([(2_000, 16, None)]).collect()
    }

    fn parameters(identity: &TableIdentity, form: &Self::Form) -> Result<ApirMatrixParameters> {
        Ok(match form {
            Some(records) => ApirMatrixParameters::with_row_records(identity, *records),
            None => ApirMatrixParameters::new(identity),
        })
    }

    fn setup(
        parameters: &ApirMatrixParameters,
        _form: &Self::Form,
        table: TableView<'_>,
        kernels: Kernels,
        threads: usize,
    ) -> Result<(ApirMatrixServer, Vec<u8>)> {
        let setup = ApirMatrixSetup::new(parameters.clone(), table, kernels, threads)?;
        let precomputed = setup.precompute(&|_| ())?;
        let kept = precomputed.kept.as_bytes();
        assert_eq!(kept.len() as u64, setup.kept_len());
        Ok((setup.finish(&kept)?, precomputed.hint.as_bytes().into_owned()))
    }

    fn client(
        parameters: &ApirMatrixParameters,
        hint: &[u8],
        kernels: Kernels,
    ) -> Result<ApirMatrixClient> {
        ApirMatrixClient::new(parameters.clone(), &hint.to_vec(), kernels)
    }

    fn wide() -> (privet_core::TableShape, ApirMatrixClient) {
        let world = World::new(5_000, 5);
        // So few bits may be the same by chance.
        assert!(world.parameters().query_len() >= 16);
        (world.identity.shape, world.client)
    }

    fn random_bytes(parameters: &ApirMatrixParameters) -> Option<usize> {
        Some(parameters.query_len() as usize)
    }

    /// Bits for rows that do not exist.
    fn spare_bits(parameters: &ApirMatrixParameters) -> [Vec<usize>; 2] {
        let rows = parameters.rows() as usize;
        [(rows..rows.next_multiple_of(8)).collect(), Vec::new()]
    }
}

impl World {
    /// With rows of another number of records.
    fn in_rows(records: u64, record_len: u64, row_records: u64) -> Self {
        Self::of(&(records, record_len, Some(row_records)))
    }

    /// The query that selects one row.
    fn query_of_row(&self, row: u64) -> Vec<u8> {
        let mut bits = vec![0; self.parameters().query_len() as usize];
        bits[row as usize / 8] = 1 << (row % 8);
        bits
    }

    /// A row as it lies in the matrix.
    fn row(&self, row: u64) -> Vec<u8> {
        self.answer(0, &self.query_of_row(row))
    }
}

fn xor(one: &[u8], other: &[u8]) -> Vec<u8> {
    assert_eq!(one.len(), other.len());
    one.iter().zip(other).map(|(one, other)| one ^ other).collect()
}
