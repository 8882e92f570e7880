//! Every record comes back, over any shape and any sequence of queries; and where hints run out, that is said and nothing else happens.

use super::super::lookups::{Failure, Lookups};
use super::*;
use privet_core::Blame;
use proptest::prelude::*;

/// Sequences of indices that stress one thing each.
#[derive(Clone, Copy, Debug)]
enum Sequence {
    Random,
    OneForEver,
    FewOverAndOver,
    Ascending,
}

use Sequence::*;

impl Sequence {
    fn indices<F: AnswerForm>(self, world: &mut World<F>, count: u64) -> Vec<u64> {
        let records = world.parameters.shape().records();
        let start = world.rng.below(records);
        (0..count)
            .map(|k| match self {
                Random => world.rng.below(records),
                OneForEver => start,
                FewOverAndOver => (start + world.rng.below(5)) % records,
                Ascending => (start + k) % records,
            })
            .collect()
    }
}

fn sequences() -> impl Strategy<Value = Sequence> {
    prop_oneof![Just(Random), Just(OneForEver), Just(FewOverAndOver), Just(Ascending)]
}

fn all_come_back<F: AnswerForm>(parameters: PianoParameters, sequence: Sequence, seed: u8) {
    let mut world = World::<F>::with(parameters);
    world.rng = SecretRng::from_fixed_seed([seed; 32]);
    let mut client = world.client();
    let count = client.supply().total.min(60);
    for index in sequence.indices(&mut world, count) {
        assert_eq!(&world.get(&mut client, index).unwrap()[..], world.record(index));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

    #[test]
    fn any_table_any_sequence(
        records in prop_oneof![1u64..=20, 1u64..=5000],
        record_len in 1u64..=300,
        sequence in sequences(),
        seed in any::<u8>(),
    ) {
        let parameters = PianoParameters::new(&identity(shape(records, record_len))).unwrap();
        all_come_back::<SingleParity>(parameters.clone(), sequence, seed);
        all_come_back::<AllParities>(parameters, sequence, seed);
    }

    #[test]
    fn any_cut_of_a_table(
        records in 1u64..=3000,
        log2_chunk in 0u32..=12,
        sequence in sequences(),
    ) {
        let parameters = cut(records, 5, 1 << log2_chunk);
        all_come_back::<SingleParity>(parameters.clone(), sequence, 1);
        all_come_back::<AllParities>(parameters, sequence, 2);
    }
}

for_both_forms!(a_window_serves_all_its_queries_whatever_they_are_and_then_says_so);

fn a_window_serves_all_its_queries_whatever_they_are_and_then_says_so<F: AnswerForm>() {
    for (records, sequence) in [
        (900, Random),
        (900, OneForEver),
        (900, FewOverAndOver),
        (900, Ascending),
        (1, OneForEver),
        (2, Random),
        (7, Ascending),
        (8, Ascending),
        (12, Random),
    ] {
        let mut world = World::<F>::new(records, 3);
        let mut client = world.client();
        let total = client.supply().total;
        assert_eq!(total, world.parameters.window());
        for index in sequence.indices(&mut world, total) {
            assert_eq!(&world.get(&mut client, index).unwrap()[..], world.record(index));
        }
        assert_eq!(client.supply().left(), 0);
        let index = world.index(0);
        let refused = client.reserve(&index, &mut world.rng);
        assert_eq!(refused.err().unwrap().blame(), Blame::Exhausted);
    }
}

for_both_forms!(records_chosen_by_where_they_lie_use_up_a_chunk_and_that_is_said);

/// What Piano does not promise to withstand.
fn records_chosen_by_where_they_lie_use_up_a_chunk_and_that_is_said<F: AnswerForm>() {
    let parameters = cut(4096, 2, 128);
    let spares = u64::from(parameters.spares());
    let mut world = World::<F>::with(parameters);
    let mut client = world.client();
    let together = world.indices_in_chunk(3);
    assert!(spares < together.len() as u64);
    for (number, index) in (0..).zip(&together) {
        let reserved = world.reserve(&mut client, *index).unwrap();
        // A query goes out each time, of the same length.
        assert_eq!(reserved.queries.len(), 1);
        let bytes = reserved.queries[0].encode();
        assert_eq!(bytes.len(), PianoQuery::<F>::encoded_len(&world.parameters));
        match world.settle(&mut client, &reserved).unwrap() {
            Ok(record) => {
                assert!(number < spares);
                assert_eq!(&record[..], world.record(*index));
            }
            Err(error) => {
                assert!(number >= spares);
                assert_eq!(error.blame(), Blame::Selective);
                assert!(error.message().contains("Do nothing about it"), "{error}");
                assert!(error.message().contains("shuffled table"), "{error}");
            }
        }
        assert_eq!(client.supply().used, number + 1, "a failure uses up as much as a success");
    }
    // What is known is told again, and other chunks are as good as before.
    assert_eq!(&world.get(&mut client, together[0]).unwrap()[..], world.record(together[0]));
    for index in world.indices_in_chunk(4).into_iter().take(20) {
        assert_eq!(&world.get(&mut client, index).unwrap()[..], world.record(index));
    }
}

for_both_forms!(one_record_over_and_over_uses_up_nothing);

fn one_record_over_and_over_uses_up_nothing<F: AnswerForm>() {
    let parameters = cut(4096, 2, 128);
    let spares = parameters.spares();
    let mut world = World::<F>::with(parameters);
    let mut client = world.client();
    for _ in 0..2 * spares {
        assert_eq!(&world.get(&mut client, 9).unwrap()[..], world.record(9));
    }
    let (chunk, _) = world.parameters.cut().place(world.position(9));
    assert!(client.spares_used[chunk as usize] < spares);
    // All were different records.
    let mut asked: Vec<_> =
        (0..u64::from(2 * spares)).map(|id| client.lookups.position(id)).collect();
    asked.sort_unstable();
    asked.dedup();
    assert_eq!(asked.len(), 2 * spares as usize);

    // A client that does not notice repeats runs dry.
    let mut careless = world.client();
    let mut failed = 0;
    for _ in 0..2 * spares {
        failed += u32::from(world.get(&mut careless, 9).is_err());
        careless.lookups.forget();
    }
    assert!(failed >= spares, "{failed}");
}

#[test]
fn no_hint_contains_the_record_as_often_as_the_formula_says() {
    let parameters = cut(2000, 1, 32).with_hints(64, 8);
    let expected = (1.0 - 1.0 / 32f64).powi(64);
    let mut world = World::<SingleParity>::with(parameters);
    let (mut failed, mut asked) = (0, 0);
    for _ in 0..200 {
        // Fresh hints each time: failures of one window are not independent.
        let client = world.client();
        for position in [0, 40, 999, 1999] {
            asked += 1;
            failed += u32::from(client.table.find(position).choose(&mut world.rng).is_none());
        }
    }
    let rate = f64::from(failed) / f64::from(asked);
    let deviation = (expected / f64::from(asked)).sqrt();
    assert!((rate - expected).abs() < 6.0 * deviation, "{rate} observed, {expected} expected");
}

for_both_forms!(a_lookup_without_a_hint_sends_a_cover_fails_and_may_be_tried_again);

fn a_lookup_without_a_hint_sends_a_cover_fails_and_may_be_tried_again<F: AnswerForm>() {
    let mut world = World::<F>::with(cut(2000, 2, 64).with_hints(64, 32));
    let mut client = world.client();
    let (mut found, mut failed) = (0, 0);
    for index in 0..60 {
        let reserved = world.reserve(&mut client, index * 31).unwrap();
        match world.settle(&mut client, &reserved).unwrap() {
            Ok(record) => {
                found += 1;
                assert_eq!(&record[..], world.record(index * 31));
            }
            Err(error) => {
                failed += 1;
                assert_eq!(error.blame(), Blame::Selective);
                assert!(error.message().contains("Do nothing about it"), "{error}");
                assert!(error.message().starts_with("no hint contains the record"));
                let position = world.position(index * 31);
                assert_eq!(client.lookups.find(position), None, "nothing was asked for");
            }
        }
    }
    assert!(failed > 5 && found > 3, "{failed} failed, {found} found");
    assert_eq!(client.supply().used, 60, "a failure uses up as much as a success");
}

for_both_forms!(every_arm_prepares_the_same_hints);

fn every_arm_prepares_the_same_hints<F: AnswerForm>() {
    use privet_kernels::Arm;
    let world = World::<F>::new(3000, 17);
    let generations = Arm::available().into_iter().map(|arm| {
        let mut preparation = PianoPreparation::<F>::begin(
            world.parameters.clone(),
            world.digest(),
            &mut SecretRng::from_fixed_seed([5; 32]),
            Kernels::with_arm(arm).unwrap(),
        )
        .unwrap();
        preparation.absorb(0, world.server.streamed()).unwrap();
        preparation.finish().unwrap();
        preparation.generation().unwrap().to_vec()
    });
    let generations: Vec<_> = generations.collect();
    assert!(generations.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn the_streamed_table_is_the_table_in_the_order_of_the_permutation() {
    let world = World::<SingleParity>::new(5000, 7);
    for index in 0..5000 {
        let at = world.position(index) as usize * 7;
        assert_eq!(&world.server.streamed()[at..at + 7], world.record(index));
    }
    assert_eq!(world.server.streamed().len(), world.records.len());
}

#[test]
fn possible_parities_are_what_they_say() {
    let mut world = World::<AllParities>::with(cut(300, 3, 4));
    let chunks = world.parameters.chunks() as usize;
    let offsets: Vec<u16> = (1..chunks).map(|_| world.rng.below(4) as u16).collect();
    let query = PianoQuery::<AllParities>::new(&world.parameters, offsets.clone());
    let answer = world.answer(&query);
    let mut records = world.server.streamed().to_vec();
    records.resize(chunks * 4 * 3, 0);
    for left_out in 0..chunks {
        let mut expected = [0; 3];
        for (chunk, offset) in (0..chunks).filter(|chunk| *chunk != left_out).zip(&offsets) {
            let at = (chunk * 4 + usize::from(*offset)) * 3;
            expected.iter_mut().zip(&records[at..at + 3]).for_each(|(sum, byte)| *sum ^= byte);
        }
        assert_eq!(answer.parities[left_out * 3..][..3], expected, "{left_out}");
    }
}

#[test]
fn positions_beyond_32_bits_are_told_apart() {
    for records in [u64::from(u32::MAX), 1 << 32, (1 << 33) + 5] {
        let mut lookups = Lookups::new(records, 1, 200, Kernels::detect()).unwrap();
        let last = records - 1;
        let mut asked = vec![7, last, last - 1, 0];
        // The same lower half; and the lower half of a cover, which is for no record.
        asked.extend([7 + (1 << 32), u64::from(u32::MAX)].into_iter().filter(|at| *at < last));
        for (id, position) in (0..).zip(&asked) {
            assert_eq!(lookups.find(*position), None, "{records}: {position}");
            lookups.reserve(Ok(*position), id);
            lookups.reserve(Err(Failure::NoHint), id);
        }
        for (number, position) in (0..).zip(&asked) {
            assert_eq!(lookups.find(*position), Some(2 * number));
            assert_eq!(lookups.position(2 * number), Some(*position));
            assert_eq!(lookups.position(2 * number + 1), None);
        }
    }
}
