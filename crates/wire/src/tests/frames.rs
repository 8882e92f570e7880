//! Frames of gRPC-Web: framed messages are read again from pieces of any length, and nothing else
//! is accepted.

use crate::frames::{FRAME_HEADER_LEN, Frame, Frames, MAX_TRAILERS_LEN, frame};
use crate::prost::Message;
use crate::status::{MAX_STATUS_MESSAGE_LEN, StatusCode, WireStatus};
use crate::{AnswerRequest, proto};
use privet_core::{Blame, Epoch, Result, TableId};
use privet_schemes::contract::Role;
use proptest::prelude::*;

fn framed(flag: u8, contents: &[u8]) -> Vec<u8> {
    [&[flag][..], &(contents.len() as u32).to_be_bytes(), contents].concat()
}

/// All frames of a body that arrives in pieces of `piece` bytes.
fn read(body: &[u8], limit: usize, piece: usize) -> Result<Vec<Frame>> {
    let (mut frames, mut found) = (Frames::new(limit), Vec::new());
    for mut bytes in body.chunks(piece) {
        while let Some(frame) = frames.next(&mut bytes)? {
            found.push(frame);
        }
        assert!(bytes.is_empty(), "what is left would be lost");
    }
    frames.finish()?;
    Ok(found)
}

fn refusal(body: &[u8], limit: usize) -> privet_core::Error {
    let whole = read(body, limit, usize::MAX).unwrap_err();
    let in_bytes = read(body, limit, 1).unwrap_err();
    assert_eq!(whole.message(), in_bytes.message());
    whole
}

#[test]
fn known_answers() {
    let request = AnswerRequest {
        table: TableId([1; 16]),
        epoch: Epoch(0),
        parameter_digest: [2; 32],
        role: Role(0),
        query: vec![9; 3].into(),
    };
    let message = proto::AnswerRequest::from(request);
    let bytes = frame(&message.encode_to_vec());
    assert_eq!(bytes[..FRAME_HEADER_LEN], [0, 0, 0, 0, message.encoded_len() as u8]);
    assert_eq!(proto::AnswerRequest::decode(&bytes[FRAME_HEADER_LEN..]).unwrap(), message);

    // As a server of gRPC-Web writes it.
    let body = b"\x00\x00\x00\x00\x02hi\x80\x00\x00\x00\x0fgrpc-status:0\r\n";
    let ok = WireStatus::new(StatusCode::Ok, "");
    let expected = [Frame::Message(b"hi".to_vec()), Frame::Trailers(ok)];
    assert_eq!(read(body, 2, usize::MAX).unwrap(), expected);
}

#[test]
fn a_status_is_read_in_any_spelling() {
    let status = |text: &str| match &read(&framed(0x80, text.as_bytes()), 0, 3).unwrap()[..] {
        [Frame::Trailers(status)] => (status.code, status.message.clone()),
        other => panic!("{other:?}"),
    };
    let unknown = |message: &str| (StatusCode::Unknown, message.to_owned());
    assert_eq!(
        status("x-more: 1\r\nGrpc-Status: 14\r\ngrpc-message: too%20busy%3A 100%\r\n"),
        (StatusCode::Unavailable, "too busy: 100%".to_owned())
    );
    assert_eq!(status("grpc-status:99\r\n"), unknown(""));
    assert_eq!(status("grpc-status:five\r\n"), unknown(""));
    assert_eq!(status(""), unknown("the response has no status"));
    // Control characters for a terminal or a page are removed, and the message is cut off.
    let long = format!("grpc-status:5\r\ngrpc-message:%1b[2J%ff{}", "a".repeat(5000));
    let (code, message) = status(&long);
    assert_eq!(code, StatusCode::NotFound);
    assert!(!message.contains('\u{1b}') && message.chars().count() <= MAX_STATUS_MESSAGE_LEN);
    assert_eq!(WireStatus::from_headers(None, Some("no status")), None);
}

#[test]
fn what_is_no_response_is_refused() {
    let end = framed(0x80, b"grpc-status:0");
    for flag in [1, 2, 0x7f, 0x81, 0xff, b'<'] {
        let error = refusal(&framed(flag, b"x"), 10);
        assert_eq!(error.blame(), Blame::InvalidMessage, "flag {flag}");
    }
    let error = refusal(&framed(0, &[0; 11]), 10);
    assert!(error.message().contains("11 bytes, and at most 10"), "{error}");
    refusal(&framed(0x80, &[b'a'; MAX_TRAILERS_LEN + 1]), usize::MAX);
    refusal(&[0, 0xff, 0xff, 0xff, 0xfb], usize::MAX);
    refusal(&[&end[..], b"x"].concat(), 10);
    for cut in 0..end.len() {
        assert_eq!(refusal_of_cut(&end[..cut]).blame(), Blame::Unavailable, "{cut}");
    }
    // Every later call fails in the same way.
    let mut frames = Frames::new(10);
    let first = frames.next(&mut &[9; 5][..]).unwrap_err();
    let second = frames.next(&mut &end[..]).unwrap_err();
    assert_eq!(first.message(), second.message());
    assert_eq!(frames.finish().unwrap_err().message(), first.message());
}

fn refusal_of_cut(body: &[u8]) -> privet_core::Error {
    read(body, 10, 4).unwrap_err()
}

#[test]
fn a_length_that_is_claimed_takes_no_memory() {
    let mut frames = Frames::new(usize::MAX);
    assert_eq!(frames.next(&mut &[0, 0xff, 0xff, 0xff, 0xfa, 1, 2][..]).unwrap(), None);
    assert!(format!("{frames:?}").len() < 200, "it keeps what has arrived");
}

proptest! {
    #[test]
    fn what_was_framed_is_read_again(
        messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..50), 0..6),
        message in "[ -~é%\u{0}-\u{1f}]{0,40}",
        piece in 1usize..70,
    ) {
        let escaped: String = message.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let trailers = format!("grpc-status:8\r\ngrpc-message:{escaped}\r\n");
        let mut body: Vec<u8> = messages.iter().flat_map(|bytes| framed(0, bytes)).collect();
        body.extend(framed(0x80, trailers.as_bytes()));
        let mut expected: Vec<Frame> = messages.into_iter().map(Frame::Message).collect();
        expected.push(Frame::Trailers(WireStatus::new(StatusCode::ResourceExhausted, &message)));
        prop_assert_eq!(read(&body, 50, piece).unwrap(), expected);
    }

    #[test]
    fn any_bytes_are_refused_or_read(
        body in proptest::collection::vec(any::<u8>(), 0..100),
        piece in 1usize..20,
    ) {
        let _ = read(&body, 64, piece);
        let _ = read(&framed(0x80, &body), 64, piece);
    }
}
