//! The server that holds the records of a table, and for each query reads those that it names.

use crate::contract::{Answerer, Role, Scheme, SchemeOf, nothing_to_ask};
use privet_core::{Result, TableSource};
use privet_kernels::Kernels;
use privet_kernels::memory::HugeBuffer;

/// A scheme whose servers hold the records and nothing else.
pub trait NamesRecords: Scheme {
    /// Copies the records of `table` to their places in huge pages. Behind them are zeros, as many
    /// as queries may name.
    ///
    /// # Errors
    /// As [`RecordServer::new`].
    fn lay_out(parameters: &Self::Parameters, table: TableSource<'_>) -> Result<HugeBuffer<u8>>;

    /// The answer to one query.
    fn answer(server: &RecordServer<Self>, query: &Self::Query) -> Self::Answer
    where
        Self: Sized;

    /// As [`Answerer::reply`].
    ///
    /// # Errors
    /// As [`Answerer::reply`].
    fn reply(_server: &RecordServer<Self>, _role: Role, _request: &[u8]) -> Result<Vec<u8>>
    where
        Self: Sized,
    {
        Err(nothing_to_ask())
    }

    /// As [`Answerer::streamed`].
    fn streamed(_server: &RecordServer<Self>) -> Option<&[u8]>
    where
        Self: Sized,
    {
        None
    }
}

/// A table laid out for answering.
pub struct RecordServer<S: Scheme> {
    pub(crate) parameters: S::Parameters,
    pub(crate) records: HugeBuffer<u8>,
    pub(crate) kernels: Kernels,
}

impl<S: NamesRecords> RecordServer<S> {
    /// Copies `table` into place; the source can be dropped.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `parameters` belong to a table of
    /// another shape, [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not
    /// enough memory.
    pub fn new<'t>(
        parameters: S::Parameters,
        table: impl Into<TableSource<'t>>,
        kernels: Kernels,
    ) -> Result<Self> {
        let records = S::lay_out(&parameters, table.into())?;
        Ok(Self { parameters, records, kernels })
    }
}

impl<S: NamesRecords> Answerer for RecordServer<S> {
    const SHARES_PASSES: bool = false;

    fn parameters(&self) -> &S::Parameters {
        &self.parameters
    }

    fn answer(&self, _role: Role, queries: &[S::Query]) -> Vec<S::Answer> {
        queries.iter().map(|query| S::answer(self, query)).collect()
    }

    fn huge_page_bytes(&self) -> Option<u64> {
        self.records.huge_page_bytes().map(|bytes| bytes as u64)
    }

    fn held(&self) -> Vec<&[u8]> {
        vec![&self.records]
    }

    fn reply(&self, role: Role, request: &[u8]) -> Result<Vec<u8>> {
        S::reply(self, role, request)
    }

    fn streamed(&self) -> Option<&[u8]> {
        S::streamed(self)
    }
}

impl<S: NamesRecords> SchemeOf for RecordServer<S> {
    type Scheme = S;
}
