//! Callers who demand a version, and callers who want the newest one now.

use super::living::Living;
use super::world::*;
use crate::session::*;
use privet_core::{Blame, Epoch, Reason};
use privet_schemes::SchemeId;
use privet_table::key_map::KeyMapKind;

const SCHEMES: [(SchemeId, usize); 5] = [
    (SchemeId::SimplePir, 1),
    (SchemeId::DummySubsets, 1),
    (SchemeId::Download, 1),
    (SchemeId::Dpf, 2),
    (SchemeId::SinglePass, 2),
];

fn living(scheme: SchemeId) -> Living {
    Living::new(scheme, KeyMapKind::Cuckoo, 60)
}

fn set(key: &str, value: &str) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    vec![(key.as_bytes().to_vec(), Some(value.as_bytes().to_vec()))]
}

/// A world in which every server is `peer`.
fn world(peer: &Peer, servers: usize, demand: impl FnOnce(&mut SessionOptions)) -> World {
    let mut options = options(servers);
    demand(&mut options);
    World::with_options(vec![peer.clone(); servers], options)
}

fn asked_nothing(world: &World) -> bool {
    world.sent.iter().all(|(_, request)| matches!(request, Request::Describe(_)))
}

#[test]
fn a_digest_that_nobody_serves_is_asked_for_nothing() {
    for (scheme, servers) in SCHEMES {
        let mut living = living(scheme);
        let first = living.peer(0, &[], 0).identity().digest;
        living.update(&set("key-1", "new"));
        let second = living.peer(1, &[], 0).identity().digest;
        // Behind, and ahead.
        for (peer, digest) in [(living.peer(0, &[], 0), second), (living.peer(1, &[], 0), first)] {
            let mut world = world(&peer, servers, |options| options.digest = Some(digest));
            world.session.lookup(Target::key(b"key-1"));
            world.run();
            assert_eq!(world.failed_with(), Blame::Integrity, "{scheme}");
            assert_eq!(world.reason(), Some(Reason::DigestDiffers), "{scheme}");
            let told = world.failure.as_ref().unwrap().message().to_owned();
            for digest in [digest, peer.identity().digest] {
                assert!(told.contains(&digest.to_string()), "{told}");
            }
            assert!(asked_nothing(&world), "{scheme}: {:?}", world.trace());
        }
        // The earlier version counts while it is served beside the later one.
        let both = living.peer(1, &[0], 0);
        for (digest, value) in [(first, "value 1"), (second, "new")] {
            let mut world = world(&both, servers, |options| options.digest = Some(digest));
            assert_eq!(world.found(Target::key(b"key-1")), value.as_bytes(), "{scheme}");
        }
    }
}

#[test]
fn of_two_servers_both_must_have_the_demanded_version() {
    let mut living = living(SchemeId::Dpf);
    let digest = living.peer(0, &[], 0).identity().digest;
    living.update(&set("key-1", "new"));
    let newer = living.peer(1, &[0], 0).identity().digest;
    let (ahead, behind) = (living.peer(1, &[0], 0), living.peer(0, &[], 0));
    for peers in [[ahead.clone(), behind.clone()], [behind, ahead]] {
        let mut of = options(2);
        of.digest = Some(digest);
        let mut world = World::with_options(peers.to_vec(), of);
        assert_eq!(world.found(Target::key(b"key-1")), b"value 1");
        let newest = |options: &mut SessionOptions| options.at_least_epoch = Some(Epoch(1));
        let exactly = |options: &mut SessionOptions| options.digest = Some(newer);
        for (demand, reason) in [
            (&newest as &dyn Fn(&mut SessionOptions), Reason::VersionTooEarly),
            (&exactly as &dyn Fn(&mut SessionOptions), Reason::DigestDiffers),
        ] {
            let mut of = options(2);
            demand(&mut of);
            let mut world = World::with_options(peers.to_vec(), of);
            world.session.lookup(Target::key(b"key-1"));
            world.run();
            assert_eq!(world.reason(), Some(reason));
            assert!(asked_nothing(&world));
        }
    }
}

#[test]
fn servers_that_are_behind_are_asked_nothing_and_may_catch_up() {
    for (scheme, servers) in SCHEMES {
        let mut living = living(scheme);
        let demand = |options: &mut SessionOptions| options.at_least_epoch = Some(Epoch(1));
        let mut early = world(&living.peer(0, &[], 0), servers, demand);
        early.session.lookup(Target::key(b"key-1"));
        early.run();
        assert_eq!(early.failed_with(), Blame::Unavailable, "{scheme}");
        assert_eq!(early.reason(), Some(Reason::VersionTooEarly));
        assert!(asked_nothing(&early), "{scheme}");
        for (epoch, value) in [(1, "new"), (2, "newer")] {
            living.update(&set("key-1", value));
            let mut late = world(&living.peer(epoch, &[0], 0), servers, demand);
            assert_eq!(late.found(Target::key(b"key-1")), value.as_bytes(), "{scheme}");
        }
    }
}

/// A demanded version stays the demanded one, however long the session lasts.
#[test]
fn a_session_stays_with_the_demanded_version_and_ends_when_that_is_gone() {
    for (scheme, servers) in SCHEMES {
        let mut living = living(scheme);
        let first = living.peer(0, &[], 0);
        let digest = first.identity().digest;
        let mut world = world(&first, servers, |options| options.digest = Some(digest));
        assert_eq!(world.found(Target::key(b"key-1")), b"value 1");
        living.update(&set("key-1", "new"));
        world.peers = vec![living.peer(1, &[0], 0); servers];
        world.now += Duration::from_secs(61);
        assert_eq!(world.found(Target::key(b"key-1")), b"value 1", "{scheme}");
        let refresh = world.session.refresh();
        world.run();
        assert!(
            world
                .events
                .contains(&format!("{:?}", Errand::Refreshed { refresh, table: first.identity() }))
        );
        world.peers = vec![living.peer(1, &[], 0); servers];
        let lookup = world.session.lookup(Target::key(b"key-1"));
        world.run();
        if scheme == SchemeId::Download {
            // It has the table and asks nobody.
            assert!(world.outcomes[&lookup].is_ok());
            continue;
        }
        assert!(world.outcomes[&lookup].is_err(), "{scheme}");
        assert_eq!(world.reason(), Some(Reason::DigestDiffers), "{scheme}");
    }
}

#[test]
fn a_refreshed_session_has_the_newest_version_at_once() {
    for (scheme, servers) in SCHEMES {
        let mut living = living(scheme);
        let mut world = world(&living.peer(0, &[], 0), servers, |_| ());
        assert_eq!(world.found(Target::key(b"key-1")), b"value 1");
        for (version, value) in [(1, "new"), (2, "newer")] {
            living.update(&set("key-1", value));
            world.peers = vec![living.peer(version, &[version - 1], 0); servers];
            let refresh = world.session.refresh();
            // It waits for the refresh.
            let lookup = world.session.lookup(Target::key(b"key-1"));
            world.run();
            let found = world.outcomes.remove(&lookup).unwrap().unwrap().unwrap();
            assert_eq!(found.to_vec(), value.as_bytes(), "{scheme}");
            let table = world.peers[0].identity();
            let told = format!("{:?}", Errand::Refreshed { refresh, table });
            assert!(world.events.contains(&told), "{scheme}: {:?}", world.events);
        }
    }
}

/// A description that was on its way when the refresh was handed in may tell of the version before.
#[test]
fn a_refresh_waits_for_what_was_asked_for_after_it() {
    for (scheme, servers) in SCHEMES {
        for is_open in [false, true] {
            let mut living = living(scheme);
            let mut world = world(&living.peer(0, &[], 0), servers, |_| ());
            if is_open {
                assert_eq!(world.found(Target::key(b"key-1")), b"value 1");
                world.session.refresh();
            }
            while let Some(output) = world.poll() {
                world.carry_out(output);
            }
            assert!(matches!(world.sent.last(), Some((_, Request::Describe(_)))), "{scheme}");
            living.update(&set("key-1", "new"));
            world.peers = vec![living.peer(1, &[0], 0); servers];
            let refresh = world.session.refresh();
            let lookup = world.session.lookup(Target::key(b"key-1"));
            world.run();
            let table = world.peers[0].identity();
            let told = format!("{:?}", Errand::Refreshed { refresh, table });
            assert!(world.events.contains(&told), "{scheme}: {:?}", world.events);
            let found = world.outcomes.remove(&lookup).unwrap().unwrap().unwrap();
            assert_eq!(found.to_vec(), b"new", "{scheme}");
        }
    }
}

#[test]
fn a_refresh_that_reaches_nobody_fails_and_the_session_goes_on() {
    for (scheme, servers) in SCHEMES {
        let living = living(scheme);
        let mut world = world(&living.peer(0, &[], 0), servers, |_| ());
        world.found(Target::key(b"key-1"));
        world.fates[0] = Fate::Breaks;
        let refresh = world.session.refresh();
        world.run();
        let failed = world.outcomes.remove(&refresh).unwrap();
        assert_eq!(failed.unwrap_err().blame(), Blame::Unavailable, "{scheme}");
        world.fates[0] = Fate::Arrives;
        assert_eq!(world.found(Target::key(b"key-1")), b"value 1", "{scheme}");
    }
}

/// Whatever was looked up, and whether it was there: a refresh asks the same.
#[test]
fn what_a_refresh_sends_does_not_depend_on_lookups() {
    for (scheme, servers) in SCHEMES {
        let mut traces = Vec::new();
        let mut living = living(scheme);
        living.update(&set("key-1", "new"));
        for key in [&b"key-1"[..], b"key-2", b"never there", b""] {
            let mut world = world(&living.peer(0, &[], 0), servers, |_| ());
            world.get(Target::key(key)).unwrap();
            world.peers = vec![living.peer(1, &[0], 0); servers];
            let lookup = world.session.lookup(Target::key(key));
            world.session.refresh();
            world.run();
            assert!(world.outcomes[&lookup].is_ok());
            traces.push(world.trace());
        }
        assert!(traces.iter().all(|trace| *trace == traces[0]), "{scheme}: {traces:?}");
    }
}
