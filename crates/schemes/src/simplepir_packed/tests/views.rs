//! What a server sees: queries look uniform, whatever the index, and planted leaks do not.

use super::*;
use crate::test_statistics::{Measured, coins};
use privet_core::ring::PublicKeys;
use std::collections::HashSet;

/// The numbers of a query, with the bits of each.
type View = [(Vec<u64>, u32); 3];

fn view(query: &SimplePirPackedQuery) -> View {
    let PublicKeys { packing, fold } = &query.keys;
    let [packing_bits, fold_bits] = query.form.key_bits();
    let words = query.words.iter().map(|word| u64::from(*word)).collect();
    [(words, query.query_bits), (packing.clone(), packing_bits), (fold.clone(), fold_bits)]
}

/// The highest byte and the lowest of each number: how far they are from uniform.
fn far_from_uniform(numbers: impl Iterator<Item = u64>, bits: u32) -> Measured {
    let (mut high, mut low) = (vec![0; 256], vec![0; 256]);
    for number in numbers {
        high[(number >> (bits - 8) & 255) as usize] += 1;
        low[(number & 255) as usize] += 1;
    }
    Measured::uniform(&high).worse(Measured::uniform(&low))
}

/// All that the server can test without the index: the numbers of queries, and their differences
/// from one query to the next; of all columns and of each column alone.
fn suspicion(views: &[View]) -> Measured {
    let parts = (0..3).map(|part| {
        let bits = views[0][part].1;
        let all =
            far_from_uniform(views.iter().flat_map(|view| view[part].0.iter().copied()), bits);
        let differences = views.windows(2).flat_map(|two| {
            let pairs = two[0][part].0.iter().zip(&two[1][part].0);
            pairs.map(|(one, other)| one.wrapping_sub(*other)).collect::<Vec<_>>()
        });
        all.worse(far_from_uniform(differences, bits))
    });
    let of_each_column = (0..views[0][0].0.len())
        .map(|column| far_from_uniform(views.iter().map(|view| view[0].0[column]), views[0][0].1));
    Measured::worst(parts.chain(of_each_column))
}

fn world() -> World {
    World::of(&(24, 1, Layout::default().of_column(4)))
}

/// Four columns, and three units, whose masks are on demand.
fn world_on_demand() -> World {
    let world = World::of(&(24, 30, Layout::default().of_column(6).on_demand()));
    assert_eq!(world.parameters().vector_lens(), [4, 3]);
    world
}

fn queries(world: &World, of: u64, count: usize, seed: u8) -> Vec<SimplePirPackedQuery> {
    let mut rng = SecretRng::from_fixed_seed([seed; 32]);
    (0..count)
        .map(|_| world.client.query(&world.index(of), &mut rng).unwrap().0.remove(0))
        .collect()
}

#[test]
fn queries_look_uniform_for_every_column() {
    for world in [world(), world_on_demand()] {
        for of in [0, 14, 23] {
            let views: Vec<View> = queries(&world, of, coins(2_600), 1).iter().map(view).collect();
            suspicion(&views).assert_fits("queries for one record");
        }
    }
}

/// The words for the masks are as secret as the others: which unit of rows is wanted narrows down
/// the record.
#[test]
fn planted_leaks_of_the_wanted_mask_show() {
    const COUNT: usize = 2_600;
    // The record 16 is the fourth of its column of six. Two fit into a unit.
    let (world, of, unit) = (world_on_demand(), 16, 2);
    let first = world.parameters().columns() as usize;
    let bits = world.parameters().query_bits();
    let planted = |plant: &dyn Fn(&mut Vec<u64>)| {
        let seen = queries(&world, of, COUNT, 6).into_iter().map(|query| {
            let mut seen = view(&query);
            plant(&mut seen[0].0);
            seen
        });
        suspicion(&seen.collect::<Vec<_>>())
    };
    planted(&|_| ()).assert_fits("nothing planted");
    // The word of the wanted unit in the clear.
    planted(&|words| words[first + unit] = 1 << (bits - 8)).assert_shows("a word in the clear");
    // The number of the unit in the lowest bits of a word that is random otherwise.
    planted(&|words| words[first] = words[first] & !3 | unit as u64)
        .assert_shows("a unit's number in a word");
}

#[test]
fn planted_leaks_show() {
    let world = world();
    const COUNT: usize = 2_600;
    let of = 14;
    let column = 3;

    // A secret that serves two queries: the same coins for every pair.
    let reused: Vec<View> = (0..COUNT)
        .map(|number| {
            let mut rng = SecretRng::from_fixed_seed([(number / 2 % 251) as u8; 32]);
            view(&world.client.query(&world.index(of), &mut rng).unwrap().0[0])
        })
        .collect();
    suspicion(&reused).assert_shows("a secret that serves two queries");

    // A rounding that stays below 1 instead of wrapping to 0: the highest words are too frequent.
    // The plant leaves out what would have wrapped.
    let saturating: Vec<View> = queries(&world, of, COUNT, 2)
        .iter()
        .map(|query| {
            let mut seen = view(query);
            for (numbers, bits) in &mut seen {
                let last = (1u64 << *bits) - 1;
                // Rounding to 8 bits less shows on few queries what all bits show on many.
                numbers.iter_mut().for_each(|number| {
                    let coarse = (*number >> (*bits - 9)) + 1;
                    *number = ((coarse >> 1).min(255) << (*bits - 8)).min(last) | (*number & 255);
                });
            }
            seen
        })
        .collect();
    suspicion(&saturating).assert_shows("a rounding that does not wrap");

    // The wanted column without its mask.
    let bare: Vec<View> = queries(&world, of, COUNT, 3)
        .iter()
        .map(|query| {
            let mut seen = view(query);
            seen[0].0[column] = 1 << (query.query_bits - 8);
            seen
        })
        .collect();
    suspicion(&bare).assert_shows("a column without its mask");

    // A key without its mask: the secret itself, shifted.
    let mut rng = SecretRng::from_fixed_seed([4; 32]);
    let unmasked: Vec<View> = (0..COUNT / 10)
        .map(|_| {
            let (mut asked, pending) = world.client.query(&world.index(of), &mut rng).unwrap();
            let mut seen = view(&asked.remove(0));
            let secret = pending.key().secret();
            let numbers = secret.iter().map(|s| (i64::from(*s) << 25) as u64 & ((1 << 44) - 1));
            seen[1].0 = numbers.collect();
            seen
        })
        .collect();
    suspicion(&unmasked).assert_shows("a key without its mask");
}

/// The wrong sum of errors makes wrong records: of all columns but the wanted one, and of the
/// padding too.
#[test]
fn the_sum_of_errors_is_over_all_columns() {
    // The noise of a table of 255 is the sum of errors alone: rows are 127 times it.
    let (records, len) = (2_000, 3);
    let identity = identity(records, len);
    let table = vec![255; (records * len) as usize];
    let layout = Layout::default().of_column(5);
    let world = World::with_table(identity, &layout, table);
    world.check(&[0, 999, 1_999]);
    let mut rng = SecretRng::from_fixed_seed([5; 32]);
    let mut sums = Vec::new();
    for _ in 0..40 {
        let (_, pending) = world.client.query(&world.index(7), &mut rng).unwrap();
        sums.push(pending.key().error_sum(0) as f64 / 2f64.powi(50));
    }
    // Of 400 columns: √400 · 2^-w / √12, and not one column's more or less by chance.
    let bits = world.parameters().query_bits();
    let expected = (400.0f64 / 12.0).sqrt() * 2f64.powi(-(bits as i32));
    let spread = (sums.iter().map(|sum| sum * sum).sum::<f64>() / sums.len() as f64).sqrt();
    assert!((0.6..1.5).contains(&(spread / expected)), "{spread}, expected {expected}");
}

#[test]
fn no_part_of_a_query_is_sent_twice() {
    let (mut sent, mut rng) = (HashSet::new(), SecretRng::from_os().unwrap());
    for layout in [Layout::default(), Layout::default().on_demand()] {
        let world = World::of(&(300, 20, layout));
        for of in (0..300).flat_map(|of| [of, of]) {
            let (queries, _) = world.client.query(&world.index(of), &mut rng).unwrap();
            for (numbers, _) in view(&queries[0]) {
                assert!(sent.insert(numbers), "a part of a query for record {of} was sent before");
            }
        }
    }
}
