//! If hints run out, the client says so, and nothing else happens.

use super::super::lookups::{Failure, Lookups};
use super::*;
use privet_core::Blame;

for_both_forms!(records_chosen_by_where_they_lie_use_up_a_chunk_and_that_is_said);

/// Piano does not promise to withstand this.
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
        match world.tell(&mut client, &reserved).unwrap() {
            Ok(record) => {
                assert!(number < spares);
                assert_eq!(&record[..], world.record(*index));
            }
            Err(error) => {
                assert!(number >= spares);
                assert_eq!(error.blame(), Blame::Selective);
                assert!(error.message().contains("was a cover"), "{error}");
                assert!(error.message().contains("shuffled table"), "{error}");
            }
        }
        assert_eq!(client.supply().used, number + 1, "a failure uses up as much as a success");
    }
    // Known records are returned again, and other chunks still work.
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
        match world.tell(&mut client, &reserved).unwrap() {
            Ok(record) => {
                found += 1;
                assert_eq!(&record[..], world.record(index * 31));
            }
            Err(error) => {
                failed += 1;
                assert_eq!(error.blame(), Blame::Selective);
                assert!(error.message().contains("was a cover"), "{error}");
                assert!(error.message().starts_with("no hint contains the record"));
                let position = world.position(index * 31);
                assert_eq!(client.lookups.find(position), None, "nothing was asked for");
            }
        }
    }
    assert!(failed > 5 && found > 3, "{failed} failed, {found} found");
    assert_eq!(client.supply().used, 60, "a failure uses up as much as a success");
}

#[test]
fn the_streamed_table_is_the_table_in_the_order_of_the_permutation() {
    let world = World::<SingleParity>::new(5000, 7);
    for index in 0..5000 {
        let at = world.position(index) as usize * 7;
        assert_eq!(&world.server.streamed().unwrap()[at..at + 7], world.record(index));
    }
    assert_eq!(world.server.streamed().unwrap().len(), world.records.len());
}

#[test]
fn possible_parities_are_what_they_say() {
    let mut world = World::<AllParities>::with(cut(300, 3, 4));
    let chunks = world.parameters.chunks() as usize;
    let offsets: Vec<u16> = (1..chunks).map(|_| world.rng.below(4) as u16).collect();
    let query = PianoQuery::<AllParities>::new(&world.parameters, offsets.clone());
    let answer = world.answers(&[query]).remove(0);
    let mut records = world.server.streamed().unwrap().to_vec();
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
