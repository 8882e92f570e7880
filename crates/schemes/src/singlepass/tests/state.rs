//! The state through interruptions: changes that are replayed, answers that come late or never, a generation that becomes the next, and damage.

use super::super::change::Lookup;
use super::*;
use crate::contract::Endless as _;
use privet_core::Blame;
use proptest::prelude::*;

fn same_state(one: &SinglePassClient, other: &SinglePassClient, parameters: &SinglePassParameters) {
    assert_eq!(one.open(), other.open());
    assert_eq!(one.supply(), other.supply());
    let encoded = |client: &SinglePassClient| client.generation.encode(parameters).unwrap();
    assert!(encoded(one) == encoded(other), "permutations or hints differ");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Lookups overlap, their answers come in any order, and now and then the client is killed and starts anew from its generation and the changes so far. What can be told is told in
    /// order, and right.
    #[test]
    fn answers_in_any_order_and_replayed_changes(
        seed in any::<u8>(),
        same in any::<bool>(),
        partition_records in 2u64..=12,
        steps in prop::collection::vec(0u8..8, 60),
    ) {
        let mut world = World::with(cut(100, 4, partition_records));
        world.rng = SecretRng::from_fixed_seed([seed; 32]);
        let generation = world.generation();
        let mut client = world.load(&generation);
        let mut journal: Vec<Zeroizing<Vec<u8>>> = Vec::new();
        let mut wanted = Vec::new();
        let mut open: Vec<Reserved<SinglePassQuery>> = Vec::new();
        let mut settled_last = None;
        let mut told = 0;
        for step in steps.into_iter().map(Some).chain([None]) {
            match step {
                Some(0..=3) => {
                    let index = if same { 42 } else { world.rng.below(100) };
                    let reserved = world.reserve(&mut client, index).unwrap();
                    journal.push(reserved.change.clone());
                    wanted.push(index);
                    open.push(reserved);
                    settled_last = None;
                }
                Some(4..=6) if !open.is_empty() => {
                    let at = world.rng.below(open.len() as u64) as usize;
                    let reserved = open.swap_remove(at);
                    journal.push(world.settle(&mut client, &reserved));
                    settled_last = Some(reserved);
                }
                Some(_) => {
                    let mut again = world.load(&generation);
                    // The last answers may not have reached the disk: then they are asked for again.
                    let lost = settled_last.take().filter(|_| world.rng.below(2) == 0);
                    if let Some(lost) = lost {
                        journal.pop();
                        told = told.min(lost.id.0);
                        open.push(lost);
                        journal.iter().for_each(|change| again.apply(change).unwrap());
                    } else {
                        journal.iter().for_each(|change| again.apply(change).unwrap());
                        same_state(&again, &client, &world.parameters);
                    }
                    client = again;
                    // What a dead process had told, this one tells again.
                    (0..told).for_each(|id| assert!(client.take_record(ReservationId(id)).is_some()));
                }
                None => {
                    open.drain(..).for_each(|reserved| { world.settle(&mut client, &reserved); });
                }
            }
            let mut ids: Vec<u64> = open.iter().map(|reserved| reserved.id.0).collect();
            ids.sort_unstable();
            let open_ids: Vec<u64> = client.open().iter().map(|id| id.0).collect();
            prop_assert_eq!(&open_ids, &ids);
            // All before the first open one can be told now, and no others.
            let tellable = ids.first().copied().unwrap_or(wanted.len() as u64);
            for id in told..tellable {
                let record = client.take_record(ReservationId(id)).unwrap().unwrap();
                prop_assert_eq!(&record[..], world.record(wanted[id as usize]));
            }
            prop_assert!((tellable..wanted.len() as u64).all(|id| client.take_record(ReservationId(id)).is_none()));
            told = tellable;
        }
        prop_assert_eq!(told, wanted.len() as u64);
        world.assert_hints_fit(&client);
    }
}

#[test]
fn a_generation_serves_its_queries_and_becomes_the_next() {
    let mut world = World::with(cut(300, 3, 16));
    let mut client = world.client();
    let total = client.supply().total;
    assert!((64..=4096).contains(&total));
    for generation in 0..3 {
        for used in 0..total {
            assert_eq!(client.supply().used, used);
            assert_eq!(client.condense().unwrap_err().blame(), Blame::ApiMisuse);
            let index = (used * 7 + generation) % 300;
            if used + 1 < total {
                assert_eq!(&world.get(&mut client, index)[..], world.record(index));
            } else {
                let last = world.reserve(&mut client, index).unwrap();
                assert_eq!(client.condense().unwrap_err().blame(), Blame::ApiMisuse);
                world.settle(&mut client, &last);
            }
        }
        let index = world.index(0);
        let refused = client.reserve(&index, &mut world.rng);
        assert_eq!(refused.err().unwrap().blame(), Blame::Exhausted);
        let next = world.load(&client.condense().unwrap());
        assert_eq!((next.supply().used, next.open().len()), (0, 0));
        world.assert_hints_fit(&next);
        client = next;
    }
}

/// A client that goes on after being written down sends what it would have sent anyway.
#[test]
fn written_down_and_read_back_is_the_same_client() {
    let mut world = World::with(cut(200, 2, 9));
    let mut client = world.client();
    for used in 0..client.supply().total {
        world.get(&mut client, used % 200);
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
fn what_is_sent_does_not_depend_on_what_was_answered() {
    let mut world = World::with(cut(700, 2, 20));
    let generation = world.generation();
    let (mut answered, mut silent) = (world.load(&generation), world.load(&generation));
    let mut rng = SecretRng::from_fixed_seed([6; 32]);
    let mut same_rng = SecretRng::from_fixed_seed([6; 32]);
    let total = answered.supply().total as usize;
    for index in [5, 5, 5, 600, 5, 601, 5, 5].into_iter().cycle().take(total) {
        let index = world.index(index);
        let one = answered.reserve(&index, &mut rng).unwrap();
        let other = silent.reserve(&index, &mut same_rng).unwrap();
        assert_eq!(one.queries, other.queries);
        assert_eq!(one.change, other.change);
        answered.apply(&one.change).unwrap();
        silent.apply(&other.change).unwrap();
        world.settle(&mut answered, &one);
    }
    assert_eq!((answered.open().len(), silent.open().len()), (0, total));
}

#[test]
fn a_false_answer_makes_records_false_and_nothing_else() {
    let mut world = World::with(cut(60, 4, 6));
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
        let mut answers = world.answers(&reserved);
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
fn changes_that_do_not_fit_are_refused_and_change_nothing() {
    let mut world = World::with(cut(500, 3, 20));
    let mut client = world.client();
    let reserved = world.reserve(&mut client, 5).unwrap();
    let settled = client.settle(reserved.id, &world.answers(&reserved)).unwrap();
    let next = world.index(6);
    let good = client.reserve(&next, &mut world.rng).unwrap().change;

    let parameters = world.parameters.clone();
    let corrupted = |client: &mut SinglePassClient, change: &[u8]| {
        let before =
            (client.generation.encode(&parameters).unwrap(), client.open(), client.supply());
        assert_eq!(client.apply(change).unwrap_err().blame(), Blame::Corrupted);
        let after =
            (client.generation.encode(&parameters).unwrap(), client.open(), client.supply());
        assert!(before == after);
    };
    corrupted(&mut client, &reserved.change);
    corrupted(&mut client, &[]);
    corrupted(&mut client, &[9; 49]);
    for len in 0..good.len() {
        corrupted(&mut client, &good[..len]);
    }
    for len in (0..settled.len()).step_by(7).chain([settled.len() - 1]) {
        corrupted(&mut client, &settled[..len]);
    }
    // Kind, id, and an index beyond the table: each wrong alone.
    for (at, byte) in [(0, 2), (0, 7), (1, 1), (10, 2)] {
        let mut wrong = good.to_vec();
        wrong[at] ^= byte;
        corrupted(&mut client, &wrong);
    }
    corrupted(&mut client, &[&good[..], &[0]].concat());
    corrupted(&mut client, &[&settled[..], &[0]].concat());
    let mut of_another = settled.to_vec();
    of_another[1] = 1;
    corrupted(&mut client, &of_another);

    client.apply(&settled).unwrap();
    corrupted(&mut client, &settled);
    client.apply(&good).unwrap();
    // More lookups than a generation has.
    for id in 2..client.supply().total {
        let lookup = Lookup { id, index: world.index(1), seed: privet_core::Secret::new([0; 32]) };
        client.apply(&lookup.encode()).unwrap();
    }
    let id = client.supply().total;
    let lookup = Lookup { id, index: world.index(1), seed: privet_core::Secret::new([0; 32]) };
    corrupted(&mut client, &lookup.encode());
}

#[test]
fn answers_that_do_not_belong_are_refused() {
    let mut world = World::with(cut(50, 3, 5));
    let mut client = world.client();
    let reserved = world.reserve(&mut client, 5).unwrap();
    let misuse = |result: Result<Zeroizing<Vec<u8>>>| {
        assert_eq!(result.unwrap_err().blame(), Blame::ApiMisuse);
    };
    misuse(client.settle(reserved.id, &world.answers(&reserved)[..1]));
    misuse(client.settle(reserved.id, &[]));
    misuse(client.settle(ReservationId(1), &world.answers(&reserved)));
    let short = || SinglePassAnswer { records: vec![0; 29] };
    misuse(client.settle(reserved.id, &[short(), short()]));
    world.settle(&mut client, &reserved);
    misuse(client.settle(reserved.id, &world.answers(&reserved)));
    assert!(client.take_record(reserved.id).is_some());
    assert!(client.take_record(reserved.id).is_none(), "once");
}

#[test]
fn an_answer_that_waits_for_another_cannot_be_answered_again() {
    let mut world = World::with(cut(50, 3, 5));
    let mut client = world.client();
    let first = world.reserve(&mut client, 5).unwrap();
    let second = world.reserve(&mut client, 6).unwrap();
    let settled = world.settle(&mut client, &second);
    assert!(client.take_record(second.id).is_none());
    assert_eq!(client.apply(&settled).unwrap_err().blame(), Blame::Corrupted);
    assert!(client.settle(second.id, &world.answers(&second)).is_err());
    assert_eq!(client.open(), [first.id]);
    world.settle(&mut client, &first);
    assert_eq!(&client.take_record(second.id).unwrap().unwrap()[..], world.record(6));
    assert_eq!(&client.take_record(first.id).unwrap().unwrap()[..], world.record(5));
}

#[test]
fn one_late_answer_tells_a_whole_generation() {
    let mut world = World::with(cut(12_000, 1, 6000));
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
    world.assert_hints_fit(&client);
}

#[test]
fn a_preparation_goes_on_from_a_checkpoint_with_the_same_request() {
    let mut world = World::with(cut(300, 7, 40));
    let mut whole = world.preparation();
    let request = whole.request().encode();
    assert_eq!(whole.request().encode(), request, "the same until it is answered");
    let resume = |checkpoint: &[u8]| {
        let parameters = world.parameters.clone();
        SinglePassPreparation::resume(parameters, [0; 32], checkpoint, Kernels::detect())
    };
    let mut resumed = resume(&whole.checkpoint()).unwrap();
    assert_eq!((resumed.next_offset(), resumed.checkpoint_offset()), (0, 0));
    assert_eq!(resumed.request().encode(), request);
    let reply = world.reply(&resumed.request());
    resumed.absorb(0, &reply).unwrap();
    let len = reply.len() as u64;
    assert_eq!((resumed.next_offset(), resumed.checkpoint_offset()), (len, len));
    let mut again = resume(&resumed.checkpoint()).unwrap();
    assert_eq!(again.next_offset(), len);
    whole.absorb(0, &reply).unwrap();
    for preparation in [&mut whole, &mut again] {
        preparation.finish().unwrap();
    }
    assert!(whole.generation().unwrap() == again.generation().unwrap());
    world.assert_hints_fit(&world.load(&again.generation().unwrap()));
}

#[test]
fn hints_that_come_out_of_order_or_not_whole_are_refused() {
    let mut world = World::with(cut(300, 7, 40));
    let mut preparation = world.preparation();
    assert_eq!(preparation.generation().unwrap_err().blame(), Blame::ApiMisuse);
    assert_eq!(preparation.finish().unwrap_err().blame(), Blame::PeerMisbehaved);
    let reply = world.reply(&preparation.request());
    let refused = |preparation: &mut SinglePassPreparation, offset, bytes: &[u8]| {
        let blame = preparation.absorb(offset, bytes).unwrap_err().blame();
        assert_eq!(blame, Blame::PeerMisbehaved);
    };
    refused(&mut preparation, 1, &reply);
    refused(&mut preparation, 0, &reply[1..]);
    refused(&mut preparation, 0, &[]);
    refused(&mut preparation, 0, &[&reply[..], &[0]].concat());
    assert!(preparation.finish().is_err());
    preparation.absorb(0, &reply).unwrap();
    refused(&mut preparation, 0, &reply);
    refused(&mut preparation, reply.len() as u64, &reply);
    refused(&mut preparation, reply.len() as u64, &[0]);
    preparation.finish().unwrap();
}

#[test]
fn preparations_differ() {
    let mut world = World::with(cut(300, 7, 40));
    assert_ne!(world.preparation().request().encode(), world.preparation().request().encode());
}

#[test]
fn damaged_hints_and_checkpoints_are_refused() {
    let mut world = World::with(cut(60, 3, 7));
    let generation = world.generation();
    let load = |bytes: &[u8]| {
        let bytes = Zeroizing::new(bytes.to_vec());
        SinglePassClient::load(world.parameters.clone(), bytes, Kernels::detect()).map(|_| ())
    };
    load(&generation).unwrap();
    let mut preparation = world_preparation(&world);
    let begun = preparation.checkpoint();
    let reply = world.reply(&preparation.request());
    preparation.absorb(0, &reply).unwrap();
    let finished = preparation.checkpoint();
    let resume = |bytes: &[u8]| {
        let parameters = world.parameters.clone();
        SinglePassPreparation::resume(parameters, [0; 32], bytes, Kernels::detect()).map(|_| ())
    };
    for (bytes, read) in [
        (&generation[..], &load as &dyn Fn(&[u8]) -> Result<()>),
        (&finished[..], &resume),
        (&begun[..], &resume),
    ] {
        read(bytes).unwrap();
        // A checkpoint without hints is the beginning of one with hints, and as good.
        for len in (0..bytes.len()).filter(|len| bytes[..*len] != begun[..]) {
            assert_eq!(read(&bytes[..len]).unwrap_err().blame(), Blame::Corrupted, "{len}");
        }
        let longer = [bytes, &[0]].concat();
        assert_eq!(read(&longer).unwrap_err().blame(), Blame::Corrupted);
        let mut other_version = bytes.to_vec();
        other_version[0] += 1;
        assert_eq!(read(&other_version).unwrap_err().blame(), Blame::Corrupted);
    }
    // Any number of any permutation that is changed makes it none: 9 partitions of 7.
    for number in 0..63 {
        for (at, change) in [(0, 1), (0, 7), (0, 0x80), (1, 1), (1, 0xff)] {
            let mut wrong = generation.to_vec();
            wrong[4 + 2 * number + at] ^= change;
            assert_eq!(load(&wrong).unwrap_err().blame(), Blame::Corrupted, "{number}");
        }
    }
}

fn world_preparation(world: &World) -> SinglePassPreparation {
    let mut rng = SecretRng::from_fixed_seed([1; 32]);
    let kernels = Kernels::detect();
    SinglePassPreparation::begin(world.parameters.clone(), [0; 32], &mut rng, kernels).unwrap()
}
