//! Special states: lookups that wait for others, and spares that are used up.

use super::*;
use crate::conformance::hinted::follow;
use privet_core::Blame;
use privet_core::hints::{Exchange, StateChange};

for_both_forms!(a_repeated_lookup_waits_for_the_first_one);

fn a_repeated_lookup_waits_for_the_first_one<F: AnswerForm>() {
    let mut world = World::<F>::new(700, 4);
    let mut client = world.client();
    let first = world.reserve(&mut client, 9).unwrap();
    let again = world.reserve(&mut client, 9).unwrap();
    let third = world.reserve(&mut client, 9).unwrap();
    assert!(world.tell(&mut client, &again).is_none(), "the record is not there yet");
    assert_eq!(client.open(), [first.id, third.id]);
    assert_eq!(&world.tell(&mut client, &first).unwrap().unwrap()[..], world.record(9));
    assert_eq!(&client.take_record(again.id).unwrap().unwrap()[..], world.record(9));
    assert!(client.take_record(third.id).is_none(), "its filler is not answered yet");
    assert_eq!(&world.tell(&mut client, &third).unwrap().unwrap()[..], world.record(9));
    // A filler's record is known, and returned when it is wanted.
    let filler = client.lookups.position(again.id.0).unwrap();
    let index = world.parameters.permutation().index_at(filler);
    let before = client.lookups.find(filler);
    assert_eq!(before, Some(again.id.0));
    assert_eq!(&world.get(&mut client, index).unwrap()[..], world.record(index));
    assert_eq!(client.lookups.find(filler), before, "it was not asked for again");
}

#[test]
fn a_record_behind_an_unanswered_query_waits_for_it() {
    // Few hints contain each record here, so that a successor is soon used again.
    let mut world = World::<SingleParity>::with(cut(64, 4, 16).with_hints(64, 64));
    let mut waited = 0;
    for _ in 0..20 {
        let mut client = world.client();
        let first = world.reserve(&mut client, 9).unwrap();
        let mut waiting = Vec::new();
        for index in 10..40 {
            let next = world.reserve(&mut client, index).unwrap();
            match world.tell(&mut client, &next) {
                // A cover fails; all other lookups return their record.
                Some(Ok(record)) => assert_eq!(&record[..], world.record(index)),
                Some(Err(error)) => assert_eq!(error.blame(), Blame::Selective),
                None => waiting.push((next.id, index)),
            }
        }
        assert_eq!(client.open(), [first.id], "only the first is to be sent again");
        // That one may itself have been a cover, for which no lookup waits.
        match world.tell(&mut client, &first).unwrap() {
            Ok(record) => assert_eq!(&record[..], world.record(9)),
            Err(_) => assert!(waiting.is_empty()),
        }
        waited += waiting.len();
        for (id, index) in waiting {
            assert_eq!(&client.take_record(id).unwrap().unwrap()[..], world.record(index));
        }
    }
    assert!(waited > 0, "some lookup went through the first one's successor");
}

for_both_forms!(spares_are_used_once_each_in_order_and_erased);

fn spares_are_used_once_each_in_order_and_erased<F: AnswerForm>() {
    let mut world = World::<F>::with(cut(1000, 3, 64));
    let mut client = world.client();
    let spares = world.parameters.spares();
    let chunk = 5;
    for (number, index) in (0..).zip(world.indices_in_chunk(chunk).into_iter().take(20)) {
        let reserved = world.reserve(&mut client, index).unwrap();
        let Ok(StateChange::Exchange(Exchange { successor, .. })) =
            StateChange::decode(&reserved.change, 3, 3)
        else {
            panic!("a reservation is an exchange")
        };
        assert_eq!(successor, chunk * spares + number);
        let layout = client.layout;
        let erased = |client: &PianoClient<F>, place: std::ops::Range<usize>| {
            client.table.bytes()[place].iter().all(|byte| *byte == 0)
        };
        assert!(erased(&client, layout.backup(successor as usize)));
        world.tell(&mut client, &reserved).unwrap().unwrap();
        if F::REPLACES_THE_WANTED {
            assert!(erased(&client, layout.pair(successor as usize)));
            assert!(!erased(&client, layout.pair(successor as usize + 1)));
        }
    }
}

#[test]
fn the_table_in_its_natural_order_is_another_table() {
    let mut world = World::<SingleParity>::new(3000, 5);
    let mut unshuffled = world.preparation();
    unshuffled.absorb(0, &world.records).unwrap();
    assert_eq!(unshuffled.finish().unwrap_err().blame(), Blame::Integrity);
}

for_both_forms!(patched_hints_are_those_of_the_edited_table);

fn patched_hints_are_those_of_the_edited_table<F: AnswerForm>() {
    for (records, record_len) in [(1, 1), (40, 5), (3000, 8)] {
        let mut world = World::<F>::new(records, record_len);
        let prepare = |world: &World<F>| {
            let mut preparation = world.preparation_with([4; 32], Kernels::detect());
            world.prepared(&mut preparation, 1 << 16).to_vec()
        };
        let mut client = world.load(&prepare(&world));
        let delta = world.edit(25);
        follow(&mut client, &delta).unwrap();
        assert!(client.table.bytes() == prepare(&world), "every parity and every pair");
    }
}
