//! Servers that answer wrongly: the record is wrong, and nothing else happens.

use super::*;
use crate::finite_differences::many_servers::recovery::Recovery;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn an_altered_entry_alters_the_record_if_it_is_one_of_its_word(
        of in 0u64..20,
        record_len in 1u64..=40,
        liar in 0usize..4,
        place in any::<prop::sample::Index>(),
        byte in any::<prop::sample::Index>(),
        added in 1u32..125,
    ) {
        let world = full(record_len, setting(4, 5, 6, 3));
        let world = match liar {
            // Balls of one point, and of several.
            0..2 => world,
            _ => full(record_len, setting(3, 3, 6, 3)),
        };
        let (parameters, liar) = (world.parameters(), liar % 3);
        let mut rng = SecretRng::from_os().unwrap();
        let (queries, pending) = world.lookup(of, &mut rng);
        let mut answers: Vec<Vec<u8>> = world.answers(&queries);
        let entry_len = parameters.entry_len();
        let place = place.index(parameters.ball().count() as usize);
        let packings = parameters.packing().packings();
        let entry = &mut answers[liar][place * entry_len..][..entry_len];
        let before = symbols(parameters, entry);
        let altered = &mut entry[byte.index(entry_len)];
        *altered = ((u32::from(*altered) + added % (packings - 1) + 1) % packings) as u8;
        // The digits after the record's last one have no meaning.
        let read = Encoding::new(parameters).symbols();
        let same = before[..read] == symbols(parameters, entry)[..read];

        let set = parameters.ball().words().nth(place).unwrap();
        let coefficient =
            Recovery::new(parameters).coefficient(liar, set.count_ones() as usize);
        let unused = set & !parameters.words().word(of) != 0 || coefficient == 0 || same;
        let record = world.client.recover(pending, &world.read(&answers)).unwrap();
        prop_assert_eq!(*record == world.record(of), unused);
    }

    #[test]
    fn answers_of_any_bytes_are_refused_or_recovered_from(
        record_len in 1u64..=20,
        bytes in prop::collection::vec(any::<u8>(), 1000),
        below in 200u8..=255,
    ) {
        let world = full(record_len, setting(3, 3, 6, 3));
        let mut rng = SecretRng::from_os().unwrap();
        let (_, pending) = world.lookup(7, &mut rng);
        let len = ManyServersAnswer::encoded_len(world.parameters());
        let mut left = bytes.iter().cycle().map(|byte| byte % below);
        let answers: Result<Vec<_>, _> = (0..3)
            .map(|_| {
                let bytes: Vec<u8> = left.by_ref().take(len).collect();
                ManyServersAnswer::decode(world.parameters(), &bytes)
            })
            .collect();
        match answers {
            Ok(answers) => {
                let record = world.client.recover(pending, &answers).unwrap();
                prop_assert_eq!(record.len() as u64, record_len);
            }
            Err(refusal) => prop_assert_eq!(refusal.blame(), Blame::InvalidMessage),
        }
    }
}

#[test]
fn what_adds_up_to_no_record_is_a_wrong_record_like_any_other() {
    for record_len in [1, 15, 16, 17, 33] {
        let world = full(record_len, setting(3, 3, 6, 3));
        let (parameters, field) = (world.parameters(), world.parameters().packing());
        let mut rng = SecretRng::from_os().unwrap();
        let (queries, pending) = world.lookup(11, &mut rng);
        let mut answers: Vec<Vec<u8>> = world.answers(&queries);
        // The entry of the empty set is part of every record, of one server at least. The test
        // alters it so that all digits become the largest.
        let recovery = Recovery::new(parameters);
        let liar = (0..3).find(|server| recovery.coefficient(*server, 0) != 0).unwrap();
        let factor = field.inverse(recovery.coefficient(liar, 0));
        let mut record = vec![0; parameters.entry_len()];
        Encoding::new(parameters).write(world.record(11), &mut record);
        let entry = &mut answers[liar][..parameters.entry_len()];
        let wanted: Vec<u8> = symbols(parameters, &record)
            .iter()
            .zip(symbols(parameters, entry))
            .map(|(symbol, here)| {
                let missing = field.difference(2, u32::from(*symbol));
                ((u32::from(here) + field.product(factor, missing)) % 3) as u8
            })
            .collect();
        field.pack(&wanted, entry);
        let record = world.client.recover(pending, &world.read(&answers)).unwrap();
        assert_eq!(record.len() as u64, record_len);
        assert_ne!(*record, world.record(11));
    }
}

#[test]
fn answers_under_other_parameters_are_refused() {
    let [world, other] = [9, 8].map(|len| full(len, setting(4, 5, 4, 2)));
    let (queries, pending) = world.lookup(3, &mut SecretRng::from_os().unwrap());
    let answers = other.read(&other.answers(&queries));
    let refusal = world.client.recover(pending, &answers).err().unwrap();
    assert_eq!(refusal.blame(), Blame::ApiMisuse);
}
