use proptest::prelude::*;

use super::{Numbers, all_kernels};
use crate::line_reads::{LINE, LINE_BITS, LineBits, LineBytes, LineQuery, LineReads, LineStep};
use privet_kernels::{Kernels, PositionOutOfRange};

/// `count` steps over a table of so many lines, with classes that the caller has.
fn steps(numbers: &mut Numbers, count: usize, lines: usize, classes: usize) -> Vec<LineStep> {
    let mut steps = Vec::new();
    for i in 0..count {
        let difference = if i == 0 { lines - 1 } else { numbers.below(lines) } as u64;
        steps.push(LineStep { difference, class: numbers.below(classes) as u8 });
    }
    steps
}

fn check_bytes(seed: u64, lines: usize, count: usize, class_lens: &[usize]) {
    let mut numbers = Numbers(seed);
    // One byte off any alignment, and the end of the table is the end of its allocation.
    let table = numbers.bytes(1 + lines * LINE);
    let table = &table[1..];
    let classes: Vec<Vec<u8>> = class_lens
        .iter()
        .map(|&len| (0..len).map(|_| numbers.below(LINE) as u8).collect())
        .collect();
    let steps = steps(&mut numbers, count, lines, classes.len());
    let firsts: Vec<u64> = [0, table.len() - 1]
        .into_iter()
        .chain((0..3).map(|_| numbers.below(table.len())))
        .map(|first| first as u64)
        .collect();
    let expected: Vec<Vec<u8>> = firsts
        .iter()
        .map(|&first| {
            let places = steps.iter().flat_map(|step| {
                let class = classes[usize::from(step.class)].iter();
                class.map(|&place| step.difference * LINE as u64 + u64::from(place))
            });
            places.map(|place| table[(place ^ first) as usize]).collect()
        })
        .collect();
    let reads =
        LineReads::new(steps, classes.iter().map(|places| LineBytes::new(places)).collect());
    assert_eq!((reads.lines(), reads.count()), (count, expected[0].len()));
    check(&firsts, &expected, |kernels, queries| {
        reads.gather(kernels, table, queries).expect("inside");
    });
}

fn check_bits(seed: u64, lines: usize, count: usize, classes: &[[u64; 8]]) {
    let mut numbers = Numbers(seed);
    let table = numbers.bytes(1 + lines * LINE);
    let table = &table[1..];
    let bit = |bytes: &[u8], at: usize| bytes[at / 8] >> (at % 8) & 1;
    let steps = steps(&mut numbers, count, lines, classes.len());
    let firsts: Vec<u64> = [0, 8 * table.len() - 1]
        .into_iter()
        .chain((0..3).map(|_| numbers.below(8 * table.len())))
        .map(|first| first as u64)
        .collect();
    let expected: Vec<Vec<u8>> = firsts
        .iter()
        .map(|&first| {
            let mut answer = Vec::new();
            let mut taken = 0;
            for step in &steps {
                let mask = classes[usize::from(step.class)].map(u64::to_le_bytes);
                for place in 0..LINE_BITS {
                    if bit(mask.as_flattened(), place) == 0 {
                        continue;
                    }
                    if taken % 8 == 0 {
                        answer.push(0);
                    }
                    let at = (step.difference as usize * LINE_BITS + place) ^ first as usize;
                    answer[taken / 8] |= bit(table, at) << (taken % 8);
                    taken += 1;
                }
            }
            answer
        })
        .collect();
    let reads = LineReads::new(steps, classes.iter().map(|&words| LineBits::new(words)).collect());
    assert_eq!((reads.lines(), reads.count().div_ceil(8)), (count, expected[0].len()));
    check(&firsts, &expected, |kernels, queries| {
        reads.gather(kernels, table, queries).expect("inside");
    });
}

/// Runs every arm over all queries at once. The answers have guard bytes on both sides.
fn check(firsts: &[u64], expected: &[Vec<u8>], gather: impl Fn(Kernels, &mut [LineQuery<'_>])) {
    for kernels in all_kernels() {
        let mut memory: Vec<Vec<u8>> =
            expected.iter().map(|answer| vec![0xaa; answer.len() + 2]).collect();
        let queries = memory.iter_mut().zip(firsts).map(|(memory, &first)| {
            let end = memory.len() - 1;
            LineQuery { first, out: &mut memory[1..end] }
        });
        gather(kernels, &mut queries.collect::<Vec<_>>());
        for (memory, expected) in memory.iter().zip(expected) {
            let [before, found @ .., behind] = &memory[..] else { unreachable!("has two bytes") };
            assert_eq!((*before, *behind), (0xaa, 0xaa), "{}", kernels.arm());
            assert!(found == expected, "{}: {} bytes", kernels.arm(), expected.len());
        }
    }
}

/// From one line and one step up, around the prefetch distance; classes from nothing to a whole
/// line.
#[test]
fn bytes_are_taken_in_order() {
    for lines in [1, 2, 64] {
        for count in [0, 1, 2, 31, 32, 33, 200] {
            check_bytes(count as u64, lines, count, &[1]);
            check_bytes(count as u64, lines, count, &[64]);
            check_bytes(count as u64, lines, count, &[57, 42, 22, 7, 1, 0, 63, 64]);
        }
    }
}

/// Masks that are empty, full, and of single bits at both ends of a word.
#[test]
fn bits_are_taken_in_order() {
    let single = |bit: usize| {
        let mut words = [0; 8];
        words[bit / 64] = 1 << (bit % 64);
        words
    };
    let mut numbers = Numbers(5);
    let mut classes = vec![[u64::MAX; 8], [0; 8], single(0), single(63), single(64), single(511)];
    for _ in 0..4 {
        classes.push(std::array::from_fn(|_| numbers.next()));
        classes.push(std::array::from_fn(|_| numbers.next() & numbers.next() & numbers.next()));
    }
    for lines in [1, 2, 64] {
        for count in [0, 1, 2, 7, 8, 9, 31, 32, 33, 200] {
            check_bits(count as u64, lines, count, &classes);
            for class in &classes {
                check_bits(count as u64, lines, count, &[*class]);
            }
        }
    }
}

/// Every position of a line with every flip within it: the permutations of bytes and of bits.
#[test]
fn all_flips_within_a_line_are_right() {
    let table: Vec<u8> = Numbers(6).bytes(LINE);
    let all: Vec<u8> = (0..64).collect();
    let bytes = LineReads::new([LineStep { difference: 0, class: 0 }], vec![LineBytes::new(&all)]);
    let bits =
        LineReads::new([LineStep { difference: 0, class: 0 }], vec![LineBits::new([u64::MAX; 8])]);
    for kernels in all_kernels() {
        let mut out = [0; LINE];
        for first in 0..LINE {
            let mut query = [LineQuery { first: first as u64, out: &mut out }];
            bytes.gather(kernels, &table, &mut query).expect("inside");
            assert!((0..LINE).all(|i| out[i] == table[i ^ first]), "{} {first}", kernels.arm());
        }
        for first in 0..LINE_BITS {
            let mut query = [LineQuery { first: first as u64, out: &mut out }];
            bits.gather(kernels, &table, &mut query).expect("inside");
            let bit = |bytes: &[u8], at: usize| bytes[at / 8] >> (at % 8) & 1;
            let right = (0..LINE_BITS).all(|i| bit(&out, i) == bit(&table, i ^ first));
            assert!(right, "{} {first}", kernels.arm());
        }
    }
}

#[test]
fn positions_outside_the_table_are_refused() {
    let table = [1; 4 * LINE];
    let step = [LineStep { difference: 3, class: 0 }];
    let bytes = LineReads::new(step, vec![LineBytes::new(&[5])]);
    let bits = LineReads::new(step, vec![LineBits::new([1; 8])]);
    for kernels in all_kernels() {
        for (records, in_bits) in [(4 * LINE as u64, false), (4 * LINE_BITS as u64, true)] {
            for position in [records, records + 1, u64::MAX] {
                let (mut good, mut bad) = ([7], [7]);
                let mut queries = [
                    LineQuery { first: 0, out: &mut good },
                    LineQuery { first: position, out: &mut bad },
                ];
                let refused = if in_bits {
                    bits.gather(kernels, &table, &mut queries)
                } else {
                    bytes.gather(kernels, &table, &mut queries)
                };
                assert_eq!(refused, Err(PositionOutOfRange { position, records }));
                assert_eq!((good, bad), ([7], [7]));
            }
        }
    }
}

fn panic_of(work: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let caught = std::panic::catch_unwind(work).expect_err("panics");
    let text = caught.downcast_ref::<String>().map(String::as_str);
    text.or(caught.downcast_ref::<&str>().copied()).expect("a message").to_owned()
}

#[test]
fn wrong_shapes_panic() {
    let gather = |table_len: usize, difference: u64, out_len: usize| {
        panic_of(move || {
            let step = [LineStep { difference, class: 0 }];
            let reads = LineReads::new(step, vec![LineBytes::new(&[1, 2])]);
            let mut out = vec![0; out_len];
            let mut queries = [LineQuery { first: 0, out: &mut out }];
            let _ = reads.gather(Kernels::detect(), &vec![0; table_len], &mut queries);
        })
    };
    for table_len in [0, 63, 65, 3 * LINE] {
        assert!(gather(table_len, 0, 2).contains("power of two of lines"), "{table_len}");
    }
    assert!(gather(2 * LINE, 2, 2).contains("no wider than the table"));
    assert!(gather(2 * LINE, 1, 1).contains("just the answer"));
    assert!(gather(2 * LINE, 1, 3).contains("just the answer"));

    let new = |difference: u64, class: u8, places: Vec<u8>| {
        panic_of(move || {
            LineReads::new([LineStep { difference, class }], vec![LineBytes::new(&places)]);
        })
    };
    assert!(new(1 << 56, 0, vec![]).contains("below 2^56"));
    assert!(new(0, 1, vec![]).contains("among the classes"));
    assert!(new(0, 0, vec![64]).contains("64 places"));
    assert!(new(0, 0, vec![0; 65]).contains("than it has"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn reads_of_any_shape(
        lines in 0u32..8,
        count in 0usize..100,
        class_lens in proptest::collection::vec(0usize..=64, 1..6),
        masks: [u64; 8],
        seed: u64,
    ) {
        check_bytes(seed, 1 << lines, count, &class_lens);
        check_bits(seed, 1 << lines, count, &[masks, [0, 1, 0, 0, masks[3], 0, 0, 0]]);
    }
}
