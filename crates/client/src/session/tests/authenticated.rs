//! Authenticated tables: a record that does not belong to the root is never believed, and nothing
//! that is sent shows which record failed.

use super::peer::records_of;
use super::world::*;
use crate::session::*;
use privet_core::{PublicSeed, Reason};
use privet_schemes::SchemeId;
use privet_table::authentication::{MerkleTree, shape_with_paths};
use privet_table::digest::layout_digest;
use privet_table::key_map::{KeyMapKind, pack_as};
use privet_table::{KeyMap, RecordLayout, TableLayout, TableRoot};

const KEYS: usize = 40;

/// A server of an authenticated table, and the facts about it that tests need.
struct Authenticated {
    peer: Peer,
    root: TableRoot,
    map: KeyMap,
}

/// A table of [`KEYS`] keys, one of them in the stash. Its layout is as built; `spoil` changes its
/// records, each with its path.
fn authenticated(
    kind: KeyMapKind,
    scheme: SchemeId,
    spoil: impl FnOnce(&mut Vec<Vec<u8>>),
) -> Authenticated {
    let pairs: Vec<_> = (0..KEYS).map(pair).collect();
    let packed = pack_as(kind, &pairs[..], PublicSeed::derive("privet test", b"seed")).unwrap();
    let map = packed.key_map().clone();
    let tree = MerkleTree::over(map.buckets(), |bucket, record| {
        packed.write_record(&pairs[..], bucket, record);
    });
    let mut served = records_of(&packed, &pairs);
    (0..).zip(&mut served).for_each(|(bucket, record)| tree.append_path(bucket, record));
    spoil(&mut served);
    let shape = shape_with_paths(map.shape()).unwrap();
    let records = RecordLayout::Keyed(map.clone());
    let layout = TableLayout::authenticated(tree.authentication(), records);
    let root = layout.root(shape).unwrap();
    let peer = Peer::new(scheme, layout.encode(), &served.concat(), shape, 1);
    Authenticated { peer, root, map }
}

impl Authenticated {
    fn world(&self, root: Option<TableRoot>) -> World {
        World::with(&self.peer, |options| options.root = root)
    }

    fn candidates(&self, k: usize) -> Vec<usize> {
        self.map.candidates(&pair(k).0).map(|candidate| candidate as usize).collect()
    }
}

fn key(k: usize) -> Target {
    Target::key(pair(k).0)
}

/// The outcome of a lookup: the value, that there is none, or who is to blame.
fn outcome(world: &mut World, k: usize) -> Result<Option<Vec<u8>>, Blame> {
    match world.get(key(k)) {
        Ok(value) => Ok(value.map(|value| value.to_vec())),
        Err(error) => Err(error.blame()),
    }
}

fn truth(k: usize) -> Option<Vec<u8>> {
    (k < KEYS).then(|| pair(k).1)
}

#[test]
fn a_true_server_is_believed_by_every_scheme() {
    for scheme in [
        SchemeId::SimplePir,
        SchemeId::Dpf,
        SchemeId::DummySubsets,
        SchemeId::DummySubsetsTwo,
        SchemeId::Piano,
        SchemeId::SinglePass,
        SchemeId::TapirMerkle,
        SchemeId::ApirDpf,
        SchemeId::ApirMatrix,
        SchemeId::Download,
    ] {
        for kind in KeyMapKind::ALL {
            let table = authenticated(kind, scheme, |_| {});
            for root in [None, Some(table.root)] {
                let mut world = table.world(root);
                for k in [0, 1, KEYS - 1, KEYS, 2, KEYS + 7] {
                    assert_eq!(outcome(&mut world, k), Ok(truth(k)), "{scheme}: key {k}");
                }
                let told = format!("Authenticated({:?})", table.root);
                assert!(world.events.contains(&told), "{scheme}: {:?}", world.events);
            }
        }
    }
}

/// Each record in turn with one bit changed, in each of its parts. Lookups of other records
/// succeed, lookups of this record fail, and the session goes on.
#[test]
fn a_record_with_a_wrong_bit_is_never_read() {
    for kind in KeyMapKind::ALL {
        let buckets = authenticated(kind, SchemeId::Download, |_| {}).map.buckets() as usize;
        for spoilt in 0..buckets {
            for part in 0..3 {
                let table = authenticated(kind, SchemeId::Dpf, |records| {
                    let last = records[spoilt].len() - 1;
                    let position = [0, last - 40, last][part];
                    records[spoilt][position] ^= 4;
                });
                let mut world = table.world(Some(table.root));
                for k in 0..KEYS + 5 {
                    let wrong = table.candidates(k).contains(&spoilt);
                    let expected = if wrong { Err(Blame::Integrity) } else { Ok(truth(k)) };
                    assert_eq!(outcome(&mut world, k), expected, "record {spoilt}, key {k}");
                }
                assert!(world.failure.is_none());
            }
        }
    }
}

/// True records with true paths, but exchanged.
#[test]
fn a_true_record_in_the_wrong_place_is_never_read() {
    for scheme in [SchemeId::SimplePir, SchemeId::Dpf, SchemeId::DummySubsets] {
        let table = authenticated(KeyMapKind::Buckets, scheme, |records| records.rotate_left(1));
        for root in [None, Some(table.root)] {
            let mut world = table.world(root);
            for k in 0..KEYS + 5 {
                assert_eq!(outcome(&mut world, k), Err(Blame::Integrity), "{scheme}: key {k}");
            }
        }
    }
}

/// Each of a key's two candidates has its own place. Otherwise a server that exchanges them, or
/// sends one of them twice, could hide the value.
#[test]
fn the_candidates_of_a_key_cannot_be_exchanged() {
    type Lie<'a> = &'a dyn Fn(&mut Vec<Vec<u8>>);
    let true_table = authenticated(KeyMapKind::Cuckoo, SchemeId::SimplePir, |_| {});
    for k in 0..KEYS {
        let [first, second] = true_table.candidates(k)[..] else { panic!("not two candidates") };
        let exchanged = |records: &mut Vec<Vec<u8>>| records.swap(first, second);
        let first_only = |records: &mut Vec<Vec<u8>>| records[second] = records[first].clone();
        let second_only = |records: &mut Vec<Vec<u8>>| records[first] = records[second].clone();
        let lies: [Lie<'_>; 3] = [&exchanged, &first_only, &second_only];
        for lie in lies {
            let table = authenticated(KeyMapKind::Cuckoo, SchemeId::SimplePir, lie);
            let mut world = table.world(None);
            assert_eq!(outcome(&mut world, k), Err(Blame::Integrity), "key {k}");
        }
    }
}

/// Both records of every lookup are asked for and verified, and later queries are sent, whichever
/// record fails.
#[test]
fn what_is_sent_does_not_depend_on_what_passes() {
    for scheme in [SchemeId::SimplePir, SchemeId::Dpf, SchemeId::DummySubsets] {
        let mut reference = None;
        let buckets = authenticated(KeyMapKind::Cuckoo, scheme, |_| {}).map.buckets() as usize;
        for spoilt in (0..=buckets).step_by(3) {
            let table = authenticated(KeyMapKind::Cuckoo, scheme, |records| {
                // In the last round nothing is spoilt.
                if let Some(record) = records.get_mut(spoilt) {
                    record[0] ^= 1;
                }
            });
            let mut world = table.world(None);
            for k in 0..KEYS / 2 {
                let _ = outcome(&mut world, k);
            }
            let traffic = world.trace().to_vec();
            assert_eq!(*reference.get_or_insert(traffic.clone()), traffic, "{scheme}: {spoilt}");
        }
    }
}

#[test]
fn the_error_says_who_is_at_fault_and_not_what_was_wanted() {
    for (scheme, who) in [
        (
            SchemeId::SimplePir,
            "the server answered with a record that does not belong to the table's root: it does not",
        ),
        (
            SchemeId::Dpf,
            "the servers answered with a record that does not belong to the table's root: one of them does not",
        ),
    ] {
        let table = authenticated(KeyMapKind::Buckets, scheme, |records| records.reverse());
        let mut world = table.world(None);
        let errors = (0..5).filter_map(|k| world.get(key(k)).err());
        let messages: Vec<_> = errors.map(|error| error.message().to_owned()).collect();
        assert!(messages.len() >= 4, "{scheme}: {messages:?}");
        assert!(messages.iter().all(|message| message.starts_with(who)), "{messages:?}");
        assert!(messages.iter().all(|message| *message == messages[0]));
    }
}

/// Nothing is asked for, and nothing is pinned: a lying server must not keep out a true one.
fn refused_at_once(world: &mut World) {
    assert_eq!(outcome(world, 1), Err(Blame::Integrity));
    let wrong_root = [Some(Reason::NotAuthenticated), Some(Reason::RootDiffers)];
    assert!(wrong_root.contains(&world.reason()), "{:?}", world.failure);
    assert!(world.asked_nothing(), "{:?}", world.sent);
    assert!(world.state_pins("server 0").is_empty());
}

#[test]
fn a_table_with_another_root_or_none_is_refused_before_anything_is_asked() {
    let table = authenticated(KeyMapKind::Buckets, SchemeId::SimplePir, |_| {});
    let mut other = table.root;
    other.0[31] ^= 1;
    refused_at_once(&mut table.world(Some(other)));

    let plain = Peer::keyed(KEYS);
    refused_at_once(&mut World::with(&plain, |options| options.root = Some(table.root)));
}

/// The layout holds values of its own, and decides in which record a key is looked for.
#[test]
fn a_layout_that_was_changed_has_another_root() {
    let table = authenticated(KeyMapKind::Buckets, SchemeId::SimplePir, |_| {});
    let layout = table.peer.layout.clone();
    for position in 0..layout.len() {
        let mut changed = layout.clone();
        changed[position] ^= 1;
        let peer = table.peer.clone().with_layout(changed);
        refused_at_once(&mut World::with(&peer, |options| options.root = Some(table.root)));
    }
}

/// A user may have computed a root where no tool gives one.
#[test]
fn a_root_is_no_use_with_a_table_that_is_not_authenticated() {
    let plain = Peer::keyed(KEYS);
    let root = TableRoot::of(plain.identity().shape, layout_digest(&plain.layout));
    let mut world = World::with(&plain, |options| options.root = Some(root));
    assert_eq!(outcome(&mut world, 1), Err(Blame::Integrity));
    assert_eq!(world.reason(), Some(Reason::NotAuthenticated), "{:?}", world.failure);
    assert!(world.queries_to(0).is_empty());
}

#[test]
fn hostile_layouts_end_the_session() {
    let table = authenticated(KeyMapKind::Buckets, SchemeId::SimplePir, |_| {});
    let layout = &table.peer.layout;
    let hostile = [
        // A table without a key map, with records too narrow for a path as well as a length.
        layout[..34].to_vec(),
        [&layout[..34], &[1, 0, 0, 0, 0]].concat(),
        // An authenticated layout inside an authenticated layout.
        [&layout[..34], layout].concat(),
        [&[3, 0], &layout[2..]].concat(),
        layout[2..].to_vec(),
        // A key map for records as wide as if they had no paths.
        [&layout[..34], &RecordLayout::Keyed(wider(&table)).encode()].concat(),
    ];
    for layout in hostile {
        let mut world = World::of(&table.peer.clone().with_layout(layout));
        assert_eq!(outcome(&mut world, 1), Err(Blame::InvalidMessage));
        assert!(world.failure.is_some() && world.queries_to(0).is_empty());
    }
}

/// A key map for a table whose records alone are as wide as those of `table` with their paths.
fn wider(table: &Authenticated) -> KeyMap {
    let len = table.peer.identity().shape.record_len();
    let mut bytes = table.map.encode();
    let at = 2 + 32 + 8 + 8;
    assert_eq!(bytes[at..at + 8], table.map.record_len().to_le_bytes());
    bytes[at..at + 8].copy_from_slice(&len.to_le_bytes());
    KeyMap::decode(&bytes).unwrap()
}
