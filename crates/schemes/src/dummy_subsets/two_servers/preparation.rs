//! The offline phase: the client draws a key and computes cutoffs, and the offline server computes
//! the parities (Algorithm 1 of the paper).

use super::generation::Layout;
use super::messages::{HintsRequest, hints_per_request, requests};
use super::{DummySubsetsParameters, DummySubsetsTwo};
use crate::contract::{Message as _, Preparation, SchemeOf};
use crate::offline::StreamConsumer;
use crate::stored_hints::{check_finished, fresh_key, rest, unreadable};
use privet_core::codec::Reader;
use privet_core::hints::LiveHint;
use privet_core::{Error, Result, Secret, SecretRng};
use privet_kernels::Kernels;
use zeroize::Zeroizing;

/// A generation of hints in preparation.
pub struct DummySubsetsTwoPreparation {
    parameters: DummySubsetsParameters,
    kernels: Kernels,
    layout: Layout,
    key: Secret<[u8; 16]>,
    /// The generation, as far as the replies have come.
    generation: Zeroizing<Vec<u8>>,
    /// Replies so far.
    replies: u64,
    /// The cutoffs of the present request.
    cutoffs: Option<Zeroizing<Vec<u32>>>,
    finished: bool,
}

impl DummySubsetsTwoPreparation {
    fn with(
        parameters: DummySubsetsParameters,
        generation: Zeroizing<Vec<u8>>,
        key: [u8; 16],
        replies: u64,
        kernels: Kernels,
    ) -> Self {
        let layout = Layout::new(&parameters);
        let key = Secret::new(key);
        Self {
            parameters,
            kernels,
            layout,
            key,
            generation,
            replies,
            cutoffs: None,
            finished: false,
        }
    }

    pub(super) fn with_key(
        parameters: DummySubsetsParameters,
        key: &[u8; 16],
        kernels: Kernels,
    ) -> Result<Self> {
        let generation = Layout::new(&parameters).empty(key, parameters.singles())?;
        Ok(Self::with(parameters, generation, *key, 0, kernels))
    }

    fn reply_len(&self) -> u64 {
        (hints_per_request(&self.parameters) * self.parameters.cut().record_len()) as u64
    }

    /// The first id of the present request.
    fn first_id(&self) -> u32 {
        self.replies as u32 * hints_per_request(&self.parameters) as u32
    }

    /// The cutoffs of the present request. Those of ids beyond the last hint are 0, which selects
    /// nothing.
    fn compute_cutoffs(&self) -> Zeroizing<Vec<u32>> {
        let (singles, partitions) = (self.parameters.singles(), self.parameters.partitions());
        let mut cutoffs = Zeroizing::new(vec![0; hints_per_request(&self.parameters)]);
        let first_id = self.first_id();
        let wanted = cutoffs.len().min((singles - first_id) as usize);
        let wanted = &mut cutoffs[..wanted];
        self.kernels.subset_cutoffs(
            self.key.expose(),
            first_id,
            partitions,
            partitions / 2 + 1,
            wanted,
        );
        cutoffs
    }
}

impl StreamConsumer for DummySubsetsTwoPreparation {
    fn next_offset(&self) -> u64 {
        self.replies * self.reply_len()
    }

    fn absorb(&mut self, offset: u64, chunk: &[u8]) -> Result<()> {
        if offset != self.next_offset() || self.replies == requests(&self.parameters) {
            return Err(Error::peer_misbehaved(format!(
                "the server sent byte {offset} of its replies when byte {} was due",
                self.next_offset()
            )));
        }
        if chunk.len() as u64 != self.reply_len() {
            return Err(Error::peer_misbehaved(format!(
                "a reply with hints has {} bytes, not {}",
                self.reply_len(),
                chunk.len()
            )));
        }
        let cutoffs = self.cutoffs.take().unwrap_or_else(|| self.compute_cutoffs());
        let first = self.first_id() as usize;
        let end = (first + cutoffs.len()).min(self.parameters.singles() as usize);
        let len = self.parameters.cut().record_len();
        let parities = self.layout.parities + first * len;
        let wanted = (end - first) * len;
        self.generation[parities..parities + wanted].copy_from_slice(&chunk[..wanted]);
        for (row, cutoff) in (first..end).zip(cutoffs.iter()).filter(|(_, cutoff)| **cutoff != 0) {
            let hint = LiveHint { id: row as u32, cutoff: *cutoff, above: false, extra: None };
            self.layout.put(&mut self.generation, row, hint);
        }
        self.replies += 1;
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        let missing = requests(&self.parameters) - self.replies;
        if missing > 0 {
            return Err(Error::peer_misbehaved(format!(
                "{missing} of {} replies with hints are missing",
                requests(&self.parameters)
            )));
        }
        self.finished = true;
        Ok(())
    }
}

impl Preparation for DummySubsetsTwoPreparation {
    fn begin(
        parameters: DummySubsetsParameters,
        _records_digest: [u8; 32],
        rng: &mut SecretRng,
        kernels: Kernels,
    ) -> Result<Self> {
        Self::with_key(parameters, &fresh_key(rng), kernels)
    }

    fn resume(
        parameters: DummySubsetsParameters,
        _records_digest: [u8; 32],
        checkpoint: &[u8],
        kernels: Kernels,
    ) -> Result<Self> {
        let mut reader = Reader::new("a checkpoint", checkpoint);
        let replies = reader.u64().map_err(unreadable)?;
        let generation = rest(&mut reader)?;
        let (key, _) = Layout::new(&parameters).check(&generation).map_err(unreadable)?;
        if replies > requests(&parameters) {
            return Err(Error::corrupted("a checkpoint lies beyond the last reply"));
        }
        Ok(Self::with(parameters, generation, key, replies, kernels))
    }

    /// `replies so far (u64) ‖ generation so far`
    fn checkpoint(&self) -> Zeroizing<Vec<u8>> {
        // Reserves room for everything at once: a vector that grows would leave copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(8 + self.generation.len()));
        bytes.extend(self.replies.to_le_bytes());
        bytes.extend_from_slice(&self.generation);
        bytes
    }

    fn checkpoint_offset(&self) -> u64 {
        self.next_offset()
    }

    fn generation(&self) -> Result<Zeroizing<Vec<u8>>> {
        check_finished(self.finished)?;
        Ok(self.generation.clone())
    }

    fn next_request(&mut self) -> Option<Zeroizing<Vec<u8>>> {
        if self.replies >= requests(&self.parameters) {
            return None;
        }
        let cutoffs = self.cutoffs.take().unwrap_or_else(|| self.compute_cutoffs());
        let request = HintsRequest {
            key: Secret::new(*self.key.expose()),
            first_id: self.first_id(),
            cutoffs: cutoffs.to_vec(),
        };
        self.cutoffs = Some(cutoffs);
        Some(Zeroizing::new(request.encode()))
    }
}

impl SchemeOf for DummySubsetsTwoPreparation {
    type Scheme = DummySubsetsTwo;
}
