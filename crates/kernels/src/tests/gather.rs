use super::{Numbers, all_kernels};
use crate::PositionOutOfRange;

/// Record lengths with and without a special loop; few and many positions, around the prefetch
/// distance.
#[test]
fn records_are_copied_in_order() {
    let mut numbers = Numbers(1);
    for record_len in [1, 3, 7, 8, 9, 16, 31, 32, 33, 63, 64, 65, 100, 513, 1000] {
        let records = 50;
        // One byte off any alignment. A remainder that is not a whole record belongs to no
        // position.
        let table = numbers.bytes(1 + records * record_len + record_len / 2);
        let table = &table[1..];
        for count in [0, 1, 2, 31, 32, 33, 300] {
            let mut positions: Vec<u64> =
                (0..count).map(|_| numbers.below(records) as u64).collect();
            if let [first, .., last] = &mut positions[..] {
                (*first, *last) = (records as u64 - 1, 0);
            }
            let record = |&position: &u64| &table[position as usize * record_len..][..record_len];
            let expected: Vec<u8> = positions.iter().flat_map(record).copied().collect();
            for kernels in all_kernels() {
                let mut out = vec![0xaa; count * record_len + 2];
                let inner = 1..out.len() - 1;
                kernels
                    .gather_records(table, record_len, &positions, &mut out[inner.clone()])
                    .expect("inside");
                assert!(out[inner] == expected, "{}: {count} x {record_len}", kernels.arm());
                assert_eq!((out[0], out[out.len() - 1]), (0xaa, 0xaa));
            }
        }
    }
}

#[test]
fn positions_outside_the_table_are_refused() {
    let table = [1; 329];
    for kernels in all_kernels() {
        for record_len in [10, 8, 32] {
            let records = (table.len() / record_len) as u64;
            for position in [records, records + 1, u64::MAX, 1 << 60] {
                let mut out = vec![7; 4 * record_len];
                let positions = [0, records - 1, position, 3];
                let refused = kernels.gather_records(&table, record_len, &positions, &mut out);
                assert_eq!(refused, Err(PositionOutOfRange { position, records }));
                assert!(out.iter().all(|&byte| byte == 7));
            }
        }
    }
}

#[test]
#[should_panic(expected = "one record for each position")]
fn room_for_another_number_of_records_panics() {
    let _ = crate::Kernels::detect().gather_records(&[0; 40], 10, &[1, 2], &mut [0; 19]);
}

#[test]
#[should_panic(expected = "at least one byte")]
fn records_without_bytes_panic() {
    let _ = crate::Kernels::detect().gather_records(&[0; 40], 0, &[1, 2], &mut []);
}

#[test]
fn records_are_xored_where_they_belong() {
    let mut numbers = Numbers(2);
    for record_len in [1, 7, 8, 9, 16, 31, 32, 33, 64, 65, 100, 513, 1000] {
        let records = 20;
        let table = numbers.bytes(2 + records * record_len + record_len / 2);
        for count in [0, 1, 2, 31, 32, 33, 100] {
            let mut positions: Vec<u32> =
                (0..count).map(|_| numbers.below(records) as u32).collect();
            if let [first, .., last] = &mut positions[..] {
                (*first, *last) = (records as u32 - 1, 0);
            }
            let others = numbers.bytes(count * record_len);
            let mut expected = table.clone();
            for (&position, other) in positions.iter().zip(others.chunks(record_len)) {
                let record = &mut expected[1 + position as usize * record_len..][..record_len];
                record.iter_mut().zip(other).for_each(|(byte, other)| *byte ^= other);
            }
            for kernels in all_kernels() {
                let mut found = table.clone();
                kernels.scatter_xor(&mut found[1..], record_len, &positions, &others);
                assert!(found == expected, "{}: {count} x {record_len}", kernels.arm());
            }
        }
    }
}

#[test]
fn scattering_beyond_the_table_panics() {
    for kernels in all_kernels() {
        for record_len in [10, 8, 32] {
            let caught = std::panic::catch_unwind(|| {
                let others = vec![1; record_len];
                kernels.scatter_xor(&mut [0; 329], record_len, &[329 / record_len as u32], &others);
            });
            assert!(caught.is_err(), "{}: {record_len}", kernels.arm());
        }
    }
}
