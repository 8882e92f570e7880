//! Clients that follow a table from version to version, between sessions and in the middle of one,
//! with every kind of scheme; and servers that lie about it.

use super::living::Living;
use super::world::*;
use crate::session::*;
use privet_core::{Epoch, Reason, TableDigest};
use privet_schemes::SchemeId;
use privet_schemes::offline::OfflinePhase;
use privet_table::key_map::KeyMapKind;
use privet_wire::{PartKind, UpdatesDescription};

const KEYS: usize = 60;

/// The schemes with which a client can follow a table. (DoublePIR is missing because its hint is 16
/// MiB for each byte of a record. For a session, each other missing scheme is the same as one that
/// is here.)
const SCHEMES: [SchemeId; 13] = [
    SchemeId::SimplePir,
    SchemeId::Dpf,
    SchemeId::DummySubsets,
    SchemeId::DummySubsetsTwo,
    SchemeId::Harmony,
    SchemeId::Piano,
    SchemeId::PianoAllParities,
    SchemeId::SinglePass,
    SchemeId::TapirMerkle,
    SchemeId::ApirDpf,
    SchemeId::ApirMatrix,
    privet_laboratory::FINITE_DIFFERENCES,
    SchemeId::Download,
];

pub(super) fn edits(dice: &mut Dice, count: u64) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    (0..count)
        .map(|_| {
            let key = format!("key-{}", dice.roll(KEYS as u64)).into_bytes();
            (key, Some(format!("new {}", dice.roll(1000)).into_bytes()))
        })
        .collect()
}

/// A world in which every server is `peer`, and whose client has what `former` had.
pub(super) fn later(former: World, peer: &Peer) -> World {
    later_with(former, peer, |_| ())
}

/// The same with options that `change` changes.
pub(super) fn later_with(
    mut former: World,
    peer: &Peer,
    change: impl FnOnce(&mut SessionOptions),
) -> World {
    let servers = peer.scheme().plan.servers;
    let mut options = options(servers);
    change(&mut options);
    let left = former.keeper.state.tables_left().unwrap().into_iter();
    options.tables_left = left.map(|(_, left)| TableLeft { here: true, left }).collect();
    let journal = std::mem::take(&mut former.journal);
    let mut world = World::after(former, vec![peer.clone(); servers], options);
    world.journal = journal;
    world
}

/// What was fetched before the first lookup. (Later fetches are the beginning of the next
/// generation of hints.)
pub(super) fn parts_fetched(world: &World) -> Vec<PartKind> {
    let before = world.sent.iter().take_while(|(_, sent)| !matches!(sent, Request::Answer(_)));
    let fetched = before.filter_map(|(_, request)| match request {
        Request::Fetch(request) => Some(request.part),
        _ => None,
    });
    fetched.collect()
}

fn updated(world: &World) -> usize {
    world.events.iter().filter(|event| event.starts_with("Updated")).count()
}

/// A different number for each scheme.
fn place(scheme: SchemeId) -> u64 {
    privet_laboratory::all().take_while(|known| *known != scheme).count() as u64
}

#[test]
fn a_later_session_follows_by_every_scheme_without_a_new_offline_phase() {
    for kind in [KeyMapKind::Buckets, KeyMapKind::Cuckoo] {
        for scheme in SCHEMES {
            let mut dice = Dice(place(scheme) + 7);
            let mut living = Living::new(scheme, kind, KEYS);
            let mut world = World::of(&living.peer(0, &[], 0));
            living.check(&mut world, &mut dice, 3);
            let mut version = 0;
            for epochs in [1, 3] {
                for _ in 0..epochs {
                    version = living.update(&edits(&mut dice, 4));
                }
                world = later(world, &living.peer(version, &[], 0));
                living.check(&mut world, &mut dice, 3);
                assert!(world.failure.is_none(), "{scheme}: {:?}", world.failure);
                assert_eq!(updated(&world), 1, "{scheme}: {:?}", world.events);
                let offline = world.peers[0].scheme().plan.offline;
                let fetched = parts_fetched(&world);
                let again =
                    fetched.iter().any(|part| matches!(part, PartKind::Hint | PartKind::Table));
                let asked = world.sent.iter().any(|(_, sent)| matches!(sent, Request::Prepare(_)));
                // A part that cannot be patched is small.
                let refetches = scheme == SchemeId::ApirMatrix;
                assert_eq!(again, refetches, "{scheme}: {fetched:?}");
                assert!(!asked, "{scheme}: hints were asked for anew");
                let patches = matches!(
                    offline,
                    OfflinePhase::Download { .. } | OfflinePhase::KeepTable { .. }
                );
                assert_eq!(world.patched, usize::from(patches && !refetches), "{scheme}");
            }
        }
    }
}

#[test]
fn a_session_moves_on_when_the_version_before_is_gone_or_when_it_hears_of_the_next() {
    // A client that holds the table asks nothing, and hears of no new version.
    for scheme in SCHEMES.into_iter().filter(|id| *id != SchemeId::Download) {
        for grace in [true, false] {
            let mut dice = Dice(place(scheme) + 11);
            let mut living = Living::new(scheme, KeyMapKind::Cuckoo, KEYS);
            let mut world = World::of(&living.peer(0, &[], 0));
            living.check(&mut world, &mut dice, 2);
            for _ in 0..3 {
                let version = living.update(&edits(&mut dice, 3));
                let earlier: &[u64] = if grace { &[version - 1] } else { &[] };
                world.serve(&living.peer(version, earlier, 0));
                if grace {
                    // The client hears of it when its last description is a minute old.
                    world.now += Duration::from_secs(61);
                }
                living.check(&mut world, &mut dice, 3);
                assert!(world.failure.is_none(), "{scheme}: {:?}", world.failure);
            }
            assert_eq!(updated(&world), 3, "{scheme}, grace {grace}");
            let left_behind =
                world.events.iter().any(|event| event.contains("hints cannot follow"));
            assert!(!(left_behind && grace), "{scheme}: hints follow if there is time");
        }
    }
}

#[test]
fn lookups_under_way_are_answered_in_the_version_before_or_begin_again() {
    for scheme in SCHEMES.into_iter().filter(|id| *id != SchemeId::Download) {
        let mut dice = Dice(5);
        let mut living = Living::new(scheme, KeyMapKind::Cuckoo, KEYS);
        let mut world = World::of(&living.peer(0, &[], 0));
        world.run();
        let key = b"key-1".to_vec();
        let lookups = [(); 6].map(|()| world.session.lookup(Target::key(&key)));
        // Some queries are on their way when the version goes.
        for _ in 0..3 {
            world.step();
        }
        let old = living.model[&key].clone();
        let version = living.update(&[(key.clone(), Some(b"changed".to_vec()))]);
        world.serve(&living.peer(version, &[], 0));
        world.run();
        for lookup in lookups {
            let value = world.value(lookup);
            assert!(value == old || value == b"changed", "{scheme}");
        }
        living.check(&mut world, &mut dice, 2);
    }
}

#[test]
fn a_server_behind_the_others_is_waited_for() {
    let mut dice = Dice(3);
    let mut living = Living::new(SchemeId::Dpf, KeyMapKind::Buckets, KEYS);
    let version = living.update(&edits(&mut dice, 3));
    let (ahead, behind) = (living.peer(version, &[0], 0), living.peer(0, &[], 0));
    for peers in [[ahead.clone(), behind.clone()], [behind, ahead]] {
        let mut world = World::with_options(peers.to_vec(), options(2));
        world.get(Target::key(b"key-1")).unwrap();
        assert_eq!(world.session.table().unwrap().identity.epoch, Epoch(0), "what both have");
    }
    // Without a version in common there is nothing to ask.
    let alone = living.peer(version, &[], 0);
    let mut world = World::with_options(vec![alone, living.peer(0, &[], 0)], options(2));
    world.run();
    assert_eq!(world.failed_with(), Blame::Integrity);
    assert!(world.queries().is_empty());
}

/// A client that has pinned version 1 of a table, after it was shown `peer`.
fn shown(scheme: SchemeId, living: &Living, peer: Peer) -> World {
    let mut world = World::of(&living.peer(1, &[], 0));
    world.found(Target::key(b"key-1"));
    assert!(scheme.name() == world.peers[0].scheme().plan.scheme.name());
    let mut world = later(world, &peer);
    world.session.lookup(Target::key(b"key-1"));
    world.run();
    world
}

#[test]
fn gaps_forks_rollbacks_and_what_somebody_else_signed_end_the_session_before_anything_is_asked() {
    for scheme in [SchemeId::SimplePir, SchemeId::DummySubsets, SchemeId::Download] {
        let mut dice = Dice(9);
        let mut living = Living::new(scheme, KeyMapKind::Buckets, KEYS);
        for _ in 0..3 {
            living.update(&edits(&mut dice, 3));
        }
        let mut other = Living::new(scheme, KeyMapKind::Buckets, KEYS);
        other.update(&edits(&mut dice, 3));
        let truth = living.peer(3, &[], 0);
        let with_epochs = |change: &dyn Fn(&mut Vec<SignedEpoch>)| {
            let mut peer = living.peer(3, &[], 0);
            change(&mut peer.epochs);
            peer
        };
        let gap = with_epochs(&|epochs| drop(epochs.remove(1)));
        let altered = with_epochs(&|epochs| *epochs[2].1.last_mut().unwrap() ^= 1);
        let garbage = with_epochs(&|epochs| epochs[2].1 = vec![7; 300]);
        let of_another =
            with_epochs(&|epochs| epochs[1].1.clone_from(&other.peer(1, &[], 0).epochs[0].1));
        let back = living.peer(0, &[], 0);
        let updates = truth.description.tables[0].updates;
        let told = |peer: Peer, change: fn(&mut UpdatesDescription)| {
            let mut updates = updates.unwrap();
            change(&mut updates);
            peer.telling(|_| Some(updates))
        };
        let wrong = truth.clone().with_identity(|identity| identity.digest = TableDigest([1; 32]));
        let contents = told(wrong, |_| ());
        let another_publisher = told(truth.clone(), |updates| updates.publisher = [9; 32]);
        let too_late = told(living.peer(3, &[], 2), |updates| updates.first_epoch = Epoch(2));
        for (peer, what) in [
            (gap, "gap"),
            (altered, "signature"),
            (garbage, "update log"),
            (of_another, "another table"),
            (back, "went back"),
            (contents, ""),
            (another_publisher, "published by"),
            (too_late, "no longer available"),
        ] {
            let world = shown(scheme, &living, peer);
            let failure =
                world.failure.as_ref().unwrap_or_else(|| panic!("{scheme}: {what} was believed"));
            assert!(failure.message().contains(what), "{scheme}: {failure} instead of {what}");
            assert!(world.queries().is_empty(), "{scheme}: {what}");
            // The pins stay where they were.
            let world = later(world, &truth);
            assert!(world.failure.is_none());
        }
        let mut world = shown(scheme, &living, truth);
        living.check(&mut world, &mut dice, 3);
    }
}

#[test]
fn a_publisher_who_is_named_only_later_is_not_believed() {
    let mut dice = Dice(1);
    let mut living = Living::new(SchemeId::SimplePir, KeyMapKind::Buckets, KEYS);
    let mut world = World::of(&living.peer(0, &[], 0).telling(|_| None));
    world.found(Target::key(b"key-1"));
    let version = living.update(&edits(&mut dice, 2));
    let mut world = later(world, &living.peer(version, &[], 0));
    world.run();
    assert_eq!(world.failed_with(), Blame::Integrity);
    assert_eq!(world.reason(), Some(Reason::PublisherUnknown));
    // The caller names the publisher.
    let peer = living.peer(version, &[], 0);
    let mut trusting = World::with(&peer, |options| {
        options.publisher = Some(living.publisher());
        know_pins(options, &mut *world.keeper.state);
    });
    living.check(&mut trusting, &mut dice, 2);
    // Then a table of another publisher is refused.
    let other = Some(privet_table::update_log::PublisherId([3; 32]));
    let mut world = World::with(&peer, |options| options.publisher = other);
    world.run();
    assert_eq!(world.failed_with(), Blame::Integrity);
}

#[test]
fn each_message_in_turn_fails_while_a_client_follows() {
    for scheme in [SchemeId::SimplePir, SchemeId::DummySubsets, SchemeId::TapirMerkle] {
        let mut at = 0;
        loop {
            let mut dice = Dice(21);
            let mut living = Living::new(scheme, KeyMapKind::Buckets, KEYS);
            let mut world = World::of(&living.peer(0, &[], 0));
            living.check(&mut world, &mut dice, 1);
            for _ in 0..2 {
                living.update(&edits(&mut dice, 40));
            }
            world = later(world, &living.peer(2, &[1], 0));
            let hit = std::rc::Rc::new(std::cell::Cell::new(false));
            let told = std::rc::Rc::clone(&hit);
            world.fate = Box::new(move |k, _| match k == at {
                true => {
                    told.set(true);
                    if at % 2 == 0 { Fate::Breaks } else { Fate::Cut(1) }
                }
                false => Fate::Arrives,
            });
            living.check(&mut world, &mut dice, 2);
            assert!(world.failure.is_none(), "{scheme}, message {at}: {:?}", world.failure);
            if !hit.get() {
                break;
            }
            at += 1;
        }
        assert!(at >= 4, "{scheme}: every message was hit once");
    }
}

#[test]
fn what_a_server_sees_of_a_client_that_follows_does_not_depend_on_what_it_looks_up() {
    for scheme in SCHEMES {
        let mut dice = Dice(31);
        let mut living = Living::new(scheme, KeyMapKind::Cuckoo, KEYS);
        let edited = b"key-7".to_vec();
        living.update(&[(edited.clone(), Some(b"edited".to_vec()))]);
        living.update(&edits(&mut dice, 2));
        let mut traces = Vec::new();
        for key in [&b"key-7"[..], b"key-8", b"not there"] {
            let mut world = World::of(&living.peer(0, &[], 0));
            world.get(Target::key(key)).unwrap();
            let before = world.sent.len();
            world.serve(&living.peer(2, &[], 0));
            world.get(Target::key(key)).unwrap();
            world.get(Target::key(key)).unwrap();
            assert!(world.failure.is_none() && before > 0);
            traces.push(world.trace());
        }
        assert!(traces.windows(2).all(|pair| pair[0] == pair[1]), "{scheme}");
    }
}

/// The records are what the publisher signed, but the description of where values lie in them is
/// not.
#[test]
fn a_layout_that_nobody_signed_is_refused() {
    for scheme in [SchemeId::SimplePir, SchemeId::Piano, SchemeId::Download] {
        let mut dice = Dice(2);
        let mut living = Living::new(scheme, KeyMapKind::Buckets, KEYS);
        for _ in 0..3 {
            living.update(&edits(&mut dice, 3));
        }
        let truth = living.peer(3, &[], 0);
        let forged = Living::new(scheme, KeyMapKind::Buckets, KEYS).peer(0, &[], 0).layout;
        let updates = truth.description.tables[0].updates;
        let liar = truth.clone().with_layout(forged).telling(|_| updates);
        let world = shown(scheme, &living, liar);
        assert_eq!(world.failed_with(), Blame::Integrity, "{scheme}");
        assert!(world.queries().is_empty());
        assert!(shown(scheme, &living, truth).failure.is_none());
    }
}

/// All fetches of a lookup that has begun go to one version, even if the client hears of the next
/// one between two of them.
#[test]
fn a_lookup_of_several_records_is_not_torn_by_an_update() {
    for scheme in [SchemeId::TapirMerkle, SchemeId::DummySubsets] {
        let mut dice = Dice(4);
        let mut living = Living::new(scheme, KeyMapKind::Cuckoo, KEYS);
        let mut world = World::with(&living.peer(0, &[], 0), |options| options.in_flight = 1);
        world.run();
        let version = living.update(&edits(&mut dice, 3));
        let lookup = world.session.lookup(Target::key(b"key-1"));
        while world.queries().is_empty() {
            world.step();
        }
        world.serve(&living.peer(version, &[0], 0));
        world.now += Duration::from_secs(61);
        world.run();
        assert!(world.outcomes.remove(&lookup).expect("it comes to its end").is_ok(), "{scheme}");
        living.check(&mut world, &mut dice, 2);
    }
}

/// If descriptions were asked for before a lookup, the lookup leaves as soon as they are there, not
/// at the next event.
#[test]
fn servers_are_asked_for_versions_as_soon_as_there_is_a_lookup() {
    let living = Living::new(SchemeId::Dpf, KeyMapKind::Buckets, KEYS);
    let mut world = World::of(&living.peer(0, &[], 0));
    world.found(Target::key(b"key-1"));
    world.now += Duration::from_secs(61);
    world.session.lookup(Target::key(b"key-1"));
    let first = world.poll();
    let asks =
        |errand: &Errand| matches!(errand, Errand::Send { request: Request::Describe(_), .. });
    assert!(matches!(first, Some(Output::Errand(errand)) if asks(&errand)));
}

/// If a first preparation takes so long that its version is gone by its end, it begins again, and
/// the client is told when it is ready.
#[test]
fn a_version_that_goes_before_the_first_lookup_is_begun_again_with_the_next() {
    for scheme in [SchemeId::SimplePir, SchemeId::DummySubsets, SchemeId::SinglePass] {
        let mut dice = Dice(6);
        let mut living = Living::new(scheme, KeyMapKind::Buckets, KEYS);
        let mut world = World::of(&living.peer(0, &[], 0));
        let version = living.update(&edits(&mut dice, 3));
        while world.sent.len() < world.peers.len() + 2 {
            world.step();
        }
        assert!(!world.events.iter().any(|event| event == "Ready"), "{scheme}: {:?}", world.events);
        world.serve(&living.peer(version, &[], 0));
        world.fate = Box::new({
            let mut broke = false;
            move |_, _| match std::mem::replace(&mut broke, true) {
                false => Fate::Breaks,
                true => Fate::Arrives,
            }
        });
        living.check(&mut world, &mut dice, 2);
        assert_eq!(world.events.iter().filter(|event| *event == "Ready").count(), 1, "{scheme}");
    }
}

/// Servers that have skipped different versions share only the old one, and the client uses it
/// until they share another.
#[test]
fn a_version_in_common_is_waited_for_without_a_stir() {
    let mut dice = Dice(8);
    let mut living = Living::new(SchemeId::Dpf, KeyMapKind::Buckets, KEYS);
    for _ in 0..3 {
        living.update(&edits(&mut dice, 3));
    }
    let mut world = World::of(&living.peer(0, &[], 0));
    world.found(Target::key(b"key-1"));
    world.peers = vec![living.peer(3, &[0], 0), living.peer(2, &[0], 0)];
    world.now += Duration::from_secs(61);
    world.get(Target::key(b"key-1")).unwrap();
    assert_eq!(world.session.table().unwrap().identity.epoch, Epoch(0));
    assert!(world.sent.len() < 20, "{:?}", world.trace());
    world.peers[1] = living.peer(3, &[2], 0);
    world.now += Duration::from_secs(61);
    living.check(&mut world, &mut dice, 2);
}
