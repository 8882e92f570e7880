//! Queries that are made ahead.

use super::world::*;
use crate::session::*;
use privet_core::SecretRng;
use privet_schemes::SchemeId;
use privet_schemes::registry::{Blank, BlankMaker};
use std::sync::{Arc, Mutex};

/// A shelf that has a blank ready every second time.
#[derive(Default)]
struct TestShelf(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    maker: Option<BlankMaker>,
    /// Whether each stocked maker was one.
    stocked: Vec<bool>,
    /// Whether each asked-for blank was ready.
    taken: Vec<bool>,
}

impl Shelf for TestShelf {
    fn stock(&self, maker: Option<BlankMaker>) {
        let mut seen = self.0.lock().unwrap();
        seen.stocked.push(maker.is_some());
        seen.maker = maker;
    }

    fn take(&self) -> Option<Blank> {
        let mut seen = self.0.lock().unwrap();
        let is_ready = seen.taken.len() % 2 == 1;
        seen.taken.push(is_ready);
        let maker = seen.maker.as_ref().expect("only blanks of a maker are asked for");
        is_ready.then(|| maker(&mut SecretRng::from_os().unwrap()).unwrap())
    }
}

fn world(scheme: SchemeId) -> (World, Arc<TestShelf>) {
    let shelf = Arc::new(TestShelf::default());
    let given = shelf.clone();
    let peer = Peer::keyed_by(scheme, 20);
    let mut world = World::with(&peer, |options| options.shelf = Some(given));
    world.run();
    (world, shelf)
}

/// What is there, what is not, and the same again: each query takes one blank, and finds what one
/// that is made at once finds.
#[test]
fn each_query_takes_one_blank_whatever_is_looked_up() {
    let (mut world, shelf) = world(SchemeId::SimplePir);
    let (key, value) = pair(7);
    for number in 1..=6 {
        match number % 3 {
            0 => assert!(world.get(Target::key(b"nobody")).unwrap().is_none()),
            _ => assert_eq!(world.found(Target::key(&key)), value),
        }
        assert_eq!(shelf.0.lock().unwrap().taken.len(), world.queries().len());
    }
    let seen = shelf.0.lock().unwrap();
    assert_eq!(seen.stocked, [true]);
    assert!(seen.taken.contains(&true) && seen.taken.contains(&false));
    // No blank served twice: LWE queries with equal secrets would differ in two words at most.
    let queries = world.queries_to(0);
    for (place, query) in queries.iter().enumerate() {
        for other in &queries[..place] {
            let differing = query.chunks(4).zip(other.chunks(4)).filter(|(one, two)| one != two);
            assert!(differing.count() > 2 || query.len() < 12, "{place}");
        }
    }
}

#[test]
fn schemes_whose_queries_need_the_index_from_the_start_take_none() {
    let (mut world, shelf) = world(SchemeId::Dpf);
    let (key, value) = pair(3);
    assert_eq!(world.found(Target::key(&key)), value);
    let seen = shelf.0.lock().unwrap();
    assert_eq!((&seen.stocked[..], seen.taken.len()), (&[false][..], 0));
}

/// A blank of another table is refused, and nothing is sent.
#[test]
fn a_blank_of_another_table_makes_no_query() {
    struct Wrong;
    impl Shelf for Wrong {
        fn stock(&self, _maker: Option<BlankMaker>) {}
        fn take(&self) -> Option<Blank> {
            Some(Blank::of("made by nobody"))
        }
    }
    let mut world = World::with(&Peer::keyed(20), |options| options.shelf = Some(Arc::new(Wrong)));
    world.run();
    let error = world.get(Target::key(b"key-1")).unwrap_err();
    assert_eq!(error.blame(), privet_core::Blame::ApiMisuse, "{error}");
    assert!(world.queries().is_empty());
}
