//! The parts of `vectors/dummy_subsets.json` that concern two servers, computed by a program that
//! shares no code with this one.

use super::*;
use crate::test_tables::hex;
use privet_core::hints::{Exchange, StateChange};

#[test]
fn known_answers() {
    let file = include_str!("../../../../../../vectors/dummy_subsets.json");
    let vectors: serde_json::Value = serde_json::from_str(file).unwrap();
    for case in vectors["cases"].as_array().unwrap() {
        let number = |name: &str| case[name].as_u64().unwrap();
        let shape = TableShape::new(number("records"), number("record_len")).unwrap();
        let cut =
            DummySubsetsParameters::with_partition_records(shape, number("partition_records"));
        let parameters = cut.unwrap().with_hint_security(number("hint_security") as u32).unwrap();
        let mut world = World::with(parameters);

        let key = case["key"].as_str().unwrap();
        let key: Vec<u8> =
            (0..16).map(|i| u8::from_str_radix(&key[2 * i..2 * i + 2], 16).unwrap()).collect();
        let mut preparation = DummySubsetsTwoPreparation::with_key(
            world.parameters.clone(),
            key.as_slice().try_into().unwrap(),
            Kernels::detect(),
        )
        .unwrap();
        let generation = world.prepared(&mut preparation, 0);
        let digest = blake3::hash(&generation).to_hex();
        assert_eq!(digest.as_str(), case["two_servers_generation_blake3"].as_str().unwrap());

        let mut client = world.load(&generation);
        let queries = case["queries"].as_array().unwrap();
        let successors = case["successors"].as_array().unwrap();
        for (id, (known, successor)) in (0..).zip(queries.iter().zip(successors)) {
            let number = |name: &str| known[name].as_u64().unwrap();
            let (hint, index) = (number("hint") as u32, number("index"));
            let real_half = number("real_half") == 1;
            let table = &client.table;
            let row = table.row_of(hint).unwrap();
            let kernels = Kernels::detect();
            let query =
                crate::dummy_subsets::query::query_through(table, row, index, real_half, kernels);
            let query = TwoServersQuery::Subsets(query.unwrap());
            assert_eq!(hex(&query.encode_query()), known["query"].as_str().unwrap());
            // The next pair is what an honest client asks for, whatever the index.
            let asked = client.reserve(&world.index(index), &mut world.rng).unwrap();
            let [replenish, _] = asked.queries.try_into().ok().unwrap();
            assert_eq!(hex(&replenish.encode_query()), successor["replenish"].as_str().unwrap());
            let TwoServersQuery::Replenish(pair) = &replenish else { panic!() };
            let (new, cutoff) = (pair.id, u64::from(pair.cutoff));

            let answers = world.answers(&[replenish, query]);
            assert_eq!(hex(&answers[0].encode()), successor["replenished"].as_str().unwrap());
            assert_eq!(hex(&answers[1].encode()), known["answer"].as_str().unwrap());
            let exchange =
                Exchange { id, hint: Some(hint), successor: new, index, real_half, note: cutoff };
            client.apply(&StateChange::Exchange(exchange).encode()).unwrap();
            let settled = client.settle(ReservationId(id), &answers).unwrap();
            client.apply(&settled).unwrap();
            let record = client.take_record(ReservationId(id)).unwrap().unwrap();
            assert_eq!(hex(&record), known["record"].as_str().unwrap());
            let found = client.table.hint(row).unwrap();
            assert_eq!((found.id, found.extra), (new, Some(index)));
            assert_eq!(found.above, successor["above"] == true);
            assert_eq!(hex(client.table.parity(row)), successor["parity"].as_str().unwrap());
        }
    }
}
