//! Schemes without state between queries: what must hold for their queries, and clients that are
//! flawed on purpose.
//!
//! A query of such a scheme is made once, goes to one server, and a later process never sends it
//! again. No two lookups share a query, and no two servers do.

use super::super::super::*;
use super::super::toy::Nowhere;
use super::scenario::Check;
use crate::session::shared::StartClient;
use privet_core::{RecordIndex, SecretRng};
use privet_schemes::contract::{ReservationId, Reserved};
use privet_schemes::registry::{self, ErasedClient, Recovered, Rehearsal, SchemePlan};
use privet_schemes::reservation::{Lookup, Pending, Prepared, Reservation};
use std::collections::HashMap;

/// A flaw that a test gives a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    None,
    /// Sends the first server's query to both.
    SendsOneQueryToBoth,
    /// Sends the same queries whenever it looks up the same index.
    RepeatsItself,
    /// Looks up nothing for index 0.
    LeaksZero,
}

pub(super) fn start_client(flaw: Flaw) -> StartClient {
    match flaw {
        Flaw::None => registry::client,
        Flaw::SendsOneQueryToBoth => |plan, identity, hint, kernels| {
            Flawed::start(
                Flaw::SendsOneQueryToBoth,
                registry::client(plan, identity, hint, kernels),
            )
        },
        Flaw::RepeatsItself => |plan, identity, hint, kernels| {
            Flawed::start(Flaw::RepeatsItself, registry::client(plan, identity, hint, kernels))
        },
        Flaw::LeaksZero => |plan, identity, hint, kernels| {
            Flawed::start(Flaw::LeaksZero, registry::client(plan, identity, hint, kernels))
        },
    }
}

struct Flawed {
    flaw: Flaw,
    client: Box<dyn ErasedClient>,
    /// By index.
    queries: HashMap<u64, Vec<Vec<u8>>>,
}

impl Flawed {
    fn start(flaw: Flaw, client: Result<Box<dyn ErasedClient>>) -> Result<Box<dyn ErasedClient>> {
        Ok(Box::new(Self { flaw, client: client?, queries: HashMap::new() }))
    }
}

impl ErasedClient for Flawed {
    fn plan(&self) -> &SchemePlan {
        self.client.plan()
    }

    fn prepare(&mut self, index: &RecordIndex, rng: &mut SecretRng) -> Result<Prepared> {
        if self.flaw == Flaw::LeaksZero && index.expose() == 0 {
            return Err(Error::api_misuse("nothing to look up"));
        }
        let Prepared::Ready(Lookup { sendable, pending }) = self.client.prepare(index, rng)? else {
            panic!("no query of a stateless scheme")
        };
        let mut queries = sendable.queries().to_vec();
        match self.flaw {
            Flaw::SendsOneQueryToBoth => queries[1] = queries[0].clone(),
            Flaw::RepeatsItself => {
                queries = self.queries.entry(index.expose()).or_insert(queries).clone();
            }
            _ => {}
        }
        // This goes through a reservation without meaning: only a reservation makes something that
        // can be sent.
        let reserved = Reserved::new(ReservationId(0), Vec::new().into(), queries);
        let Lookup { sendable, .. } = Reservation::new(reserved).commit(&mut Nowhere)?;
        Ok(Prepared::Ready(Lookup { sendable, pending }))
    }

    fn recover(&mut self, pending: Pending, answers: &[&[u8]]) -> Result<Recovered> {
        self.client.recover(pending, answers)
    }

    fn into_rehearsal(self: Box<Self>) -> Option<Box<dyn Rehearsal>> {
        self.client.into_rehearsal()
    }
}

/// Every query that was sent, with its server and its process.
#[derive(Default)]
pub(super) struct Ledger {
    sent: HashMap<Vec<u8>, (usize, u64)>,
    /// Different queries of the present process, to each server.
    different: [u64; 2],
    /// Lookups of the present process, and how many of them were found.
    asked: u64,
    found: u64,
    /// Queries that were sent again.
    pub(super) repeated: u64,
}

impl Ledger {
    pub(super) fn begin_process(&mut self) {
        (self.different, self.asked, self.found) = ([0; 2], 0, 0);
    }

    pub(super) fn asked(&mut self) {
        self.asked += 1;
    }

    pub(super) fn found(&mut self) {
        self.found += 1;
    }

    pub(super) fn send(&mut self, server: usize, role: u8, process: u64, query: &[u8]) -> Check {
        if usize::from(role) != server {
            return Err("a query went to the wrong server".to_owned());
        }
        match self.sent.insert(query.to_vec(), (server, process)) {
            None => self.different[server] += 1,
            Some((to, _)) if to != server => {
                return Err("one query went to two servers".to_owned());
            }
            Some((_, by)) if by != process => {
                return Err("a query of an earlier process was sent again".to_owned());
            }
            Some(_) => self.repeated += 1,
        }
        Ok(())
    }

    /// Call this when a process has ended in any way.
    pub(super) fn check(&self, servers: usize) -> Check {
        for different in &self.different[..servers] {
            if *different > self.asked {
                return Err("a lookup was more than one query to a server".to_owned());
            }
            if *different < self.found {
                return Err("two lookups were one query".to_owned());
            }
        }
        Ok(())
    }
}
