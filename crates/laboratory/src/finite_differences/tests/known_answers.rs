//! `vectors/finite_differences.json`, computed by a program that shares no code with this one. Any
//! other implementation of the scheme must store and send the same bytes.

use super::*;
use privet_schemes::test_tables::hex;

/// Byte k is the highest byte of the lowest four of (k + 1)² · 2654435761.
fn table_of(len: u64) -> Vec<u8> {
    let square = |k: u64| ((k + 1) * (k + 1)) as u32;
    (0..len).map(|k| (square(k).wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

#[test]
fn known_answers() {
    let file = include_str!("../../../../../vectors/finite_differences.json");
    let vectors: serde_json::Value = serde_json::from_str(file).unwrap();
    let cases = vectors["cases"].as_array().unwrap();
    assert!(cases.len() >= 15);
    for case in cases {
        let number = |name: &str| case[name].as_u64().unwrap();
        let text = |name: &str| case[name].as_str().unwrap();
        let one_bit = case["one_bit"].as_bool().unwrap();
        let setting = exactly(number("variables") as u32, number("degree") as u32);
        let identity = identity(number("records"), number("record_len"));
        let what = format!("{setting:?} for {:?}, single bits: {one_bit}", identity.shape);
        let mut table = table_of(identity.shape.bytes());
        if one_bit {
            table.iter_mut().for_each(|byte| *byte &= 1);
        }
        let parameters =
            FiniteDifferencesParameters::with(identity.shape, one_bit, setting).unwrap();
        assert_eq!(hex(&parameters.encode()), text("parameters"));

        let kernels = Kernels::detect();
        let points = encoding::encode(&parameters, &table, kernels, 2, &|_| {}).unwrap();
        if let Some(given) = case["points"].as_str() {
            assert_eq!(hex(&points), given, "{what}");
        }
        let server =
            FiniteDifferencesServer::new(parameters.clone(), points.into(), kernels).unwrap();

        let client = FiniteDifferencesClient::new(parameters.clone());
        let mut rng = SecretRng::from_fixed_seed([number("rng_seed") as u8; 32]);
        let index = RecordIndex::new(number("index"), identity.shape).unwrap();
        let (queries, pending) = client.query(&index, &mut rng).unwrap();
        let mut answers = Vec::new();
        for (role, query) in (0..2).zip(&queries) {
            let text = |name: &str| case[name][usize::from(role)].as_str().unwrap();
            let query = query.encode();
            assert_eq!(hex(&query), text("queries"), "{what}");
            let query = FiniteDifferencesQuery::decode(&parameters, &query).unwrap();
            let answer = server.answer(Role(role), &[query]).remove(0).encode();
            assert_eq!(hex(&answer), text("answers"), "{what}");
            answers.push(FiniteDifferencesAnswer::decode(&parameters, &answer).unwrap());
        }
        assert_eq!((queries.len(), case["answers"].as_array().unwrap().len()), (2, 2));
        let record = client.recover(pending, &answers).unwrap();
        assert_eq!(hex(&record), text("record"), "{what}");
    }
}
