//! Special states: permutations, false answers, and records that come in order.

use super::super::change::{SinglePassChange, SinglePassReservation, decode};
use super::*;
use crate::conformance::hinted::follow;
use privet_core::Blame;

/// A client that was written down and loaded again sends the same queries.
#[test]
fn written_down_and_read_back_is_the_same_client() {
    let mut world = World::cut(200, 2, 9);
    let mut client = world.client();
    for used in 0..client.supply().total {
        world.get(&mut client, used % 200).unwrap();
    }
    let condensed = client.condense().unwrap();
    assert!(condensed == client.condense().unwrap());
    let next = world.load(&condensed);
    assert!(condensed == next.generation.encode(&world.parameters).unwrap());
    for index in 0..200 {
        let index = world.index(index);
        let (one, other) = (
            client.generation.permutations.place_of(&index),
            next.generation.permutations.place_of(&index),
        );
        assert_eq!((one.partition, one.hint), (other.partition, other.hint));
    }
}

#[test]
fn a_false_answer_makes_records_false_and_nothing_else() {
    let mut world = World::cut(60, 4, 6);
    let generation = world.generation();
    let (mut client, mut honest) = (world.load(&generation), world.load(&generation));
    let mut rng = SecretRng::from_fixed_seed([6; 32]);
    let mut same_rng = SecretRng::from_fixed_seed([6; 32]);
    let mut wrong = 0;
    for round in 0..40 {
        let index = world.index(round);
        let reserved = client.reserve(&index, &mut rng).unwrap();
        assert_eq!(reserved.queries, honest.reserve(&index, &mut same_rng).unwrap().queries);
        client.apply(&reserved.change).unwrap();
        honest.apply(&reserved.change).unwrap();
        world.settle(&mut honest, &reserved);
        let mut answers = world.answers(&reserved.queries);
        if round == 0 {
            answers[0].records.fill(0x55);
        }
        let change = client.settle(reserved.id, &answers).unwrap();
        client.apply(&change).unwrap();
        let record = client.take_record(reserved.id).unwrap().unwrap();
        wrong += u32::from(record[..] != *world.record(round));
    }
    assert!(wrong > 0, "hints were changed by what server 0 sent");
}

#[test]
fn an_answer_that_waits_for_another_cannot_be_answered_again() {
    let mut world = World::cut(50, 3, 5);
    let mut client = world.client();
    let first = world.reserve(&mut client, 5).unwrap();
    let second = world.reserve(&mut client, 6).unwrap();
    let settled = world.settle(&mut client, &second);
    assert!(client.take_record(second.id).is_none());
    assert_eq!(client.apply(&settled).unwrap_err().blame(), Blame::Corrupted);
    assert!(client.settle(second.id, &world.answers(&second.queries)).is_err());
    assert_eq!(client.open(), [first.id]);
    world.settle(&mut client, &first);
    assert_eq!(&client.take_record(second.id).unwrap().unwrap()[..], world.record(6));
    assert_eq!(&client.take_record(first.id).unwrap().unwrap()[..], world.record(5));
}

#[test]
fn one_late_answer_tells_a_whole_generation() {
    let mut world = World::cut(12_000, 1, 6000);
    let mut client = world.client();
    let total = client.supply().total;
    assert_eq!(total, 4096);
    let reserved: Vec<_> =
        (0..total).map(|number| world.reserve(&mut client, number * 2).unwrap()).collect();
    for late in reserved.iter().skip(1).rev() {
        world.settle(&mut client, late);
        assert!(client.take_record(late.id).is_none());
    }
    world.settle(&mut client, &reserved[0]);
    for (number, reserved) in (0..).zip(&reserved) {
        assert_eq!(
            &client.take_record(reserved.id).unwrap().unwrap()[..],
            world.record(number * 2)
        );
    }
    assert!(world.hints_fit(&client));
}

/// Changing any number of any permutation makes it invalid: 9 partitions of 7.
#[test]
fn permutations_that_are_none_are_refused() {
    let mut world = World::cut(60, 3, 7);
    let generation = world.generation();
    for number in 0..63 {
        for (at, change) in [(0, 1), (0, 7), (0, 0x80), (1, 1), (1, 0xff)] {
            let mut wrong = generation.to_vec();
            wrong[4 + 2 * number + at] ^= change;
            let refusal = world.try_load(&wrong).err().unwrap();
            assert_eq!(refusal.blame(), Blame::Corrupted, "{number}");
        }
    }
}

/// Edits that a journal cannot contain: a wrong number of them, and edits of records beyond the
/// table.
#[test]
fn edits_that_make_no_sense_are_refused() {
    let mut world = World::cut(100, 4, 10);
    let mut client = world.client();
    let delta = world.edit(3);
    let change = client.delta_change(&delta).unwrap();
    for (at, byte) in [(17, 4), (17, 2), (20, 0xff), (25, 100)] {
        let mut wrong = change.to_vec();
        wrong[at] = byte;
        assert_eq!(client.apply(&wrong).unwrap_err().blame(), Blame::Corrupted, "{at}");
    }
    client.apply(&change).unwrap();
}

#[test]
fn answers_to_another_lookup_or_under_other_parameters_are_refused() {
    let mut world = World::cut(50, 3, 5);
    let mut client = world.client();
    let reserved = world.reserve(&mut client, 5).unwrap();
    let short = || SinglePassAnswer { records: vec![0; 29] };
    let refusal = client.settle(reserved.id, &[short(), short()]).unwrap_err();
    assert_eq!(refusal.blame(), Blame::ApiMisuse);
    let answers = world.answers(&reserved.queries);
    let mut of_another = client.settle(reserved.id, &answers).unwrap();
    of_another[1] = 1;
    assert_eq!(client.apply(&of_another).unwrap_err().blame(), Blame::Corrupted);
}

#[test]
fn no_more_lookups_are_replayed_than_a_generation_has() {
    let mut world = World::cut(500, 3, 20);
    let mut client = world.client();
    let lookup = |id: u64| {
        let seed = privet_core::Secret::new([0; 32]);
        SinglePassReservation { id, index: world.index(1), seed }.encode()
    };
    let total = client.supply().total;
    (0..total).for_each(|id| client.apply(&lookup(id)).unwrap());
    assert_eq!(client.apply(&lookup(total)).unwrap_err().blame(), Blame::Corrupted);
}

#[test]
fn an_edit_does_not_use_up_a_query_and_is_in_what_is_written_down() {
    let mut world = World::cut(30, 2, 5);
    let mut client = world.client();
    let total = client.supply().total;
    for round in 0..total {
        world.get(&mut client, round % 30).unwrap();
    }
    let delta = world.edit(10);
    let change = follow(&mut client, &delta).unwrap();
    assert!(
        matches!(decode(&world.parameters, &change), Ok(SinglePassChange::Edits(same)) if same == delta)
    );
    assert_eq!(client.supply().used, total);
    let mut next = world.load(&client.condense().unwrap());
    for index in 0..30 {
        assert_eq!(&world.get(&mut next, index).unwrap()[..], world.record(index));
    }
}
