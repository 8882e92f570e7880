//! A few partitions of a table, laid out for the loop over hints.

use super::{MAX_RECORD_LEN, MAX_RECORDS_PER_PARTITION};
use crate::memory::{HugeBuffer, MemoryError};

/// A cache line and the longest vector, in bytes. Partitions are aligned to it, and the kernels may
/// read records in whole vectors of up to this length.
const LINE: usize = 64;

/// Some partitions of a table, from which hints take records.
///
/// Partitions arrive as a stream, in order. If each were added to all parities alone, the parities
/// would pass through the caches once for each partition. So a group is collected here first, small
/// enough to stay in the second-level cache. Then each parity is read and written only once for the
/// group.
///
/// After the records of each partition lies one record of zeros. A hint that does not select a
/// partition takes *this* record, so that the computation of the parity needs no branch and no
/// mask.
pub struct PartitionGroup {
    // `capacity` partitions, one every `stride` bytes. At the end there is one more line, only to
    // make loads of whole vectors legal. The bytes of each partition from `zero_record()` on are
    // never written.
    bytes: HugeBuffer<u8>,
    stride: usize,
    records_per_partition: usize,
    record_len: usize,
    capacity: usize,
    len: usize,
}

impl PartitionGroup {
    /// An empty group with room for `capacity` partitions of `records_per_partition` records of
    /// `record_len` bytes.
    ///
    /// # Errors
    ///
    /// [`MemoryError`] when the partitions exceed the address space or the system refuses.
    ///
    /// # Panics
    ///
    /// If `records_per_partition` is not a power of two up to
    /// [`MAX_RECORDS_PER_PARTITION`], `record_len` is not in
    /// `1..=`[`MAX_RECORD_LEN`], or `capacity` is 0.
    pub fn new(
        records_per_partition: usize,
        record_len: usize,
        capacity: usize,
    ) -> Result<PartitionGroup, MemoryError> {
        assert!(
            records_per_partition.is_power_of_two()
                && records_per_partition <= MAX_RECORDS_PER_PARTITION,
            "a partition has a power of two of records, at most 2^16"
        );
        assert!(
            0 < record_len && record_len <= MAX_RECORD_LEN,
            "a record has 1 to {MAX_RECORD_LEN} bytes"
        );
        assert!(capacity > 0, "a group has room for at least one partition");
        let too_large =
            || MemoryError::TooLarge { elements: capacity, element_bytes: records_per_partition };
        // The number of lines is odd, so that the same offset in neighbouring partitions falls into
        // different cache sets.
        let stride = (records_per_partition + 1)
            .checked_mul(record_len)
            .and_then(|bytes| bytes.checked_next_multiple_of(LINE))
            .and_then(|bytes| {
                bytes.checked_add(LINE * usize::from((bytes / LINE).is_multiple_of(2)))
            })
            .ok_or_else(too_large)?;
        let bytes = stride
            .checked_mul(capacity)
            .and_then(|bytes| bytes.checked_add(LINE))
            .ok_or_else(too_large)?;
        let bytes = HugeBuffer::new_zeroed(bytes)?;
        Ok(PartitionGroup { bytes, stride, records_per_partition, record_len, capacity, len: 0 })
    }

    /// The number of partitions in the group.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of partitions there is room for.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The number of records in each partition.
    pub fn records_per_partition(&self) -> usize {
        self.records_per_partition
    }

    /// The length of a record in bytes.
    pub fn record_len(&self) -> usize {
        self.record_len
    }

    /// Sets the number of partitions in the group. A partition holds what was last written to
    /// [`partition_mut`](PartitionGroup::partition_mut); at first it holds zeros.
    ///
    /// # Panics
    ///
    /// If `len` exceeds the capacity.
    pub fn set_len(&mut self, len: usize) {
        assert!(len <= self.capacity, "a group holds no more partitions than its capacity");
        self.len = len;
    }

    /// Takes all partitions out of the group. The table's bytes are public and are not erased.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// The records of the `i`-th partition of the group's capacity, one after the other. The caller
    /// fills them, with zeros beyond the table's end.
    ///
    /// # Panics
    ///
    /// If `i` is not below the capacity.
    pub fn partition_mut(&mut self, i: usize) -> &mut [u8] {
        assert!(i < self.capacity, "a group holds no more partitions than its capacity");
        let start = i * self.stride;
        let end = start + self.zero_record();
        &mut self.bytes[start..end]
    }

    /// The start of a partition's record of zeros, in bytes. The records come before it.
    pub(crate) fn zero_record(&self) -> usize {
        self.records_per_partition * self.record_len
    }

    /// The `i`-th partition: its records, the record of zeros, and padding after it, so that every
    /// record can be read in whole vectors.
    #[inline]
    pub(crate) fn partition(&self, i: usize) -> &[u8] {
        assert!(i < self.len);
        let start = i * self.stride;
        let end = start + self.zero_record() + self.record_len.next_multiple_of(LINE);
        &self.bytes[start..end]
    }
}

impl std::fmt::Debug for PartitionGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartitionGroup")
            .field("len", &self.len)
            .field("capacity", &self.capacity)
            .field("records_per_partition", &self.records_per_partition)
            .field("record_len", &self.record_len)
            .finish_non_exhaustive()
    }
}
