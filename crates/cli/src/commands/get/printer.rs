//! Prints results on threads that no lookup waits for.
//!
//! ```text
//! hand keys in  →  wait for answers  →  keep results  →  print
//!   (get.rs)         (get.rs)          (here, spool)    (here, output.rs)
//! ```
//!
//! Each arrow but the first is a queue that never holds up whoever fills it. So how long values
//! are, how long it takes to format them, and how fast they are read, or whether at all, moves no
//! query. If the output fails or its reader goes away, the rest of it is dropped, and all lookups
//! are made as before.

use super::output::{FoundValues, Output, Told};
use super::spool::{IN_MEMORY, Spool};
use super::wanted::{RequestedLookup, Wanted};
use crate::display::Batch;
use privet_client::Value;
use privet_core::codec::Reader;
use privet_core::{Error, Result};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};

/// How many bytes of results may wait to be kept. They are kept at the speed of memory or of a
/// disk, so more wait only while the disk stands still.
const MOST_WAITING: usize = 64 << 20;

/// What came of a lookup.
pub(super) enum Came {
    Found(Value),
    NotFound,
    /// The table can have no such key, and why.
    Malformed(String),
    /// It failed, which is reported at the end.
    Failed,
}

/// The threads that keep and print results.
pub(super) struct Printer {
    results: mpsc::Sender<(RequestedLookup, Came)>,
    /// Bytes of results that wait to be kept.
    waiting: Arc<AtomicUsize>,
    is_full: bool,
    keeping: JoinHandle<Result<()>>,
    printing: JoinHandle<Result<bool>>,
}

impl Printer {
    /// Prints to `output`, and counts in `batch`.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there are no threads for it.
    pub(super) fn start(mut output: Output, mut batch: Batch) -> Result<Self> {
        let (results, came) = mpsc::channel::<(RequestedLookup, Came)>();
        let waiting = Arc::new(AtomicUsize::new(0));
        let spool = Arc::new(Spool::new(IN_MEMORY));
        let (still, keeper) = (Arc::clone(&waiting), Arc::clone(&spool));
        let keeping = thread("keeping", move || {
            let _ends = AtTheEnd(|| keeper.end());
            let mut kept = Ok(());
            for (lookup, came) in came {
                if kept.is_ok() {
                    kept = keeper.put(encode(&lookup, &came));
                }
                #[cfg(test)]
                super::planted::wait_while(|| !keeper.is_empty());
                still.fetch_sub(size(&lookup, &came), Ordering::Relaxed);
            }
            kept
        })?;
        let printing = thread("printing", move || {
            // What follows is dropped, if anything does.
            let _forgets = AtTheEnd(|| {
                spool.forget();
                #[cfg(test)]
                super::planted::IS_GONE.store(true, Ordering::Relaxed);
            });
            print(&spool, &mut output, &mut batch)
        })?;
        Ok(Self { results, waiting, is_full: false, keeping, printing })
    }

    /// Takes what came of a lookup, and returns at once.
    pub(super) fn hand_over(&mut self, lookup: RequestedLookup, came: Came) {
        // Nothing is printed behind a gap, so that the output is a whole beginning of all.
        self.is_full |= self.waiting.load(Ordering::Relaxed) > MOST_WAITING;
        if !self.is_full {
            self.waiting.fetch_add(size(&lookup, &came), Ordering::Relaxed);
            // A thread that panicked receives nothing more, which `finish` reports.
            let _ = self.results.send((lookup, came));
            #[cfg(test)]
            super::planted::wait_while(|| self.waiting.load(Ordering::Relaxed) > 0);
        }
    }

    /// Waits until everything is printed. Returns whether the reader stayed to the end.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if results could not be written or
    /// kept.
    pub(super) fn finish(self) -> Result<bool> {
        let Self { results, is_full, keeping, printing, .. } = self;
        drop(results);
        let ended = || Error::internal("a thread that prints has ended");
        let kept = keeping.join().unwrap_or_else(|_| Err(ended()));
        let is_read = printing.join().unwrap_or_else(|_| Err(ended()))?;
        match (is_read, is_full) {
            (true, false) => kept.map(|()| true),
            (true, true) => kept.and(Err(Error::unavailable(
                "what was found is lost in part: the disk for temporary files stood still while it waited for its reader",
            ))),
            (false, _) => Ok(false),
        }
    }
}

/// Does something at the end of a thread, even of one that panics. Otherwise the other thread would
/// wait for ever.
struct AtTheEnd<F: FnMut()>(F);

impl<F: FnMut()> Drop for AtTheEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// # Errors
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the system has no thread.
pub(super) fn thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    let thread = Builder::new().name(name.to_owned()).spawn(work);
    thread.map_err(|error| {
        Error::unavailable("the system gives no thread for results").caused_by(error)
    })
}

/// About how many bytes a result takes in memory.
fn size(lookup: &RequestedLookup, came: &Came) -> usize {
    let key = match &lookup.wanted {
        Wanted::Key(key) => key.len(),
        Wanted::Index(_) => 0,
    };
    let found = match came {
        Came::Found(value) => value.values().map(<[u8]>::len).sum(),
        Came::Malformed(why) => why.len(),
        Came::NotFound | Came::Failed => 0,
    };
    size_of::<(RequestedLookup, Came)>() + key + found
}

/// Prints until nothing is left or nobody reads any more. Returns whether the reader is there.
fn print(spool: &Spool, output: &mut Output, batch: &mut Batch) -> Result<bool> {
    while let Some(piece) = spool.take()? {
        let (lookup, told) = decode(&piece)?;
        if let Some(told) = told
            && !output.print(&lookup, &told)?
        {
            return Ok(false);
        }
        batch.one_more();
    }
    output.finish()
}

const FAILED: u8 = 0;
const NOT_FOUND: u8 = 1;
const SINGLE: u8 = 2;
const LIST: u8 = 3;
const MALFORMED: u8 = 4;

/// A result as a piece of the queue. Values are formatted when they are printed.
fn encode(lookup: &RequestedLookup, came: &Came) -> Vec<u8> {
    let mut piece = vec![match came {
        Came::Failed => FAILED,
        Came::NotFound => NOT_FOUND,
        Came::Malformed(_) => MALFORMED,
        Came::Found(value) if value.is_list() => LIST,
        Came::Found(_) => SINGLE,
    }];
    let put = |piece: &mut Vec<u8>, bytes: &[u8]| {
        piece.extend((bytes.len() as u64).to_le_bytes());
        piece.extend_from_slice(bytes);
    };
    // Lines are counted from 1.
    piece.extend(lookup.line.unwrap_or_default().to_le_bytes());
    match &lookup.wanted {
        Wanted::Index(index) => {
            piece.push(0);
            piece.extend(index.to_le_bytes());
        }
        Wanted::Key(key) => {
            piece.push(1);
            put(&mut piece, key);
        }
    }
    match came {
        Came::Found(value) => value.values().for_each(|value| put(&mut piece, value)),
        Came::Malformed(why) => put(&mut piece, why.as_bytes()),
        Came::NotFound | Came::Failed => {}
    }
    piece
}

/// The lookup and, unless it failed, what is printed of it.
fn decode(piece: &[u8]) -> Result<(RequestedLookup, Option<Told<'_>>)> {
    let mut reader = Reader::new("a result", piece);
    let kind = reader.u8()?;
    let line = Some(reader.u64()?).filter(|line| *line > 0);
    let wanted = match reader.u8()? {
        0 => Wanted::Index(reader.u64()?),
        _ => Wanted::Key(counted(&mut reader)?.to_vec()),
    };
    let told = match kind {
        FAILED => None,
        NOT_FOUND => Some(Told::NotFound),
        MALFORMED => Some(Told::Malformed(String::from_utf8_lossy(counted(&mut reader)?))),
        _ => {
            let mut values = Vec::new();
            while reader.remaining() > 0 {
                values.push(counted(&mut reader)?);
            }
            Some(Told::Found(FoundValues { values, is_list: kind == LIST }))
        }
    };
    Ok((RequestedLookup { wanted, line }, told))
}

/// Bytes behind their number.
fn counted<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8]> {
    let len = reader.u64()?;
    reader.bytes(usize::try_from(len).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_panics_leaves_no_other_waiting() {
        let spool = Arc::new(Spool::new(IN_MEMORY));
        let keeper = Arc::clone(&spool);
        let panics = thread::<()>("planted", move || {
            let _ends = AtTheEnd(|| keeper.end());
            panic!("planted")
        });
        assert!(spool.take().unwrap().is_none());
        assert!(panics.unwrap().join().is_err());
    }
}
