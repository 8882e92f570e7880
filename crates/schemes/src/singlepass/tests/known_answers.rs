//! `vectors/singlepass.json`, computed by a program that shares no code with this one.

use super::super::change::SinglePassReservation;
use super::super::permutations::Coins;
use super::*;
use crate::contract::Reserved;
use crate::test_tables::hex;
use privet_core::Secret;

fn seed(known: &serde_json::Value) -> Secret<[u8; 32]> {
    let text = known["seed"].as_str().unwrap();
    let byte = |i: usize| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap();
    Secret::new(std::array::from_fn(byte))
}

#[test]
fn known_answers() {
    let file = include_str!("../../../../../vectors/singlepass.json");
    let vectors: serde_json::Value = serde_json::from_str(file).unwrap();
    let cases = vectors["cases"].as_array().unwrap();
    assert!(cases.len() >= 5);
    for case in cases {
        let number = |name: &str| case[name].as_u64().unwrap();
        let parameters = cut(number("records"), number("record_len"), number("partition_records"));
        assert_eq!(u64::from(parameters.partitions()), number("partitions"));
        let mut world = World::with(parameters);
        let digest = |bytes: &[u8], name: &str| {
            assert_eq!(blake3::hash(bytes).to_hex().as_str(), case[name].as_str().unwrap());
        };

        let mut preparation = world.preparation();
        preparation.seed = seed(case);
        let reply = Tested::reply(&world, &mut preparation);
        digest(&reply, "hints_blake3");
        preparation.absorb(0, &reply).unwrap();
        preparation.finish().unwrap();
        let generation = preparation.generation().unwrap();
        digest(&generation, "generation_blake3");

        let mut client = world.load(&generation);
        for (id, known) in case["lookups"].as_array().unwrap().iter().enumerate() {
            let index = world.index(known["index"].as_u64().unwrap());
            let permutations = &client.generation.permutations;
            let coins = Coins::from_seed(&world.parameters, &seed(known), Kernels::detect());
            let queries = permutations.show(permutations.place_of(&index), &coins);
            for (query, name) in queries.iter().zip(["query_0", "query_1"]) {
                assert_eq!(hex(&query.encode()), known[name].as_str().unwrap());
            }
            let change = SinglePassReservation { id: id as u64, index, seed: seed(known) }.encode();
            client.apply(&change).unwrap();
            let reserved =
                Reserved { id: ReservationId(id as u64), change, queries: queries.into() };
            world.settle(&mut client, &reserved);
            let record = client.take_record(reserved.id).unwrap().unwrap();
            assert_eq!(hex(&record), known["record"].as_str().unwrap());
        }
        digest(&client.generation.encode(&world.parameters).unwrap(), "generation_after_blake3");
    }
}
