//! Encodings are exact and canonical, and nothing else is accepted. Sizes are as documented.

use super::*;

#[test]
fn values_are_packed_by_hand() {
    // Five records: values from 0 to 5 in three bits each.
    let parameters = cut(5, 3, 4);
    let query = HarmonyQuery { values: vec![4, 5, 0, 3], value_bits: 3 };
    assert_eq!(query.encode(), [0b0010_1100, 0b0000_0110]);
    assert_eq!(HarmonyQuery::decode(&parameters, &query.encode()).unwrap(), query);
    for wrong in [&[0b0011_0100, 0b0110][..], &[0b0011_1100, 0b0110], &[0b0010_1100, 0b1_0110]] {
        let refused = HarmonyQuery::decode(&parameters, wrong);
        assert_eq!(refused.unwrap_err().blame(), Blame::InvalidMessage, "{wrong:?}");
    }
}

#[test]
fn an_empty_reads_zeros() {
    let world = World::cut(5, 3, 4);
    let query = HarmonyQuery { values: vec![4, 5, 5, 0], value_bits: 3 };
    let answer = world.answers(&[query]).remove(0);
    let expected = [world.record(4), &[0; 6], world.record(0)].concat();
    assert_eq!(answer.records, expected);
}

/// Records, their length, cells, segment, query, answer, lookups, and state at most.
#[test]
fn sizes_are_as_promised() {
    for (records, record_len, k, segment, query, answer, lookups, state) in [
        (1 << 20, 32, 21, 16, 42, 512, 1 << 16, 5 << 20),
        (1 << 24, 32, 25, 64, 200, 2048, 1 << 18, 20 << 20),
        (1 << 27, 32, 28, 128, 448, 4096, 1 << 20, 80 << 20),
        (1 << 31, 8, 32, 512, 2048, 4096, 1 << 22, 130 << 20),
        (1000, 8, 11, 8, 10, 64, 128, 1 << 13),
        (1, 1, 11, 8, 1, 8, 128, 1 << 11),
    ] {
        let shape = TableShape::new(records, record_len).unwrap();
        let parameters = HarmonyParameters::new(shape).unwrap();
        assert_eq!((parameters.cells_log2(), parameters.segment_records()), (k, segment));
        assert_eq!(HarmonyQuery::encoded_len(&parameters), query);
        assert_eq!(HarmonyAnswer::encoded_len(&parameters), answer);
        assert_eq!(parameters.lookups(), lookups);
        assert!(parameters.state_bytes() <= state, "{}", parameters.state_bytes());
    }
}

#[test]
fn the_default_segment_is_the_power_of_two_next_to_the_root_over_64() {
    for log2 in 0..=31 {
        for records in [(1u64 << log2) - 1, 1 << log2, (1 << log2) + 1] {
            if records == 0 || records > 1 << 31 {
                continue;
            }
            let shape = TableShape::new(records, 1).unwrap();
            let segment = HarmonyParameters::new(shape).unwrap().segment_records();
            let ideal = (records as f64).log2() / 2.0 - 6.0;
            let expected = (ideal - 0.5 - 1e-12).ceil().max(3.0);
            assert_eq!(f64::from(segment).log2(), expected, "{records}");
        }
    }
}

#[test]
fn there_are_empties_for_all_lookups() {
    for records in [1, 2, 3, 5, 8, 9, 1000, 1024, 1025, 1 << 24, 1 << 31] {
        for log2 in 1..=12 {
            let shape = TableShape::new(records, 1).unwrap();
            let Ok(parameters) = HarmonyParameters::with_segment_records(shape, 1 << log2) else {
                // Its state would be larger than four tables.
                assert!(records == 1 << 31 && log2 < 3 || records == 1 << 24 && log2 < 2);
                continue;
            };
            assert!(
                parameters.lookups() >= 128 && parameters.segments() == 2 * parameters.lookups()
            );
            let filled = u64::from(parameters.lookups()) << log2;
            assert!(records + filled <= parameters.cells());
        }
    }
}

#[test]
fn parameters_are_announced_and_checked() {
    let shape = TableShape::new(1000, 2).unwrap();
    for announced in [0u64, 1, 3, 1 << 17, u64::MAX] {
        let refused = HarmonyParameters::decode(&identity(1000, 2), &announced.to_le_bytes());
        assert_eq!(refused.unwrap_err().blame(), Blame::PeerMisbehaved, "{announced}");
    }
    assert!(HarmonyParameters::decode(&identity(1000, 2), &[0; 7]).is_err());
    assert!(HarmonyParameters::with_segment_records(shape, 1 << 16).is_ok());
    // What a server announces cannot make a client allocate without bound.
    let huge = identity(1 << 25, 1 << 23);
    for announced in [2u64, 1 << 10] {
        let refused = HarmonyParameters::decode(&huge, &announced.to_le_bytes());
        assert_eq!(refused.unwrap_err().blame(), Blame::PeerMisbehaved, "{announced}");
    }
    let long = TableShape::new((1 << 31) + 1, 1).unwrap();
    assert_eq!(HarmonyParameters::new(long).unwrap_err().blame(), Blame::ApiMisuse);
}
