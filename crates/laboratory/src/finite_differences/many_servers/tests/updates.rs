//! The points of the next version, copied and patched or computed, are those of a server that
//! begins with it.

use super::*;
use crate::finite_differences::Way;
use privet_schemes::test_tables::changed;
use proptest::prelude::*;

/// Changes some records, in both ways, one version after the other.
fn through_versions(mut world: World, history: &[(u64, u64)], threads: usize) {
    let mut rng = SecretRng::from_fixed_seed([4; 32]);
    for (edits, more) in history {
        let before = world.parameters().clone();
        let shape = before.shape();
        let room = before.words().count() - shape.records();
        let grown = TableShape::new(shape.records() + more.min(&room), shape.record_len()).unwrap();
        let (table, changes) = changed(&world.table, shape, grown, *edits, &mut rng);
        let identity = identity(grown.records(), grown.record_len());
        let parameters = ManyServersParameters::decode(&identity, &before.encode()).unwrap();
        let view = TableView::new(identity, &table).unwrap();
        let fresh = points(&parameters, view);
        let old = world.servers[0].points.to_vec();
        for way in [None, Some(Way::Computed), Some(Way::Patched)] {
            let made = world.servers[0].successor_by(
                way,
                parameters.clone(),
                view.into(),
                &changes,
                threads,
            );
            let made = made.unwrap().expect("the points are in memory");
            assert!(made.points[..] == fresh[..], "{way:?}, {:?}", made.parameters());
            assert!(world.servers[0].points[..] == old[..]);
        }
        world.servers = vec![server(&parameters, &fresh).unwrap()];
        (world.identity, world.table) = (identity, table);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn points_follow_edits(
        field in prop::sample::select(&FIELDS[..]),
        variables in 1u32..8,
        degree in 1u32..8,
        record_len in 1u64..40,
        share in 0.0..1.0f64,
        threads in 1usize..4,
        history in prop::collection::vec((0u64..20, 0u64..20), 1..4),
    ) {
        let variables = variables.min(3000u32.ilog(field));
        let degree = degree.min(variables);
        let setting = Setting { servers: FEWEST_SERVERS, field, variables, degree };
        let records = 1 + ((setting.capacity() - 1) as f64 * share) as u64;
        through_versions(World::of(&(records, record_len, Some(setting))), &history, threads);
    }
}

/// More points than a block has.
#[test]
fn points_follow_edits_across_blocks() {
    for (field, variables, record_len) in [(3, 11, 3), (7, 6, 5), (13, 5, 1)] {
        let setting = Setting { servers: FEWEST_SERVERS, field, variables, degree: 3 };
        through_versions(full(record_len, setting), &[(1, 0), (5, 0)], 2);
    }
}
