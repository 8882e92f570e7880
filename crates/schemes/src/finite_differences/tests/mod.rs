//! Finite differences end to end without a network.

mod costs;
mod known_answers;
mod lookups;
mod messages;
mod statistics;
#[cfg(not(target_family = "wasm"))]
mod updates;
mod wrong_answers;

use super::costs::{Choice, Setting};
use super::*;
use crate::contract::{Answerer, Message, Parameters, Role, StatelessClient};
use crate::test_tables::{identity, look_up, public_bytes};
use costs::exactly;
use privet_core::{Blame, RecordIndex, SecretRng, TableIdentity, TableView};
use privet_kernels::Kernels;
use privet_kernels::dispatch::Arm;

/// A table, a server that holds its points (two would be the same), and a client.
struct World {
    identity: TableIdentity,
    table: Vec<u8>,
    server: FiniteDifferencesServer,
    client: FiniteDifferencesClient,
}

impl World {
    fn new(records: u64, record_len: u64) -> Self {
        let shape = identity(records, record_len).shape;
        let parameters =
            FiniteDifferencesParameters::new(shape, false, &Choice::default()).unwrap();
        Self::with(parameters, Kernels::detect(), 1)
    }

    /// A table of that shape, of bits if the parameters say so.
    fn with(parameters: FiniteDifferencesParameters, kernels: Kernels, threads: usize) -> Self {
        let shape = parameters.shape();
        let identity = identity(shape.records(), shape.record_len());
        let mut table = public_bytes("a table", shape.bytes() as usize);
        if parameters.one_bit() {
            table.iter_mut().for_each(|byte| *byte = *byte & 1 | parameters.zero());
        }
        let view = TableView::new(identity, &table).unwrap();
        let setup =
            FiniteDifferencesSetup::new(parameters.clone(), view, kernels, threads).unwrap();
        let server = setup.finish(&|_| {}).unwrap();
        Self { identity, table, server, client: FiniteDifferencesClient::new(parameters) }
    }

    fn index(&self, of: u64) -> RecordIndex {
        RecordIndex::new(of, self.identity.shape).unwrap()
    }

    fn answer(&self, role: Role, query: &FiniteDifferencesQuery) -> FiniteDifferencesAnswer {
        let bytes = query.encode();
        let query = FiniteDifferencesQuery::decode(self.server.parameters(), &bytes).unwrap();
        self.server.answer(role, &[query]).remove(0)
    }

    fn check(&self, wanted: &[u64]) {
        let view = TableView::new(self.identity, &self.table).unwrap();
        look_up(&self.client, &[&self.server, &self.server], view, wanted);
    }
}
