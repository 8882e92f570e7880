//! What the keys of a table look like, for people who have to type them.
//!
//! A lookup of a key that is written differently, say in lower case or with a space at the end,
//! finds nothing and reports no error. Showing what all keys have in common helps people to notice.

use crate::key_map::KeyFormat;
use serde::Serialize;

/// How many keys are shown.
const SHOWN: usize = 3;

/// Up to this many different signs are listed one by one.
const LISTED_SIGNS: usize = 6;

/// What all keys of a table have in common.
#[derive(Clone, Debug, Default, Serialize)]
pub struct KeyShape {
    /// The length of the shortest key in bytes.
    pub shortest: u64,
    /// The length of the longest key in bytes.
    pub longest: u64,
    /// The kinds of characters in the keys, such as `upper-case letters, digits and "-"`.
    pub characters: String,
    /// How many keys begin or end with white space.
    pub spaced: u64,
    /// The first three keys, [shown](KeyFormat::shown) as the table's keys are written.
    pub first: Vec<String>,
}

/// Which characters occur.
#[derive(Clone, Debug, Default)]
struct Characters {
    digits: bool,
    /// a to f, and g to z.
    lower: [bool; 2],
    upper: [bool; 2],
    /// Signs and spaces, in the order in which they came.
    signs: Vec<char>,
    /// White space and control characters other than the space.
    controls: bool,
    beyond_ascii: bool,
    no_text: bool,
}

impl KeyShape {
    /// The shape of these keys, which are written in this format.
    pub(super) fn of<'a>(format: KeyFormat, keys: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut shape = Self { shortest: u64::MAX, ..Self::default() };
        let mut characters = Characters::default();
        for key in keys {
            shape.add(format, key, &mut characters);
        }
        shape.shortest = shape.shortest.min(shape.longest);
        shape.characters = match format {
            KeyFormat::Text => characters.words(),
            KeyFormat::Hex => "bytes, written in hexadecimal".to_owned(),
            KeyFormat::Base64 => "bytes, written in base64".to_owned(),
        };
        shape
    }

    fn add(&mut self, format: KeyFormat, key: &[u8], characters: &mut Characters) {
        let len = key.len() as u64;
        (self.shortest, self.longest) = (self.shortest.min(len), self.longest.max(len));
        if self.first.len() < SHOWN {
            self.first.push(format.shown(key));
        }
        if format != KeyFormat::Text {
            return;
        }
        match std::str::from_utf8(key) {
            Ok(text) => {
                self.spaced += u64::from(text.trim().len() < text.len());
                text.chars().for_each(|character| characters.add(character));
            }
            Err(_) => characters.no_text = true,
        }
    }
}

impl Characters {
    fn add(&mut self, character: char) {
        match character {
            '0'..='9' => self.digits = true,
            'a'..='z' => self.lower[usize::from(character > 'f')] = true,
            'A'..='Z' => self.upper[usize::from(character > 'F')] = true,
            ' '..='~' => {
                if self.signs.len() <= LISTED_SIGNS && !self.signs.contains(&character) {
                    self.signs.push(character);
                }
            }
            '\0'..='\x7f' => self.controls = true,
            _ => self.beyond_ascii = true,
        }
    }

    fn words(&self) -> String {
        let mut words: Vec<String> = Vec::new();
        let (lower, upper) = (self.lower != [false; 2], self.upper != [false; 2]);
        let is_hex = self.digits && (lower || upper) && !self.lower[1] && !self.upper[1];
        let case = match (lower, upper) {
            (true, false) => "lower-case ",
            (false, true) => "upper-case ",
            _ => "",
        };
        if is_hex {
            words.push(format!("{case}hexadecimal digits"));
        } else {
            if lower || upper {
                words.push(format!("{case}letters"));
            }
            if self.digits {
                words.push("digits".to_owned());
            }
        }
        if lower
            && upper
            && let Some(word) = words.first_mut()
        {
            word.push_str(" of both cases");
        }
        if self.signs.len() > LISTED_SIGNS {
            words.push("signs".to_owned());
        } else {
            words.extend(self.signs.iter().map(|sign| match sign {
                ' ' => "spaces".to_owned(),
                sign => format!("\"{sign}\""),
            }));
        }
        if self.controls {
            words.push("control characters".to_owned());
        }
        if self.beyond_ascii {
            words.push("characters beyond ASCII".to_owned());
        }
        if self.no_text {
            words.push("bytes that are no text".to_owned());
        }
        match words.as_slice() {
            [] => "nothing".to_owned(),
            [one] => one.clone(),
            [others @ .., last] => format!("{} and {last}", others.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_described_by_what_they_are_made_of() {
        for (keys, characters) in [
            (&["Austria", "Peru"][..], "letters of both cases"),
            (&["austria", "peru"], "lower-case letters"),
            (&["08", "15"], "digits"),
            (&["1.50", "2.00"], "digits and \".\""),
            (&["da39a3", "ffffff"], "lower-case hexadecimal digits"),
            (&["DA39A3", "00"], "upper-case hexadecimal digits"),
            (&["DA39a3"], "hexadecimal digits of both cases"),
            (&["fade"], "lower-case letters"),
            (&["08-00-2B", "AC-DE-48"], "upper-case hexadecimal digits and \"-\""),
            (&["x1", "it's a"], "lower-case letters, digits, \"'\" and spaces"),
            (&["a+b-c*d/e=f.g,h"], "lower-case letters and signs"),
            (&["Zürich"], "letters of both cases and characters beyond ASCII"),
            (&["a\tb"], "lower-case letters and control characters"),
            (&["\""], "\"\"\""),
        ] {
            let shape = KeyShape::of(KeyFormat::Text, keys.iter().map(|key| key.as_bytes()));
            assert_eq!(shape.characters, characters, "{keys:?}");
        }
        let bytes = KeyShape::of(KeyFormat::Text, [&b"\xff\x00"[..]].into_iter());
        assert_eq!(bytes.characters, "bytes that are no text");
        assert_eq!(bytes.first, ["0xff00"]);
    }

    #[test]
    fn lengths_spaces_and_the_first_keys_are_told() {
        let keys = ["abc", " de", "f\u{a0}", "g h", "ijklm "];
        let shape = KeyShape::of(KeyFormat::Text, keys.iter().map(|key| key.as_bytes()));
        assert_eq!((shape.shortest, shape.longest, shape.spaced), (3, 6, 3));
        assert_eq!(shape.first, ["\"abc\"", "\" de\"", "\"f\\u{a0}\""]);
        let none = KeyShape::of(KeyFormat::Text, [].into_iter());
        assert_eq!((none.shortest, none.longest, &*none.characters), (0, 0, "nothing"));
    }
}
