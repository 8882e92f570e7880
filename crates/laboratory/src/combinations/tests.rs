//! Every order against a count by brute force.

use super::*;
use proptest::prelude::*;

fn words_where(variables: u32, wanted: impl Fn(u32) -> bool) -> Vec<u64> {
    (0..1u64 << variables).filter(|word| wanted(word.count_ones())).collect()
}

#[test]
fn binomials_are_pascals() {
    for of in 0..128 {
        for take in 1..=of {
            let sum = binomial(of - u32::from(of > 0), take)
                .zip(binomial(of - u32::from(of > 0), take - 1))
                .and_then(|(one, other)| one.checked_add(other));
            if of > 0 {
                assert_eq!(binomial(of, take), sum, "{of} over {take}");
            }
        }
    }
    assert_eq!(binomial(35, 9), Some(70_607_460));
    assert_eq!(binomial(5, 6), Some(0));
    assert_eq!(binomial(0, 0), Some(1));
    assert_eq!(binomial(400, 200), None);
}

#[test]
fn words_of_one_weight_come_in_ascending_order() {
    for variables in 0..=12 {
        for weight in 0..=variables {
            let expected = words_where(variables, |ones| ones == weight);
            let words = FixedWeight::new(variables, weight).unwrap();
            assert_eq!(words.count(), expected.len() as u64);
            for (index, word) in (0..).zip(&expected) {
                assert_eq!(words.word(index), *word);
                assert_eq!(words.rank(*word), index);
            }
            for first in [0, 1, words.count() / 2, words.count(), words.count() + 1] {
                let rest: Vec<u64> = words.words_from(first).collect();
                assert_eq!(rest, expected.get(first as usize..).unwrap_or_default());
            }
            for bound in 0..=1u64 << variables {
                let below = expected.iter().filter(|word| **word < bound).count();
                assert_eq!(
                    words.rank(bound),
                    below as u64,
                    "{weight} of {variables} below {bound}"
                );
            }
        }
    }
}

#[test]
fn balls_come_in_ascending_order() {
    for variables in 0..=12 {
        for radius in 0..=variables {
            let expected = words_where(variables, |ones| ones <= radius);
            let ball = Ball::new(variables, radius).unwrap();
            assert_eq!(ball.count(), expected.len() as u64);
            assert_eq!(ball.words().collect::<Vec<_>>(), expected);
            for (place, word) in (0..).zip(&expected) {
                assert_eq!(ball.rank(*word), place);
            }
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    assert!(FixedWeight::new(MOST_VARIABLES + 1, 1).is_err());
    assert!(FixedWeight::new(4, 5).is_err());
    assert!(Ball::new(MOST_VARIABLES + 1, 1).is_err());
    assert!(Ball::new(4, 5).is_err());
}

proptest! {
    #[test]
    fn long_words_are_found_again(variables in 20..=MOST_VARIABLES, weight in 0..20u32, at in any::<u64>()) {
        let words = FixedWeight::new(variables, weight).unwrap();
        let index = at % words.count();
        let word = words.word(index);
        prop_assert_eq!((word.count_ones(), word >> variables), (weight, 0));
        prop_assert_eq!(words.rank(word), index);
        let next: Vec<u64> = words.words_from(index).take(2).collect();
        prop_assert_eq!(next[0], word);
        if let Some(next) = next.get(1) {
            prop_assert_eq!(words.word(index + 1), *next);
        }
    }
}
