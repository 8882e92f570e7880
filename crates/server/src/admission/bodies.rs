//! The bodies of requests and responses, with what is counted on their way.

use super::places::{AdmissionPlace, Pool};
use super::{RequestOutcome, status_in};
use crate::connections::Allowance;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use prometheus_client::metrics::counter::Counter;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tonic::Status;
use tonic::body::Body;

/// What the transport gets at a time, in bytes: no more than it may send at once.
const PIECE_LEN: usize = 1 << 16;

/// A request's body: counts bytes, and gives the request its place among those of its method when
/// all of it has arrived. If there is none, the body ends with the refusal, so the service never
/// sees the request.
pub(super) struct Received {
    pub(super) body: Body,
    pub(super) bytes: Counter,
    pub(super) allowance: Arc<Allowance>,
    pub(super) place: Arc<AdmissionPlace>,
    pub(super) pool: Pool,
}

impl HttpBody for Received {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
        if let Some(data) = data {
            self.bytes.inc_by(data.len() as u64);
            self.allowance.body(data.len());
            if !self.body.is_end_stream() {
                self.place.received(data.len());
                return Poll::Ready(frame);
            }
        }
        // Trailers also end a body, and so do errors: the reader may take a client's cancelling for
        // the end of a complete message.
        Poll::Ready(match self.place.advance(self.pool) {
            Ok(()) => frame,
            Err(refusal) => Some(Err(refusal.into())),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A response's body: cuts it into pieces, counts bytes, says whose turn it is, reads the status
/// from the trailers, and keeps the place until the response is sent.
pub(super) struct Sent {
    pub(super) body: Body,
    /// The rest of the data that the body gave last.
    pub(super) rest: Bytes,
    pub(super) bytes: Counter,
    pub(super) allowance: Arc<Allowance>,
    pub(super) place: Arc<AdmissionPlace>,
    pub(super) outcome: RequestOutcome,
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.rest.is_empty() {
            let frame = Pin::new(&mut self.body).poll_frame(context);
            self.place.waits_for_client(frame.is_ready());
            let frame = match ready!(frame) {
                Some(Ok(frame)) => frame,
                end => return Poll::Ready(end),
            };
            if let Some(trailers) = frame.trailers_ref() {
                self.outcome.status = status_in(trailers);
            }
            match frame.into_data() {
                Ok(data) => self.rest = data,
                Err(frame) => return Poll::Ready(Some(Ok(frame))),
            }
        }
        let len = self.rest.len().min(PIECE_LEN);
        let piece = self.rest.split_to(len);
        self.bytes.inc_by(len as u64);
        self.allowance.response(len);
        self.place.sent(len);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, body) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower().saturating_add(rest));
        if let Some(upper) = body.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}
