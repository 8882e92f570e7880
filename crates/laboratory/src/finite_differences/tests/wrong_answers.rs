//! Servers that answer wrongly: the record is wrong if the altered entry is part of it, and nothing
//! else happens.

use super::*;

/// Alters every entry of both answers in turn, for every record.
fn check(one_bit: bool, record_len: u64) {
    let shape = identity(21, record_len).shape;
    let parameters = FiniteDifferencesParameters::with(shape, one_bit, exactly(7, 3)).unwrap();
    let world = world_of(&parameters);
    let mut rng = SecretRng::from_os().unwrap();
    for of in 0..shape.records() {
        let word = parameters.words().word(of);
        for (place, difference) in parameters.ball().words().enumerate() {
            for liar in 0..2 {
                let (queries, pending) = world.lookup(of, &mut rng);
                let mut answers = world.read(&world.answers(&queries));
                let entries = &mut answers[liar].entries;
                match one_bit {
                    true => entries[place / 8] ^= 1 << (place % 8),
                    false => entries[(place + 1) * record_len as usize - 1] ^= 0x80,
                }
                let record = world.client.recover(pending, &answers).unwrap();
                assert_eq!(
                    *record == *world.record(of),
                    difference & !word != 0,
                    "{of}, {difference:#b}"
                );
            }
        }
    }
}

#[test]
fn an_altered_entry_alters_the_record_exactly_if_it_is_part_of_it() {
    check(false, 1);
    check(false, 5);
    check(true, 1);
}

#[test]
fn answers_under_other_parameters_are_refused() {
    let (world, other) = (World::new(100, 3), World::new(1000, 3));
    let mut rng = SecretRng::from_os().unwrap();
    let (_, pending) = world.lookup(7, &mut rng);
    let (queries, _) = other.lookup(7, &mut rng);
    let answers = other.read(&other.answers(&queries));
    let refusal = world.client.recover(pending, &answers).err().unwrap();
    assert_eq!(refusal.blame(), Blame::ApiMisuse);
}
