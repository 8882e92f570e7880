//! The server of both forms: it holds points, and reads those around each query's point.

use super::record_polynomial::RecordPolynomial;
use crate::stored_setup::{SetupStore, StoredSetup};
use privet_core::{Error, Result, TableChanges, TableIdentity, TableSource, TableView};
use privet_kernels::Kernels;
use privet_kernels::memory::HugeBuffer;
use privet_schemes::contract::{Answerer, Parameters as _, Role, Scheme, SchemeOf};
use privet_schemes::laid_out::in_natural_order;
use privet_schemes::registry::room::{NewServer, ServerOptions, ServerStart};
use std::ops::Deref;

/// The parts that differ between the schemes whose servers answer from the points of a polynomial.
pub trait MakesPoints:
    Scheme<Parameters: Deref<Target = RecordPolynomial>> + Sized + 'static
{
    /// The part of reading the points around a point that is the same for all points.
    type Reads: Send + Sync;

    /// How they are read under `parameters`.
    fn reads(parameters: &Self::Parameters) -> Self::Reads;

    /// The entries around each query's point. All servers do the same, whatever their role.
    fn read(server: &PointsServer<Self>, queries: &[Self::Query]) -> Vec<Self::Answer>;

    /// Size of what is stored of all points, in bytes.
    fn bytes(parameters: &Self::Parameters) -> u64;

    /// Computes all points of `table`. `progress` is called with the share done.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `parameters` belong to a table of
    /// another shape, or the records are not as `parameters` say,
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
    fn compute(
        parameters: &Self::Parameters,
        table: TableView<'_>,
        options: ServerOptions,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<HugeBuffer<u8>>;

    /// Computes and writes them, as [`write_points`](crate::stored_setup::write_setup) says.
    ///
    /// # Errors
    /// As [`write_points`](crate::stored_setup::write_setup).
    fn write(
        parameters: &Self::Parameters,
        table: TableView<'_>,
        options: ServerOptions,
        memory: u64,
        store: &dyn SetupStore,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<()>;

    /// The cheaper way to the points of the next version.
    fn cheaper_way(parameters: &Self::Parameters, changes: &TableChanges) -> Way;

    /// A copy of the points `before`, patched by `changes`.
    ///
    /// # Errors
    /// As [`compute`](Self::compute).
    fn patched(
        parameters: &Self::Parameters,
        changes: &TableChanges,
        before: &[u8],
        threads: usize,
    ) -> Result<HugeBuffer<u8>>;
}

/// How the points of the next version are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Copied and patched.
    Patched,
    /// Computed from all records.
    Computed,
}

/// The records of a table, and nothing computed from them yet.
pub struct PointsSetup<S: MakesPoints> {
    parameters: S::Parameters,
    identity: TableIdentity,
    records: HugeBuffer<u8>,
    options: ServerOptions,
}

/// The points of a table.
pub struct PointsServer<S: MakesPoints> {
    pub(super) parameters: S::Parameters,
    pub(super) points: StoredSetup,
    pub(super) reads: S::Reads,
    pub(super) kernels: Kernels,
}

impl<S: MakesPoints> PointsSetup<S> {
    /// Copies `table`; the source can be dropped.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `parameters` belong to a table of
    /// another shape, [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not
    /// enough memory.
    pub fn new<'t>(
        parameters: S::Parameters,
        table: impl Into<TableSource<'t>>,
        kernels: Kernels,
        threads: usize,
    ) -> Result<Self> {
        let (table, shape) = (table.into(), parameters.shape());
        let records = in_natural_order(table, shape, shape.bytes())?;
        let options = ServerOptions { kernels, threads };
        Ok(Self { parameters, identity: table.identity(), records, options })
    }

    /// The server. Computes all points, and reports to `progress`.
    ///
    /// # Errors
    /// As [`MakesPoints::compute`].
    pub fn finish(self, progress: &(dyn Fn(f64) + Sync)) -> Result<PointsServer<S>> {
        let Self { parameters, identity, records, options } = self;
        let table = TableView::new(identity, &records)?;
        let points = S::compute(&parameters, table, options, progress)?;
        drop(records);
        PointsServer::new(parameters, points.into(), options.kernels)
    }
}

impl<S: MakesPoints> PointsServer<S> {
    /// A server of points that were computed before.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) unless there are as many as `parameters`
    /// say.
    pub fn new(parameters: S::Parameters, points: StoredSetup, kernels: Kernels) -> Result<Self> {
        points.check_len(S::bytes(&parameters))?;
        let reads = S::reads(&parameters);
        Ok(Self { parameters, points, reads, kernels })
    }

    /// Its successor, made by `way`, or by the cheaper way if that is `None`.
    pub(super) fn successor_by(
        &self,
        way: Option<Way>,
        parameters: S::Parameters,
        table: TableSource<'_>,
        changes: &TableChanges,
        threads: usize,
    ) -> Result<Option<Self>> {
        table.check_shape(parameters.shape())?;
        if (changes.shape(), changes.shape_after()) != (self.parameters.shape(), parameters.shape())
        {
            return Err(Error::api_misuse("the changes are between tables of other shapes"));
        }
        let Some(before) = self.points.in_memory() else { return Ok(None) };
        if parameters.encode() != self.parameters.encode() {
            // Another polynomial, because the table has outgrown this one.
            return Ok(None);
        }
        let after = match way.unwrap_or_else(|| S::cheaper_way(&parameters, changes)) {
            Way::Patched => S::patched(&parameters, changes, before, threads)?,
            Way::Computed => {
                let records = in_natural_order(table, table.shape(), table.shape().bytes())?;
                let table = TableView::new(table.identity(), &records)?;
                let options = ServerOptions { kernels: self.kernels, threads };
                S::compute(&parameters, table, options, &|_| {})?
            }
        };
        Self::new(parameters, after.into(), self.kernels).map(Some)
    }
}

impl<S: MakesPoints> SchemeOf for PointsServer<S> {
    type Scheme = S;
}

impl<S: MakesPoints> Answerer for PointsServer<S> {
    // Answering queries that have already arrived side by side takes a fifth less time with two
    // servers. That is not worth a wait for more.
    const SHARES_PASSES: bool = false;

    fn parameters(&self) -> &S::Parameters {
        &self.parameters
    }

    /// All servers do the same, so the query need not say which of them this is.
    fn answer(&self, _role: Role, queries: &[S::Query]) -> Vec<S::Answer> {
        S::read(self, queries)
    }

    fn resident_bytes(&self) -> u64 {
        self.points.resident_bytes()
    }

    fn huge_page_bytes(&self) -> Option<u64> {
        self.points.huge_page_bytes()
    }

    fn held(&self) -> Vec<&[u8]> {
        vec![&self.points]
    }

    fn check_held(&self) -> Result<()> {
        self.points.check_unchanged()
    }

    /// There is no successor if the points lie in a file: those of the next version are computed
    /// into a file of their own.
    fn successor(
        &self,
        parameters: S::Parameters,
        table: TableSource<'_>,
        changes: &TableChanges,
        threads: usize,
    ) -> Result<Option<(Self, Vec<u8>)>> {
        let server = self.successor_by(None, parameters, table, changes, threads)?;
        Ok(server.map(|server| (server, Vec::new())))
    }
}

/// A server that computes its points when it starts.
pub(super) fn start<S: MakesPoints>(
    start: ServerStart<'_>,
    parameters: S::Parameters,
) -> NewServer {
    let ServerStart { table, kernels, threads, .. } = start;
    let setup = PointsSetup::<S>::new(parameters, table, kernels, threads)?;
    start.after(|progress| setup.finish(progress))
}
