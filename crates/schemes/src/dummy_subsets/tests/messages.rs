//! Encodings are exact and canonical, and nothing else is accepted. Sizes are as documented.

use super::*;

#[test]
fn queries_that_are_none_are_refused() {
    let shape = TableShape::new(37, 3).unwrap();
    // 10 partitions of 4: 2 bytes of halves, 5 offsets of 2 bits in 2 bytes.
    let parameters = DummySubsetsParameters::with_partition_records(shape, 4).unwrap();
    let good = [0b0001_1111, 0, 0b1110_0100, 0b10];
    assert!(DummySubsetsQuery::decode(&parameters, &good).is_ok());
    let wrong: [(&str, &[u8]); 6] = [
        ("short", &good[..3]),
        ("long", &[good[0], good[1], good[2], good[3], 0]),
        ("six to four", &[0b0011_1111, 0, 0, 0]),
        ("four to six", &[0b0000_1111, 0, 0, 0]),
        ("a half for a partition that is not there", &[0b0000_1111, 0b100, 0, 0]),
        ("an offset more", &[good[0], good[1], good[2], 0b110]),
    ];
    for (name, bytes) in wrong {
        let refused = DummySubsetsQuery::decode(&parameters, bytes);
        assert_eq!(refused.unwrap_err().blame(), Blame::InvalidMessage, "{name}");
    }
    assert!(DummySubsetsAnswer::decode(&parameters, &[0; 6]).is_ok());
    assert!(DummySubsetsAnswer::decode(&parameters, &[0; 5]).is_err());
    assert!(DummySubsetsAnswer::decode(&parameters, &[0; 7]).is_err());
}

#[test]
fn sizes_are_as_promised() {
    let shape = TableShape::new(1 << 24, 32).unwrap();
    let parameters = DummySubsetsParameters::new(shape).unwrap();
    assert_eq!((parameters.partition_records(), parameters.partitions()), (4096, 4096));
    assert_eq!(DummySubsetsQuery::encoded_len(&parameters), 3584);
    assert_eq!(DummySubsetsAnswer::encoded_len(&parameters), 64);
    assert!(parameters.state_bytes() < 24_000_000, "{}", parameters.state_bytes());
    assert!(parameters.failure_probability() <= (-40f64).exp());
}

#[test]
fn parameters_are_announced_and_checked() {
    for records in [1, 2, 3, 5, 1000, 4096, 5000, 1 << 33] {
        let shape = TableShape::new(records, 2).unwrap();
        let parameters = DummySubsetsParameters::new(shape).unwrap();
        let (partitions, partition) = (parameters.partitions(), parameters.partition_records());
        assert!(partitions >= 4 && partitions.is_multiple_of(2));
        assert!(u64::from(partitions) * u64::from(partition) >= records);
        assert!(parameters.failure_probability() <= (-40f64).exp(), "{records}");
        let again = DummySubsetsParameters::decode(&identity(shape), &parameters.encode());
        assert_eq!(again.unwrap(), parameters);
    }
    let shape = TableShape::new(1000, 2).unwrap();
    for announced in [0u64, 3, 1 << 17, u64::MAX] {
        let refused = DummySubsetsParameters::decode(&identity(shape), &announced.to_le_bytes());
        assert_eq!(refused.unwrap_err().blame(), Blame::PeerMisbehaved, "{announced}");
    }
    assert!(DummySubsetsParameters::decode(&identity(shape), &[0; 7]).is_err());
    // What a server announces cannot make a client allocate without bound.
    let huge = TableShape::new(1 << 25, 1 << 23).unwrap();
    let refused = DummySubsetsParameters::decode(&identity(huge), &(1u64 << 16).to_le_bytes());
    assert_eq!(refused.unwrap_err().blame(), Blame::PeerMisbehaved);
    let parameters = DummySubsetsParameters::new(shape).unwrap();
    assert!(parameters.clone().with_hint_security(0).is_err());
    assert!(parameters.with_hint_security(4097).is_err());
}
