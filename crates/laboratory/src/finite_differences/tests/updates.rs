//! The points of the next version, copied and patched or computed, are those of a server that
//! begins with it.

use super::*;
use crate::finite_differences::update::cheaper_way;
use crate::stored_setup::StoredSetup;
use privet_core::TableChanges;
use privet_schemes::contract::Answerer as _;
use privet_schemes::test_tables::changed;

/// Changes some records, in both ways, one version after the other.
fn through_versions(
    parameters: FiniteDifferencesParameters,
    history: &[(u64, u64)],
    threads: usize,
) {
    let mut world = world_of(&parameters);
    let mut rng = SecretRng::from_fixed_seed([4; 32]);
    for (edits, more) in history {
        let before = world.servers[0].parameters().clone();
        let shape = before.shape();
        let room = before.words().count() - shape.records();
        let grown = TableShape::new(shape.records() + more.min(&room), shape.record_len()).unwrap();
        let (mut table, _) = changed(&world.table, shape, grown, *edits, &mut rng);
        if before.one_bit() {
            table.iter_mut().for_each(|byte| *byte = *byte & 1 | before.zero());
        }
        let changes = TableChanges::between((shape, &world.table), (grown, &table)).unwrap();
        let identity = identity(grown.records(), grown.record_len());
        let parameters = FiniteDifferencesParameters::decode(&identity, &before.encode()).unwrap();
        let view = TableView::new(identity, &table).unwrap();
        let setup =
            FiniteDifferencesSetup::new(parameters.clone(), view, Kernels::detect(), 1).unwrap();
        let fresh = setup.finish(&|_| {}).unwrap();
        let old = world.servers[0].points.to_vec();
        for way in [None, Some(Way::Computed), Some(Way::Patched)] {
            let parameters = parameters.clone();
            let made =
                world.servers[0].successor_by(way, parameters, view.into(), &changes, threads);
            let made = made.unwrap().expect("the points are in memory");
            assert!(made.points[..] == fresh.points[..], "{way:?}, {:?}", made.parameters());
            assert!(world.servers[0].points[..] == old[..]);
        }
        (world.identity, world.servers) = (identity, vec![fresh]);
        world.table = table;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn points_follow_edits(
        variables in 2u32..13,
        degree in 0u32..3,
        record_len in prop::sample::select(&[1u64, 2, 3, 8, 32, 64, 100][..]),
        share in 0.0..1.0f64,
        bits in 0..3u8,
        threads in 1usize..4,
        history in prop::collection::vec((0u64..20, 0u64..20), 1..4),
    ) {
        let degree = if 2 * degree < variables / 2 { 2 * degree + 1 } else { 1 };
        let setting = exactly(variables, degree);
        let record_len = if bits > 0 { 1 } else { record_len };
        let records = 1 + ((setting.capacity() - 1) as f64 * share) as u64;
        let shape = TableShape::new(records, record_len).unwrap();
        let parameters = FiniteDifferencesParameters::with(shape, bits > 0, setting).unwrap();
        let parameters = if bits == 2 { parameters.of_digits().unwrap() } else { parameters };
        through_versions(parameters, &history, threads);
    }
}

/// More points than a block has.
#[test]
fn points_follow_edits_across_blocks() {
    for (record_len, one_bit, variables) in [(1, false, 20), (24, false, 16), (1, true, 23)] {
        let setting = exactly(variables, 3);
        let shape = TableShape::new(setting.capacity(), record_len).unwrap();
        let parameters = FiniteDifferencesParameters::with(shape, one_bit, setting).unwrap();
        through_versions(parameters, &[(1, 0), (30, 0)], 2);
    }
}

#[test]
fn many_edits_are_computed_and_few_are_patched() {
    let setting = exactly(18, 7);
    let world = World::of(&(setting.capacity(), 1, (Kind::Bytes, Some(setting))));
    let mut rng = SecretRng::from_fixed_seed([4; 32]);
    let shape = world.identity.shape;
    for (edits, expected) in
        [(0, Way::Patched), (1, Way::Patched), (shape.records(), Way::Computed)]
    {
        let (_, changes) = changed(&world.table, shape, shape, edits, &mut rng);
        assert_eq!(cheaper_way(world.servers[0].parameters(), &changes), expected);
    }
}

#[test]
fn what_has_no_successor() {
    let parameters =
        FiniteDifferencesParameters::with(TableShape::new(100, 1).unwrap(), true, exactly(12, 3))
            .unwrap();
    let world = world_of(&parameters);
    let shape = world.identity.shape;
    // A record that is no single bit.
    let mut table = world.table.clone();
    table[7] = 2;
    let changes = TableChanges::between((shape, &world.table), (shape, &table)).unwrap();
    let view = TableView::new(world.identity, &table).unwrap();
    for way in [Way::Patched, Way::Computed] {
        let made =
            world.servers[0].successor_by(Some(way), parameters.clone(), view.into(), &changes, 1);
        assert_eq!(made.err().unwrap().blame(), Blame::ApiMisuse);
    }
    // Points in a file, which are mapped.
    let path = std::env::temp_dir().join(format!("privet-points-{}", std::process::id()));
    std::fs::write(&path, &world.servers[0].points[..]).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    let mapped = privet_kernels::memory::FileMapping::of(&file, &path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let points = StoredSetup::in_file(mapped, 0).unwrap();
    let server =
        FiniteDifferencesServer::new(parameters.clone(), points, Kernels::detect()).unwrap();
    let (table, changes) =
        changed(&world.table, shape, shape, 0, &mut SecretRng::from_fixed_seed([4; 32]));
    let view = TableView::new(world.identity, &table).unwrap();
    assert!(server.successor(parameters, view.into(), &changes, 1).unwrap().is_none());
}
