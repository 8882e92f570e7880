//! Keys that take about as long as any to bring into a table's form.
//!
//! A client measures with them how long a lookup may take, before it makes any. Which text takes
//! longest depends on the processor, so there are several kinds.

use super::key_form::{Case, KeyForm, Normalization};
use super::key_format::KeyFormat;
use super::ranges::Directory;
use privet_core::SecretRng;

/// How many kinds of slow keys there are. No power of two: where keys have several candidates, a
/// client that counts through both meets each kind with each candidate.
const KINDS: usize = 7;

/// The letter that becomes most letters in lower case: `i` and a dot.
const LONGEST_LOWER: char = '\u{130}';

/// The letter that becomes most letters in upper case and folded: a vowel and two accents.
const LONGEST_UPPER: char = '\u{390}';

/// White space of three bytes.
const SPACE: char = '\u{3000}';

/// The last of the invisible characters that is not white space, of three bytes.
const INVISIBLE: char = '\u{feff}';

/// A number has no more digits, or it is left as it is.
const MOST_DIGITS: usize = 400;

impl KeyForm {
    /// A random key, [written](Self::read) in `len` bytes: of the kinds that may take longest,
    /// number `number`, counted round.
    pub fn slow_key(&self, number: usize, len: usize, rng: &mut SecretRng) -> Vec<u8> {
        let kind = number % KINDS;
        match (&self.ranges, self.format) {
            (Some(directory), _) => slow_point(directory, kind, len, rng).into_bytes(),
            // Reading ends at the first byte that is not in the format, so all are in it.
            (None, KeyFormat::Hex) => {
                filled("", len / 2 * 2, || any_of(b"0123456789abcdefABCDEF", rng)).into_bytes()
            }
            (None, KeyFormat::Base64) => {
                let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
                filled("", len / 4 * 4, || any_of(letters, rng)).into_bytes()
            }
            (None, KeyFormat::Text) if self.is_plain() => {
                let mut key = vec![0; len];
                rng.fill(&mut key);
                key
            }
            (None, KeyFormat::Text) => slow_text(self.normalization, kind, len, rng).into_bytes(),
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
            let digits = filled("", len.min(MOST_DIGITS), || any_of(b"0123456789", rng));
            format!("{digits:0>len$}")
        }
        // One letter and many accents, which have to be put in order.
        (4, _) if normalization.nfc => filled("a", len, || any_accent(rng)),
        // Syllables, of which each falls apart into three letters and comes together again.
        (5, _) if normalization.nfc => filled("", len, || any_syllable(rng)),
        _ => {
            let space = if normalization.trim_invisible { INVISIBLE } else { SPACE };
            let text = filled("", 32.min(len), || any_greek(rng));
            let before = filled("", (len - text.len()) / 2, || space);
            filled(&format!("{before}{text}"), len, || space)
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

fn any_of(letters: &[u8], rng: &mut SecretRng) -> char {
    char::from(letters[rng.below(letters.len() as u64) as usize])
}

/// An accent above a letter or below it, in two bytes each.
fn any_accent(rng: &mut SecretRng) -> char {
    char::from_u32(0x300 + rng.below(0x34) as u32).unwrap_or('\u{316}')
}

/// A syllable of Hangul, in three bytes.
fn any_syllable(rng: &mut SecretRng) -> char {
    char::from_u32(0xac00 + rng.below(11_172) as u32).unwrap_or('\u{d7a3}')
}

#[cfg(test)]
mod tests {
    use super::super::ranges::{Points, Range};
    use super::*;
    use std::collections::BTreeSet;

    const LEN: usize = 1024;

    fn forms() -> Vec<KeyForm> {
        let mut forms = Vec::new();
        for bits in 0..=255u8 {
            let has = |step: &usize| bits >> step & 1 == 1;
            let names = (0..8).filter(has).map(|step| Normalization::NAMES[step]);
            if let Ok(normalization) = Normalization::from_names(&names.collect::<Vec<_>>()) {
                forms.push(KeyForm { normalization, ..KeyForm::default() });
            }
        }
        for format in [KeyFormat::Hex, KeyFormat::Base64] {
            forms.push(KeyForm { format, ..KeyForm::default() });
        }
        for points in Points::ALL {
            let ranges = [Range { from: 5, to: 9 }, Range { from: 1 << 127, to: u128::MAX }];
            let ranges = Some(Directory::new(points, &ranges, false).unwrap());
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
                assert!(form.read(&key).is_ok(), "{form:?} {number}: it is read to its end");
                if form.is_plain() || form.format != KeyFormat::Text {
                    continue;
                }
                let text = std::str::from_utf8(&key).unwrap();
                numbers += usize::from(text.bytes().all(|byte| byte.is_ascii_digit()));
                assert!(form.has_place_for(&key), "{form:?} {number}: it is a point of a range");
            }
            // All points are those of one block here.
            assert!(form.ranges.is_some() || keys.len() == KINDS, "{form:?}");
            let has_numbers = form.ranges.is_none() && form.normalization != <_>::default();
            assert!(!has_numbers || numbers == 1, "{form:?}");
        }
        let number = KeyForm {
            normalization: Normalization { number: true, ..Normalization::default() },
            ..KeyForm::default()
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
        let folded = |char: char| {
            unicase::UniCase::unicode(char.to_string()).to_folded_case().chars().count()
        };
        assert_eq!(most(lower), lower(LONGEST_LOWER) as f64 / 2.0);
        assert_eq!(most(upper), upper(LONGEST_UPPER) as f64 / 2.0);
        assert_eq!(most(folded), folded(LONGEST_UPPER) as f64 / 2.0);
    }
}
