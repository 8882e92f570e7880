//! What is looked up, in order: first what was typed, then the lines of a file or of standard
//! input.
//!
//! When a lookup is handed over follows from the number of lines, and for a pipe from when they
//! come. It never depends on what the lines say, nor on the outcome of a lookup.

use crate::arguments::Get;
use crate::key_list::KeyLines;
use privet_client::Target;
use privet_core::Result;
use std::time::Instant;

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
            Wanted::Key(key) => Target::written(key),
            Wanted::Index(index) => Target::index(*index),
        }
    }
}

/// One lookup of the list.
pub(super) struct RequestedLookup {
    pub(super) wanted: Wanted,
    /// The line that the key was read from, counted from 1. `None`: it was typed.
    pub(super) line: Option<u64>,
}

/// Everything to look up, handed over one by one.
pub(super) struct Queue {
    typed: std::vec::IntoIter<Wanted>,
    lines: Option<KeyLines>,
    /// How many lookups there are in all, if that is known.
    pub(super) total: Option<u64>,
    /// Whether there can only be one lookup.
    pub(super) single: bool,
    /// Whether lookups are by key.
    pub(super) by_key: bool,
}

impl Queue {
    /// Opens the file of keys, if there is one. A regular file is read once before, to check that
    /// all of it can be read, and to count its keys.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it cannot be opened or read.
    pub(super) fn new(arguments: &Get) -> Result<Self> {
        let keys = arguments.key.iter().map(|key| Wanted::Key(key.as_encoded_bytes().to_vec()));
        let indices = arguments.index.iter().map(|index| Wanted::Index(*index));
        let typed: Vec<Wanted> = keys.chain(indices).collect();
        let lines = arguments.keys_from.as_deref().map(KeyLines::open).transpose()?;
        let in_file = match &lines {
            None => Some(0),
            Some(lines) => lines.in_file,
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
    pub(super) fn next(&mut self, end: Option<Instant>) -> Result<Option<RequestedLookup>> {
        if let Some(wanted) = self.typed.next() {
            return Ok(Some(RequestedLookup { wanted, line: None }));
        }
        let Some(lines) = &mut self.lines else { return Ok(None) };
        let key = lines.wait(end)?;
        let line = Some(lines.number());
        Ok(key.map(|key| RequestedLookup { wanted: Wanted::Key(key), line }))
    }

    /// What the lines are of: the name of a file, or standard input.
    pub(super) fn source(&self) -> String {
        self.lines.as_ref().map(KeyLines::name).unwrap_or_default()
    }

    /// Whether keys come from a pipe or a terminal, which may keep the command waiting.
    pub(super) fn may_wait(&self) -> bool {
        self.lines.as_ref().is_some_and(|lines| lines.in_file.is_none())
    }

    /// A note about skipped lines, if there were any.
    pub(super) fn skipped(&self) -> Option<String> {
        self.lines.as_ref()?.skipped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_core::Reason;
    use std::io::Write as _;
    use std::time::Duration;

    #[test]
    fn what_was_typed_comes_first_and_then_lines_with_their_numbers() {
        let mut queue = Queue {
            typed: vec![Wanted::Index(7)].into_iter(),
            lines: Some(KeyLines::reading(&b"a\n\nb\n"[..])),
            total: None,
            single: false,
            by_key: true,
        };
        let lookups = std::iter::from_fn(|| queue.next(None).unwrap());
        assert_eq!(lookups.map(|lookup| lookup.line).collect::<Vec<_>>(), [None, Some(1), Some(3)]);
    }

    #[test]
    fn lines_that_do_not_come_are_not_waited_for_for_ever() {
        let (mut keeps_it_open, input) =
            std::io::pipe().map(|(read, write)| (write, read)).unwrap();
        let lines = KeyLines::reading(input);
        let (total, single, by_key) = (None, false, true);
        let typed = Vec::new().into_iter();
        let mut queue = Queue { typed, lines: Some(lines), total, single, by_key };
        let late = Instant::now() + Duration::from_millis(5);
        let error = queue.next(Some(late)).err().unwrap();
        assert_eq!(error.reason(), Some(Reason::TimeIsUp));
        keeps_it_open.write_all(b"a\n").unwrap();
        assert!(queue.next(None).unwrap().is_some(), "a line counts when it ends");
        drop(keeps_it_open);
        assert!(queue.next(None).unwrap().is_none());
    }
}
