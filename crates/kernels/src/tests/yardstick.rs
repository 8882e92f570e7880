use super::{Numbers, all_kernels};
use crate::PositionOutOfRange;

#[test]
fn sums_take_in_every_byte() {
    let mut numbers = Numbers(1);
    for len in [0, 1, 7, 8, 9, 63, 64, 255, 256, 257, 511, 512, 513, 1024, 5000] {
        let bytes = numbers.bytes(len + 1);
        let bytes = &bytes[1..];
        let expected = bytes.chunks(8).fold(0, |sum: u64, piece| {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            sum.wrapping_add(u64::from_le_bytes(word))
        });
        for kernels in all_kernels() {
            assert_eq!(kernels.read_sum(bytes), expected, "{}: {len}", kernels.arm());
        }
    }
}

/// Record lengths around the vectors of 32 and 64 bytes; few and many positions, around the
/// prefetch distance.
#[test]
fn gathered_records_are_xored() {
    let mut numbers = Numbers(2);
    for record_len in [1, 3, 8, 16, 31, 32, 33, 63, 64, 65, 100, 128, 200, 1000] {
        let records = 50;
        // A remainder that is not a whole record belongs to no position.
        let table = numbers.bytes(records * record_len + record_len / 2);
        for count in [0, 1, 2, 31, 32, 33, 300] {
            let positions: Vec<u64> = (0..count).map(|_| numbers.below(records) as u64).collect();
            let mut expected = vec![0; record_len];
            for &position in &positions {
                let record = &table[position as usize * record_len..][..record_len];
                expected.iter_mut().zip(record).for_each(|(sum, byte)| *sum ^= byte);
            }
            for kernels in all_kernels() {
                let mut out = vec![0xaa; record_len];
                kernels.gather_xor(&table, record_len, &positions, &mut out).expect("inside");
                assert_eq!(out, expected, "{}: {count} x {record_len}", kernels.arm());
            }
        }
    }
}

#[test]
fn positions_outside_the_table_are_refused() {
    let table = [1; 100];
    for kernels in all_kernels() {
        for position in [10, 11, u64::MAX, 1 << 60] {
            let mut out = [7; 10];
            let refused = kernels.gather_xor(&table, 10, &[0, 9, position, 3], &mut out);
            assert_eq!(refused, Err(PositionOutOfRange { position, records: 10 }));
            assert_eq!(out, [7; 10]);
        }
    }
}

#[test]
fn aes_blocks_are_all_encrypted() {
    for blocks in [0u64, 1, 7, 8, 9, 31, 32, 33, 500] {
        for kernels in all_kernels() {
            let mut words = vec![0u32; 4 * blocks as usize];
            kernels.aes128_ctr_words(&[0; 16], 0, &mut words);
            let mut expected = [0u8; 16];
            for (i, byte) in words.iter().flat_map(|word| word.to_le_bytes()).enumerate() {
                expected[i % 16] ^= byte;
            }
            assert_eq!(kernels.aes_blocks(blocks), expected, "{}: {blocks}", kernels.arm());
        }
    }
}

#[test]
fn at_least_the_multiplications_asked_for_are_made() {
    for kernels in all_kernels() {
        for asked in [0, 1, 5000, 100_000] {
            let made = kernels.multiply_accumulate_peak(asked);
            assert!((asked..asked + 40_000).contains(&made), "{}: {asked} {made}", kernels.arm());
        }
    }
}
