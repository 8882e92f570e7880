//! Requests that come piece by piece, or never end.

use super::*;
use http::HeaderMap;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use privet_wire::prost::Message;
use std::future::poll_fn;
use std::pin::Pin;
use tokio::sync::mpsc::UnboundedSender;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tower::Service;

/// A request for hints that the test sends piece by piece.
struct Arriving {
    /// Dropping it ends the request.
    pieces: UnboundedSender<Result<Frame<Bytes>, Status>>,
    response: Pin<Box<dyn Future<Output = http::Response<Body>> + Send>>,
}

impl Arriving {
    /// One that has begun: admission has seen its headers.
    async fn at(world: &World) -> Self {
        let (pieces, body) = async_mpsc::unbounded_channel();
        let request = http::Request::post("http://test/privet.v1.Privet/Prepare")
            .header("content-type", "application/grpc")
            .body(Body::new(StreamBody::new(UnboundedReceiverStream::new(body))))
            .unwrap();
        let answering = world.service.clone().call(request);
        let response = Box::pin(async move { answering.await.unwrap() });
        let mut arriving = Self { pieces, response };
        arriving.goes_on().await;
        arriving
    }

    /// Waits until the sent pieces are read, and checks that there is no response yet.
    async fn goes_on(&mut self) {
        let polled = poll_fn(|context| Poll::Ready(self.response.as_mut().poll(context))).await;
        assert!(polled.is_pending());
    }

    fn send(&self, piece: &[u8]) {
        self.pieces.send(Ok(Frame::data(Bytes::copy_from_slice(piece)))).unwrap();
    }

    /// Ends the request. Returns the status of the response, and how many bytes it has.
    async fn end(self) -> (Code, usize) {
        let Self { pieces, response } = self;
        drop(pieces);
        read(soon(response).await).await
    }
}

async fn soon<T>(happens: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), happens).await.expect("not within a minute")
}

async fn read(response: http::Response<Body>) -> (Code, usize) {
    let status = |headers: &HeaderMap| {
        headers.get("grpc-status").map(|status| Code::from_bytes(status.as_bytes()))
    };
    let early = status(response.headers());
    let body = response.into_body().collect().await.unwrap();
    let late = body.trailers().and_then(status);
    (early.or(late).unwrap(), body.to_bytes().len())
}

/// A message in its frame.
fn framed(message: PrepareRequest) -> Vec<u8> {
    let message = proto::PrepareRequest::from(message).encode_to_vec();
    [&[0], &(message.len() as u32).to_be_bytes()[..], &message].concat()
}

#[tokio::test]
async fn requests_that_do_not_arrive_keep_nobody_from_hints() {
    let world = World::new(plan(), false, 2, 1);
    let whole = framed(world.request(&[1, 2, 3, 4]));
    let mut open = Vec::new();
    for sent in [0, 3, 5, 20, whole.len() - 1, whole.len()] {
        let mut arriving = Arriving::at(&world).await;
        arriving.send(&whole[..sent]);
        arriving.goes_on().await;
        open.push((sent, arriving));
    }
    for _ in 0..3 {
        assert_eq!(world.ask(world.request(&[5, 6, 7, 8])).await.unwrap(), [8, 7, 6, 5]);
    }
    // A client that is only slow is served.
    for (sent, arriving) in open {
        arriving.send(&whole[sent..]);
        let (code, len) = arriving.end().await;
        assert_eq!(code, Code::Ok, "after {sent} bytes");
        assert!(len > REQUEST_LEN);
    }
    assert_eq!(world.scheme.seen().len(), 9);
}

#[tokio::test]
async fn a_request_has_one_deadline_to_arrive_and_another_one_from_then_on() {
    let limits = Limits { body_deadline: Duration::from_secs(1), ..preparations(100) };
    let mut world = World::limited(plan(), true, limits, 1);
    let asking = world.asking(1);
    world.gate.began.recv().await.unwrap();
    // This one comes later and is given up; the one that is computed is not.
    let idle = Arriving::at(&world).await;
    assert_eq!(read(soon(idle.response).await).await.0, Code::DeadlineExceeded);
    assert!(!asking.is_finished());
    world.gate.open.send(()).unwrap();
    assert_eq!(asking.await.unwrap().unwrap(), [1; REQUEST_LEN]);

    let preparation_deadline = Duration::from_millis(50);
    let limits = Limits { preparation_deadline, ..preparations(100) };
    let mut world = World::limited(plan(), true, limits, 1);
    let late = soon(world.asking(1)).await;
    assert_eq!(late.unwrap().unwrap_err().code(), Code::DeadlineExceeded);
    world.gate.began.recv().await.unwrap();
    world.gate.open.send(()).unwrap();
}

#[tokio::test]
async fn what_arrives_when_all_places_are_taken_is_refused_however_it_ends() {
    let mut world = World::new(plan(), true, 1, 1);
    let whole = framed(world.request(&[9; REQUEST_LEN]));
    let ended = Arriving::at(&world).await;
    let with_trailers = Arriving::at(&world).await;
    let cancelled = Arriving::at(&world).await;
    let asking = world.asking(1);
    world.gate.began.recv().await.unwrap();

    for arriving in [&ended, &with_trailers, &cancelled] {
        arriving.send(&whole);
    }
    with_trailers.pieces.send(Ok(Frame::trailers(HeaderMap::new()))).unwrap();
    cancelled.pieces.send(Err(Status::cancelled("by the client"))).unwrap();
    for arriving in [ended, with_trailers, cancelled] {
        assert_eq!(arriving.end().await, (Code::ResourceExhausted, 0));
    }
    assert!(world.shows("privet_shed_total{what=\"preparations\",why=\"total\"} 3"));

    // A request that begins now is not even read.
    let read_before = world.metrics.body_bytes("Prepare").0.get();
    let refused = world.ask(world.request(&[9; REQUEST_LEN])).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert_eq!(world.metrics.body_bytes("Prepare").0.get(), read_before);

    world.gate.open.send(()).unwrap();
    assert_eq!(asking.await.unwrap().unwrap(), [1; REQUEST_LEN]);
    assert_eq!(world.scheme.seen(), [[1; REQUEST_LEN]]);
}

#[tokio::test]
async fn a_request_counts_among_the_bodies_until_it_has_arrived_and_no_longer() {
    let limits = Limits { bodies: all_for_one(1), ..preparations(100) };
    let mut world = World::limited(plan(), true, limits, 1);
    let query = proto::AnswerRequest::from(AnswerRequest {
        table: identity().id,
        epoch: identity().epoch,
        parameter_digest: world.digest,
        role: Role(0),
        query: vec![7; 6].into(),
    });
    let mut client = world.client.clone();
    let mut arriving = Arriving::at(&world).await;
    let refused = client.answer(query.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("1 requests are under way"), "{refused}");

    arriving.send(&framed(world.request(&[1; REQUEST_LEN])));
    let ending = tokio::spawn({
        arriving.goes_on().await;
        arriving.end()
    });
    world.gate.began.recv().await.unwrap();
    // Computing; its place among the bodies is free.
    let answered = async {
        while client.answer(query.clone()).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    soon(answered).await;
    world.gate.open.send(()).unwrap();
    assert_eq!(ending.await.unwrap().0, Code::Ok);
}
