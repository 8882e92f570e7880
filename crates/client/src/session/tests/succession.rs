//! Clients of a table that is succeeded by another, or whose keys change; and servers that lie
//! about it.

use super::following::{edits, later, later_with, parts_fetched};
use super::living::Living;
use super::world::*;
use crate::session::*;
use crate::state::PinElsewhere;
use privet_core::{Reason, TableId};
use privet_schemes::SchemeId;
use privet_table::key_map::KeyMapKind;
use privet_table::update_log::{PublisherKey, Signers};
use privet_wire::PartKind;
use std::sync::Arc;

const KEYS: usize = 60;

/// One scheme of each kind.
const SCHEMES: [SchemeId; 6] = [
    SchemeId::SimplePir,
    SchemeId::Dpf,
    SchemeId::DummySubsets,
    SchemeId::SinglePass,
    SchemeId::TapirMerkle,
    SchemeId::Download,
];

fn key() -> Arc<PublisherKey> {
    Arc::new(PublisherKey::generate().unwrap())
}

fn without_next_key(key: &Arc<PublisherKey>, scheme: SchemeId, value: &str) -> Living {
    Living::under(Arc::clone(key), None, scheme, KeyMapKind::Cuckoo, KEYS, value)
}

/// The keys of a table's owner: the publisher's, and the next one.
struct Owner {
    publisher: Arc<PublisherKey>,
    next: Arc<PublisherKey>,
}

impl Owner {
    fn new() -> Self {
        Self { publisher: key(), next: key() }
    }

    fn table(&self, scheme: SchemeId) -> Living {
        let next = Some(self.next.id().as_next_key());
        Living::under(Arc::clone(&self.publisher), next, scheme, KeyMapKind::Cuckoo, KEYS, "old")
    }

    /// The successor of a table, with more keys.
    fn successor(&self, scheme: SchemeId, value: &str) -> Living {
        let key = Arc::clone(&self.next);
        Living::under(key, None, scheme, KeyMapKind::Cuckoo, KEYS + 7, value)
    }

    fn both(&self) -> Signers<'_> {
        Signers { publisher: Some(&self.publisher), next: Some(&self.next) }
    }
}

/// A table of `scheme` at version 2, a client that has used its version 0, and the successor.
fn succeeded(owner: &Owner, scheme: SchemeId) -> (World, Living, Living) {
    let mut dice = Dice(5);
    let mut old = owner.table(scheme);
    let mut world = World::of(&old.peer(0, &[], 0));
    old.check(&mut world, &mut dice, 2);
    for _ in 0..2 {
        old.update(&edits(&mut dice, 3));
    }
    let mut new = owner.successor(scheme, "new");
    old.succeed(owner.both(), &mut new);
    (world, old, new)
}

/// Whether the session failed before it asked anything, and left the pins as they were.
fn assert_refused(world: &mut World, id: TableId, how: &str) {
    world.run();
    assert_eq!(world.failed_with(), Blame::Integrity);
    let error = world.failure.as_ref().unwrap().message().to_owned();
    assert!(error.contains(how), "{how}: {error}");
    assert!(world.queries().is_empty());
    assert!(world.sent.iter().all(|(_, sent)| !matches!(sent, Request::Prepare(_))));
    let pins = world.state_pins("server 0");
    assert!(pins.iter().all(|(_, pin)| pin.table.id == id), "{pins:?}");
}

fn fetched_lineage(world: &World) -> bool {
    parts_fetched(world).contains(&PartKind::Lineage)
}

#[test]
fn who_has_pinned_a_table_follows_to_its_successor_and_never_back() {
    for scheme in SCHEMES {
        let (owner, mut dice) = (Owner::new(), Dice(3));
        let (world, old, mut new) = succeeded(&owner, scheme);
        let mut world = later(world, &new.peer(0, &[], 0));
        new.check(&mut world, &mut dice, 3);
        assert!(world.failure.is_none(), "{scheme:?}: {:?}", world.failure);
        assert!(world.events.iter().any(|event| event.contains("succeeds the table")));
        assert!(fetched_lineage(&world));
        let id = new.peer(0, &[], 0).identity().id;
        for server in 0..world.peers.len() {
            let pins = world.state_pins(&format!("server {server}"));
            let [(_, pin)] = &pins[..] else { panic!("one table: {pins:?}") };
            assert_eq!((pin.table.id, pin.publisher), (id, Some(new.publisher())));
        }

        // The next session needs no lineage, and follows the new table's epochs.
        let version = new.update(&edits(&mut dice, 3));
        let mut world = later(world, &new.peer(version, &[], 0));
        new.check(&mut world, &mut dice, 2);
        assert!(world.failure.is_none() && !fetched_lineage(&world), "{:?}", world.failure);

        // Nobody leads back, whichever version is shown under whatever name.
        for name in ["table", "other"] {
            let mut back = old.peer(2, &[], 0);
            if name == "other" {
                back.description.tables[0].name = name.to_owned();
            }
            world = later(world, &back);
            assert_refused(&mut world, id, "left before for its successor");
        }
        // And the successor still serves.
        let mut world = later(world, &new.peer(version, &[], 0));
        new.check(&mut world, &mut dice, 1);
    }
}

#[test]
fn a_client_that_comes_late_follows_the_successors_epochs_too() {
    let (owner, mut dice) = (Owner::new(), Dice(3));
    let (world, _, mut new) = succeeded(&owner, SchemeId::DummySubsets);
    for _ in 0..3 {
        new.update(&edits(&mut dice, 3));
    }
    let mut world = later(world, &new.peer(3, &[], 0));
    new.check(&mut world, &mut dice, 3);
    assert!(world.failure.is_none(), "{:?}", world.failure);
    let parts = parts_fetched(&world);
    assert!(parts.contains(&PartKind::Lineage) && parts.contains(&PartKind::Updates), "{parts:?}");
    assert_eq!(world.state_pins("server 0")[0].1.table.epoch.0, 3);
}

#[test]
fn a_session_goes_on_in_the_successor_and_closes_its_hints_first() {
    for scheme in SCHEMES.into_iter().filter(|id| *id != SchemeId::Download) {
        let (owner, mut dice) = (Owner::new(), Dice(3));
        let (mut world, old, new) = succeeded(&owner, scheme);
        // The client hears of it when its last description is a minute old.
        world.serve(&new.peer(0, &[], 0));
        world.now += Duration::from_secs(61);
        new.check(&mut world, &mut dice, 3);
        assert!(world.failure.is_none(), "{scheme:?}: {:?}", world.failure);
        let id = old.peer(0, &[], 0).identity().id;
        let left = world.keeper.state.tables_left().unwrap();
        assert!(left.iter().all(|(_, left)| left.id == id) && !left.is_empty());
        // Two queries through one hint would be equal in length and differ: none is sent twice
        // with another content, because hints are of one table.
        let of_old = |world: &World| asked(world).iter().filter(|table| **table == id).count();
        let before = of_old(&world);
        new.check(&mut world, &mut dice, 2);
        assert_eq!(of_old(&world), before, "nothing more is asked of the old table");
    }
}

#[test]
fn a_thief_of_the_publishers_key_moves_no_client_that_has_pinned_a_next_key() {
    let (owner, mut dice) = (Owner::new(), Dice(3));
    let old = owner.table(SchemeId::Dpf);
    let mut world = World::of(&old.peer(0, &[], 0));
    old.check(&mut world, &mut dice, 1);
    // The thief has copied the table file, and leads to a table of his own.
    let stolen = old.stolen();
    let mut his = without_next_key(&key(), SchemeId::Dpf, "false");
    let by_publisher = Signers { publisher: Some(&owner.publisher), next: None };
    stolen.succeed(by_publisher, &mut his);
    let id = old.peer(0, &[], 0).identity().id;
    let mut world = later(world, &his.peer(0, &[], 0));
    assert_refused(&mut world, id, "next key");
}

#[test]
fn without_a_next_key_whoever_has_the_publishers_key_moves_clients() {
    let mut dice = Dice(3);
    let (publisher, thief) = (key(), key());
    let old = without_next_key(&publisher, SchemeId::Dpf, "old");
    let mut world = World::of(&old.peer(0, &[], 0));
    old.check(&mut world, &mut dice, 1);
    let mut his = without_next_key(&thief, SchemeId::Dpf, "false");
    old.succeed(Signers { publisher: Some(&publisher), next: None }, &mut his);
    let mut world = later(world, &his.peer(0, &[], 0));
    his.check(&mut world, &mut dice, 1);
    assert!(world.failure.is_none(), "as documented: {:?}", world.failure);
}

#[test]
fn a_second_successor_of_a_table_is_refused_by_who_has_followed_the_first() {
    let owner = Owner::new();
    let scheme = SchemeId::SimplePir;
    let mut dice = Dice(9);
    let old = owner.table(scheme);
    let mut world = World::of(&old.peer(0, &[], 0));
    old.check(&mut world, &mut dice, 1);
    let other_history = old.forked();
    let [mut first, mut second] = ["first", "second"].map(|value| owner.successor(scheme, value));
    old.succeed(owner.both(), &mut first);
    other_history.succeed(owner.both(), &mut second);
    let mut world = later(world, &first.peer(0, &[], 0));
    first.check(&mut world, &mut dice, 1);
    let id = first.peer(0, &[], 0).identity().id;
    let mut world = later(world, &second.peer(0, &[], 0));
    assert_refused(&mut world, id, "(a fork)");
}

#[test]
fn a_successor_that_leaves_out_epochs_that_the_client_has_followed_is_refused() {
    let owner = Owner::new();
    let mut dice = Dice(9);
    let mut old = owner.table(SchemeId::SimplePir);
    let (before, again) = (old.forked(), old.forked());
    let version = old.update(&edits(&mut dice, 3));
    let mut world = World::of(&old.peer(version, &[], 0));
    old.check(&mut world, &mut dice, 1);
    let mut new = owner.successor(SchemeId::SimplePir, "new");
    before.succeed(owner.both(), &mut new);
    let id = old.peer(0, &[], 0).identity().id;
    let mut world = later(world, &new.peer(0, &[], 0));
    assert_refused(&mut world, id, "(a rollback)");

    // A revocation, which the next key alone signs, does just that.
    let mut revoked = owner.successor(SchemeId::SimplePir, "restored");
    again.succeed(Signers { publisher: None, next: Some(&owner.next) }, &mut revoked);
    let mut world = later(world, &revoked.peer(0, &[], 0));
    revoked.check(&mut world, &mut dice, 1);
    assert!(world.failure.is_none(), "{:?}", world.failure);
}

#[test]
fn a_lineage_of_other_tables_or_of_nobody_leads_nowhere() {
    let owner = Owner::new();
    let scheme = SchemeId::SimplePir;
    let (world, old, new) = succeeded(&owner, scheme);
    let id = old.peer(0, &[], 0).identity().id;
    // Another table claims the lineage of the successor.
    let stranger = owner.successor(scheme, "stranger").peer(0, &[], 0);
    let claimed = stranger.with_lineage(None, new.peer(0, &[], 0).lineage);
    let mut world = later(world, &claimed);
    assert_refused(&mut world, id, "was succeeded by another table");
    // A lineage of tables that this client never saw.
    let (other_owner, mut dice) = (Owner::new(), Dice(1));
    let (_, _, unrelated) = succeeded(&other_owner, scheme);
    let mut world = later(world, &unrelated.peer(0, &[], 0));
    assert_refused(&mut world, id, "another table than before");
    // The true successor with other contents than were signed.
    let changed = new.peer(0, &[], 0).with_identity(|identity| identity.digest.0[0] ^= 1);
    let lineage = new.peer(0, &[], 0).lineage;
    let changed = changed.with_history(Vec::new(), &[], new.publisher(), 0);
    let mut world = later(world, &changed.with_lineage(None, lineage));
    assert_refused(&mut world, id, "other contents");
    // With another publisher than was signed.
    let lineage = new.peer(0, &[], 0).lineage;
    let named = new.peer(0, &[], 0).with_history(Vec::new(), &[], key().id(), 0);
    let mut world = later(world, &named.with_lineage(None, lineage));
    assert_refused(&mut world, id, "another publisher");
    let mut world = later(world, &new.peer(0, &[], 0));
    new.check(&mut world, &mut dice, 1);
}

#[test]
fn when_keys_change_hints_stay_and_the_old_key_signs_nothing_more() {
    for scheme in SCHEMES {
        let (owner, mut dice) = (Owner::new(), Dice(7));
        let mut table = owner.table(scheme);
        let mut world = World::of(&table.peer(0, &[], 0));
        table.check(&mut world, &mut dice, 2);
        table.update(&edits(&mut dice, 2));
        let by_old_key = table.forked();
        table.rotate(Arc::clone(&owner.next));
        let version = table.update(&edits(&mut dice, 2));
        assert_eq!(version, 3);
        let mut world = later(world, &table.peer(version, &[], 0));
        table.check(&mut world, &mut dice, 2);
        assert!(world.failure.is_none(), "{scheme}: {:?}", world.failure);
        assert!(world.sent.iter().all(|(_, sent)| !matches!(sent, Request::Prepare(_))));
        let pin = world.state_pins("server 0")[0].1;
        assert_eq!((pin.publisher, pin.next_key), (Some(owner.next.id()), None));
        assert_eq!(pin.first_publisher, Some(owner.publisher.id()));
        assert!(world.keeper.state.tables_left().unwrap().is_empty());

        // The thief of the old key goes on from before the change, in a longer history.
        let mut thief = by_old_key;
        for _ in 0..4 {
            thief.update(&edits(&mut dice, 2));
        }
        let id = table.peer(0, &[], 0).identity().id;
        let mut world = later(world, &thief.peer(5, &[], 0));
        assert_refused(&mut world, id, "is published by");
        assert_eq!(world.reason(), Some(Reason::PublisherDiffers));

        // However often keys change later, the pin tells who signed first.
        let before = world.state_pins("server 0");
        table.rotate(key());
        let mut world = later(world, &table.peer(4, &[], 0));
        table.check(&mut world, &mut dice, 1);
        let pins = world.state_pins("server 0");
        assert_eq!(pins[0].1.first_publisher, Some(owner.publisher.id()), "{scheme}");

        // So does the pin of another address, if that is first used now.
        for pins in [before, pins] {
            let elsewhere = |(name, pin)| PinElsewhere { server: "old".to_owned(), name, pin };
            let mut world = World::with(&table.peer(4, &[], 0), |options| {
                options.pins_elsewhere = pins.into_iter().map(elsewhere).collect();
            });
            table.check(&mut world, &mut dice, 1);
            let pin = world.state_pins("server 0")[0].1;
            assert_eq!(pin.first_publisher, Some(owner.publisher.id()), "{scheme}");
        }
    }
}

#[test]
fn a_successor_by_another_scheme_is_refused() {
    let (owner, mut dice) = (Owner::new(), Dice(2));
    let old = owner.table(SchemeId::SimplePir);
    let mut world = World::of(&old.peer(0, &[], 0));
    old.check(&mut world, &mut dice, 1);
    let mut new = owner.successor(SchemeId::Download, "new");
    old.succeed(owner.both(), &mut new);
    let id = old.peer(0, &[], 0).identity().id;
    let mut world = later(world, &new.peer(0, &[], 0));
    assert_refused(&mut world, id, "another scheme");
}

/// The id of the table that each query was about.
fn asked(world: &World) -> Vec<TableId> {
    let table = |(_, sent): &(_, Request)| match sent {
        Request::Answer(query) => Some(query.table),
        _ => None,
    };
    world.sent.iter().filter_map(table).collect()
}

#[test]
fn servers_may_switch_at_different_moments_while_they_serve_the_table_before() {
    for scheme in SCHEMES.into_iter().filter(|id| *id != SchemeId::Download) {
        for first in [0, 1] {
            let (owner, mut dice) = (Owner::new(), Dice(4));
            let (mut world, old, new) = succeeded(&owner, scheme);
            if first == world.peers.len() {
                continue;
            }
            let (before, both) = (old.peer(0, &[], 0), new.peer(0, &[], 0));
            let both = both.beside(before.clone());
            let [old_id, new_id] = [before.identity().id, both.identity().id];

            // One server has switched. Sessions go on, and others begin, with the table before.
            if world.peers.len() == 2 {
                world.peers[first] = both.clone();
                for again in [false, true] {
                    if again {
                        let peers = world.peers.clone();
                        world = later(world, &before);
                        world.peers = peers;
                    }
                    world.now += Duration::from_secs(61);
                    old.check(&mut world, &mut dice, 2);
                    assert!(world.failure.is_none(), "{scheme}: {:?}", world.failure);
                    assert!(asked(&world).iter().all(|id| *id == old_id));
                    assert_eq!(world.state_pins("server 0")[0].1.table.id, old_id);
                }
            }

            // All have. Nothing under way is given up: the table before is still served.
            world.serve(&both);
            world.now += Duration::from_secs(61);
            new.check(&mut world, &mut dice, 2);
            assert!(world.failure.is_none(), "{scheme}: {:?}", world.failure);
            assert_eq!(asked(&world).last(), Some(&new_id));
            assert_eq!(world.state_pins("server 0")[0].1.table.id, new_id);
            // Who comes later uses the successor, and never goes back.
            let mut world = later(world, &new.peer(0, &[], 0).beside(before.clone()));
            new.check(&mut world, &mut dice, 1);
            assert!(asked(&world).iter().all(|id| *id == new_id));
            let mut world = later(world, &before);
            assert_refused(&mut world, new_id, "left before for its successor");
        }
    }
}

#[test]
fn servers_that_have_no_table_in_common_are_refused_as_before() {
    let (owner, mut dice) = (Owner::new(), Dice(4));
    let (mut world, old, new) = succeeded(&owner, SchemeId::Dpf);
    old.check(&mut world, &mut dice, 1);
    let (before, after) = (old.peer(0, &[], 0), new.peer(0, &[], 0));
    let id = before.identity().id;
    // The server that has switched does not serve the table before any more.
    let mut world = later(world, &before);
    world.peers[1] = after;
    assert_refused(&mut world, id, "another table under the name");
}

#[test]
fn a_caller_may_go_on_naming_the_publisher_before_and_is_led_to_no_thief() {
    let (owner, mut dice) = (Owner::new(), Dice(6));
    let old = owner.table(SchemeId::SimplePir);
    let naming = |named: &PublisherKey| {
        let publisher = Some(named.id());
        move |options: &mut SessionOptions| options.publisher = publisher
    };
    let mut world = World::with(&old.peer(0, &[], 0), naming(&owner.publisher));
    old.check(&mut world, &mut dice, 1);
    let stolen = old.stolen();
    let mut new = owner.successor(SchemeId::SimplePir, "new");
    old.succeed(owner.both(), &mut new);
    let mut version = 0;
    for _ in 0..3 {
        let peer = new.peer(version, &[], 0);
        world = later_with(world, &peer, naming(&owner.publisher));
        new.check(&mut world, &mut dice, 1);
        assert!(world.failure.is_none(), "{:?}", world.failure);
        let pin = world.state_pins("server 0")[0].1;
        assert_eq!((pin.table.id, pin.publisher), (peer.identity().id, Some(new.publisher())));
        version = new.update(&edits(&mut dice, 3));
    }
    let id = new.peer(0, &[], 0).identity().id;

    // Who is named must have signed something.
    let peer = new.peer(version, &[], 0);
    let mut world = later_with(world, &peer, naming(&key()));
    assert_refused(&mut world, id, "names another publisher");

    // The thief of the named key signs a successor of his own, and serves it under any name. He
    // also shows the true lineage beside it.
    let mut his = without_next_key(&key(), SchemeId::SimplePir, "false");
    stolen.succeed(Signers { publisher: Some(&owner.publisher), next: None }, &mut his);
    let shown = his.peer(0, &[], 0);
    let replayed = shown.clone().with_lineage(None, new.peer(0, &[], 0).lineage);
    for peer in [shown, replayed.clone(), stolen.peer(0, &[], 0)] {
        for name in ["table", "other"] {
            let mut peer = peer.clone();
            peer.description.tables[0].name = name.to_owned();
            world = later_with(world, &peer, |options| {
                naming(&owner.publisher)(options);
                options.table = Some(name.to_owned());
            });
            assert_refused(&mut world, id, "nothing was asked");
        }
    }
    let mut world = later_with(world, &new.peer(version, &[], 0), naming(&owner.publisher));
    new.check(&mut world, &mut dice, 1);

    // Who has believed him at first use, and names the publisher only then, learns of it.
    let id = replayed.identity().id;
    let mut world = World::of(&replayed);
    his.check(&mut world, &mut dice, 1);
    let mut world = later_with(world, &replayed, naming(&owner.publisher));
    assert_refused(&mut world, id, "names another publisher");
}

/// A lineage explains another publisher only if it is fetched.
#[test]
fn a_lineage_at_the_second_server_excuses_no_other_publisher_than_the_named_one() {
    let owner = Owner::new();
    let (_, _, new) = succeeded(&owner, SchemeId::Dpf);
    let peer = new.peer(0, &[], 0);
    let without = peer.clone().with_lineage(None, Vec::new());
    let options = SessionOptions { publisher: Some(key().id()), ..options(2) };
    let mut world = World::with_options(vec![without, peer.clone()], options);
    assert_refused(&mut world, peer.identity().id, "names another publisher");
}

/// Keys change at one of two servers first. Who has pinned the keys before goes on under them, and
/// moves on when both servers have the change.
#[test]
fn servers_may_take_a_change_of_keys_at_different_moments() {
    for scheme in [SchemeId::Dpf, SchemeId::SinglePass, SchemeId::TapirMerkle] {
        for first in [0, 1] {
            // The publisher hands over to the next key, or names a first one.
            for hands_over in [true, false] {
                let (owner, mut dice) = (Owner::new(), Dice(8));
                let mut table = match hands_over {
                    true => owner.table(scheme),
                    false => without_next_key(&owner.publisher, scheme, "old"),
                };
                let mut world = World::of(&table.peer(0, &[], 0));
                table.check(&mut world, &mut dice, 2);
                table.update(&edits(&mut dice, 2));
                let before = table.peer(1, &[], 0);
                let next = owner.next.id().as_next_key();
                match hands_over {
                    true => table.rotate(Arc::clone(&owner.next)),
                    false => table.rotate_to(Arc::clone(&owner.publisher), Some(next)),
                };
                let ahead = table.peer(2, &[1], 0);
                let mut peers = vec![before.clone(); 2];
                peers[first] = ahead.clone();

                // At first use, nobody knows which of the two tells the truth.
                let id = before.identity().id;
                let mut new = World::with_options(peers.clone(), options(2));
                assert_waits(&mut new);
                // The server that is behind cannot name keys of its own to others either.
                let mut lies = peers.clone();
                lies[1 - first] = before.clone().with_history(Vec::new(), &[], key().id(), 0);
                let mut lied = later(world, &before);
                lied.peers = lies;
                assert_waits(&mut lied);

                let mut world = later(lied, &before);
                world.peers = peers;
                for _ in 0..2 {
                    table.check(&mut world, &mut dice, 2);
                    assert!(world.failure.is_none(), "{scheme}: {:?}", world.failure);
                    let pin = world.state_pins("server 0")[0].1;
                    let epoch = pin.table.epoch.0;
                    assert_eq!((epoch, pin.publisher), (1, Some(owner.publisher.id())));
                    world.now += Duration::from_secs(61);
                }
                world.serve(&ahead);
                world.now += Duration::from_secs(61);
                table.check(&mut world, &mut dice, 2);
                assert!(world.failure.is_none(), "{scheme}: {:?}", world.failure);
                let pin = world.state_pins("server 1")[0].1;
                assert_eq!((pin.table.id, pin.table.epoch.0), (id, 2));
                assert_eq!(pin.publisher, Some(table.publisher()));
                assert_eq!(pin.next_key, Some(next).filter(|_| !hands_over));
            }
        }
    }
}

/// Whether the session failed before it asked anything, only for now.
fn assert_waits(world: &mut World) {
    world.run();
    assert_eq!(world.failed_with(), Blame::Unavailable);
    assert_eq!(world.reason(), Some(Reason::VersionsDiffer));
    assert!(world.queries().is_empty());
}
