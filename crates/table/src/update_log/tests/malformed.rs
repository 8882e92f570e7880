//! Bytes from any source. Announced sizes are never allocated: reserving the sizes below would end
//! the process.

use super::*;
use crate::update_log::entry::Entry;
use privet_core::Blame;

/// A valid epoch up to the length of its layout, with these numbers of records, and then `rest` and
/// a signature.
fn forged(before: u64, after: u64, record_len: u32, rest: &[u8]) -> Vec<u8> {
    let mut bytes = Model::new(5).next(&[edit(0, 1)], None)[..122].to_vec();
    bytes.extend_from_slice(&before.to_le_bytes());
    bytes.extend_from_slice(&after.to_le_bytes());
    bytes.extend_from_slice(&record_len.to_le_bytes());
    bytes.extend_from_slice(rest);
    bytes.extend_from_slice(&[0; 64]);
    bytes
}

fn refused(bytes: &[u8]) -> String {
    let error = Entry::decode(bytes).err().expect("malformed");
    assert_eq!(error.blame(), Blame::InvalidMessage);
    error.message().to_owned()
}

#[test]
fn each_malformation_is_refused_by_its_name() {
    // 2^48, which no number may exceed, in seven bytes.
    let most = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40];
    let change = |old: u8, new: u8| [old, new];
    assert!(Entry::decode(&forged(2, 2, 1, &[&[0, 1, 1][..], &change(1, 2)].concat())).is_ok());
    let cases: &[(Vec<u8>, &str)] = &[
        (vec![0; 63], "shorter than a signature"),
        (vec![0xff; 300], "has version 65535"),
        (forged(0, 1, 1, &[0, 0, 9]), "at least one record"),
        (forged(1, 1, 1 << 25, &[0, 0]), "too long"),
        (forged(1 << 48, 1 << 48, 2, &[0, 0]), "too much for one table"),
        (forged(2, 1, 1, &[0, 0]), "fewer records than before"),
        (forged(2, 2, 1, &[&most[..], &[0]].concat()), "ends too early"),
        (forged(2, 2, 1, &[&[0][..], &most].concat()), "ends too early"),
        (forged(1, 1 << 48, 1, &[0, 0, 9]), "another length than announced"),
        (forged(2, 3, 1, &[0, 0]), "another length than announced"),
        (forged(2, 3, 1, &[0, 0, 9, 9]), "another length than announced"),
        (forged(2, 2, 1, &[0, 0]), "changes nothing"),
        (forged(2, 2, 1, &[0, 1, 2, 1, 2]), "beyond the table"),
        (forged(2, 2, 1, &[0, 2, 1, 1, 2, 0, 1, 2]), "beyond the table"),
        (forged(2, 2, 1, &[0, 1, 1, 2, 2]), "stays the same"),
        (forged(2, 2, 1, &[0, 1, 0x81, 0, 1, 2]), "needless bytes"),
        (forged(2, 2, 1, &[0x80, 0, 1, 0, 1, 2]), "needless bytes"),
        (forged(2, 2, 1, &[0, 1, 0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40, 1, 2]), "impossible"),
        (forged(2, 2, 1, &[0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2]), "impossible"),
    ];
    for (bytes, how) in cases {
        let message = refused(bytes);
        assert!(message.contains(how), "{how}: {message}");
    }
    let mut epoch_zero = forged(2, 2, 1, &[0, 1, 1, 1, 2]);
    epoch_zero[18..26].fill(0);
    assert!(refused(&epoch_zero).contains("impossible number"));
}

/// A number of up to 14 bits, with a needless byte or without.
fn number(number: u64, needless: bool) -> Vec<u8> {
    let low = (number & 0x7f) as u8;
    match (number >> 7, needless) {
        (0, false) => vec![low],
        (0, true) => vec![low | 0x80, 0],
        (high, false) => vec![low | 0x80, high as u8],
        (high, true) => vec![low | 0x80, high as u8 | 0x80, 0],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever can be read is written in the same way again, and nothing else can be read: a
    /// number has one form, and records lie within the table, differ, and are all there.
    #[test]
    fn every_epoch_has_one_encoding(
        records in 1..400u64,
        grows_by in 0..3u64,
        edits in prop::collection::vec((0..200u64, 0..6u8, 0..6u8), 0..4),
        needless in prop::option::weighted(0.2, 0..6usize),
        one_off in prop::option::weighted(0.2, any::<bool>()),
    ) {
        let mut needless_at = 0;
        let mut with_form = |value| {
            needless_at += 1;
            number(value, needless == Some(needless_at - 1))
        };
        let mut rest = with_form(0);
        rest.extend(with_form(edits.len() as u64));
        for (gap, old, new) in &edits {
            rest.extend(with_form(*gap));
            rest.extend([old, new]);
        }
        rest.resize(rest.len() + grows_by as usize, 9);
        match one_off {
            Some(true) => rest.push(9),
            Some(false) => drop(rest.pop()),
            None => {}
        }
        let indices = edits.iter().scan(0, |least, (gap, ..)| {
            *least += gap + 1;
            Some(*least - 1)
        });
        let valid = needless.is_none_or(|at| at >= edits.len() + 2)
            && one_off.is_none()
            && indices.clone().all(|index| index < records)
            && edits.iter().all(|(_, old, new)| old != new)
            && edits.len() as u64 + grows_by > 0;

        let bytes = forged(records, records + grows_by, 1, &rest);
        let entry = Entry::decode(&bytes);
        prop_assert_eq!(entry.is_ok(), valid);
        let Ok(entry) = entry else { return Ok(()) };
        let changes = entry.changes().expect("valid");
        let edited = indices.zip(&edits).map(|(index, (_, old, new))| (index, [*old], [*new]));
        let appended = (records..records + grows_by).map(|index| (index, [0], [9]));
        let expected: Vec<_> = edited.chain(appended).collect();
        let expected = expected.iter().map(|(index, old, new)| (*index, &old[..], &new[..]));
        prop_assert!(changes.records().eq(expected));
    }

    #[test]
    fn noise_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(Entry::decode(&bytes).is_err());
    }
}
