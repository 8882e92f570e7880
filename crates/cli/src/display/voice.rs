//! What the process says, without ever waiting for who reads it.
//!
//! A log is a convenience. Its reader may have gone, its disk may be full, or a terminal may be
//! stopped; none of that may hold up or end whoever has something to say. So each stream has a
//! queue, and a thread that writes. When the queue is full, or the stream takes nothing, lines are
//! lost. They are counted, and how many is said once the stream takes lines again.
//!
//! `tracing-appender` writes in the same way, but its thread forgets the lines that it could not
//! write, its queue is bounded in lines and not in bytes, and nobody can wait until what was said
//! so far is written, as a report on standard output has to.

use super::some;
use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of lines that wait at most.
const MOST_WAITING: usize = 1 << 20;

/// Progress bars are not drawn while more bytes than this wait: each drawing is soon outdated.
const MOST_BEFORE_A_FRAME: usize = 1 << 14;

/// Whoever must not lose lines waits for room no longer than this while nothing is taken.
const LONG_PATIENCE: Duration = Duration::from_secs(10);

/// The end of the process waits for a stream that takes nothing no longer than this.
const PATIENCE: Duration = Duration::from_secs(1);

/// Nor for a stream that takes little.
const LONGEST_FAREWELL: Duration = Duration::from_secs(5);

/// What is printed on standard output waits for standard error no longer than this.
const SHORT_PATIENCE: Duration = Duration::from_millis(100);

/// How many lines this process has lost.
static LOST: LazyLock<Arc<AtomicU64>> = LazyLock::new(Arc::default);

/// How the process says that lines were lost, if it does so in a way of its own.
static TELL: OnceLock<fn(&str)> = OnceLock::new();

thread_local! {
    /// Whether this thread writes to a stream.
    static WRITES: Cell<bool> = const { Cell::new(false) };
}

static ERROR: Voice = Voice::new("standard error");
static OUTPUT: Voice = Voice::new("standard output");

/// Standard error.
pub(crate) fn on_error() -> &'static Voice {
    ERROR.begin(|| own(io::stderr()));
    &ERROR
}

/// Standard output, for a server. Other commands wait for who reads their results.
pub(crate) fn on_output() -> &'static Voice {
    OUTPUT.begin(|| own(io::stdout()));
    &OUTPUT
}

/// From now on `tell` says that lines were lost.
pub(crate) fn tell_losses_by(tell: fn(&str)) {
    TELL.get_or_init(|| tell);
}

/// How many lines were lost so far.
pub(crate) fn lost() -> Arc<AtomicU64> {
    Arc::clone(&LOST)
}

/// Waits for a moment until what was said is written, so that what is printed next on standard
/// output comes after it on the screen.
pub(crate) fn settle() {
    ERROR.settle(SHORT_PATIENCE, false);
}

/// Writes what still waits, if the streams take it in time. Nothing may be said afterwards.
pub(crate) fn farewell() {
    // What the one lost is reported on the other.
    OUTPUT.settle(PATIENCE, true);
    ERROR.settle(PATIENCE, true);
}

/// A stream with its queue.
pub(crate) struct Voice {
    stream: &'static str,
    begun: OnceLock<()>,
    queue: Mutex<Queue>,
    /// There is something to write.
    more: Condvar,
    /// Something was written, or could not be.
    done: Condvar,
}

struct Queue {
    waiting: VecDeque<Piece>,
    /// In `waiting` and in the piece that is being written.
    bytes: usize,
    /// A piece is being written, or its loss reported.
    busy: bool,
    /// Pieces that were written or lost so far.
    finished: u64,
    /// Somebody has waited for the stream in vain, and it has taken nothing since.
    stuck: bool,
    /// The same for room, which is waited for much longer.
    hopeless: bool,
    /// Lines whose loss was not reported yet.
    untold: u64,
}

struct Piece {
    bytes: Vec<u8>,
    /// How many lines are lost with it.
    lines: u64,
}

impl Voice {
    const fn new(stream: &'static str) -> Self {
        let queue = Queue {
            waiting: VecDeque::new(),
            bytes: 0,
            busy: false,
            finished: 0,
            stuck: false,
            hopeless: false,
            untold: 0,
        };
        Self {
            stream,
            begun: OnceLock::new(),
            queue: Mutex::new(queue),
            more: Condvar::new(),
            done: Condvar::new(),
        }
    }

    fn begin(&'static self, open: fn() -> io::Result<Box<dyn Write>>) {
        self.begun.get_or_init(|| {
            // Without a thread nothing is written. What does not fit into the queue is counted.
            let _ = thread::Builder::new().name("privet-voice".to_owned()).spawn(move || {
                WRITES.set(true);
                self.write_all(open().unwrap_or_else(|_| Box::new(Closed)));
            });
        });
    }

    /// Says `bytes`, which are `lines` whole lines.
    pub(crate) fn say(&self, bytes: Vec<u8>, lines: u64) {
        self.put(Piece { bytes, lines }, MOST_WAITING);
    }

    /// Draws something that is soon drawn again.
    pub(super) fn draw(&self, bytes: Vec<u8>) {
        self.put(Piece { bytes, lines: 0 }, MOST_BEFORE_A_FRAME);
    }

    fn put(&self, piece: Piece, most: usize) {
        let mut queue = self.lock();
        let has_room = queue.bytes == 0 || queue.bytes + piece.bytes.len() <= most;
        // What this very thread says is how many lines were lost. It must not be lost as well.
        if has_room || WRITES.get() {
            queue.bytes += piece.bytes.len();
            queue.waiting.push_back(piece);
            drop(queue);
            self.more.notify_one();
        } else {
            queue.lose(piece.lines);
        }
    }

    /// Waits until everything is written. Gives up once nothing was taken for `patience`; and at
    /// once, unless `again`, if that has happened before.
    fn settle(&self, patience: Duration, again: bool) {
        let last = Instant::now() + LONGEST_FAREWELL;
        let mut queue = self.lock();
        while (queue.busy || !queue.waiting.is_empty()) && (again || !queue.stuck) {
            let finished = queue.finished;
            let waited = self.done.wait_timeout(queue, patience);
            let (back, time) = waited.unwrap_or_else(PoisonError::into_inner);
            queue = back;
            let has_waited = time.timed_out() && queue.finished == finished;
            if has_waited || Instant::now() >= last {
                queue.stuck = true;
                return;
            }
        }
    }

    /// Waits until half of the queue is free. Gives up once nothing was taken for
    /// [`LONG_PATIENCE`], and then at once until something is taken.
    pub(super) fn wait_for_room(&self) {
        let mut queue = self.lock();
        while queue.bytes > MOST_WAITING / 2 && !queue.hopeless {
            let finished = queue.finished;
            let waited = self.done.wait_timeout(queue, LONG_PATIENCE);
            let (back, time) = waited.unwrap_or_else(PoisonError::into_inner);
            queue = back;
            queue.hopeless = time.timed_out() && queue.finished == finished;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // No code that can panic runs under the lock, so a poisoned queue is still whole.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes whatever comes.
    fn write_all(&self, mut stream: Box<dyn Write>) {
        // Whether the last line was cut off in its middle.
        let mut torn = false;
        loop {
            let mut queue = self.lock();
            let mut piece = loop {
                match queue.waiting.pop_front() {
                    Some(piece) => break piece,
                    None => queue = self.more.wait(queue).unwrap_or_else(PoisonError::into_inner),
                }
            };
            queue.busy = true;
            drop(queue);
            let len = piece.bytes.len();
            if torn {
                piece.bytes.insert(0, b'\n');
            }
            let written = write(&mut *stream, &piece.bytes);
            torn = match written {
                Ok(()) => false,
                Err(written) => torn && written == 0 || written > usize::from(torn),
            };

            let mut queue = self.lock();
            queue.bytes -= len;
            (queue.stuck, queue.hopeless) = (false, false);
            if written.is_err() {
                queue.lose(piece.lines);
            }
            // That standard error takes nothing can only be said on it later.
            let is_told = written.is_ok() || !std::ptr::eq(self, &ERROR);
            let untold = if is_told { std::mem::take(&mut queue.untold) } else { 0 };
            drop(queue);
            if untold > 0 {
                self.tell(untold);
            }
            let mut queue = self.lock();
            queue.busy = false;
            queue.finished += 1;
            drop(queue);
            self.done.notify_all();
        }
    }

    fn tell(&self, lines: u64) {
        let words = format!(
            "{} of the log {} lost: {} did not take {}",
            some(lines, "line", "lines"),
            if lines == 1 { "was" } else { "were" },
            self.stream,
            if lines == 1 { "it" } else { "them" },
        );
        match TELL.get() {
            Some(tell) => tell(&words),
            None => super::say(&words),
        }
    }
}

impl Queue {
    fn lose(&mut self, lines: u64) {
        self.untold += lines;
        LOST.fetch_add(lines, Ordering::Relaxed);
    }
}

/// Writes all of `bytes`. An error is how many of them were written.
fn write(stream: &mut dyn Write, bytes: &[u8]) -> Result<(), usize> {
    let mut written = 0;
    while written < bytes.len() {
        match stream.write(&bytes[written..]) {
            Ok(0) => return Err(written),
            Ok(more) => written += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Another program that has the same terminal or pipe open can make it so.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(10));
            }
            Err(_) => return Err(written),
        }
    }
    stream.flush().map_err(|_| written)
}

/// A stream that the process does not have.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The same stream, as a descriptor of its own. The standard library keeps its streams locked while
/// it writes, and then nobody else could, a panic among them.
#[cfg(unix)]
fn own(stream: impl std::os::fd::AsFd) -> io::Result<Box<dyn Write>> {
    Ok(Box::new(std::fs::File::from(stream.as_fd().try_clone_to_owned()?)))
}

#[cfg(not(unix))]
fn own(stream: impl Write + 'static) -> io::Result<Box<dyn Write>> {
    Ok(Box::new(stream))
}

/// One event of a log.
pub(crate) struct LogLine;

impl Write for LogLine {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        on_error().say(line.to_vec(), 1);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// A stream that does with each piece what the test says.
    struct Played {
        written: Arc<Mutex<Vec<u8>>>,
        next: Receiver<io::Result<usize>>,
    }

    impl Write for Played {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = self.next.recv().unwrap_or(Ok(usize::MAX))?.min(bytes.len());
            self.written.lock().unwrap().extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    type Playing = (&'static Voice, Arc<Mutex<Vec<u8>>>, Sender<io::Result<usize>>);

    fn played() -> Playing {
        let voice: &'static Voice = Box::leak(Box::new(Voice::new("a test's stream")));
        let written = Arc::default();
        let (play, next) = channel();
        let stream = Played { written: Arc::clone(&written), next };
        thread::spawn(move || voice.write_all(Box::new(stream)));
        (voice, written, play)
    }

    fn text(written: &Mutex<Vec<u8>>) -> String {
        String::from_utf8(written.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn a_line_that_was_cut_off_does_not_run_into_the_next() {
        let (voice, written, play) = played();
        let failed = || Err(io::ErrorKind::StorageFull.into());
        for result in [Ok(2), failed(), failed(), Ok(1), failed()] {
            play.send(result).unwrap();
        }
        drop(play);
        for line in ["one\n", "two\n", "three\n", "four\n", "five\n"] {
            voice.say(line.into(), 1);
        }
        voice.settle(Duration::from_secs(60), true);
        assert_eq!(text(&written), "on\nfour\nfive\n");
    }

    #[test]
    fn a_stream_that_takes_a_little_now_and_nothing_the_next_moment_loses_nothing() {
        let (voice, written, play) = played();
        for _ in 0..3 {
            play.send(Ok(1)).unwrap();
            play.send(Err(io::ErrorKind::WouldBlock.into())).unwrap();
            play.send(Err(io::ErrorKind::Interrupted.into())).unwrap();
        }
        drop(play);
        voice.say(b"one\n".to_vec(), 1);
        voice.settle(Duration::from_secs(60), true);
        assert_eq!(text(&written), "one\n");
        assert_eq!(voice.lock().untold, 0);
    }

    #[test]
    fn nobody_waits_for_a_stream_that_takes_nothing_and_what_waits_is_bounded() {
        let (voice, written, play) = played();
        let line = vec![b'x'; MOST_WAITING / 8];
        (0..20).for_each(|_| voice.say(line.clone(), 1));
        voice.settle(Duration::from_millis(10), false);
        assert_eq!(voice.lock().untold, 12);
        // It is known to be stuck: this does not wait again.
        let began = Instant::now();
        voice.settle(Duration::from_secs(60), false);
        assert!(began.elapsed() < Duration::from_secs(30));
        voice.draw(b"a bar".to_vec());
        drop(play);
        voice.settle(Duration::from_secs(60), true);
        assert_eq!((written.lock().unwrap().len(), voice.lock().untold), (8 * line.len(), 0));
    }
}
