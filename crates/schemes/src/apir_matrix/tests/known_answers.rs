use super::*;
use crate::conformance::known::Known;

#[test]
fn known_answers() {
    for case in Known::cases(include_str!("../../../../../vectors/apir_matrix.json"), 8) {
        let world = World::new(case.number("records"), case.number("record_len"));
        let parameters = world.parameters();
        assert_eq!(parameters.row_records(), case.number("row_records"));
        assert_eq!(parameters.rows(), case.number("rows"));
        assert_eq!(parameters.row_len(), case.number("row_len"));
        case.assert("root", &world.hint);
        let rows: Vec<u8> = (0..parameters.rows()).flat_map(|row| world.row(row)).collect();
        case.assert("rows_blake3", &rows);
        world.check_known(&case);
    }
}
