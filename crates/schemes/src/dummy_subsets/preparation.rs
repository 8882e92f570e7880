//! The offline phase: the table streams past once, and every hint picks up its records (Algorithm 4 of the paper).
//!
//! Going partition by partition would read and write all parities once for each partition. So a *group* of partitions is collected, as many as fit the
//! processor's second-level cache, and hint after hint takes its records from the whole group with its parity in registers.

use super::generation::Generation;
use super::{DummySubsets, DummySubsetsParameters};
use crate::contract::{Preparation, SchemeOf};
use crate::offline::StreamConsumer;
use crate::stream_digest::StreamDigest;
use privet_core::codec::Reader;
use privet_core::{Error, Result, SecretRng};
use privet_kernels::Kernels;
use privet_kernels::subset_hints::PartitionGroup;
use zeroize::Zeroizing;

/// Bytes of a group of partitions, about.
const GROUP_BYTES: usize = 1 << 20;
/// Partitions share blocks of the pseudorandom function's vectors by fours.
const GROUP_STEP: usize = 4;
/// More partitions in a group than this gain nothing: parities are then touched rarely enough.
const LARGEST_GROUP: usize = 64;

/// A generation of hints in the making.
pub struct DummySubsetsPreparation {
    parameters: DummySubsetsParameters,
    kernels: Kernels,
    pub(super) generation: Generation,
    cutoffs_ready: bool,
    group: PartitionGroup,
    /// The partition that the group begins with.
    first_partition: u32,
    /// Bytes of the group that have arrived.
    filled: u64,
    /// Over everything before the group.
    digest: StreamDigest,
    records_digest: [u8; 32],
    finished: bool,
}

impl DummySubsetsPreparation {
    fn new(
        parameters: DummySubsetsParameters,
        records_digest: [u8; 32],
        generation: Generation,
        kernels: Kernels,
    ) -> Result<Self> {
        let records = parameters.partition_records() as usize;
        let group = GROUP_BYTES / (records * parameters.record_len());
        let capacity = (group / GROUP_STEP * GROUP_STEP).clamp(GROUP_STEP, LARGEST_GROUP);
        let group = PartitionGroup::new(records, parameters.record_len(), capacity)
            .map_err(|error| Error::unavailable("no memory to prepare hints").caused_by(error))?;
        Ok(Self {
            parameters,
            kernels,
            generation,
            cutoffs_ready: false,
            group,
            first_partition: 0,
            filled: 0,
            digest: StreamDigest::default(),
            records_digest,
            finished: false,
        })
    }

    fn partition_bytes(&self) -> u64 {
        u64::from(self.parameters.partition_records()) * self.parameters.shape().record_len()
    }

    fn compute_cutoffs(&mut self) {
        let (singles, partitions) = (self.parameters.singles(), self.parameters.partitions());
        let (key, cutoffs, _) = self.generation.parts_mut();
        let (for_singles, for_pairs) = cutoffs.split_at_mut(singles as usize);
        let (key, half) = (key.expose(), partitions / 2);
        self.kernels.subset_cutoffs(key, 0, partitions, half + 1, for_singles);
        self.kernels.subset_cutoffs(key, singles, partitions, half, for_pairs);
        self.generation.cutoffs_computed();
        self.cutoffs_ready = true;
    }

    /// Lets every hint take its records from the group, and empties it.
    fn take_in_group(&mut self) {
        if !self.cutoffs_ready {
            self.compute_cutoffs();
        }
        let partition_bytes = self.partition_bytes();
        let partitions = self.filled.div_ceil(partition_bytes) as usize;
        let mut rest = self.filled;
        for number in 0..partitions {
            let arrived = rest.min(partition_bytes) as usize;
            let partition = self.group.partition_mut(number);
            partition[arrived..].fill(0);
            self.digest.absorb(&partition[..arrived]);
            rest -= arrived as u64;
        }
        self.group.set_len(partitions);

        let singles = self.parameters.singles();
        let (key, cutoffs, parities) = self.generation.parts_mut();
        let (single_cutoffs, pair_cutoffs) = cutoffs.split_at(singles as usize);
        let (single_parities, pair_parities) =
            parities.split_at_mut(singles as usize * self.parameters.record_len());
        let (key, first) = (key.expose(), self.first_partition);
        self.kernels.subset_accumulate_single(
            key,
            0,
            single_cutoffs,
            first,
            &self.group,
            single_parities,
        );
        self.kernels.subset_accumulate_pairs(
            key,
            singles,
            pair_cutoffs,
            first,
            &self.group,
            pair_parities,
        );
        self.first_partition += partitions as u32;
        self.filled = 0;
        self.group.clear();
    }
}

impl StreamConsumer for DummySubsetsPreparation {
    fn next_offset(&self) -> u64 {
        self.checkpoint_offset() + self.filled
    }

    fn absorb(&mut self, offset: u64, mut chunk: &[u8]) -> Result<()> {
        let (due, total) = (self.next_offset(), self.parameters.shape().bytes());
        if offset != due {
            return Err(Error::peer_misbehaved(format!(
                "the server sent byte {offset} of the table when byte {due} was due"
            )));
        }
        if chunk.len() as u64 > total - due {
            return Err(Error::peer_misbehaved(format!(
                "the server sent more than the {total} bytes of the table"
            )));
        }
        let partition_bytes = self.partition_bytes();
        let group_bytes = partition_bytes * self.group.capacity() as u64;
        while !chunk.is_empty() {
            let number = (self.filled / partition_bytes) as usize;
            let within = (self.filled % partition_bytes) as usize;
            let room = &mut self.group.partition_mut(number)[within..];
            let (head, rest) = chunk.split_at(room.len().min(chunk.len()));
            room[..head.len()].copy_from_slice(head);
            chunk = rest;
            self.filled += head.len() as u64;
            if self.filled == group_bytes || self.next_offset() == total {
                self.take_in_group();
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        let (arrived, total) = (self.next_offset(), self.parameters.shape().bytes());
        if arrived != total {
            return Err(Error::peer_misbehaved(format!(
                "the stream of the table ended after {arrived} of {total} bytes"
            )));
        }
        if self.digest.finalize() != self.records_digest {
            return Err(Error::integrity(
                "the table that was streamed does not have the digest that the server announced; it was damaged on the way or the server is at fault",
            ));
        }
        self.finished = true;
        Ok(())
    }
}

impl Preparation for DummySubsetsPreparation {
    fn begin(
        parameters: DummySubsetsParameters,
        records_digest: [u8; 32],
        rng: &mut SecretRng,
        kernels: Kernels,
    ) -> Result<Self> {
        let generation = Generation::fresh(&parameters, rng)?;
        Self::new(parameters, records_digest, generation, kernels)
    }

    fn resume(
        parameters: DummySubsetsParameters,
        records_digest: [u8; 32],
        checkpoint: &[u8],
        kernels: Kernels,
    ) -> Result<Self> {
        let read = |error: Error| {
            Error::corrupted("the checkpoint of hints in the making cannot be read")
                .caused_by(error)
        };
        let mut reader = Reader::new("a checkpoint", checkpoint);
        let first_partition = reader.u32().map_err(read)?;
        let cutoffs_ready = reader.u8().map_err(read)? != 0;
        let digest = StreamDigest::decode(&mut reader).map_err(read)?;
        let rest = Zeroizing::new(reader.bytes(reader.remaining()).map_err(read)?.to_vec());
        let generation = Generation::decode(&parameters, rest)?;
        let mut resumed = Self::new(parameters, records_digest, generation, kernels)?;
        let begun = u64::from(first_partition) * resumed.partition_bytes();
        if begun > resumed.parameters.shape().bytes().next_multiple_of(resumed.partition_bytes()) {
            return Err(Error::corrupted("a checkpoint lies beyond the end of its table"));
        }
        resumed.first_partition = first_partition;
        resumed.cutoffs_ready = cutoffs_ready;
        if digest.absorbed() != Some(resumed.checkpoint_offset()) {
            return Err(Error::corrupted(
                "a checkpoint's digest and its hints are of different places",
            ));
        }
        resumed.digest = digest;
        Ok(resumed)
    }

    /// `partitions taken in (u32) ‖ whether cutoffs are computed (u8) ‖ digest so far ‖ generation so far`
    fn checkpoint(&self) -> Zeroizing<Vec<u8>> {
        // Room for all of it at once: growing would leave copies behind.
        let mut bytes =
            Zeroizing::new(Vec::with_capacity(self.generation.encoded().len() + (1 << 17)));
        bytes.extend(self.first_partition.to_le_bytes());
        bytes.push(u8::from(self.cutoffs_ready));
        self.digest.encode(&mut bytes);
        bytes.extend_from_slice(self.generation.encoded());
        bytes
    }

    fn checkpoint_offset(&self) -> u64 {
        let begun = u64::from(self.first_partition) * self.partition_bytes();
        begun.min(self.parameters.shape().bytes())
    }

    fn generation(&self) -> Result<Zeroizing<Vec<u8>>> {
        if !self.finished {
            return Err(Error::api_misuse(
                "a generation of hints is asked for before it is finished",
            ));
        }
        Ok(Zeroizing::new(self.generation.encoded().to_vec()))
    }
}

impl SchemeOf for DummySubsetsPreparation {
    type Scheme = DummySubsets;
}
