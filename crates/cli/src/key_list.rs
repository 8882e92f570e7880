//! Lists of keys: one on each line of a file or of standard input.
//!
//! A list is read as a table is: with a byte order mark or without, in UTF-8 or UTF-16, compressed
//! or not, and with the line ends of any system. A line that is not UTF-8 is an error, since it
//! would be another key than the one that was meant.
//!
//! A thread reads lines while others are looked up, a bounded number ahead. A regular file is read
//! to its end once before, so that nothing of it is looked up if it cannot be read. From a pipe or
//! a terminal, each line counts as soon as it has its end.

use crate::display;
use privet_core::{Error, Reason, Result};
use privet_table::import::{Source, cannot_read, text_of};
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, ErrorKind, Read, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Instant;

/// How many lines are read ahead.
const AHEAD: usize = 1024;

/// The lines of a file or of standard input, one key each.
pub(crate) struct KeyLines {
    path: PathBuf,
    /// How many keys there are, if it is a regular file, which holds all its lines already.
    pub(crate) in_file: Option<u64>,
    read: Receiver<Result<Vec<u8>>>,
    /// How many lines were taken.
    number: u64,
    blank: u64,
}

impl KeyLines {
    /// Opens a list; `-` is standard input.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it cannot be opened or, as a regular
    /// file, cannot be read to its end.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Self::start(path, None, std::io::stdin());
        }
        let failed = |error| unreadable(path, error);
        let mut file = File::open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Self::start(path, None, file);
        }
        let again = file.try_clone().map_err(failed)?;
        let mut splitter = Splitter::new(path, again)?;
        let (mut keys, mut line) = (0, Vec::new());
        while splitter.next_line(&mut line)? {
            keys += u64::from(!line.is_empty());
        }
        file.rewind().map_err(failed)?;
        Self::start(path, Some(keys), file)
    }

    /// A list that is read from `input`.
    #[cfg(test)]
    pub(crate) fn reading(input: impl Read + Send + 'static) -> Self {
        Self::start(Path::new("keys"), None, input).unwrap()
    }

    fn start(path: &Path, in_file: Option<u64>, input: impl Read + Send + 'static) -> Result<Self> {
        let (sender, read) = sync_channel(AHEAD);
        let named = path.to_owned();
        let thread = std::thread::Builder::new().name("keys".to_owned());
        // The thread is not joined, since it may be blocked on input. It ends once nobody receives
        // its lines.
        let started = thread.spawn(move || send_lines(&named, input, &sender));
        started.map_err(|error| Error::unavailable("no thread to read keys").caused_by(error))?;
        Ok(Self { path: path.to_owned(), in_file, read, number: 0, blank: 0 })
    }

    /// The next key. Waits for it, and returns `None` if there are no more.
    ///
    /// # Errors
    /// If it cannot be read, or did not come until `end`.
    pub(crate) fn wait(&mut self, end: Option<Instant>) -> Result<Option<Vec<u8>>> {
        loop {
            let line = match end {
                None => self.read.recv().ok(),
                Some(end) => match self.read.recv_timeout(end - Instant::now()) {
                    Ok(line) => Some(line),
                    Err(RecvTimeoutError::Disconnected) => None,
                    Err(RecvTimeoutError::Timeout) => {
                        let late = Error::unavailable("no more keys came in the time allowed");
                        return Err(late.because(Reason::TimeIsUp));
                    }
                },
            };
            let Some(key) = line.transpose()? else { return Ok(None) };
            self.number += 1;
            match key.is_empty() {
                true => self.blank += 1,
                false => return Ok(Some(key)),
            }
        }
    }

    /// The number of the line that was taken last, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// A note about skipped lines, if there were any.
    pub(crate) fn skipped(&self) -> Option<String> {
        if self.blank == 0 {
            return None;
        }
        let lines = display::some(self.blank, "blank line", "blank lines");
        Some(format!("skipped {lines} of {}", self.name()))
    }

    /// What the lines are of: the name of a file, or standard input.
    pub(crate) fn name(&self) -> String {
        name(&self.path)
    }
}

/// All keys in a file, one on each line, or in standard input for `-`. Also returns a note about
/// skipped lines.
///
/// # Errors
/// As [`KeyLines::open`] and [`KeyLines::wait`].
pub(crate) fn keys_from(path: &Path) -> Result<(Vec<Vec<u8>>, Option<String>)> {
    let mut lines = KeyLines::open(path)?;
    let mut keys = Vec::new();
    while let Some(key) = lines.wait(None)? {
        keys.push(key);
    }
    Ok((keys, lines.skipped()))
}

fn name(path: &Path) -> String {
    Source::path(path).name()
}

fn unreadable(path: &Path, error: std::io::Error) -> Error {
    Error::api_misuse(format!("cannot read keys from {}", path.display())).caused_by(error)
}

fn send_lines(path: &Path, input: impl Read + 'static, lines: &SyncSender<Result<Vec<u8>>>) {
    let mut splitter = Splitter::new(path, input);
    loop {
        let mut line = Vec::new();
        let read = match &mut splitter {
            Ok(splitter) => splitter.next_line(&mut line),
            Err(error) => Err(error.clone()),
        };
        let Some(read) = read.map(|there| there.then_some(line)).transpose() else { return };
        let failed = read.is_err();
        if lines.send(read).is_err() || failed {
            return;
        }
    }
}

/// Splits text into lines, which end with a line feed, a carriage return, or both.
struct Splitter<'a> {
    path: &'a Path,
    input: BufReader<Box<dyn Read>>,
    /// Whether the last line ended with a carriage return. A line feed after it is of the same end.
    after_return: bool,
    number: u64,
}

impl<'a> Splitter<'a> {
    fn new(path: &'a Path, mut input: impl Read + 'static) -> Result<Self> {
        let first = first_line(&mut input).map_err(|error| unreadable(path, error))?;
        let is_plain = is_plain(&first);
        let whole = Cursor::new(first).chain(input);
        // Looking for what else it may be would wait for more bytes.
        let text: Box<dyn Read> = match is_plain {
            true => Box::new(whole),
            false => Box::new(text_of(whole).map_err(|error| error.within(name(path)))?),
        };
        Ok(Self { path, input: BufReader::new(text), after_return: false, number: 0 })
    }

    /// Reads a line without its end. Returns whether there was one to read.
    fn next_line(&mut self, line: &mut Vec<u8>) -> Result<bool> {
        line.clear();
        loop {
            let available = match self.input.fill_buf() {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read.map_err(|error| cannot_read(error).within(name(self.path)))?,
            };
            if available.is_empty() {
                break;
            }
            let begins_with_feed = available[0] == b'\n';
            if std::mem::take(&mut self.after_return) && begins_with_feed {
                self.input.consume(1);
                continue;
            }
            let end = available.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            line.extend_from_slice(&available[..end.unwrap_or(available.len())]);
            self.after_return = end.is_some_and(|end| available[end] == b'\r');
            let taken = end.map_or(available.len(), |end| end + 1);
            self.input.consume(taken);
            if end.is_some() {
                return self.check(line).map(|()| true);
            }
        }
        self.check(line).map(|()| !line.is_empty())
    }

    /// Refuses a line that is no text.
    fn check(&mut self, line: &[u8]) -> Result<()> {
        self.number += 1;
        let Err(error) = std::str::from_utf8(line) else { return Ok(()) };
        Err(Error::api_misuse(format!(
            "{}: line {}: byte {} is not UTF-8 (is this Latin-1 or Windows-1252?); convert the list to UTF-8 first",
            name(self.path),
            self.number,
            error.valid_up_to() + 1
        )))
    }
}

/// The beginning of an input, up to where its first line ends at the latest. It does not wait for
/// bytes after that: somebody may type them.
fn first_line(input: &mut impl Read) -> std::io::Result<Vec<u8>> {
    /// A longer beginning says no more.
    const ENOUGH: usize = 256;
    let mut first = Vec::new();
    let mut some = [0; ENOUGH];
    while first.len() < ENOUGH && !first.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        match input.read(&mut some) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(0) => break,
            Ok(count) => first.extend_from_slice(&some[..count]),
        }
    }
    Ok(first)
}

/// Whether text begins with these bytes that can be taken as it is: UTF-8, without a mark, and with
/// no byte that only other kinds of files have.
fn is_plain(first: &[u8]) -> bool {
    let len = match std::str::from_utf8(first) {
        Ok(text) => text.len(),
        // The last character may go on.
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Err(_) => return false,
    };
    let is_of_others =
        |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r');
    !first.starts_with(b"\xef\xbb\xbf") && !first[..len].iter().any(is_of_others)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys of a list, or what is wrong with it.
    fn keys(list: impl AsRef<[u8]>) -> std::result::Result<Vec<String>, String> {
        let mut lines = KeyLines::reading(Cursor::new(list.as_ref().to_vec()));
        let mut keys = Vec::new();
        while let Some(key) = lines.wait(None).map_err(|error| error.to_string())? {
            keys.push(String::from_utf8(key).unwrap());
        }
        Ok(keys)
    }

    /// The text of the test below, compressed.
    const GZIP: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03K:\xbc'9#\xb5H/\
        \xb5\x221\xb7 '\x95+1\xa5\x18\xce\x06\x00\xc4\xee\x8e\xb3\x1c\x00\x00\x00";

    fn wide(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn lines_end_as_on_any_system() {
        for list in ["a b\nc\n\n d", "a b\r\nc\r\n\r\n d\r\n", "a b\rc\r\r d\r", "a b\rc\r\n\n d"] {
            let mut lines = KeyLines::reading(list.as_bytes());
            for (key, number) in [("a b", 1), ("c", 2), (" d", 4)] {
                assert_eq!(lines.wait(None).unwrap().unwrap(), key.as_bytes(), "{list:?}");
                assert_eq!(lines.number(), number, "{list:?}");
            }
            assert!(lines.wait(None).unwrap().is_none());
            assert_eq!(lines.skipped().unwrap(), "skipped 1 blank line of keys");
        }
        assert_eq!(KeyLines::reading(&b"a\n"[..]).skipped(), None);
    }

    #[test]
    fn a_list_is_read_whatever_it_is_written_in() {
        let text = "bücher.example\nads.example\n";
        let expected = ["bücher.example", "ads.example"].map(str::to_owned);
        for list in [
            text.as_bytes().to_vec(),
            format!("\u{feff}{text}").into_bytes(),
            wide(&format!("\u{feff}{text}")),
            GZIP.to_vec(),
        ] {
            assert_eq!(keys(&list), Ok(expected.to_vec()), "{list:?}");
        }
        assert_eq!(keys(""), Ok(Vec::new()));
        assert_eq!(
            keys(b"a\nb\xfccher\n"),
            Err("keys: line 2: byte 2 is not UTF-8 (is this Latin-1 or Windows-1252?); convert the list to UTF-8 first".to_owned())
        );
        assert!(keys(b"PK\x03\x04").unwrap_err().contains("ZIP"));
    }

    /// Every other key would come a line late to somebody who types them.
    #[test]
    fn what_is_typed_counts_when_its_line_ends() {
        use std::io::Write as _;
        let (input, mut typed) = std::io::pipe().unwrap();
        let mut lines = KeyLines::reading(input);
        for key in ["a", "bé", "c"] {
            for piece in key.bytes().chain([b'\n']) {
                typed.write_all(&[piece]).unwrap();
            }
            assert_eq!(lines.wait(None).unwrap().unwrap(), key.as_bytes());
        }
    }
}
