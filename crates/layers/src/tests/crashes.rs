//! A client that ends at any point goes on from its store, and never uses a hint for two queries.

use super::world::{Builds, World, key, set};
use crate::{LayeredClient, NoHints, Span};
use privet_core::{Blame, Result};
use privet_kernels::Kernels;
use privet_schemes::SchemeId;
use privet_schemes::reservation::{JournalReader, StoredRecord};
use std::collections::BTreeMap;
use zeroize::Zeroizing;

const HINTED: [SchemeId; 3] = [SchemeId::DummySubsets, SchemeId::Piano, SchemeId::SinglePass];

fn world(scheme: SchemeId) -> World {
    let mut world = World::new(scheme, 3, 40, Builds::AtOnce);
    for number in 0..8 {
        world.update(vec![set(number, b"value")]);
    }
    world
}

/// A new process: it repeats the queries without an answer, with the same bytes.
fn restart(world: &mut World, sent: &BTreeMap<Span, Vec<Vec<u8>>>) {
    world.client =
        LayeredClient::new(super::world::TABLE, world.parameters.clone(), Kernels::detect());
    let state = world.servers[0].state();
    world.follow(&state);
    let kept: Vec<_> = world.store.kept.keys().copied().collect();
    let mut again = Vec::new();
    for (layer, number) in kept {
        let generation = Zeroizing::new(world.store.kept[&(layer, number)].generation.clone());
        let open = world.client.restore(layer, number, generation, &mut world.store).unwrap();
        again.extend(open.into_iter().map(|(id, sendable)| (layer, number, id, sendable)));
    }
    for (layer, number, id, sendable) in again {
        assert_eq!(sent.get(&layer).map(Vec::as_slice), Some(sendable.queries()), "the same bytes");
        let answers: Vec<_> = (0..)
            .zip(sendable.queries())
            .map(|(role, query)| {
                let role = privet_schemes::contract::Role(role);
                world.layer(role.0.into(), layer).answer(role, query).unwrap()
            })
            .collect();
        let answers: Vec<&[u8]> = answers.iter().map(Vec::as_slice).collect();
        world.client.settle_again(layer, number, id, &answers, &mut world.store).unwrap();
    }
    world.fetch_due();
}

fn queries_in(record: &[u8]) -> Vec<Vec<u8>> {
    struct Record(Zeroizing<Vec<u8>>);
    impl JournalReader for Record {
        fn records(&mut self) -> Result<Vec<Zeroizing<Vec<u8>>>> {
            Ok(vec![self.0.clone()])
        }
    }
    let stored = StoredRecord::read_all(&mut Record(Zeroizing::new(record.to_vec()))).unwrap();
    stored[0].sendable().queries().to_vec()
}

fn by_layer(queries: &crate::Queries) -> BTreeMap<Span, Vec<Vec<u8>>> {
    let mut sent: BTreeMap<Span, Vec<Vec<u8>>> = BTreeMap::new();
    for query in queries.iter() {
        sent.entry(query.layer).or_default().push(query.bytes.to_vec());
    }
    sent
}

#[test]
fn queries_without_an_answer_are_sent_again_after_a_restart() {
    for scheme in HINTED {
        let mut world = world(scheme);
        for round in 0..4 {
            world.check(&key(round));
            let queries = world.send(&key(round + 20));
            let sent = by_layer(&queries);
            assert_eq!(sent.len(), world.client.layers().len());
            restart(&mut world, &sent);
            world.check(&key(round + 20));
            world.update(vec![set(round, b"newer")]);
        }
    }
}

/// More lookups than a generation serves, and restarts at all points of its life: after the next is
/// prepared, after the last hint is used, after the first of the next is.
#[test]
fn a_restart_goes_on_in_the_generation_that_was_in_use() {
    for scheme in HINTED {
        let mut world = World::new(scheme, 3, 5, Builds::AtOnce);
        for number in 0..3 {
            world.update(vec![set(number, b"value")]);
        }
        for round in 0..220 {
            let queries = world.send(&key(round % 7));
            if round % 3 == 0 {
                let sent = by_layer(&queries);
                restart(&mut world, &sent);
            } else {
                let answers = world.answers(&queries);
                world.settle(queries.lookup, &answers);
                let expected = world.oracle.get(&key(round % 7)).cloned();
                assert_eq!(world.take(queries.lookup), expected);
                world.fetch_due();
            }
        }
        assert!(world.store.kept.keys().any(|(_, generation)| *generation > 0), "{scheme}");
    }
}

#[test]
fn a_store_that_fails_at_any_layer_ends_lookups_until_a_restart() {
    for scheme in HINTED {
        let layers = world(scheme).client.layers().len() as u64;
        assert!(layers > 1);
        for records in 0..layers {
            let mut world = world(scheme);
            world.check(&key(3));
            world.store.records_left = Some(records);
            let fails = |world: &mut World| {
                let World { client, rng, store, .. } = world;
                client.lookup(&key(5), rng, store).err().unwrap()
            };
            assert_eq!(fails(&mut world).message(), "the disk is full");
            world.store.records_left = None;
            assert_eq!(fails(&mut world).blame(), Blame::Unavailable, "not before a restart");
            let sent = world.store.kept.iter().filter_map(|((layer, _), kept)| {
                let (reserved, record) = kept.log.last()?;
                reserved.then(|| (*layer, queries_in(record)))
            });
            let sent: BTreeMap<_, _> = sent.collect();
            assert_eq!(sent.len() as u64, records);
            restart(&mut world, &sent);
            world.check(&key(5));
        }
    }
}

#[test]
fn a_preparation_that_was_interrupted_begins_again() {
    for scheme in [SchemeId::DummySubsets, SchemeId::SinglePass, SchemeId::SimplePir] {
        let mut world = world(scheme);
        for number in 0..12 {
            // The due pieces are not fetched: the process ends before.
            for announcement in world.update_servers(vec![set(number, b"newest")]) {
                world.follow(&announcement);
            }
            if scheme == SchemeId::SimplePir {
                world.client = LayeredClient::new(
                    super::world::TABLE,
                    world.parameters.clone(),
                    Kernels::detect(),
                );
                world.catch_up();
            } else if number % 3 == 0 {
                restart(&mut world, &BTreeMap::new());
            }
            world.fetch_due();
            world.check(&key(number));
        }
    }
}

#[test]
fn hints_need_a_store() {
    let mut world = World::new(SchemeId::DummySubsets, 3, 10, Builds::AtOnce);
    let state = world.servers[0].state();
    let mut client =
        LayeredClient::new(super::world::TABLE, world.parameters.clone(), Kernels::detect());
    client.follow(&state, &mut NoHints).unwrap();
    assert!(!client.is_ready());
    let early = client.lookup(&key(1), &mut world.rng, &mut NoHints).err().unwrap();
    assert_eq!(early.blame(), Blame::Unavailable);
    let layer = world.servers[0].layers().next().unwrap().clone();
    assert!(client.due().unwrap().is_some());
    let error = client.absorb(layer.description().span, layer.fetched(), &mut NoHints);
    assert_eq!(error.unwrap_err().blame(), Blame::ApiMisuse);
}
