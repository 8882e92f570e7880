//! A session's memory does not reveal the coins of past lookups.

use super::world::*;
use crate::session::*;
use privet_core::planted::{Flaw, plant};
use privet_core::{RecordIndex, SecretRng};
use privet_kernels::Kernels;
use privet_schemes::reservation::{Lookup, Prepared};
use privet_schemes::{SchemeId, registry};
use std::sync::Arc;

const RECORDS: u64 = 16;
/// More words than the lookups here use.
const WORDS: u64 = 600;
const WANTED: [u64; 3] = [11, 2, 11];

fn peer() -> Peer {
    Peer::indexed_by(SchemeId::Dpf, RECORDS, 4, 1)
}

/// A session that has looked up [`WANTED`], with coins from `rng`.
fn used(rng: SecretRng) -> World {
    let mut world = World::with_parts(vec![peer(); 2], options(2), Parts { rng, ..parts() });
    for index in WANTED {
        world.found(Target::index(index));
    }
    world
}

/// The index that a query was for, if an attacker who reads `memory` and has a server's log can
/// tell. Rewinds the generator to every word, and makes the query of every record with the coins
/// from there.
fn index_of(query: &[u8], memory: &SecretRng) -> Option<u64> {
    let peer = peer();
    let (plan, identity) = (peer.scheme().plan.clone(), peer.identity());
    let nothing = Arc::new(Vec::new());
    let mut client = registry::client(plan, &identity, nothing, Kernels::detect()).unwrap();
    // The coins as they lie there, without a new key.
    let _at_rest = plant(Flaw::KeyStays);
    let mut made_with = |word, index| {
        let index = RecordIndex::new(index, identity.shape).unwrap();
        let prepared = client.prepare(&index, &mut memory.wound_to(word)).unwrap();
        let Prepared::Ready(Lookup { sendable, .. }) = prepared else { panic!("asks at once") };
        sendable.queries()[0] == query
    };
    let mut all = (0..WORDS).flat_map(|word| (0..RECORDS).map(move |index| (word, index)));
    all.find(|(word, index)| made_with(*word, *index)).map(|(_, index)| index)
}

fn told_by_memory(world: &World) -> Vec<Option<u64>> {
    let queries = world.queries_to(0);
    assert_eq!(queries.len(), WANTED.len());
    queries.iter().map(|query| index_of(query, &world.session.shared.parts.rng)).collect()
}

#[test]
fn memory_and_a_servers_log_do_not_tell_what_was_looked_up_before() {
    let rng = || SecretRng::from_fixed_seed([5; 32]);
    assert_eq!(told_by_memory(&used(rng())), [None; 3]);
    // A generator that keeps its key reveals everything.
    let planted = plant(Flaw::KeyStays);
    let used = used(rng());
    drop(planted);
    assert_eq!(told_by_memory(&used), WANTED.map(Some));
}
