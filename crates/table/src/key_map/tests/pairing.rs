//! How tags pair off records.

use crate::key_map::pairing::Pairing;
use std::collections::HashMap;

/// All pairings of a table of `records` records: for each, the other record of every record, and a
/// tag that gives this pairing.
fn pairings(records: u64) -> HashMap<Vec<u64>, u64> {
    // Pairings are told apart by their effect, not by the centre that the code computes.
    let mut tags = HashMap::new();
    for tag in 0..4000u64 {
        let tag = tag.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let pairing = Pairing::new(tag, records);
        tags.insert((0..records).map(|record| pairing.other(record)).collect(), tag);
    }
    tags
}

#[test]
fn each_pairing_is_mutual_and_any_two_records_are_a_pair_under_exactly_one() {
    for records in 1..=64u64 {
        let pairings = pairings(records);
        let expected = if records % 2 == 0 { records - 1 } else { records };
        assert_eq!(pairings.len() as u64, expected, "{records} records");
        let mut met = vec![0; (records * records) as usize];
        for pairing in pairings.keys() {
            let left_over = (0..records).filter(|&record| pairing[record as usize] == record);
            assert_eq!(left_over.count() as u64, records % 2, "{records} records");
            for record in 0..records {
                let other = pairing[record as usize];
                assert!(other < records);
                assert_eq!(pairing[other as usize], record, "{records} records");
                met[(record * records + other) as usize] += 1;
            }
        }
        // With an odd number of records each is left over under one pairing; with an even number
        // none is.
        for record in 0..records {
            for other in 0..records {
                let times = if record == other { records % 2 } else { 1 };
                assert_eq!(met[(record * records + other) as usize], times, "{records} records");
            }
        }
    }
}

#[test]
fn all_ordered_pairs_of_records_are_candidates_equally_often() {
    for records in 2..=64u64 {
        let firsts = if records % 2 == 0 { records } else { records - 1 };
        let mut drawn = vec![0; (records * records) as usize];
        for tag in pairings(records).into_values() {
            // The first candidates divide all words into equal parts. Tries one word from the
            // middle of each part.
            for part in 0..firsts {
                let word = (((2 * part + 1) as u128) << 63) / u128::from(firsts);
                let pairing = Pairing::new(tag, records);
                let first = pairing.first(word as u64);
                let second = pairing.other(first);
                drawn[(first * records + second) as usize] += 1;
            }
        }
        for first in 0..records {
            for second in 0..records {
                let times = u64::from(first != second);
                assert_eq!(drawn[(first * records + second) as usize], times, "{records} records");
            }
        }
    }
}

#[test]
fn tables_of_every_size_have_candidates_within_them() {
    for records in [1, 2, 3, (1 << 32) - 1, 1 << 32, (1 << 40) + 1, (1 << 48) - 1, 1 << 48] {
        for word in [0, 1, u64::MAX / 2, u64::MAX] {
            for tag in [0, 1, u64::MAX / 2, u64::MAX] {
                let pairing = Pairing::new(tag, records);
                let first = pairing.first(word);
                let second = pairing.other(first);
                assert!(first < records && second < records);
                assert_eq!(first == second, records == 1);
                assert_eq!(pairing.other(second), first);
            }
        }
    }
}
