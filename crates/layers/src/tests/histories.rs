//! Random histories of changes and lookups, for several schemes, against a map.

use super::world::{Builds, World, delete, key, set};
use crate::KeyChange;
use privet_schemes::SchemeId;
use proptest::prelude::*;

/// There are so few keys that most are changed again and again, and some never exist.
const KEYS: u64 = 24;

#[derive(Clone, Debug)]
enum Step {
    Update(Vec<KeyChange>),
    Lookup(u64),
    /// The client misses what happens from here to the next such step.
    Leave,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let change =
        (0..KEYS, proptest::option::weighted(0.7, any::<u8>())).prop_map(
            |(of, value)| match value {
                Some(byte) => set(of, &vec![byte; byte as usize % 9]),
                None => delete(of),
            },
        );
    let step = prop_oneof![
        8 => proptest::collection::vec(change, 1..4).prop_map(Step::Update),
        4 => (0..KEYS + 4).prop_map(Step::Lookup),
        1 => Just(Step::Leave),
    ];
    proptest::collection::vec(step, 20..60)
}

fn worlds() -> impl Strategy<Value = (u32, u64, Builds)> {
    let builds = [Builds::AtOnce, Builds::OnTheSpot, Builds::Sometimes];
    (
        proptest::sample::select(&[1, 2, 7][..]),
        proptest::sample::select(&[0, 1, 7, 8, 9, 15, 16, 17][..]),
        proptest::sample::select(builds.to_vec()),
    )
}

fn run(scheme: SchemeId, (list, first, builds): (u32, u64, Builds), steps: &[Step]) {
    let mut world = World::new(scheme, list, first, builds);
    let mut away = false;
    for step in steps {
        match step {
            Step::Update(changes) if away => drop(world.update_servers(changes.clone())),
            Step::Update(changes) => world.update(changes.clone()),
            Step::Lookup(of) => {
                if std::mem::take(&mut away) {
                    world.catch_up();
                }
                world.check(&key(*of));
            }
            Step::Leave => away = true,
        }
    }
    world.catch_up();
    for of in 0..KEYS + 2 {
        world.check(&key(of));
    }
}

macro_rules! histories {
    ($($name:ident $scheme:ident $cases:literal;)*) => {$(
        proptest! {
            #![proptest_config(ProptestConfig { cases: $cases, max_shrink_iters: 200, ..ProptestConfig::default() })]

            #[test]
            fn $name(world in worlds(), steps in steps()) {
                run(SchemeId::$scheme, world, &steps);
            }
        }
    )*};
}

histories! {
    of_dpf Dpf 12;
    of_simplepir SimplePir 4;
    of_dummy_subsets DummySubsets 6;
    of_piano Piano 6;
    of_singlepass SinglePass 8;
    of_download Download 40;
    of_tapir TapirMerkle 4;
    of_dummy_subsets_two DummySubsetsTwo 4;
}

/// Every number of entries around the powers of two, and with them every way in which levels fill.
#[test]
fn every_number_of_changes_is_looked_up_right() {
    for list in [1, 2, 7] {
        let mut world = World::new(SchemeId::Dpf, list, 3, Builds::Sometimes);
        for number in 0..70 {
            world.update(vec![set(number, &number.to_le_bytes())]);
            for of in [0, number / 2, number, number + 1] {
                world.check(&key(of));
            }
        }
    }
}

#[test]
fn a_table_that_was_emptied_can_be_filled_again() {
    let mut world = World::new(SchemeId::Dpf, 2, 20, Builds::AtOnce);
    for round in 0..4 {
        for of in 0..20 {
            world.update(vec![delete(of)]);
            world.check(&key(of));
        }
        for again in 0..200 {
            world.update(vec![delete(again % 3)]);
        }
        world.check(&key(4));
        let oldest = world.servers[0].layers().next().unwrap().clone();
        assert_eq!(oldest.entries(), 1, "of all tombstones one is left, in round {round}");
        for of in 0..20 {
            world.update(vec![set(of, b"again")]);
        }
        world.check(&key(19));
    }
}

/// Lookups whose answers come late: the layers that they asked were replaced meanwhile, and other
/// lookups began after them.
#[test]
fn a_lookup_under_way_outlives_what_it_asked() {
    for scheme in [SchemeId::Dpf, SchemeId::DummySubsets, SchemeId::SinglePass, SchemeId::SimplePir]
    {
        let mut world = World::new(scheme, 4, 30, Builds::AtOnce);
        for number in 0..3 {
            world.update(vec![set(number, b"new")]);
        }
        let first = world.send(&key(1));
        let expected = world.oracle.get(&key(1)).cloned();
        let before: Vec<_> = world.client.layers().map(|layer| layer.span).collect();
        for number in 0..4 {
            world.update(vec![set(number, b"newer")]);
        }
        let second = world.send(&key(1));
        assert_ne!(before, world.client.layers().map(|layer| layer.span).collect::<Vec<_>>());
        let (of_first, of_second) = (world.answers(&first), world.answers(&second));
        world.settle(second.lookup, &of_second);
        world.settle(first.lookup, &of_first);
        assert_eq!(world.take(first.lookup), expected, "{scheme}");
        assert_eq!(world.take(second.lookup), Some(b"newer".to_vec()), "{scheme}");
        assert!(world.client.take(first.lookup).is_none(), "a value is taken once");

        let third = world.send(&key(1));
        let asked: Vec<_> = third.iter().map(|query| query.layer).collect();
        for number in 0..40 {
            world.update(vec![set(number, b"newest")]);
        }
        assert!(asked.iter().any(|layer| world.servers[0].layer(*layer).is_none()));
        let in_charge: Vec<_> = world.client.layers().map(|layer| layer.span).collect();
        let gone: Vec<_> = asked.into_iter().filter(|of| !in_charge.contains(of)).collect();
        let kept = |world: &World| world.store.kept.keys().any(|(of, _)| gone.contains(of));
        let hinted = !world.store.kept.is_empty();
        assert_eq!(kept(&world), hinted, "hints are kept while a lookup needs them");
        let answer = |query: crate::LayerQuery<'_>| {
            let layer = world.servers[usize::from(query.role.0)].layer(query.layer)?;
            Some(layer.answer(query.role, query.bytes).unwrap())
        };
        let answers: Vec<_> = third.iter().map(answer).collect();
        let answers: Vec<_> = answers.iter().map(Option::as_deref).collect();
        let World { client, store, .. } = &mut world;
        assert!(client.abandon(third.lookup, &vec![None; answers.len()], store).is_err());
        client.abandon(third.lookup, &answers, store).unwrap();
        assert!(client.abandon(third.lookup, &answers, store).is_err());
        assert!(!kept(&world), "and not any longer");
        world.check(&key(1));
    }
}

/// A lookup is under way at each change, so also at each at which layers are replaced.
#[test]
fn no_lookup_is_lost_when_layers_take_over() {
    for scheme in [SchemeId::Dpf, SchemeId::DummySubsets] {
        let mut world = World::new(scheme, 4, 10, Builds::AtOnce);
        let mut replaced = 0;
        for number in 0..60 {
            let wanted = key(number % 12);
            let expected = world.oracle.get(&wanted).cloned();
            let queries = world.send(&wanted);
            world.update(vec![set(number % 12, &number.to_le_bytes())]);
            let in_charge: Vec<_> = world.client.layers().map(|layer| layer.span).collect();
            replaced += queries.iter().filter(|query| !in_charge.contains(&query.layer)).count();
            let answers = world.answers(&queries);
            world.settle(queries.lookup, &answers);
            assert_eq!(world.take(queries.lookup), expected, "{scheme}, change {number}");
        }
        assert!(replaced > 10, "only {replaced} layers were replaced under a lookup");
    }
}

/// More lookups than a generation of any layer's hints serves.
#[test]
fn hints_are_prepared_anew_before_they_run_out() {
    for scheme in [SchemeId::Piano, SchemeId::DummySubsets, SchemeId::SinglePass] {
        let mut world = World::new(scheme, 3, 9, Builds::AtOnce);
        for number in 0..9 {
            world.update(vec![set(number, b"value")]);
        }
        for round in 0..400 {
            world.check(&key(round % 11));
        }
        assert!(world.store.kept.keys().any(|(_, generation)| *generation > 0), "{scheme}");
    }
}
