//! What becomes of a key before it is hashed.
//!
//! People write the same key in different ways: `A0-B1` and `a0b1`, `1.50` and `1.5`. A lookup of
//! the other spelling is a miss that nobody notices. So the builder of a table may say which
//! differences do not count ([`Normalization`]), and every client then treats its keys as the
//! builder did.
//!
//! If a builder and a client know different versions of Unicode, they treat a key alike unless it
//! has a character that one of them does not know yet. (So Unicode promises for `nfc` and `fold`;
//! for the other steps there were a few exceptions, all of rare letters.)
//!
//! In a table of [ranges](super::ranges), a key becomes the range that holds it. Where keys are
//! [written](super::key_format) in hexadecimal or base64, a key becomes its bytes.
//!
//! Normalising a key takes a time that depends on the key, as hashing does. Only the client sees
//! that time.

use super::key_format::{KeyFormat, malformed};
use super::ranges::{Directory, RowKey};
use super::unicode::{nfc, nfd};
use privet_core::codec::Reader;
use privet_core::{Error, Reason, Result};
use std::borrow::Cow;

/// A table's rule from keys as people write them to keys as they are hashed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyForm {
    /// How keys are written. In a table of ranges, as text.
    pub format: KeyFormat,
    /// Which differences do not count. In a table of ranges, and where keys are not written as
    /// text, all count.
    pub normalization: Normalization,
    /// The ranges, where keys are points in them.
    pub ranges: Option<Directory>,
}

impl KeyForm {
    /// Whether keys are taken as they are.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// The key that somebody wrote as `written`.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) with
    /// [`Reason::MalformedKey`](privet_core::Reason::MalformedKey) if the table can have no such
    /// key: it is not written in the table's format, or is no point in a table of ranges. The
    /// message says why, without the key.
    pub fn read<'k>(&self, written: &'k [u8]) -> Result<Cow<'k, [u8]>> {
        self.check(written)?;
        self.format.read(written)
    }

    /// Refuses what is no point, in a table of ranges.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn check(&self, key: &[u8]) -> Result<()> {
        match &self.ranges {
            Some(directory) => directory.points().check(key).map_err(malformed),
            None => Ok(()),
        }
    }

    /// The key that is hashed for `key`.
    pub(super) fn apply<'k>(&self, key: &'k [u8]) -> Cow<'k, [u8]> {
        match &self.ranges {
            Some(directory) => Cow::Owned(directory.name_for(key).to_vec()),
            None => self.normalization.apply(key),
        }
    }

    /// Refuses to edit a key alone whose row may answer for more.
    ///
    /// # Errors
    /// [`Reason::RangesNested`] if ranges were nested.
    pub(crate) fn check_edited_alone(&self) -> Result<()> {
        if !self.ranges.as_ref().is_some_and(Directory::is_nested) {
            return Ok(());
        }
        Err(Error::api_misuse(
            "the ranges of this table lie in one another, so a row may answer for several pieces, \
             and a change would meet one of them alone: replace all rows by those of a whole file",
        )
        .because(Reason::RangesNested))
    }

    /// Whether a key can have a value: not if there are ranges and none holds it.
    pub(super) fn has_place_for(&self, key: &[u8]) -> bool {
        self.ranges.as_ref().is_none_or(|directory| directory.holds(key))
    }

    /// The key to edit for a row: its normalised form. In a table of ranges, a row may name the
    /// bounds of its range; `None` if the table has no such range.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) fn key_of_row<'k>(&self, row: RowKey<'k>) -> Result<Option<Cow<'k, [u8]>>> {
        match &self.ranges {
            None => Ok(Some(match self.format.read(row.key)? {
                Cow::Borrowed(key) => self.normalization.apply(key),
                key => key,
            })),
            Some(directory) => directory.key_of_row(row),
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match (&self.ranges, self.format) {
            (None, KeyFormat::Text) => out.extend_from_slice(&[PLAIN, self.normalization.bits()]),
            (None, format) => out.extend_from_slice(&[FORMATTED, format.code()]),
            (Some(directory), _) => {
                out.push(if directory.is_nested() { NESTED_RANGES } else { RANGES });
                directory.encode(out);
            }
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        match reader.u8()? {
            PLAIN => {
                let normalization = Normalization::from_bits(reader.u8()?)?;
                Ok(Self { normalization, ..Self::default() })
            }
            form @ (RANGES | NESTED_RANGES) => {
                let directory = Directory::decode(reader, form == NESTED_RANGES)?;
                Ok(Self { ranges: Some(directory), ..Self::default() })
            }
            FORMATTED => {
                let code = reader.u8()?;
                let mut formats = [KeyFormat::Hex, KeyFormat::Base64].into_iter();
                let format = formats.find(|format| format.code() == code);
                let format = format.ok_or_else(|| {
                    invalid("this program does not know how its keys are written")
                })?;
                Ok(Self { format, ..Self::default() })
            }
            form => Err(invalid(format!("this program does not know keys of the form {form}"))),
        }
    }
}

const PLAIN: u8 = 0;
const RANGES: u8 = 1;
const FORMATTED: u8 = 2;
const NESTED_RANGES: u8 = 3;

/// Differences between keys that do not count. They are removed in the order of the fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Normalization {
    /// White space at both ends.
    pub trim: bool,
    /// White space and characters of no width at both ends: joiners, marks of direction, and such.
    pub trim_invisible: bool,
    /// Whether letters are composed or decomposed: keys are in Normalization Form C. They are
    /// decomposed before their case is changed, and composed after it.
    pub nfc: bool,
    /// Upper or lower case: keys are hashed in this one.
    pub case: Option<Case>,
    /// All that is neither a letter nor a digit.
    pub alphanumeric: bool,
    /// How a decimal number is written: a plus sign, zeros before and after it, an exponent. A key
    /// that is no number stays as it is.
    pub number: bool,
}

/// Which case keys have when they are hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Lower case. Each letter gets its own mapping by Unicode, whatever stands beside it.
    Lower,
    /// Upper case, in the same way.
    Upper,
    /// Neither: Unicode's full case folding, for which `ß` is `ss`, and `ς` at the end of a word is
    /// `σ`.
    Folded,
}

impl Normalization {
    /// What each step is called, in the order of their bits.
    pub const NAMES: [&str; 8] =
        ["trim", "lower", "upper", "alphanumeric", "number", "nfc", "fold", "trim-invisible"];

    /// The names of the steps that are taken.
    pub fn names(self) -> Vec<&'static str> {
        let bits = self.bits();
        let taken = |step: &usize| bits >> step & 1 == 1;
        (0..Self::NAMES.len()).filter(taken).map(|step| Self::NAMES[step]).collect()
    }

    /// The normalisation with the steps of these names.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if a name is unknown, or if several
    /// cases are named.
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
        Self::from_bits(bits).map_err(|_| {
            Error::api_misuse("keys have one case: name one of lower, upper and fold, not several")
        })
    }

    fn bits(self) -> u8 {
        let steps = [
            self.trim,
            self.case == Some(Case::Lower),
            self.case == Some(Case::Upper),
            self.alphanumeric,
            self.number,
            self.nfc,
            self.case == Some(Case::Folded),
            self.trim_invisible,
        ];
        steps.into_iter().zip(0..).map(|(taken, step)| u8::from(taken) << step).sum()
    }

    fn from_bits(bits: u8) -> Result<Self> {
        let has = |step: u8| bits >> step & 1 == 1;
        let case = match (has(1), has(2), has(6)) {
            (false, false, false) => None,
            (true, false, false) => Some(Case::Lower),
            (false, true, false) => Some(Case::Upper),
            (false, false, true) => Some(Case::Folded),
            _ => return Err(invalid("its keys are in several cases")),
        };
        let (trim, alphanumeric, number, nfc) = (has(0), has(3), has(4), has(5));
        Ok(Self { trim, trim_invisible: has(7), nfc, case, alphanumeric, number })
    }

    /// `key` without the differences that do not count. Bytes that are not UTF-8 stay as they are.
    pub fn apply(self, key: &[u8]) -> Cow<'_, [u8]> {
        if self == Self::default() {
            return Cow::Borrowed(key);
        }
        let Ok(text) = std::str::from_utf8(key) else { return Cow::Borrowed(key) };
        let mut text = Cow::Borrowed(match (self.trim, self.trim_invisible) {
            (_, true) => text.trim_matches(|char: char| char.is_whitespace() || is_invisible(char)),
            (true, false) => text.trim(),
            (false, false) => text,
        });
        if self.nfc && self.case.is_some() {
            text = Cow::Owned(nfd(&text));
        }
        text = match self.case {
            Some(Case::Lower) => text.chars().flat_map(char::to_lowercase).collect(),
            Some(Case::Upper) => text.chars().flat_map(char::to_uppercase).collect(),
            Some(Case::Folded) => Cow::Owned(unicase::UniCase::unicode(text).to_folded_case()),
            None => text,
        };
        if self.nfc {
            text = Cow::Owned(nfc(&text));
        }
        if self.alphanumeric {
            text = text.chars().filter(|char| char.is_alphanumeric()).collect();
            // What stood between two letters may have kept them apart.
            if self.nfc {
                text = Cow::Owned(nfc(&text));
            }
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

/// Characters of no width that say nothing at the end of a key: joiners, marks of direction, byte
/// order marks, soft hyphens. The list is part of what `trim-invisible` means, and stays.
/// (Selectors and tags are not in it: they change the look of the character before them.)
fn is_invisible(char: char) -> bool {
    matches!(char, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
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
pub(crate) fn no_such_range() -> Error {
    Error::api_misuse(
        "the table has no such range: new ranges come with a whole file that takes the place of all \
         rows, or with a table that is built anew",
    )
    .because(Reason::DoesNotFit)
}

fn invalid(why: impl std::fmt::Display) -> Error {
    Error::invalid_message(format!("the key map is invalid: {why}"))
}
