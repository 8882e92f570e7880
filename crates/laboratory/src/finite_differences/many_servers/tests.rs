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
use crate::finite_differences::costs::{Choice, Setting};
use crate::stored_setup::StoredSetup;
use privet_core::{Blame, RecordIndex, Result, SecretRng, TableIdentity, TableShape, TableView};
use privet_kernels::Kernels;
use privet_kernels::memory::HugeBuffer;
use privet_schemes::conformance::stateless::{self, Stateless, Table, by_default, stateless_suite};
use privet_schemes::contract::{Answerer, Message, Parameters, StatelessClient};
use privet_schemes::test_tables::{identity, public_bytes};
use proptest::prelude::*;

struct Tested;

type World = stateless::World<Tested>;

stateless_suite!(Tested);

impl Stateless for Tested {
    type Scheme = FiniteDifferencesMany;
    type Server = ManyServersServer;
    type Client = ManyServersClient;
    type Form = Option<Setting>;

    const BOUND_TO_ITS_TABLE: bool = false;
    const INDEX_OF_ANOTHER_TABLE: Option<&'static str> = Some("no more words than their number");
    const COPIES: usize = 1;
    const CASES: u32 = 64;
    const THREADS: &'static [usize] = &[1, 3];

    fn tables() -> BoxedStrategy<Table<Self>> {
        let fields = prop::sample::select(&FIELDS[..]);
        let any = (fields, 3u32..=13, 1u32..=9, 1u32..=9, any::<u64>(), 1u64..=70);
        any.prop_map(|(field, servers, variables, degree, records, record_len)| {
            // Some 20 000 points.
            let variables = variables.min(20_000f64.log(f64::from(field)) as u32);
            let setting = setting(servers.min(field), field, variables, degree.min(variables));
            (records % setting.capacity() + 1, record_len, Some(setting))
        })
        .boxed()
    }

    fn small() -> Vec<Table<Self>> {
        by_default(&[(1, 1), (2, 20), (30, 3), (20, 9), (35, 7), (70, 300)])
    }

    fn kinds() -> Vec<Table<Self>> {
        let settings = [setting(3, 3, 7, 3), setting(4, 5, 4, 2), setting(6, 7, 3, 3)];
        let full = |setting: Setting| (setting.capacity(), 30, Some(setting));
        settings.map(full).into_iter().chain([(35, 7, Some(settings[0]))]).collect()
    }

    fn parameters(identity: &TableIdentity, form: &Self::Form) -> Result<ManyServersParameters> {
        crate::register();
        match form {
            Some(setting) => ManyServersParameters::with(identity.shape, *setting),
            None => ManyServersParameters::new(identity.shape, 3, &Choice::default()),
        }
    }

    fn setup(
        parameters: &ManyServersParameters,
        _form: &Self::Form,
        table: TableView<'_>,
        kernels: Kernels,
        threads: usize,
    ) -> Result<(ManyServersServer, Vec<u8>)> {
        let setup = ManyServersSetup::new(parameters.clone(), table, kernels, threads)?;
        Ok((setup.finish(&|_| {})?, Vec::new()))
    }

    fn client(
        parameters: &ManyServersParameters,
        _hint: &[u8],
        _kernels: Kernels,
    ) -> Result<ManyServersClient> {
        ManyServersClient::new(parameters.clone())
    }

    /// 5^20 points: that one of some ten thousand occurs twice has a probability below 10^-6.
    fn wide() -> (TableShape, ManyServersClient) {
        let setting = setting(4, 5, 20, 3);
        let shape = TableShape::new(setting.capacity(), 1).unwrap();
        let parameters = ManyServersParameters::with(shape, setting).unwrap();
        (shape, ManyServersClient::new(parameters).unwrap())
    }

    /// Two words for each variable.
    fn random_bytes(parameters: &ManyServersParameters) -> Option<usize> {
        Some(16 * parameters.variables() as usize)
    }

    // Points and symbols are numbers below some that are no powers of two.
    const ALL_BITS_FREE: bool = false;
}

/// As many records as there can be.
fn full(record_len: u64, setting: Setting) -> World {
    World::of(&(setting.capacity(), record_len, Some(setting)))
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
    ManyServersServer::new(parameters.clone(), StoredSetup::from(buffer), Kernels::detect())
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
