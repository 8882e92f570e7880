//! How people write keys that are no text.
//!
//! Hashes, identifiers and nullifiers are bytes. Nobody can type them, and a list of lines cannot
//! hold those with a line end in them. So a table says how its keys are written: as they are, in
//! hexadecimal, or in base64. Every client reads keys in that form, and every message shows them in
//! it. What is hashed is the bytes.

use crate::choice::{Choice, name_of};
use data_encoding::{BASE64, BASE64_NOPAD, HEXLOWER, HEXLOWER_PERMISSIVE};
use privet_core::{Error, Reason, Result};
use std::borrow::Cow;

/// How the keys of a table are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyFormat {
    /// As they are.
    #[default]
    Text,
    /// Two hexadecimal digits for each byte, in upper or lower case, with or without `0x` before
    /// them.
    Hex,
    /// Base64, of the standard alphabet or of the one for URLs, with or without padding.
    Base64,
}

impl KeyFormat {
    /// All formats, as people choose them.
    pub const CHOICES: [Choice<Self>; 3] = [
        Choice::new(Self::Text, "text", "As they are"),
        Choice::new(
            Self::Hex,
            "hex",
            "Two digits for each byte, in upper or lower case, with or without 0x",
        ),
        Choice::new(Self::Base64, "base64", "Also as it stands in URLs, with or without padding"),
    ];

    /// The format's name.
    pub fn name(self) -> &'static str {
        name_of(&Self::CHOICES, &self)
    }

    /// The key that is written as `written`.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) with [`Reason::MalformedKey`] if it is
    /// not written in this format. The message does not have the key in it.
    pub fn read(self, written: &[u8]) -> Result<Cow<'_, [u8]>> {
        match self {
            Self::Text => Ok(Cow::Borrowed(written)),
            Self::Hex => {
                let digits = written.trim_ascii();
                let digits = digits.strip_prefix(b"0x").or(digits.strip_prefix(b"0X"));
                let digits = digits.unwrap_or(written.trim_ascii());
                let read = HEXLOWER_PERMISSIVE.decode(digits).map(Cow::Owned);
                read.map_err(|_| {
                    malformed("this is no hexadecimal key: write two of 0-9 and a-f for each byte")
                })
            }
            Self::Base64 => {
                let mut letters = written.trim_ascii().to_vec();
                for letter in &mut letters {
                    *letter = match *letter {
                        b'-' => b'+',
                        b'_' => b'/',
                        other => other,
                    };
                }
                let encoding = if letters.ends_with(b"=") { BASE64 } else { BASE64_NOPAD };
                encoding
                    .decode(&letters)
                    .map(Cow::Owned)
                    .map_err(|_| malformed("this is no key in base64"))
            }
        }
    }

    /// `key` as it is written: what [`read`](Self::read) reads back.
    pub fn write(self, key: &[u8]) -> Cow<'_, [u8]> {
        match self {
            Self::Text => Cow::Borrowed(key),
            Self::Hex => Cow::Owned(format!("0x{}", HEXLOWER.encode(key)).into_bytes()),
            Self::Base64 => Cow::Owned(BASE64.encode(key).into_bytes()),
        }
    }

    /// A key for people: text stands in quotes, bytes that are no text are in hexadecimal without
    /// them, and all keys of another format are in that one. So no two short keys of a table look
    /// the same. Of a long key, the beginning is shown.
    pub fn shown(self, key: &[u8]) -> String {
        match (self, std::str::from_utf8(key)) {
            (Self::Text, Ok(text)) => quoted(text),
            (Self::Base64, _) => shortened(BASE64.encode(key)),
            _ => shortened(format!("0x{}", HEXLOWER.encode(key))),
        }
    }

    pub(super) fn code(self) -> u8 {
        match self {
            Self::Text => 0,
            Self::Hex => 1,
            Self::Base64 => 2,
        }
    }
}

/// A text from outside, in quotes, with anything unprintable escaped, cut to a readable length.
pub(crate) fn quoted(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", &text[..end]),
    }
}

/// The beginning of a long key.
fn shortened(mut written: String) -> String {
    const MOST: usize = 82;
    if written.len() > MOST {
        written.truncate(MOST);
        written.push('…');
    }
    written
}

/// The error for a key that no table of this form can have. `why` must not have the key in it.
pub(super) fn malformed(why: &str) -> Error {
    Error::api_misuse(why).because(Reason::MalformedKey)
}
