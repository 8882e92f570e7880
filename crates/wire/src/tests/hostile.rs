//! Invalid messages are refused, with the right blame, and nothing panics.

use super::*;
use crate::limits::*;
use crate::prost::Message;
use crate::{
    AnswerRequest, AnswerResponse, DescribeRequest, FetchChunk, FetchRequest, PrepareRequest,
    PrepareResponse,
};
use privet_core::{Blame, Result};
use proptest::prelude::*;

/// The error for the description `change` makes of a valid one.
fn refusal(change: impl FnOnce(&mut proto::DescribeResponse)) -> privet_core::Error {
    let mut message = announced();
    change(&mut message);
    ServerDescription::try_from(message).unwrap_err()
}

#[test]
fn descriptions_that_are_no_valid_ones() {
    use Blame::{InvalidMessage, PeerMisbehaved};
    type Change = (&'static str, Blame, fn(&mut proto::DescribeResponse));
    let changes: Vec<Change> = vec![
        ("version 2", PeerMisbehaved, |d| d.protocol_version = 2),
        ("version 0", PeerMisbehaved, |d| d.protocol_version = 0),
        ("software", InvalidMessage, |d| d.software = "s".repeat(MAX_SOFTWARE_LEN + 1)),
        ("1025 tables", InvalidMessage, |d| d.tables = vec![d.tables[0].clone(); MAX_TABLES + 1]),
        ("two tables are named packages", InvalidMessage, |d| d.tables.push(d.tables[0].clone())),
        ("two tables have the id", InvalidMessage, |d| {
            let mut second = d.tables[0].clone();
            second.name = "second".into();
            d.tables.push(second);
        }),
        ("cannot be a name", InvalidMessage, |d| d.tables[0].name.clear()),
        ("cannot be a name", InvalidMessage, |d| d.tables[0].name = "n".repeat(MAX_NAME_LEN + 1)),
        ("cannot be a name", InvalidMessage, |d| d.tables[0].name = "a/b".into()),
        ("cannot be a name", InvalidMessage, |d| d.tables[0].name = "b\u{1b}[31m".into()),
        ("cannot be a name", InvalidMessage, |d| d.tables[0].name = "schlüssel".into()),
        ("table id must have 16 bytes, not 15", InvalidMessage, |d| {
            d.tables[0].table_id.truncate(15)
        }),
        ("table id must have 16 bytes, not 17", InvalidMessage, |d| d.tables[0].table_id.push(0)),
        ("table digest must have 32 bytes", InvalidMessage, |d| d.tables[0].digest.clear()),
        ("at least one record", InvalidMessage, |d| d.tables[0].records = 0),
        ("at least one record", InvalidMessage, |d| d.tables[0].record_len = 0),
        ("too long", InvalidMessage, |d| d.tables[0].record_len = u64::MAX),
        ("too much", InvalidMessage, |d| d.tables[0].records = u64::MAX),
        ("not described", InvalidMessage, |d| d.tables[0].layout = None),
        ("digest of a part", InvalidMessage, |d| {
            d.tables[0].layout = Some(proto::PartDescription { len: 1, digest: vec![1; 31] });
        }),
        ("record layout of table packages", InvalidMessage, |d| {
            d.tables[0].layout =
                Some(proto::PartDescription { len: MAX_LAYOUT_LEN + 1, digest: vec![1; 32] });
        }),
        ("33 schemes", InvalidMessage, |d| {
            d.tables[0].schemes = vec![d.tables[0].schemes[0].clone(); MAX_SCHEMES + 1];
        }),
        ("twice", InvalidMessage, |d| {
            let again = d.tables[0].schemes[0].clone();
            d.tables[0].schemes.push(again);
        }),
        ("cannot be a name", InvalidMessage, |d| d.tables[0].schemes[0].name.clear()),
        ("257 bytes", InvalidMessage, |d| {
            d.tables[0].schemes[0].parameters = vec![0; MAX_PARAMETERS_LEN + 1]
        }),
        ("parameters", InvalidMessage, |d| d.tables[0].schemes[0].parameters.truncate(7)),
        ("refused", PeerMisbehaved, |d| d.tables[0].schemes[0].parameters = vec![0; 8]),
        ("refused", PeerMisbehaved, |d| d.tables[0].schemes[0].parameters = vec![255; 8]),
        ("parameter digest must have", InvalidMessage, |d| {
            d.tables[0].schemes[0].parameter_digest.clear()
        }),
        ("do not have the digest", PeerMisbehaved, |d| {
            d.tables[0].schemes[0].parameter_digest[31] ^= 1
        }),
        ("do not have the digest", PeerMisbehaved, |d| d.tables[0].epoch += 1),
        ("do not have the digest", PeerMisbehaved, |d| d.tables[0].digest[0] ^= 1),
        ("announcement says nothing", PeerMisbehaved, |d| d.tables[0].schemes[0].hint = None),
        ("announcement says 1 bytes", PeerMisbehaved, |d| {
            d.tables[0].schemes[0].hint =
                Some(proto::PartDescription { len: 1, digest: vec![9; 32] });
        }),
        ("digest of a part", InvalidMessage, |d| {
            if let Some(hint) = &mut d.tables[0].schemes[0].hint {
                hint.digest.push(0);
            }
        }),
    ];
    ServerDescription::try_from(announced()).expect("without a change it is valid");
    for (expected, blame, change) in changes {
        let error = refusal(change);
        assert_eq!(error.blame(), blame, "{error}");
        assert!(error.to_string().contains(expected), "{expected:?} is not in: {error}");
        assert!(!error.to_string().chars().any(char::is_control), "{error:?}");
    }
}

#[test]
fn a_server_cannot_have_more_queries_sent_together_than_there_may_be() {
    for (announced_as, read) in [(0, 1), (1, 1), (7, 7), (64, 64), (65, 64), (u32::MAX, 64)] {
        let message = proto::DescribeResponse { max_queries: announced_as, ..announced() };
        assert_eq!(ServerDescription::try_from(message).unwrap().max_queries, read);
    }
}

/// The outcome of a description whose only scheme is `scheme`.
fn offered(scheme: proto::Scheme) -> Result<ServerDescription> {
    let mut message = announced();
    message.tables[0].schemes = vec![scheme];
    ServerDescription::try_from(message)
}

#[test]
fn a_table_that_is_streamed_or_kept_is_announced_with_exactly_its_length() {
    let identity = identity(1000, 20);
    for id in
        [SchemeId::DummySubsets, SchemeId::Piano, SchemeId::PianoAllParities, SchemeId::Download]
    {
        let good = proto::Scheme::from(described_as(id, &identity, 16));
        let with =
            |hint: Option<proto::PartDescription>| offered(proto::Scheme { hint, ..good.clone() });
        let part = |len: u64| Some(proto::PartDescription { len, digest: vec![11; 32] });
        with(part(20_000)).unwrap();
        for hint in [None, part(0), part(19_999), part(20_001), part(u64::MAX)] {
            let error = with(hint).unwrap_err();
            assert_eq!(error.blame(), Blame::PeerMisbehaved, "{error}");
            let sentence =
                format!("clients of {id} with these parameters have 20000 bytes to fetch");
            assert!(error.to_string().contains(&sentence), "{error}");
        }
        let short = proto::PartDescription { len: 20_000, digest: vec![11; 31] };
        assert_eq!(with(Some(short)).unwrap_err().blame(), Blame::InvalidMessage);
    }
}

#[test]
fn a_scheme_whose_clients_receive_nothing_first_announces_nothing() {
    // There is none, or it is different for each client.
    for id in [SchemeId::Dpf, SchemeId::DummySubsetsTwo, SchemeId::SinglePass] {
        let good = proto::Scheme::from(described_as(id, &identity(1000, 20), 16));
        offered(good.clone()).unwrap();
        for len in [0, 1, 20_000, u64::MAX] {
            let hint = Some(proto::PartDescription { len, digest: vec![1; 32] });
            let error = offered(proto::Scheme { hint, ..good.clone() }).unwrap_err();
            assert_eq!(error.blame(), Blame::PeerMisbehaved, "{error}");
            let sentence = format!(
                "{id} with these parameters have nothing to fetch before their first query; the announcement says {len} bytes"
            );
            assert!(error.to_string().contains(&sentence), "{error}");
        }
    }
}

#[test]
fn parameters_of_a_scheme_that_has_none_are_refused() {
    for id in [SchemeId::Dpf, SchemeId::Download] {
        let good = proto::Scheme::from(described_as(id, &identity(1000, 20), 0));
        for parameters in [vec![0], vec![0; 8], vec![255; MAX_PARAMETERS_LEN]] {
            let error = offered(proto::Scheme { parameters, ..good.clone() }).unwrap_err();
            assert_eq!(error.blame(), Blame::InvalidMessage, "{error}");
        }
    }
}

#[test]
fn parameters_of_doublepir_that_are_no_valid_ones() {
    let described = described_as(SchemeId::DoublePir, &identity(1000, 20), 7);
    // 16 MiB for each byte of a record.
    assert_eq!(described.hint.unwrap().len, 20 << 24);
    let good = proto::Scheme::from(described);
    offered(good.clone()).unwrap();
    for records_per_column in [0, 1001, 1 << 63, u64::MAX] {
        let parameters = u64::to_le_bytes(records_per_column).to_vec();
        let error = offered(proto::Scheme { parameters, ..good.clone() }).unwrap_err();
        assert_eq!(error.blame(), Blame::PeerMisbehaved, "{error}");
        assert!(error.to_string().contains("refused"), "{error}");
    }
    // A server cannot announce a hint of more than a gibibyte in any way.
    let mut message = announced();
    message.tables[0].record_len = 65;
    message.tables[0].schemes = vec![proto::Scheme {
        hint: Some(proto::PartDescription { len: 65 << 24, digest: vec![9; 32] }),
        ..good
    }];
    let error = ServerDescription::try_from(message).unwrap_err();
    assert_eq!(error.blame(), Blame::PeerMisbehaved, "{error}");
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("1040 MiB") && cause.contains("the limit is 1024 MiB"), "{cause}");
}

#[test]
fn sizes_of_partitions_that_are_no_valid_ones() {
    for id in [
        SchemeId::DummySubsets,
        SchemeId::DummySubsetsTwo,
        SchemeId::Piano,
        SchemeId::PianoAllParities,
        SchemeId::SinglePass,
    ] {
        let good = proto::Scheme::from(described_as(id, &identity(1000, 20), 16));
        // SinglePass takes partitions of any size up to its limit, the others powers of two.
        let no_powers: &[u64] = if id == SchemeId::SinglePass { &[] } else { &[3, 17] };
        for partition_records in [0, 1 << 17, 1 << 63, u64::MAX].iter().chain(no_powers) {
            let parameters = partition_records.to_le_bytes().to_vec();
            let error = offered(proto::Scheme { parameters, ..good.clone() }).unwrap_err();
            assert_eq!(error.blame(), Blame::PeerMisbehaved, "{id}, {partition_records}: {error}");
            assert!(error.to_string().contains("refused"), "{error}");
        }
        for len in [0, 7, 9] {
            let parameters = vec![1; len];
            let error = offered(proto::Scheme { parameters, ..good.clone() }).unwrap_err();
            assert_eq!(error.blame(), Blame::InvalidMessage, "{id}, {len} bytes: {error}");
        }
    }
}

#[test]
fn a_scheme_of_a_later_release_is_skipped_and_the_others_stay() {
    let mut message = announced();
    let newer =
        proto::Scheme { name: "later-scheme".into(), parameters: vec![1; 5], ..Default::default() };
    message.tables[0].schemes.insert(0, newer);
    assert_eq!(ServerDescription::try_from(message.clone()).unwrap(), description());
    message.tables[0].schemes.truncate(1);
    assert!(ServerDescription::try_from(message).unwrap().tables[0].schemes.is_empty());
}

#[test]
fn a_lookup_without_privacy_is_never_taken_for_a_scheme() {
    // As a server would announce it that answers a plain index with the record, under several
    // possible names.
    for name in ["plain", "Plain", "PLAIN", "none", "direct"] {
        for hint in [None, Some(proto::PartDescription { len: 20_000, digest: vec![11; 32] })] {
            for parameters in [vec![], vec![0; 8]] {
                let plain = proto::Scheme {
                    name: name.into(),
                    parameters,
                    parameter_digest: vec![1; 32],
                    hint: hint.clone(),
                };
                let description = offered(plain.clone()).unwrap();
                assert!(description.tables[0].schemes.is_empty(), "{name} was accepted");
                assert_eq!(description.plans().count(), 0);
                // Beside a private scheme, only the private one is left.
                let mut message = announced();
                message.tables[0].schemes.insert(0, plain);
                let described = ServerDescription::try_from(message).unwrap();
                let left: Vec<_> = described.plans().map(|plan| plan.scheme).collect();
                assert_eq!(left, [SchemeId::SimplePir]);
            }
        }
    }
    assert!(privet_laboratory::all().all(|id| id.name() != "plain"));
}

#[test]
fn what_is_printed_cannot_steer_a_terminal() {
    let mut message = announced();
    message.software = "evil\u{1b}[2J\r\nname".into();
    assert_eq!(ServerDescription::try_from(message).unwrap().software, "evil [2J  name");
}

#[test]
fn a_description_is_built_under_the_rules_it_is_read_under() {
    let identity = identity(1000, 20);
    let good = scheme(&identity, 7);
    let layout = PartDescription::new(1, [0; 32]);
    let blame = |result: Result<TableDescription>| result.unwrap_err().blame();
    assert_eq!(
        blame(TableDescription::new("a b", identity, layout, vec![])),
        Blame::InvalidMessage
    );
    let elsewhere = TableIdentity { epoch: Epoch(4), ..identity };
    assert_eq!(
        blame(TableDescription::new("a", elsewhere, layout, vec![good.clone()])),
        Blame::PeerMisbehaved
    );
    let no_hint = SchemeDescription::new(good.plan.clone(), &identity, None);
    assert_eq!(no_hint.unwrap_err().blame(), Blame::PeerMisbehaved);
    let table = TableDescription::new("a", identity, layout, vec![good]).unwrap();
    for (len, fits) in [(0, true), (MAX_TOLD_LAYOUT_LEN, true), (MAX_TOLD_LAYOUT_LEN + 1, false)] {
        let told = TableDescription { layout_bytes: Some(vec![7; len]), ..table.clone() };
        let read = TableDescription::try_from(proto::Table::from(told.clone()));
        assert_eq!(read.ok(), fits.then_some(told), "{len} bytes");
    }
    let twice = ServerDescription::new("s", vec![table.clone(), table]);
    assert_eq!(twice.unwrap_err().blame(), Blame::InvalidMessage);
    let software = ServerDescription::new(&"ü".repeat(200), vec![]).unwrap().software;
    assert_eq!(software.len(), MAX_SOFTWARE_LEN);
}

fn invalid<T: std::fmt::Debug>(result: Result<T>) {
    let error = result.unwrap_err();
    assert_eq!(error.blame(), Blame::InvalidMessage, "{error}");
}

#[test]
fn what_is_fetched_and_described_by_no_valid_messages() {
    let fetch = proto::FetchRequest {
        table_id: vec![1; 16],
        epoch: 0,
        parameter_digest: vec![1; 32],
        part: 2,
        offset: 0,
        len: 0,
    };
    FetchRequest::try_from(fetch.clone()).unwrap();
    for part in [0, 6, -1, i32::MAX] {
        invalid(FetchRequest::try_from(proto::FetchRequest { part, ..fetch.clone() }));
    }
    // Any stretch is a valid request, even if its end overflows: it ends with the part.
    for (offset, len) in [(0, u64::MAX), (u64::MAX, u64::MAX), (u64::MAX, 0)] {
        let request =
            FetchRequest::try_from(proto::FetchRequest { offset, len, ..fetch.clone() }).unwrap();
        assert_eq!((request.offset, request.len), (offset, len));
    }
    for len in [0, 15, 17] {
        invalid(FetchRequest::try_from(proto::FetchRequest {
            table_id: vec![1; len],
            ..fetch.clone()
        }));
    }
    invalid(FetchRequest::try_from(proto::FetchRequest { parameter_digest: vec![1; 33], ..fetch }));

    invalid(FetchChunk::try_from(proto::FetchChunk { offset: 0, data: Default::default() }));
    invalid(FetchChunk::try_from(proto::FetchChunk {
        offset: 0,
        data: vec![0; FETCH_CHUNK_LEN + 1].into(),
    }));
    invalid(FetchChunk::try_from(proto::FetchChunk { offset: u64::MAX, data: vec![0].into() }));
    invalid(DescribeRequest::try_from(proto::DescribeRequest { protocol_version: 0 }));
}

/// What a request and its response refuse, for both pairs.
macro_rules! refused_in_pair {
    ($Request:ident { $asked:ident } => $Response:ident { $replied:ident }) => {
        let request = proto::$Request {
            table_id: vec![1; 16],
            epoch: 1,
            parameter_digest: vec![1; 32],
            role: 255,
            $asked: vec![1].into(),
        };
        for role in [256, u32::MAX] {
            invalid($Request::try_from(proto::$Request { role, ..request.clone() }));
        }
        for len in [0, 15, 17] {
            let table_id = vec![1; len];
            invalid($Request::try_from(proto::$Request { table_id, ..request.clone() }));
        }
        for len in [0, 31, 33] {
            let parameter_digest = vec![1; len];
            invalid($Request::try_from(proto::$Request { parameter_digest, ..request.clone() }));
        }
        let request = $Request::try_from(request).unwrap();

        let response = proto::$Response {
            table_id: vec![1; 16],
            epoch: 1,
            parameter_digest: vec![1; 32],
            $replied: vec![1].into(),
        };
        for len in [0, 15, 17] {
            let table_id = vec![1; len];
            invalid($Response::try_from(proto::$Response { table_id, ..response.clone() }));
        }
        for len in [0, 31, 33] {
            let parameter_digest = vec![1; len];
            invalid($Response::try_from(proto::$Response { parameter_digest, ..response.clone() }));
        }
        let response = $Response::try_from(response).unwrap();

        response.check_belongs_to(&request).unwrap();
        for other in [
            $Response { table: TableId([2; 16]), ..response.clone() },
            $Response { epoch: Epoch(2), ..response.clone() },
            $Response { parameter_digest: [2; 32], ..response.clone() },
        ] {
            let error = other.check_belongs_to(&request).unwrap_err();
            assert_eq!(error.blame(), Blame::PeerMisbehaved);
        }
    };
}

#[test]
fn queries_and_answers_that_are_no_valid_ones_or_do_not_belong_together() {
    refused_in_pair!(AnswerRequest { query } => AnswerResponse { answer });
}

#[test]
fn requests_for_hints_and_replies_that_are_no_valid_ones_or_do_not_belong_together() {
    refused_in_pair!(PrepareRequest { request } => PrepareResponse { reply });
}

#[test]
fn a_scheme_whose_hints_are_asked_for_announces_nothing_to_fetch_and_one_with_an_order_of_its_own_all_of_it()
 {
    let identity = identity(1000, 20);
    let asking = asking_plan(&identity, 16, 4000);
    assert_eq!(SchemeDescription::new(asking.clone(), &identity, None).unwrap().hint_kind(), None);
    let len = identity.shape.bytes();
    let shuffled = SchemePlan { offline: OfflinePhase::StreamArranged { len }, ..asking.clone() };
    let whole = SchemeDescription::new(
        shuffled.clone(),
        &identity,
        Some(PartDescription::new(len, [1; 32])),
    );
    assert_eq!(whole.unwrap().hint_kind(), Some(crate::PartKind::Hint));

    let part = |len| Some(PartDescription::new(len, [1; 32]));
    for (plan, hint) in [
        (&asking, part(0)),
        (&asking, part(40_000)),
        (&shuffled, None),
        (&shuffled, part(len - 1)),
        (&shuffled, part(len + 1)),
    ] {
        let error = SchemeDescription::new(plan.clone(), &identity, hint).unwrap_err();
        assert_eq!(error.blame(), Blame::PeerMisbehaved, "{error}");
    }
}

/// Decodes and validates `bytes` as every kind of message. Returns for how many kinds they are
/// valid.
fn read_as_everything(bytes: &[u8]) -> usize {
    fn valid<P: Message + Default, T: TryFrom<P>>(bytes: &[u8]) -> usize {
        P::decode(bytes).ok().and_then(|message| T::try_from(message).ok()).map_or(0, |_| 1)
    }
    valid::<proto::DescribeRequest, DescribeRequest>(bytes)
        + valid::<proto::DescribeResponse, ServerDescription>(bytes)
        + valid::<proto::FetchRequest, FetchRequest>(bytes)
        + valid::<proto::FetchChunk, FetchChunk>(bytes)
        + valid::<proto::AnswerRequest, AnswerRequest>(bytes)
        + valid::<proto::AnswerResponse, AnswerResponse>(bytes)
        + valid::<proto::PrepareRequest, PrepareRequest>(bytes)
        + valid::<proto::PrepareResponse, PrepareResponse>(bytes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read_as_everything(&bytes);
    }

    #[test]
    fn damaged_descriptions_never_panic(at in any::<prop::sample::Index>(), byte: u8, cut in any::<prop::sample::Index>()) {
        let mut bytes = announced().encode_to_vec();
        prop_assert!(read_as_everything(&bytes) >= 1);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        read_as_everything(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        read_as_everything(&bytes);
    }
}
