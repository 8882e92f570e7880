use super::*;
use privet_schemes::conformance::known::Known;

#[test]
fn known_answers() {
    let file = include_str!("../../../../../../vectors/finite_differences_many.json");
    for case in Known::cases(file, 10) {
        let [servers, field, variables, degree] =
            ["servers", "field", "variables", "degree"].map(|name| case.number(name) as u32);
        let setting = setting(servers, field, variables, degree);
        let world = World::of(&(case.number("records"), case.number("record_len"), Some(setting)));
        let view = TableView::new(world.identity, &world.table).unwrap();
        case.assert("points_blake3", &points(world.parameters(), view));
        assert_eq!(world.roles().len(), servers as usize);
        world.check_known(&case);
    }
}
