//! The servers: the table in memory with what opens it. Both do the same.

use super::{Form, Tapir, TapirAnswer, TapirParameters, TapirQuery};
use crate::contract::{Answerer, Role, SchemeOf, Setup, StreamingServer, UpdatingServer};
use crate::offline::{Precomputed, PublicWords, check_len};
use privet_core::commit::{Changed, Prover, VectorCommitment};
use privet_core::{Edit, Error, Result, TableDelta, TableUpdate, TableView};
use privet_kernels::Kernels;
use privet_kernels::memory::HugeBuffer;

/// A server in the making: the table is there, and has still to be committed to (Setup, Figure 4).
pub struct TapirSetup<F: Form> {
    parameters: TapirParameters<F>,
    records: HugeBuffer<u8>,
    kernels: Kernels,
}

/// A table laid out for answering: its records in their natural order in huge pages, zero records after the last up to whole partitions, then what is announced to clients; and the
/// prover.
pub struct TapirServer<F: Form> {
    parameters: TapirParameters<F>,
    records: HugeBuffer<u8>,
    prover: <F::Commitment as VectorCommitment>::Prover,
    kernels: Kernels,
}

/// Room for the padded table and the announcement.
fn room<F: Form>(parameters: &TapirParameters<F>) -> Result<HugeBuffer<u8>> {
    let no_memory = || Error::unavailable("no memory for the table");
    let commitment = parameters.commitment();
    let len = commitment.vectors().padded_bytes() + commitment.announcement_len();
    let len = usize::try_from(len).map_err(|_| no_memory())?;
    HugeBuffer::new_zeroed(len).map_err(|error| no_memory().caused_by(error))
}

/// Bytes of the padded table.
fn table_bytes<F: Form>(parameters: &TapirParameters<F>) -> usize {
    parameters.commitment().vectors().padded_bytes() as usize
}

impl<F: Form> TapirSetup<F> {
    /// Copies `table` into place; the source can be dropped.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `parameters` belong to a table of another shape,
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the memory cannot be had.
    pub fn new(
        parameters: TapirParameters<F>,
        table: TableView<'_>,
        kernels: Kernels,
    ) -> Result<Self> {
        let bytes = table.bytes_for(parameters.shape())?;
        let mut records = room(&parameters)?;
        records[..bytes.len()].copy_from_slice(bytes);
        Ok(Self { parameters, records, kernels })
    }

    fn table(&self) -> &[u8] {
        &self.records[..table_bytes(&self.parameters)]
    }
}

impl<F: Form> Setup for TapirSetup<F> {
    type Server = TapirServer<F>;

    fn parameters(&self) -> &TapirParameters<F> {
        &self.parameters
    }

    fn kept_len(&self) -> u64 {
        self.parameters.commitment().kept_len()
    }

    fn precompute(&self, progress: &(dyn Fn(f64) + Sync)) -> Result<Precomputed> {
        let commitment = self.parameters.commitment();
        let kept = commitment.precompute(self.table(), self.kernels, progress)?;
        Ok(Precomputed { hint: PublicWords::default(), kept: PublicWords::from_bytes(&kept)? })
    }

    fn finish(mut self, kept: &[u8]) -> Result<TapirServer<F>> {
        check_len("what the server keeps of its commitments", kept.len() as u64, self.kept_len())?;
        let prover = self.parameters.commitment().prover(self.table(), kept, self.kernels)?;
        let announced_at = table_bytes(&self.parameters);
        self.records[announced_at..].copy_from_slice(&prover.announcement());
        let Self { parameters, records, kernels } = self;
        Ok(TapirServer { parameters, records, prover, kernels })
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

    fn write(&mut self, index: u64, record: &[u8]) {
        let start = index as usize * record.len();
        self.records[start..start + record.len()].copy_from_slice(record);
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
}

impl<F: Form> StreamingServer for TapirServer<F> {
    fn streamed(&self) -> &[u8] {
        &self.records
    }
}

impl<F: Form> UpdatingServer for TapirServer<F> {
    /// UpdateDB, Figure 6: the records, the commitments of the partitions they are in, and what opens these.
    fn update(&mut self, update: &TableUpdate) -> Result<TableDelta> {
        if update.shape() != self.parameters.shape() {
            return Err(Error::api_misuse("the update is for a table of another shape"));
        }
        let parameters = self.parameters.grown(update.shape_after())?;
        let (vectors, end) = (parameters.commitment().vectors(), table_bytes(&parameters));
        let mut grown = match end == table_bytes(&self.parameters) {
            true => None,
            false => {
                let mut records = room(&parameters)?;
                let table = self.table();
                records[..table.len()].copy_from_slice(table);
                Some(records)
            }
        };
        if let Some(grown) = &mut grown {
            std::mem::swap(&mut self.records, grown);
        }
        let record_len = vectors.record_len();
        let before: Vec<Vec<u8>> = update
            .written()
            .iter()
            .map(|(index, _)| self.records[*index as usize * record_len..][..record_len].to_vec())
            .collect();
        for (index, record) in update.written() {
            self.write(*index, record);
        }
        let changed: Vec<Changed<'_>> = update
            .written()
            .iter()
            .zip(&before)
            .map(|((index, _), before)| Changed { index: *index, before })
            .collect();
        let commitments = match self.prover.update(vectors, &self.records[..end], &changed) {
            Ok(commitments) => commitments,
            Err(error) => {
                for ((index, _), before) in update.written().iter().zip(&before) {
                    self.write(*index, before);
                }
                if let Some(before) = grown {
                    self.records = before;
                }
                return Err(error);
            }
        };
        self.records[end..].copy_from_slice(&self.prover.announcement());
        let edits = update.written().iter().zip(&before).map(|((index, record), before)| Edit {
            index: *index,
            difference: record.iter().zip(before).map(|(new, old)| new ^ old).collect(),
        });
        let (shape, after) = (update.shape(), update.shape_after());
        self.parameters = parameters;
        TableDelta::growing(shape, after, edits.collect(), commitments)
    }
}

impl<F: Form> SchemeOf for TapirSetup<F> {
    type Scheme = Tapir<F>;
}

impl<F: Form> SchemeOf for TapirServer<F> {
    type Scheme = Tapir<F>;
}
