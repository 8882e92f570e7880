//! What must hold of everything that is sent.

use super::super::super::toy;
use super::super::scenario::{Check, Scheme};
use super::World;
use privet_schemes::offline::OfflinePhase;
use privet_wire::PrepareRequest;

impl World {
    /// Checks a request for hints at the moment at which it is sent.
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

    /// Checks one query at the moment at which it is sent.
    pub(super) fn check_query(&mut self, server: usize, role: u8, query: &[u8]) -> Check {
        match self.scheme {
            Scheme::Download => return Err("there is nobody to ask a query".to_owned()),
            Scheme::Dpf => return self.ledger.send(server, role, self.process, query),
            Scheme::Toy | Scheme::DummySubsets => {}
        }
        if !self.disk.kept().certified.contains(query) {
            return Err("a query was sent before its receipt".to_owned());
        }
        self.report.sent_again += u64::from(self.disk.kept().found_unfinished.contains(query));
        if self.scheme == Scheme::DummySubsets {
            // Which hint a query is from is for the test of kills to say, by what queries have in common.
            return Ok(());
        }
        if self.verifies {
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

    /// Of a scheme that verifies: that nothing is asked after the end, and nothing beside a query that is not settled.
    fn check_order(&self, query: &[u8]) -> Check {
        let kept = self.disk.kept();
        if kept.has_ended() || self.end_was_told {
            return Err("a query was sent after the end".to_owned());
        }
        let open = kept.open_queries();
        // What was settled in memory may be sent once more, by a call that waits for its turn.
        let others = open.iter().filter(|queries| !queries.iter().any(|other| other == query));
        if others.count() > 0 {
            return Err("a query was sent while another was not settled".to_owned());
        }
        Ok(())
    }
}
