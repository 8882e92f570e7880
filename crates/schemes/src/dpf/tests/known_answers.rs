use super::*;
use crate::conformance::known::Known;
use privet_core::dpf::Evaluation;

#[test]
fn known_answers() {
    for case in Known::cases(include_str!("../../../../../vectors/dpf.json"), 8) {
        let world = World::new(case.number("records"), case.number("record_len"));
        let parameters = world.parameters();
        assert_eq!(u64::from(parameters.domain().depth()), case.number("depth"));
        let (queries, _) = world.known_queries(&case);
        let leaves = |bytes: &Vec<u8>| -> Vec<u8> {
            let query = world.query(bytes);
            let evaluation = Evaluation::new(Kernels::detect(), parameters.table(), &query.key);
            let mut leaves = vec![0; parameters.domain().leaves() as usize];
            evaluation.leaves(evaluation.root(), &mut leaves);
            leaves.iter().flat_map(|leaf| leaf.to_le_bytes()).collect()
        };
        case.assert_list("leaves_blake3", &queries.iter().map(leaves).collect::<Vec<_>>());
        world.check_known(&case);
    }
}
