//! `vectors/tapir.json`, computed by a program that shares no code with this one.

use super::*;
use crate::contract::ReservationId;
use crate::test_tables::hex;
use privet_core::Secret;

#[test]
fn known_answers() {
    let file = include_str!("../../../../../vectors/tapir.json");
    let vectors: serde_json::Value = serde_json::from_str(file).unwrap();
    let cases = vectors["cases"].as_array().unwrap();
    assert!(cases.len() >= 4);
    for case in cases {
        let number = |name: &str| case[name].as_u64().unwrap();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let bytes = |value: &serde_json::Value| -> Vec<u8> {
            let text = text(value);
            let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
            (0..text.len()).step_by(2).map(byte).collect()
        };
        let shape = TableShape::new(number("records"), number("record_len")).unwrap();
        let pass = SinglePassParameters::with_partition_records(shape, number("partition_records"))
            .unwrap();
        let commitment =
            Merkle::new(vectors_of(&pass).unwrap(), number("cap_levels") as u8).unwrap();
        let parameters = TapirParameters::<MerkleForm>::new(pass, commitment).unwrap();
        let mut world = World::with(parameters);

        let mut preparation = world.preparation();
        let seed: [u8; 32] = bytes(&case["seed"]).try_into().unwrap();
        preparation.set_seed(Secret::new(seed));
        preparation.absorb(0, &world.stream()).unwrap();
        preparation.finish().unwrap();
        let generation = preparation.generation().unwrap();
        let digest = |bytes: &[u8]| blake3::hash(bytes).to_hex().to_string();
        assert_eq!(digest(&generation), text(&case["generation_blake3"]));

        let mut client = world.load(&generation);
        for (id, known) in (0..).zip(case["lookups"].as_array().unwrap()) {
            let change = Zeroizing::new(bytes(&known["change"]));
            client.apply(&change).unwrap();
            let queries = client.shown();
            for (query, name) in queries.iter().zip(["query_0", "query_1"]) {
                let query = Message::<TapirParameters<MerkleForm>>::encode(query);
                assert_eq!(hex(&query), text(&known[name]));
            }
            let reserved = Reserved { id: ReservationId(id), change, queries };
            for (answer, name) in
                world.answer_bytes(&reserved).iter().zip(["answer_0_blake3", "answer_1_blake3"])
            {
                assert_eq!(digest(answer), text(&known[name]));
            }
            world.settle(&mut client, &reserved);
            let record = client.take_record(reserved.id).unwrap().unwrap();
            assert_eq!(hex(&record), text(&known["record"]));
        }
        assert_eq!(digest(&client.written_down()), text(&case["generation_after_blake3"]));
    }
}
