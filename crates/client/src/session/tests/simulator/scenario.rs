//! The settings of a run, and the report of what happened in it.

use super::super::super::planted::SessionFlaw;
use super::super::toy::{Flaw, Flow};
use super::disk::DiskFlaw;
use super::slow::Costs;
use super::stateless;
use std::time::Duration;

/// What the servers serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// A toy with single-use hints, by one server or two.
    Toy,
    /// Dummy subsets: with longer generations, which the first process uses a good part of.
    DummySubsets,
    /// DPF-PIR, by two servers.
    Dpf,
    /// SimplePIR, whose hint comes beside the first queries.
    LateHint,
    /// The table as a whole.
    Download,
}

/// Who tells sessions the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Driver {
    Prompt,
    /// Reads its clock some time before it asks for something to do.
    LooksTooEarly,
    /// Its clock, and the session's, have steps that are longer than slots.
    HasACoarseClock,
}

/// The special settings of a run.
#[derive(Clone)]
pub(super) struct Scenario {
    pub(super) scheme: Scheme,
    /// Of a toy: how the table comes to it, …
    pub(super) flow: Flow,
    /// … whether its hints never run out, …
    pub(super) endless: bool,
    /// … whether it verifies answers, …
    pub(super) verifies: bool,
    /// … whether both servers stream all of it, to be compared, …
    pub(super) compare: bool,
    /// … and what is wrong with it.
    pub(super) client: Flaw,
    /// Of DPF-PIR, and with a hint that comes late.
    pub(super) stateless_client: stateless::Flaw,
    pub(super) disk: DiskFlaw,
    /// How long computing takes, …
    pub(super) costs: Costs,
    /// … and the flaw in how that is hidden.
    pub(super) timetable: Option<SessionFlaw>,
    pub(super) driver: Driver,
    /// From a lookup's number to the record it looks up; `None`: at random.
    pub(super) targets: Option<fn(u64) -> u64>,
    /// One of the servers gives wrong answers, now and then.
    pub(super) lies: bool,
    /// Parts are kept in files, and a byte of the table's file is flipped now and then: before a
    /// process begins, or while it has the file open.
    pub(super) damages: bool,
    /// The table changes now and then, and grows.
    pub(super) changes: bool,
}

/// What happened in a run.
#[derive(Default)]
pub(super) struct Report {
    /// Everything that was sent, written to the journal, or told to the user: when, by which
    /// process, to which server, of which kind, and how long.
    pub(super) trace: Vec<(Duration, u64, usize, &'static str, usize)>,
    pub(super) found: u64,
    pub(super) failed: u64,
    pub(super) cut_off: u64,
    pub(super) sent_again: u64,
    pub(super) switches: u64,
    pub(super) condensed: u64,
    pub(super) requests: u64,
    /// Whether the hints ended, and how many lookups and sessions were told so.
    pub(super) ended: u64,
    pub(super) told_of_the_end: u64,
    pub(super) checkpoints_resumed: u64,
    pub(super) streamed_in_background: u64,
    /// Wrong values, from a server that lies.
    pub(super) wrong: u64,
    pub(super) repeated: u64,
    /// How often several journal records were made durable together.
    pub(super) together: u64,
    /// How often something was asked for that another process held.
    pub(super) waited: u64,
    /// How often a stored table was damaged, and how many lookups met the damage.
    pub(super) damaged: u64,
    pub(super) met_damage: u64,
    /// How often hints followed their table, and how often they were given up.
    pub(super) followed: u64,
    pub(super) left_behind: u64,
}

impl Report {
    /// What servers see of the trace.
    pub(super) fn sent(&self) -> Vec<(Duration, u64, usize, &'static str, usize)> {
        let here = ["journal", "told"];
        self.trace.iter().filter(|(_, _, _, kind, _)| !here.contains(kind)).copied().collect()
    }

    pub(super) fn add(&mut self, other: &Report) {
        self.found += other.found;
        self.failed += other.failed;
        self.cut_off += other.cut_off;
        self.sent_again += other.sent_again;
        self.switches += other.switches;
        self.condensed += other.condensed;
        self.requests += other.requests;
        self.ended += other.ended;
        self.told_of_the_end += other.told_of_the_end;
        self.checkpoints_resumed += other.checkpoints_resumed;
        self.streamed_in_background += other.streamed_in_background;
        self.wrong += other.wrong;
        self.repeated += other.repeated;
        self.waited += other.waited;
        self.together += other.together;
        self.damaged += other.damaged;
        self.met_damage += other.met_damage;
        self.followed += other.followed;
        self.left_behind += other.left_behind;
    }

    /// The events that can happen with a scheme without hints.
    pub(super) fn counts_without_hints(&self) -> [(&'static str, u64); 5] {
        [
            ("something waited for that another process had", self.waited),
            ("a record found", self.found),
            ("a lookup failed", self.failed),
            ("a process cut off", self.cut_off),
            ("a query repeated", self.repeated),
        ]
    }

    /// How many values came, and how many of them were wrong.
    pub(super) fn values(&self) -> (u64, u64) {
        (self.found + self.wrong, self.wrong)
    }

    /// The events that can happen with hints that never run out.
    pub(super) fn counts_without_a_next_generation(&self) -> [(&'static str, u64); 7] {
        let [counts @ .., _] = self.counts();
        counts
    }

    pub(super) fn counts(&self) -> [(&'static str, u64); 8] {
        [
            ("something waited for that another process had", self.waited),
            ("a record found", self.found),
            ("a lookup failed", self.failed),
            ("a process cut off", self.cut_off),
            ("a query sent again by a later process", self.sent_again),
            ("generations switched", self.switches),
            ("a checkpoint gone on from", self.checkpoints_resumed),
            ("a stretch streamed in the background", self.streamed_in_background),
        ]
    }
}

/// The result of a check: an error says what does not hold.
pub(super) type Check<T = ()> = std::result::Result<T, String>;
