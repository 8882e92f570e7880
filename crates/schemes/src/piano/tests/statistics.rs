//! What a server sees, tested against what it should see; and each test against a client with a leak planted in it, which it must catch.
//!
//! Everything is drawn from fixed seeds, so a test that passes passes always. Thresholds are six standard deviations and more, so that another seed
//! would pass as well.

use super::*;
use crate::test_statistics::{difference, excess};
use privet_core::hints::LiveHint;

const CHUNK: u64 = 8;
const CHUNKS: usize = 16;
const RECORDS: u64 = CHUNK * CHUNKS as u64;

fn small_world<F: AnswerForm>() -> World<F> {
    let world = World::with(cut(RECORDS, 1, CHUNK));
    assert_eq!(world.parameters.chunks() as usize, CHUNKS);
    world
}

/// A client that may leak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behaviour {
    Honest,
    /// The wanted record's offset stays where it is.
    WantedLeftInPlace,
    /// Every query about a chunk uses its first pair.
    PairUsedAgain,
    /// The hint that takes the used one's place does not contain the record.
    BackupNotConditioned,
    /// A used hint stays in use.
    HintUsedAgain,
}

use Behaviour::*;

impl Behaviour {
    /// One query, and what it leaves behind: the offsets that a server sees. `index` is a position, so that tests can choose which chunk it lies in.
    fn ask<F: AnswerForm>(
        self,
        world: &mut World<F>,
        client: &mut PianoClient<F>,
        position: u64,
    ) -> Vec<u16> {
        let index = world.parameters.permutation().index_at(position);
        let (chunk, offset) = world.parameters.cut().place(position);
        let wanted = world.index(index);
        let reserved = client.reserve(&wanted, &mut world.rng).unwrap();
        let id = reserved.id.0;
        let answer = world.answer(&reserved.queries[0]);
        let mut offsets = reserved.queries[0].offsets.clone();
        let fresh = client.lookups.find(position).is_none();
        if self == WantedLeftInPlace && fresh {
            offsets[chunk as usize] = offset as u16;
        }
        if self == PairUsedAgain && fresh {
            let first = chunk * world.parameters.spares();
            offsets[chunk as usize] = client.pair_offset(chunk, first);
        }
        if self != HintUsedAgain {
            client.apply(&reserved.change).unwrap();
            let settled = client.settle(reserved.id, &[answer]).unwrap();
            client.apply(&settled).unwrap();
            let _ = client.take_record(reserved.id);
        }
        if let (BackupNotConditioned, Some(asked)) = (self, client.lookups.position(id)) {
            let rows = 0..client.table.len();
            let hints = rows.filter_map(|row| Some((row, client.table.hint(row)?)));
            let (row, hint) = { hints }.find(|(_, hint)| hint.extra == Some(asked)).unwrap();
            // The same pseudorandom contents, of an id that is not in use.
            let id = (1 << 20) + hint.id;
            let unconditioned = LiveHint { id, cutoff: 0, above: false, extra: None };
            client.table.exchange(row, unconditioned, 0).unwrap();
        }
        offsets
    }
}

const THRESHOLD: f64 = 8.0;

/// Views of the last query of each of `rounds` histories, each of a fresh client.
fn last_views<F: AnswerForm>(
    behaviour: Behaviour,
    history: &[u64],
    rounds: usize,
) -> Vec<Vec<u16>> {
    let mut world = small_world::<F>();
    let last = |_| {
        let mut client = world.client();
        let views = history.iter().map(|at| behaviour.ask(&mut world, &mut client, *at));
        views.last().unwrap()
    };
    (0..rounds).map(last).collect()
}

/// Every offset on its own: the worst place.
fn marginals(views: &[Vec<u16>]) -> f64 {
    let expected = [views.len() as f64 / CHUNK as f64; CHUNK as usize];
    let places = 0..views[0].len();
    let excesses = places.map(|place| {
        let mut counts = [0; CHUNK as usize];
        views.iter().for_each(|view| counts[usize::from(view[place])] += 1);
        excess(&counts, &expected)
    });
    excesses.fold(f64::MIN, f64::max)
}

/// Neighbouring places together: the worst pair of them.
fn neighbours(views: &[Vec<u16>]) -> f64 {
    let expected = [views.len() as f64 / (CHUNK * CHUNK) as f64; (CHUNK * CHUNK) as usize];
    let places = 1..views[0].len();
    let excesses = places.map(|place| {
        let mut counts = [0; (CHUNK * CHUNK) as usize];
        views.iter().for_each(|view| {
            counts[usize::from(view[place - 1]) * CHUNK as usize + usize::from(view[place])] += 1;
        });
        excess(&counts, &expected)
    });
    excesses.fold(f64::MIN, f64::max)
}

/// How many places agree in each two queries of whole histories, and whether the place numbered `place` does.
fn agreements<F: AnswerForm>(
    behaviour: Behaviour,
    history: &[u64],
    place: usize,
    rounds: usize,
) -> Vec<u64> {
    let mut world = small_world::<F>();
    let mut counts = vec![0; 2 * (CHUNKS + 1)];
    for _ in 0..rounds {
        let mut client = world.client();
        let views: Vec<_> =
            history.iter().map(|at| behaviour.ask(&mut world, &mut client, *at)).collect();
        for (later, view) in views.iter().enumerate() {
            for earlier in &views[..later] {
                let equal = view.iter().zip(earlier).filter(|(one, other)| one == other).count();
                counts[2 * equal + usize::from(view[place] == earlier[place])] += 1;
            }
        }
    }
    counts
}

for_both_forms!(a_query_looks_the_same_for_every_record_and_every_history);

fn a_query_looks_the_same_for_every_record_and_every_history<F: AnswerForm>() {
    let histories: [&[u64]; 5] = [&[5], &[127], &[5, 5, 5], &[5, 6, 7, 5], &[100, 3, 77, 127]];
    for history in histories {
        let views = last_views::<F>(Honest, history, 5000);
        assert!(marginals(&views) < THRESHOLD, "{history:?}: {}", marginals(&views));
        assert!(neighbours(&views) < THRESHOLD, "{history:?}: {}", neighbours(&views));
    }
}

for_both_forms!(histories_look_like_each_other);

fn histories_look_like_each_other<F: AnswerForm>() {
    // Position 5 lies in chunk 0, and so does what its queries have in common, if anything.
    let apart = agreements::<F>(Honest, &[5, 40, 99], 0, 3000);
    for history in [[5, 5, 5], [5, 6, 7], [127, 5, 127]] {
        let other = agreements::<F>(Honest, &history, 0, 3000);
        assert!(difference(&apart, &other) < THRESHOLD, "{}", difference(&apart, &other));
    }
}

#[test]
fn a_wanted_record_left_in_its_place_is_caught() {
    let views = last_views::<SingleParity>(WantedLeftInPlace, &[5], 2000);
    assert!(marginals(&views) > 10.0 * THRESHOLD, "{}", marginals(&views));
}

#[test]
fn a_pair_that_is_used_again_is_caught() {
    let apart = agreements::<SingleParity>(PairUsedAgain, &[5, 40, 99], 0, 3000);
    let together = agreements::<SingleParity>(PairUsedAgain, &[5, 6, 7], 0, 3000);
    assert!(difference(&apart, &together) > 5.0 * THRESHOLD, "{}", difference(&apart, &together));
}

#[test]
fn a_hint_that_is_used_again_is_caught() {
    let apart = agreements::<AllParities>(HintUsedAgain, &[5, 40, 99], 0, 4000);
    let repeated = agreements::<AllParities>(HintUsedAgain, &[5, 5, 5], 0, 4000);
    assert!(difference(&apart, &repeated) > 5.0 * THRESHOLD, "{}", difference(&apart, &repeated));
}

/// How the hints in use are distributed after `history`: how many of them contain position 5, and how often each offset occurs.
fn hints_after<F: AnswerForm>(
    behaviour: Behaviour,
    history: &[u64],
    rounds: usize,
) -> [Vec<u64>; 2] {
    let mut world = small_world::<F>();
    let (mut containing, mut offsets) = (vec![0; 400], vec![0; CHUNK as usize]);
    for _ in 0..rounds {
        let mut client = world.client();
        for position in history {
            behaviour.ask(&mut world, &mut client, *position);
        }
        let hints = all_contents(&client);
        assert_eq!(hints.len() as u32, world.parameters.primaries());
        hints.iter().flatten().for_each(|offset| offsets[usize::from(*offset)] += 1);
        containing[hints.iter().filter(|hint| hint[0] == 5).count()] += 1;
    }
    [containing, offsets]
}

#[test]
fn the_hints_have_the_same_distribution_before_and_after_queries() {
    let before = hints_after::<SingleParity>(Honest, &[], 2000);
    for history in [vec![5; 8], vec![5, 6, 7, 4, 5, 6], (0..8).map(|k| k * 15).collect()] {
        let after = hints_after::<SingleParity>(Honest, &history, 2000);
        for (before, after) in before.iter().zip(&after) {
            assert!(difference(before, after) < THRESHOLD, "{history:?} {before:?} {after:?}");
        }
    }
}

/// How many hints contain position 5 after it was asked for, on average over fresh clients, and the variance.
fn containing_after(behaviour: Behaviour, history: &[u64], rounds: usize) -> (f64, f64) {
    // With few hints, one of them more or less shows.
    let mut world = World::<SingleParity>::with(cut(RECORDS, 1, CHUNK).with_hints(64, 8));
    let counts = (0..rounds).map(|_| {
        let mut client = world.client();
        for position in history {
            behaviour.ask(&mut world, &mut client, *position);
        }
        all_contents(&client).iter().filter(|hint| hint[0] == 5).count() as f64
    });
    let counts: Vec<f64> = counts.collect();
    let mean = counts.iter().sum::<f64>() / rounds as f64;
    let squares: f64 = counts.iter().map(|count| (count - mean).powi(2)).sum();
    (mean, squares / rounds as f64)
}

#[test]
fn a_backup_that_need_not_contain_the_record_is_caught() {
    let rounds = 3000;
    let deviations = |(one, one_variance): (f64, f64), (other, other_variance): (f64, f64)| {
        (one - other).abs() / ((one_variance + other_variance) / rounds as f64).sqrt()
    };
    let before = containing_after(Honest, &[], rounds);
    let honest = deviations(before, containing_after(Honest, &[5], rounds));
    assert!(honest < 5.0, "{honest}");
    let careless = deviations(before, containing_after(BackupNotConditioned, &[5], rounds));
    assert!(careless > 9.0, "{careless}");
}

for_both_forms!(the_search_does_the_same_work_for_every_record_and_history);

fn the_search_does_the_same_work_for_every_record_and_history<F: AnswerForm>() {
    let mut world = World::<F>::new(3000, 2);
    let generation = world.generation(1 << 16);
    let mut works = Vec::new();
    for history in [vec![5; 60], (0..60).collect(), (0..60).map(|k| k * 49).collect::<Vec<u64>>()] {
        let mut client = world.load(&generation);
        let mut work_after = Vec::new();
        for index in history {
            let work = |position| client.table.find(position).work;
            let first = work(0);
            assert!((0..3000).step_by(97).all(|position| work(position) == first));
            assert!(first > world.parameters.primaries() as usize / 64, "all hints are looked at");
            work_after.push(first);
            world.get(&mut client, index).unwrap();
        }
        works.push(work_after);
    }
    assert!(works.windows(2).all(|pair| pair[0] == pair[1]));
}

for_both_forms!(a_cover_looks_like_any_query);

fn a_cover_looks_like_any_query<F: AnswerForm>() {
    let mut world = small_world::<F>();
    let client = world.client();
    let covers: Vec<_> = (0..5000).map(|_| client.cover(&mut world.rng).offsets).collect();
    assert_eq!(covers[0].len(), PianoQuery::<F>::count(&world.parameters));
    assert!(marginals(&covers) < THRESHOLD, "{}", marginals(&covers));
    assert!(neighbours(&covers) < THRESHOLD, "{}", neighbours(&covers));
}

#[test]
fn fillers_are_uniform_among_what_was_not_asked_for() {
    let mut world = small_world::<SingleParity>();
    let mut client = world.client();
    for position in 0..40 {
        Honest.ask(&mut world, &mut client, position);
    }
    let mut counts = [0; RECORDS as usize];
    for _ in 0..20_000 {
        counts[client.lookups.filler(&mut world.rng) as usize] += 1;
    }
    assert!(counts[..40].iter().all(|count| *count == 0));
    assert!(excess(&counts[40..], &[20_000.0 / 88.0; 88]) < THRESHOLD);
}
