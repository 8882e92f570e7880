//! The state through interruptions, and messages that are not what they should be.

use super::*;
use privet_core::Blame;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

    /// Lookups overlap, their answers come in any order or not at all, and now and then the client starts anew from its generation and the changes so far, or is written down anew.
    #[test]
    fn answers_in_any_order_and_replayed_changes(
        seed in any::<u8>(),
        same in any::<bool>(),
        steps in prop::collection::vec(0u8..8, 80),
    ) {
        let shape = TableShape::new(100, 4).unwrap();
        let cut = DummySubsetsParameters::with_partition_records(shape, 4).unwrap();
        let mut world = World::with(cut);
        world.rng = SecretRng::from_fixed_seed([seed; 32]);
        let mut generation = world.generation();
        let mut client = world.load(&generation);
        client.queries = 20;
        let mut changes: Vec<Zeroizing<Vec<u8>>> = Vec::new();
        let mut open: Vec<(u64, Reserved<TwoServersQuery>)> = Vec::new();
        let mut wanted = std::collections::BTreeMap::new();
        for step in steps {
            match step {
                0..=3 if client.supply().left() > 0 => {
                    let index = if same { 42 } else { world.rng.below(100) };
                    let reserved = world.reserve(&mut client, index).unwrap();
                    changes.push(reserved.change.clone());
                    wanted.insert(reserved.id, index);
                    open.push((index, reserved));
                }
                4..=6 if !open.is_empty() => {
                    let at = world.rng.below(open.len() as u64) as usize;
                    let (_, reserved) = open.swap_remove(at);
                    changes.push(world.settle(&mut client, &reserved));
                }
                7 => {
                    let mut again = world.load(&generation);
                    again.queries = 20;
                    changes.iter().for_each(|change| again.apply(change).unwrap());
                    prop_assert_eq!(again.open(), client.open());
                    prop_assert_eq!(again.supply(), client.supply());
                    prop_assert_eq!(again.table.bytes(), client.table.bytes());
                    let hints = |client: &DummySubsetsTwoClient| -> Vec<_> {
                        (0..client.table.len()).map(|row| client.table.hint(row)).collect()
                    };
                    prop_assert_eq!(hints(&again), hints(&client));
                    client = again;
                }
                _ => {}
            }
            if client.supply().left() == 0 && open.is_empty() {
                for (id, index) in std::mem::take(&mut wanted) {
                    if let Some(record) = client.take_record(id) {
                        prop_assert_eq!(&record.unwrap()[..], world.record(index));
                    }
                }
                generation = client.condense().unwrap();
                client = world.load(&generation);
                client.queries = 20;
                changes.clear();
            }
        }
        for (_, reserved) in open {
            world.settle(&mut client, &reserved);
        }
        for (id, index) in wanted {
            let record = client.take_record(id).unwrap();
            prop_assert_eq!(&record.unwrap()[..], world.record(index));
        }
        prop_assert!(client.ledger.check_settled("nothing").is_ok());
    }
}

#[test]
fn a_preparation_goes_on_from_a_checkpoint_to_the_same_hints() {
    // Several requests.
    let shape = TableShape::new(3000, 20_000).unwrap();
    let mut world = World::with(DummySubsetsParameters::with_partition_records(shape, 16).unwrap());
    assert!(messages::requests(&world.parameters) > 5);
    let mut whole = world.preparation();
    let mut broken = DummySubsetsTwoPreparation::resume(
        world.parameters.clone(),
        [0; 32],
        &whole.checkpoint(),
        Kernels::detect(),
    )
    .unwrap();
    let len = DummySubsetsTwo::offline_phase(&world.parameters).len();
    while whole.next_offset() < len {
        let reply = world.reply(&mut whole);
        whole.absorb(whole.next_offset(), &reply).unwrap();
        assert_eq!(broken.request().encode(), broken.request().encode(), "asked again, the same");
        broken = DummySubsetsTwoPreparation::resume(
            world.parameters.clone(),
            [0; 32],
            &broken.checkpoint(),
            Kernels::detect(),
        )
        .unwrap();
        assert_eq!(broken.checkpoint_offset(), broken.next_offset());
        let reply = world.reply(&mut broken);
        assert!(broken.generation().is_err());
        broken.absorb(broken.next_offset(), &reply).unwrap();
    }
    whole.finish().unwrap();
    broken.finish().unwrap();
    assert_eq!(*whole.generation().unwrap(), *broken.generation().unwrap());
    let generation = whole.generation().unwrap();
    let mut client = world.load(&generation);
    assert_eq!(&world.get(&mut client, 2999).unwrap()[..], world.record(2999));
}

#[test]
fn replies_of_another_length_or_place_are_refused() {
    let mut world = World::new(500, 3);
    let mut preparation = world.preparation();
    let reply = world.reply(&mut preparation);
    let blame = |result: Result<()>| result.unwrap_err().blame();
    assert_eq!(blame(preparation.finish()), Blame::PeerMisbehaved);
    assert_eq!(blame(preparation.absorb(1, &reply)), Blame::PeerMisbehaved);
    assert_eq!(blame(preparation.absorb(0, &reply[1..])), Blame::PeerMisbehaved);
    preparation.absorb(0, &reply).unwrap();
    assert_eq!(blame(preparation.absorb(reply.len() as u64, &reply)), Blame::PeerMisbehaved);
    preparation.finish().unwrap();
}

#[test]
fn damaged_hints_and_checkpoints_are_refused_at_every_length() {
    let mut world = World::new(60, 3);
    let generation = world.generation();
    let parameters = world.parameters.clone();
    let load = |bytes: &[u8]| {
        let bytes = Zeroizing::new(bytes.to_vec());
        DummySubsetsTwoClient::load(parameters.clone(), bytes, Kernels::detect()).map(|_| ())
    };
    load(&generation).unwrap();
    let checkpoint = world.preparation().checkpoint();
    let resume = |bytes: &[u8]| {
        let parameters = parameters.clone();
        DummySubsetsTwoPreparation::resume(parameters, [0; 32], bytes, Kernels::detect())
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
    let layout = generation::Layout::new(&parameters);
    let mut twice = generation.to_vec();
    let hint = privet_core::hints::LiveHint { id: 3, cutoff: 9, above: false, extra: None };
    layout.put(&mut twice, 5, hint);
    assert_eq!(load(&twice).unwrap_err().blame(), Blame::Corrupted, "two rows with one id");
    let mut beyond = generation.to_vec();
    layout.put(&mut beyond, 5, privet_core::hints::LiveHint { extra: Some(60), id: 5, ..hint });
    assert_eq!(load(&beyond).unwrap_err().blame(), Blame::Corrupted, "a record beyond the table");
    let mut early = generation.to_vec();
    early[20..24].copy_from_slice(&3u32.to_le_bytes());
    assert_eq!(load(&early).unwrap_err().blame(), Blame::Corrupted, "ids that are yet to come");
}

#[test]
fn changes_that_do_not_fit_are_refused_and_change_nothing() {
    let mut world = World::new(500, 3);
    let mut client = world.client();
    let reserved = world.reserve(&mut client, 5).unwrap();
    let next = world.index(6);
    let good = client.reserve(&next, &mut world.rng).unwrap().change;
    let corrupted = |client: &mut DummySubsetsTwoClient, change: &[u8]| {
        let state = |client: &DummySubsetsTwoClient| {
            (client.table.bytes().to_vec(), client.open(), client.supply(), client.table.hint(0))
        };
        let before = state(client);
        assert_eq!(client.apply(change).unwrap_err().blame(), Blame::Corrupted);
        assert!(before == state(client));
    };
    corrupted(&mut client, &reserved.change);
    for len in 0..good.len() {
        corrupted(&mut client, &good[..len]);
    }
    // Id, pair, index, half and cutoff: each wrong alone.
    for (at, byte) in [(1, 1), (13, 1), (24, 1), (25, 2), (26, 1)] {
        let mut change = good.to_vec();
        change[at] ^= byte;
        corrupted(&mut client, &change);
    }
    let mut used_again = good.to_vec();
    used_again[9..13].copy_from_slice(&reserved.change[9..13]);
    corrupted(&mut client, &used_again);
    let settled = world.settle(&mut client, &reserved);
    corrupted(&mut client, &settled);
    client.apply(&good).unwrap();
}

#[test]
fn messages_of_another_form_are_refused() {
    let mut world = World::new(500, 3);
    let client = world.client();
    let index = world.index(5);
    let queries = client.reserve(&index, &mut world.rng).unwrap().queries;
    for (role, query) in (0u8..).zip(&queries) {
        let bytes = query.encode_query();
        for len in 0..bytes.len() {
            let cut = TwoServersQuery::decode_query(&world.parameters, Role(role), &bytes[..len]);
            assert_eq!(cut.err().unwrap().blame(), Blame::InvalidMessage);
        }
        let other = TwoServersQuery::decode_query(&world.parameters, Role(1 - role), &bytes);
        assert_eq!(other.err().unwrap().blame(), Blame::InvalidMessage);
    }
    let request = world.preparation().request().encode();
    let mut odd = request.clone();
    odd[16] = 4;
    let mut high = request.clone();
    high[16..20].copy_from_slice(&0xffff_fff8u32.to_le_bytes());
    for wrong in [&request[1..], &odd, &high] {
        let refused = HintsRequest::decode(&world.parameters, wrong);
        assert_eq!(refused.err().unwrap().blame(), Blame::InvalidMessage);
    }
}
