//! How two records differ.

use crate::record::Record;
use std::time::Duration;

/// What may differ between two runs without anybody's doing.
#[derive(Clone, Copy, Debug)]
pub struct Margins {
    /// How much longer the longest pause, the whole, and the time until the connections end may be.
    /// A busy machine needs seconds.
    pub time: Duration,
    /// Whether queries may be put together into requests differently. So it is with single-use
    /// hints, where what becomes durable together leaves together. Then only how many bytes the
    /// messages have in all is compared, to within this number of bytes.
    pub together: Option<u64>,
}

impl Default for Margins {
    fn default() -> Self {
        Self { time: Duration::from_secs(10), together: None }
    }
}

/// How what a server saw in one run differs from what it saw in another, in words. Empty: no more
/// than `margins` allow.
pub fn differences(one: &Record, other: &Record, margins: &Margins) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |what: &str, one: u64, other: u64, margin: u64| {
        if one.abs_diff(other) > margin {
            found.push(format!("{what}: {one} and {other}"));
        }
    };
    let lens = |record: &Record| record.messages().iter().map(|m| m.len).collect::<Vec<_>>();
    let (ours, theirs) = (lens(one), lens(other));
    let sum = |lens: &[u32]| lens.iter().copied().map(u64::from).sum::<u64>();
    compare("bytes of messages", sum(&ours), sum(&theirs), margins.together.unwrap_or(0));
    compare("connections", one.connections.len() as u64, other.connections.len() as u64, 0);
    if margins.together.is_none() {
        compare("messages", ours.len() as u64, theirs.len() as u64, 0);
        if let Some(at) = ours.iter().zip(&theirs).position(|(one, other)| one != other) {
            let (one, other) = (ours[at].into(), theirs[at].into());
            compare(&format!("length of message {at}"), one, other, 0);
        }
        // HEADERS and RST_STREAM. Others answer what came from the server, or say farewell, which
        // may or may not leave before the connection ends.
        for (kind, name) in [(1, "requests"), (3, "resets")] {
            let count = |record: &Record| record.frames(kind) as u64;
            compare(name, count(one), count(other), 0);
        }
    }
    let millis = |time: Duration| time.as_millis() as u64;
    let margin = millis(margins.time);
    let (pauses, lasted) =
        ([one, other].map(Record::longest_pause), [one, other].map(Record::duration));
    compare("longest pause in ms", millis(pauses[0].0), millis(pauses[1].0), margin);
    compare("all in ms", millis(lasted[0]), millis(lasted[1]), margin);
    match [one, other].map(Record::silence_at_the_end) {
        [Some(one), Some(other)] => {
            compare("from the last message to the end in ms", millis(one), millis(other), margin);
        }
        ends => compare(
            "whether connections ended",
            ends[0].is_some().into(),
            ends[1].is_some().into(),
            0,
        ),
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Connection, Message};

    /// A record of messages at these moments, of this length.
    fn record(moments: &[f64], len: u32) -> Record {
        let message = |at: &f64| Message { at: *at, stream: 1, len };
        let messages = moments.iter().map(message).collect();
        Record { connections: vec![Connection { messages, ..Connection::default() }] }
    }

    /// The same, with the moment when the connection ended.
    fn ended(closed: Option<f64>) -> Record {
        let mut record = record(&[0.0, 0.1], 9);
        record.connections[0].closed = closed;
        record
    }

    #[test]
    fn a_connection_that_ends_later_differs() {
        let margins = Margins { time: Duration::from_secs(1), ..Margins::default() };
        let compared = |other| differences(&ended(Some(0.2)), &ended(other), &margins);
        assert_eq!(compared(Some(0.9)), [""; 0]);
        assert_eq!(compared(Some(5.1)), ["from the last message to the end in ms: 100 and 5000"]);
        assert_eq!(compared(None), ["whether connections ended: 1 and 0"]);
    }

    #[test]
    fn what_differs_is_said() {
        let margins = Margins { time: Duration::from_secs(1), ..Margins::default() };
        let compared = |other| differences(&record(&[0.0, 0.1, 0.2], 9), &other, &margins);
        assert_eq!(compared(record(&[1.0, 1.2, 1.3], 9)), [""; 0]);
        assert_eq!(
            compared(record(&[0.0, 0.1], 9)),
            ["bytes of messages: 27 and 18", "messages: 3 and 2"]
        );
        assert_eq!(
            compared(record(&[0.0, 0.1, 0.2], 8)),
            ["bytes of messages: 27 and 24", "length of message 0: 9 and 8"]
        );
        assert_eq!(
            compared(record(&[0.0, 3.0, 3.1], 9)),
            ["longest pause in ms: 100 and 3000", "all in ms: 200 and 3100"]
        );
    }
}
