//! The way to the kernels of [`subset_hints`](crate::subset_hints), of which there are many.

#[cfg(target_arch = "x86_64")]
use super::Arm;
use super::Kernels;
use crate::portable;
use crate::subset_hints::PartitionGroup;
#[cfg(target_arch = "x86_64")]
use crate::x86_64::{avx2, avx512};

impl Kernels {
    pub(crate) fn subset_cutoffs_dispatch(
        self,
        key: &[u8; 16],
        first_id: u32,
        partitions: u32,
        rank: u32,
        out: &mut [u32],
    ) {
        on_arm!(self, subset_hints::cutoffs(key, first_id, partitions, rank, out));
    }

    pub(crate) fn subset_accumulate_single_dispatch(
        self,
        key: &[u8; 16],
        first_id: u32,
        cutoffs: &[u32],
        first_partition: u32,
        group: &PartitionGroup,
        parities: &mut [u8],
    ) {
        on_arm!(
            self,
            subset_hints::accumulate_single(
                key,
                first_id,
                cutoffs,
                first_partition,
                group,
                parities
            )
        );
    }

    pub(crate) fn subset_accumulate_pairs_dispatch(
        self,
        key: &[u8; 16],
        first_id: u32,
        cutoffs: &[u32],
        first_partition: u32,
        group: &PartitionGroup,
        parities: &mut [u8],
    ) {
        on_arm!(
            self,
            subset_hints::accumulate_pairs(
                key,
                first_id,
                cutoffs,
                first_partition,
                group,
                parities
            )
        );
    }

    pub(crate) fn subset_accumulate_all_dispatch(
        self,
        key: &[u8; 16],
        first_id: u32,
        first_partition: u32,
        group: &PartitionGroup,
        parities: &mut [u8],
    ) {
        on_arm!(
            self,
            subset_hints::accumulate_all(key, first_id, first_partition, group, parities)
        );
    }

    pub(crate) fn subset_group_matches_dispatch(
        self,
        key: &[u8; 16],
        partition: u32,
        offset: u16,
        mask: u16,
        groups: &[u32],
        matches: &mut [u8],
    ) {
        on_arm!(self, subset_hints::group_matches(key, partition, offset, mask, groups, matches));
    }

    pub(crate) fn subset_equal_halfwords_dispatch(
        self,
        words: &[u16],
        wanted: u16,
        matches: &mut [u64],
    ) {
        on_arm!(self, subset_hints::equal_halfwords(words, wanted, matches));
    }

    pub(crate) fn subset_offset_matches_dispatch(
        self,
        key: &[u8; 16],
        partition: u32,
        offset: u16,
        mask: u16,
        first_word: u32,
        matches: &mut [u64],
    ) {
        on_arm!(
            self,
            subset_hints::offset_matches(key, partition, offset, mask, first_word, matches)
        );
    }

    pub(crate) fn subset_equal_words_dispatch(
        self,
        words: &[u32],
        wanted: u32,
        matches: &mut [u64],
    ) {
        on_arm!(self, subset_hints::equal_words(words, wanted, matches));
    }

    pub(crate) fn subset_selects_at_dispatch(
        self,
        key: &[u8; 16],
        partition: u32,
        ids: &[u32],
        out: &mut [u32],
    ) {
        on_arm!(self, subset_hints::selects_at(key, partition, ids, out));
    }

    pub(crate) fn subset_rebuild_dispatch(
        self,
        key: &[u8; 16],
        id: u32,
        mask: u16,
        selects: &mut [u32],
        offsets: &mut [u16],
    ) {
        on_arm!(self, subset_hints::rebuild(key, id, mask, selects, offsets));
    }
}
