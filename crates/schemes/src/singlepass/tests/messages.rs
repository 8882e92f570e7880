//! Encodings are exact, and nothing else is accepted. Sizes are as documented.

use super::*;
use privet_core::{Blame, Secret};
use proptest::prelude::*;

proptest! {
    #[test]
    fn whatever_is_accepted_is_what_would_be_encoded(bytes in prop::collection::vec(0u8..3, 0..9)) {
        // Three partitions of 258: 0x0101 is the last offset. Numbers with 2 in their upper byte
        // lie beyond, and so does 0x0102.
        let parameters = cut(700, 3, 258);
        let beyond = bytes.chunks(2).any(|offset| offset.get(1).is_some_and(|upper| *upper > 1) || *offset == [2, 1]);
        match SinglePassQuery::decode(&parameters, &bytes) {
            Ok(query) => {
                prop_assert!(!beyond && bytes.len() == 6);
                prop_assert_eq!(query.encode(), bytes);
            }
            Err(error) => {
                prop_assert!(beyond || bytes.len() != 6);
                prop_assert_eq!(error.blame(), Blame::InvalidMessage);
            }
        }
    }
}

#[test]
fn messages_that_are_none_are_refused() {
    let blame = |result: Result<()>| result.unwrap_err().blame();
    let parameters = cut(10, 3, 4);
    let query = |bytes: &[u8]| SinglePassQuery::decode(&parameters, bytes).map(|_| ());
    query(&[3, 0, 0, 0, 1, 0]).unwrap();
    for bytes in [&[][..], &[0; 5], &[0; 7], &[4, 0, 0, 0, 0, 0], &[0, 0, 0, 0, 0xff, 0xff]] {
        assert_eq!(blame(query(bytes)), Blame::InvalidMessage, "{bytes:?}");
    }
    // A record that lies beyond the table but not beyond its partition counts as zero.
    query(&[0, 0, 0, 0, 3, 0]).unwrap();
    let lens = [
        (
            32,
            &(|bytes: &[u8]| SinglePassRequest::decode(&parameters, bytes).map(|_| ()))
                as &dyn Fn(&[u8]) -> Result<()>,
        ),
        (12, &|bytes| SinglePassReply::decode(&parameters, bytes).map(|_| ())),
        (9, &|bytes| SinglePassAnswer::decode(&parameters, bytes).map(|_| ())),
    ];
    for (len, decode) in lens {
        decode(&vec![0xff; len]).unwrap();
        for wrong in [0, 1, len - 1, len + 1, 2 * len] {
            assert_eq!(blame(decode(&vec![0; wrong])), Blame::InvalidMessage, "{wrong}");
        }
    }
}

#[test]
fn a_server_answers_with_the_named_records_and_zeros_beyond_the_end() {
    let world = World::with(cut(10, 3, 4));
    let query = SinglePassQuery { offsets: vec![3, 0, 1] };
    let expected = [world.record(3), world.record(4), world.record(9)].concat();
    assert_eq!(world.server.answer(Role(1), &[query]).remove(0).records, expected);
    let query = SinglePassQuery { offsets: vec![0, 3, 3] };
    let expected = [world.record(0), world.record(7), &[0; 3]].concat();
    let several = [query.clone(), SinglePassQuery { offsets: vec![3, 0, 1] }, query];
    let answers = world.server.answer(Role(0), &several);
    assert_eq!(answers.len(), 3);
    assert_eq!((&answers[0].records, &answers[2].records), (&expected, &expected));
}

#[test]
fn hints_differ_by_seed_and_not_otherwise() {
    let world = World::with(cut(1000, 5, 30));
    let hints = |byte: u8| {
        let request = SinglePassRequest { seed: Secret::new([byte; 32]) };
        world.server.hints(&request).unwrap().hints
    };
    assert_eq!(hints(1), hints(1));
    assert_ne!(hints(1), hints(2));
}

#[test]
fn sizes_are_as_promised() {
    let shape = TableShape::new(1 << 24, 32).unwrap();
    let parameters = SinglePassParameters::new(shape).unwrap();
    assert_eq!((parameters.partition_records(), parameters.partitions()), (1 << 16, 256));
    assert_eq!(SinglePassQuery::encoded_len(&parameters), 512);
    assert_eq!(SinglePassAnswer::encoded_len(&parameters), 8192);
    assert_eq!(SinglePassReply::encoded_len(&parameters), 2 << 20);
    assert_eq!(parameters.state_bytes(), 34 << 20);
    assert_eq!(parameters.queries_per_generation(), 4096);
    // The shape of the published figures.
    let published = SinglePassParameters::with_partition_records(shape, 4096).unwrap();
    assert_eq!((published.partitions(), published.hint_bytes()), (4096, 4096 * 32));
    assert_eq!(published.queries_per_generation(), 456);
    assert_eq!(
        SinglePass::offline_phase(&published),
        OfflinePhase::Ask { role: Role(0), requests: 1, request_len: 32, reply_len: 4096 * 32 }
    );
}

#[test]
fn the_default_cut_is_the_cheapest_within_its_limits() {
    let bytes = |parameters: &SinglePassParameters| {
        let lookup = 2 * (SinglePassQuery::encoded_len(parameters) + parameters.answer_len());
        parameters.hint_bytes() + 1024 * lookup as u64
    };
    for (records, record_len) in
        [(100_000, 1), (100_000, 32), (30_000, 33), (1 << 20, 8), (9000, 400)]
    {
        let shape = TableShape::new(records, record_len).unwrap();
        let chosen = SinglePassParameters::new(shape).unwrap();
        assert!(chosen.hint_bytes() <= 4 << 20);
        let most = (65_536).min((4 << 20) / record_len).min(records / 2);
        let best = (2..=most)
            .map(|cut| SinglePassParameters::with_partition_records(shape, cut))
            .filter_map(|cut| cut.ok().map(|cut| bytes(&cut)))
            .min();
        // Rounding to whole partitions and records costs a little.
        assert!(bytes(&chosen) as f64 <= 1.01 * best.unwrap() as f64, "{chosen:?} {best:?}");
    }
}

#[test]
fn parameters_are_announced_and_checked() {
    for records in [1, 2, 3, 5, 1000, 4096, 5000, 1 << 30] {
        for record_len in [1, 7, 32, 1000] {
            let shape = TableShape::new(records, record_len).unwrap();
            let Ok(parameters) = SinglePassParameters::new(shape) else {
                assert_eq!((records, record_len), (1 << 30, 1000), "hints or answers are too long");
                continue;
            };
            let (partitions, partition) = (parameters.partitions(), parameters.partition_records());
            assert!(partitions >= 2 && (2..=65_536).contains(&partition));
            assert!(u64::from(partitions) * u64::from(partition) >= records);
            let identity = identity(records, record_len);
            let again = SinglePassParameters::decode(&identity, &parameters.encode());
            assert_eq!(again.unwrap(), parameters);
        }
    }
    let identity = |records, record_len| identity(records, record_len);
    for announced in [0u64, 1, (1 << 16) + 1, u64::MAX] {
        let refused = SinglePassParameters::decode(&identity(1000, 2), &announced.to_le_bytes());
        assert_eq!(refused.unwrap_err().blame(), Blame::PeerMisbehaved, "{announced}");
    }
    for len in [0, 7, 9] {
        let refused = SinglePassParameters::decode(&identity(1000, 2), &vec![0; len]);
        assert_eq!(refused.unwrap_err().blame(), Blame::InvalidMessage, "{len}");
    }
    // What a server announces cannot make a client allocate without bound: neither for hints, nor
    // for answers, nor for permutations.
    for (records, record_len, announced) in
        [(1 << 20, 2048, 1u64 << 16), (1 << 20, 2048, 2), (1 << 33, 1, 1 << 16)]
    {
        let identity = identity(records, record_len);
        let refused = SinglePassParameters::decode(&identity, &announced.to_le_bytes());
        assert_eq!(refused.unwrap_err().blame(), Blame::PeerMisbehaved);
    }
    // Long records: hints of more than 4 MiB, because answers would be too long otherwise.
    let long = SinglePassParameters::new(TableShape::new(500, 1 << 20).unwrap()).unwrap();
    assert_eq!((long.partition_records(), long.partitions()), (8, 63));
    let longest = SinglePassParameters::new(TableShape::new(8, 1 << 24).unwrap()).unwrap();
    assert_eq!((longest.partition_records(), longest.partitions()), (2, 4));
    for (records, record_len) in [(20, 1 << 24), (1 << 48, 1), (1 << 32, 1 << 16)] {
        let refused = SinglePassParameters::new(TableShape::new(records, record_len).unwrap());
        let error = refused.unwrap_err();
        assert_eq!(error.blame(), Blame::ApiMisuse);
        assert!(error.message().contains("bytes"), "{error}");
    }
}
