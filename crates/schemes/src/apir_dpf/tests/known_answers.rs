//! `vectors/apir_dpf.json`, computed by a program that shares no code with this one. Any other
//! implementation of APIR-DPF must send the same bytes.

use super::*;
use crate::test_tables::hex;

#[test]
fn known_answers() {
    let file = include_str!("../../../../../vectors/apir_dpf.json");
    let vectors: serde_json::Value = serde_json::from_str(file).unwrap();
    let cases = vectors["cases"].as_array().unwrap();
    assert!(cases.len() >= 8);
    for case in cases {
        let number = |name: &str| case[name].as_u64().unwrap();
        let text = |name: &str| case[name].as_str().unwrap();
        let world = World::new(number("records"), number("record_len"));
        assert_eq!(blake3::hash(&world.table).to_hex().as_str(), text("table_blake3"));
        assert_eq!(u64::from(world.parameters().domain().depth()), number("depth"));

        let mut rng = SecretRng::from_fixed_seed([number("rng_seed") as u8; 32]);
        let (queries, pending) = world.lookup(number("index"), &mut rng);
        assert_eq!(hex(&pending.alpha.expose().to_le_bytes()), text("alpha"));
        let mut answers = Vec::new();
        for (server, bytes) in queries.iter().enumerate() {
            let text = |name: &str| case[name][server].as_str().unwrap();
            assert_eq!(hex(bytes), text("queries"));
            let answer = world.answer(server, bytes);
            assert_eq!(hex(&answer), text("answers"));
            answers.push(answer);
        }
        let record = world.client.recover(pending, &world.read(&answers)).unwrap();
        assert_eq!(hex(&record), text("record"));
    }
}
