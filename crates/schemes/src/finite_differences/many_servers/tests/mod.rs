//! Finite differences with many servers end to end without a network.

mod encoding;
mod known_answers;
mod lookups;
mod messages;
mod statistics;
mod truth_tables;
mod updates;
mod wrong_answers;

use super::encoding::Encoding;
use super::field::Field;
use super::*;
use crate::contract::{Answerer, Message, Parameters, Role, StatelessClient};
use crate::finite_differences::costs::{Choice, Setting};
use crate::finite_differences::points::Points;
use crate::test_tables::{identity, look_up, public_bytes};
use privet_core::{Blame, RecordIndex, SecretRng, TableIdentity, TableShape, TableView};
use privet_kernels::Kernels;
use privet_kernels::memory::HugeBuffer;

/// A table, a server that holds its points (as all of them do), and a client.
struct World {
    identity: TableIdentity,
    table: Vec<u8>,
    server: ManyServersServer,
    client: ManyServersClient,
}

impl World {
    fn new(records: u64, record_len: u64, setting: Setting) -> Self {
        let identity = identity(records, record_len);
        let table = public_bytes("a table", identity.shape.bytes() as usize);
        let parameters = ManyServersParameters::with(identity.shape, setting).unwrap();
        let points = points(&parameters, TableView::new(identity, &table).unwrap());
        let server = server(&parameters, &points).unwrap();
        let client = ManyServersClient::new(parameters).unwrap();
        Self { identity, table, server, client }
    }

    /// As many records as there can be.
    fn full(record_len: u64, setting: Setting) -> Self {
        Self::new(setting.capacity(), record_len, setting)
    }

    fn parameters(&self) -> &ManyServersParameters {
        self.server.parameters()
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
    fn queries(&self, of: u64, rng: &mut SecretRng) -> (Vec<Vec<u8>>, ManyServersPending) {
        let (queries, pending) = self.client.query(&self.index(of), rng).unwrap();
        (queries.iter().map(Message::encode).collect(), pending)
    }

    /// The encoded answer to an encoded query.
    fn answer(&self, query: &[u8]) -> Vec<u8> {
        let query = ManyServersQuery::decode(self.parameters(), query).unwrap();
        self.server.answer(Role(0), &[query]).remove(0).encode()
    }

    fn read(&self, answers: &[Vec<u8>]) -> Vec<ManyServersAnswer> {
        let read = |bytes: &Vec<u8>| ManyServersAnswer::decode(self.parameters(), bytes).unwrap();
        answers.iter().map(read).collect()
    }

    fn check(&self, wanted: &[u64]) {
        let table = TableView::new(self.identity, &self.table).unwrap();
        let servers = vec![&self.server; self.parameters().servers() as usize];
        look_up(&self.client, &servers, table, wanted);
    }

    fn check_all(&self) {
        self.check(&(0..self.records()).collect::<Vec<_>>());
    }
}

fn setting(servers: u32, field: u32, variables: u32, degree: u32) -> Setting {
    Setting { servers, field, variables, degree }
}

/// The truth table.
fn points(parameters: &ManyServersParameters, table: TableView<'_>) -> Vec<u8> {
    // What was there before must not matter.
    let mut points = vec![0xee; parameters.points_bytes() as usize];
    encode(parameters, table, &mut points, 1, &|_| {}).unwrap();
    points
}

fn server(
    parameters: &ManyServersParameters,
    points: &[u8],
) -> privet_core::Result<ManyServersServer> {
    let mut buffer = HugeBuffer::new_zeroed(points.len()).unwrap();
    buffer.copy_from_slice(points);
    ManyServersServer::new(parameters.clone(), Points::from(buffer), Kernels::detect())
}

/// The symbols of an entry.
fn symbols(parameters: &ManyServersParameters, entry: &[u8]) -> Vec<u8> {
    let (unpacked, per_byte) = (parameters.packing().unpacked(), parameters.packing().per_byte());
    entry.iter().flat_map(|byte| unpacked[*byte as usize][..per_byte].to_vec()).collect()
}

/// The polynomial's entry at a point, by the definition.
fn evaluate(parameters: &ManyServersParameters, table: &[u8], point: u64) -> Vec<u8> {
    let (field, encoding) = (parameters.field(), Encoding::new(parameters));
    let coordinate =
        |variable: u32| (point / u64::from(field).pow(variable) % u64::from(field)) as u32;
    let mut sums = vec![0u32; parameters.entry_len() * parameters.packing().per_byte()];
    let record_len = parameters.shape().record_len() as usize;
    for (record, word) in table.chunks(record_len).zip(parameters.words().words_from(0)) {
        let variables = (0..parameters.variables()).filter(|variable| word >> variable & 1 == 1);
        let product = variables.fold(1, |product, variable| product * coordinate(variable) % field);
        let mut entry = vec![0; parameters.entry_len()];
        encoding.write(record, &mut entry);
        for (sum, symbol) in sums.iter_mut().zip(symbols(parameters, &entry)) {
            *sum = (*sum + product * u32::from(symbol)) % field;
        }
    }
    let sums: Vec<u8> = sums.iter().map(|sum| *sum as u8).collect();
    let mut entry = vec![0; parameters.entry_len()];
    parameters.packing().pack(&sums, &mut entry);
    entry
}
