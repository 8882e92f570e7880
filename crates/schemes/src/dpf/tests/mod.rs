//! DPF-PIR end to end without a network.

mod known_answers;
mod lookups;
mod messages;
mod statistics;

use super::*;
use crate::contract::{Answerer, Message, Parameters, Role, StatelessClient};
use crate::test_tables::{identity, look_up, public_bytes};
use privet_core::{Epoch, RecordIndex, SecretRng, TableDigest, TableId, TableIdentity, TableView};
use privet_kernels::Kernels;

/// A table, two servers that hold it, and a client.
struct World {
    identity: TableIdentity,
    table: Vec<u8>,
    servers: [DpfServer; 2],
    client: DpfClient,
}

impl World {
    fn new(records: u64, record_len: u64) -> Self {
        let identity = identity(records, record_len);
        Self::with_table(identity, public_bytes("a table", identity.shape.bytes() as usize))
    }

    fn with_table(identity: TableIdentity, table: Vec<u8>) -> Self {
        let parameters = DpfParameters::new(&identity);
        let kernels = Kernels::detect();
        let view = TableView::new(identity, &table).unwrap();
        let server = |threads| DpfServer::new(parameters.clone(), view, kernels, threads).unwrap();
        let servers = [server(1), server(2)];
        let client = DpfClient::new(parameters, kernels);
        Self { identity, table, servers, client }
    }

    fn parameters(&self) -> &DpfParameters {
        self.servers[0].parameters()
    }

    fn index(&self, of: u64) -> RecordIndex {
        RecordIndex::new(of, self.identity.shape).unwrap()
    }

    fn record(&self, of: u64) -> &[u8] {
        let len = self.identity.shape.record_len() as usize;
        &self.table[of as usize * len..][..len]
    }

    /// The encoded queries of one lookup, one for each server.
    fn queries(&self, of: u64, rng: &mut SecretRng) -> [Vec<u8>; 2] {
        let (queries, DpfPending) = self.client.query(&self.index(of), rng).unwrap();
        let bytes: Vec<Vec<u8>> = queries.iter().map(Message::encode).collect();
        bytes.try_into().unwrap()
    }

    fn query(&self, bytes: &[u8]) -> DpfQuery {
        DpfQuery::decode(self.parameters(), bytes).unwrap()
    }

    fn answer(&self, server: usize, queries: &[DpfQuery]) -> Vec<DpfAnswer> {
        let answers = self.servers[server].answer(Role(server as u8), queries);
        let parameters = self.parameters();
        let through_the_wire = |answer: DpfAnswer| {
            let bytes = answer.encode();
            assert_eq!(bytes.len(), DpfAnswer::encoded_len(parameters));
            DpfAnswer::decode(parameters, &bytes).unwrap()
        };
        answers.into_iter().map(through_the_wire).collect()
    }

    fn check(&self, wanted: &[u64]) {
        let table = TableView::new(self.identity, &self.table).unwrap();
        look_up(&self.client, &self.servers.each_ref(), table, wanted);
    }
}
