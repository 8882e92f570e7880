//! Requests on their way, and queries that leave together.
//!
//! Queries that a session gives out together, because one sync covers their journal records, go to
//! a server in one request, as far as the server takes them. How many go together follows from the
//! lookups handed in so far and from what servers announced.

use super::report::Phase;
use crate::exchange::{Delivery, ResponseLimits, goes_on, message_len};
use crate::session::{Errand, ExchangeId, Query, Request, Response};
use privet_wire::{AnswerResponse, proto};
use std::collections::{HashMap, VecDeque};
use std::mem;
use std::time::Duration;

#[derive(Default)]
pub(super) struct Requests {
    /// What the chosen scheme prescribes. Before one is chosen, no answers and replies may come.
    pub(super) limits: ResponseLimits,
    servers: Vec<Server>,
    under_way: HashMap<ExchangeId, UnderWay>,
}

struct Server {
    /// How many queries it takes in a request, as it last said.
    max_queries: u32,
    /// Queries that have not left yet, …
    gathered: Vec<(ExchangeId, Query)>,
    /// … and how long the session waits for their answers.
    patience: Duration,
}

struct UnderWay {
    server: usize,
    phase: Phase,
    /// The exchanges that it is for, without those that the session has abandoned: several if it
    /// carries several queries.
    exchanges: Vec<Option<ExchangeId>>,
}

impl Requests {
    /// Has `request` leave, or wait for others.
    pub(super) fn send(
        &mut self,
        exchange: ExchangeId,
        server: usize,
        request: Request,
        patience: Duration,
        phase: Phase,
        out: &mut VecDeque<Errand>,
    ) {
        while self.servers.len() <= server {
            let (gathered, patience) = (Vec::new(), Duration::ZERO);
            self.servers.push(Server { max_queries: 1, gathered, patience });
        }
        let Request::Answer(query) = request else {
            return self.leaves(vec![exchange], server, request, patience, phase, out);
        };
        let to = &mut self.servers[server];
        to.gathered.push((exchange, query));
        to.patience = patience;
        if to.gathered.len() >= self.limits.queries.min(to.max_queries as usize) {
            self.send_gathered(server, out);
        }
    }

    /// Has all gathered queries leave.
    pub(super) fn send_all(&mut self, out: &mut VecDeque<Errand>) {
        (0..self.servers.len()).for_each(|server| self.send_gathered(server, out));
    }

    fn send_gathered(&mut self, server: usize, out: &mut VecDeque<Errand>) {
        let Server { gathered, patience, .. } = &mut self.servers[server];
        let (exchanges, queries): (Vec<_>, Vec<_>) = mem::take(gathered).into_iter().unzip();
        let patience = *patience;
        let groups: Vec<_> = match Query::together(&queries) {
            Some(query) => vec![(exchanges, query)],
            // They are not of one version of the table.
            None => exchanges.into_iter().map(|exchange| vec![exchange]).zip(queries).collect(),
        };
        for (exchanges, query) in groups {
            self.leaves(exchanges, server, Request::Answer(query), patience, Phase::Lookup, out);
        }
    }

    fn leaves(
        &mut self,
        exchanges: Vec<ExchangeId>,
        server: usize,
        request: Request,
        patience: Duration,
        phase: Phase,
        out: &mut VecDeque<Errand>,
    ) {
        let exchange = exchanges[0];
        let exchanges = exchanges.into_iter().map(Some).collect();
        self.under_way.insert(exchange, UnderWay { server, phase, exchanges });
        out.push_back(Errand::Send { exchange, server, request, patience });
    }

    /// The session waits for `exchange` no longer. That ends its request, if nothing else waits for
    /// it.
    pub(super) fn abandon(&mut self, exchange: ExchangeId, out: &mut VecDeque<Errand>) {
        for to in &mut self.servers {
            to.gathered.retain(|(other, _)| *other != exchange);
        }
        let ended = self.under_way.iter_mut().find_map(|(request, UnderWay { exchanges, .. })| {
            let waiting = exchanges.iter_mut().find(|waiting| **waiting == Some(exchange))?;
            *waiting = None;
            exchanges.iter().all(Option::is_none).then_some(*request)
        });
        if let Some(request) = ended {
            self.under_way.remove(&request);
            out.push_back(Errand::Abandon(request));
        }
    }

    /// What `delivery` brings to each exchange that its request is for, and what it counts as.
    pub(super) fn delivered(
        &mut self,
        request: ExchangeId,
        delivery: Delivery,
    ) -> Option<(Phase, Vec<(ExchangeId, Delivery)>)> {
        if goes_on(&delivery) {
            return Some((self.under_way.get(&request)?.phase, vec![(request, delivery)]));
        }
        let UnderWay { server, phase, exchanges } = self.under_way.remove(&request)?;
        let parts = match delivery {
            Ok((Response::Answered(answer), len)) => parted(answer, len, exchanges.len()),
            other => {
                if let Ok((Response::Described(description), _)) = &other {
                    self.servers[server].max_queries = description.max_queries;
                }
                vec![other; exchanges.len()]
            }
        };
        let of_each = exchanges.into_iter().zip(parts);
        Some((phase, of_each.filter_map(|(exchange, part)| Some((exchange?, part))).collect()))
    }
}

/// The answers to `count` queries that left together, which came as one `response` of `len` bytes.
/// Each has the size that it would have alone.
fn parted(response: AnswerResponse, len: u64, count: usize) -> Vec<Delivery> {
    if count == 1 {
        return vec![Ok((Response::Answered(response), len))];
    }
    let each = response.answer.len() / count;
    let is_whole = response.answer.len().is_multiple_of(count);
    let part = |number: usize| {
        let answer = match is_whole {
            true => response.answer.slice(number * each..(number + 1) * each),
            // Its length is wrong for each query, and the session says so.
            false => response.answer.clone(),
        };
        let answer = AnswerResponse { answer, ..response.clone() };
        let len = message_len(&proto::AnswerResponse::from(answer.clone()));
        Ok((Response::Answered(answer), len))
    };
    (0..count).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::tests::peer::Peer;
    use crate::session::tests::together::queries;
    use privet_core::{Epoch, TableId};
    use privet_schemes::SchemeId;
    use privet_wire::DescribeRequest;

    fn response(answer: &[u8]) -> AnswerResponse {
        AnswerResponse {
            table: TableId([1; 16]),
            epoch: Epoch(2),
            parameter_digest: [3; 32],
            answer: answer.to_vec().into(),
        }
    }

    fn alone(answer: &[u8]) -> (Response, u64) {
        let len = message_len(&proto::AnswerResponse::from(response(answer)));
        (Response::Answered(response(answer)), len)
    }

    fn parts(answer: &[u8], count: usize) -> Vec<(Response, u64)> {
        let parts = parted(response(answer), alone(answer).1, count);
        parts.into_iter().map(Result::unwrap).collect()
    }

    /// A request goes on as long as one of its queries is waited for.
    #[test]
    fn a_request_ends_with_the_last_of_its_queries() {
        let mut peer = Peer::keyed_by(SchemeId::SimplePir, 40);
        peer.description.max_queries = 3;
        let (mut requests, mut out) = (Requests::default(), VecDeque::new());
        requests.limits.queries = 5;
        let mut send = |requests: &mut Requests, number, request| {
            let (exchange, phase) = (ExchangeId(number), Phase::Lookup);
            requests.send(exchange, 0, request, Duration::ZERO, phase, &mut out);
            std::mem::take(&mut out)
        };
        let left = send(&mut requests, 9, Request::Describe(DescribeRequest::default()));
        assert_eq!(left.len(), 1);
        let described = Response::Described(peer.description.clone());
        assert!(requests.delivered(ExchangeId(9), Ok((described, 1))).is_some());
        let mut queries = queries(|| Peer::indexed_by(SchemeId::Dpf, 200, 12, 1));
        queries.retain(|query| query.role.0 == 0);
        let lens: Vec<_> = (0..)
            .zip(queries)
            .map(|(number, query)| send(&mut requests, number, Request::Answer(query)).len())
            .collect();
        assert_eq!(lens, [0, 0, 1]);
        let mut out = VecDeque::new();
        for (number, ended) in [(0, false), (2, false), (2, false), (1, true)] {
            requests.abandon(ExchangeId(number), &mut out);
            assert_eq!(!out.is_empty(), ended, "{number}");
        }
        assert!(matches!(out[0], Errand::Abandon(ExchangeId(0))));
        assert!(requests.delivered(ExchangeId(0), Ok((Response::End, 1))).is_none());
    }

    #[test]
    fn answers_that_come_together_are_parted_in_their_order_and_measured_each() {
        for (count, expected) in
            [(1, vec![&b"abcdef"[..]]), (2, vec![b"abc", b"def"]), (3, vec![b"ab", b"cd", b"ef"])]
        {
            assert_eq!(
                parts(b"abcdef", count),
                expected.into_iter().map(alone).collect::<Vec<_>>()
            );
        }
    }

    /// A server may send anything. No part of such a response has the length that an answer must
    /// have, so each query learns that it has no answer.
    #[test]
    fn a_response_that_cannot_be_parted_equally_is_no_answer_to_any_query() {
        for len in [1, 2, 4, 5, 7, 8] {
            assert_eq!(parts(&vec![9; len], 3), vec![alone(&vec![9; len]); 3]);
        }
        assert_eq!(parts(b"", 3).len(), 3);
    }
}
