//! What becomes of a key before it is hashed.
//!
//! People write the same key in different ways: `A0-B1` and `a0b1`, `1.50` and `1.5`. A lookup of
//! the other spelling is a miss that nobody notices. So the builder of a table may say which
//! differences do not count ([`Normalization`]), and every client then treats its keys as the
//! builder did.
//!
//! In a table of [ranges](super::ranges), a key becomes the range that holds it.
//!
//! Normalising a key takes a time that depends on the key, as hashing does. Only the client sees
//! that time.

use super::ranges::Directory;
use privet_core::codec::Reader;
use privet_core::{Error, Result};
use std::borrow::Cow;

/// A table's rule from keys as people write them to keys as they are hashed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyForm {
    /// Which differences do not count. In a table of ranges, all count.
    pub normalization: Normalization,
    /// The ranges, where keys are points in them.
    pub ranges: Option<Directory>,
}

impl KeyForm {
    /// Whether keys are taken as they are.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// The key that is hashed for `key`.
    pub(super) fn apply<'k>(&self, key: &'k [u8]) -> Cow<'k, [u8]> {
        match &self.ranges {
            Some(directory) => Cow::Owned(directory.name_for(key).to_vec()),
            None => self.normalization.apply(key),
        }
    }

    /// Whether a key can have a value: not if there are ranges and none holds it.
    pub(super) fn has_place_for(&self, key: &[u8]) -> bool {
        self.ranges.as_ref().is_none_or(|directory| directory.holds(key))
    }

    /// The key to edit for a row: its normalised form. In a table of ranges, a row may name the
    /// bounds of its range.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the table has no such range.
    pub(crate) fn key_of_row<'k>(&self, key: &'k [u8]) -> Result<Cow<'k, [u8]>> {
        match &self.ranges {
            None => Ok(self.normalization.apply(key)),
            Some(directory) => directory.key_of_row(key).ok_or_else(no_such_range),
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match &self.ranges {
            None => out.extend_from_slice(&[PLAIN, self.normalization.bits()]),
            Some(directory) => {
                out.push(RANGES);
                directory.encode(out);
            }
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        match reader.u8()? {
            PLAIN => {
                let normalization = Normalization::from_bits(reader.u8()?)?;
                Ok(Self { normalization, ranges: None })
            }
            RANGES => Ok(Self { ranges: Some(Directory::decode(reader)?), ..Self::default() }),
            form => Err(invalid(format!("this program does not know keys of the form {form}"))),
        }
    }
}

const PLAIN: u8 = 0;
const RANGES: u8 = 1;

/// Differences between keys that do not count. They are removed in the order of the fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Normalization {
    /// White space at both ends.
    pub trim: bool,
    /// Upper or lower case: keys are hashed in this one.
    pub case: Option<Case>,
    /// All that is neither a letter nor a digit.
    pub alphanumeric: bool,
    /// How a decimal number is written: a plus sign, zeros before and after it, an exponent. A key
    /// that is no number stays as it is.
    pub number: bool,
}

/// Which case keys have when they are hashed. Each letter gets its own mapping by Unicode, whatever
/// stands beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Lower case.
    Lower,
    /// Upper case.
    Upper,
}

impl Normalization {
    /// What each step is called, in their order.
    pub const NAMES: [&str; 5] = ["trim", "lower", "upper", "alphanumeric", "number"];

    /// The names of the steps that are taken.
    pub fn names(self) -> Vec<&'static str> {
        let bits = self.bits();
        let taken = |step: &usize| bits >> step & 1 == 1;
        (0..Self::NAMES.len()).filter(taken).map(|step| Self::NAMES[step]).collect()
    }

    /// The normalisation with the steps of these names.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if a name is unknown, or if both cases
    /// are named.
    pub fn from_names<N: AsRef<str>>(names: &[N]) -> Result<Self> {
        let mut bits = 0;
        for name in names {
            let step = Self::NAMES.iter().position(|known| *known == name.as_ref());
            let step = step.ok_or_else(|| {
                Error::api_misuse(format!(
                    "keys cannot be normalised by {:?}; there are {}",
                    name.as_ref(),
                    Self::NAMES.join(", ")
                ))
            })?;
            bits |= 1 << step;
        }
        Self::from_bits(bits)
            .map_err(|_| Error::api_misuse("keys are in lower case or in upper case, not both"))
    }

    fn bits(self) -> u8 {
        let steps = [
            self.trim,
            self.case == Some(Case::Lower),
            self.case == Some(Case::Upper),
            self.alphanumeric,
            self.number,
        ];
        steps.into_iter().zip(0..).map(|(taken, step)| u8::from(taken) << step).sum()
    }

    fn from_bits(bits: u8) -> Result<Self> {
        let has = |step: u8| bits >> step & 1 == 1;
        let case = match (has(1), has(2)) {
            (true, true) => return Err(invalid("its keys are in both cases")),
            (true, false) => Some(Case::Lower),
            (false, true) => Some(Case::Upper),
            (false, false) => None,
        };
        if bits >> Self::NAMES.len() != 0 {
            return Err(invalid("this program does not know how its keys are normalised"));
        }
        Ok(Self { trim: has(0), case, alphanumeric: has(3), number: has(4) })
    }

    /// `key` without the differences that do not count. Bytes that are not UTF-8 stay as they are.
    pub fn apply(self, key: &[u8]) -> Cow<'_, [u8]> {
        if self == Self::default() {
            return Cow::Borrowed(key);
        }
        let Ok(text) = std::str::from_utf8(key) else { return Cow::Borrowed(key) };
        let mut text = Cow::Borrowed(if self.trim { text.trim() } else { text });
        text = match self.case {
            Some(Case::Lower) => text.chars().flat_map(char::to_lowercase).collect(),
            Some(Case::Upper) => text.chars().flat_map(char::to_uppercase).collect(),
            None => text,
        };
        if self.alphanumeric {
            text = text.chars().filter(|char| char.is_alphanumeric()).collect();
        }
        if self.number
            && let Some(number) = shortest_number(&text)
        {
            text = Cow::Owned(number);
        }
        match text {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        }
    }
}

/// The one way to write the decimal number in `text`: `1.5` for `+01.50` and `15e-1`. `None` if it
/// is no number, or would have more than 400 digits.
fn shortest_number(text: &str) -> Option<String> {
    const MOST_DIGITS: usize = 400;
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (rest, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Where the point stands, from the left.
    let mut point = i64::try_from(whole.len()).ok()? + i64::from(exponent);
    let leading = digits.len() - digits.trim_start_matches('0').len();
    digits.drain(..leading);
    point -= leading as i64;
    digits.truncate(digits.trim_end_matches('0').len());
    if digits.is_empty() {
        return Some("0".to_owned());
    }
    let digits_left = usize::try_from(point.max(0)).ok()?;
    let zeros_right = usize::try_from((-point).max(0)).ok()?;
    if digits.len().max(digits_left) + zeros_right > MOST_DIGITS {
        return None;
    }
    if zeros_right > 0 || digits_left == 0 {
        return Some(format!("{sign}0.{}{digits}", "0".repeat(zeros_right)));
    }
    if digits_left >= digits.len() {
        return Some(format!("{sign}{digits:0<digits_left$}"));
    }
    let (whole, fraction) = digits.split_at(digits_left);
    Some(format!("{sign}{whole}.{fraction}"))
}

/// The error for an edit of a range that the table does not have.
pub(super) fn no_such_range() -> Error {
    Error::api_misuse(
        "the table has no such range: new ranges come with a whole file that takes the place of all \
         rows, or with a table that is built anew",
    )
}

fn invalid(why: impl std::fmt::Display) -> Error {
    Error::invalid_message(format!("the key map is invalid: {why}"))
}
