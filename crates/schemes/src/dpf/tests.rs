//! DPF-PIR end to end without a network.

mod known_answers;
mod messages;
mod statistics;

use super::*;
use crate::conformance::stateless::{self, Stateless, Table, by_default, stateless_suite};
use crate::contract::Message;
use crate::test_tables::identity;
use privet_core::{Result, SecretRng, TableIdentity, TableView};
use privet_kernels::Kernels;
use proptest::prelude::*;

struct Tested;

type World = stateless::World<Tested>;

stateless_suite!(Tested);

impl Stateless for Tested {
    type Scheme = Dpf;
    type Server = DpfServer;
    type Client = DpfClient;
    /// Leaves of a chunk, and levels of a group.
    type Form = Option<(usize, u32)>;

    const INDEX_OF_ANOTHER_TABLE: Option<&'static str> = Some("the index belongs to another table");

    fn tables() -> BoxedStrategy<Table<Self>> {
        let cut = (0u32..=8, 0u32..=4).prop_map(|(leaves_log2, levels)| (1 << leaves_log2, levels));
        prop_oneof![
            (1u64..=5_000, 1u64..=300, Just(None)),
            (1u64..=20_000, 1u64..=20, cut.prop_map(Some)),
        ]
        .boxed()
    }

    fn small() -> Vec<Table<Self>> {
        by_default(&stateless::SMALL)
    }

    fn kinds() -> Vec<Table<Self>> {
        // Small chunks, so that several threads have work.
        let cut = Some((2, 2));
        vec![(3_001, 13, cut), (40_000, 1, cut), (700, 1_000, cut), (2_000, 16, None)]
    }

    fn parameters(identity: &TableIdentity, _form: &Self::Form) -> Result<DpfParameters> {
        Ok(DpfParameters::new(identity))
    }

    fn setup(
        parameters: &DpfParameters,
        form: &Self::Form,
        table: TableView<'_>,
        kernels: Kernels,
        threads: usize,
    ) -> Result<(DpfServer, Vec<u8>)> {
        let server = DpfServer::new(parameters.clone(), table, kernels, threads)?;
        let server = match form {
            Some((leaves, group_levels)) => server.cut_into(128 * leaves, *group_levels),
            None => server,
        };
        Ok((server, Vec::new()))
    }

    fn client(parameters: &DpfParameters, _hint: &[u8], kernels: Kernels) -> Result<DpfClient> {
        Ok(DpfClient::new(parameters.clone(), kernels))
    }

    fn random_bytes(_parameters: &DpfParameters) -> Option<usize> {
        Some(48)
    }

    /// In the byte before the final word: bits for levels that do not exist.
    fn spare_bits(parameters: &DpfParameters) -> [Vec<usize>; 2] {
        let depth = parameters.domain().depth() as usize;
        let controls = 8 * (DpfQuery::encoded_len(parameters) - 16 - depth.div_ceil(8));
        [(controls + depth..controls + depth.next_multiple_of(8)).collect(), Vec::new()]
    }
}
