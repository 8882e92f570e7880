//! APIR-DPF end to end without a network.

mod integrity;
mod known_answers;
mod messages;
mod statistics;

use super::*;
use crate::conformance::stateless::{self, Stateless, Table, by_default, stateless_suite};
use crate::contract::{Answerer, Message, Record, Role, StatelessClient};
use crate::test_tables::identity;
use privet_core::{Result, SecretRng, TableIdentity, TableView};
use privet_kernels::Kernels;
use proptest::prelude::*;

struct Tested;

type World = stateless::World<Tested>;

stateless_suite!(Tested);

impl Stateless for Tested {
    type Scheme = ApirDpf;
    type Server = ApirDpfServer;
    type Client = ApirDpfClient;
    /// Records of a chunk.
    type Form = Option<usize>;

    const VERIFIES: bool = true;
    const INDEX_OF_ANOTHER_TABLE: Option<&'static str> = Some("the index belongs to another table");

    fn tables() -> BoxedStrategy<Table<Self>> {
        let cut = (0u32..=12).prop_map(|records_log2| Some(1 << records_log2));
        prop_oneof![(1u64..=3_000, 1u64..=300, Just(None)), (1u64..=5_000, 1u64..=40, cut),].boxed()
    }

    /// Record lengths around multiples of 16 bytes, the length of an element.
    fn small() -> Vec<Table<Self>> {
        let lens = [1, 7, 15, 16, 17, 32, 33, 48, 64, 65, 100];
        let some = |records| lens.map(|record_len| (records, record_len));
        let sizes: Vec<_> = (1..=9).chain([15, 16, 17, 33]).flat_map(some).collect();
        by_default(&sizes)
    }

    fn kinds() -> Vec<Table<Self>> {
        // Small chunks, so that several threads have work.
        let cut = Some(64);
        vec![(3_001, 13, cut), (2_000, 32, cut), (700, 1_000, cut), (300, 37, None)]
    }

    fn parameters(identity: &TableIdentity, _form: &Self::Form) -> Result<ApirDpfParameters> {
        Ok(ApirDpfParameters::new(identity))
    }

    fn setup(
        parameters: &ApirDpfParameters,
        form: &Self::Form,
        table: TableView<'_>,
        kernels: Kernels,
        threads: usize,
    ) -> Result<(ApirDpfServer, Vec<u8>)> {
        let server = ApirDpfServer::new(parameters.clone(), table, kernels, threads)?;
        let server = match form {
            Some(chunk_records) => server.cut_into(*chunk_records),
            None => server,
        };
        Ok((server, Vec::new()))
    }

    fn client(
        parameters: &ApirDpfParameters,
        _hint: &[u8],
        kernels: Kernels,
    ) -> Result<ApirDpfClient> {
        Ok(ApirDpfClient::new(parameters.clone(), kernels))
    }

    fn random_bytes(_parameters: &ApirDpfParameters) -> Option<usize> {
        Some(64)
    }

    /// In the byte before the final word: bits for levels that do not exist.
    fn spare_bits(parameters: &ApirDpfParameters) -> [Vec<usize>; 2] {
        let depth = parameters.domain().depth() as usize;
        let controls = 8 * (ApirDpfQuery::encoded_len(parameters) - 16 - depth.div_ceil(8));
        [(controls + depth..controls + depth.next_multiple_of(8)).collect(), Vec::new()]
    }
}

impl World {
    fn recover(&self, alpha: u128, answers: &[Vec<u8>; 2]) -> Result<Record> {
        let pending = ApirDpfPending { alpha: privet_core::Secret::new(alpha) };
        self.client.recover(pending, &self.read(answers))
    }
}

fn server_of(identity: TableIdentity, table: &[u8], threads: usize) -> ApirDpfServer {
    let view = TableView::new(identity, table).unwrap();
    let parameters = ApirDpfParameters::new(&identity);
    ApirDpfServer::new(parameters, view, Kernels::detect(), threads).unwrap()
}
