//! `vectors/tapir.json`, computed by a program that shares no code with this one.

use super::*;
use crate::conformance::known::Known;
use crate::contract::ReservationId;
use privet_core::Secret;

#[test]
fn known_answers() {
    for case in Known::cases(include_str!("../../../../../vectors/tapir.json"), 4) {
        let number = |name: &str| case.number(name);
        let shape = TableShape::new(number("records"), number("record_len")).unwrap();
        let pass = SinglePassParameters::with_partition_records(shape, number("partition_records"))
            .unwrap();
        let commitment =
            Merkle::new(vectors_of(&pass).unwrap(), number("cap_levels") as u8).unwrap();
        let parameters = TapirParameters::<MerkleForm>::new(pass, commitment).unwrap();
        let mut world = World::with(parameters);

        let mut preparation = world.preparation();
        let seed: [u8; 32] = case.bytes("seed").try_into().unwrap();
        preparation.set_seed(Secret::new(seed));
        preparation.absorb(0, &world.stream()).unwrap();
        preparation.finish().unwrap();
        let generation = preparation.generation().unwrap();
        case.assert("generation_blake3", &generation);

        let mut client = world.load(&generation);
        for (id, known) in (0..).zip(case.list("lookups")) {
            let change = Zeroizing::new(known.bytes("change"));
            client.apply(&change).unwrap();
            let queries = client.shown();
            for (query, name) in queries.iter().zip(["query_0", "query_1"]) {
                let query = Message::<TapirParameters<MerkleForm>>::encode(query);
                known.assert(name, &query);
            }
            let reserved = Reserved { id: ReservationId(id), change, queries };
            for (answer, name) in
                world.answer_bytes(&reserved).iter().zip(["answer_0_blake3", "answer_1_blake3"])
            {
                known.assert(name, answer);
            }
            world.settle(&mut client, &reserved);
            let record = client.take_record(reserved.id).unwrap().unwrap();
            known.assert("record", &record);
        }
        case.assert("generation_after_blake3", &client.written_down());
    }
}
