//! `vectors/piano.json`, computed by a program that shares no code with this one.

use super::*;
use crate::test_tables::hex;
use privet_core::PublicSeed;
use privet_core::RecordIndex;
use privet_core::hints::{Exchange, StateChange};
use privet_core::permutation::Permutation;
use serde_json::Value;

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../../../vectors/piano.json")).unwrap()
}

#[test]
fn permutations() {
    for case in vectors()["permutations"].as_array().unwrap() {
        let domain = case["records"].as_u64().unwrap();
        let seed = [case["seed_byte"].as_u64().unwrap() as u8; 32];
        let permutation = Permutation::new(domain, &PublicSeed::from_bytes(seed));
        for pair in case["positions"].as_array().unwrap() {
            let (index, position) = (pair[0].as_u64().unwrap(), pair[1].as_u64().unwrap());
            let index = RecordIndex::new(index, shape(domain, 1)).unwrap();
            assert_eq!(permutation.position(&index), position, "{domain}");
        }
    }
}

for_both_forms!(known_answers);

fn known_answers<F: AnswerForm>() {
    for case in vectors()["cases"].as_array().unwrap() {
        let number = |name: &str| case[name].as_u64().unwrap();
        let parameters = cut(number("records"), number("record_len"), number("chunk_records"));
        assert_eq!(u64::from(parameters.chunks()), number("chunks"));
        let (primaries, spares) = (number("primaries") as u32, number("spares") as u32);
        let parameters = parameters.with_hints(primaries, spares);
        let mut records = vec![0; parameters.shape().bytes() as usize];
        blake3::Hasher::new().update(b"a table").finalize_xof().fill(&mut records);
        let mut world = World::<F>::of(parameters, records);
        let streamed = blake3::hash(world.server.streamed().unwrap()).to_hex();
        assert_eq!(streamed.as_str(), case["streamed_blake3"].as_str().unwrap());

        let mut preparation = world.preparation();
        let key = [number("key_byte") as u8; 16];
        preparation.hints.generation[4..20].copy_from_slice(&key);
        preparation.absorb(0, world.server.streamed().unwrap()).unwrap();
        preparation.finish().unwrap();
        let generation = preparation.generation().unwrap();
        let of_form = &case[F::ID.name()];
        let digest = blake3::hash(&generation).to_hex();
        assert_eq!(digest.as_str(), of_form["generation_blake3"].as_str().unwrap());

        let mut client = world.load(&generation);
        for (id, known) in (0..).zip(of_form["queries"].as_array().unwrap()) {
            let number = |name: &str| known[name].as_u64().unwrap();
            let (row, index) = (number("hint") as u32, number("index"));
            let position = world.position(index);
            assert_eq!(position, number("position"));
            let (chunk, _) = world.parameters.cut().place(position);
            let successor = client.next_spare(chunk).unwrap();
            let hint = client.table.hint(row).unwrap();
            let query = client.query_through(hint, position, successor);
            assert_eq!(hex(&query.encode()), known["query"].as_str().unwrap());
            let answer = world.answers(&[query]).remove(0);
            assert_eq!(hex(&answer.encode()), known["answer"].as_str().unwrap());
            let exchange = Exchange {
                id,
                hint: Some(hint.id),
                successor,
                index: position,
                real_half: false,
                note: id,
            };
            client.apply(&StateChange::Exchange(exchange).encode()).unwrap();
            let settled = client.settle(ReservationId(id), &[answer]).unwrap();
            client.apply(&settled).unwrap();
            let record = client.take_record(ReservationId(id)).unwrap().unwrap();
            assert_eq!(hex(&record), known["record"].as_str().unwrap());
            assert_eq!(hex(client.table.parity(row)), known["successor_parity"].as_str().unwrap());
        }
    }
}
