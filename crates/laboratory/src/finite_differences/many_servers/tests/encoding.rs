//! Records become symbols and come back, and the truth table is that of the polynomial.

use super::*;
use crate::combinations::binomial;
use crate::finite_differences::many_servers::recovery::hermite_weights;
use proptest::prelude::*;

fn parameters(record_len: u64, setting: Setting) -> ManyServersParameters {
    ManyServersParameters::with(identity(1, record_len).shape, setting).unwrap()
}

#[test]
fn entries_are_as_long_as_promised() {
    let lens = |field| [1, 16, 32].map(|len| parameters(len, setting(3, field, 1, 1)).entry_len());
    assert_eq!(FIELDS.map(lens), [[2, 17, 33], [2, 19, 38], [2, 23, 46], [2, 19, 38], [2, 18, 35]]);
}

/// The record that has these symbols.
fn read(encoding: &Encoding, symbols: &[u8], record_len: u64) -> Vec<u8> {
    let mut record = vec![0; record_len as usize];
    encoding.read(symbols, &mut record);
    record
}

#[test]
fn the_extreme_records_come_back() {
    for field in FIELDS {
        for record_len in 1..=50 {
            let parameters = parameters(record_len, setting(3, field, 1, 1));
            let encoding = Encoding::new(&parameters);
            for byte in [0, 1, 0x80, 0xff] {
                let record = vec![byte; record_len as usize];
                let mut entry = vec![0; parameters.entry_len()];
                encoding.write(&record, &mut entry);
                assert!(
                    entry.iter().all(|byte| u32::from(*byte) < parameters.packing().packings())
                );
                assert_eq!(read(&encoding, &symbols(&parameters, &entry), record_len), record);
            }
        }
    }
}

#[test]
fn symbols_that_are_no_bytes_are_read_as_if_they_went_round() {
    for field in FIELDS {
        for record_len in 1..=50 {
            let parameters = parameters(record_len, setting(3, field, 1, 1));
            let encoding = Encoding::new(&parameters);
            let mut entry = vec![0; parameters.entry_len()];
            encoding.write(&vec![0xff; record_len as usize], &mut entry);
            let right = symbols(&parameters, &entry);
            // One more than the largest number of the first chunk gives zero, and all other chunks
            // stay. (No power of an odd number is a power of 256, so there is a digit that can be
            // raised.)
            let mut above = right.clone();
            for symbol in &mut above {
                *symbol = (*symbol + 1) % field as u8;
                if *symbol > 0 {
                    break;
                }
            }
            let chunk = record_len.min(16) as usize;
            let mut expected = vec![0xff; record_len as usize];
            expected[..chunk].fill(0);
            assert_eq!(read(&encoding, &above, record_len), expected);
            // The padding of an entry's last byte is not read.
            let mut padded = right.clone();
            padded[encoding.symbols()..].fill(1);
            let unread = read(&encoding, &padded, record_len);
            assert_eq!(unread, vec![0xff; record_len as usize]);
        }
    }
}

#[test]
fn inverses_are_inverse() {
    for order in FIELDS {
        let field = Field::new(order).unwrap();
        assert!((1..order).all(|of| field.product(of, field.inverse(of)) == 1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_truth_table_is_that_of_the_polynomial(
        field in prop::sample::select(&FIELDS[..]),
        variables in 1u32..=5,
        degree in 1u32..=5,
        missing in 0u64..10,
        record_len in 1u64..=40,
        picks in prop::collection::vec(any::<u64>(), 40),
    ) {
        let setting = setting(3, field, variables, degree.min(variables));
        let records = setting.capacity().saturating_sub(missing).max(1);
        let identity = identity(records, record_len);
        let parameters = ManyServersParameters::with(identity.shape, setting).unwrap();
        let table = public_bytes("a table", identity.shape.bytes() as usize);
        let points = points(&parameters, TableView::new(identity, &table).unwrap());
        let entries: Vec<&[u8]> = points.chunks(parameters.entry_len()).collect();
        prop_assert_eq!(entries.len() as u64, parameters.points());
        for pick in picks {
            let point = pick % parameters.points();
            prop_assert_eq!(entries[point as usize], evaluate(&parameters, &table, point));
        }
    }

    #[test]
    fn interpolation_finds_the_coefficient(
        field in prop::sample::select(&FIELDS[..]),
        servers in 3u32..=13,
        degree in 1u32..=40,
        coefficients in prop::collection::vec(any::<u32>(), 60),
    ) {
        let order = field;
        prop_assume!(servers <= order);
        let (field, orders) = (Field::new(order).unwrap(), degree / servers + 1);
        let conditions = servers * orders;
        prop_assert!(conditions > degree);
        let weights = hermite_weights(field, servers, orders, degree);
        prop_assert_eq!(weights.len() as u32, conditions);
        // Any polynomial with so many coefficients, not only those of this degree.
        let coefficients: Vec<u32> =
            coefficients[..conditions as usize].iter().map(|value| value % order).collect();
        let derivative = |point: u32, of: u32| {
            (of..conditions).fold(0, |sum, power| {
                let chosen = (binomial(power, of).unwrap() % u128::from(order)) as u32;
                let value = (of..power).fold(chosen, |value, _| value * point % order);
                (sum + coefficients[power as usize] * value) % order
            })
        };
        let values = (0..servers).flat_map(|point| (0..orders).map(move |of| derivative(point, of)));
        let found = values.zip(&weights).fold(0, |sum, (value, weight)| (sum + value * weight) % order);
        prop_assert_eq!(found, coefficients[degree as usize]);
    }
}

#[test]
fn a_table_or_room_of_another_shape_is_refused() {
    let parameters = parameters(4, setting(3, 3, 4, 2));
    let (right, other) = (identity(1, 4), identity(2, 2));
    let table = [7; 4];
    let refused = |identity, len| {
        let view = TableView::new(identity, &table).unwrap();
        let refusal = encode(&parameters, view, &mut vec![0; len], 1, &|_| {}).unwrap_err();
        assert_eq!(refusal.blame(), Blame::ApiMisuse);
    };
    let len = parameters.points_bytes() as usize;
    refused(other, len);
    refused(right, len - 1);
    refused(right, len + 1);
    refused(right, 0);
}
