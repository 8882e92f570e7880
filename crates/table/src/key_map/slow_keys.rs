//! Keys that take as long as any to bring into a table's form.
//!
//! A client measures with them how long a lookup may take, before it makes any. Which text takes
//! longest depends on the processor, so there are several kinds.

use super::key_form::{Case, KeyForm, Normalization};
use super::ranges::Directory;
use privet_core::SecretRng;

/// How many kinds of slow keys there are. No power of two: where keys have several candidates, a
/// client that counts through both meets each kind with each candidate.
const KINDS: usize = 5;

/// The letter that becomes most letters in lower case: `i` and a dot.
const LONGEST_LOWER: char = '\u{130}';

/// The letter that becomes most letters in upper case: a vowel and two accents.
const LONGEST_UPPER: char = '\u{390}';

/// White space of three bytes.
const SPACE: char = '\u{3000}';

/// A number has no more digits, or it is left as it is.
const MOST_DIGITS: usize = 400;

impl KeyForm {
    /// A random key of `len` bytes: of the kinds that may take longest, number `number`, counted
    /// round.
    pub fn slow_key(&self, number: usize, len: usize, rng: &mut SecretRng) -> Vec<u8> {
        let kind = number % KINDS;
        match &self.ranges {
            Some(directory) => slow_point(directory, kind, len, rng).into_bytes(),
            None if self.is_plain() => {
                let mut key = vec![0; len];
                rng.fill(&mut key);
                key
            }
            None => slow_text(self.normalization, kind, len, rng).into_bytes(),
        }
    }
}

fn slow_text(normalization: Normalization, kind: usize, len: usize, rng: &mut SecretRng) -> String {
    match (kind, normalization.case) {
        // Letters that become several, and others so that no two keys are alike.
        (0, Some(case)) => {
            let longest = if case == Case::Lower { LONGEST_LOWER } else { LONGEST_UPPER };
            filled("", len, || if rng.below(64) == 0 { any_greek(rng) } else { longest })
        }
        // Letters and digits that are found late in the lists of them.
        (1, _) => filled("", len, || late_letter(rng)),
        (0, _) => filled("", len, || any_greek(rng)),
        (2, _) => filled("", len, || {
            let letter = char::from(b'a' + rng.below(26) as u8);
            if rng.below(2) == 0 { letter } else { letter.to_ascii_uppercase() }
        }),
        // The longest number, behind zeros.
        (3, _) => {
            let digits = filled("", len.min(MOST_DIGITS), || any_digit(rng));
            format!("{digits:0>len$}")
        }
        _ => {
            let text = filled("", 32.min(len), || any_greek(rng));
            let space = filled("", (len - text.len()) / 2, || SPACE);
            filled(&format!("{space}{text}"), len, || SPACE)
        }
    }
}

/// A point of a range, with zeros or white space before it.
fn slow_point(directory: &Directory, kind: usize, len: usize, rng: &mut SecretRng) -> String {
    let point = directory.any_point(rng);
    match (point.strip_prefix('-').unwrap_or(&point), kind % 2) {
        (digits, 0) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            let sign = &point[..point.len() - digits.len()];
            let width = len.saturating_sub(sign.len());
            format!("{sign}{digits:0>width$}")
        }
        _ => filled("", len.saturating_sub(point.len()), || SPACE) + &point,
    }
}

/// `text`, and after it as many characters as fit into `len` bytes.
fn filled(text: &str, len: usize, mut next: impl FnMut() -> char) -> String {
    let mut text = text.to_owned();
    let mut char = next();
    while text.len() + char.len_utf8() <= len {
        text.push(char);
        char = next();
    }
    text
}

/// Α to ω, in two bytes each.
fn any_greek(rng: &mut SecretRng) -> char {
    char::from_u32(0x391 + rng.below(0x39) as u32).unwrap_or('Ω')
}

/// A letter of Hangul or a digit of Tibetan, in three bytes each.
fn late_letter(rng: &mut SecretRng) -> char {
    let first = if rng.below(4) == 0 { 0x11d0 } else { 0xf20 };
    char::from_u32(first + rng.below(10) as u32).unwrap_or('\u{f26}')
}

fn any_digit(rng: &mut SecretRng) -> char {
    char::from(b'0' + rng.below(10) as u8)
}

#[cfg(test)]
mod tests {
    use super::super::ranges::{Points, Range};
    use super::*;
    use std::collections::BTreeSet;

    const LEN: usize = 1024;

    fn forms() -> Vec<KeyForm> {
        let mut forms = Vec::new();
        for case in [None, Some(Case::Lower), Some(Case::Upper)] {
            for bits in 0..8 {
                let normalization = Normalization {
                    trim: bits & 1 != 0,
                    case,
                    alphanumeric: bits & 2 != 0,
                    number: bits & 4 != 0,
                };
                forms.push(KeyForm { normalization, ranges: None });
            }
        }
        for points in Points::ALL {
            let ranges = [Range { from: 5, to: 9 }, Range { from: 1 << 127, to: u128::MAX }];
            let ranges = Some(Directory::new(points, &ranges).unwrap());
            forms.push(KeyForm { ranges, ..KeyForm::default() });
        }
        forms
    }

    /// Keys that are of no use to a step of the form return from it at once, and measure nothing.
    #[test]
    fn slow_keys_are_long_and_pass_through_every_step() {
        let mut rng = SecretRng::from_os().unwrap();
        for form in forms() {
            let mut keys = BTreeSet::new();
            let mut numbers = 0;
            for number in 0..KINDS {
                let key = form.slow_key(number, LEN, &mut rng);
                assert!((LEN - 3..=LEN).contains(&key.len()), "{form:?} {number}: {}", key.len());
                keys.insert(key.clone());
                if form.is_plain() {
                    continue;
                }
                let text = std::str::from_utf8(&key).unwrap();
                numbers += usize::from(text.bytes().all(|byte| byte.is_ascii_digit()));
                assert!(form.has_place_for(&key), "{form:?} {number}: it is a point of a range");
            }
            // All points are those of one block here.
            assert!(form.ranges.is_some() || keys.len() == KINDS, "{form:?}");
            assert!(form.is_plain() || form.ranges.is_some() || numbers == 1, "{form:?}");
        }
        let number = KeyForm {
            normalization: Normalization { number: true, ..Normalization::default() },
            ranges: None,
        };
        let key = number.slow_key(3, LEN, &mut rng);
        assert!(number.apply(&key).len() <= MOST_DIGITS, "its zeros are taken away");
    }

    /// More comes of no letter, for each of its bytes, than of those that are used.
    #[test]
    fn no_letter_becomes_more_than_those_of_slow_keys() {
        let most = |of: fn(char) -> usize| {
            let share = |char: &char| of(*char) as f64 / char.len_utf8() as f64;
            ('\u{80}'..=char::MAX).map(|char| share(&char)).fold(0.0, f64::max)
        };
        let (lower, upper) =
            (|char: char| char.to_lowercase().count(), |char: char| char.to_uppercase().count());
        assert_eq!(most(lower), lower(LONGEST_LOWER) as f64 / 2.0);
        assert_eq!(most(upper), upper(LONGEST_UPPER) as f64 / 2.0);
    }
}
