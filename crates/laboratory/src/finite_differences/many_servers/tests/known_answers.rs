//! `vectors/finite_differences_many.json`, computed by a program that shares no code with this one.
//! Any other implementation of the scheme must send the same bytes.

use super::*;
use privet_schemes::test_tables::hex;

#[test]
fn known_answers() {
    let file = include_str!("../../../../../../vectors/finite_differences_many.json");
    let vectors: serde_json::Value = serde_json::from_str(file).unwrap();
    let cases = vectors["cases"].as_array().unwrap();
    assert!(cases.len() >= 10);
    for case in cases {
        let number = |name: &str| case[name].as_u64().unwrap();
        let text = |name: &str| case[name].as_str().unwrap();
        let [servers, field, variables, degree] =
            ["servers", "field", "variables", "degree"].map(|name| number(name) as u32);
        let setting = setting(servers, field, variables, degree);
        let world = World::of(&(number("records"), number("record_len"), Some(setting)));
        assert_eq!(blake3::hash(&world.table).to_hex().as_str(), text("table_blake3"));
        let view = TableView::new(world.identity, &world.table).unwrap();
        let points = points(world.parameters(), view);
        assert_eq!(blake3::hash(&points).to_hex().as_str(), text("points_blake3"));

        let mut rng = SecretRng::from_fixed_seed([number("rng_seed") as u8; 32]);
        let (queries, pending) = world.lookup(number("index"), &mut rng);
        assert_eq!(queries.len(), servers as usize);
        let mut answers = Vec::new();
        for (server, query) in queries.iter().enumerate() {
            let text = |name: &str| case[name][server].as_str().unwrap();
            assert_eq!(hex(query), text("queries"));
            answers.push(world.answer(server, query));
            assert_eq!(hex(&answers[server]), text("answers"));
        }
        let record = world.client.recover(pending, &world.read(&answers)).unwrap();
        assert_eq!(hex(&record), text("record"));
    }
}
