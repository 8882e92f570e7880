//! Runs a client against a relay, and reads its output as quickly or slowly as is wanted.

use crate::record::Record;
use crate::relay::Relay;
use std::io::{self, BufRead as _, BufReader, Read};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

/// How the output of a client is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// All of it, as it comes.
    All,
    /// The first line, and then the pipe is closed: `| head -1`.
    FirstLine,
    /// Nothing, until the client has closed its connections; then all of it. If the client does not
    /// close them in this time, it waits for the reader, and is told apart by that.
    Last(Duration),
    /// All of it, at this rate in bytes a second.
    Slowly(u64),
}

impl FromStr for Reading {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
        match text.split_once(':') {
            None if text == "all" => Ok(Self::All),
            None if text == "first-line" => Ok(Self::FirstLine),
            Some(("last", seconds)) => Ok(Self::Last(Duration::from_secs(number(seconds)?))),
            Some(("slowly", rate)) => Ok(Self::Slowly(number(rate)?.max(1))),
            _ => Err("all, first-line, last:SECONDS or slowly:BYTES_PER_SECOND".to_owned()),
        }
    }
}

/// What a client sent, and how it ended.
#[derive(Debug)]
pub struct Observed {
    /// What it sent.
    pub record: Record,
    /// Whether it had closed its connections before anything that [`Reading::Last`] kept from it
    /// was read. True for other readings.
    pub waited_for_nobody: bool,
    /// Its exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// What was read of its output.
    pub output: Vec<u8>,
    /// What it said on standard error.
    pub said: String,
}

/// Runs `command`, which is a client that was told to ask `relay`, to its end. Its standard output
/// and its standard error become pipes.
///
/// # Errors
/// If it cannot be started or waited for.
pub fn observe(mut command: Command, relay: &Relay, reading: Reading) -> io::Result<Observed> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut stderr = child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let said = std::thread::spawn(move || {
        let mut said = Vec::new();
        let _ = stderr.read_to_end(&mut said);
        said
    });
    let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let (output, waited_for_nobody) = read(stdout, relay, reading)?;
    let code = child.wait()?.code();
    let said = said.join().unwrap_or_default();
    let said = String::from_utf8_lossy(&said).into_owned();
    // The client is gone, and the relay hears of it in a moment.
    relay.wait_until(Duration::from_secs(10), Record::is_closed);
    Ok(Observed { record: relay.record(), waited_for_nobody, code, output, said })
}

/// Reads the output of a client that asks `relay`, and drops it. Returns what was read, and whether
/// the client [waited for nobody](Observed::waited_for_nobody).
///
/// # Errors
/// If it cannot be read.
pub fn read(mut from: impl Read, relay: &Relay, reading: Reading) -> io::Result<(Vec<u8>, bool)> {
    let mut output = Vec::new();
    match reading {
        Reading::All => drop(from.read_to_end(&mut output)?),
        Reading::FirstLine => drop(BufReader::new(from).read_until(b'\n', &mut output)?),
        Reading::Last(limit) => {
            let waited_for_nobody = relay.wait_until(limit, Record::is_closed);
            from.read_to_end(&mut output)?;
            return Ok((output, waited_for_nobody));
        }
        Reading::Slowly(rate) => {
            // Ten times a second.
            let mut tenth = vec![0; usize::try_from(rate.div_ceil(10)).unwrap_or(usize::MAX)];
            while let read @ 1.. = from.read(&mut tenth)? {
                output.extend_from_slice(&tenth[..read]);
                std::thread::sleep(Duration::from_secs_f64(read as f64 / rate as f64));
            }
        }
    }
    Ok((output, true))
}
