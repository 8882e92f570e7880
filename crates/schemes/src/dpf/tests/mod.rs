//! DPF-PIR end to end without a network.

mod known_answers;
mod lookups;
mod messages;
mod statistics;

use super::*;
use crate::contract::{Answerer, Message, Parameters, Role, StatelessClient};
use privet_core::{
    Epoch, RecordIndex, SecretRng, TableDigest, TableId, TableIdentity, TableShape, TableView,
};
use privet_kernels::Kernels;

fn identity(records: u64, record_len: u64) -> TableIdentity {
    let shape = TableShape::new(records, record_len).unwrap();
    TableIdentity { id: TableId([7; 16]), epoch: Epoch(0), digest: TableDigest([9; 32]), shape }
}

/// Bytes that anyone can compute: BLAKE3's output stream of a name.
fn public_bytes(name: &str, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(name.as_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

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

    /// Looks several records up in one batch, every message through its encoding, and compares each with the table.
    fn check(&self, wanted: &[u64]) {
        let mut rng = SecretRng::from_os().unwrap();
        let sent: Vec<_> = wanted.iter().map(|of| self.queries(*of, &mut rng)).collect();
        let [ones, others] = [0, 1].map(|server: usize| {
            let queries: Vec<_> = sent.iter().map(|both| self.query(&both[server])).collect();
            self.answer(server, &queries)
        });
        assert_eq!((ones.len(), others.len()), (wanted.len(), wanted.len()));
        for ((of, one), other) in wanted.iter().zip(ones).zip(others) {
            let record = self.client.recover(DpfPending, &[one, other]).unwrap();
            assert_eq!(*record, self.record(*of), "record {of} of {:?}", self.identity.shape);
        }
    }
}
