//! What a server sends, or a file holds, takes a client little more memory than its own length.
//!
//! One test, because a process has one count of what is allocated.

use peak_alloc::PeakAlloc;
use privet_core::Blame;
use privet_table::TableLayout;
use privet_table::values::MAX_VALUES_BYTES;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// What a description of values may take, however long a layout is …
const DESCRIPTION: usize = 64 << 20;

/// … far less if it is refused …
const REFUSED: usize = 8 << 20;

/// … and all else in a layout, for each of its bytes.
const FOR_EACH_BYTE: usize = 8;

/// What `decode` of these bytes takes at most, besides them.
fn taken<T>(bytes: &[u8], decode: impl FnOnce(&[u8]) -> T) -> (T, usize) {
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    let decoded = decode(bytes);
    (decoded, ALLOCATED.peak_usage() - before)
}

/// A struct of as many columns without a name as it can have, in the encoding of a type. All are of
/// the type `of`.
fn wide(of: &[u8]) -> Vec<u8> {
    let column = [&[0, 0], of].concat();
    let mut out = vec![13];
    out.extend(u16::MAX.to_le_bytes());
    (0..u16::MAX).for_each(|_| out.extend(&column));
    out
}

/// A layout whose values have `columns` columns of the type `of`.
fn described(columns: usize, of: &[u8]) -> Vec<u8> {
    let mut description = vec![0];
    description.extend((columns as u16).to_le_bytes());
    (0..columns).for_each(|_| description.extend([&[0, 0], of].concat()));
    with_description(&description)
}

/// A layout whose values have structs of structs, each of which says that it has as many columns as
/// the rest of the bytes can be.
fn greedy() -> Vec<u8> {
    let structs = [0xff, 0xff, 0, 0, 13].repeat(64);
    with_description(&[vec![0], structs, vec![0xff; 200_000]].concat())
}

fn with_description(description: &[u8]) -> Vec<u8> {
    let mut out = vec![3, 0];
    out.extend((description.len() as u32).to_le_bytes());
    out.extend(description);
    out.extend([1, 0, 0, 0]);
    out
}

/// A cuckoo map whose stash has `entries` entries, of values of one byte.
fn stashed(entries: u32) -> Vec<u8> {
    let mut out = vec![1, 0, 1, 0, 2, 0, 2];
    out.extend([7; 32]);
    for number in [u64::from(entries), 1 << 20, 32, 0] {
        out.extend(number.to_le_bytes());
    }
    out.extend(entries.to_le_bytes());
    for tag in 0..u64::from(entries) {
        out.extend(tag.to_le_bytes());
        out.extend(1u32.to_le_bytes());
        out.push(9);
    }
    out
}

/// A cuckoo map of `ranges` of one point each.
fn of_ranges(ranges: u32) -> Vec<u8> {
    let mut out = vec![1, 0, 1, 0, 4, 0, 2, 1, 0, 0, 0, 0, 0];
    out.extend([7; 32]);
    for number in [u64::from(ranges), 1 << 20, 32, 0] {
        out.extend(number.to_le_bytes());
    }
    out.extend(0u32.to_le_bytes());
    out.extend([1, 0]);
    out.extend(ranges.to_le_bytes());
    out.extend(u64::from(ranges).to_le_bytes());
    out.extend(vec![0; ranges as usize]);
    out
}

#[test]
fn layouts_take_little_more_memory_than_their_bytes() {
    let nested = [vec![12; 60], vec![0]].concat();
    let too_long = MAX_VALUES_BYTES.to_string();
    let cases = [
        ("columns without names", described(5, &wide(&[0])), Ok(())),
        ("lists of lists", described(16_000, &nested), Ok(())),
        ("a large stash", stashed(500_000), Ok(())),
        ("many ranges", of_ranges(2_000_000), Ok(())),
        ("more columns than a description may have", described(300, &wide(&[0])), Err(&*too_long)),
        ("more lists than a description may have", described(65_000, &nested), Err(&*too_long)),
        ("structs that all say they are long", greedy(), Err("not UTF-8")),
    ];
    for (what, bytes, expected) in cases {
        let (decoded, taken) = taken(&bytes, TableLayout::decode);
        println!("{what}: {} bytes take {taken}, {} times", bytes.len(), taken / bytes.len());
        match (decoded, expected) {
            (Ok(_), expected) => assert_eq!(expected, Ok(()), "{what}"),
            (Err(error), Ok(())) => panic!("{what}: {error}"),
            (Err(error), Err(message)) => {
                assert_eq!(error.blame(), Blame::InvalidMessage, "{what}");
                assert!(error.message().contains(message), "{what}: {error}");
                assert!(taken < REFUSED, "{what}: {taken}");
            }
        }
        assert!(taken < DESCRIPTION + FOR_EACH_BYTE * bytes.len(), "{what}: {taken}");
    }
}
