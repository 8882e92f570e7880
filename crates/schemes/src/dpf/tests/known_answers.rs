//! `vectors/dpf.json`, computed by a program that shares no code with this one. Any other
//! implementation of DPF-PIR must send the same bytes.

use super::*;
use crate::contract::StatelessClient;
use crate::test_tables::hex;
use privet_core::dpf::Evaluation;

#[test]
fn known_answers() {
    let file = include_str!("../../../../../vectors/dpf.json");
    let vectors: serde_json::Value = serde_json::from_str(file).unwrap();
    let cases = vectors["cases"].as_array().unwrap();
    assert!(cases.len() >= 8);
    for case in cases {
        let number = |name: &str| case[name].as_u64().unwrap();
        let text = |name: &str| case[name].as_str().unwrap();
        let world = World::new(number("records"), number("record_len"));
        let parameters = world.parameters();
        assert_eq!(blake3::hash(&world.table).to_hex().as_str(), text("table_blake3"));
        assert_eq!(u64::from(parameters.domain().depth()), number("depth"));

        let mut rng = SecretRng::from_fixed_seed([number("rng_seed") as u8; 32]);
        let queries: [_; 2] = world.queries(number("index"), &mut rng);
        let mut answers = Vec::new();
        for (server, bytes) in queries.iter().enumerate() {
            let text = |name: &str| case[name][server].as_str().unwrap();
            assert_eq!(hex(bytes), text("queries"));
            let query = world.query(bytes);
            let evaluation = Evaluation::new(Kernels::detect(), parameters.table(), &query.key);
            let mut leaves = vec![0; parameters.domain().leaves() as usize];
            evaluation.leaves(evaluation.root(), &mut leaves);
            let leaves: Vec<u8> = leaves.iter().flat_map(|leaf| leaf.to_le_bytes()).collect();
            assert_eq!(blake3::hash(&leaves).to_hex().as_str(), text("leaves_blake3"));
            answers.push(world.answer(server, bytes));
            assert_eq!(hex(&answers[server]), text("answers"));
        }
        let record = world.client.recover(DpfPending, &world.read(&answers)).unwrap();
        assert_eq!(hex(&record), text("record"));
    }
}
