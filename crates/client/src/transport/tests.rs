use super::*;
use privet_core::{Epoch, TableId};

fn response(answer: &[u8]) -> AnswerResponse {
    AnswerResponse {
        table: TableId([1; 16]),
        epoch: Epoch(2),
        parameter_digest: [3; 32],
        answer: answer.to_vec().into(),
    }
}

fn parts(answer: &[u8], count: usize) -> Vec<(Response, u64)> {
    let (message, len) = measured(proto::AnswerResponse::from(response(answer)));
    parted(AnswerResponse::try_from(message).unwrap(), len, count).collect()
}

#[test]
fn answers_that_come_together_are_parted_in_their_order_and_measured_each() {
    for (count, expected) in
        [(1, vec![&b"abcdef"[..]]), (2, vec![b"abc", b"def"]), (3, vec![b"ab", b"cd", b"ef"])]
    {
        let alone = |answer| {
            let (_, len) = measured(proto::AnswerResponse::from(response(answer)));
            (Response::Answered(response(answer)), len)
        };
        let expected: Vec<_> = expected.into_iter().map(alone).collect();
        assert_eq!(parts(b"abcdef", count), expected);
    }
}

/// A server may send anything. No part of such a response has the length that an answer must have,
/// so each query learns that it has no answer.
#[test]
fn a_response_that_cannot_be_parted_equally_is_no_answer_to_any_query() {
    for len in [1, 2, 4, 5, 7, 8] {
        let answer = vec![9; len];
        let parts = parts(&answer, 3);
        assert_eq!(parts.len(), 3);
        for (part, _) in parts {
            assert_eq!(part, Response::Answered(response(&answer)));
        }
    }
    assert_eq!(parts(b"", 3).len(), 3);
}

/// A gateway in front of a server refuses a client: nobody here has misused anything, and the
/// server is not there to be taken for another program.
#[tokio::test]
async fn who_is_refused_hears_whom_to_ask() {
    let transport = Transport::new("http://127.0.0.1:7700", None).unwrap();
    for code in [tonic::Code::PermissionDenied, tonic::Code::Unauthenticated] {
        let status = tonic::Status::new(code, "RBAC: access denied");
        for error in [transport.failure(&status), transport.no_description(&status)] {
            assert_eq!(error.blame(), Blame::PeerMisbehaved);
            assert_eq!(error.reason(), Some(Reason::NotAdmitted));
            let said = "http://127.0.0.1:7700: something in front of the server does not let this";
            assert!(error.message().starts_with(said), "{error}");
            assert!(error.message().contains("(RBAC: access denied); ask whoever"), "{error}");
        }
    }
}
