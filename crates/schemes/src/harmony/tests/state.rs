//! Crashes, and answers that come in another order.

use super::*;
use crate::contract::Reserved;
use crate::planted::values_permuted;
use zeroize::Zeroizing;

/// A crash after each record of the journal. The client starts again from its generation and from
/// what the journal holds by then; it has the same state, sends the same bytes again, and goes on.
#[test]
fn a_crash_at_every_record_of_the_journal_changes_nothing() {
    for in_flight in [1, 3] {
        let mut world = World::with(cut_small(150, 3, 4, 9));
        let generation = world.generation();
        let mut client = world.load(&generation);
        let mut journal: Vec<Zeroizing<Vec<u8>>> = Vec::new();
        let mut open: Vec<(u64, Reserved<HarmonyQuery>)> = Vec::new();
        for number in 0..client.supply().total {
            let index = number * number % 7 * 20;
            let next = world.index(index);
            let state = Tested::state(&client);
            let mut restarted = world.load(&generation);
            journal.iter().for_each(|change| restarted.apply(change).unwrap());
            assert!(Tested::state(&restarted) == state && restarted.open() == client.open());
            assert_eq!(restarted.open(), open.iter().map(|(_, it)| it.id).collect::<Vec<_>>());
            let mut coins = SecretRng::from_fixed_seed([number as u8; 32]);
            let again = restarted.reserve(&next, &mut coins).unwrap();
            // The restarted client goes on with the queries that are open, as they were.
            for (index, reserved) in &open {
                let record = world.tell(&mut restarted, reserved).unwrap().unwrap();
                assert_eq!(*record, world.record(*index));
            }
            if !open.is_empty() {
                restarted.apply(&again.change).unwrap();
            }

            let mut coins = SecretRng::from_fixed_seed([number as u8; 32]);
            let reserved = client.reserve(&next, &mut coins).unwrap();
            assert_eq!(reserved.queries[0].encode(), again.queries[0].encode());
            assert_eq!(reserved.change, again.change);
            client.apply(&reserved.change).unwrap();
            journal.push(reserved.change.clone());
            open.push((index, reserved));
            if open.len() == in_flight {
                let (index, reserved) = open.remove(0);
                journal.push(world.settle(&mut client, &reserved));
                let record = client.take_record(reserved.id).unwrap().unwrap();
                assert_eq!(*record, world.record(index));
            }
        }
    }
}

#[test]
fn a_record_waits_for_all_earlier_answers() {
    let mut world = World::cut(200, 4, 8);
    let mut client = world.client();
    let lookups = [9, 9, 100, 9].map(|index| world.reserve(&mut client, index).unwrap());
    let [first, second, third, fourth] = &lookups;
    for later in [fourth, second] {
        assert!(world.tell(&mut client, later).is_none());
    }
    assert_eq!(client.open(), [first.id, third.id]);
    assert_eq!(*world.tell(&mut client, first).unwrap().unwrap(), world.record(9));
    assert_eq!(*client.take_record(second.id).unwrap().unwrap(), world.record(9));
    assert!(client.take_record(fourth.id).is_none());
    assert_eq!(*world.tell(&mut client, third).unwrap().unwrap(), world.record(100));
    assert_eq!(*client.take_record(fourth.id).unwrap().unwrap(), world.record(9));
    assert!(world.hints_fit(&client));
}

/// Wrong bytes for one record make one other hint wrong, and the one to which the wanted record
/// moves; all others stay right.
#[test]
fn a_wrong_answer_spoils_as_many_hints_as_it_has_records() {
    let mut world = World::cut(1000, 4, 8);
    let mut client = world.client();
    let reserved = world.reserve(&mut client, 5).unwrap();
    let mut answers = world.answers(&reserved.queries);
    answers[0].records.iter_mut().for_each(|byte| *byte ^= 1);
    let change = client.settle(reserved.id, &answers).unwrap();
    client.apply(&change).unwrap();
    let (mut right, mut wrong) = (0, 0);
    for index in 0..client.supply().left() {
        match *world.get(&mut client, 100 + index).unwrap() == *world.record(100 + index) {
            true => right += 1,
            false => wrong += 1,
        }
    }
    assert!(wrong > 0 && right > 50, "{right} {wrong}");
}

#[test]
fn a_lookup_that_moves_what_is_not_there_is_refused() {
    let mut world = World::cut(200, 4, 8);
    let mut client = world.client();
    let index = world.index(9);
    let good = client.reserve(&index, &mut world.rng).unwrap().change;
    for place in 0..8 {
        let mut wrong = good.to_vec();
        let segment = &mut wrong[13 + 32 + 4 * place..][..4];
        let other = if segment == [0xff; 4] { [0; 4] } else { [0xff; 4] };
        segment.copy_from_slice(&other);
        assert_eq!(client.apply(&wrong).unwrap_err().blame(), Blame::Corrupted);
        wrong[13 + 32 + 4 * place..][..4]
            .copy_from_slice(&world.parameters.segments().to_le_bytes());
        assert_eq!(client.apply(&wrong).unwrap_err().blame(), Blame::Corrupted);
    }
    client.apply(&good).unwrap();
}

/// The work for an answer, which has no slot that grows: nothing is permuted.
#[test]
fn an_answer_permutes_nothing_at_any_time() {
    let mut world = World::cut(1000, 4, 8);
    let mut client = world.client();
    for number in 0..client.supply().total {
        let reserved = world.reserve(&mut client, number * 7 % 1000).unwrap();
        let before = values_permuted();
        world.tell(&mut client, &reserved).unwrap().unwrap();
        assert_eq!(values_permuted(), before);
    }
}

#[test]
fn a_table_with_more_records_needs_other_hints() {
    let mut world = World::cut(200, 4, 8);
    let client = world.client();
    for (records, record_len, follows) in [(200, 4, true), (201, 4, false), (200, 5, false)] {
        let after = TableShape::new(records, record_len).unwrap();
        assert_eq!(client.follows(after), follows);
    }
}
