//! Callers who demand a version, and callers who want the newest one now.

use super::living::Living;
use super::world::*;
use crate::session::*;
use privet_core::{Blame, Epoch, Reason};
use privet_schemes::SchemeId;
use privet_table::key_map::KeyMapKind;

const SCHEMES: [SchemeId; 5] = [
    SchemeId::SimplePir,
    SchemeId::DummySubsets,
    SchemeId::Download,
    SchemeId::Dpf,
    SchemeId::SinglePass,
];

fn living(scheme: SchemeId) -> Living {
    Living::new(scheme, KeyMapKind::Cuckoo, 60)
}

fn set(key: &str, value: &str) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    vec![(key.as_bytes().to_vec(), Some(value.as_bytes().to_vec()))]
}

#[test]
fn a_digest_that_nobody_serves_is_asked_for_nothing() {
    for scheme in SCHEMES {
        let mut living = living(scheme);
        let first = living.peer(0, &[], 0).identity().digest;
        living.update(&set("key-1", "new"));
        let second = living.peer(1, &[], 0).identity().digest;
        // Behind, and ahead.
        for (peer, digest) in [(living.peer(0, &[], 0), second), (living.peer(1, &[], 0), first)] {
            let mut world = World::with(&peer, |options| options.digest = Some(digest));
            world.session.lookup(Target::key(b"key-1"));
            world.run();
            assert_eq!(world.failed_with(), Blame::Integrity, "{scheme}");
            assert_eq!(world.reason(), Some(Reason::DigestDiffers), "{scheme}");
            let told = world.failure.as_ref().unwrap().message().to_owned();
            for digest in [digest, peer.identity().digest] {
                assert!(told.contains(&digest.to_string()), "{told}");
            }
            assert!(world.asked_nothing(), "{scheme}: {:?}", world.trace());
        }
        // The earlier version counts while it is served beside the later one.
        let both = living.peer(1, &[0], 0);
        for (digest, value) in [(first, "value 1"), (second, "new")] {
            let mut world = World::with(&both, |options| options.digest = Some(digest));
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
            assert!(world.asked_nothing());
        }
    }
}

#[test]
fn servers_that_are_behind_are_asked_nothing_and_may_catch_up() {
    for scheme in SCHEMES {
        let mut living = living(scheme);
        let demand = |options: &mut SessionOptions| options.at_least_epoch = Some(Epoch(1));
        let mut early = World::with(&living.peer(0, &[], 0), demand);
        early.session.lookup(Target::key(b"key-1"));
        early.run();
        assert_eq!(early.failed_with(), Blame::Unavailable, "{scheme}");
        assert_eq!(early.reason(), Some(Reason::VersionTooEarly));
        assert!(early.asked_nothing(), "{scheme}");
        for (epoch, value) in [(1, "new"), (2, "newer")] {
            living.update(&set("key-1", value));
            let mut late = World::with(&living.peer(epoch, &[0], 0), demand);
            assert_eq!(late.found(Target::key(b"key-1")), value.as_bytes(), "{scheme}");
        }
    }
}

/// A demanded version stays the demanded one, however long the session lasts.
#[test]
fn a_session_stays_with_the_demanded_version_and_ends_when_that_is_gone() {
    for scheme in SCHEMES {
        let mut living = living(scheme);
        let first = living.peer(0, &[], 0);
        let digest = first.identity().digest;
        let mut world = World::with(&first, |options| options.digest = Some(digest));
        assert_eq!(world.found(Target::key(b"key-1")), b"value 1");
        living.update(&set("key-1", "new"));
        world.serve(&living.peer(1, &[0], 0));
        world.now += Duration::from_secs(61);
        assert_eq!(world.found(Target::key(b"key-1")), b"value 1", "{scheme}");
        let refresh = world.session.refresh();
        world.run();
        assert!(
            world
                .events
                .contains(&format!("{:?}", Errand::Refreshed { refresh, table: first.identity() }))
        );
        world.serve(&living.peer(1, &[], 0));
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
    for scheme in SCHEMES {
        let mut living = living(scheme);
        let mut world = World::of(&living.peer(0, &[], 0));
        assert_eq!(world.found(Target::key(b"key-1")), b"value 1");
        for (version, value) in [(1, "new"), (2, "newer")] {
            living.update(&set("key-1", value));
            world.serve(&living.peer(version, &[version - 1], 0));
            let refresh = world.session.refresh();
            // It waits for the refresh.
            let lookup = world.session.lookup(Target::key(b"key-1"));
            world.run();
            assert_eq!(world.value(lookup), value.as_bytes(), "{scheme}");
            let table = world.peers[0].identity();
            let told = format!("{:?}", Errand::Refreshed { refresh, table });
            assert!(world.events.contains(&told), "{scheme}: {:?}", world.events);
        }
    }
}

/// A description that was on its way when the refresh was handed in may tell of the version before.
#[test]
fn a_refresh_waits_for_what_was_asked_for_after_it() {
    for scheme in SCHEMES {
        for is_open in [false, true] {
            let mut living = living(scheme);
            let mut world = World::of(&living.peer(0, &[], 0));
            if is_open {
                assert_eq!(world.found(Target::key(b"key-1")), b"value 1");
                world.session.refresh();
            }
            world.carry_out_all();
            assert!(matches!(world.sent.last(), Some((_, Request::Describe(_)))), "{scheme}");
            living.update(&set("key-1", "new"));
            world.serve(&living.peer(1, &[0], 0));
            let refresh = world.session.refresh();
            let lookup = world.session.lookup(Target::key(b"key-1"));
            world.run();
            let table = world.peers[0].identity();
            let told = format!("{:?}", Errand::Refreshed { refresh, table });
            assert!(world.events.contains(&told), "{scheme}: {:?}", world.events);
            assert_eq!(world.value(lookup), b"new", "{scheme}");
        }
    }
}

#[test]
fn a_refresh_that_reaches_nobody_fails_and_the_session_goes_on() {
    for scheme in SCHEMES {
        let living = living(scheme);
        let mut world = World::of(&living.peer(0, &[], 0));
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
    for scheme in SCHEMES {
        let mut traces = Vec::new();
        let mut living = living(scheme);
        living.update(&set("key-1", "new"));
        for key in [&b"key-1"[..], b"key-2", b"never there", b""] {
            let mut world = World::of(&living.peer(0, &[], 0));
            world.get(Target::key(key)).unwrap();
            world.serve(&living.peer(1, &[0], 0));
            let lookup = world.session.lookup(Target::key(key));
            world.session.refresh();
            world.run();
            assert!(world.outcomes[&lookup].is_ok());
            traces.push(world.trace());
        }
        assert!(traces.iter().all(|trace| *trace == traces[0]), "{scheme}: {traces:?}");
    }
}
