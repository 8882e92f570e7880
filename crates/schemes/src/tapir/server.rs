//! The servers: the table in memory, and the prover that opens its commitments. Both servers do the
//! same.

use super::{Form, Tapir, TapirAnswer, TapirParameters, TapirQuery};
use crate::contract::{Answerer, Parameters as _, Role, SchemeOf, Setup};
use crate::laid_out::in_natural_order;
use crate::offline::{Precomputed, PublicWords, check_len};
use privet_core::commit::{Changed, Prover, VectorCommitment};
use privet_core::{Error, Result, TableChanges, TableSource};
use privet_kernels::Kernels;
use privet_kernels::memory::HugeBuffer;

/// A server that is starting: it has the table, but no commitments yet (Setup, Figure 4).
pub struct TapirSetup<F: Form> {
    parameters: TapirParameters<F>,
    records: HugeBuffer<u8>,
    kernels: Kernels,
}

/// A table laid out for answering: its records in their natural order in huge pages, padded with
/// zero records to whole partitions; then the announcement to clients; and the prover.
pub struct TapirServer<F: Form> {
    parameters: TapirParameters<F>,
    records: HugeBuffer<u8>,
    prover: <F::Commitment as VectorCommitment>::Prover,
    kernels: Kernels,
}

/// Bytes of the padded table.
fn table_bytes<F: Form>(parameters: &TapirParameters<F>) -> usize {
    parameters.commitment().vectors().padded_bytes() as usize
}

impl<F: Form> TapirSetup<F> {
    /// Copies `table` into place; the source can be dropped.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `parameters` belong to a table of
    /// another shape, [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not
    /// enough memory.
    pub fn new<'t>(
        parameters: TapirParameters<F>,
        table: impl Into<TableSource<'t>>,
        kernels: Kernels,
    ) -> Result<Self> {
        let commitment = parameters.commitment();
        let len = commitment.vectors().padded_bytes() + commitment.announcement_len();
        let records = in_natural_order(table, parameters.shape(), len)?;
        Ok(Self { parameters, records, kernels })
    }

    fn table(&self) -> &[u8] {
        &self.records[..table_bytes(&self.parameters)]
    }

    fn proven_by(mut self, prover: <F::Commitment as VectorCommitment>::Prover) -> TapirServer<F> {
        let announced_at = table_bytes(&self.parameters);
        self.records[announced_at..].copy_from_slice(&prover.announcement());
        let Self { parameters, records, kernels } = self;
        TapirServer { parameters, records, prover, kernels }
    }
}

impl<F: Form> Setup for TapirSetup<F> {
    type Server = TapirServer<F>;

    fn kept_len(&self) -> u64 {
        self.parameters.commitment().kept_len()
    }

    fn precompute(&self, progress: &(dyn Fn(f64) + Sync)) -> Result<Precomputed> {
        let commitment = self.parameters.commitment();
        let kept = commitment.precompute(self.table(), self.kernels, progress)?;
        Ok(Precomputed { hint: PublicWords::default(), kept: PublicWords::from_bytes(&kept)? })
    }

    fn finish(self, kept: &[u8]) -> Result<TapirServer<F>> {
        check_len("what the server keeps of its commitments", kept.len() as u64, self.kept_len())?;
        let prover = self.parameters.commitment().prover(self.table(), kept, self.kernels)?;
        Ok(self.proven_by(prover))
    }
}

impl<F: Form> TapirServer<F> {
    fn table(&self) -> &[u8] {
        &self.records[..table_bytes(&self.parameters)]
    }

    /// One record of each partition, and the proof.
    fn answer_one(&self, role: Role, query: &TapirQuery) -> TapirAnswer {
        let pass = self.parameters.pass();
        let records = pass.gather(self.kernels, self.table(), &query.0.offsets);
        let mut proof = vec![0; self.parameters.commitment().proof_len()];
        self.prover.open(role.0, self.table(), &query.0.offsets, &records, &mut proof);
        TapirAnswer { records, proof }
    }
}

impl<F: Form> Answerer for TapirServer<F> {
    const SHARES_PASSES: bool = false;

    fn parameters(&self) -> &TapirParameters<F> {
        &self.parameters
    }

    fn answer(&self, role: Role, queries: &[TapirQuery]) -> Vec<TapirAnswer> {
        queries.iter().map(|query| self.answer_one(role, query)).collect()
    }

    fn resident_bytes(&self) -> u64 {
        self.records.len() as u64 + self.prover.resident_bytes()
    }

    fn huge_page_bytes(&self) -> Option<u64> {
        self.records.huge_page_bytes().map(|bytes| bytes as u64)
    }

    /// Leaves out some data that proofs are made from: clients check every proof.
    fn held(&self) -> Vec<&[u8]> {
        [&*self.records].into_iter().chain(self.prover.held()).collect()
    }

    /// Without an announcement clients stream the table itself, so any copy of it will do.
    fn streamed(&self) -> Option<&[u8]> {
        let announces = self.parameters.commitment().announcement_len() > 0;
        announces.then_some(&*self.records)
    }

    /// UpdateDB, Figure 6: changes the records, the commitments to their partitions, and the
    /// prover. `None`, so that a new server starts, if the table was cut anew.
    fn successor(
        &self,
        parameters: TapirParameters<F>,
        table: TableSource<'_>,
        changes: &TableChanges,
        _threads: usize,
    ) -> Result<Option<(Self, Vec<u8>)>> {
        if changes.shape() != self.parameters.shape() {
            return Err(Error::api_misuse("the changes begin with a table of another shape"));
        }
        // The announced parameters lack the data from which a server makes proofs. This server has
        // it.
        let grown = match self.parameters.grown(parameters.shape()) {
            Ok(grown) if grown.encode() == parameters.encode() => grown,
            _ => return Ok(None),
        };
        let setup = TapirSetup::new(grown, table, self.kernels)?;
        let changed: Vec<Changed<'_>> =
            changes.records().map(|(index, before, _)| Changed { index, before }).collect();
        let mut prover = self.prover.copied()?;
        let vectors = setup.parameters.commitment().vectors();
        let commitments = prover.update(vectors, setup.table(), &changed)?;
        Ok(Some((setup.proven_by(prover), commitments)))
    }
}

impl<F: Form> SchemeOf for TapirServer<F> {
    type Scheme = Tapir<F>;
}
