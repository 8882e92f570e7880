//! `vectors/dummy_subsets.json`, computed by a program that shares no code with this one.

use super::super::generation::Generation;
use super::super::query::query_through;
use super::*;
use crate::conformance::known::Known;

#[test]
fn known_answers() {
    for case in Known::cases(include_str!("../../../../../vectors/dummy_subsets.json"), 1) {
        let number = |name: &str| case.number(name);
        let shape = TableShape::new(number("records"), number("record_len")).unwrap();
        let cut =
            DummySubsetsParameters::with_partition_records(shape, number("partition_records"));
        let parameters = cut.unwrap().with_hint_security(number("hint_security") as u32).unwrap();
        assert_eq!(u64::from(parameters.partitions()), number("partitions"));
        assert_eq!(u64::from(parameters.singles()), number("singles"));
        assert_eq!(u64::from(parameters.pairs()), number("pairs"));
        let mut world = World::with(parameters);
        let mut preparation = world.preparation();
        let key = case.bytes("key");
        preparation.hints.generation =
            Generation::with_key(&world.parameters, key.as_slice().try_into().unwrap()).unwrap();
        preparation.absorb(0, &world.records).unwrap();
        preparation.finish().unwrap();
        let generation = preparation.generation().unwrap();
        case.assert("generation_blake3", &generation);

        let mut client = world.load(&generation);
        let lookups = case.list("queries").into_iter().zip(case.list("successors"));
        for (id, (known, successor)) in (0..).zip(lookups) {
            let number = |name: &str| known.number(name);
            let (hint, index) = (number("hint") as u32, number("index"));
            let real_half = number("real_half") == 1;
            let row = client.table.row_of(hint).unwrap();
            let query =
                query_through(&client.table, row, index, real_half, Kernels::detect()).unwrap();
            known.assert("query", &query.encode());
            let answer = world.answers(&[query]).remove(0);
            known.assert("answer", &answer.encode());
            let pair = successor.number("pair") as u32;
            let exchange =
                Exchange { id, hint: Some(hint), successor: pair, index, real_half, note: 0 };
            client.apply(&StateChange::Exchange(exchange).encode()).unwrap();
            let settled = client.settle(ReservationId(id), &[answer]).unwrap();
            client.apply(&settled).unwrap();
            let record = client.take_record(ReservationId(id)).unwrap().unwrap();
            known.assert("record", &record);
            let new = world.parameters.singles() + pair;
            let found = client.table.hint(row).unwrap();
            assert_eq!((found.id, found.extra), (new, Some(index)));
            assert_eq!(found.above, successor.is("above"));
            successor.assert("parity", client.table.parity(row));
        }
    }
}
