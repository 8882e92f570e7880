//! Finite differences end to end without a network.

mod costs;
mod known_answers;
mod lookups;
mod statistics;
#[cfg(not(target_family = "wasm"))]
mod updates;
mod wrong_answers;

use super::costs::{Choice, Setting};
use super::*;
use costs::exactly;
use privet_core::{Blame, RecordIndex, Result, SecretRng, TableIdentity, TableShape, TableView};
use privet_kernels::Kernels;
use privet_schemes::conformance::stateless::{self, Stateless, Table, by_default, stateless_suite};
use privet_schemes::contract::{Answerer, Message, Parameters, Role, StatelessClient};
use privet_schemes::test_tables::identity;
use proptest::prelude::*;

/// The kind of records.
#[derive(Clone, Copy, Debug, Default)]
enum Kind {
    #[default]
    Bytes,
    Bits,
    Digits,
}

struct Tested;

type World = stateless::World<Tested>;

stateless_suite!(Tested);

impl Stateless for Tested {
    type Scheme = FiniteDifferences;
    type Server = FiniteDifferencesServer;
    type Client = FiniteDifferencesClient;
    type Form = (Kind, Option<Setting>);

    const BOUND_TO_ITS_TABLE: bool = false;
    const INDEX_OF_ANOTHER_TABLE: Option<&'static str> = Some("no more words than their number");
    const COPIES: usize = 1;
    const CASES: u32 = 32;
    const THREADS: &'static [usize] = &[1, 3];

    fn tables() -> BoxedStrategy<Table<Self>> {
        (1u64..=5_000, 1u64..=150, Just(Self::Form::default())).boxed()
    }

    fn small() -> Vec<Table<Self>> {
        let more = [(20, 2), (21, 64), (100, 4), (127, 8), (300, 33), (700, 1)];
        by_default(&[&stateless::SMALL[..], &more].concat())
    }

    fn kinds() -> Vec<Table<Self>> {
        let kinds = [
            (1, Kind::Bytes, 18),
            (1, Kind::Bits, 21),
            (1, Kind::Digits, 13),
            (16, Kind::Bytes, 16),
            (24, Kind::Bytes, 15),
            (100, Kind::Bytes, 13),
        ];
        let of = |(len, kind, variables)| (400, len, (kind, Some(exactly(variables, 5))));
        kinds.map(of).into()
    }

    fn parameters(
        identity: &TableIdentity,
        (kind, setting): &Self::Form,
    ) -> Result<FiniteDifferencesParameters> {
        crate::register();
        let one_bit = !matches!(kind, Kind::Bytes);
        let parameters = match setting {
            Some(setting) => FiniteDifferencesParameters::with(identity.shape, one_bit, *setting)?,
            None => FiniteDifferencesParameters::new(identity.shape, one_bit, &Choice::default())?,
        };
        if matches!(kind, Kind::Digits) { parameters.of_digits() } else { Ok(parameters) }
    }

    fn fit((kind, _): &Self::Form, table: &mut [u8]) {
        match kind {
            Kind::Bytes => {}
            Kind::Bits => table.iter_mut().for_each(|byte| *byte &= 1),
            Kind::Digits => table.iter_mut().for_each(|byte| *byte = *byte & 1 | b'0'),
        }
    }

    fn setup(
        parameters: &FiniteDifferencesParameters,
        _form: &Self::Form,
        table: TableView<'_>,
        kernels: Kernels,
        threads: usize,
    ) -> Result<(FiniteDifferencesServer, Vec<u8>)> {
        let setup = FiniteDifferencesSetup::new(parameters.clone(), table, kernels, threads)?;
        Ok((setup.finish(&|_| {})?, Vec::new()))
    }

    fn client(
        parameters: &FiniteDifferencesParameters,
        _hint: &[u8],
        _kernels: Kernels,
    ) -> Result<FiniteDifferencesClient> {
        Ok(FiniteDifferencesClient::new(parameters.clone()))
    }

    /// 2^48 points: that one of some thousand occurs twice has a probability below 10^-7.
    fn wide() -> (TableShape, FiniteDifferencesClient) {
        let setting = exactly(48, 3);
        let shape = TableShape::new(setting.capacity(), 1).unwrap();
        let parameters = FiniteDifferencesParameters::with(shape, false, setting).unwrap();
        (shape, FiniteDifferencesClient::new(parameters))
    }

    fn random_bytes(_parameters: &FiniteDifferencesParameters) -> Option<usize> {
        Some(8)
    }

    /// Variables that do not exist, and single bits after the last one.
    fn spare_bits(parameters: &FiniteDifferencesParameters) -> [Vec<usize>; 2] {
        let (variables, entries) =
            (parameters.variables() as usize, parameters.ball().count() as usize);
        let of_answers = match parameters.one_bit() {
            true => (entries..entries.next_multiple_of(8)).collect(),
            false => Vec::new(),
        };
        [(variables..variables.next_multiple_of(8)).collect(), of_answers]
    }
}

/// A table for these parameters, with its servers and a client.
fn world_of(parameters: &FiniteDifferencesParameters) -> World {
    let kind = match (parameters.one_bit(), parameters.zero()) {
        (false, _) => Kind::Bytes,
        (true, 0) => Kind::Bits,
        (true, _) => Kind::Digits,
    };
    let setting = exactly(parameters.variables(), parameters.degree());
    let shape = parameters.shape();
    World::of(&(shape.records(), shape.record_len(), (kind, Some(setting))))
}
