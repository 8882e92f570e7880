//! `vectors/dummy_subsets.json`, computed by a program that shares no code with this one.

use super::super::generation::Generation;
use super::super::query::query_through;
use super::*;
use crate::test_tables::hex;

#[test]
fn known_answers() {
    let file = include_str!("../../../../../vectors/dummy_subsets.json");
    let vectors: serde_json::Value = serde_json::from_str(file).unwrap();
    for case in vectors["cases"].as_array().unwrap() {
        let number = |name: &str| case[name].as_u64().unwrap();
        let shape = TableShape::new(number("records"), number("record_len")).unwrap();
        let cut =
            DummySubsetsParameters::with_partition_records(shape, number("partition_records"));
        let parameters = cut.unwrap().with_hint_security(number("hint_security") as u32).unwrap();
        assert_eq!(u64::from(parameters.partitions()), number("partitions"));
        assert_eq!(u64::from(parameters.singles()), number("singles"));
        assert_eq!(u64::from(parameters.pairs()), number("pairs"));
        let mut world = World::with(parameters);
        let mut preparation = world.preparation();
        let key = case["key"].as_str().unwrap();
        let key: Vec<u8> =
            (0..16).map(|i| u8::from_str_radix(&key[2 * i..2 * i + 2], 16).unwrap()).collect();
        preparation.hints.generation =
            Generation::with_key(&world.parameters, key.as_slice().try_into().unwrap()).unwrap();
        preparation.absorb(0, &world.records).unwrap();
        preparation.finish().unwrap();
        let generation = preparation.generation().unwrap();
        let digest = blake3::hash(&generation).to_hex();
        assert_eq!(digest.as_str(), case["generation_blake3"].as_str().unwrap());

        let mut client = world.load(&generation);
        let queries = case["queries"].as_array().unwrap();
        let successors = case["successors"].as_array().unwrap();
        for (id, (known, successor)) in queries.iter().zip(successors).enumerate() {
            let number = |name: &str| known[name].as_u64().unwrap();
            let (hint, index) = (number("hint") as u32, number("index"));
            let real_half = number("real_half") == 1;
            let row = client.table.row_of(hint).unwrap();
            let query =
                query_through(&client.table, row, index, real_half, Kernels::detect()).unwrap();
            assert_eq!(hex(&query.encode()), known["query"].as_str().unwrap());
            let answer = world.answers(&[query]).remove(0);
            assert_eq!(hex(&answer.encode()), known["answer"].as_str().unwrap());
            let pair = successor["pair"].as_u64().unwrap() as u32;
            let id = id as u64;
            let exchange =
                Exchange { id, hint: Some(hint), successor: pair, index, real_half, note: 0 };
            client.apply(&StateChange::Exchange(exchange).encode()).unwrap();
            let settled = client.settle(ReservationId(id), &[answer]).unwrap();
            client.apply(&settled).unwrap();
            let record = client.take_record(ReservationId(id)).unwrap().unwrap();
            assert_eq!(hex(&record), known["record"].as_str().unwrap());
            let new = world.parameters.singles() + pair;
            let found = client.table.hint(row).unwrap();
            assert_eq!((found.id, found.extra), (new, Some(index)));
            assert_eq!(found.above, successor["above"] == true);
            assert_eq!(hex(client.table.parity(row)), successor["parity"].as_str().unwrap());
        }
    }
}
