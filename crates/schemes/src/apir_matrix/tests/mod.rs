//! APIR-Matrix end to end without a network.

mod known_answers;
mod lies;
mod lookups;
mod messages;
mod statistics;

use super::tree::NODE_LEN;
use super::*;
use crate::contract::{Answerer, Message, Parameters, Record, Role, Setup, StatelessClient};
use crate::test_tables::{identity, look_up, public_bytes};
use privet_core::{RecordIndex, Secret, SecretRng, TableIdentity, TableView};
use privet_kernels::Kernels;
use zeroize::Zeroizing;

/// A table, two servers that hold it, and a client that knows its root.
struct World {
    identity: TableIdentity,
    table: Vec<u8>,
    servers: [ApirMatrixServer; 2],
    client: ApirMatrixClient,
    root: Vec<u8>,
}

/// A server, and what it announces.
fn server(
    parameters: &ApirMatrixParameters,
    view: TableView<'_>,
    threads: usize,
) -> (ApirMatrixServer, Vec<u8>) {
    let setup = ApirMatrixSetup::new(parameters.clone(), view, Kernels::detect(), threads).unwrap();
    let precomputed = setup.precompute(&|_| ()).unwrap();
    let kept = precomputed.kept.as_bytes();
    assert_eq!(kept.len() as u64, setup.kept_len());
    (setup.finish(&kept).unwrap(), precomputed.hint.as_bytes().into_owned())
}

impl World {
    fn new(records: u64, record_len: u64) -> Self {
        Self::of(ApirMatrixParameters::new(&identity(records, record_len)))
    }

    /// With rows of another number of records.
    fn in_rows(records: u64, record_len: u64, row_records: u64) -> Self {
        let identity = identity(records, record_len);
        Self::of(ApirMatrixParameters::with_row_records(&identity, row_records))
    }

    fn of(parameters: ApirMatrixParameters) -> Self {
        let table = public_bytes("a table", parameters.shape().bytes() as usize);
        Self::with_table(parameters, table)
    }

    fn with_table(parameters: ApirMatrixParameters, table: Vec<u8>) -> Self {
        let shape = parameters.shape();
        let identity = identity(shape.records(), shape.record_len());
        let view = TableView::new(identity, &table).unwrap();
        let (one, root) = server(&parameters, view, 1);
        let (other, same_root) = server(&parameters, view, 2);
        assert!(root == same_root, "two servers of one table announce the same");
        let client = ApirMatrixClient::new(parameters, &root, Kernels::detect()).unwrap();
        Self { identity, table, servers: [one, other], client, root }
    }

    fn parameters(&self) -> &ApirMatrixParameters {
        self.servers[0].parameters()
    }

    fn records(&self) -> u64 {
        self.identity.shape.records()
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
        let (queries, _) = self.client.query(&self.index(of), rng).unwrap();
        let bytes: Vec<Vec<u8>> = queries.iter().map(Message::encode).collect();
        bytes.try_into().unwrap()
    }

    fn query(&self, bytes: &[u8]) -> ApirMatrixQuery {
        ApirMatrixQuery::decode(self.parameters(), bytes).unwrap()
    }

    /// The bytes of one server's answer to one query.
    fn answer(&self, server: usize, query: &[u8]) -> Vec<u8> {
        let answers = self.servers[server].answer(Role(server as u8), &[self.query(query)]);
        assert_eq!(answers.len(), 1);
        answers[0].encode()
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

    fn check(&self, wanted: &[u64]) {
        let table = TableView::new(self.identity, &self.table).unwrap();
        look_up(&self.client, &self.servers.each_ref(), table, wanted);
    }
}

fn xor(one: &[u8], other: &[u8]) -> Vec<u8> {
    assert_eq!(one.len(), other.len());
    one.iter().zip(other).map(|(one, other)| one ^ other).collect()
}
