//! Every valid value survives the wire.

use super::*;
use crate::limits::{FETCH_CHUNK_LEN, MAX_QUERIES};
use crate::prost::Message;
use crate::{
    AnswerRequest, AnswerResponse, DescribeRequest, FetchChunk, FetchRequest, PartKind,
    PrepareRequest, PrepareResponse, StatusCode, WireStatus,
};
use bytes::Bytes;
use privet_core::{Blame, Error};
use proptest::prelude::*;

fn bytes(max: usize) -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..max).prop_map(Bytes::from)
}

fn through<P: Message + Default>(message: P) -> P {
    P::decode(message.encode_to_vec().as_slice()).unwrap()
}

proptest! {
    #[test]
    fn fetch(
        id: [u8; 16], epoch: u64, digest: [u8; 32], offset: u64, len: u64,
        part in prop::sample::select(vec![PartKind::Layout, PartKind::Hint, PartKind::Table, PartKind::Updates, PartKind::Lineage]),
        data in bytes(2000).prop_filter("not empty", |data| !data.is_empty()),
    ) {
        let request = FetchRequest { table: TableId(id), epoch: Epoch(epoch), parameter_digest: digest, part, offset, len };
        prop_assert_eq!(FetchRequest::try_from(through(proto::FetchRequest::from(request))).unwrap(), request);
        let chunk = FetchChunk { offset: offset / 2, data };
        prop_assert_eq!(FetchChunk::try_from(through(proto::FetchChunk::from(chunk.clone()))).unwrap(), chunk);
    }

    #[test]
    fn answer(id: [u8; 16], epoch: u64, digest: [u8; 32], role: u8, body in bytes(2000)) {
        let request = AnswerRequest {
            table: TableId(id), epoch: Epoch(epoch), parameter_digest: digest, role: Role(role), query: body.clone(),
        };
        prop_assert_eq!(&AnswerRequest::try_from(through(proto::AnswerRequest::from(request.clone()))).unwrap(), &request);
        let response = AnswerResponse { table: TableId(id), epoch: Epoch(epoch), parameter_digest: digest, answer: body };
        prop_assert_eq!(&AnswerResponse::try_from(through(proto::AnswerResponse::from(response.clone()))).unwrap(), &response);
        response.check_belongs_to(&request).unwrap();
    }

    #[test]
    fn prepare(id: [u8; 16], epoch: u64, digest: [u8; 32], role: u8, body in bytes(2000)) {
        let request = PrepareRequest {
            table: TableId(id), epoch: Epoch(epoch), parameter_digest: digest, role: Role(role), request: body.clone(),
        };
        prop_assert_eq!(&PrepareRequest::try_from(through(proto::PrepareRequest::from(request.clone()))).unwrap(), &request);
        let response = PrepareResponse { table: TableId(id), epoch: Epoch(epoch), parameter_digest: digest, reply: body };
        prop_assert_eq!(&PrepareResponse::try_from(through(proto::PrepareResponse::from(response.clone()))).unwrap(), &response);
        response.check_belongs_to(&request).unwrap();
    }

    #[test]
    fn description_of_any_table(
        id: [u8; 16], epoch: u64, digest: [u8; 32], layout: [u8; 32],
        records in 1u64..5000, record_len in 1u64..300, per_column in any::<prop::sample::Index>(),
        name in "[A-Za-z0-9._-]{1,64}", software in "[ -~]{0,128}", max_queries in 1..=MAX_QUERIES,
    ) {
        let shape = TableShape::new(records, record_len).unwrap();
        let identity = TableIdentity { id: TableId(id), epoch: Epoch(epoch), digest: TableDigest(digest), shape };
        let per_column = per_column.index(records as usize) as u64 + 1;
        let covered = |id: &SchemeId| match *id {
            SchemeId::DoublePir => record_len <= 64,
            SchemeId::SimplePirPacked => per_column * record_len <= 1 << 20,
            _ => true,
        };
        let in_columns = |id| {
            matches!(id, SchemeId::SimplePir | SchemeId::SimplePirPacked | SchemeId::DoublePir)
        };
        let parameter = |id| if in_columns(id) { per_column } else { 16 };
        let schemes = privet_laboratory::all().filter(covered).map(|id| described_as(id, &identity, parameter(id))).collect();
        let mut table = TableDescription::new(&name, identity, PartDescription::new(records, layout), schemes).unwrap();
        table.layout_bytes = (epoch % 2 == 0).then(|| id.to_vec());
        let mut description = ServerDescription::new(&software, vec![table]).unwrap();
        description.max_queries = max_queries;
        let received = through(proto::DescribeResponse::from(description.clone()));
        prop_assert_eq!(ServerDescription::try_from(received).unwrap(), description);
    }

    #[test]
    fn status_with_any_text(code in 0i32..17, message in any::<String>()) {
        let status = WireStatus::new(StatusCode::from_number(code), &message);
        prop_assert_eq!(status.code.number(), code);
        prop_assert!(!status.message.chars().any(char::is_control));
        prop_assert!(status.message.chars().count() <= crate::status::MAX_STATUS_MESSAGE_LEN);
        let again = WireStatus::new(status.code, &status.message);
        prop_assert_eq!(again, status);
    }
}

#[test]
fn describe_request() {
    let request = DescribeRequest::default();
    assert_eq!(
        DescribeRequest::try_from(through(proto::DescribeRequest::from(request))).unwrap(),
        request
    );
}

#[test]
fn what_is_received_first_is_named_by_the_kind_of_scheme() {
    let identity = identity(1000, 20);
    let kinds =
        privet_laboratory::all().map(|id| (id, described_as(id, &identity, 16).hint_kind()));
    assert_eq!(
        kinds.collect::<Vec<_>>(),
        [
            (SchemeId::SimplePir, Some(PartKind::Hint)),
            (SchemeId::SimplePirPacked, Some(PartKind::Hint)),
            (SchemeId::DoublePir, Some(PartKind::Hint)),
            (SchemeId::Dpf, None),
            (SchemeId::DummySubsets, Some(PartKind::Table)),
            (SchemeId::DummySubsetsTwo, None),
            (SchemeId::Harmony, Some(PartKind::Table)),
            (SchemeId::Piano, Some(PartKind::Hint)),
            (SchemeId::PianoAllParities, Some(PartKind::Hint)),
            (SchemeId::SinglePass, None),
            (SchemeId::TapirMerkle, Some(PartKind::Table)),
            (SchemeId::ApirDpf, None),
            (SchemeId::ApirMatrix, Some(PartKind::Hint)),
            (SchemeId::Download, Some(PartKind::Table)),
            (privet_laboratory::TAPIR_PP, Some(PartKind::Hint)),
            (privet_laboratory::FINITE_DIFFERENCES, None),
            (privet_laboratory::FINITE_DIFFERENCES_MANY, None),
        ]
    );
    // For all schemes whose clients receive the table, in whatever order, that is all of its
    // records and nothing else.
    let streamed = [
        SchemeId::DummySubsets,
        SchemeId::Harmony,
        SchemeId::Piano,
        SchemeId::PianoAllParities,
        SchemeId::TapirMerkle,
        SchemeId::Download,
    ];
    for id in streamed {
        assert_eq!(described_as(id, &identity, 16).hint.unwrap().len, identity.shape.bytes());
    }
}

#[test]
fn the_longest_chunk() {
    let chunk = FetchChunk { offset: 5, data: vec![1; FETCH_CHUNK_LEN].into() };
    assert_eq!(FetchChunk::try_from(proto::FetchChunk::from(chunk.clone())).unwrap(), chunk);
}

#[test]
fn every_blame_survives_the_journey_and_no_cause_goes_along() {
    let blames = [
        Blame::ApiMisuse,
        Blame::InvalidMessage,
        Blame::PeerMisbehaved,
        Blame::Integrity,
        Blame::Exhausted,
        Blame::Corrupted,
        Blame::Unavailable,
    ];
    for blame in blames {
        let sent = Error::new(blame, "what happened").caused_by("/secret/path");
        let received = Error::from(WireStatus::from(&sent));
        assert_eq!((received.blame(), received.message()), (blame, "what happened"));
        assert!(std::error::Error::source(&received).is_none());
    }
    let internal = Error::from(WireStatus::from(&Error::internal("what happened")));
    assert_eq!(internal.blame(), Blame::Unavailable, "it is worth another attempt");
    let nameless = Error::from(WireStatus::new(StatusCode::Internal, ""));
    assert_eq!(nameless.message(), "INTERNAL");
}

#[cfg(feature = "grpc")]
#[test]
fn statuses_are_the_ones_of_tonic() {
    for number in 0..17 {
        let code = StatusCode::from_number(number);
        let status = tonic::Status::from(WireStatus::new(code, "text"));
        assert_eq!(status.code() as i32, number);
        assert_eq!(WireStatus::from(&status), WireStatus::new(code, "text"));
    }
    assert_eq!(StatusCode::from_number(17), StatusCode::Unknown);
    assert_eq!(StatusCode::from_number(-1), StatusCode::Unknown);
}

#[test]
fn nothing_of_what_is_asked_or_answered_is_printed() {
    let (table, epoch, parameter_digest, role) = (TableId([1; 16]), Epoch(1), [2; 32], Role(0));
    let body = || Bytes::from(vec![0xee; 40]);
    let query = AnswerRequest { table, epoch, parameter_digest, role, query: body() };
    let answer = AnswerResponse { table, epoch, parameter_digest, answer: body() };
    let request = PrepareRequest { table, epoch, parameter_digest, role, request: body() };
    let reply = PrepareResponse { table, epoch, parameter_digest, reply: body() };
    for (name, text) in [
        ("query", format!("{query:?}")),
        ("answer", format!("{answer:?}")),
        ("request", format!("{request:?}")),
        ("reply", format!("{reply:?}")),
    ] {
        assert!(text.contains(&format!("{name}_len: 40")), "{text}");
        assert!(!text.contains("238") && !text.contains("ee"), "{text}");
    }
}
