use super::*;
use crate::conformance::known::Known;

#[test]
fn known_answers() {
    for case in Known::cases(include_str!("../../../../../vectors/apir_dpf.json"), 8) {
        let world = World::new(case.number("records"), case.number("record_len"));
        assert_eq!(u64::from(world.parameters().domain().depth()), case.number("depth"));
        let (_, pending) = world.known_queries(&case);
        case.assert("alpha", &pending.alpha.expose().to_le_bytes());
        world.check_known(&case);
    }
}
