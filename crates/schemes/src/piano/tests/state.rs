//! The state through interruptions: streams that stop, changes that are replayed, answers that come late or never, and damage.

use super::*;
use privet_core::Blame;
use privet_core::hints::{Change, Exchange};
use proptest::prelude::*;

for_both_forms!(a_stream_goes_on_from_a_checkpoint_to_the_same_hints);

fn a_stream_goes_on_from_a_checkpoint_to_the_same_hints<F: AnswerForm>() {
    for (records, record_len) in [(1, 1), (300, 7), (5000, 32), (20_000, 64)] {
        let mut world = World::<F>::new(records, record_len);
        let streamed = world.server.streamed().to_vec();
        let mut whole = world.preparation_with(&mut SecretRng::from_fixed_seed([9; 32]));
        whole.absorb(0, &streamed).unwrap();
        whole.finish().unwrap();

        let mut broken = world.preparation_with(&mut SecretRng::from_fixed_seed([9; 32]));
        let piece = 1 + streamed.len() / 13;
        while broken.next_offset() < streamed.len() as u64 {
            let start = broken.next_offset() as usize;
            let end = (start + piece).min(streamed.len());
            broken.absorb(start as u64, &streamed[start..end]).unwrap();
            if world.rng.below(3) == 0 {
                // Killed: everything since the last complete group is lost.
                let offset = broken.checkpoint_offset();
                let checkpoint = broken.checkpoint();
                broken = PianoPreparation::resume(
                    world.parameters.clone(),
                    world.digest(),
                    &checkpoint,
                    Kernels::detect(),
                )
                .unwrap();
                assert_eq!(broken.next_offset(), offset);
            }
        }
        broken.finish().unwrap();
        assert_eq!(*broken.generation().unwrap(), *whole.generation().unwrap());
    }
}

#[test]
fn a_stream_out_of_order_too_long_too_short_or_damaged_is_noticed() {
    let mut world = World::<SingleParity>::new(3000, 5);
    let streamed = world.server.streamed().to_vec();
    let blame = |result: Result<()>| result.unwrap_err().blame();
    assert_eq!(blame(world.preparation().absorb(1, &streamed[1..])), Blame::PeerMisbehaved);
    let longer = [&streamed[..], &[0]].concat();
    assert_eq!(blame(world.preparation().absorb(0, &longer)), Blame::PeerMisbehaved);
    let mut short = world.preparation();
    short.absorb(0, &streamed[1..]).unwrap();
    assert_eq!(blame(short.finish()), Blame::PeerMisbehaved);
    assert_eq!(short.generation().unwrap_err().blame(), Blame::ApiMisuse);
    // The table in its natural order is another table.
    let mut unshuffled = world.preparation();
    unshuffled.absorb(0, &world.records).unwrap();
    assert_eq!(blame(unshuffled.finish()), Blame::Integrity);
    for at in [0, 7499, streamed.len() - 1] {
        let mut damaged = streamed.clone();
        damaged[at] ^= 1;
        let mut preparation = world.preparation();
        preparation.absorb(0, &damaged).unwrap();
        assert_eq!(blame(preparation.finish()), Blame::Integrity, "byte {at}");
        assert!(preparation.generation().is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

    /// Lookups overlap, their answers come in any order or not at all, and now and then the client starts anew from its hints and the changes so far. Whatever can be told is told,
    /// and right.
    #[test]
    fn answers_in_any_order_and_replayed_changes(
        seed in any::<u8>(),
        few in any::<bool>(),
        steps in prop::collection::vec(0u8..8, 60),
    ) {
        overlapping::<SingleParity>(seed, few, &steps);
        overlapping::<AllParities>(seed, few, &steps);
    }
}

fn overlapping<F: AnswerForm>(seed: u8, few: bool, steps: &[u8]) {
    let mut world = World::<F>::with(cut(200, 4, 8));
    world.rng = SecretRng::from_fixed_seed([seed; 32]);
    let generation = world.generation(1000);
    let mut client = world.load(&generation);
    let mut changes: Vec<Zeroizing<Vec<u8>>> = Vec::new();
    let mut wanted = Vec::new();
    let mut open: Vec<Reserved<PianoQuery<F>>> = Vec::new();
    let answer_one = |client: &mut PianoClient<F>,
                      changes: &mut Vec<_>,
                      world: &World<F>,
                      reserved: &Reserved<PianoQuery<F>>| {
        let answer = world.answer(&reserved.queries[0]);
        let change = client.settle(reserved.id, &[answer]).unwrap();
        client.apply(&change).unwrap();
        changes.push(change);
    };
    for step in steps {
        match step {
            0..=3 => {
                let index = if few { 40 + world.rng.below(3) } else { world.rng.below(200) };
                let reserved = world.reserve(&mut client, index).unwrap();
                changes.push(reserved.change.clone());
                wanted.push(index);
                open.push(reserved);
            }
            4..=6 if !open.is_empty() => {
                let at = world.rng.below(open.len() as u64) as usize;
                let reserved = open.swap_remove(at);
                answer_one(&mut client, &mut changes, &world, &reserved);
            }
            7 => {
                let mut again = world.load(&generation);
                changes.iter().for_each(|change| again.apply(change).unwrap());
                assert!(snapshot(&again) == snapshot(&client));
                client = again;
            }
            _ => {}
        }
        let mut ids: Vec<ReservationId> = open.iter().map(|reserved| reserved.id).collect();
        ids.sort_unstable();
        assert_eq!(client.open(), ids);
    }
    for reserved in open {
        // What is not answered is not told, even if the record is known from elsewhere.
        assert!(client.take_record(reserved.id).is_none());
        answer_one(&mut client, &mut changes, &world, &reserved);
    }
    // Everything is answered now, so everything can be told, also what waited for other answers. Once.
    for (id, index) in wanted.iter().enumerate() {
        let record = client.take_record(ReservationId(id as u64)).unwrap();
        assert_eq!(&record.unwrap()[..], world.record(*index));
        assert!(client.take_record(ReservationId(id as u64)).is_none());
    }
}

for_both_forms!(what_is_sent_does_not_depend_on_what_was_answered);

fn what_is_sent_does_not_depend_on_what_was_answered<F: AnswerForm>() {
    let mut world = World::<F>::new(700, 2);
    let generation = world.generation(1000);
    let (mut answered, mut silent) = (world.load(&generation), world.load(&generation));
    let mut rng = SecretRng::from_fixed_seed([6; 32]);
    let mut same_rng = SecretRng::from_fixed_seed([6; 32]);
    for index in [5, 5, 5, 600, 5, 601, 5, 5].into_iter().cycle().take(100) {
        let index = world.index(index);
        let one = answered.reserve(&index, &mut rng).unwrap();
        let other = silent.reserve(&index, &mut same_rng).unwrap();
        assert_eq!(one.queries[0].encode(), other.queries[0].encode());
        assert_eq!(one.change, other.change);
        answered.apply(&one.change).unwrap();
        silent.apply(&other.change).unwrap();
        world.settle(&mut answered, &one);
    }
    assert_eq!((answered.open().len(), silent.open().len()), (0, 100));
}

for_both_forms!(a_repeated_lookup_waits_for_the_first_one);

fn a_repeated_lookup_waits_for_the_first_one<F: AnswerForm>() {
    let mut world = World::<F>::new(700, 4);
    let mut client = world.client();
    let first = world.reserve(&mut client, 9).unwrap();
    let again = world.reserve(&mut client, 9).unwrap();
    let third = world.reserve(&mut client, 9).unwrap();
    assert!(world.settle(&mut client, &again).is_none(), "the record is not there yet");
    assert_eq!(client.open(), [first.id, third.id]);
    assert_eq!(&world.settle(&mut client, &first).unwrap().unwrap()[..], world.record(9));
    assert_eq!(&client.take_record(again.id).unwrap().unwrap()[..], world.record(9));
    assert!(client.take_record(third.id).is_none(), "its filler is not answered yet");
    assert_eq!(&world.settle(&mut client, &third).unwrap().unwrap()[..], world.record(9));
    // A filler's record is known, and told when it is wanted.
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
            match world.settle(&mut client, &next) {
                // A cover fails; all others are told.
                Some(Ok(record)) => assert_eq!(&record[..], world.record(index)),
                Some(Err(error)) => assert_eq!(error.blame(), Blame::Selective),
                None => waiting.push((next.id, index)),
            }
        }
        assert_eq!(client.open(), [first.id], "only the first is to be sent again");
        // That one may have been a cover itself, for which nobody waits.
        match world.settle(&mut client, &first).unwrap() {
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
        let Ok(Change::Exchange(Exchange { successor, .. })) =
            Change::decode(&reserved.change, 3, 3)
        else {
            panic!("a reservation is an exchange")
        };
        assert_eq!(successor, chunk * spares + number);
        let layout = client.layout;
        let erased = |client: &PianoClient<F>, place: std::ops::Range<usize>| {
            client.table.bytes()[place].iter().all(|byte| *byte == 0)
        };
        assert!(erased(&client, layout.backup(successor as usize)));
        world.settle(&mut client, &reserved).unwrap().unwrap();
        if F::REPLACES_THE_WANTED {
            assert!(erased(&client, layout.pair(successor as usize)));
            assert!(!erased(&client, layout.pair(successor as usize + 1)));
        }
    }
}

for_both_forms!(changes_that_do_not_fit_are_refused_and_change_nothing);

fn changes_that_do_not_fit_are_refused_and_change_nothing<F: AnswerForm>() {
    let mut world = World::<F>::new(500, 3);
    let mut client = world.client();
    let reserved = world.reserve(&mut client, 5).unwrap();
    let answer = world.answer(&reserved.queries[0]);
    let settled = client.settle(reserved.id, &[answer]).unwrap();
    let next = world.index(6);
    let good = client.reserve(&next, &mut world.rng).unwrap().change;

    let corrupted = |client: &mut PianoClient<F>, change: &[u8]| {
        let before = snapshot(client);
        assert_eq!(client.apply(change).unwrap_err().blame(), Blame::Corrupted);
        assert!(before == snapshot(client));
    };
    corrupted(&mut client, &reserved.change);
    corrupted(&mut client, &[]);
    corrupted(&mut client, &[9; 12]);
    for len in 0..good.len() {
        corrupted(&mut client, &good[..len]);
    }
    for len in 0..settled.len() {
        corrupted(&mut client, &settled[..len]);
    }
    let Ok(Change::Exchange(exchange)) = Change::decode(&good, 3, 3) else {
        panic!("a reservation is an exchange")
    };
    let Ok(Change::Exchange(used)) = Change::decode(&reserved.change, 3, 3) else {
        panic!("a reservation is an exchange")
    };
    for wrong in [
        Exchange { id: exchange.id + 1, ..exchange },
        Exchange { successor: exchange.successor + 1, ..exchange },
        Exchange { index: 500, ..exchange },
        Exchange { note: exchange.id + 1, ..exchange },
        Exchange { hint: used.hint, ..exchange },
        // No hint, but a backup; and ids that no hint has.
        Exchange { hint: None, ..exchange },
        Exchange { hint: Some(u32::MAX - 1), ..exchange },
    ] {
        corrupted(&mut client, &Change::Exchange(wrong).encode());
    }
    client.apply(&settled).unwrap();
    corrupted(&mut client, &settled);
    client.apply(&good).unwrap();
}

for_both_forms!(damaged_hints_and_checkpoints_are_refused_at_every_length);

fn damaged_hints_and_checkpoints_are_refused_at_every_length<F: AnswerForm>() {
    let mut world = World::<F>::with(cut(60, 3, 4).with_hints(64, 8));
    let generation = world.generation(50);
    let load = |bytes: &[u8]| {
        let bytes = Zeroizing::new(bytes.to_vec());
        let kernels = Kernels::detect();
        PianoClient::<F>::load(world.parameters.clone(), bytes, kernels).map(|_| ())
    };
    load(&generation).unwrap();
    let mut preparation = world.preparation_with(&mut SecretRng::from_fixed_seed([1; 32]));
    preparation.absorb(0, &world.server.streamed()[..100]).unwrap();
    let checkpoint = preparation.checkpoint();
    let resume = |bytes: &[u8]| {
        let (digest, kernels) = (world.digest(), Kernels::detect());
        PianoPreparation::<F>::resume(world.parameters.clone(), digest, bytes, kernels).map(|_| ())
    };
    resume(&checkpoint).unwrap();
    for (bytes, read) in
        [(&generation[..], &load as &dyn Fn(&[u8]) -> Result<()>), (&checkpoint[..], &resume)]
    {
        for len in 0..bytes.len() {
            assert_eq!(read(&bytes[..len]).unwrap_err().blame(), Blame::Corrupted, "{len}");
        }
        let longer = [bytes, &[0]].concat();
        assert_eq!(read(&longer).unwrap_err().blame(), Blame::Corrupted);
    }
    let mut other_version = generation.clone();
    other_version[0] += 1;
    assert_eq!(load(&other_version).unwrap_err().blame(), Blame::Corrupted);
}

#[test]
fn answers_that_fit_no_lookup_are_refused() {
    let mut world = World::<SingleParity>::new(500, 3);
    let mut client = world.client();
    let reserved = world.reserve(&mut client, 5).unwrap();
    let answer = || world.answer(&reserved.queries[0]);
    let blame = |result: Result<Zeroizing<Vec<u8>>>| result.err().unwrap().blame();
    assert_eq!(blame(client.settle(reserved.id, &[])), Blame::ApiMisuse);
    assert_eq!(blame(client.settle(reserved.id, &[answer(), answer()])), Blame::ApiMisuse);
    assert_eq!(blame(client.settle(ReservationId(1), &[answer()])), Blame::ApiMisuse);
    assert!(client.take_record(ReservationId(0)).is_none());
    assert!(client.take_record(ReservationId(1)).is_none());
    world.settle(&mut client, &reserved).unwrap().unwrap();
    assert_eq!(blame(client.settle(reserved.id, &[answer()])), Blame::ApiMisuse);
}
