//! A server of the next version is the same as a fresh one.

use super::*;
use crate::contract::Answerer as _;
use crate::test_tables::changed;
use privet_core::{TableChanges, TableShape};

fn fresh(parameters: &SimplePirPackedParameters, table: TableView<'_>) -> SimplePirPackedServer {
    Tested::setup(parameters, &Layout::default(), table, Kernels::detect(), 2).unwrap().0
}

/// What a server keeps that computes it.
fn kept(parameters: &SimplePirPackedParameters, table: TableView<'_>) -> Vec<u8> {
    let setup = SimplePirPackedSetup::new(parameters.clone(), table, Kernels::detect(), 2).unwrap();
    setup.precompute(&|_| {}).unwrap().kept.as_bytes().into_owned()
}

/// Records of 9 bytes in columns of 20: 180 rows, three blocks.
const LAYOUT: Layout =
    Layout { degree: DEGREE, masks: Masks::Downloaded, records_per_column: Some(20) };

/// The part of the masks that belongs to a block.
fn mask(server: &SimplePirPackedServer, block: usize) -> &[u8] {
    let len = server.parameters().form().mask_bytes() as usize;
    &server.announced().unwrap()[block * len..][..len]
}

#[test]
fn touched_blocks_are_packed_again_and_the_others_stay() {
    let world = World::of(&(130, 9, LAYOUT));
    let (shape, before) = (world.identity.shape, &world.servers[0]);
    assert_eq!(before.parameters().blocks(), 3);
    assert_eq!(before.announced().unwrap(), world.hint);
    // The records of a column, and the blocks that they lie in.
    for (edits, blocks) in [
        (vec![(0, 0)], [true, false, false]),
        (vec![(7, 0)], [true, false, false]),
        (vec![(7, 0), (7, 1)], [true, true, false]),
        (vec![(129, 0), (120, 4)], [true, true, false]),
        (vec![(59, 8)], [false, false, true]),
        (vec![], [false; 3]),
    ] {
        let mut next = world.table.clone();
        edits.iter().for_each(|(record, byte)| next[record * 9 + byte] ^= 0x55);
        let changes = TableChanges::between((shape, &world.table), (shape, &next)).unwrap();
        let view = TableView::new(world.identity, &next).unwrap();
        let parameters = before.parameters().clone();
        let (after, commitments) =
            before.successor(parameters.clone(), view.into(), &changes, 2).unwrap().unwrap();
        assert!(commitments.is_empty());
        let fresh = fresh(&parameters, view);
        assert!(after.held() == fresh.held(), "{edits:?}");
        assert!(after.kept().unwrap().unwrap().as_bytes() == kept(&parameters, view), "{edits:?}");
        let changed = [0, 1, 2].map(|block| mask(before, block) != mask(&after, block));
        assert_eq!(changed, blocks, "{edits:?}");
    }
}

/// Every edit changes a mask, and so what clients download.
#[test]
fn masks_on_demand_follow_edits() {
    // Units of seven records; and records that are longer than a block.
    for (records, record_len, per_column) in [(130, 9, 20), (20, 130, 4)] {
        let layout = LAYOUT.of_column(per_column).on_demand();
        let world = World::of(&(records, record_len, layout));
        let (shape, mut table) = (world.identity.shape, world.table.clone());
        let view = TableView::new(world.identity, &world.table).unwrap();
        let mut before = fresh(world.parameters(), view);
        assert_eq!(before.announced().unwrap(), world.hint);
        for edits in [
            vec![(0, 0)],
            vec![(7, 0), (records - 1, record_len - 1)],
            (0..records).map(|record| (record, 3)).collect(),
            vec![],
        ] {
            let mut next = table.clone();
            for (record, byte) in &edits {
                next[(record * record_len + byte) as usize] ^= 0x55;
            }
            let changes = TableChanges::between((shape, &table), (shape, &next)).unwrap();
            let view = TableView::new(world.identity, &next).unwrap();
            let parameters = before.parameters().clone();
            let (after, commitments) =
                before.successor(parameters.clone(), view.into(), &changes, 2).unwrap().unwrap();
            assert!(commitments.is_empty());
            let fresh = fresh(&parameters, view);
            assert!(after.held() == fresh.held(), "{edits:?}");
            assert!(
                after.kept().unwrap().unwrap().as_bytes() == kept(&parameters, view),
                "{edits:?}"
            );
            assert_eq!(after.announced(), fresh.announced());
            assert_eq!(before.announced() == after.announced(), edits.is_empty());
            // The next is the successor of a successor.
            (before, table) = (after, next);
        }
    }
}

#[test]
fn a_server_does_not_follow_to_the_other_kind_of_masks() {
    for (from, to) in [(LAYOUT, LAYOUT.on_demand()), (LAYOUT.on_demand(), LAYOUT)] {
        let world = World::of(&(130, 9, from));
        let view = TableView::new(world.identity, &world.table).unwrap();
        let parameters = Tested::parameters(&world.identity, &to).unwrap();
        let changes = TableChanges::none(world.identity.shape);
        assert!(
            world.servers[0].successor(parameters, view.into(), &changes, 1).unwrap().is_none()
        );
    }
}

#[test]
fn a_table_grows_within_its_last_column_and_no_further() {
    for layout in [LAYOUT, LAYOUT.on_demand()] {
        check_growth(layout);
    }
}

fn check_growth(layout: Layout) {
    let world = World::of(&(130, 9, layout));
    let mut rng = SecretRng::from_fixed_seed([1; 32]);
    for (more, follows) in [(3, true), (10, true), (11, false)] {
        let shape = TableShape::new(130 + more, 9).unwrap();
        let (next, changes) = changed(&world.table, world.identity.shape, shape, 4, &mut rng);
        let identity = TableIdentity { shape, ..world.identity };
        let view = TableView::new(identity, &next).unwrap();
        let parameters = Tested::parameters(&identity, &layout).unwrap();
        let made =
            world.servers[0].successor(parameters.clone(), view.into(), &changes, 1).unwrap();
        assert_eq!(made.is_some(), follows, "{more} more records");
        if let Some((after, _)) = made {
            assert!(after.held() == fresh(&parameters, view).held());
        }
    }
}

#[test]
fn changes_of_another_table_are_refused() {
    let world = World::new(130, 9);
    let other = TableShape::new(131, 9).unwrap();
    let view = TableView::new(world.identity, &world.table).unwrap();
    let parameters = world.parameters().clone();
    let refused =
        world.servers[0].successor(parameters, view.into(), &TableChanges::none(other), 1).err();
    assert_eq!(refused.unwrap().blame(), Blame::ApiMisuse);
}
