//! The parts of `vectors/dummy_subsets.json` that concern two servers, computed by a program that
//! shares no code with this one.

use super::*;
use crate::conformance::known::Known;
use privet_core::hints::{Exchange, StateChange};

#[test]
fn known_answers() {
    for case in Known::cases(include_str!("../../../../../../vectors/dummy_subsets.json"), 1) {
        let number = |name: &str| case.number(name);
        let shape = TableShape::new(number("records"), number("record_len")).unwrap();
        let cut =
            DummySubsetsParameters::with_partition_records(shape, number("partition_records"));
        let parameters = cut.unwrap().with_hint_security(number("hint_security") as u32).unwrap();
        let mut world = World::with(parameters);

        let key = case.bytes("key");
        let mut preparation = DummySubsetsTwoPreparation::with_key(
            world.parameters.clone(),
            key.as_slice().try_into().unwrap(),
            Kernels::detect(),
        )
        .unwrap();
        let generation = world.prepared(&mut preparation, 0);
        case.assert("two_servers_generation_blake3", &generation);

        let mut client = world.load(&generation);
        let lookups = case.list("queries").into_iter().zip(case.list("successors"));
        for (id, (known, successor)) in (0..).zip(lookups) {
            let number = |name: &str| known.number(name);
            let (hint, index) = (number("hint") as u32, number("index"));
            let real_half = number("real_half") == 1;
            let table = &client.table;
            let row = table.row_of(hint).unwrap();
            let kernels = Kernels::detect();
            let query =
                crate::dummy_subsets::query::query_through(table, row, index, real_half, kernels);
            let query = TwoServersQuery::Subsets(query.unwrap());
            known.assert("query", &query.encode_query());
            // The next pair is what an honest client asks for, whatever the index.
            let asked = client.reserve(&world.index(index), &mut world.rng).unwrap();
            let [replenish, _] = asked.queries.try_into().ok().unwrap();
            successor.assert("replenish", &replenish.encode_query());
            let TwoServersQuery::Replenish(pair) = &replenish else { panic!() };
            let (new, cutoff) = (pair.id, u64::from(pair.cutoff));

            let answers = world.answers(&[replenish, query]);
            successor.assert("replenished", &answers[0].encode());
            known.assert("answer", &answers[1].encode());
            let exchange =
                Exchange { id, hint: Some(hint), successor: new, index, real_half, note: cutoff };
            client.apply(&StateChange::Exchange(exchange).encode()).unwrap();
            let settled = client.settle(ReservationId(id), &answers).unwrap();
            client.apply(&settled).unwrap();
            let record = client.take_record(ReservationId(id)).unwrap().unwrap();
            known.assert("record", &record);
            let found = client.table.hint(row).unwrap();
            assert_eq!((found.id, found.extra), (new, Some(index)));
            assert_eq!(found.above, successor.is("above"));
            successor.assert("parity", client.table.parity(row));
        }
    }
}
