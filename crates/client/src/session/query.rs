//! A query on its way to one server.

use privet_core::TableIdentity;
use privet_schemes::contract::Role;
use privet_schemes::reservation::Sendable;
use privet_wire::prost::bytes::Bytes;
use privet_wire::{AnswerRequest, proto};
use std::ops::Deref;
use zeroize::Zeroizing;

#[cfg(doctest)]
#[doc = include_str!("query/impossible.md")]
mod impossible {}

/// A query that may be sent to one server, with the fields that every message carries.
///
/// It can only be made of a [`Sendable`]. So no [exchange](mod@crate::exchange) takes a query of a
/// scheme with single-use hints before a journal holds it: see
/// [`reservation`](privet_schemes::reservation). The message can be read but not changed. The file
/// `query/impossible.md` has programs that try.
#[derive(Clone, PartialEq, Eq)]
pub struct Query(AnswerRequest);

impl Query {
    /// The query to each server, in the order of their roles.
    pub fn all(
        sendable: &Sendable,
        table: &TableIdentity,
        parameter_digest: [u8; 32],
    ) -> Vec<Self> {
        let query = |(role, query): (u8, &Vec<u8>)| {
            Self(AnswerRequest {
                table: table.id,
                epoch: table.epoch,
                parameter_digest,
                role: Role(role),
                query: erased_at_last(Zeroizing::new(query.clone())),
            })
        };
        (0..=u8::MAX).zip(sendable.queries()).map(query).collect()
    }

    /// Queries for one server, one after the other in one message; the answers come in the same
    /// order. `None` if they are not for the same role, table, version and scheme, or have not the
    /// same length.
    pub fn together(queries: &[Self]) -> Option<Self> {
        if let [only] = queries {
            return Some(only.clone());
        }
        let Self(first) = queries.first()?;
        let belongs = |Self(query): &Self| {
            let AnswerRequest { table, epoch, parameter_digest, role, query } = query;
            (table, epoch, parameter_digest, role, query.len())
                == (
                    &first.table,
                    &first.epoch,
                    &first.parameter_digest,
                    &first.role,
                    first.query.len(),
                )
        };
        if !queries.iter().all(belongs) {
            return None;
        }
        let mut all = Zeroizing::new(Vec::with_capacity(queries.len() * first.query.len()));
        queries.iter().for_each(|Self(query)| all.extend_from_slice(&query.query));
        Some(Self(AnswerRequest { query: erased_at_last(all), ..first.clone() }))
    }
}

impl std::fmt::Debug for Query {
    /// Prints no query bytes: the queries to several servers together say what is looked up.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Query({} bytes to role {})", self.0.query.len(), self.0.role.0)
    }
}

impl Deref for Query {
    type Target = AnswerRequest;

    fn deref(&self) -> &AnswerRequest {
        &self.0
    }
}

impl From<Query> for proto::AnswerRequest {
    fn from(query: Query) -> Self {
        Self::from(query.0)
    }
}

/// Bytes for a message that may hold a secret. Copies share them, and they are erased when the last
/// copy is dropped. (Copies that the network makes are beyond this.)
pub(crate) fn erased_at_last(bytes: Zeroizing<Vec<u8>>) -> Bytes {
    Bytes::from_owner(bytes)
}
