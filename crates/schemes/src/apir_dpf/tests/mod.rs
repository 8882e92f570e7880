//! APIR-DPF end to end without a network.

mod integrity;
mod known_answers;
mod lookups;
mod messages;
mod statistics;

use super::*;
use crate::contract::{Answerer, Message, Parameters, Record, Role, StatelessClient};
use crate::test_tables::{identity, look_up, public_bytes};
use privet_core::{
    Epoch, RecordIndex, Result, SecretRng, TableDigest, TableId, TableIdentity, TableView,
};
use privet_kernels::Kernels;

/// A table, two servers that hold it, and a client.
struct World {
    identity: TableIdentity,
    table: Vec<u8>,
    servers: [ApirDpfServer; 2],
    client: ApirDpfClient,
}

impl World {
    fn new(records: u64, record_len: u64) -> Self {
        let identity = identity(records, record_len);
        Self::with_table(identity, public_bytes("a table", identity.shape.bytes() as usize))
    }

    fn with_table(identity: TableIdentity, table: Vec<u8>) -> Self {
        let parameters = ApirDpfParameters::new(&identity);
        let kernels = Kernels::detect();
        let servers = [1, 2].map(|threads| server_of(identity, &table, threads));
        let client = ApirDpfClient::new(parameters, kernels);
        Self { identity, table, servers, client }
    }

    fn parameters(&self) -> &ApirDpfParameters {
        self.servers[0].parameters()
    }

    fn index(&self, of: u64) -> RecordIndex {
        RecordIndex::new(of, self.identity.shape).unwrap()
    }

    fn record(&self, of: u64) -> &[u8] {
        let len = self.identity.shape.record_len() as usize;
        &self.table[of as usize * len..][..len]
    }

    /// The encoded queries of one lookup, one for each server, and what the client keeps.
    fn queries(&self, of: u64, rng: &mut SecretRng) -> ([Vec<u8>; 2], ApirDpfPending) {
        let (queries, pending) = self.client.query(&self.index(of), rng).unwrap();
        let bytes: Vec<Vec<u8>> = queries.iter().map(Message::encode).collect();
        (bytes.try_into().unwrap(), pending)
    }

    fn query(&self, bytes: &[u8]) -> ApirDpfQuery {
        ApirDpfQuery::decode(self.parameters(), bytes).unwrap()
    }

    fn answer(&self, server: usize, queries: &[ApirDpfQuery]) -> Vec<ApirDpfAnswer> {
        self.servers[server].answer(Role(server as u8), queries)
    }

    /// One server's answer to one query, as it crosses the wire.
    fn answer_bytes(&self, server: usize, query: &[u8]) -> Vec<u8> {
        self.answer(server, &[self.query(query)]).remove(0).encode()
    }

    fn read_answer(&self, bytes: &[u8]) -> ApirDpfAnswer {
        ApirDpfAnswer::decode(self.parameters(), bytes).unwrap()
    }

    fn recover(&self, alpha: u128, answers: &[Vec<u8>; 2]) -> Result<Record> {
        let pending = ApirDpfPending { alpha: privet_core::Secret::new(alpha) };
        self.client.recover(pending, &answers.each_ref().map(|bytes| self.read_answer(bytes)))
    }

    fn check(&self, wanted: &[u64]) {
        let table = TableView::new(self.identity, &self.table).unwrap();
        look_up(&self.client, &self.servers.each_ref(), table, wanted);
    }
}

fn server_of(identity: TableIdentity, table: &[u8], threads: usize) -> ApirDpfServer {
    let view = TableView::new(identity, table).unwrap();
    let parameters = ApirDpfParameters::new(&identity);
    ApirDpfServer::new(parameters, view, Kernels::detect(), threads).unwrap()
}
