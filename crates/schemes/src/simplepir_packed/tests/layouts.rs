//! Layouts: the default, and those that are refused.

use super::super::layout::MatrixLayout;
use super::*;
use crate::registry::SchemePlan;
use std::collections::HashSet;

const BOTH: [Masks; 2] = [Masks::Downloaded, Masks::OnDemand];

fn layout(records: u64, record_len: u64) -> SimplePirPackedParameters {
    layout_with(Masks::Downloaded, records, record_len)
}

fn layout_with(masks: Masks, records: u64, record_len: u64) -> SimplePirPackedParameters {
    SimplePirPackedParameters::with_masks(&identity(records, record_len), masks).unwrap()
}

/// Bytes sent, received, and fetched once.
fn sizes(parameters: &SimplePirPackedParameters) -> [u64; 3] {
    [
        SimplePirPackedQuery::encoded_len(parameters) as u64,
        SimplePirPackedAnswer::encoded_len(parameters) as u64,
        parameters.hint_bytes(),
    ]
}

#[test]
fn the_shapes_that_are_published_get_the_sizes_that_are_documented() {
    // KiB sent, received, and fetched once; bits of a word; columns and rows.
    for (records, record_len, kib, bits, shape) in [
        (1 << 20, 32, [36.7, 7.5, 12.8], 25, [5_462, 6_144]),
        (1 << 17, 1 << 10, [54.7, 15.0, 25.5], 26, [10_923, 12_288]),
        (1 << 25, 32, [124.0, 40.0, 68.0], 26, [1 << 15, 1 << 15]),
        (1 << 30, 1, [124.0, 40.0, 68.0], 26, [1 << 15, 1 << 15]),
        (1 << 28, 32, [327.2, 112.5, 191.3], 27, [93_207, 92_160]),
    ] {
        let parameters = layout(records, record_len);
        let found = sizes(&parameters).map(|bytes| (bytes as f64 / 102.4).round() / 10.0);
        assert_eq!(found, kib, "{records} x {record_len}");
        assert_eq!(parameters.query_bits(), bits, "{records} x {record_len}");
        let found = [parameters.columns(), parameters.rows()];
        assert_eq!(found, shape, "{records} x {record_len}");
    }
}

/// A lookup of a client that has nothing, in all: KiB sent, received, and fetched.
#[test]
fn masks_on_demand_have_the_sizes_that_are_documented() {
    for (records, record_len, kib, bits, shape) in [
        (1 << 20, 32, [31.1, 16.6, 12.8], 25, [3_641, 9_216]),
        (1 << 25, 32, [84.5, 69.8, 12.8], 26, [20_312, 52_864]),
        (1 << 28, 32, [207.1, 190.3, 12.8], 27, [56_680, 151_552]),
    ] {
        let parameters = layout_with(Masks::OnDemand, records, record_len);
        let found = sizes(&parameters).map(|bytes| (bytes as f64 / 102.4).round() / 10.0);
        let shape_found = [parameters.columns(), parameters.rows()];
        assert_eq!((found, shape_found), (kib, shape), "{records} x {record_len}");
        assert_eq!(parameters.query_bits(), bits, "{records} x {record_len}");
    }
    let total = |masks, records, record_len| {
        let bytes: u64 = sizes(&layout_with(masks, records, record_len)).iter().sum();
        (bytes as f64 / 1024.0).round()
    };
    for (records, record_len, downloaded, on_demand) in
        [(1 << 25, 32, 232.0, 167.0), (1 << 30, 1, 232.0, 167.0), (1 << 28, 32, 631.0, 410.0)]
    {
        assert_eq!(total(Masks::Downloaded, records, record_len), downloaded);
        assert_eq!(total(Masks::OnDemand, records, record_len), on_demand);
    }
}

/// The masks are three more blocks, of few columns, whatever the table.
#[test]
fn masks_on_demand_are_little_more_work() {
    for (records, record_len) in [(1 << 25, 32), (1 << 28, 32), (1 << 30, 1)] {
        let parameters = layout_with(Masks::OnDemand, records, record_len);
        let masks = parameters.masks_layout().unwrap();
        assert_eq!((masks.rows(), masks.blocks()), (4_352, 3));
        assert_eq!(masks.columns(), parameters.blocks());
        let share = (masks.rows() * masks.pass_columns()) as f64
            / (parameters.rows() * parameters.table_layout().pass_columns()) as f64;
        assert!(share < 0.025, "{records} x {record_len}: {share}");
    }
}

/// No block has rows of two units, so what is recovered is all that a record needs.
#[test]
fn a_record_lies_in_one_unit() {
    for (record_len, unit_rows, blocks) in
        [(1, 2048, 1), (32, 2048, 1), (77, 2002, 1), (1025, 1025, 1), (2048, 2048, 1)]
            .into_iter()
            .chain([(2049, 2049, 2), (5_000, 5_000, 3)])
    {
        let parameters = layout_with(Masks::OnDemand, (1 << 30) / record_len, record_len);
        let layout = parameters.table_layout();
        assert_eq!((layout.unit_rows(), layout.blocks_per_unit()), (unit_rows, blocks));
        assert!(layout.unit_rows().is_multiple_of(record_len));
        let masks = parameters.masks_layout().unwrap();
        assert_eq!([masks.rows(), masks.columns()], [4352 * blocks, layout.units()]);
    }
    // The most units that a column can have: the security estimate counts 1024.
    let most = identity(1023, 1025);
    let most = SimplePirPackedParameters::with_records_per_column(&most, Masks::OnDemand, 1023);
    assert_eq!(most.unwrap().masks_layout().unwrap().columns(), 1023);
}

/// One secret hides both vectors. If two columns shared a polynomial, the difference of their words
/// would show where they are.
#[test]
fn all_columns_have_coefficients_of_their_own() {
    let parameters = layout_with(Masks::OnDemand, 1 << 20, 32);
    let mut seen = HashSet::new();
    for layout in parameters.matrices() {
        let public = layout.public(Kernels::detect());
        assert!(public.columns.len() as u64 >= layout.columns());
        let fresh = public.columns.chunks_exact(2048).all(|columns| seen.insert(columns.to_vec()));
        assert!(fresh, "a polynomial is there twice");
        // The keys are the same for both.
        seen.extend([public.packing, public.fold]);
    }
    let polynomials = parameters.matrices().map(|layout| layout.columns().div_ceil(2048));
    assert_eq!(seen.len() as u64, polynomials.sum::<u64>() + 2);
}

#[test]
fn both_kinds_of_masks_are_told_apart() {
    let identity = identity(1 << 20, 32);
    let plans = BOTH.map(|masks| {
        let parameters = SimplePirPackedParameters::with_masks(&identity, masks).unwrap();
        assert_eq!(parameters.masks(), masks);
        let again = SimplePirPackedParameters::decode(&identity, &parameters.encode()).unwrap();
        assert_eq!((again.masks(), sizes(&again)), (masks, sizes(&parameters)));
        let plan =
            SchemePlan::from_announcement(SimplePirPacked::ID, &identity, &parameters.encode());
        plan.unwrap()
    });
    // A message says by the digest what it was made for.
    assert_ne!(plans[0].digest(&identity), plans[1].digest(&identity));
    // Of one layout, too.
    let of =
        |masks| SimplePirPackedParameters::with_records_per_column(&identity, masks, 200).unwrap();
    assert_ne!(of(Masks::Downloaded).encode(), of(Masks::OnDemand).encode());
    // Neither reads the other's messages.
    let [one, other] = BOTH.map(of);
    for (one, other) in [(&one, &other), (&other, &one)] {
        let query = vec![0; SimplePirPackedQuery::encoded_len(other)];
        let refusal = SimplePirPackedQuery::decode(one, &query).err().unwrap();
        assert_eq!(refusal.blame(), Blame::InvalidMessage);
        let answer = vec![0; SimplePirPackedAnswer::encoded_len(other)];
        let refusal = SimplePirPackedAnswer::decode(one, &answer).err().unwrap();
        assert_eq!(refusal.blame(), Blame::InvalidMessage);
    }
}

#[test]
fn the_default_layout_moves_the_fewest_bytes() {
    let tables = [(1 << 20, 32), (1 << 25, 32), (1_000, 100_000), (12_345_678, 77)];
    for ((records, record_len), masks) in
        tables.into_iter().flat_map(|table| BOTH.map(|masks| (table, masks)))
    {
        let identity = identity(records, record_len);
        let chosen = layout_with(masks, records, record_len);
        assert_eq!(chosen.rows() % record_len, 0);
        assert!(chosen.rows() * chosen.columns() >= records * record_len);
        let total =
            |parameters: &SimplePirPackedParameters| -> u64 { sizes(parameters).iter().sum() };
        let per_column = chosen.records_per_column();
        for other in [1, per_column / 2, per_column - per_column / 16, per_column + 1]
            .into_iter()
            .chain([per_column + per_column / 16 + 1, per_column * 2])
        {
            let other = SimplePirPackedParameters::with_records_per_column(&identity, masks, other);
            if let Ok(other) = other {
                // Steps of two percent are near enough.
                let (best, other) = (total(&chosen), total(&other));
                assert!(best <= other + other / 200, "{records} x {record_len}: {best}, {other}");
            }
        }
    }
}

#[test]
fn every_shape_gets_a_layout_within_the_limits_or_a_refusal_with_numbers() {
    for (records, record_len) in [
        (1, 1),
        (1, 300 << 10),
        (7, 300 << 10),
        (1 << 20, 300 << 10),
        (1 << 38, 1),
        (1 << 33, 64),
        (3, 480 << 10),
    ] {
        for masks in BOTH {
            let parameters = layout_with(masks, records, record_len);
            assert!(parameters.columns() <= 1 << 19 && parameters.rows() <= 1 << 20);
            assert!(parameters.rows() * parameters.columns() >= records * record_len);
            assert!(parameters.failure_bound_log2() <= -40.0, "{records} x {record_len}");
            // The masks come first, and count as well.
            let bytes = record_len + parameters.masks_layout().map_or(0, MatrixLayout::rows);
            assert!(parameters.failure_bound_log2() <= (bytes as f64).log2() - 57.0);
        }
    }
    let refused = |result: Result<SimplePirPackedParameters>, said: &[&str]| {
        let refusal = result.unwrap_err();
        assert_eq!(refusal.blame(), Blame::ApiMisuse);
        for part in said {
            assert!(refusal.message().contains(part), "{part} is not in: {refusal}");
        }
    };
    refused(
        SimplePirPackedParameters::new(&identity(1 << 40, 1)),
        &["2097152 rows", "1048576", "cut the table"],
    );
    refused(SimplePirPackedParameters::new(&identity(2, (1 << 20) + 1)), &["1048577 rows"]);
    layout(3, 1 << 20);
    let long = identity(3, (480 << 10) + 1);
    refused(
        SimplePirPackedParameters::with_masks(&long, Masks::OnDemand),
        &["1048832 bytes", "1048576", "let clients download the masks"],
    );
    let many = identity((1 << 19) + 1, 4);
    let with = |per_column| {
        SimplePirPackedParameters::with_records_per_column(&many, Masks::Downloaded, per_column)
    };
    refused(with(1), &["524289 columns", "524288", "more records into each column"]);
    refused(with(0), &["0 records"]);
    refused(with((1 << 19) + 2), &["524290 records"]);
    with(2).unwrap();
    let announced = SimplePirPackedParameters::decode(&many, &1u64.to_le_bytes());
    assert_eq!(announced.err().unwrap().blame(), Blame::PeerMisbehaved);
}

#[test]
fn sizes_of_masks_and_of_what_is_kept() {
    let parameters = layout(1 << 20, 32);
    assert_eq!(parameters.hint_bytes(), 4352 * parameters.blocks());
    assert_eq!(parameters.kept_bytes(), 8192 * parameters.rows() + 16384 * parameters.blocks());
}
