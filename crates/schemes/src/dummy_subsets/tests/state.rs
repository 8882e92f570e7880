//! The state through interruptions: streams that stop, changes that are replayed, answers that come late or never, and damage.

use super::*;
use privet_core::Blame;
use proptest::prelude::*;

#[test]
fn a_stream_goes_on_from_a_checkpoint_to_the_same_hints() {
    for (records, record_len) in [(1, 1), (300, 7), (5000, 32), (1200, 300), (20_000, 64)] {
        let mut world = World::new(records, record_len);
        let seed = [9; 32];
        let begin = |world: &World| {
            DummySubsetsPreparation::begin(
                world.parameters.clone(),
                world.digest(),
                &mut SecretRng::from_fixed_seed(seed),
                Kernels::detect(),
            )
            .unwrap()
        };
        let mut whole = begin(&world);
        whole.absorb(0, &world.records).unwrap();
        whole.finish().unwrap();

        let mut broken = begin(&world);
        let chunk = 1 + world.records.len() / 13;
        while broken.next_offset() < world.records.len() as u64 {
            let start = broken.next_offset() as usize;
            let end = (start + chunk).min(world.records.len());
            broken.absorb(start as u64, &world.records[start..end]).unwrap();
            if world.rng.below(3) == 0 {
                // Killed: everything since the last complete group is lost.
                let offset = broken.checkpoint_offset();
                let checkpoint = broken.checkpoint();
                broken = DummySubsetsPreparation::resume(
                    world.parameters.clone(),
                    world.digest(),
                    &checkpoint,
                    Kernels::detect(),
                )
                .unwrap();
                assert_eq!(broken.next_offset(), offset);
                if offset < end as u64 {
                    let rest = &world.records[offset as usize..end];
                    broken.absorb(offset, rest).unwrap();
                }
            }
        }
        broken.finish().unwrap();
        assert_eq!(*broken.generation().unwrap(), *whole.generation().unwrap());
    }
}

#[test]
fn a_stream_out_of_order_too_long_too_short_or_damaged_is_noticed() {
    let mut world = World::new(3000, 5);
    let records = world.records.clone();
    let blame = |result: Result<()>| result.unwrap_err().blame();
    assert_eq!(blame(world.preparation().absorb(1, &records[1..])), Blame::PeerMisbehaved);
    let longer = [&records[..], &[0]].concat();
    assert_eq!(blame(world.preparation().absorb(0, &longer)), Blame::PeerMisbehaved);
    let mut short = world.preparation();
    short.absorb(0, &records[1..]).unwrap();
    assert_eq!(blame(short.finish()), Blame::PeerMisbehaved);
    assert_eq!(short.generation().unwrap_err().blame(), Blame::ApiMisuse);
    for at in [0, 1, 7499, records.len() - 1] {
        let mut damaged = records.clone();
        damaged[at] ^= 1;
        let mut preparation = world.preparation();
        preparation.absorb(0, &damaged).unwrap();
        assert_eq!(blame(preparation.finish()), Blame::Integrity, "byte {at}");
        assert!(preparation.generation().is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Lookups overlap, their answers come in any order or not at all, and now and then the client starts anew from its generation and the changes so far. Whatever can be
    /// told is told, and right.
    #[test]
    fn answers_in_any_order_and_replayed_changes(
        seed in any::<u8>(),
        same in any::<bool>(),
        steps in prop::collection::vec(0u8..8, 60),
    ) {
        let shape = TableShape::new(100, 4).unwrap();
        let cut = DummySubsetsParameters::with_partition_records(shape, 4).unwrap();
        let mut world = World::with(cut);
        world.rng = SecretRng::from_fixed_seed([seed; 32]);
        let generation = world.generation(1000);
        let mut client = world.load(&generation);
        let mut changes: Vec<Zeroizing<Vec<u8>>> = Vec::new();
        let mut wanted = Vec::new();
        let mut open: Vec<(u64, Reserved<DummySubsetsQuery>)> = Vec::new();
        let mut told = 0;
        let answer_one = |client: &mut DummySubsetsClient, changes: &mut Vec<Zeroizing<Vec<u8>>>, world: &World, reserved: &Reserved<DummySubsetsQuery>| {
            let change = client.settle(reserved.id, &[world.answer(&reserved.queries[0])]).unwrap();
            client.apply(&change).unwrap();
            changes.push(change);
        };
        for step in steps {
            match step {
                0..=3 => {
                    let index = if same { 42 } else { world.rng.below(100) };
                    let reserved = world.reserve(&mut client, index).unwrap();
                    changes.push(reserved.change.clone());
                    wanted.push(index);
                    open.push((index, reserved));
                }
                4..=6 if !open.is_empty() => {
                    let at = world.rng.below(open.len() as u64) as usize;
                    let (_, reserved) = open.swap_remove(at);
                    answer_one(&mut client, &mut changes, &world, &reserved);
                }
                7 => {
                    let mut again = world.load(&generation);
                    changes.iter().for_each(|change| again.apply(change).unwrap());
                    prop_assert_eq!(again.open(), client.open());
                    prop_assert_eq!(again.supply(), client.supply());
                    prop_assert_eq!(again.table.bytes(), client.table.bytes());
                    prop_assert_eq!(World::all_contents(&again), World::all_contents(&client));
                    client = again;
                }
                _ => {}
            }
            let mut ids: Vec<u64> = open.iter().map(|(_, reserved)| reserved.id.0).collect();
            ids.sort_unstable();
            let open_ids: Vec<u64> = client.open().iter().map(|id| id.0).collect();
            prop_assert_eq!(open_ids, ids);
        }
        for (_, reserved) in open {
            answer_one(&mut client, &mut changes, &world, &reserved);
        }
        // Everything is answered now, so everything can be told, also what waited for other answers.
        for (id, index) in wanted.iter().enumerate() {
            if let Some(record) = client.take_record(ReservationId(id as u64)) {
                prop_assert_eq!(&record.unwrap()[..], world.record(*index));
                told += 1;
            }
        }
        prop_assert_eq!(told, wanted.len());
        prop_assert!(client.ledger.check_settled("nothing").is_ok());
    }
}

#[test]
fn what_is_sent_does_not_depend_on_what_was_answered() {
    let mut world = World::new(700, 2);
    let generation = world.generation(1000);
    let (mut answered, mut silent) = (world.load(&generation), world.load(&generation));
    let mut rng = SecretRng::from_fixed_seed([6; 32]);
    let mut same_rng = SecretRng::from_fixed_seed([6; 32]);
    for index in [5, 5, 5, 600, 5, 601, 5, 5].into_iter().cycle().take(200) {
        let index = world.index(index);
        let one = answered.reserve(&index, &mut rng).unwrap();
        let other = silent.reserve(&index, &mut same_rng).unwrap();
        assert_eq!(one.queries, other.queries);
        assert_eq!(one.change, other.change);
        answered.apply(&one.change).unwrap();
        silent.apply(&other.change).unwrap();
        world.settle(&mut answered, &one);
    }
    assert_eq!((answered.open().len(), silent.open().len()), (0, 200));
}

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
        match world.settle(&mut client, &next) {
            Some(record) => {
                // A cover fails; all others are told.
                if let Ok(record) = record {
                    assert_eq!(&record[..], world.record(9));
                }
            }
            None => waiting.push(next.id),
        }
    }
    assert!(!waiting.is_empty(), "some lookup went through the first one's successor");
    assert_eq!(client.open(), [first.id], "only the first is to be sent again");
    assert_eq!(&world.settle(&mut client, &first).unwrap().unwrap()[..], world.record(9));
    for id in waiting {
        assert_eq!(&client.take_record(id).unwrap().unwrap()[..], world.record(9));
    }
}

/// Hints whose select values tie at the cutoff are marked by a cutoff of 0. Real ties are rare, so some are made.
#[test]
fn invalid_hints_are_counted_and_never_used() {
    let mut world = World::new(900, 3);
    let mut generation = world.generation(1000);
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
        let Change::Exchange(Exchange { hint: Some(used), successor: pair, .. }) =
            world.decode(&reserved.change)
        else {
            panic!("two thirds of the hints are enough to find one")
        };
        assert!(!invalid(used) && !invalid(singles + pair));
        pairs_used.push(pair);
        assert_eq!(
            &world.settle(&mut client, &reserved).unwrap().unwrap()[..],
            world.record(index)
        );
    }
    let valid: Vec<u32> = (0..pairs).filter(|pair| !invalid(singles + pair)).collect();
    assert_eq!(pairs_used, valid, "each valid pair once, in order");
    let index = world.index(0);
    assert_eq!(client.reserve(&index, &mut world.rng).err().unwrap().blame(), Blame::Exhausted);
}

#[test]
fn changes_that_do_not_fit_are_refused_and_change_nothing() {
    let mut world = World::new(500, 3);
    let mut client = world.client();
    let reserved = world.reserve(&mut client, 5).unwrap();
    let answer = world.answer(&reserved.queries[0]);
    let settled = client.settle(reserved.id, &[answer]).unwrap();
    let next = world.index(6);
    let good = client.reserve(&next, &mut world.rng).unwrap().change;

    let corrupted = |client: &mut DummySubsetsClient, change: &[u8]| {
        let before = (World::all_contents(client), client.open(), client.supply());
        assert_eq!(client.apply(change).unwrap_err().blame(), Blame::Corrupted);
        assert!(before == (World::all_contents(client), client.open(), client.supply()));
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
    // Id, pair, half, index and a hint that is already used: each wrong alone.
    let wrong = |at: usize, byte: u8| {
        let mut change = good.clone();
        change[at] ^= byte;
        change
    };
    for (at, byte) in [(1, 1), (13, 1), (25, 2), (24, 1)] {
        corrupted(&mut client, &wrong(at, byte));
    }
    let mut used_again = good.clone();
    used_again[9..13].copy_from_slice(&reserved.change[9..13]);
    corrupted(&mut client, &used_again);

    client.apply(&settled).unwrap();
    corrupted(&mut client, &settled);
    client.apply(&good).unwrap();
}

#[test]
fn damaged_hints_and_checkpoints_are_refused_at_every_length() {
    let mut world = World::new(60, 3);
    let generation = world.generation(50);
    let load = |bytes: &[u8]| {
        let bytes = Zeroizing::new(bytes.to_vec());
        DummySubsetsClient::load(world.parameters.clone(), bytes, Kernels::detect()).map(|_| ())
    };
    load(&generation).unwrap();
    let mut preparation = DummySubsetsPreparation::begin(
        world.parameters.clone(),
        world.digest(),
        &mut SecretRng::from_fixed_seed([1; 32]),
        Kernels::detect(),
    )
    .unwrap();
    preparation.absorb(0, &world.records[..100]).unwrap();
    let checkpoint = preparation.checkpoint();
    let resume = |bytes: &[u8]| {
        let digest = world.digest();
        let kernels = Kernels::detect();
        DummySubsetsPreparation::resume(world.parameters.clone(), digest, bytes, kernels)
            .map(|_| ())
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
    // The number of partitions taken in, that of subtrees in the digest, and the length of the digest's tail: each beyond reason, or not fitting the others.
    for (at, byte) in [(0, 0xff), (3, 0xff), (0, 0), (5, 1), (12, 0xff), (13, 1), (15, 0xff)] {
        let mut wrong = checkpoint.to_vec();
        if wrong[at] == byte {
            continue;
        }
        wrong[at] = byte;
        assert_eq!(resume(&wrong).unwrap_err().blame(), Blame::Corrupted, "{at} {byte}");
    }
}
