//! Edits of the table: the hints follow, and every record is right afterwards.

use super::super::change::Change;
use super::*;
use crate::contract::{Endless as _, Updatable as _};
use privet_core::{Blame, Edit, TableDelta};
use proptest::prelude::*;

impl World {
    /// A delta of some random edits, of which several may concern one record, and a table that has seen them.
    fn edit(&mut self, count: u64) -> TableDelta {
        let (shape, len) = (self.parameters.shape(), self.parameters.record_len());
        let mut edits = Vec::new();
        for _ in 0..count {
            let index =
                self.rng.below(shape.records().min(20)) * shape.records() / shape.records().min(20);
            let mut difference = vec![0; len];
            self.rng.fill(&mut difference);
            let record = &mut self.records[index as usize * len..][..len];
            record.iter_mut().zip(&difference).for_each(|(byte, change)| *byte ^= change);
            edits.push(Edit { index, difference });
        }
        self.server = server(&self.parameters, &self.records);
        TableDelta::new(shape, edits).unwrap()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Lookups and edits in any order, the state written down and read back now and then; and a second client that only has the journal.
    #[test]
    fn every_record_is_right_after_any_edits(
        records in 1u64..=60,
        record_len in 1u64..=20,
        partition_records in 2u64..=12,
        seed in any::<u8>(),
        steps in prop::collection::vec(0u8..4, 1..30),
    ) {
        let mut world = World::with(cut(records, record_len, partition_records));
        world.rng = SecretRng::from_fixed_seed([seed; 32]);
        let generation = world.generation();
        let mut client = world.load(&generation);
        let mut journal = Vec::new();
        for step in steps {
            if step == 0 {
                let count = world.rng.below(6);
                let delta = world.edit(count);
                journal.push(client.apply_delta(&delta).unwrap());
            } else {
                let index = world.rng.below(records);
                let reserved = world.reserve(&mut client, index).unwrap();
                journal.push(reserved.change.clone());
                journal.push(world.settle(&mut client, &reserved));
                let record = client.take_record(reserved.id).unwrap().unwrap();
                prop_assert_eq!(&record[..], world.record(index));
            }
            world.assert_hints_fit(&client);
        }
        let mut replayed = world.load(&generation);
        journal.iter().for_each(|change| replayed.apply(change).unwrap());
        prop_assert_eq!(&replayed.generation.hints[..], &client.generation.hints[..]);
        for index in 0..records.min(30) {
            prop_assert_eq!(&world.get(&mut replayed, index)[..], world.record(index));
        }
    }
}

#[test]
fn edits_wait_for_open_lookups_and_fit_their_table() {
    let mut world = World::with(cut(100, 4, 10));
    let mut client = world.client();
    let delta = world.edit(3);
    let change = client.delta_change(&delta).unwrap();
    let first = world.reserve(&mut client, 7).unwrap();
    let second = world.reserve(&mut client, 8).unwrap();
    // Neither with both open, nor with an answer that waits for another.
    for _ in 0..2 {
        assert_eq!(client.delta_change(&delta).unwrap_err().blame(), Blame::ApiMisuse);
        assert_eq!(client.apply(&change).unwrap_err().blame(), Blame::Corrupted);
        if client.open().len() == 2 {
            world.settle(&mut client, &second);
        }
    }
    world.settle(&mut client, &first);
    client.apply_delta(&delta).unwrap();
    let other = TableShape::new(100, 5).unwrap();
    let of_another = TableDelta::new(other, Vec::new()).unwrap();
    assert_eq!(client.delta_change(&of_another).unwrap_err().blame(), Blame::ApiMisuse);

    for len in 0..change.len() {
        assert_eq!(client.apply(&change[..len]).unwrap_err().blame(), Blame::Corrupted, "{len}");
    }
    // The number of edits, and an edit of a record beyond the table.
    for (at, byte) in [(17, 4), (17, 2), (20, 0xff), (25, 100)] {
        let mut wrong = change.to_vec();
        wrong[at] = byte;
        assert_eq!(client.apply(&wrong).unwrap_err().blame(), Blame::Corrupted, "{at}");
    }
}

#[test]
fn an_edit_does_not_use_up_a_query_and_is_in_what_is_written_down() {
    let mut world = World::with(cut(30, 2, 5));
    let mut client = world.client();
    let total = client.supply().total;
    for round in 0..total {
        world.get(&mut client, round % 30);
    }
    let delta = world.edit(10);
    let change = client.apply_delta(&delta).unwrap();
    assert!(
        matches!(Change::decode(&world.parameters, &change), Ok(Change::Edits(same)) if same == delta)
    );
    assert_eq!(client.supply().used, total);
    let mut next = world.load(&client.condense().unwrap());
    for index in 0..30 {
        assert_eq!(&world.get(&mut next, index)[..], world.record(index));
    }
}
