//! `vectors/harmony.json`, computed by a program that shares no code with this one.

use super::*;
use crate::conformance::known::Known;

#[test]
fn known_answers() {
    for case in Known::cases(include_str!("../../../../../vectors/harmony.json"), 4) {
        let number = |name: &str| case.number(name);
        let parameters = cut(number("records"), number("record_len"), number("segment_records"));
        let parameters = parameters.with_cells_log2(number("cells_log2") as u32);
        assert_eq!(u64::from(parameters.lookups()), number("lookups"));
        let mut world = World::of(parameters, case.bytes("table"));

        let mut preparation = world.preparation();
        let key = case.bytes("key").as_slice().try_into().unwrap();
        let generation = Generation::with_key(&world.parameters, &key).unwrap();
        preparation.hints =
            GrowingHarmony::new(world.parameters.clone(), generation, Kernels::detect());
        let generation = world.prepared(&mut preparation, 100);
        case.assert("generation", &generation);

        let mut client = world.load(&generation);
        for known in case.list("lookups_made") {
            let index = world.index(known.number("index"));
            let reserved = client.reserve_with(&index, |_, _| known.number("drawn")).unwrap();
            known.assert("query", &reserved.queries[0].encode());
            known.assert("lookup_change", &reserved.change);
            client.apply(&reserved.change).unwrap();
            let answers = world.answers(&reserved.queries);
            known.assert("answer", &answers[0].encode());
            let change = client.settle(reserved.id, &answers).unwrap();
            known.assert("answer_change", &change);
            client.apply(&change).unwrap();
            let record = client.take_record(reserved.id).unwrap().unwrap();
            known.assert("record", &record);
        }
        case.assert("generation_after", client.generation.encoded());
    }
}
