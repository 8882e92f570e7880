//! Two servers that send different updates of one table, by a scheme that verifies. That proves a
//! lie, and ends the hints like a wrong answer. A server that is behind, or out of reach, or sends
//! something that does not follow, proves nothing, and costs only a wait.

use super::following::parts_fetched;
use super::living::Living;
use super::world::*;
use crate::session::*;
use privet_core::Reason;
use privet_schemes::SchemeId;
use privet_table::key_map::KeyMapKind;
use privet_wire::PartKind;

const KEYS: usize = 60;
const SCHEME: SchemeId = SchemeId::TapirMerkle;
const SAID: &str = "the servers tell different updates of the same table";

fn set(key: &str, value: &str) -> (Vec<u8>, Option<Vec<u8>>) {
    (key.as_bytes().to_vec(), Some(value.as_bytes().to_vec()))
}

/// A table in version 0, and a client that has hints for it.
fn begun() -> (Living, World) {
    let living = Living::new(SCHEME, KeyMapKind::Buckets, KEYS);
    let mut world = World::of(&living.peer(0, &[], 0));
    world.found(Target::key(b"key-1"));
    (living, world)
}

/// A table in version 3, with a client that has hints for version 0.
fn three_versions() -> (Living, World) {
    let (mut living, world) = begun();
    for version in ["first", "second", "third"] {
        living.update(&[set("key-1", version), set("key-2", version)]);
    }
    (living, world)
}

/// The next session, with servers of its own.
fn next(former: World, peers: Vec<Peer>, change: impl FnOnce(&mut SessionOptions)) -> World {
    let mut options = options(2);
    change(&mut options);
    World::after(former, peers, options)
}

fn as_ever(_: &mut SessionOptions) {}

/// Servers in version 3, of which number `liar` sends something else; with the version in whose
/// updates it lies, and a description.
fn lies(living: &Living, liar: usize) -> Vec<(usize, String, Vec<Peer>)> {
    let truth = living.peer(3, &[], 0);
    let pair = |other: Peer| match liar {
        0 => vec![other, truth.clone()],
        _ => vec![truth.clone(), other],
    };
    let mut lies = Vec::new();
    for epoch in 0..3 {
        let mut other = truth.clone();
        *other.epochs[epoch].2.last_mut().unwrap() ^= 1;
        lies.push((epoch + 1, format!("commitments of epoch {epoch}"), pair(other)));
        let mut other = truth.clone();
        other.epochs[epoch].2.clear();
        lies.push((epoch + 1, format!("no commitments of epoch {epoch}"), pair(other)));
    }
    lies
}

/// Servers in one version, to which different epochs lead, all of them signed.
fn fork(liar: usize) -> (World, Vec<Peer>) {
    let (mut living, world) = begun();
    let mut other = living.forked();
    living.update(&[set("key-1", "one story")]);
    other.update(&[set("key-1", "another story")]);
    for living in [&mut living, &mut other] {
        living.update(&[set("key-1", "the end")]);
    }
    let (truth, mut forked) = (living.peer(2, &[], 0), other.peer(2, &[], 0));
    assert_eq!(truth.identity(), forked.identity(), "both come to the same");
    assert_ne!(truth.epochs[1].1, forked.epochs[1].1);
    forked.description = truth.description.clone();
    let peers = if liar == 0 { vec![forked, truth] } else { vec![truth, forked] };
    (world, peers)
}

/// Checks that a difference in the updates to `version` ended the session, that this was told only
/// after it was kept, and that nothing was asked.
fn check_ended(world: &mut World, version: usize, what: &str) {
    let lookup = world.session.lookup(Target::key(b"key-1"));
    world.run();
    let [(kept, before)] = &world.ends[..] else { panic!("{what}: {:?}", world.failure) };
    assert!(kept.starts_with(SAID), "{what}: {kept}");
    let named = format!(" differ first in version {version}.");
    assert!(kept.contains(&named), "{what}: {kept}");
    assert_eq!(*before, 0, "{what}: nobody was told before it was kept");
    assert_eq!(world.failed_with(), Blame::Integrity);
    for error in [world.failure.as_ref().unwrap(), world.outcomes[&lookup].as_ref().unwrap_err()] {
        assert_eq!(error.message(), kept, "{what}");
        assert_eq!(error.reason(), Some(Reason::HintsEnded), "{what}: {error}");
    }
    assert!(world.queries().is_empty(), "{what}");
}

/// Checks that a later session asks nothing and gives the same reason, whatever the servers send
/// now, and even if the user accepts their tables.
fn check_that_it_stays_so(mut world: World, living: Option<&Living>, what: &str) {
    let mut shown = vec![world.peers.clone()];
    shown.extend(living.map(|living| vec![living.peer(3, &[], 0); 2]));
    shown.extend(living.map(|living| vec![living.peer(0, &[], 0); 2]));
    for (at, peers) in shown.into_iter().enumerate() {
        for accept in [false, true] {
            // A client goes back to the first version only if its user accepts that.
            if at == 2 && !accept {
                continue;
            }
            world = next(world, peers.clone(), |options| options.accept_new_table = accept);
            world.session.lookup(Target::key(b"key-1"));
            world.run();
            assert_eq!(world.failed_with(), Blame::Integrity, "{what}");
            let message = world.failure.as_ref().unwrap().message();
            assert!(message.starts_with(SAID), "{what}: {message}");
            assert_eq!(world.reason(), Some(Reason::HintsEnded), "{what}: {message}");
            assert!(world.queries().is_empty() && world.ends.is_empty(), "{what}");
            assert!(!world.sent.iter().any(|(_, sent)| matches!(sent, Request::Prepare(_))));
        }
    }
}

#[test]
fn different_commitments_to_one_version_end_the_hints_for_good() {
    for liar in [0, 1] {
        let (living, _) = three_versions();
        for at in 0..lies(&living, liar).len() {
            let (living, world) = three_versions();
            let (version, what, peers) = lies(&living, liar).swap_remove(at);
            let mut world = next(world, peers, as_ever);
            check_ended(&mut world, version, &what);
            check_that_it_stays_so(world, Some(&living), &what);
        }
    }
}

#[test]
fn different_signed_epochs_end_the_hints_for_good() {
    for liar in [0, 1] {
        let (world, peers) = fork(liar);
        let mut world = next(world, peers, as_ever);
        check_ended(&mut world, 1, "a fork");
        check_that_it_stays_so(world, None, "a fork");
    }
}

#[test]
fn a_difference_in_the_midst_of_a_session_ends_it_as_well() {
    for liar in [0, 1] {
        let (mut living, mut world) = begun();
        for version in ["first", "second", "third"] {
            living.update(&[set("key-1", version)]);
        }
        let (_, what, peers) = lies(&living, liar).swap_remove(2);
        let before = world.queries().len();
        world.peers = peers;
        world.now += Duration::from_secs(61);
        assert_eq!(world.get(Target::key(b"key-1")).unwrap_err().blame(), Blame::Integrity);
        assert_eq!((world.ends.len(), world.queries().len()), (1, before), "{what}");
        check_that_it_stays_so(world, Some(&living), &what);
    }
}

/// The process ends after it finds the difference and before it tells it.
#[test]
fn a_crash_before_the_end_is_kept_leaves_it_to_the_next_session_and_one_after_does_not() {
    for kept in [false, true] {
        for liar in [0, 1] {
            let (world, peers) = fork(liar);
            let mut world = next(world, peers.clone(), as_ever);
            let lookup = world.session.lookup(Target::key(b"key-1"));
            let end = 'found: loop {
                while let Some(output) = world.session.poll(world.now) {
                    if matches!(output, Output::Persist(Persist::EndHints { .. })) {
                        break 'found output;
                    }
                    world.carry_out(output);
                }
                assert!(world.step(), "the difference is found");
            };
            assert!(world.failure.is_none() && !world.outcomes.contains_key(&lookup));
            if let (true, Output::Persist(Persist::EndHints { id, change, why })) = (kept, end) {
                world.keeper.hints.as_mut().unwrap().end(id, &change, &why).unwrap();
            }
            if kept {
                check_that_it_stays_so(world, None, "a crash after it was kept");
            } else {
                let mut world = next(world, peers, as_ever);
                check_ended(&mut world, 1, "a crash before it was kept");
            }
        }
    }
}

#[test]
fn an_end_that_cannot_be_kept_is_told_with_what_to_do() {
    let (world, peers) = fork(1);
    let mut world = next(world, peers, as_ever);
    world.end_breaks = true;
    let error = world.get(Target::key(b"key-1")).unwrap_err();
    assert_eq!(error.blame(), Blame::Integrity);
    assert!(error.message().starts_with(SAID), "{error}");
    assert!(error.message().contains("could not be written down"), "{error}");
}

#[test]
fn a_server_that_is_behind_or_away_or_makes_no_sense_ends_nothing() {
    for other in [0, 1] {
        let (living, mut world) = three_versions();
        let truth = living.peer(3, &[], 0);
        let pair = |peer: Peer| match other {
            0 => vec![peer, truth.clone()],
            _ => vec![truth.clone(), peer],
        };
        let with_epochs = |change: &dyn Fn(&mut Vec<SignedEpoch>)| {
            let mut peer = truth.clone();
            change(&mut peer.epochs);
            pair(peer)
        };
        let behind = (pair(living.peer(2, &[], 0)), Fate::Arrives);
        let away = (pair(truth.clone()), Fate::Breaks);
        let silent = (pair(truth.clone()), Fate::Lost);
        let short = (with_epochs(&|epochs| drop(epochs.pop())), Fate::Arrives);
        let gap = (with_epochs(&|epochs| drop(epochs.remove(1))), Fate::Arrives);
        let unsigned =
            (with_epochs(&|epochs| *epochs[1].1.last_mut().unwrap() ^= 1), Fate::Arrives);
        let garbage = (with_epochs(&|epochs| epochs[2].1 = vec![7; 300]), Fate::Arrives);
        for (at, (peers, fate)) in
            [behind, away, silent, short, gap, unsigned, garbage].into_iter().enumerate()
        {
            world = next(world, peers, as_ever);
            world.fates[other] = fate;
            world.session.lookup(Target::key(b"key-1"));
            world.run();
            assert!(world.failure.is_some(), "{at}");
            assert!(world.ends.is_empty() && world.queries().is_empty(), "{at}");
        }
        // Nothing was lost: the session goes on with what both have, and prepares nothing anew.
        let mut world = next(world, vec![truth.clone(); 2], as_ever);
        assert_eq!(world.found(Target::key(b"key-1")), b"third");
        assert!(!parts_fetched(&world).contains(&PartKind::Table), "{:?}", world.trace());
    }
}
