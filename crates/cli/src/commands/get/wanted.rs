//! What is looked up, in order: first what was typed, then the lines of a file or of standard
//! input.
//!
//! A thread reads lines while others are looked up, a bounded number ahead. When a lookup is handed
//! over follows from the number of lines, and for a pipe from when they come. It never depends on
//! what the lines say, nor on the outcome of a lookup.

use crate::arguments::Get;
use privet_client::Target;
use privet_core::{Error, Reason, Result};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Instant;

/// How many lines are read ahead.
const AHEAD: usize = 1024;

/// What one lookup is for.
#[derive(Clone)]
pub(super) enum Wanted {
    /// A key of the table.
    Key(Vec<u8>),
    /// The number of a record.
    Index(u64),
}

impl Wanted {
    pub(super) fn target(&self) -> Target {
        match self {
            Wanted::Key(key) => Target::key(key),
            Wanted::Index(index) => Target::index(*index),
        }
    }
}

/// One lookup of the list.
pub(super) struct Lookup {
    pub(super) wanted: Wanted,
    /// The line that the key was read from, counted from 1. `None`: it was typed.
    pub(super) line: Option<u64>,
}

/// Everything to look up, handed over one by one.
pub(super) struct Queue {
    typed: std::vec::IntoIter<Wanted>,
    lines: Option<Lines>,
    /// How many lookups there are in all, if that is known.
    pub(super) total: Option<u64>,
    /// Whether there can only be one lookup.
    pub(super) single: bool,
    /// Whether lookups are by key.
    pub(super) by_key: bool,
}

impl Queue {
    /// Opens the file of keys, if there is one. With `count`, a file's lines are counted first.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it cannot be opened or read.
    pub(super) fn new(arguments: &Get, count: bool) -> Result<Self> {
        let keys = arguments.key.iter().map(|key| Wanted::Key(key.as_encoded_bytes().to_vec()));
        let indices = arguments.index.iter().map(|index| Wanted::Index(*index));
        let typed: Vec<Wanted> = keys.chain(indices).collect();
        let lines = arguments.keys_from.as_deref().map(Lines::open).transpose()?;
        let in_file = match &lines {
            None => Some(0),
            Some(lines) if count && lines.in_file => Some(number_of_keys(&lines.path)?),
            Some(_) => None,
        };
        Ok(Self {
            total: in_file.map(|lines| lines + typed.len() as u64),
            single: typed.len() == 1 && lines.is_none(),
            by_key: lines.is_some() || !arguments.key.is_empty(),
            typed: typed.into_iter(),
            lines,
        })
    }

    /// The next lookup, or `None` if none is left. Waits for a further line until `end`.
    ///
    /// # Errors
    /// If lines cannot be read, or none came in time. No lookups follow after that.
    pub(super) fn next(&mut self, end: Option<Instant>) -> Result<Option<Lookup>> {
        if let Some(wanted) = self.typed.next() {
            return Ok(Some(Lookup { wanted, line: None }));
        }
        let Some(lines) = &mut self.lines else { return Ok(None) };
        let key = lines.wait(end)?;
        let line = Some(lines.number);
        Ok(key.map(|key| Lookup { wanted: Wanted::Key(key), line }))
    }

    /// What the lines are of: the name of a file, or standard input.
    pub(super) fn source(&self) -> String {
        self.lines.as_ref().map(Lines::name).unwrap_or_default()
    }

    /// Whether keys come from a pipe or a terminal, which may keep the command waiting.
    pub(super) fn may_wait(&self) -> bool {
        self.lines.as_ref().is_some_and(|lines| !lines.in_file)
    }

    /// A note about skipped lines, if there were any.
    pub(super) fn skipped(&self) -> Option<String> {
        self.lines.as_ref()?.skipped()
    }
}

/// The lines of a file or of standard input, one key each.
struct Lines {
    path: PathBuf,
    /// Whether it is a regular file, which holds all its lines already.
    in_file: bool,
    read: Receiver<std::io::Result<Vec<u8>>>,
    /// How many lines were taken.
    number: u64,
    blank: u64,
}

impl Lines {
    fn open(path: &Path) -> Result<Self> {
        let failed = |error| unreadable(path, error);
        let (sender, read) = sync_channel(AHEAD);
        let in_file = match path == Path::new("-") {
            true => {
                let input = std::io::stdin();
                start(move || send_lines(input.lock(), &sender))?;
                false
            }
            false => {
                let file = File::open(path).map_err(failed)?;
                let in_file = file.metadata().map_err(failed)?.is_file();
                start(move || send_lines(BufReader::new(file), &sender))?;
                in_file
            }
        };
        Ok(Self { path: path.to_owned(), in_file, read, number: 0, blank: 0 })
    }

    /// The next key. Waits for it, and returns `None` if there are no more.
    fn wait(&mut self, end: Option<Instant>) -> Result<Option<Vec<u8>>> {
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
            let line = line.transpose().map_err(|error| unreadable(&self.path, error))?;
            let Some(key) = line else { return Ok(None) };
            self.number += 1;
            match key.is_empty() {
                true => self.blank += 1,
                false => return Ok(Some(key)),
            }
        }
    }

    fn skipped(&self) -> Option<String> {
        let lines = match self.blank {
            0 => return None,
            1 => "1 blank line".to_owned(),
            blank => format!("{blank} blank lines"),
        };
        Some(format!("skipped {lines} of {}", self.name()))
    }

    fn name(&self) -> String {
        match self.path == Path::new("-") {
            true => "standard input".to_owned(),
            false => self.path.display().to_string(),
        }
    }
}

/// All keys in a file, one on each line, or in standard input for `-`. Also returns a note about
/// skipped lines.
pub(crate) fn keys_from(path: &Path) -> Result<(Vec<Vec<u8>>, Option<String>)> {
    let mut lines = Lines::open(path)?;
    let mut keys = Vec::new();
    while let Some(key) = lines.wait(None)? {
        keys.push(key);
    }
    Ok((keys, lines.skipped()))
}

fn number_of_keys(path: &Path) -> Result<u64> {
    let failed = |error| unreadable(path, error);
    let mut input = BufReader::new(File::open(path).map_err(failed)?);
    let (mut count, mut line) = (0, Vec::new());
    while next_line(&mut input, &mut line).map_err(failed)? {
        count += u64::from(!line.is_empty());
    }
    Ok(count)
}

fn unreadable(path: &Path, error: std::io::Error) -> Error {
    Error::api_misuse(format!("cannot read keys from {}", path.display())).caused_by(error)
}

fn start(reading: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = std::thread::Builder::new().name("keys".to_owned()).spawn(reading);
    // The thread is not joined, since it may be blocked on input. It ends once nobody receives its
    // lines.
    thread.map(drop).map_err(|error| Error::unavailable("no thread to read keys").caused_by(error))
}

fn send_lines(mut input: impl BufRead, lines: &SyncSender<std::io::Result<Vec<u8>>>) {
    loop {
        let mut line = Vec::new();
        let read = match next_line(&mut input, &mut line) {
            Ok(true) => Ok(line),
            Ok(false) => return,
            Err(error) => Err(error),
        };
        let failed = read.is_err();
        if lines.send(read).is_err() || failed {
            return;
        }
    }
}

/// Reads a line without its line break (Unix or Windows). Returns whether there was one to read.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<bool> {
    line.clear();
    if input.read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn reading(input: &'static [u8]) -> Lines {
        let (sender, read) = sync_channel(AHEAD);
        start(move || send_lines(input, &sender)).unwrap();
        Lines { path: "keys".into(), in_file: true, read, number: 0, blank: 0 }
    }

    #[test]
    fn blank_lines_are_counted_and_no_keys() {
        let mut lines = reading(b"\nada\r\n\r\n\xff b\n\n last");
        let mut keys = Vec::new();
        while let Some(key) = lines.wait(None).unwrap() {
            keys.push(key);
        }
        assert_eq!(keys, [&b"ada"[..], b"\xff b", b" last"]);
        assert_eq!(lines.skipped().unwrap(), "skipped 3 blank lines of keys");
        assert_eq!(reading(b"a\n").skipped(), None);
    }

    #[test]
    fn what_was_typed_comes_first_and_then_lines_with_their_numbers() {
        let mut queue = Queue {
            typed: vec![Wanted::Index(7)].into_iter(),
            lines: Some(reading(b"a\n\nb\n")),
            total: None,
            single: false,
            by_key: true,
        };
        let lookups = std::iter::from_fn(|| queue.next(None).unwrap());
        assert_eq!(lookups.map(|lookup| lookup.line).collect::<Vec<_>>(), [None, Some(1), Some(3)]);
    }

    #[test]
    fn lines_that_do_not_come_are_not_waited_for_for_ever() {
        let (sender, read) = sync_channel(AHEAD);
        let lines = Lines { path: "-".into(), in_file: false, read, number: 0, blank: 0 };
        let (total, single, by_key) = (None, false, true);
        let typed = Vec::new().into_iter();
        let mut queue = Queue { typed, lines: Some(lines), total, single, by_key };
        let late = Instant::now() + Duration::from_millis(5);
        let error = queue.next(Some(late)).err().unwrap();
        assert_eq!(error.reason(), Some(Reason::TimeIsUp));
        drop(sender);
        assert!(queue.next(None).unwrap().is_none());
    }
}
