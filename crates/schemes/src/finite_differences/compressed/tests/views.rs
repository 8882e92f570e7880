//! What each server sees has the same distribution for all records, and is uniform; and planted
//! leaks show.

use super::*;
use crate::test_statistics::{Measured, coins};

/// What a server sees: its point, the query's words, the words of both keys. With the bits of each.
type View = [(Vec<u64>, u32); 4];

fn view(query: &CompressedQuery) -> View {
    let [packing, fold] = query.form.key_bits();
    [
        (vec![*query.point.point], 8),
        (query.words.iter().map(|word| u64::from(*word)).collect(), query.query_bits),
        (query.keys.packing.clone(), packing),
        (query.keys.fold.clone(), fold),
    ]
}

/// The views of both servers, in `count` lookups of a record.
fn views(world: &World, of: u64, count: usize, seed: u8) -> [Vec<View>; 2] {
    let mut rng = SecretRng::from_fixed_seed([seed; 32]);
    let mut views = [Vec::new(), Vec::new()];
    for _ in 0..count {
        let (queries, _) = world.client.query(&world.index(of), &mut rng);
        for (views, query) in views.iter_mut().zip(&queries) {
            views.push(view(query));
        }
    }
    views
}

/// How often each of the highest eight bits, and of the lowest.
fn counted(numbers: impl Iterator<Item = (u64, u32)>) -> [Vec<u64>; 2] {
    let (mut high, mut low) = (vec![0; 256], vec![0; 256]);
    for (number, bits) in numbers {
        high[(number >> (bits - 8) & 255) as usize] += 1;
        low[(number & 255) as usize] += 1;
    }
    [high, low]
}

/// All that is counted in a server's views: points; each column's words; the keys; and each column
/// with the point beside it.
fn counts(views: &[View]) -> Vec<Vec<u64>> {
    let part = |part: usize| {
        let all =
            views.iter().flat_map(move |view| view[part].0.iter().map(move |n| (*n, view[part].1)));
        counted(all)
    };
    let columns = views[0][1].0.len();
    let of_column =
        |column: usize| counted(views.iter().map(|view| (view[1].0[column], view[1].1)));
    let with_point = |column: usize| {
        counted(views.iter().map(|view| {
            let word = view[1].0[column] >> (view[1].1 - 8);
            (word ^ view[0].0[0], 8)
        }))
    };
    let parts = (0..4).flat_map(part);
    let all = parts.chain((0..columns).flat_map(of_column));
    all.chain((0..columns).flat_map(with_point)).collect()
}

/// How far views are from uniform.
fn suspicion(views: &[View]) -> Measured {
    Measured::worst(counts(views).iter().map(|counts| Measured::uniform(counts)))
}

/// How far the views for one record are from those for another.
fn difference(one: &[View], other: &[View]) -> Measured {
    let (one, other) = (counts(one), counts(other));
    let pairs = one.iter().zip(&other);
    Measured::worst(pairs.map(|(one, other)| Measured::difference(one, other)))
}

/// How far the differences between both servers' words are from uniform.
fn relation([one, other]: &[Vec<View>; 2]) -> Measured {
    let differences = one.iter().zip(other).flat_map(|(one, other)| {
        let (words, bits) = (one[1].0.iter().zip(&other[1].0), one[1].1);
        words.map(move |(one, other)| (one.wrapping_sub(*other) & ((1 << bits) - 1), bits))
    });
    let [high, low] = counted(differences);
    Measured::uniform(&high).worse(Measured::uniform(&low))
}

const COUNT: usize = 5_200;

#[test]
fn no_server_sees_which_record_is_wanted() {
    let world = World::small();
    let seen = [(0, 1), (30, 2), (55, 3)].map(|(of, seed)| views(&world, of, coins(COUNT), seed));
    for server in 0..2 {
        let of_server = seen.each_ref().map(|seen| &seen[server]);
        for views in of_server {
            suspicion(views).assert_fits("the view of one record");
        }
        difference(of_server[0], of_server[1]).assert_fits("the views of two records");
        difference(of_server[0], of_server[2]).assert_fits("the views of two records");
    }
    // Together, both servers' points give the record away, but their words are of two secrets.
    for both in &seen {
        relation(both).assert_fits("both servers' words");
    }
}

#[test]
fn planted_leaks_show() {
    let world = World::small();
    let planted = |plant: &dyn Fn(&mut View, u64)| {
        let seen = [(0, 4), (55, 5)].map(|(of, seed)| {
            let word = world.parameters.plain().words().word(of);
            let [mut seen, _] = views(&world, of, COUNT, seed);
            seen.iter_mut().for_each(|view| plant(view, word));
            seen
        });
        (suspicion(&seen[0]).worse(suspicion(&seen[1])), difference(&seen[0], &seen[1]))
    };
    let (alone, both) = planted(&|_, _| ());
    alone.assert_fits("nothing planted");
    both.assert_fits("nothing planted");
    // A point that stays the same in one variable of the record, one time in four.
    let (alone, both) = planted(&|view, word| {
        if view[1].0[0] & 3 == 0 {
            view[0].0[0] |= word & word.wrapping_neg();
        }
    });
    alone.assert_shows("a point");
    both.assert_shows("a point");
    // χ of one variable, in the lowest bit of the next word.
    let (alone, both) = planted(&|view, word| view[1].0[2] = view[1].0[2] & !1 | (word & 1));
    alone.assert_shows("a bit in a word");
    both.assert_shows("a bit in a word");
    // A column that is masked by what the server knows.
    let (_, both) = planted(&|view, word| {
        view[1].0[1] = ((view[0].0[0] ^ (word & 1) << 7) << (view[1].1 - 8)) | (view[1].0[1] & 15);
    });
    both.assert_shows("a mask that the server knows");
}

#[test]
fn each_server_has_a_secret_of_its_own() {
    let world = World::small();
    let mut rng = SecretRng::from_fixed_seed([6; 32]);
    let (_, pending) = world.client.query(&world.index(7), &mut rng);
    let [one, other] = pending.keys();
    assert_ne!(one.secret(), other.secret());
    // Planted: the same coins for both. (With errors of their own under one secret, nearly all
    // rounded words would be the same, too.)
    let bits = vec![1; world.parameters.query_words() as usize];
    let query = |seed: u64| {
        let mut rng = SecretRng::from_fixed_seed([(seed % 251) as u8; 32]);
        let (words, keys, _) = world.client.encrypt(&bits, &mut rng);
        let (queries, _) = world.client.query(&world.index(7), &mut rng);
        let [mut query, _] = queries;
        (query.words, query.keys) = (words, keys);
        view(&query)
    };
    let seen = [0, 1].map(|_| (0..400).map(query).collect());
    relation(&seen).assert_shows("one secret for both servers");
    let apart = [0, 125].map(|first| (first..first + 100).map(query).collect());
    relation(&apart).assert_fits("two secrets");
}
