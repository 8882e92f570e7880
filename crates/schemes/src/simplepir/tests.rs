//! SimplePIR end to end without a network: the suite of schemes without state, known answers,
//! layouts.

use super::*;
use crate::conformance::known::Known;
use crate::conformance::stateless::{self, Stateless, Table, by_default, stateless_suite};
use crate::contract::Parameters;
use crate::test_tables::identity;
use privet_core::lwe::LEAST_SECURITY_BITS;
use privet_core::{
    Blame, Epoch, PublicSeed, Result, TableDigest, TableId, TableIdentity, TableView,
};
use privet_kernels::Kernels;
use proptest::prelude::*;
use std::sync::Arc;

struct Tested;

stateless_suite!(Tested);

impl Stateless for Tested {
    type Scheme = SimplePir;
    type Server = SimplePirServer;
    type Client = SimplePirClient;
    /// Records of a column.
    type Form = Option<u64>;

    const COPIES: usize = 1;
    const THREADS: &'static [usize] = &[1, 2, 3];

    fn tables() -> BoxedStrategy<Table<Self>> {
        let layouts = (1u64..=600)
            .prop_flat_map(|records| (Just(records), 1u64..=40, (1..=records).prop_map(Some)));
        prop_oneof![(1u64..=5_000, 1u64..=300, Just(None)), layouts].boxed()
    }

    fn small() -> Vec<Table<Self>> {
        by_default(&[(1, 1), (1, 300), (2, 1), (3, 7), (64, 1), (65, 3), (257, 2)])
    }

    fn kinds() -> Vec<Table<Self>> {
        by_default(&[(3_001, 13), (2_000, 16)])
    }

    fn parameters(identity: &TableIdentity, form: &Self::Form) -> Result<SimplePirParameters> {
        match form {
            Some(records) => SimplePirParameters::with_records_per_column(identity, *records),
            None => SimplePirParameters::new(identity),
        }
    }

    fn setup(
        parameters: &SimplePirParameters,
        _form: &Self::Form,
        table: TableView<'_>,
        kernels: Kernels,
        threads: usize,
    ) -> Result<(SimplePirServer, Vec<u8>)> {
        let server = SimplePirServer::new(parameters.clone(), table, kernels, threads)?;
        let hint = server.hint(|_| ())?.as_bytes().into_owned();
        Ok((server, hint))
    }

    fn client(
        parameters: &SimplePirParameters,
        hint: &[u8],
        kernels: Kernels,
    ) -> Result<SimplePirClient> {
        SimplePirClient::new(parameters.clone(), Arc::new(hint.to_vec()), kernels)
    }
}

/// `vectors/simplepir.json`: any other implementation of SimplePIR must get the same hint, query,
/// answer and record.
#[test]
fn known_answers() {
    for case in Known::cases(include_str!("../../../../vectors/simplepir.json"), 1) {
        let world =
            stateless::World::<Tested>::new(case.number("records"), case.number("record_len"));
        let parameters = world.parameters();
        assert_eq!(
            (parameters.rows(), parameters.columns()),
            (case.number("rows"), case.number("columns"))
        );
        case.assert("hint_blake3", &world.hint);
        world.check_known(&case);
    }
}

#[test]
fn shapes_beyond_the_proof_are_refused_with_numbers() {
    // 2^48 bytes in square form would be 2^24 columns. With columns at their limit of 2^18, the
    // hint exceeds its limit.
    let error = SimplePirParameters::new(&identity(1 << 40, 256)).unwrap_err().to_string();
    assert!(error.contains("1073741824 rows") && error.contains("16777216 rows"), "{error}");
    assert!(error.contains("cut the table"), "{error}");
    assert!(SimplePirParameters::with_records_per_column(&identity(10, 1), 11).is_err());
    assert!(SimplePirParameters::with_records_per_column(&identity(10, 1), 0).is_err());
}

#[test]
fn layouts_below_128_bits_are_refused() {
    let identity = identity((1 << 18) + 1, 4096);
    let refusal = SimplePirParameters::with_records_per_column(&identity, 1).unwrap_err();
    assert_eq!(refusal.blame(), Blame::ApiMisuse);
    let said = refusal.to_string();
    for part in ["262145 columns", "1 to 262144", "128 bits", "more records into each column"] {
        assert!(said.contains(part), "{part} is not in: {said}");
    }
    let announced = SimplePirParameters::decode(&identity, &1u64.to_le_bytes());
    assert_eq!(announced.err().unwrap().blame(), Blame::PeerMisbehaved);

    let widest = SimplePirParameters::with_records_per_column(&identity, 2).unwrap();
    assert!(widest.encryption().error().security_bits() >= LEAST_SECURITY_BITS);
    assert!(widest.failure_bound_log2() - 12.0 <= -64.0, "a byte of 4096");
}

#[test]
fn large_tables_get_a_safe_layout() {
    // (records, bytes of a record, columns, deviation): from 1 GiB to 4 TiB.
    for (records, record_len, columns, deviation) in [
        (1 << 25, 32, 1 << 15, 34.84),
        (1 << 30, 1, 1 << 15, 34.84),
        (1 << 29, 32, 1 << 17, 18.89),
        (1 << 31, 32, 1 << 18, 11.95),
        (1 << 35, 64, 1 << 18, 11.95),
        (1 << 37, 32, 1 << 18, 11.95),
        (1 << 20, 1 << 20, 1 << 18, 11.95),
        (300_000, 1 << 20, 150_000, 11.95),
        (1_000, 1 << 20, 1_000, 34.84),
    ] {
        let parameters = SimplePirParameters::new(&identity(records, record_len)).unwrap();
        assert_eq!(parameters.columns(), columns, "{records} x {record_len}");
        let error = parameters.encryption().error();
        assert!((error.deviation() - deviation).abs() < 0.01, "{records} x {record_len}");
        assert!(error.security_bits() >= LEAST_SECURITY_BITS);
        let of_byte = parameters.failure_bound_log2() - (record_len as f64).log2();
        assert!(of_byte <= -64.0, "{records} x {record_len}: 2^{of_byte}");
    }
}

#[test]
fn the_default_layout_is_near_square_and_whole_records_fit_a_column() {
    for (records, record_len) in
        [(1 << 25, 32), (1 << 30, 1), (1_000, 100_000), (12_345_678, 77), (1, 1)]
    {
        let parameters = SimplePirParameters::new(&identity(records, record_len)).unwrap();
        assert_eq!(parameters.rows() % record_len, 0);
        assert!(parameters.rows() * parameters.columns() >= records * record_len);
        let (longer, shorter) = (
            parameters.rows().max(parameters.columns()),
            parameters.rows().min(parameters.columns()),
        );
        assert!(
            longer <= 3 * shorter || record_len > parameters.columns(),
            "{} x {}",
            parameters.rows(),
            parameters.columns()
        );
    }
}

#[test]
fn the_public_matrix_follows_from_the_table_id_alone() {
    let seed = |identity: &TableIdentity| crate::contract::table_seed("test", identity);
    let mut other_epoch = identity(10, 10);
    other_epoch.epoch = Epoch(5);
    other_epoch.digest = TableDigest([1; 32]);
    assert_eq!(
        seed(&identity(10, 10)),
        seed(&other_epoch),
        "updates must not change the matrix, or hints could not be patched"
    );
    let mut other_table = identity(10, 10);
    other_table.id = TableId([8; 16]);
    assert_ne!(seed(&identity(10, 10)), seed(&other_table));
    let _: PublicSeed = seed(&other_table);
}
