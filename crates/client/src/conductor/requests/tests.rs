use super::*;
use crate::session::tests::peer::Peer;
use crate::session::tests::together::queries;
use privet_core::{Epoch, TableId};
use privet_schemes::SchemeId;
use privet_wire::DescribeRequest;

fn response(answer: &[u8]) -> AnswerResponse {
    AnswerResponse {
        table: TableId([1; 16]),
        epoch: Epoch(2),
        parameter_digest: [3; 32],
        answer: answer.to_vec().into(),
    }
}

fn alone(answer: &[u8]) -> (Response, u64) {
    let len = message_len(&proto::AnswerResponse::from(response(answer)));
    (Response::Answered(response(answer)), len)
}

fn parts(answer: &[u8], count: usize) -> Vec<(Response, u64)> {
    let parts = parted(response(answer), alone(answer).1, count);
    parts.into_iter().map(Result::unwrap).collect()
}

/// A request goes on as long as one of its queries is waited for.
#[test]
fn a_request_ends_with_the_last_of_its_queries() {
    let mut peer = Peer::keyed_by(SchemeId::SimplePir, 40);
    peer.description.max_queries = 3;
    let (mut requests, mut out) = (Requests::default(), VecDeque::new());
    requests.limits.queries = 5;
    let mut send = |requests: &mut Requests, number, request| {
        let (exchange, phase) = (ExchangeId(number), Phase::Lookup);
        requests.send(exchange, 0, request, Duration::ZERO, phase, &mut out);
        std::mem::take(&mut out)
    };
    let left = send(&mut requests, 9, Request::Describe(DescribeRequest::default()));
    assert_eq!(left.len(), 1);
    let described = Response::Described(peer.description.clone());
    assert!(requests.delivered(ExchangeId(9), Ok((described, 1))).is_some());
    let mut queries = queries(|| Peer::indexed_by(SchemeId::Dpf, 200, 12, 1));
    queries.retain(|query| query.role.0 == 0);
    let lens: Vec<_> = (0..)
        .zip(queries)
        .map(|(number, query)| send(&mut requests, number, Request::Answer(query)).len())
        .collect();
    assert_eq!(lens, [0, 0, 1]);
    let mut out = VecDeque::new();
    for (number, ended) in [(0, false), (2, false), (2, false), (1, true)] {
        requests.abandon(ExchangeId(number), &mut out);
        assert_eq!(!out.is_empty(), ended, "{number}");
    }
    assert!(matches!(out[0], Errand::Abandon(ExchangeId(0))));
    assert!(requests.delivered(ExchangeId(0), Ok((Response::End, 1))).is_none());
}

#[test]
fn answers_that_come_together_are_parted_in_their_order_and_measured_each() {
    for (count, expected) in
        [(1, vec![&b"abcdef"[..]]), (2, vec![b"abc", b"def"]), (3, vec![b"ab", b"cd", b"ef"])]
    {
        assert_eq!(parts(b"abcdef", count), expected.into_iter().map(alone).collect::<Vec<_>>());
    }
}

/// A server may send anything. No part of such a response has the length that an answer must
/// have, so each query learns that it has no answer.
#[test]
fn a_response_that_cannot_be_parted_equally_is_no_answer_to_any_query() {
    for len in [1, 2, 4, 5, 7, 8] {
        assert_eq!(parts(&vec![9; len], 3), vec![alone(&vec![9; len]); 3]);
    }
    assert_eq!(parts(b"", 3).len(), 3);
}
