//! Requests on their way, and queries that leave together.
//!
//! Queries that a session gives out together go to a server in one request, as far as the server
//! takes them: those of one lookup, and those whose journal records one sync covers. How many go
//! together follows from the lookups handed in so far and from what servers announced.

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

#[derive(Default)]
struct Server {
    /// How many queries it takes in a request, as it last said. 0: it has not said.
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
        if self.servers.len() <= server {
            self.servers.resize_with(server + 1, Server::default);
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
mod tests;
