//! Wrong calls: each panics before it reads or writes.

use super::*;

#[test]
#[should_panic(expected = "no more partitions")]
fn more_partitions_than_the_capacity_panic() {
    PartitionGroup::new(4, 3, 2).expect("memory").set_len(3);
}

#[test]
#[should_panic(expected = "power of two")]
fn partitions_of_another_size_panic() {
    let _ = PartitionGroup::new(3, 3, 2);
}

#[test]
#[should_panic(expected = "eight at a time")]
fn a_count_of_hints_that_is_no_multiple_of_eight_panics() {
    Kernels::detect().subset_cutoffs(&[0; 16], 0, 4, 2, &mut [0; 4]);
}

#[test]
#[should_panic(expected = "rank of a cutoff")]
fn a_rank_of_no_value_panics() {
    Kernels::detect().subset_cutoffs(&[0; 16], 0, 4, 4, &mut [0; 8]);
}

#[test]
#[should_panic(expected = "one record for each hint")]
fn parities_of_the_wrong_length_panic() {
    let group = PartitionGroup::new(4, 3, 2).expect("memory");
    Kernels::detect().subset_accumulate_single(&[0; 16], 0, &[0; 8], 0, &group, &mut [0; 23]);
}

#[test]
#[should_panic(expected = "eight at a time")]
fn parities_of_another_number_of_hints_panic() {
    let group = PartitionGroup::new(4, 3, 2).expect("memory");
    Kernels::detect().subset_accumulate_all(&[0; 16], 0, 0, &group, &mut [0; 21]);
}

#[test]
#[should_panic(expected = "one record for each hint")]
fn parities_of_broken_records_panic() {
    let group = PartitionGroup::new(4, 3, 2).expect("memory");
    Kernels::detect().subset_accumulate_all(&[0; 16], 0, 0, &group, &mut [0; 25]);
}

#[test]
#[should_panic(expected = "two records for each hint")]
fn pairs_of_the_wrong_length_panic() {
    let group = PartitionGroup::new(4, 3, 2).expect("memory");
    Kernels::detect().subset_accumulate_pairs(&[0; 16], 0, &[0; 8], 0, &group, &mut [0; 24]);
}

#[test]
#[should_panic(expected = "within its partition")]
fn an_offset_outside_the_partition_panics() {
    Kernels::detect().subset_offset_matches(&[0; 16], 0, 8, 8, 0, &mut [0; 1]);
}

#[test]
#[should_panic(expected = "within its partition")]
fn an_offset_of_groups_outside_the_partition_panics() {
    Kernels::detect().subset_group_matches(&[0; 16], 0, 8, 8, &[0], &mut [0]);
}

#[test]
#[should_panic(expected = "eight bits for each group")]
fn matches_of_another_number_of_groups_panic() {
    Kernels::detect().subset_group_matches(&[0; 16], 0, 0, 8, &[0, 1], &mut [0]);
}
