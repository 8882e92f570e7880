//! Special states: hints that wait for answers, invalid hints, and the counters of a checkpoint.

use super::*;

#[test]
fn a_record_behind_an_unanswered_query_waits_for_it() {
    // Few hints contain each record here, so that a successor is soon used again.
    let shape = TableShape::new(64, 4).unwrap();
    let cut = DummySubsetsParameters::with_partition_records(shape, 16).unwrap();
    let mut world = World::with(cut.with_hint_security(4).unwrap());
    let mut client = world.client();
    let first = world.reserve(&mut client, 9).unwrap();
    let mut waiting = Vec::new();
    for _ in 0..20 {
        let next = world.reserve(&mut client, 9).unwrap();
        match world.tell(&mut client, &next) {
            Some(record) => {
                // A cover fails; all other lookups return their record.
                if let Ok(record) = record {
                    assert_eq!(&record[..], world.record(9));
                }
            }
            None => waiting.push(next.id),
        }
    }
    assert!(!waiting.is_empty(), "some lookup went through the first one's successor");
    assert_eq!(client.open(), [first.id], "only the first is to be sent again");
    assert_eq!(&world.tell(&mut client, &first).unwrap().unwrap()[..], world.record(9));
    for id in waiting {
        assert_eq!(&client.take_record(id).unwrap().unwrap()[..], world.record(9));
    }
}

/// Hints whose select values tie at the cutoff are marked by a cutoff of 0. Real ties are rare, so
/// the test makes some.
#[test]
fn invalid_hints_are_counted_and_never_used() {
    let mut world = World::new(900, 3);
    let mut generation = world.generation().to_vec();
    let (singles, pairs) = (world.parameters.singles(), world.parameters.pairs());
    let invalid = |hint: u32| if hint < singles { hint % 3 == 1 } else { hint.is_multiple_of(2) };
    for hint in (0..singles + pairs).filter(|hint| invalid(*hint)) {
        let at = 20 + hint as usize * 4;
        assert_ne!(generation[at..at + 4], [0; 4]);
        generation[at..at + 4].fill(0);
    }
    let mut client = world.load(&generation);
    let total = u64::from(pairs / 2);
    assert_eq!(client.supply().total, total);
    assert_eq!(World::all_contents(&client).len() as u32, singles - singles.div_ceil(3));
    let mut pairs_used = Vec::new();
    for number in 0..total {
        let index = number * 7 % 900;
        let reserved = world.reserve(&mut client, index).unwrap();
        let StateChange::Exchange(Exchange { hint: Some(used), successor: pair, .. }) =
            world.decode(&reserved.change)
        else {
            panic!("two thirds of the hints are enough to find one")
        };
        assert!(!invalid(used) && !invalid(singles + pair));
        pairs_used.push(pair);
        assert_eq!(&world.tell(&mut client, &reserved).unwrap().unwrap()[..], world.record(index));
    }
    let valid: Vec<u32> = (0..pairs).filter(|pair| !invalid(singles + pair)).collect();
    assert_eq!(pairs_used, valid, "each valid pair once, in order");
    let index = world.index(0);
    assert_eq!(client.reserve(&index, &mut world.rng).err().unwrap().blame(), Blame::Exhausted);
}

/// The number of partitions, the number of subtrees in the digest, and the length of the digest's
/// tail: each too large, or inconsistent with the others.
#[test]
fn checkpoints_that_make_no_sense_are_refused() {
    let mut world = World::new(60, 3);
    let mut preparation = world.preparation();
    preparation.absorb(0, &world.records[..100]).unwrap();
    let checkpoint = preparation.checkpoint();
    for (at, byte) in [(0, 0xff), (3, 0xff), (0, 0), (5, 1), (12, 0xff), (13, 1), (15, 0xff)] {
        let mut wrong = checkpoint.to_vec();
        if wrong[at] != byte {
            wrong[at] = byte;
            let refusal = world.resume(&wrong).err().unwrap();
            assert_eq!(refusal.blame(), Blame::Corrupted, "{at} {byte}");
        }
    }
}
