//! Text of any usual encoding as UTF-8.
//!
//! Spreadsheets and shells of Windows write UTF-16, and byte order marks before UTF-8. A mark is
//! dropped. UTF-16 becomes UTF-8, also without a mark, if its first two characters are of ASCII.
//! Whether text without a mark is UTF-8 is for whoever reads its lines.

use super::compressed::first_bytes;
use super::unreadable::Unreadable;
use std::io::{self, Chain, Cursor, Read};

/// An encoding is recognised by at most this many bytes.
const MOST_BYTES: usize = 8;

/// Text as UTF-8.
pub(super) enum Text<R> {
    /// Nothing was read yet.
    Unopened(Option<R>),
    /// UTF-8, or something else that is passed on as it is.
    Plain(Chain<Cursor<Vec<u8>>, R>),
    /// UTF-16.
    Wide(Wide<Chain<Cursor<Vec<u8>>, R>>),
}

impl<R: Read> Text<R> {
    pub(super) fn new(input: R) -> Self {
        Text::Unopened(Some(input))
    }

    /// Looks at the first bytes.
    fn opened(mut input: R) -> io::Result<Self> {
        let first = first_bytes(&mut input, MOST_BYTES)?;
        let (mark, is_wide) = match first.as_slice() {
            [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => {
                return Err(Unreadable::error("it is UTF-32; convert it to UTF-8 first"));
            }
            // A CSV file may begin with these letters, but no control character follows them.
            [b'P', b'A', b'R', b'1', 0..=8 | 14..=31, ..] => {
                return Err(Unreadable::error(
                    "this is a Parquet file; read it as one, and not as text",
                ));
            }
            [0xef, 0xbb, 0xbf, ..] => (3, None),
            [0xff, 0xfe, ..] => (2, Some(false)),
            [0xfe, 0xff, ..] => (2, Some(true)),
            [1..=255, 0, 1..=255, 0, ..] => (0, Some(false)),
            [0, 1..=255, 0, 1..=255, ..] => (0, Some(true)),
            _ => (0, None),
        };
        let mut first = Cursor::new(first);
        first.set_position(mark);
        let input = first.chain(input);
        Ok(match is_wide {
            None => Text::Plain(input),
            Some(is_big_endian) => Text::Wide(Wide::new(input, is_big_endian, mark)),
        })
    }
}

impl<R: Read> Read for Text<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Text::Unopened(input) = self {
            let Some(input) = input.take() else { return Ok(0) };
            *self = Self::opened(input)?;
        }
        match self {
            Text::Unopened(_) => Ok(0),
            Text::Plain(input) => input.read(buffer),
            Text::Wide(wide) => wide.read(buffer),
        }
    }
}

/// UTF-16 as UTF-8.
pub(super) struct Wide<R> {
    input: R,
    is_big_endian: bool,
    /// Bytes that were read and make no whole character yet.
    raw: Vec<u8>,
    /// The number of the first of them in the input, from 0.
    position: u64,
    /// UTF-8 that was not asked for yet.
    ready: Cursor<Vec<u8>>,
}

/// How many bytes of UTF-16 are read at a time.
const WIDE_BYTES: usize = 1 << 14;

impl<R: Read> Wide<R> {
    fn new(input: R, is_big_endian: bool, position: u64) -> Self {
        Self { input, is_big_endian, raw: Vec::new(), position, ready: Cursor::default() }
    }

    /// Reads on. `false` at the end.
    fn fill(&mut self) -> io::Result<bool> {
        let count = self.input.by_ref().take(WIDE_BYTES as u64).read_to_end(&mut self.raw)?;
        let pair = |pair: &[u8]| match self.is_big_endian {
            true => u16::from_be_bytes([pair[0], pair[1]]),
            false => u16::from_le_bytes([pair[0], pair[1]]),
        };
        let mut units: Vec<u16> = self.raw.chunks_exact(2).map(pair).collect();
        // The other half of a pair of surrogates may come with the next bytes.
        if count > 0 && units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit)) {
            units.pop();
        }
        let mut text = String::new();
        let mut bytes = 0;
        for character in char::decode_utf16(units) {
            match character {
                Ok(character) => {
                    text.push(character);
                    bytes += 2 * character.len_utf16();
                }
                Err(_) => {
                    return Err(Unreadable::error(format!(
                        "it is UTF-16, and byte {} begins no character: it is damaged, or of another encoding; convert it to UTF-8 first",
                        self.position + bytes as u64 + 1
                    )));
                }
            }
        }
        self.raw.drain(..bytes);
        self.position += bytes as u64;
        self.ready = Cursor::new(text.into_bytes());
        if count == 0 && !self.raw.is_empty() {
            return Err(Unreadable::error(
                "it is UTF-16, and ends within a character: it was cut off; copy or write it again",
            ));
        }
        Ok(count > 0)
    }
}

impl<R: Read> Read for Wide<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.ready.read(buffer)?;
            if count > 0 || buffer.is_empty() || !self.fill()? {
                return Ok(count);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives out a byte at a time.
    struct Drops<'a>(&'a [u8]);

    impl Read for Drops<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let len = buffer.len().min(1);
            self.0.read(&mut buffer[..len])
        }
    }

    fn text_of(bytes: &[u8]) -> Result<String, String> {
        let mut text = String::new();
        let read = Text::new(Drops(bytes)).read_to_string(&mut text);
        read.map(|_| text).map_err(|error| Unreadable::of(&error).unwrap())
    }

    fn wide(text: &str, is_big_endian: bool) -> Vec<u8> {
        let bytes = |unit: u16| match is_big_endian {
            true => unit.to_be_bytes(),
            false => unit.to_le_bytes(),
        };
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn marks_are_dropped_and_utf_16_becomes_utf_8() {
        // Longer than what is read at a time, with pairs of surrogates at its borders.
        let text = format!("id,{}\n", "\u{1f511}é,".repeat(WIDE_BYTES / 3));
        for marked in [true, false] {
            let mark = if marked { "\u{feff}" } else { "" };
            let text_with_mark = format!("{mark}{text}");
            assert_eq!(text_of(text_with_mark.as_bytes()).as_ref(), Ok(&text));
            for is_big_endian in [true, false] {
                assert_eq!(text_of(&wide(&text_with_mark, is_big_endian)).as_ref(), Ok(&text));
            }
        }
        for short in ["", "a", "\u{feff}", "PAR1,a\n"] {
            assert_eq!(text_of(short.as_bytes()), Ok(short.replace('\u{feff}', "")));
        }
    }

    #[test]
    fn damaged_utf_16_is_no_text() {
        let text = wide("\u{feff}ab\u{1f511}c", false);
        assert!(text_of(&text[..text.len() - 1]).unwrap_err().contains("ends within a character"));
        assert!(text_of(&text[..text.len() - 4]).unwrap_err().contains("byte 7 begins no"));
        let lone = [&text[..6], &text[8..]].concat();
        assert!(text_of(&lone).unwrap_err().contains("byte 7 begins no character"));
        let other = wide("\u{feff}a", false);
        assert!(text_of(&[&other[..2], &[0, 0][..]].concat()).unwrap_err().contains("UTF-32"));
    }
}
