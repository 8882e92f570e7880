//! Limits are exactly what the longest valid message needs: not a byte less, and not a byte more.

use super::*;
use crate::limits::*;
use crate::prost::Message;

#[test]
fn the_longest_messages_have_exactly_the_length_of_their_limit() {
    // Lengths around the points at which the length prefix grows by a byte.
    for len in [1, 127, 128, 16383, 16384, (1 << 21) - 1, 1 << 21, 5_000_000] {
        let request = proto::AnswerRequest {
            table_id: vec![1; 16],
            epoch: u64::MAX,
            parameter_digest: vec![1; 32],
            role: u32::MAX,
            query: vec![1; len].into(),
        };
        assert_eq!(request.encoded_len(), answer_request_limit(len), "a query of {len} bytes");
        let response = proto::AnswerResponse {
            table_id: vec![1; 16],
            epoch: u64::MAX,
            parameter_digest: vec![1; 32],
            answer: vec![1; len].into(),
        };
        assert_eq!(response.encoded_len(), answer_response_limit(len), "an answer of {len} bytes");
        let request = proto::PrepareRequest {
            table_id: vec![1; 16],
            epoch: u64::MAX,
            parameter_digest: vec![1; 32],
            role: u32::MAX,
            request: vec![1; len].into(),
        };
        assert_eq!(request.encoded_len(), prepare_request_limit(len), "a request of {len} bytes");
        let response = proto::PrepareResponse {
            table_id: vec![1; 16],
            epoch: u64::MAX,
            parameter_digest: vec![1; 32],
            reply: vec![1; len].into(),
        };
        assert_eq!(response.encoded_len(), prepare_response_limit(len), "a reply of {len} bytes");
    }
    let request = proto::FetchRequest {
        table_id: vec![1; 16],
        epoch: u64::MAX,
        parameter_digest: vec![1; 32],
        part: 3,
        offset: u64::MAX,
        len: u64::MAX,
    };
    // The limit leaves room for five bytes of part number, of which the known parts need one.
    assert_eq!(request.encoded_len() + 4, FETCH_REQUEST_LIMIT);
    let unknown_part = proto::FetchRequest { part: i32::MAX, ..request };
    assert_eq!(unknown_part.encoded_len(), FETCH_REQUEST_LIMIT);
    let chunk = proto::FetchChunk { offset: u64::MAX, data: vec![1; FETCH_CHUNK_LEN].into() };
    assert_eq!(chunk.encoded_len(), FETCH_CHUNK_LIMIT);
    assert_eq!(
        proto::DescribeRequest { protocol_version: u32::MAX }.encoded_len(),
        DESCRIBE_REQUEST_LIMIT
    );
}

#[test]
fn the_longest_description_has_exactly_the_length_of_its_limit() {
    let part = proto::PartDescription { len: u64::MAX, digest: vec![1; 32] };
    let scheme = proto::Scheme {
        name: "n".repeat(MAX_NAME_LEN),
        parameters: vec![1; MAX_PARAMETERS_LEN],
        parameter_digest: vec![1; 32],
        hint: Some(part.clone()),
    };
    let alone = proto::Table {
        name: "n".repeat(MAX_NAME_LEN),
        table_id: vec![1; 16],
        epoch: u64::MAX,
        digest: vec![1; 32],
        records: u64::MAX,
        record_len: u64::MAX,
        layout: Some(part),
        schemes: vec![scheme; MAX_SCHEMES],
        updates: Some(proto::Updates {
            publisher: vec![1; 32],
            first_epoch: u64::MAX,
            next_key: Some(vec![1; 32]),
            lineage: Some(proto::PartDescription { len: u64::MAX, digest: vec![1; 32] }),
        }),
        earlier: Vec::new(),
        predecessors: Vec::new(),
        layout_bytes: Some(vec![1; MAX_TOLD_LAYOUT_LEN]),
    };
    let table = proto::Table { predecessors: vec![alone.clone(); MAX_EARLIER], ..alone };
    let response = proto::DescribeResponse {
        protocol_version: u32::MAX,
        software: "s".repeat(MAX_SOFTWARE_LEN),
        tables: vec![table; MAX_TABLES],
        max_queries: u32::MAX,
    };
    assert_eq!(response.encoded_len(), DESCRIBE_RESPONSE_LIMIT);
}

#[test]
fn as_many_queries_go_together_as_their_bytes_and_those_of_their_answers_allow() {
    let most = MAX_QUERIES as usize;
    for (query_len, answer_len, together) in [
        (0, 0, most),
        (1, 1, most),
        (4096, 32, most),
        (4097, 32, most - 1),
        (32, 4097, most - 1),
        (MAX_TOGETHER_LEN / 2, 1, 2),
        (MAX_TOGETHER_LEN / 2 + 1, 1, 1),
        (1, 3 * MAX_TOGETHER_LEN, 1),
        (usize::MAX, usize::MAX, 1),
    ] {
        assert_eq!(queries_together(query_len, answer_len), together, "{query_len}, {answer_len}");
    }
}

#[test]
fn one_limit_covers_the_messages_of_every_table_and_every_kind() {
    let identity = identity(5000, 100);
    let plans: Vec<SchemePlan> = [1, 50, 5000].map(|per_column| plan(&identity, per_column)).into();
    let together = |plan: &SchemePlan| {
        let query_len = plan.longest_query();
        query_len * queries_together(query_len, plan.answer_len)
    };
    let longest = plans.iter().map(together).max().unwrap();
    assert!((4 * 5000..=MAX_TOGETHER_LEN).contains(&longest), "{longest}");
    assert_eq!(request_limit(&plans), answer_request_limit(longest));
    assert_eq!(request_limit([]), FETCH_REQUEST_LIMIT);

    for plan in &plans {
        let request = crate::AnswerRequest {
            table: identity.id,
            epoch: Epoch(u64::MAX),
            parameter_digest: [255; 32],
            role: Role(255),
            query: vec![255; together(plan)].into(),
        };
        assert!(proto::AnswerRequest::from(request).encoded_len() <= request_limit(&plans));
    }
}

#[test]
fn requests_for_hints_and_replies_count_where_they_are_the_longest_messages() {
    let identity = identity(1000, 20);
    let [short, long] = [(16, 1000), (50_000, 30_000_000)]
        .map(|(request_len, reply_len)| asking_plan(&identity, request_len, reply_len));
    assert!(request_limit([&short]) < prepare_request_limit(50_000));
    assert_eq!(request_limit([&short]), request_limit([&plan(&identity, 7)]));
    for plans in [vec![&long], vec![&short, &long], vec![&long, &short]] {
        assert_eq!(request_limit(plans), prepare_request_limit(50_000));
    }
    // A plan like that of a scheme whose requests for hints are longer than any query.
    let plan = described_as(SchemeId::DummySubsetsTwo, &identity, 16).plan;
    let OfflinePhase::Ask { request_len, .. } = plan.offline else {
        panic!("nothing is asked for")
    };
    assert!(request_len > plan.longest_query() * MAX_QUERIES as usize);
    assert_eq!(request_limit([&plan]), prepare_request_limit(request_len));
}

#[test]
fn a_table_that_is_fetched_whole_has_no_queries_and_no_answers() {
    let plan = described_as(SchemeId::Download, &identity(5000, 100), 0).plan;
    assert_eq!((plan.longest_query(), plan.answer_len), (0, 0));
    // The remaining messages are those that every server exchanges. Nothing else is longer, and
    // none of them becomes shorter.
    assert_eq!(request_limit([&plan]), request_limit([]));
    assert!(answer_request_limit(0) <= FETCH_REQUEST_LIMIT);
    // Beside a scheme with requests for hints, those messages set the limit.
    let asked = self::plan(&identity(5000, 100), 50);
    assert_eq!(request_limit([&plan, &asked]), request_limit([&asked]));
    assert!(request_limit([&asked]) > request_limit([]));
}

#[test]
fn keys_of_two_servers_set_the_limit_of_their_messages() {
    let plan = described_as(SchemeId::Dpf, &identity(1 << 25, 32), 0).plan;
    assert_eq!((plan.servers, plan.longest_query(), plan.answer_len), (2, 339, 32));
    assert_eq!(request_limit([&plan]), answer_request_limit(64 * 339));
}

#[test]
fn parameters_and_number_of_all_schemes_fit() {
    let identity = identity(5000, 20);
    let descriptions: Vec<_> =
        privet_laboratory::all().map(|id| described_as(id, &identity, 16)).collect();
    assert!(descriptions.len() <= MAX_SCHEMES);
    for described in &descriptions {
        assert!(described.plan.parameters.len() <= MAX_PARAMETERS_LEN);
        assert!(described.plan.scheme.name().len() <= MAX_NAME_LEN);
    }
    let layout = PartDescription::new(1, [0; 32]);
    TableDescription::new("all", identity, layout, descriptions).unwrap();
}
