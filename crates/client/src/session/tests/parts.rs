//! Values in several records, and several values of a key: servers see the same in each lookup,
//! whatever it looks up.

use super::peer::records_of;
use super::toy::{self, Kind};
use super::world::*;
use crate::session::*;
use privet_core::PublicSeed;
use privet_schemes::SchemeId;
use privet_table::key_map::{KeyMapKind, PackOptions, encode_list, pack_with};
use privet_table::{KeyMap, RecordLayout};

const KEYS: usize = 80;
pub(super) const PARTS: usize = 4;

/// The values of key number `k`: most are short, every tenth needs all parts, one is so long that
/// it lies in the stash, and some keys have several.
fn values(k: usize) -> Vec<Vec<u8>> {
    let value = |len: usize| (0..len).map(|i| (k * 31 + i + i / 256) as u8).collect();
    match k {
        3 => vec![value(3000)],
        _ if k % 10 == 5 => vec![value(450)],
        _ if k % 10 == 6 => vec![value(100), value(0), value(350)],
        _ => (0..=k % 3).map(|number| value(3 + number)).collect(),
    }
}

fn key(k: usize) -> Vec<u8> {
    format!("key-{k}").into_bytes()
}

/// Keys of every class: with a short value, with a few of them, with one or several in all parts,
/// in the stash, not there.
const CLASSES: [usize; 7] = [0, 2, 5, 16, 3, KEYS, KEYS + 1];

/// A table whose keys have four parts, one of them in the stash.
struct Table {
    map: KeyMap,
    records: Vec<u8>,
}

impl Table {
    fn new(kind: KeyMapKind) -> Self {
        let pairs: Vec<_> = (0..KEYS).map(|k| (key(k), encode_list(values(k)))).collect();
        let options =
            PackOptions { kind, parts: Some(PARTS as u8), lists: true, ..PackOptions::default() };
        let seed = PublicSeed::derive("privet test", b"seed");
        let packed = pack_with(&options, &pairs[..], seed).unwrap();
        let map = packed.key_map().clone();
        assert!(map.stash_entries() >= PARTS as u64, "the long value is in the stash: {map:?}");
        Self { map, records: records_of(&packed, &pairs).concat() }
    }

    fn served_by(&self, scheme: SchemeId) -> Peer {
        let layout = RecordLayout::Keyed(self.map.clone()).encode();
        Peer::new(scheme, layout, &self.records, self.map.shape(), 1)
    }
}

/// A server of such a table.
pub(super) fn served_in_parts(scheme: SchemeId) -> Peer {
    Table::new(KeyMapKind::Buckets).served_by(scheme)
}

fn found(outcome: Result<Option<Value>>) -> Option<Vec<Vec<u8>>> {
    outcome.unwrap().map(|value| {
        assert!(value.is_list());
        value.values().map(<[u8]>::to_vec).collect()
    })
}

fn expected(k: usize) -> Option<Vec<Vec<u8>>> {
    (k < KEYS).then(|| values(k))
}

/// Even if the first of them holds the whole value, or if the client has it from the stash.
#[test]
fn all_queries_of_a_lookup_go_out_before_anything_comes_back() {
    for kind in KeyMapKind::ALL {
        let table = Table::new(kind);
        let peer = table.served_by(SchemeId::Dpf);
        for k in CLASSES {
            let mut world = World::with(&peer, |options| options.in_flight = 1);
            world.run();
            let lookups = [k, CLASSES[0]].map(|k| world.session.lookup(Target::key(key(k))));
            world.carry_out_all();
            let sent = [0, 1].map(|server| world.queries_to(server).len());
            assert_eq!(sent, [table.map.candidates_per_key(); 2], "of the first, key {k}");
            world.run();
            for (lookup, k) in lookups.iter().zip([k, CLASSES[0]]) {
                assert_eq!(found(world.outcomes.remove(lookup).unwrap()), expected(k));
            }
            assert_eq!(world.queries_to(0).len(), 2 * sent[0]);
        }
    }
}

/// A server that lies, or a table that is damaged.
#[test]
fn pieces_that_contradict_each_other_fail_their_lookup_and_nothing_else() {
    let mut table = Table::new(KeyMapKind::Buckets);
    let honest = table.served_by(SchemeId::SimplePir);
    // The last byte of the third piece of a long value.
    let number = table.map.candidates(&key(15)).nth(2).unwrap();
    let start = (number * table.map.record_len()) as usize;
    let record = table.records[start..][..table.map.record_len() as usize].to_vec();
    let piece = table.map.piece_in(&key(15), 2, &record).unwrap().unwrap();
    let at = record.windows(piece.len()).position(|window| window == piece).unwrap();
    table.records[start + at + piece.len() - 1] ^= 1;
    let lying = table.served_by(SchemeId::SimplePir);

    let seen = [honest, lying].map(|peer| {
        let mut world = World::of(&peer);
        let outcomes = [5, 15, 25].map(|k| world.get(Target::key(key(k))));
        (outcomes, world.trace(), world.now)
    });
    let [(true_outcomes, true_traffic, true_end), (outcomes, traffic, end)] = seen;
    assert_eq!((traffic, end), (true_traffic, true_end));
    assert!(true_outcomes.iter().all(Result::is_ok));
    let [before, error, after] = outcomes;
    assert_eq!(error.unwrap_err().blame(), Blame::Integrity);
    assert_eq!((found(before), found(after)), (expected(5), expected(25)));
}

/// With a scheme that hides nothing: a lookup asks for its key's candidates, in their order, and
/// nothing else has an influence.
#[test]
fn which_records_are_asked_for_follows_from_the_key_alone() {
    for kind in KeyMapKind::ALL {
        let table = Table::new(kind);
        let peer = toy::serve(table.served_by(SchemeId::SimplePir), 2, 500, Kind::default());
        let mut world = toy::world(&peer);
        for k in CLASSES.into_iter().chain(20..40) {
            let before = world.queries_to(0).len();
            assert_eq!(found(world.get(Target::key(key(k)))), expected(k), "key {k}");
            let queries = world.queries_to(0).split_off(before);
            let asked: Vec<u64> = queries.iter().map(|query| toy::index_of(query)).collect();
            let candidates: Vec<u64> = table.map.candidates(&key(k)).collect();
            assert_eq!(asked, candidates, "key {k}");
        }
    }
}
