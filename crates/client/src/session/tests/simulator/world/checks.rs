//! What must hold for everything that is sent, and for everything that is told.

use super::super::super::toy;
use super::super::scenario::{Check, Scheme};
use super::{Process, RECORD_LEN, World};
use crate::session::*;
use privet_core::{Blame, Reason};
use privet_schemes::offline::OfflinePhase;
use privet_wire::PrepareRequest;

impl World {
    /// Checks a request for hints when it is sent.
    pub(super) fn check_request(&mut self, server: usize, request: &PrepareRequest) -> Check {
        let OfflinePhase::Ask { role, .. } = self.peer.scheme().plan.offline else {
            return Err("hints were asked for that nobody computes".to_owned());
        };
        if request.role != role || server != usize::from(role.0) {
            return Err("a request went to another server than the one that may see it".to_owned());
        }
        let kept = self.disk.kept();
        let preparation = kept.opened + kept.restarted + kept.switches;
        drop(kept);
        let number = (self.process, preparation, toy::reply_number_of(&request.request));
        let first = self.requests.entry(number).or_insert_with(|| request.request.to_vec());
        if *first != request.request {
            return Err("a request was repeated with other bytes".to_owned());
        }
        self.report.requests += 1;
        Ok(())
    }

    /// Checks one query when it is sent.
    pub(super) fn check_query(&mut self, server: usize, role: u8, query: &[u8]) -> Check {
        match self.scenario.scheme {
            Scheme::Download => return Err("there is nobody to ask a query".to_owned()),
            Scheme::Dpf | Scheme::LateHint => {
                return self.ledger.send(server, role, self.process, query);
            }
            Scheme::Toy | Scheme::DummySubsets => {}
        }
        if !self.disk.kept().certified.contains(query) {
            return Err("a query was sent before its receipt".to_owned());
        }
        self.report.sent_again += u64::from(self.disk.kept().found_unfinished.contains(query));
        if self.scenario.scheme == Scheme::DummySubsets {
            // Which hint a query uses is checked by the test of kills, from what queries share.
            return Ok(());
        }
        if self.scenario.verifies {
            self.check_order(query)?;
        }
        let (nonce, hint) = toy::hint_of(query);
        let reservation = toy::reservation_of(query);
        let by_hint = self.by_hint.entry((role, nonce.clone(), hint));
        if by_hint.or_insert_with(|| query.to_vec()) != query {
            return Err("one hint was used for two queries".to_owned());
        }
        let by_reservation = self.by_reservation.entry((role, nonce, reservation));
        if by_reservation.or_insert_with(|| query.to_vec()) != query {
            return Err("a query was sent again with other bytes".to_owned());
        }
        Ok(())
    }

    /// For a scheme that verifies: nothing is asked after the end, and nothing beside a query that
    /// is not settled.
    fn check_order(&self, query: &[u8]) -> Check {
        let kept = self.disk.kept();
        if kept.has_ended() || self.end_was_told {
            return Err("a query was sent after the end".to_owned());
        }
        let open = kept.open_queries();
        // A query that was settled in memory may be sent once more, by a call that waits for its
        // turn.
        let others = open.iter().filter(|queries| !queries.iter().any(|other| other == query));
        if others.count() > 0 {
            return Err("a query was sent while another was not settled".to_owned());
        }
        Ok(())
    }
}

/// Outcomes that are told.
impl World {
    pub(super) fn told_outcome(
        &mut self,
        process: &mut Process,
        lookup: LookupId,
        outcome: Result<Option<Value>>,
    ) -> Check {
        let outcome = match outcome {
            Ok(Some(value)) => Ok(value),
            Ok(None) => return Err("a record has no value".to_owned()),
            Err(error) => Err(error),
        };
        self.report.trace.push((self.now, self.process, 0, "told", 0));
        let Some((index, oldest)) = process.wanted.remove(&lookup) else {
            return Err("a lookup has two outcomes".to_owned());
        };
        if let Err(error) = &outcome
            && self.is_the_end(error)
        {
            return self.end_is_told();
        }
        match outcome {
            Ok(_) if self.end_was_told => {
                return Err("a value was told after the end".to_owned());
            }
            Ok(value) if self.was_record(index, oldest, &value) => {
                self.report.found += 1;
                self.ledger.found();
            }
            Ok(_) if self.liar.is_some() && !self.scenario.verifies => self.report.wrong += 1,
            Ok(_) => return Err(format!("the value of record {index} is wrong")),
            Err(error) if self.is_amid_a_change(&error) => self.report.failed += 1,
            // With a scheme that verifies, nothing is asked before a server with a missing answer
            // has sent it.
            Err(error)
                if (self.faults || (self.scenario.verifies && self.liar.is_some()))
                    && matches!(
                        error.blame(),
                        Blame::Unavailable | Blame::Exhausted | Blame::Selective
                    ) =>
            {
                self.report.failed += 1;
            }
            Err(error)
                if self.liar.is_some()
                    && matches!(error.blame(), Blame::InvalidMessage | Blame::PeerMisbehaved) =>
            {
                self.report.failed += 1;
            }
            Err(error) if self.files.is_some() && error.blame() == Blame::Corrupted => {
                self.report.met_damage += 1;
            }
            Err(error) => return Err(format!("a lookup failed: {error}")),
        }
        Ok(())
    }

    /// Whether an answer failed verification.
    pub(super) fn is_the_end(&self, error: &Error) -> bool {
        self.scenario.verifies && self.liar.is_some() && error.blame() == Blame::Integrity
    }

    /// Whether one server was asked before the table changed and the other after, and they share no
    /// version.
    pub(super) fn is_amid_a_change(&self, error: &Error) -> bool {
        let several = self.servers > 1 && !self.versions.is_empty();
        several && error.reason() == Some(Reason::VersionsDiffer)
    }

    pub(super) fn end_is_told(&mut self) -> Check {
        if !self.disk.kept().has_ended() {
            return Err("the end was told before it was durable".to_owned());
        }
        self.end_was_told = true;
        self.report.told_of_the_end += 1;
        Ok(())
    }

    /// Whether `value` is the record's, in some version since `oldest`.
    fn was_record(&self, index: u64, oldest: usize, value: &[u8]) -> bool {
        let versions = self.versions.get(oldest..=self.version);
        let mut versions = versions.unwrap_or(std::slice::from_ref(&self.peer)).iter();
        let at = (index * RECORD_LEN) as usize;
        versions.any(|version| version.records[at..][..RECORD_LEN as usize] == *value)
    }
}
