//! Pages in browsers as clients: gRPC-Web, over HTTP/1.1 and HTTP/2, beside gRPC.
//!
//! The methods, their limits and their counts are the same. What differs lies around
//! `admission`:
//!
//! ```text
//! preflights and strays ─ CORS ─ gRPC-Web ─ admission ─ service
//! ```
//!
//! A browser hands a page no response without CORS headers. So they go around everything that
//! refuses.

use crate::admission::AdmissionLayer;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::uri::Scheme;
use http::{HeaderName, HeaderValue, Method, Request, Uri, Version};
use privet_core::{Error, Result};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;
use tonic::body::Body;
use tonic_web::GrpcWebLayer;
use tower::util::MapRequestLayer;
use tower_http::cors::CorsLayer;

/// How long a browser may remember what a preflight said. Most remember it for less.
const REMEMBERED: Duration = Duration::from_secs(86_400);

/// Where pages come from, as browsers say it: scheme, host, and port if it is not the usual one.
#[derive(Clone, PartialEq, Eq)]
pub struct WebOrigin(HeaderValue);

impl fmt::Debug for WebOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl FromStr for WebOrigin {
    type Err = Error;

    /// Reads an origin such as `https://example.org` or `http://localhost:8080`.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if it is none, or if pages from there
    /// can be changed on their way.
    fn from_str(text: &str) -> Result<Self> {
        let refused = |why: &str| Err(Error::api_misuse(format!("{text:?} {why}")));
        if text.contains('*') {
            return refused(
                "would admit pages that nobody named, and whoever serves a page can read what is \
                 looked up there: name the origins one by one",
            );
        }
        let none = "is not the origin of a page, such as https://example.org";
        let Ok(uri) = text.parse::<Uri>() else { return refused(none) };
        let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
            return refused(none);
        };
        let usual = match scheme.as_str() {
            "https" => 443,
            "http" => 80,
            _ => return refused(none),
        };
        let rest = uri.path_and_query().map_or("/", |rest| rest.as_str());
        if rest != "/" || authority.as_str().contains('@') {
            return refused("is more than an origin: write scheme, host and port alone");
        }
        let host = authority.host().to_ascii_lowercase();
        if *scheme == Scheme::HTTP && !is_this_machine(&host) {
            return refused(
                "is not encrypted: anybody on the way could change its pages, and read what is \
                 looked up there; serve them by https",
            );
        }
        let port = authority.port_u16().filter(|port| *port != usual);
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        match HeaderValue::try_from(format!("{scheme}://{host}{port}")) {
            Ok(origin) => Ok(Self(origin)),
            Err(_) => refused(none),
        }
    }
}

fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost"
        || host.ends_with(".localhost")
        || address.is_ok_and(|address| address.is_loopback())
}

/// Sorts requests by `S`, then adds what browsers need, then reads gRPC-Web.
type Front<S> = (MapRequestLayer<S>, CorsLayer, GrpcWebLayer);

/// What lies around `admission` for pages of these origins.
pub(crate) fn front(
    origins: &[WebOrigin],
    admission: AdmissionLayer,
) -> Front<impl Fn(Request<Body>) -> Request<Body> + Clone + use<>> {
    let cors = CorsLayer::new()
        .allow_origin(origins.iter().map(|origin| origin.0.clone()).collect::<Vec<_>>())
        .allow_methods([Method::POST])
        .allow_headers(["content-type", "x-grpc-web", "grpc-timeout"].map(HeaderName::from_static))
        .expose_headers(["grpc-status", "grpc-message"].map(HeaderName::from_static))
        .max_age(REMEMBERED);
    let sort = move |request| sorted(request, &admission);
    (MapRequestLayer::new(sort), cors, GrpcWebLayer::new())
}

/// Counts what is answered before `admission`, and leads there what has to be refused.
fn sorted(mut request: Request<Body>, admission: &AdmissionLayer) -> Request<Body> {
    if request.method() == Method::OPTIONS {
        admission.preflight();
    } else if !is_spoken(&request) {
        // The layer of gRPC-Web would refuse some of these uncounted. To it, this is none of its
        // own; `admission` tells it what listens here.
        *request.method_mut() = Method::GET;
        *request.version_mut() = Version::HTTP_2;
        request.headers_mut().remove(CONTENT_TYPE);
    }
    request
}

/// Whether this is gRPC, or gRPC-Web in bytes. As text, it would leave copies of queries in base64,
/// which nobody erases.
fn is_spoken(request: &Request<Body>) -> bool {
    const WEB: &str = "application/grpc-web";
    const TEXT: &str = "application/grpc-web-text";
    let named = |name| {
        let value = request.headers().get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or_default()
    };
    match named(CONTENT_TYPE) {
        WEB | "application/grpc-web+proto" => {
            request.method() == Method::POST && !named(ACCEPT).starts_with(TEXT)
        }
        other => request.version() == Version::HTTP_2 && !other.starts_with(WEB),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_written_as_browsers_say_them() {
        for (typed, said) in [
            ("https://example.org", "https://example.org"),
            ("https://Example.ORG:443/", "https://example.org"),
            ("HTTPS://example.org:8443", "https://example.org:8443"),
            ("http://localhost:80", "http://localhost"),
            ("http://app.localhost:8080", "http://app.localhost:8080"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("http://[::1]:8080", "http://[::1]:8080"),
            ("https://[2001:DB8::1]", "https://[2001:db8::1]"),
        ] {
            assert_eq!(typed.parse::<WebOrigin>().unwrap().0, said, "{typed}");
        }
    }

    #[test]
    fn what_is_no_origin_is_refused() {
        for (typed, why) in [
            ("*", "one by one"),
            ("https://*.example.org", "one by one"),
            ("null", "is not the origin"),
            ("", "is not the origin"),
            ("example.org", "is not the origin"),
            ("file:///page.html", "is not the origin"),
            ("ftp://example.org", "is not the origin"),
            ("https://", "is not the origin"),
            ("https://exämple.org", "is not the origin"),
            ("https://example.org/page", "more than an origin"),
            ("https://example.org?page", "more than an origin"),
            ("https://somebody@example.org", "more than an origin"),
            ("http://example.org", "is not encrypted"),
            ("http://localhost.example.org", "is not encrypted"),
            ("http://192.0.2.1", "is not encrypted"),
        ] {
            let error = typed.parse::<WebOrigin>().unwrap_err().to_string();
            assert!(error.contains(why), "{typed}: {error}");
        }
    }
}
