//! The truth table is that of the polynomial, for every cut and every store.

use super::*;
use crate::finite_differences::encoding::tests::{WatchfulStore, every_call_fails_once, written};
use crate::finite_differences::many_servers::encoding::planes::Planes;
use crate::finite_differences::many_servers::encoding::truth_table::{FieldSums, Sizes};
use proptest::prelude::*;
use std::sync::Mutex;

#[test]
fn packed_bytes_are_added_symbol_by_symbol() {
    for order in FIELDS {
        let field = Field::new(order).unwrap();
        let unpacked = field.unpacked();
        let all: Vec<u8> = (0..field.packings()).map(|byte| byte as u8).collect();
        for addend in &all {
            // Not at the beginning of the memory, and between bytes that must not change.
            let (at, len) = (3, all.len());
            let mut planes = Planes::new(field, at + order as usize * len + 2);
            let end = at + order as usize * len;
            planes.load(0, &[1; 3]);
            planes.load(at, &all);
            planes.load(at + len, &vec![*addend; len]);
            planes.load(end, &[1; 2]);
            planes.add_up(at, len);
            let mut sums = vec![0xee; end + 2];
            planes.store(0, &mut sums);
            assert!(sums[..at].iter().chain(&sums[end..]).all(|byte| *byte == 1));
            for (number, sum) in sums[at..end].iter().enumerate() {
                let (multiple, byte) = ((number / len) as u32, number % len);
                let symbols = |byte: usize| unpacked[byte][..field.per_byte()].iter();
                let addends = symbols(byte).zip(symbols((*addend).into()));
                for ((one, other), sum) in addends.zip(symbols((*sum).into())) {
                    let expected = (u32::from(*one) + multiple * u32::from(*other)) % order;
                    assert_eq!(u32::from(*sum), expected);
                }
            }
        }
    }
}

#[test]
fn packed_bytes_are_repeated_and_cleared() {
    let field = Field::new(5).unwrap();
    let mut planes = Planes::new(field, 10);
    planes.load(0, &[1, 2, 3, 124, 5, 6, 7, 8, 9, 10]);
    planes.repeat(2, 2, 6);
    planes.clear(9, 1);
    let mut bytes = [0xee; 10];
    planes.store(0, &mut bytes);
    assert_eq!(bytes, [1, 2, 3, 124, 3, 124, 3, 124, 9, 0]);
}

/// Variables for which there are not too many points for a test.
fn most_variables(field: u32) -> u32 {
    2500u32.ilog(field)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn points_are_the_same_however_they_are_cut(
        field in prop::sample::select(&FIELDS[..]),
        variables in 1u32..=7,
        degree in 1u32..=7,
        missing in 0u64..10,
        record_len in 1u64..=20,
        block in 1usize..300,
        rows in 1usize..200,
        memory in prop_oneof![0u64..300, 0u64..60_000],
        least_part in 1u64..=100,
        threads in prop::sample::select(&[1, 3][..]),
        picks in prop::collection::vec(any::<u64>(), 5),
    ) {
        let variables = variables.min(most_variables(field));
        let setting = setting(3, field, variables, degree.min(variables));
        let identity = identity(setting.capacity().saturating_sub(missing).max(1), record_len);
        let parameters = ManyServersParameters::with(identity.shape, setting).unwrap();
        let table = public_bytes("a table", identity.shape.bytes() as usize);
        let view = TableView::new(identity, &table).unwrap();
        let expected = points(&parameters, view);
        for pick in picks {
            let point = pick % parameters.points();
            let entry = &expected[point as usize * parameters.entry_len()..][..parameters.entry_len()];
            prop_assert_eq!(entry, evaluate(&parameters, &table, point));
        }
        let sums = FieldSums::new(&parameters, view, threads, Sizes { block, rows }).unwrap();
        let store = WatchfulStore::new(parameters.points_bytes(), None);
        let (outcome, heard) = written(&sums, memory, least_part, threads, &store);
        outcome.unwrap();
        prop_assert_eq!(store.into_bytes(), expected);
        prop_assert!(heard.is_sorted() && heard.last() == Some(&1.0), "{:?}", heard);
    }
}

#[test]
fn a_store_that_fails_at_any_call_is_heard() {
    let setting = setting(3, 3, 5, 2);
    let identity = identity(setting.capacity(), 3);
    let parameters = ManyServersParameters::with(identity.shape, setting).unwrap();
    let table = public_bytes("a table", identity.shape.bytes() as usize);
    let view = TableView::new(identity, &table).unwrap();
    for threads in [1, 3] {
        let sizes = Sizes { block: 20, rows: 9 };
        let sums = FieldSums::new(&parameters, view, threads, sizes).unwrap();
        let write = |store: &WatchfulStore| written(&sums, 60, 7, threads, store).0;
        let calls = every_call_fails_once(write, parameters.points_bytes());
        assert!(calls > 50, "{calls}");
    }
}

#[test]
fn several_threads_tell_of_their_progress_in_order() {
    let setting = setting(3, 3, 12, 6);
    let identity = identity(setting.capacity(), 1);
    let parameters = ManyServersParameters::with(identity.shape, setting).unwrap();
    let table = public_bytes("a table", identity.shape.bytes() as usize);
    let view = TableView::new(identity, &table).unwrap();
    let expected = points(&parameters, view);
    for threads in [1, 3] {
        let heard = Mutex::new(Vec::new());
        let mut points = vec![0xee; expected.len()];
        let report = |share| heard.lock().unwrap().push(share);
        encode(&parameters, view, &mut points, threads, &report).unwrap();
        assert!(points == expected);
        let heard = heard.into_inner().unwrap();
        // Some tens of blocks, and of tiles.
        assert!(heard.len() > 20 && heard.is_sorted_by(|one, next| one < next), "{heard:?}");
        assert!(heard[0] > 0.0 && heard.last() == Some(&1.0));
    }
}
