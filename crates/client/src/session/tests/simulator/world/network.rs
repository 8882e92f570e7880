//! The network and the servers: what is sent, what happens to it, and what comes back.

use super::super::super::world::seen_of;
use super::super::scenario::Check;
use super::{Coming, Process, RECORD_LEN, World, milliseconds};
use crate::session::*;

impl World {
    pub(super) fn transmit(
        &mut self,
        process: &mut Process,
        exchange: ExchangeId,
        server: usize,
        request: Request,
    ) -> Check {
        if !self.disk.step() {
            return Ok(());
        }
        match &request {
            Request::Fetch(request) if self.shelf.held().complete.contains(&request.part) => {
                return Err(format!("the {} is stored and was fetched again", request.part));
            }
            Request::Prepare(request) => self.check_request(server, request)?,
            Request::Answer(request) => self.check_query(server, request.role.0, &request.query)?,
            _ => {}
        }
        let (kind, len) = seen_of(&request);
        self.report.trace.push((self.now, self.process, server, kind, len));
        let responses = self.responses(server, &request);
        let mut arrival =
            self.now + milliseconds(1 + if self.faults { self.dice.roll(30) } else { 0 });
        for response in responses {
            process.will(arrival, Coming::Response(exchange, response));
            arrival += milliseconds(self.dice.roll(5));
        }
        Ok(())
    }

    /// The responses to a request; any of them may be lost.
    fn responses(&mut self, server: usize, request: &Request) -> Vec<Result<Response>> {
        let mut responses = self.peer.respond(request);
        if self.liar == Some(server) {
            self.lie(&mut responses);
        }
        if !self.faults {
            return responses;
        }
        if self.dice.roll(40) == 0 {
            self.away_until[server] = self.now + milliseconds(self.dice.roll(4000));
        }
        if self.now < self.away_until[server] {
            return vec![Err(Error::unavailable("the server is away"))];
        }
        match self.dice.roll(14) {
            0 => Vec::new(),
            1 => vec![Err(Error::unavailable("the connection broke"))],
            2 => vec![Err(Error::exhausted("the server is busy"))],
            3 => {
                let twice = |response: Result<Response>| {
                    response.map_or_else(
                        |error| vec![Err(error)],
                        |response| vec![Ok(response.clone()), Ok(response)],
                    )
                };
                responses.into_iter().flat_map(twice).collect()
            }
            4 => {
                let left = self.dice.roll(responses.len() as u64 + 1) as usize;
                responses.truncate(left);
                responses.push(Err(Error::unavailable("the stream broke off")));
                responses
            }
            _ => responses,
        }
    }

    /// Changes an answer, perhaps.
    fn lie(&mut self, responses: &mut [Result<Response>]) {
        let Some(Ok(Response::Answered(response))) = responses.first_mut() else { return };
        let mut answer = response.answer.to_vec();
        // A client that verifies ends at the first lie.
        let sides = if self.scenario.verifies { 60 } else { 8 };
        match self.lie_dice.roll(sides) {
            0 | 1 if self.scenario.verifies => {
                let bit = self.lie_dice.roll(8 * answer.len() as u64);
                answer[bit as usize / 8] ^= 1 << (bit % 8);
            }
            0 | 1 => answer[self.lie_dice.roll(RECORD_LEN) as usize] ^= 0x20,
            2 => answer.truncate(self.lie_dice.roll(RECORD_LEN) as usize),
            3 => response.epoch.0 += 1,
            _ => {}
        }
        response.answer = answer.into();
    }
}
