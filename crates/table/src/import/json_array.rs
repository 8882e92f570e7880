//! One JSON array of objects, as lines: each of its elements becomes one.
//!
//! So an array of any length takes the memory of one element, and whatever reads lines reads it.

use super::compressed::first_bytes;
use super::text::Text;
use super::unreadable::Unreadable;
use std::io::{self, Cursor, Read};

/// The first character that is no white space is looked for among so many bytes.
const MOST_SPACE: usize = 1 << 12;

/// `input` as lines of JSON, and whether it is an array.
pub(super) fn as_lines<R: Read + 'static>(input: R) -> io::Result<(Box<dyn Read>, bool)> {
    let mut text = Text::new(input);
    let start = first_bytes(&mut text, MOST_SPACE)?;
    let is_array = start.trim_ascii_start().first() == Some(&b'[');
    let text = Cursor::new(start).chain(text);
    match is_array {
        true => Ok((Box::new(Elements { text, at: At::Before, elements: 0 }), true)),
        false => Ok((Box::new(text), false)),
    }
}

/// Gives each element of an array as a line.
struct Elements<R> {
    text: R,
    at: At,
    /// How many have ended.
    elements: u64,
}

/// Where in the array the reader is.
#[derive(Clone, Copy)]
enum At {
    /// Before its bracket.
    Before,
    /// Before the first character of an element.
    Between,
    /// In an element, within so many brackets.
    Inside(u64),
    /// In a string of an element; whether the next character is escaped.
    String(u64, bool),
    /// Behind its bracket.
    After,
}

impl<R> Elements<R> {
    /// What becomes of a byte: another, or nothing.
    fn take(&mut self, byte: u8) -> Result<Option<u8>, &'static str> {
        let is_space = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        let (at, out) = match (self.at, byte) {
            (At::String(..), b'\n') => {
                return Err("a string has a line break, which JSON writes as \\n");
            }
            (At::String(depth, true), _) => (At::String(depth, false), Some(byte)),
            (At::String(depth, false), b'\\') => (At::String(depth, true), Some(byte)),
            (At::String(depth, false), b'"') => (At::Inside(depth), Some(byte)),
            (At::String(..), _) => (self.at, Some(byte)),
            (At::Before | At::Between | At::After, _) if is_space => (self.at, None),
            (At::Before, _) => (At::Between, None),
            (At::Between, b']') if self.elements == 0 => (At::After, None),
            (At::Between, b',' | b']') => return Err("an element is missing beside a comma"),
            (At::Inside(0), b',') => (At::Between, Some(b'\n')),
            (At::Inside(0), b']') => (At::After, Some(b'\n')),
            (At::Inside(_), _) if is_space => (self.at, Some(b' ')),
            (At::Between | At::Inside(_), _) => {
                let depth = if let At::Inside(depth) = self.at { depth } else { 0 };
                let at = match byte {
                    b'"' => At::String(depth, false),
                    b'{' | b'[' => At::Inside(depth + 1),
                    b'}' | b']' => At::Inside(depth.saturating_sub(1)),
                    _ => At::Inside(depth),
                };
                (at, Some(byte))
            }
            (At::After, _) => return Err("something stands behind the end of the array"),
        };
        self.elements += u64::from(out == Some(b'\n'));
        self.at = at;
        Ok(out)
    }
}

impl<R: Read> Read for Elements<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.text.read(buffer)?;
            if count == 0 && !buffer.is_empty() && !matches!(self.at, At::After) {
                return Err(self.wrong("the array has no end; is the file cut off?"));
            }
            let mut kept = 0;
            for read in 0..count {
                if let Some(byte) = self.take(buffer[read]).map_err(|why| self.wrong(why))? {
                    buffer[kept] = byte;
                    kept += 1;
                }
            }
            if kept > 0 || count == 0 {
                return Ok(kept);
            }
        }
    }
}

impl<R> Elements<R> {
    fn wrong(&self, why: &str) -> io::Error {
        Unreadable::error(format!("after element {} of the JSON array: {why}", self.elements))
    }
}
