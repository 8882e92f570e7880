//! `vectors/harmony.json`, computed by a program that shares no code with this one.

use super::*;
use crate::test_tables::hex;

fn bytes(text: &serde_json::Value) -> Vec<u8> {
    let text = text.as_str().unwrap();
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(byte).collect()
}

#[test]
fn known_answers() {
    let file = include_str!("../../../../../vectors/harmony.json");
    let vectors: serde_json::Value = serde_json::from_str(file).unwrap();
    let cases = vectors["cases"].as_array().unwrap();
    assert!(cases.len() >= 4);
    for case in cases {
        let number = |name: &str| case[name].as_u64().unwrap();
        let parameters = cut(number("records"), number("record_len"), number("segment_records"));
        let parameters = parameters.with_cells_log2(number("cells_log2") as u32);
        assert_eq!(u64::from(parameters.lookups()), number("lookups"));
        let mut world = World::of(parameters, bytes(&case["table"]));

        let mut preparation = world.preparation();
        let key = bytes(&case["key"]).as_slice().try_into().unwrap();
        let generation = Generation::with_key(&world.parameters, &key).unwrap();
        preparation.hints =
            GrowingHarmony::new(world.parameters.clone(), generation, Kernels::detect());
        let generation = world.prepared(&mut preparation, 100);
        assert_eq!(hex(&generation), case["generation"].as_str().unwrap());

        let mut client = world.load(&generation);
        for known in case["lookups_made"].as_array().unwrap() {
            let number = |name: &str| known[name].as_u64().unwrap();
            let index = world.index(number("index"));
            let reserved = client.reserve_with(&index, |_, _| number("drawn")).unwrap();
            assert_eq!(hex(&reserved.queries[0].encode()), known["query"].as_str().unwrap());
            assert_eq!(hex(&reserved.change), known["lookup_change"].as_str().unwrap());
            client.apply(&reserved.change).unwrap();
            let answers = world.answers(&reserved.queries);
            assert_eq!(hex(&answers[0].encode()), known["answer"].as_str().unwrap());
            let change = client.settle(reserved.id, &answers).unwrap();
            assert_eq!(hex(&change), known["answer_change"].as_str().unwrap());
            client.apply(&change).unwrap();
            let record = client.take_record(reserved.id).unwrap().unwrap();
            assert_eq!(hex(&record), known["record"].as_str().unwrap());
        }
        assert_eq!(hex(client.generation.encoded()), case["generation_after"].as_str().unwrap());
    }
}
