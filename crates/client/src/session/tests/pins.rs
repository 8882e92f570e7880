//! Servers that rename their tables: a pin holds under any name, and a caller who names no table
//! gets the one that was used last, or none.

use super::living::Living;
use super::world::*;
use crate::session::pins::pin_of;
use crate::session::*;
use crate::state::{Pin, PinElsewhere};
use privet_core::{Epoch, Reason, TableIdentity};
use privet_schemes::SchemeId;
use privet_table::key_map::KeyMapKind;
use privet_table::update_log::PublisherId;
use privet_wire::{ServerDescription, TableDescription, UpdatesDescription};

const ID: u8 = 1;
const EPOCH: u64 = 5;
const PUBLISHER: [u8; 32] = [7; 32];

/// The scheme that serves tables here, and another, for so many servers.
fn schemes(servers: usize) -> [SchemeId; 2] {
    match servers {
        1 => [SchemeId::SimplePir, SchemeId::Download],
        _ => [SchemeId::Dpf, SchemeId::ApirDpf],
    }
}

/// A table in version [`EPOCH`], served by `scheme` under `name`.
fn peer(scheme: SchemeId, name: &str, id: u8) -> Peer {
    let peer = Peer::indexed_by(scheme, 20, 4, id).with_identity(|identity| {
        identity.epoch = Epoch(EPOCH);
    });
    called(peer, name, PUBLISHER)
}

/// The same server, whose table has another name and publisher.
fn called(peer: Peer, name: &str, publisher: [u8; 32]) -> Peer {
    peer.describing(|table| renamed(table, name, publisher))
}

fn renamed(table: TableDescription, name: &str, publisher: [u8; 32]) -> TableDescription {
    let updates = table.updates.unwrap_or(UpdatesDescription {
        publisher,
        first_epoch: Epoch(0),
        next_key: None,
        lineage: None,
    });
    let earlier = table.earlier.into_iter().map(|version| {
        TableDescription::new(name, version.identity, version.layout, version.schemes).unwrap()
    });
    let updates = UpdatesDescription { publisher, ..updates };
    TableDescription::new(name, table.identity, table.layout, table.schemes)
        .unwrap()
        .with_versions(Some(updates), earlier.collect())
        .unwrap()
}

/// A session with `former`'s state, to which every server shows `peer`; `change` sets its options.
fn shown(former: World, peer: &Peer, change: impl FnOnce(&mut SessionOptions)) -> World {
    let servers = former.peers.len();
    let mut options = options(servers);
    change(&mut options);
    let mut world = World::after(former, vec![peer.clone(); servers], options);
    world.run();
    world
}

/// A client that has used the table once.
fn having_used(peer: &Peer) -> World {
    let mut world = World::of(peer);
    world.run();
    assert!(world.failure.is_none(), "{:?}", world.failure);
    world
}

fn named(name: &'static str) -> impl FnOnce(&mut SessionOptions) {
    move |options| options.table = Some(name.to_owned())
}

fn accepting(options: &mut SessionOptions) {
    options.accept_new_table = true;
}

fn as_ever(_: &mut SessionOptions) {}

/// What is pinned for every server: names, ids and versions.
fn pinned(world: &mut World) -> Vec<Vec<(String, u8, u64)>> {
    let servers = world.peers.len();
    let of_server = |server| {
        let pins = world.state_pins(&format!("server {server}")).into_iter();
        pins.map(|(name, pin)| (name, pin.table.id.0[0], pin.table.epoch.0)).collect()
    };
    (0..servers).map(of_server).collect()
}

/// The error of a session that asked nothing and left all pins as they were.
fn refusal(world: &mut World, pins: &[(&str, u8, u64)]) -> String {
    assert_eq!(world.failed_with(), Blame::Integrity);
    assert!(world.asked_nothing(), "{:?}", world.trace());
    let pins: Vec<_> =
        pins.iter().map(|(name, id, epoch)| ((*name).to_owned(), *id, *epoch)).collect();
    assert_eq!(pinned(world), vec![pins; world.peers.len()]);
    world.failure.as_ref().unwrap().message().to_owned()
}

/// Faults of a table that comes under a new name, and the error for each.
fn lies(servers: usize) -> Vec<(&'static str, Peer)> {
    let [scheme, other_scheme] = schemes(servers);
    let changed = |change: fn(&mut TableIdentity)| {
        called(peer(scheme, "old", ID).with_identity(change), "new", PUBLISHER)
    };
    vec![
        ("went back from version 5 to version 4", changed(|identity| identity.epoch = Epoch(4))),
        ("has other contents than before", changed(|identity| identity.digest.0[0] ^= 1)),
        ("with another scheme", peer(other_scheme, "new", ID)),
        ("is published by", called(peer(scheme, "old", ID), "new", [8; 32])),
    ]
}

#[test]
fn a_renamed_table_is_refused_as_it_would_be_under_its_own_name() {
    for servers in [1, 2] {
        let [scheme, _] = schemes(servers);
        let known = peer(scheme, "old", ID);
        for (what, lie) in lies(servers) {
            // Also if the caller gives the new name: that is no reason to believe more.
            for name in [None, Some("new")] {
                let told = |options: &mut SessionOptions| options.table = name.map(str::to_owned);
                let mut world = shown(having_used(&known), &lie, told);
                let message = refusal(&mut world, &[("old", ID, EPOCH)]);
                assert!(message.contains(what), "{servers} servers: {message}");
                let differs = what == "is published by";
                let reason = if differs { Reason::PublisherDiffers } else { Reason::TableReplaced };
                assert_eq!(world.reason(), Some(reason), "{message}");
            }
        }
    }
}

#[test]
fn another_table_under_another_name_is_refused_until_it_is_named() {
    for servers in [1, 2] {
        let [scheme, _] = schemes(servers);
        let known = peer(scheme, "old", ID);
        let other = peer(scheme, "new", 2);
        let mut world = shown(having_used(&known), &other, as_ever);
        let message = refusal(&mut world, &[("old", ID, EPOCH)]);
        assert!(message.contains("another table by its id"), "{message}");
        assert!(message.ends_with("If new is the table that you want, name it"), "{message}");
        assert_eq!(world.reason(), Some(Reason::TableRenamed));

        let mut world = shown(world, &other, named("new"));
        assert!(world.failure.is_none(), "{:?}", world.failure);
        let both = vec![("old".to_owned(), ID, EPOCH), ("new".to_owned(), 2, EPOCH)];
        assert_eq!(pinned(&mut world), vec![both; servers]);
        // That table is now the one that was used last, and the way back must be named as well.
        let world = shown(world, &other, as_ever);
        assert!(world.failure.is_none(), "{:?}", world.failure);
        let mut world = shown(world, &known, as_ever);
        let message = refusal(&mut world, &[("old", ID, EPOCH), ("new", 2, EPOCH)]);
        assert!(message.ends_with("If old is the table that you want, name it"), "{message}");
        let world = shown(world, &known, named("old"));
        assert!(world.failure.is_none(), "{:?}", world.failure);
        let world = shown(world, &known, as_ever);
        assert!(world.failure.is_none(), "{:?}", world.failure);
    }
}

#[test]
fn the_same_table_under_another_name_is_refused_until_it_is_named() {
    for servers in [1, 2] {
        let [scheme, _] = schemes(servers);
        let (known, renamed) = (peer(scheme, "old", ID), peer(scheme, "new", ID));
        let mut world = shown(having_used(&known), &renamed, as_ever);
        let message = refusal(&mut world, &[("old", ID, EPOCH)]);
        assert!(message.contains("the same table by its id"), "{message}");
        let world = shown(world, &renamed, named("new"));
        assert!(world.failure.is_none(), "{:?}", world.failure);
        let world = shown(world, &renamed, as_ever);
        assert!(world.failure.is_none(), "{:?}", world.failure);
        // Pins under the former name count as before.
        for (what, lie) in lies(servers) {
            let publisher = lie.description.tables[0].updates.unwrap().publisher;
            let lie = called(lie, "third", publisher);
            let mut world = shown(having_used(&known), &renamed, named("new"));
            world = shown(world, &lie, named("third"));
            let message = refusal(&mut world, &[("old", ID, EPOCH), ("new", ID, EPOCH)]);
            assert!(message.contains(what), "{message}");
        }
    }
}

#[test]
fn a_server_with_several_tables_is_used_by_name_without_another_word() {
    for servers in [1, 2] {
        let [scheme, _] = schemes(servers);
        let tables: Vec<_> = ["one", "two", "three"]
            .into_iter()
            .zip(1..)
            .map(|(name, id)| peer(scheme, name, id).description.tables[0].clone())
            .collect();
        let many = ServerDescription::new("", tables).unwrap();
        let mut world = World::of(&peer(scheme, "one", 1));
        for (name, id) in
            [("one", 1), ("two", 2), ("three", 3), ("one", 1), ("three", 3), ("two", 2)]
        {
            // A server in memory has the parts of one table.
            let mut server = peer(scheme, name, id);
            server.description = many.clone();
            world = shown(world, &server, named(name));
            assert!(world.failure.is_none(), "{name}: {:?}", world.failure);
            assert_eq!(world.session.table().unwrap().name, name);
        }
        assert_eq!(pinned(&mut world)[0].len(), 3);
        assert_eq!(pinned(&mut world)[0][2].0, "two", "the last is the one that was used last");
        // If only one of the used tables is left, it is not taken for any other.
        let left = peer(scheme, "one", 1);
        let pins = [("one", 1, EPOCH), ("three", 3, EPOCH), ("two", 2, EPOCH)];
        let mut world = shown(world, &left, as_ever);
        refusal(&mut world, &pins);
        assert_eq!(world.reason(), Some(Reason::TableRenamed));
        assert!(shown(world, &left, named("one")).failure.is_none());
    }
}

#[test]
fn what_is_accepted_holds_for_every_name_that_the_table_has() {
    for servers in [1, 2] {
        let [scheme, _] = schemes(servers);
        let known = peer(scheme, "old", ID);
        for (what, lie) in lies(servers) {
            let accepted = shown(having_used(&known), &lie, accepting);
            assert!(accepted.failure.is_none(), "{what}: {:?}", accepted.failure);
            let mut next = shown(accepted, &lie, as_ever);
            assert!(next.failure.is_none(), "{what}: {:?}", next.failure);
            let version = lie.identity().epoch.0;
            let names = ["old", "new"].map(|name| (name.to_owned(), ID, version));
            assert_eq!(pinned(&mut next), vec![names.to_vec(); servers], "{what}");
            // The pin that was given up does not come back by itself, under any name.
            for back in [known.clone(), called(known.clone(), "third", PUBLISHER)] {
                let again = shown(next, &back, as_ever);
                assert_eq!(again.failed_with(), Blame::Integrity, "{what}");
                next = again;
            }
        }
    }
}

#[test]
fn pins_of_one_server_alone_count_under_another_name() {
    for (what, lie) in lies(2) {
        for server in [0, 1] {
            let known = having_used(&peer(SchemeId::Dpf, "old", ID));
            for name in [None, Some("new")] {
                let table = known.session.table().unwrap();
                let pin = pin_of(table, Some(PublisherId(PUBLISHER).into()), None);
                let mut options = options(2);
                options.pins = vec![KnownPin { server, name: "old".to_owned(), pin }];
                options.table = name.map(str::to_owned);
                let mut world = World::with_options(vec![lie.clone(); 2], options);
                world.run();
                assert_eq!(world.failed_with(), Blame::Integrity, "{what}");
                assert!(world.asked_nothing());
            }
        }
    }
}

/// A table that is followed under a new name is followed under all of them.
#[test]
fn a_renamed_table_is_followed_and_all_its_names_move_on() {
    for scheme in [SchemeId::SimplePir, SchemeId::TapirMerkle] {
        let mut dice = Dice(3);
        let mut living = Living::new(scheme, KeyMapKind::Buckets, 60);
        let publisher = living.publisher().0;
        let first = called(living.peer(0, &[], 0), "old", publisher);
        let mut world = having_used(&first);
        living.check(&mut world, &mut dice, 2);
        for version in 1..=4 {
            let edit = (format!("key-{version}").into_bytes(), Some(b"changed".to_vec()));
            living.update(&[edit]);
        }
        let renamed = |version, since| called(living.peer(version, &[], since), "new", publisher);
        let mut world = shown(world, &renamed(2, 0), named("new"));
        assert!(world.failure.is_none(), "{scheme}: {:?}", world.failure);
        for server in pinned(&mut world) {
            let versions: Vec<_> =
                server.iter().map(|(name, _, epoch)| (&name[..], *epoch)).collect();
            assert_eq!(versions, [("old", 2), ("new", 2)], "{scheme}");
        }
        // The epochs before version 2 are gone, and nothing needs them any more.
        let mut world = shown(world, &renamed(4, 2), as_ever);
        assert!(world.failure.is_none(), "{scheme}: {:?}", world.failure);
        living.check(&mut world, &mut dice, 2);
        // Back to an earlier version: under neither name.
        for (name, peer) in [("old", first), ("new", renamed(3, 0))] {
            let back = shown(world, &peer, named(name));
            assert_eq!(back.failed_with(), Blame::Integrity, "{scheme}");
            assert!(back.failure.as_ref().unwrap().message().contains("went back"), "{scheme}");
            world = back;
        }
    }
}

/// Two sessions begin at once, and the servers show them different tables. The pin that comes
/// second is refused, and its session asks nothing.
#[test]
fn a_pin_that_contradicts_another_processs_ends_the_session_before_anything_is_asked() {
    for scheme in [SchemeId::SimplePir, SchemeId::Download, SchemeId::Dpf, SchemeId::SinglePass] {
        let mut world = World::of(&peer(scheme, "table", ID));
        let lookups = world.look_up(0..3);
        loop {
            while let Some(output) = world.session.poll(world.now) {
                match output {
                    Output::Persist(Persist::Pin { .. }) => {
                        let error = Error::integrity("another process has used another table");
                        world.session.handle_storage_failure(error);
                    }
                    other => world.carry_out(other),
                }
            }
            if !world.step() {
                break;
            }
        }
        assert_eq!(world.failed_with(), Blame::Integrity, "{scheme}");
        assert!(world.trace().iter().all(|sent| sent.1 != "answer"), "{scheme}");
        assert!(lookups.iter().all(|lookup| world.outcomes[lookup].is_err()), "{scheme}");
    }
}

/// At first use of an address, pins of the table at another address count.
#[test]
fn a_table_that_was_pinned_elsewhere_is_not_contradicted_at_first_use() {
    for servers in [1, 2] {
        let [scheme, other_scheme] = schemes(servers);
        let known = peer(scheme, "old", ID);
        let pin = {
            let world = having_used(&known);
            pin_of(world.session.table().unwrap(), Some(PublisherId(PUBLISHER).into()), None)
        };
        let elsewhere = |pin: Pin| {
            move |options: &mut SessionOptions| {
                let (server, name) = ("http://elsewhere:7700".to_owned(), "there".to_owned());
                options.pins_elsewhere = vec![PinElsewhere { server, name, pin }];
            }
        };
        let nothing = || World::of(&known);
        let first = |peer: &Peer| shown(nothing(), peer, elsewhere(pin));
        for (what, lie) in lies(servers) {
            let mut world = first(&lie);
            if what.contains("scheme") {
                assert!(world.failure.is_none(), "addresses may serve by different schemes");
                continue;
            }
            let message = refusal(&mut world, &[]);
            assert!(message.contains("as table there of http://elsewhere:7700"), "{message}");
            assert_eq!(world.reason(), Some(Reason::ContradictedElsewhere), "{message}");
            // A user who believes this one accepts it once; from then on it is compared with
            // itself.
            let accepted = shown(world, &lie, |options| {
                elsewhere(pin)(options);
                options.accept_new_table = true;
            });
            assert!(accepted.failure.is_none(), "{what}: {:?}", accepted.failure);
            let next = shown(accepted, &lie, elsewhere(pin));
            assert!(next.failure.is_none(), "{what}: {:?}", next.failure);
        }
        let later = known.clone().with_identity(|identity| identity.epoch = Epoch(6));
        // A version that is new here is compared as well, whatever was used here before; so is one
        // without a publisher.
        let mut fork = pin;
        fork.table.epoch = Epoch(6);
        fork.table.digest.0[0] ^= 1;
        let announced = called(later.clone(), "old", PUBLISHER);
        let mut world = shown(having_used(&known), &announced, elsewhere(fork));
        let message = refusal(&mut world, &[("old", ID, EPOCH)]);
        assert!(message.contains("has other contents of version 6 than there"), "{message}");
        let mut world = shown(nothing(), &later, elsewhere(pin));
        assert!(refusal(&mut world, &[]).contains("without a publisher"));
        for fine in [
            known.clone(),
            called(later, "new", PUBLISHER),
            peer(other_scheme, "any", ID),
            peer(scheme, "old", 2),
        ] {
            let world = first(&fine);
            assert!(world.failure.is_none(), "{:?}", world.failure);
        }
    }
}
