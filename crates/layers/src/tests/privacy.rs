//! What servers see does not depend on what is looked up.

use super::world::{Builds, Seen, World, delete, key, set};
use privet_schemes::SchemeId;
use privet_table::key_map::Pairs;

/// A client that asks the newest layer first and stops at the one that has the key: what it would
/// have sent.
fn stops_early(world: &World, key: &[u8], sent: &[Seen]) -> Vec<Seen> {
    let knows = |layer: crate::Span| {
        let held = world.layer(0, layer).held().clone();
        (0..held.len()).any(|number| held.key(number) == key)
    };
    let mut seen = Vec::new();
    let mut found = None;
    for query in sent.iter().rev() {
        let Seen::Query { layer, .. } = query else { continue };
        if found.is_some_and(|found| found != *layer) {
            break;
        }
        seen.push(query.clone());
        found = knows(*layer).then_some(*layer).or(found);
    }
    seen
}

/// The same history of changes, with lookups of `wanted` at the same times. Returns what servers
/// saw, and what they would have seen of the client that stops early.
fn transcripts(scheme: SchemeId, wanted: u64) -> (Vec<Seen>, Vec<Seen>) {
    let mut world = World::new(scheme, 4, 40, Builds::AtOnce);
    let mut early = Vec::new();
    for number in 0..40 {
        let change = if number % 5 == 4 { delete(number) } else { set(number, b"value") };
        world.update(vec![change]);
        if number % 4 == 1 {
            let before = world.seen.len();
            world.check(&key(wanted));
            early.extend(stops_early(&world, &key(wanted), &world.seen[before..]));
        }
    }
    (world.seen, early)
}

#[test]
fn servers_see_the_same_whatever_is_looked_up() {
    for scheme in [SchemeId::Dpf, SchemeId::DummySubsets, SchemeId::Piano, SchemeId::SinglePass] {
        // In the oldest layer, in newer ones as the history goes on, deleted, in the list, never
        // there.
        let seen: Vec<_> = [39, 1, 20, 4, 37, 1000].map(|of| transcripts(scheme, of)).into();
        let (first, _) = &seen[0];
        assert!(first.iter().any(|seen| matches!(seen, Seen::Query { .. })));
        assert!(seen.iter().all(|(honest, _)| honest == first), "{scheme}");
        // The comparison can fail.
        assert!(
            seen.iter().any(|(_, early)| *early != seen[0].1),
            "{scheme}: the leak is not caught"
        );
    }
}

#[test]
fn every_lookup_asks_every_layer_of_every_server_alike() {
    let mut world = World::new(SchemeId::Dpf, 2, 16, Builds::AtOnce);
    for number in 0..33 {
        world.update(vec![set(number, b"value")]);
        let queries = world.send(&key(number));
        let asked: Vec<_> = queries.iter().map(|query| (query.layer, query.role.0)).collect();
        let layers = world.client.layers().map(|layer| layer.span);
        let all: Vec<_> = layers.flat_map(|span| [(span, 0), (span, 1)]).collect();
        assert_eq!(asked, all);
        let answers = world.answers(&queries);
        world.settle(queries.lookup, &answers);
        assert!(world.take(queries.lookup).is_some());
    }
}

/// One wrong answer fails the lookup, wherever the value is: a server that spoils the answers of
/// one layer learns nothing.
#[test]
fn a_wrong_answer_of_any_layer_fails_the_lookup() {
    let mut world = World::new(SchemeId::Dpf, 2, 16, Builds::AtOnce);
    for number in 0..7 {
        world.update(vec![set(number, b"value")]);
    }
    let queries = world.send(&key(0)).iter().count();
    for spoiled in 0..queries {
        // In the list, in a layer, in the oldest, nowhere.
        for of in [6, 0, 15, 100] {
            let queries = world.send(&key(of));
            let mut answers = world.answers(&queries);
            answers[spoiled].pop();
            world.settle(queries.lookup, &answers);
            let told = world.client.take(queries.lookup).unwrap();
            assert!(told.is_err());
        }
    }
}
