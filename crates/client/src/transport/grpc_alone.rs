//! A channel whose responses are gRPC's. Between client and server there may be others who speak
//! HTTP: a proxy that does not reach the server answers with a page, and so does a web server. Such
//! a page would be read as a broken message, and a server that restarts as one that misbehaves.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::header::{CONTENT_TYPE, HeaderMap, LOCATION};
use tonic::codegen::http::{Request, Response, StatusCode};
use tonic::transport::{Channel, Error};
use tonic::{Code, Status};

/// Turns responses of others into the status that says so.
#[derive(Clone)]
pub(super) struct GrpcAlone {
    channel: Channel,
    has_spoken: Arc<AtomicBool>,
}

impl GrpcAlone {
    /// Sets `has_spoken` once a response is gRPC's.
    pub(super) fn new(channel: Channel, has_spoken: Arc<AtomicBool>) -> Self {
        Self { channel, has_spoken }
    }
}

impl Service<Request<Body>> for GrpcAlone {
    type Response = Response<Body>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.channel.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (response, has_spoken) = (self.channel.call(request), Arc::clone(&self.has_spoken));
        Box::pin(async move {
            let response = response.await?;
            Ok(match status_of_another(response.status(), response.headers()) {
                None => {
                    has_spoken.store(true, Ordering::Relaxed);
                    response
                }
                Some(status) => status.into_http(),
            })
        })
    }
}

fn status_of_another(status: StatusCode, headers: &HeaderMap) -> Option<Status> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let is_grpc = text(CONTENT_TYPE).is_some_and(|kind| kind.starts_with("application/grpc"));
    if is_grpc || headers.contains_key("grpc-status") {
        return None;
    }
    let (code, what) = match status.as_u16() {
        408 | 429 | 500 | 502..=504 => {
            (Code::Unavailable, ", from something in front of it that does not reach it now".into())
        }
        401 | 403 | 407 => (Code::PermissionDenied, String::new()),
        301 | 302 | 303 | 307 | 308 => {
            let to = text(LOCATION).unwrap_or("nowhere");
            (Code::Unimplemented, format!(", which leads to {to}"))
        }
        _ => (Code::Unimplemented, ", and no gRPC".into()),
    };
    Some(Status::new(code, format!("HTTP status {status}{what}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(status: u16, headers: &[(&'static str, &str)]) -> Option<(Code, String)> {
        let headers =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let status = StatusCode::from_u16(status).unwrap();
        let told = status_of_another(status, &headers.collect())?;
        Some((told.code(), told.message().to_owned()))
    }

    #[test]
    fn pages_are_told_from_answers() {
        assert_eq!(told(200, &[("content-type", "application/grpc")]), None);
        assert_eq!(told(200, &[("content-type", "application/grpc+proto")]), None);
        assert_eq!(told(200, &[("grpc-status", "12")]), None);
        let page = ("content-type", "text/html");
        for (status, headers, code, words) in [
            (502, &[page][..], Code::Unavailable, "HTTP status 502 Bad Gateway, from"),
            (503, &[], Code::Unavailable, "does not reach it"),
            (403, &[page], Code::PermissionDenied, "HTTP status 403 Forbidden"),
            (404, &[page], Code::Unimplemented, "HTTP status 404 Not Found, and no gRPC"),
            (200, &[page], Code::Unimplemented, "HTTP status 200 OK, and no gRPC"),
            (301, &[page, ("location", "https://b/")], Code::Unimplemented, "to https://b/"),
        ] {
            let (told, message) = told(status, headers).unwrap();
            assert_eq!(told, code, "{status}");
            assert!(message.contains(words), "{message}");
        }
    }
}
