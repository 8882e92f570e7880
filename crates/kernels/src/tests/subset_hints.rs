mod misuse;

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use proptest::prelude::*;

use super::{Numbers, all_kernels};
use crate::subset_hints::MAX_RECORDS_PER_PARTITION;
use crate::{Kernels, MemoryError, PartitionGroup};

/// The pseudorandom function, value by value, as the module's documentation defines it.
struct Function {
    cipher: Aes128,
    records: u32,
}

impl Function {
    fn new(key: &[u8; 16], records: usize) -> Function {
        Function { cipher: Aes128::new(&Array(*key)), records: records as u32 }
    }

    fn block(&self, words: [u32; 4]) -> [u8; 16] {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut block = Array(bytes.try_into().expect("16 bytes"));
        self.cipher.encrypt_block(&mut block);
        block.0
    }

    fn select(&self, id: u32, partition: u32) -> u32 {
        let block = self.block([id / 4, partition, 1, 0]);
        let at = 4 * (id % 4) as usize;
        u32::from_le_bytes(block[at..at + 4].try_into().expect("4 bytes"))
    }

    fn offset(&self, id: u32, partition: u32) -> u32 {
        self.offsets_of_group(id / 8, partition)[id as usize % 8]
    }

    /// The offsets of the hints `8 * group..8 * group + 8`.
    fn offsets_of_group(&self, group: u32, partition: u32) -> [u32; 8] {
        let block = self.block([group, partition, 2, 0]);
        let offset = |i| u32::from(u16::from_le_bytes([block[2 * i], block[2 * i + 1]]));
        std::array::from_fn(|i| offset(i) % self.records)
    }
}

fn random_key(numbers: &mut Numbers) -> [u8; 16] {
    (u128::from(numbers.next()) << 64 | u128::from(numbers.next())).to_le_bytes()
}

/// By definition: the value with exactly `rank` smaller ones.
fn order_statistic(values: &[u32], rank: usize) -> u32 {
    let has_rank = |&&c: &&u32| values.iter().filter(|&&value| value < c).count() == rank;
    values.iter().find(has_rank).copied().unwrap_or(0)
}

/// The values were computed with `openssl enc -aes-128-ecb -nopad` on the blocks that the
/// documentation gives.
#[test]
fn known_answers() {
    let key: [u8; 16] = std::array::from_fn(|i| i as u8);
    let hint = 0x0123_4567;
    for kernels in all_kernels() {
        let mut selects = [0; 3];
        let mut offsets = [0; 3];
        kernels.subset_rebuild(&key, hint, 1 << 16, &mut selects, &mut offsets);
        assert_eq!(selects, [0xfe7b_6330, 0x460b_89c3, 0x0c1c_a996], "{}", kernels.arm());
        assert_eq!(offsets, [0xee98, 0x9a8e, 0x9100], "{}", kernels.arm());
    }
}

fn check_cutoffs(kernels: Kernels, key: &[u8; 16], first_id: u32, partitions: u32, rank: u32) {
    let function = Function::new(key, 1);
    let mut cutoffs = [1; 8];
    kernels.subset_cutoffs(key, first_id, partitions, rank, &mut cutoffs);
    for (id, cutoff) in (first_id..=u32::MAX).zip(cutoffs) {
        let mut values: Vec<u32> = (0..partitions).map(|k| function.select(id, k)).collect();
        values.sort_unstable();
        let rank = rank as usize;
        let expected = if values[rank - 1] == values[rank] { 0 } else { values[rank] };
        assert_eq!(cutoff, expected, "{}: id {id}, {rank} of {partitions}", kernels.arm());
    }
}

/// Vectors hold 16 or 8 values, and 32 partitions make a step.
#[test]
fn cutoffs_split_the_partitions_at_the_rank() {
    let mut numbers = Numbers(1);
    let some = [63, 64, 65, 95, 96, 97, 127, 128, 129, 160, 255, 256, 257, 300, 1000, 4096];
    for partitions in (2..=50).chain(some) {
        let middle = partitions / 2;
        for rank in [1, middle, middle + 1, partitions / 5, partitions - 1] {
            let rank = rank.clamp(1, partitions - 1);
            for first_id in [0, 8 * numbers.below(1 << 20) as u32, u32::MAX - 7] {
                let key = random_key(&mut numbers);
                for kernels in all_kernels() {
                    check_cutoffs(kernels, &key, first_id, partitions, rank);
                }
            }
        }
    }
}

/// Enough hints, all at once, for the first window to miss some (about one in two thousand).
#[test]
fn cutoffs_outside_the_first_window_are_found() {
    let mut numbers = Numbers(2);
    let key = random_key(&mut numbers);
    for (partitions, rank) in [(64, 32), (100, 51), (1024, 512)] {
        let mut expected = vec![0; 16384];
        Kernels::with_arm(crate::Arm::Portable).expect("always there").subset_cutoffs(
            &key,
            800,
            partitions,
            rank,
            &mut expected,
        );
        for kernels in all_kernels() {
            let mut cutoffs = vec![0; expected.len()];
            kernels.subset_cutoffs(&key, 800, partitions, rank, &mut cutoffs);
            assert!(cutoffs == expected, "{}: {rank} of {partitions}", kernels.arm());
        }
    }
}

/// All selection functions that this machine can run, on values that the test chooses.
fn check_order_statistic(values: &[u32], rank: usize) {
    let expected = order_statistic(values, rank);
    let found = crate::portable::subset_hints::order_statistic(&mut values.to_vec(), rank);
    assert_eq!(found, expected, "portable: {rank} of {values:?}");
    #[cfg(target_arch = "x86_64")]
    for (arm, found) in vector_order_statistics(values, rank) {
        assert_eq!(found, expected, "{arm}: {rank} of {values:?}");
    }
}

#[cfg(target_arch = "x86_64")]
fn vector_order_statistics(values: &[u32], rank: usize) -> Vec<(crate::Arm, u32)> {
    use crate::subset_hints::Bracket;
    use crate::x86_64::{avx2, avx512};
    let low = *values.iter().min().expect("not empty");
    let high = *values.iter().max().expect("not empty");
    let mut results = Vec::new();
    // Tight and wide around the values.
    for (low, high) in [(low, high), (0, u32::MAX), (low / 2, high)] {
        let bracket = Bracket { low, high, below: 0, up_to: values.len() };
        let mut padded = [values, &[0; 16]].concat();
        if crate::Arm::Avx2.is_available() {
            // SAFETY: the check above found that the processor has what the arm needs.
            let found = unsafe { avx2::subset_hints::order_statistic(&mut padded, rank, bracket) };
            results.push((crate::Arm::Avx2, found));
        }
        if crate::Arm::Avx512.is_available() {
            // SAFETY: the check above found that the processor has what the arm needs.
            let found =
                unsafe { avx512::subset_hints::order_statistic(&mut padded, rank, bracket) };
            results.push((crate::Arm::Avx512, found));
        }
    }
    results
}

#[test]
fn order_statistics_of_many_equal_values() {
    let mut numbers = Numbers(3);
    for len in [2, 3, 8, 15, 16, 17, 31, 32, 33, 100, 224, 500] {
        let all = [
            vec![0; len],
            vec![u32::MAX; len],
            vec![77; len],
            (0..len as u32).collect::<Vec<_>>(),
            (0..len as u32).map(|i| u32::MAX - i).collect(),
            (0..len as u32).map(|i| i / 2).collect(),
            (0..len as u32).map(|i| i / 20).collect(),
            (0..len as u32).map(|i| if i % 3 == 0 { 0 } else { u32::MAX }).collect(),
            (0..len as u32).map(|i| 1 << (i % 32)).collect(),
            (0..len).map(|i| if i == 0 { 5 } else { u32::MAX }).collect(),
            numbers.words(len),
            (0..len).map(|_| numbers.next() as u32).collect(),
            (0..len).map(|_| 1000 + numbers.below(len) as u32).collect(),
        ];
        for values in all {
            for rank in [1, len / 3, len / 2, len / 2 + 1, len - 2, len - 1] {
                check_order_statistic(&values, rank.clamp(1, len - 1));
            }
        }
    }
}

/// A group filled with records, the records, and their function.
struct Table {
    group: PartitionGroup,
    partitions: Vec<Vec<u8>>,
    function: Function,
}

impl Table {
    fn new(
        numbers: &mut Numbers,
        key: &[u8; 16],
        records: usize,
        record_len: usize,
        len: usize,
    ) -> Table {
        let mut group = PartitionGroup::new(records, record_len, len + 1).expect("memory");
        group.set_len(len);
        let partition = |i| {
            let bytes: Vec<u8> = (0..records * record_len).map(|_| numbers.next() as u8).collect();
            group.partition_mut(i).copy_from_slice(&bytes);
            bytes
        };
        let partitions = (0..len).map(partition).collect();
        Table { group, partitions, function: Function::new(key, records) }
    }

    /// The expected parities of one hint: `[below, not below]`.
    fn parities(&self, id: u32, cutoff: u32, first_partition: u32) -> [Vec<u8>; 2] {
        let record_len = self.group.record_len();
        let mut parities = [vec![0; record_len], vec![0; record_len]];
        for (k, bytes) in (first_partition..=u32::MAX).zip(&self.partitions) {
            let start = self.function.offset(id, k) as usize * record_len;
            let side = usize::from(self.function.select(id, k) >= cutoff);
            for (sum, byte) in parities[side].iter_mut().zip(&bytes[start..start + record_len]) {
                *sum ^= byte;
            }
        }
        parities
    }
}

fn check_parities(seed: u64, records: usize, record_len: usize, len: usize, hints: usize) {
    let mut numbers = Numbers(seed);
    let key = random_key(&mut numbers);
    let table = Table::new(&mut numbers, &key, records, record_len, len);
    let mut cutoffs: Vec<u32> = (0..hints).map(|_| numbers.next() as u32).collect();
    for (cutoff, extreme) in cutoffs.iter_mut().step_by(3).zip([0, u32::MAX, 1]) {
        *cutoff = extreme;
    }
    let last = (1u64 << 32) - hints as u64;
    let first_id = [0, 8 * (numbers.next() as u32 >> 4), last as u32][numbers.below(3)];
    let first_partition = [0, numbers.next() as u32 >> 1][numbers.below(2)];
    // One byte off any alignment, and with sentinels around.
    let before = numbers.bytes(2 * hints * record_len + 2);
    let mut single = before[..hints * record_len + 2].to_vec();
    let mut pairs = before.clone();
    let mut all = single.clone();
    for (j, &cutoff) in cutoffs.iter().enumerate() {
        let id = first_id + j as u32;
        let [below, above] = table.parities(id, cutoff, first_partition);
        for i in 0..record_len {
            single[1 + j * record_len + i] ^= below[i];
            all[1 + j * record_len + i] ^= below[i] ^ above[i];
            pairs[1 + 2 * j * record_len + i] ^= below[i];
            pairs[1 + (2 * j + 1) * record_len + i] ^= above[i];
        }
    }
    for kernels in all_kernels() {
        let shape = format!("{}: {hints} hints, {len} x {records} x {record_len}", kernels.arm());
        let group = &table.group;
        let mut found = before[..single.len()].to_vec();
        let inner = 1..found.len() - 1;
        let parities = &mut found[inner];
        kernels.subset_accumulate_single(
            &key,
            first_id,
            &cutoffs,
            first_partition,
            group,
            parities,
        );
        assert!(found == single, "{shape}, single");
        let mut found = before.clone();
        let inner = 1..found.len() - 1;
        let parities = &mut found[inner];
        kernels.subset_accumulate_pairs(&key, first_id, &cutoffs, first_partition, group, parities);
        assert!(found == pairs, "{shape}, pairs");
        let mut found = before[..all.len()].to_vec();
        let inner = 1..found.len() - 1;
        let parities = &mut found[inner];
        kernels.subset_accumulate_all(&key, first_id, first_partition, group, parities);
        assert!(found == all, "{shape}, all");
    }
}

/// Records of up to 16, 32 and 64 bytes have their own loops, and longer ones go in pieces of 512
/// bytes.
#[test]
fn parities_of_records_of_any_length() {
    for record_len in (1..=130).chain([191, 192, 193, 511, 512, 513, 1000, 1024, 4099, 20001]) {
        for hints in [8, 24] {
            check_parities(record_len as u64, 16, record_len, 5, hints);
        }
    }
}

/// Partitions go four at a time, and 16 of them make a tile.
#[test]
fn parities_of_any_number_of_partitions() {
    for len in (0..=20).chain([31, 32, 33, 50]) {
        for record_len in [3, 8, 16, 20, 32, 64, 100] {
            check_parities(len as u64, 32, record_len, len, 16);
        }
    }
}

#[test]
fn parities_of_partitions_of_any_size() {
    for log in 0..=16 {
        for record_len in [1, 8, 33, 64, 65] {
            check_parities(log, 1 << log, record_len, 3, 8);
        }
    }
}

#[test]
fn no_hints_have_no_parities() {
    for kernels in all_kernels() {
        let mut group = PartitionGroup::new(4, 5, 1).expect("memory");
        group.set_len(1);
        kernels.subset_accumulate_single(&[0; 16], 0, &[], 0, &group, &mut []);
        kernels.subset_accumulate_pairs(&[0; 16], 0, &[], 0, &group, &mut []);
        kernels.subset_accumulate_all(&[0; 16], 0, 0, &group, &mut []);
        kernels.subset_cutoffs(&[0; 16], 0, 4, 2, &mut []);
    }
}

/// A batch is four words of matches (AVX-512) or one.
#[test]
fn matching_offsets_are_found() {
    let mut numbers = Numbers(4);
    for words in [0, 1, 2, 3, 4, 5, 8, 9] {
        for records in [1, 2, 16, 4096, MAX_RECORDS_PER_PARTITION] {
            let key = random_key(&mut numbers);
            let function = Function::new(&key, records);
            let partition = numbers.next() as u32;
            // An offset that some hint has.
            let first = [0, 1, 5, (1 << 26) - words as u32][numbers.below(4)];
            let some = u64::from(first) * 64 + numbers.below(64 * words.max(1)) as u64;
            let offset = function.offset(some.min(u32::MAX.into()) as u32, partition);
            let matches = |id: u32| u64::from(function.offset(id, partition) == offset);
            let word = |w| (0..64).map(|b| matches(64 * w + b) << b).sum::<u64>();
            let expected: Vec<u64> = (first..first + words as u32).map(word).collect();
            for kernels in all_kernels() {
                let mut found = vec![0x5555; words];
                let records = records as u32;
                kernels.subset_offset_matches(&key, partition, offset, records, first, &mut found);
                assert_eq!(found, expected, "{}: {words} words, {records}", kernels.arm());
            }
        }
    }
}

/// A batch is 32 groups (AVX-512 and portable) or eight. Groups come in any order, with
/// repetitions, and with numbers up to the largest. All their hints are told apart: if partitions
/// have few records, many hints match.
#[test]
fn matching_offsets_of_groups_are_found() {
    let mut numbers = Numbers(9);
    for count in (0..=10).chain([31, 32, 33, 63, 64, 65, 100, 1000]) {
        for records in [1, 2, 16, 4096, MAX_RECORDS_PER_PARTITION] {
            let key = random_key(&mut numbers);
            let function = Function::new(&key, records);
            let partition = numbers.next() as u32;
            let groups = numbers.words(count);
            // An offset that some hint has.
            let wanted = groups.first().map(|&group| function.offsets_of_group(group, partition));
            let offset = wanted.map_or(0, |offsets| offsets[numbers.below(8)]);
            let matches = |&group: &u32| {
                let offsets = function.offsets_of_group(group, partition);
                (0..8).map(|b| u8::from(offsets[b] == offset) << b).sum::<u8>()
            };
            let expected: Vec<u8> = groups.iter().map(matches).collect();
            for kernels in all_kernels() {
                let mut found = vec![0x55; count + 2];
                let inner = &mut found[1..=count];
                let records = records as u32;
                kernels.subset_group_matches(&key, partition, offset, records, &groups, inner);
                assert_eq!(*inner, *expected, "{}: {count} groups, {records}", kernels.arm());
                assert_eq!((found[0], found[count + 1]), (0x55, 0x55));
            }
        }
    }
}

/// Both searches agree on their common range.
#[test]
fn groups_in_order_match_like_all_hints() {
    let key = random_key(&mut Numbers(10));
    for kernels in all_kernels() {
        let mut words = [0; 5];
        kernels.subset_offset_matches(&key, 77, 5, 16, 0, &mut words);
        let groups: Vec<u32> = (0..40).collect();
        let mut bytes = [0; 40];
        kernels.subset_group_matches(&key, 77, 5, 16, &groups, &mut bytes);
        assert_eq!(words.map(u64::to_le_bytes).as_flattened(), bytes, "{}", kernels.arm());
        assert!(words.iter().any(|&word| word != 0));
    }
}

#[test]
fn equal_halfwords_are_found() {
    let mut numbers = Numbers(11);
    for len in (0usize..=10).chain([63, 64, 65, 127, 128, 129, 1000]) {
        for wanted in [0, 2, 0x7fff, 0x8000, u16::MAX] {
            // Also words that differ in only one byte.
            let like = [wanted, wanted, wanted ^ 1, wanted ^ 0x100, 7];
            let words: Vec<u16> = (0..len).map(|_| like[numbers.below(5)]).collect();
            let bit = |i: usize| u64::from(words.get(i) == Some(&wanted));
            let expected: Vec<u64> = (0..len.div_ceil(64))
                .map(|w| (0..64).map(|b| bit(64 * w + b) << b).sum::<u64>())
                .collect();
            for kernels in all_kernels() {
                let mut found = vec![0x5555; len.div_ceil(64)];
                kernels.subset_equal_halfwords(&words, wanted, &mut found);
                assert_eq!(found, expected, "{}: {len}, {wanted}", kernels.arm());
            }
        }
    }
}

#[test]
fn equal_words_are_found() {
    let mut numbers = Numbers(8);
    for len in (0usize..=10).chain([63, 64, 65, 127, 128, 129, 1000]) {
        let words: Vec<u32> = (0..len).map(|_| numbers.below(4) as u32).collect();
        let bit = |i: usize| u64::from(words.get(i) == Some(&2));
        let expected: Vec<u64> = (0..len.div_ceil(64))
            .map(|w| (0..64).map(|b| bit(64 * w + b) << b).sum::<u64>())
            .collect();
        for kernels in all_kernels() {
            let mut found = vec![0x5555; len.div_ceil(64)];
            kernels.subset_equal_words(&words, 2, &mut found);
            assert_eq!(found, expected, "{}: {len}", kernels.arm());
        }
    }
}

/// A batch is 32 hints (AVX-512 and portable) or eight.
#[test]
fn selects_of_scattered_hints() {
    let mut numbers = Numbers(5);
    for count in (0..=10).chain([31, 32, 33, 63, 64, 65, 100]) {
        let key = random_key(&mut numbers);
        let function = Function::new(&key, 1);
        let partition = numbers.next() as u32;
        let ids = numbers.words(count);
        let expected: Vec<u32> = ids.iter().map(|&id| function.select(id, partition)).collect();
        for kernels in all_kernels() {
            let mut found = vec![0; count];
            kernels.subset_selects_at(&key, partition, &ids, &mut found);
            assert_eq!(found, expected, "{}: {count}", kernels.arm());
        }
    }
}

/// A step is 16 partitions (AVX-512) or four.
#[test]
fn hints_are_rebuilt() {
    let mut numbers = Numbers(6);
    for len in (0..=40).chain([100, 257]) {
        for id in (0..8).chain([numbers.next() as u32, u32::MAX]) {
            let key = random_key(&mut numbers);
            let records = 1 << numbers.below(17);
            let function = Function::new(&key, records);
            let expected_selects: Vec<u32> = (0..len).map(|k| function.select(id, k)).collect();
            let expected_offsets: Vec<u16> =
                (0..len).map(|k| function.offset(id, k) as u16).collect();
            for kernels in all_kernels() {
                let mut selects = vec![0; len as usize];
                let mut offsets = vec![0; len as usize];
                kernels.subset_rebuild(&key, id, records as u32, &mut selects, &mut offsets);
                assert_eq!(selects, expected_selects, "{}: {id}, {len}", kernels.arm());
                assert_eq!(offsets, expected_offsets, "{}: {id}, {len}", kernels.arm());
            }
        }
    }
}

#[test]
fn groups_keep_what_is_written_and_know_their_length() {
    let mut group = PartitionGroup::new(4, 3, 2).expect("memory");
    assert!(group.is_empty());
    assert_eq!((group.capacity(), group.records_per_partition(), group.record_len()), (2, 4, 3));
    group.partition_mut(0).copy_from_slice(&[1; 12]);
    group.partition_mut(1).copy_from_slice(&[2; 12]);
    group.set_len(2);
    assert_eq!(group.len(), 2);
    assert_eq!(group.partition_mut(0), [1; 12]);
    assert_eq!(group.partition(0)[12..15], [0; 3]);
    assert_eq!(group.partition(1)[12..15], [0; 3]);
    group.clear();
    assert!(group.is_empty());
}

#[test]
fn groups_that_cannot_be_addressed_are_refused() {
    let refused = PartitionGroup::new(1 << 16, 16 << 20, usize::MAX >> 30);
    assert!(matches!(refused, Err(MemoryError::TooLarge { .. })), "{refused:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn parities_on_any_shape(
        log in 0usize..10,
        record_len in 1usize..700,
        len in 0usize..40,
        octets in 1usize..4,
        seed: u64,
    ) {
        check_parities(seed, 1 << log, record_len, len, 8 * octets);
    }

    #[test]
    fn cutoffs_on_any_shape(
        partitions in 2u32..2000,
        rank in 1u32..2000,
        octet in 0u32..1 << 29,
        seed: u64,
    ) {
        let key = random_key(&mut Numbers(seed));
        let rank = 1 + rank % (partitions - 1);
        for kernels in all_kernels() {
            check_cutoffs(kernels, &key, 8 * octet, partitions, rank);
        }
    }

    #[test]
    fn order_statistics_of_any_values(
        values in prop::collection::vec(prop_oneof![any::<u32>(), 0u32..20], 2..400),
        rank in 0usize..400,
    ) {
        let rank = 1 + rank % (values.len() - 1);
        check_order_statistic(&values, rank);
    }
}
