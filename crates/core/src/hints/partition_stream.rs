//! The table streams past once, and every hint takes in its records.
//!
//! If hints took in one partition at a time, all parities would be read and written once for each
//! partition. So a *group* of partitions is collected, as many as fit into the processor's
//! second-level cache. Then one hint after the other takes its records from the whole group, with
//! its parity in registers.

use super::Partitions;
use crate::codec::Reader;
use crate::stream_digest::StreamDigest;
use crate::{Error, Result};
use privet_kernels::subset_hints::PartitionGroup;

/// About how many bytes a group of partitions has.
const GROUP_BYTES: usize = 1 << 20;
/// Four partitions share the vectors of blocks of the pseudorandom function.
const GROUP_STEP: usize = 4;
/// More partitions in a group gain nothing: parities are then touched rarely enough.
const LARGEST_GROUP: usize = 64;

/// Checks the order, length and digest of the stream, and passes it on, a group of partitions at a
/// time.
pub struct PartitionStream {
    partitions: Partitions,
    group: PartitionGroup,
    /// The partition that the group begins with.
    first_partition: u32,
    /// Bytes of the group that have arrived.
    filled: u64,
    /// The digest of everything before the group.
    digest: StreamDigest,
    expected_digest: [u8; 32],
    finished: bool,
}

/// An empty group of about a mebibyte.
///
/// # Errors
/// [`Blame::Unavailable`](crate::Blame::Unavailable) if there is not enough memory.
pub fn empty_group(partitions: &Partitions) -> Result<PartitionGroup> {
    let records = partitions.records() as usize;
    let group = GROUP_BYTES / (records * partitions.record_len());
    let capacity = (group / GROUP_STEP * GROUP_STEP).clamp(GROUP_STEP, LARGEST_GROUP);
    PartitionGroup::new(records, partitions.record_len(), capacity)
        .map_err(|error| Error::unavailable("no memory to prepare hints").caused_by(error))
}

impl PartitionStream {
    /// The stream from its beginning. The whole must have the BLAKE3 digest `expected_digest`.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](crate::Blame::Unavailable) if there is not enough memory.
    pub fn new(partitions: Partitions, expected_digest: [u8; 32]) -> Result<Self> {
        Ok(Self {
            partitions,
            group: empty_group(&partitions)?,
            first_partition: 0,
            filled: 0,
            digest: StreamDigest::default(),
            expected_digest,
            finished: false,
        })
    }

    /// The offset of the next byte.
    pub fn next_offset(&self) -> u64 {
        self.checkpoint_offset() + self.filled
    }

    /// The offset of the first byte that has not been passed on: a checkpoint leaves out an
    /// incomplete group.
    pub fn checkpoint_offset(&self) -> u64 {
        let begun = u64::from(self.first_partition) * self.partitions.partition_bytes();
        begun.min(self.partitions.shape().bytes())
    }

    /// Whether [`finish`](Self::finish) has succeeded.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Takes the bytes at `offset`. `take_in` gets each complete group, with the number of its
    /// first partition. Partitions after the one in which the table ends are never passed on: they
    /// are zero.
    ///
    /// # Errors
    /// [`Blame::PeerMisbehaved`](crate::Blame::PeerMisbehaved) if they are not the next ones or
    /// reach beyond the end.
    pub fn absorb(
        &mut self,
        offset: u64,
        mut chunk: &[u8],
        mut take_in: impl FnMut(u32, &mut PartitionGroup),
    ) -> Result<()> {
        let (due, total) = (self.next_offset(), self.partitions.shape().bytes());
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
        let partition_bytes = self.partitions.partition_bytes();
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
                self.hand_on(&mut take_in);
            }
        }
        Ok(())
    }

    /// Passes on the group, and empties it.
    fn hand_on(&mut self, take_in: &mut impl FnMut(u32, &mut PartitionGroup)) {
        let partition_bytes = self.partitions.partition_bytes();
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
        take_in(self.first_partition, &mut self.group);
        self.first_partition += partitions as u32;
        self.filled = 0;
        self.group.clear();
    }

    /// Checks that everything arrived and is as announced.
    ///
    /// # Errors
    /// [`Blame::Integrity`](crate::Blame::Integrity) if the digest does not match,
    /// [`Blame::PeerMisbehaved`](crate::Blame::PeerMisbehaved) if bytes are missing.
    pub fn finish(&mut self) -> Result<()> {
        let (arrived, total) = (self.next_offset(), self.partitions.shape().bytes());
        if arrived != total {
            return Err(Error::peer_misbehaved(format!(
                "the stream of the table ended after {arrived} of {total} bytes"
            )));
        }
        if self.digest.finalize() != self.expected_digest {
            return Err(Error::integrity(
                "the table that was streamed does not have the digest that the server announced; it was damaged on the way or the server is at fault",
            ));
        }
        self.finished = true;
        Ok(())
    }

    /// `partitions handed on (u32) ‖ digest so far`
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.first_partition.to_le_bytes());
        self.digest.encode(out);
    }

    /// Continues a stream that was encoded.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](crate::Blame::Corrupted) if the bytes are not one for this table,
    /// [`Blame::Unavailable`](crate::Blame::Unavailable) if there is not enough memory.
    pub fn decode(
        partitions: Partitions,
        expected_digest: [u8; 32],
        reader: &mut Reader<'_>,
    ) -> Result<Self> {
        let read = |error: Error| {
            Error::corrupted("the checkpoint of unfinished hints cannot be read").caused_by(error)
        };
        let mut stream = Self::new(partitions, expected_digest)?;
        stream.first_partition = reader.u32().map_err(read)?;
        stream.digest = StreamDigest::decode(reader).map_err(read)?;
        let begun = u64::from(stream.first_partition) * partitions.partition_bytes();
        if begun > partitions.shape().bytes().next_multiple_of(partitions.partition_bytes()) {
            return Err(Error::corrupted("a checkpoint lies beyond the end of its table"));
        }
        if stream.digest.absorbed() != Some(stream.checkpoint_offset()) {
            return Err(Error::corrupted(
                "a checkpoint's digest and its hints belong to different offsets",
            ));
        }
        Ok(stream)
    }
}
