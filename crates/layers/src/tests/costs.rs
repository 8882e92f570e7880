//! What changes cost, by counting entries and bytes.

use super::world::{Builds, World, set};
use crate::schedule::smallest_level;
use privet_schemes::SchemeId;

/// Layers have records of different widths. The bound for each entry is the cost in the first,
/// largest layer.
const VALUE: [u8; 32] = [5; 32];

#[test]
fn a_change_costs_a_logarithm_of_what_building_one_entry_does() {
    for (list, first, changes) in [(4, 512, 2048), (16, 1024, 4096)] {
        let mut world = World::new(SchemeId::Download, list, 0, Builds::OnTheSpot);
        world.update((0..first).map(|of| set(of, &VALUE)).collect());
        world.builds = Builds::AtOnce;
        let levels = u64::from(smallest_level(first, list));

        let (mut built, mut most_fetched, mut most_entry) = (0, 0, 0);
        let mut most_layers = 0;
        let before = world.fetched_bytes;
        for number in 0..changes {
            let started = world.fetched_bytes;
            let change = vec![set(number * 31 % first, &VALUE)];
            for announcement in update_counting(&mut world, change, &mut built) {
                world.follow(&announcement);
            }
            world.fetch_due();
            most_fetched = most_fetched.max(world.fetched_bytes - started);
            let server = &world.servers[0];
            most_layers = most_layers.max(server.layers().len() as u64);
            for layer in server.layers() {
                most_entry = most_entry.max(layer.shape().bytes().div_ceil(layer.entries()));
            }
        }
        // The paper's bound: for each level, and for the list, the cost of an entry in a static
        // table.
        assert!(
            built <= changes * (levels + 2),
            "{built} entries built for {changes} changes, {levels} levels"
        );
        // This would notice merges that happen too often.
        assert!(
            built >= changes * levels / 2,
            "{built} entries built for {changes} changes, {levels} levels"
        );
        let fetched = world.fetched_bytes - before;
        assert!(
            fetched <= changes * (levels + 2) * most_entry,
            "{fetched} of {most_entry} an entry"
        );
        // No single change makes a client fetch a whole layer: at most four entries for each level,
        // rounded up.
        let bound = (levels + 2) * (4 * most_entry + 1);
        assert!(most_fetched <= bound, "{most_fetched} bytes for one change, at most {bound}");
        assert!(most_layers <= 2 * (levels + 2), "{most_layers} layers, {levels} levels");
    }
}

/// Changes keys, and counts the entries of the layers that are built.
fn update_counting(
    world: &mut World,
    changes: Vec<crate::KeyChange>,
    built: &mut u64,
) -> Vec<crate::Announcement> {
    world.builds = Builds::OnTheSpot;
    let mut announcements = world.update_servers(changes);
    for build in world.servers[0].builds() {
        let layer = build.run().unwrap();
        *built += layer.0.entries();
        announcements.push(world.servers[0].install(layer));
    }
    announcements
}

/// Layers that are built inside an update are the same as those that are built in time.
#[test]
fn when_something_is_built_makes_no_difference_to_what() {
    let mut worlds = [Builds::AtOnce, Builds::OnTheSpot, Builds::Sometimes]
        .map(|builds| World::new(SchemeId::Download, 4, 21, builds));
    for number in 0..200 {
        for world in &mut worlds {
            world.update(vec![set(number * 7 % 60, &number.to_le_bytes())]);
        }
        let [at_once, others @ ..] = &worlds;
        for other in others {
            assert_eq!(at_once.servers[0].version(), other.servers[0].version());
            assert_eq!(at_once.client.version(), other.client.version());
        }
        assert_eq!(at_once.client.version(), at_once.servers[0].version());
    }
}

/// In one batch or one by one.
#[test]
fn batches_come_to_the_same_as_single_changes() {
    let mut single = World::new(SchemeId::Download, 4, 9, Builds::AtOnce);
    let mut batched = World::new(SchemeId::Download, 4, 9, Builds::AtOnce);
    let changes: Vec<_> = (0..150).map(|of| set(of % 40, &[of as u8])).collect();
    for change in &changes {
        single.update(vec![change.clone()]);
    }
    for batch in changes.chunks(37) {
        batched.update(batch.to_vec());
    }
    assert_eq!(single.servers[0].version(), batched.servers[0].version());
    assert_eq!(single.client.version(), batched.client.version());
}
