//! `vectors/apir_matrix.json`, computed by a program that shares no code with this one. Any other
//! implementation of the scheme must send the same bytes.

use super::*;
use crate::test_tables::hex;

#[test]
fn known_answers() {
    let file = include_str!("../../../../../vectors/apir_matrix.json");
    let vectors: serde_json::Value = serde_json::from_str(file).unwrap();
    let cases = vectors["cases"].as_array().unwrap();
    assert!(cases.len() >= 8);
    for case in cases {
        let number = |name: &str| case[name].as_u64().unwrap();
        let text = |name: &str| case[name].as_str().unwrap();
        let world = World::new(number("records"), number("record_len"));
        let parameters = world.parameters();
        assert_eq!(blake3::hash(&world.table).to_hex().as_str(), text("table_blake3"));
        assert_eq!(parameters.row_records(), number("row_records"));
        assert_eq!(parameters.rows(), number("rows"));
        assert_eq!(parameters.row_len(), number("row_len"));
        assert_eq!(hex(&world.hint), text("root"));
        let rows: Vec<u8> = (0..parameters.rows()).flat_map(|row| world.row(row)).collect();
        assert_eq!(blake3::hash(&rows).to_hex().as_str(), text("rows_blake3"));

        let mut rng = SecretRng::from_fixed_seed([number("rng_seed") as u8; 32]);
        let (queries, pending) =
            world.client.query(&world.index(number("index")), &mut rng).unwrap();
        let mut answers = Vec::new();
        for (server, query) in queries.iter().enumerate() {
            let text = |name: &str| case[name][server].as_str().unwrap();
            assert_eq!(hex(&query.encode()), text("queries"));
            let answer = world.answer(server, &query.encode());
            assert_eq!(hex(&answer), text("answers"));
            answers.push(ApirMatrixAnswer::decode(parameters, &answer).unwrap());
        }
        let record = world.client.recover(pending, &answers).unwrap();
        assert_eq!(hex(&record), text("record"));
    }
}
