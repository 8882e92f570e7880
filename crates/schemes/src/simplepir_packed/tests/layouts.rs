//! Layouts: the default, and those that are refused.

use super::*;

fn layout(records: u64, record_len: u64) -> SimplePirPackedParameters {
    SimplePirPackedParameters::new(&identity(records, record_len)).unwrap()
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

#[test]
fn the_default_layout_moves_the_fewest_bytes() {
    for (records, record_len) in [(1 << 20, 32), (1 << 25, 32), (1_000, 100_000), (12_345_678, 77)]
    {
        let identity = identity(records, record_len);
        let chosen = layout(records, record_len);
        assert_eq!(chosen.rows() % record_len, 0);
        assert!(chosen.rows() * chosen.columns() >= records * record_len);
        let total =
            |parameters: &SimplePirPackedParameters| -> u64 { sizes(parameters).iter().sum() };
        let per_column = chosen.records_per_column();
        for other in [1, per_column / 2, per_column - per_column / 16, per_column + 1]
            .into_iter()
            .chain([per_column + per_column / 16 + 1, per_column * 2])
        {
            let other = SimplePirPackedParameters::with_records_per_column(
                &identity,
                Masks::Downloaded,
                other,
            );
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
        (3, 1 << 20),
    ] {
        let parameters = layout(records, record_len);
        assert!(parameters.columns() <= 1 << 19 && parameters.rows() <= 1 << 20);
        assert!(parameters.rows() * parameters.columns() >= records * record_len);
        assert!(parameters.failure_bound_log2() <= -40.0, "{records} x {record_len}");
        assert!(parameters.failure_bound_log2() <= (record_len as f64).log2() - 57.0);
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
