//! `vectors/singlepass.json`, computed by a program that shares no code with this one.

use super::super::change::SinglePassReservation;
use super::super::permutations::Coins;
use super::*;
use crate::conformance::known::Known;
use crate::contract::Reserved;
use privet_core::Secret;

fn seed(known: &Known) -> Secret<[u8; 32]> {
    Secret::new(known.bytes("seed").try_into().unwrap())
}

#[test]
fn known_answers() {
    for case in Known::cases(include_str!("../../../../../vectors/singlepass.json"), 5) {
        let number = |name: &str| case.number(name);
        let parameters = cut(number("records"), number("record_len"), number("partition_records"));
        assert_eq!(u64::from(parameters.partitions()), number("partitions"));
        let mut world = World::with(parameters);

        let mut preparation = world.preparation();
        preparation.seed = seed(&case);
        let reply = Tested::reply(&world, &mut preparation);
        case.assert("hints_blake3", &reply);
        preparation.absorb(0, &reply).unwrap();
        preparation.finish().unwrap();
        let generation = preparation.generation().unwrap();
        case.assert("generation_blake3", &generation);

        let mut client = world.load(&generation);
        for (id, known) in (0..).zip(case.list("lookups")) {
            let index = world.index(known.number("index"));
            let permutations = &client.generation.permutations;
            let coins = Coins::from_seed(&world.parameters, &seed(&known), Kernels::detect());
            let queries = permutations.show(permutations.place_of(&index), &coins);
            for (query, name) in queries.iter().zip(["query_0", "query_1"]) {
                known.assert(name, &query.encode());
            }
            let change = SinglePassReservation { id, index, seed: seed(&known) }.encode();
            client.apply(&change).unwrap();
            let reserved = Reserved { id: ReservationId(id), change, queries: queries.into() };
            world.settle(&mut client, &reserved);
            let record = client.take_record(reserved.id).unwrap().unwrap();
            known.assert("record", &record);
        }
        case.assert(
            "generation_after_blake3",
            &client.generation.encode(&world.parameters).unwrap(),
        );
    }
}
