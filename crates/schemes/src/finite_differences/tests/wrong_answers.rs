//! Servers that answer wrongly: the record is wrong where the altered entry is part of it, and nothing else happens.

use super::*;

/// Alters every entry of both answers in turn, for every record.
fn check(one_bit: bool, record_len: u64) {
    let shape = identity(21, record_len).shape;
    let parameters = FiniteDifferencesParameters::with(shape, one_bit, exactly(7, 3)).unwrap();
    let world = World::with(parameters.clone(), Kernels::detect(), 1);
    let mut rng = SecretRng::from_os().unwrap();
    for of in 0..shape.records() {
        let word = parameters.words().word(of);
        for (place, difference) in parameters.ball().words().enumerate() {
            for liar in 0..2 {
                let (queries, pending) = world.client.query(&world.index(of), &mut rng).unwrap();
                let mut answers: Vec<FiniteDifferencesAnswer> = (0..)
                    .map(Role)
                    .zip(&queries)
                    .map(|(role, query)| world.answer(role, query))
                    .collect();
                let entries = &mut answers[liar].entries;
                match one_bit {
                    true => entries[place / 8] ^= 1 << (place % 8),
                    false => entries[(place + 1) * record_len as usize - 1] ^= 0x80,
                }
                let record = world.client.recover(pending, &answers).unwrap();
                let right =
                    &world.table[of as usize * record_len as usize..][..record_len as usize];
                assert_eq!(*record == *right, difference & !word != 0, "{of}, {difference:#b}");
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
fn a_record_takes_one_answer_of_each_server_under_its_parameters() {
    let world = World::new(100, 3);
    let other = World::new(1000, 3);
    let mut rng = SecretRng::from_os().unwrap();
    for (count, of) in [(0, &world), (1, &world), (3, &world), (2, &other)] {
        let (queries, pending) = world.client.query(&world.index(7), &mut rng).unwrap();
        let (theirs, _) = of.client.query(&of.index(7), &mut rng).unwrap();
        let answers: Vec<_> =
            theirs.iter().cycle().take(count).map(|query| of.answer(Role(0), query)).collect();
        assert_eq!(queries.len(), 2);
        let refusal = world.client.recover(pending, &answers).err().unwrap();
        assert_eq!(refusal.blame(), Blame::ApiMisuse);
    }
}
