//! Changes of state: those of the journal, and those of the table.

use super::*;

pub fn changes_that_do_not_fit_are_refused_and_change_nothing<S: Hinted>() {
    let mut world = World::<S>::new(500, 3);
    let mut client = world.client();
    let reserved = world.reserve(&mut client, 5).unwrap();
    let settled = client.settle(reserved.id, &world.answers(&reserved.queries)).unwrap();
    let next = world.index(6);
    let good = client.reserve(&next, &mut world.rng).unwrap().change;
    let corrupted = |client: &mut S::Client, change: &[u8]| {
        let before = whole::<S>(client);
        let refusal = client.apply(change).expect_err("a change that does not fit");
        assert_eq!(refusal.blame(), Blame::Corrupted, "{change:?}");
        assert!(before == whole::<S>(client), "{change:?}");
    };
    for wrong in [&reserved.change[..], &[], &[9; 12], &[9; 49]] {
        corrupted(&mut client, wrong);
    }
    for change in [&good, &settled] {
        let all = change.len() <= 200;
        for len in (0..change.len()).filter(|len| all || len % 7 == 0 || len + 1 == change.len()) {
            corrupted(&mut client, &change[..len]);
        }
        corrupted(&mut client, &[&change[..], &[0]].concat());
    }
    for wrong in S::wrong_changes(&world, &reserved.change, &good) {
        corrupted(&mut client, &wrong);
    }
    client.apply(&settled).unwrap();
    corrupted(&mut client, &settled);
    client.apply(&good).unwrap();
}

/// Lookups and edits in any order, and then every record; and a second client that has only the
/// journal.
pub fn lookups_and_edits_in_any_order<S: Hinted>() {
    let tables = (prop_oneof![1u64..=60, 1u64..=1_000], 1u64..=20);
    let steps = prop::collection::vec(0u8..4, 1..40);
    let config = ProptestConfig::with_cases(40);
    proptest!(config, |(table in tables, seed: u8, steps in steps)| {
        let mut world = World::<S>::new(table.0, table.1);
        world.rng = SecretRng::from_fixed_seed([seed; 32]);
        let generation = world.generation();
        let mut client = world.load(&generation);
        let mut journal: Vec<Bytes> = Vec::new();
        for step in steps {
            if step == 0 {
                let count = world.rng.below(6);
                let delta = world.edit(count);
                let supply = client.supply();
                journal.push(follow(&mut client, &delta).unwrap());
                prop_assert_eq!(client.supply(), supply, "an edit uses nothing up");
            } else if client.supply().left() > 0 {
                let index = world.rng.below(table.0);
                let reserved = world.reserve(&mut client, index).unwrap();
                journal.push(reserved.change.clone());
                journal.push(world.settle(&mut client, &reserved));
                let record = client.take_record(reserved.id).unwrap();
                world.assert_right(record, index);
            }
            S::check(&world, &client);
        }
        let mut replayed = world.load(&generation);
        journal.iter().for_each(|change| replayed.apply(change).unwrap());
        prop_assert!(whole::<S>(&replayed) == whole::<S>(&client));
        for index in (0..table.0.min(60)).cycle().take(replayed.supply().left().min(120) as usize) {
            let record = world.get(&mut replayed, index);
            world.assert_right(record, index);
        }
    });
}

pub fn edits_wait_for_answers_and_fit_their_table<S: Hinted>() {
    let mut world = World::<S>::new(200, 4);
    let mut client = world.client();
    let delta = world.edit(3);
    let change = client.delta_change(&delta).unwrap();
    let (first, second) =
        (world.reserve(&mut client, 7).unwrap(), world.reserve(&mut client, 8).unwrap());
    // An edit must wait while both are open, and while one is.
    for waits in [&second, &first] {
        assert_eq!(client.delta_change(&delta).unwrap_err().blame(), Blame::ApiMisuse);
        assert_eq!(follow(&mut client, &delta).unwrap_err().blame(), Blame::ApiMisuse);
        let before = whole::<S>(&client);
        assert_eq!(client.apply(&change).unwrap_err().blame(), S::EDIT_WHILE_OPEN);
        assert!(before == whole::<S>(&client));
        world.settle(&mut client, waits);
    }
    follow(&mut client, &delta).unwrap();
    for (records, record_len) in [(201, 4), (199, 4), (200, 5)] {
        let other = TableShape::new(records, record_len).unwrap();
        let of_another = TableDelta::new(other, Vec::new()).unwrap();
        assert_eq!(client.delta_change(&of_another).unwrap_err().blame(), Blame::ApiMisuse);
    }
    for len in 0..change.len() {
        let refusal = client.apply(&change[..len]).unwrap_err();
        assert_eq!(refusal.blame(), Blame::Corrupted, "{len}");
    }
}
