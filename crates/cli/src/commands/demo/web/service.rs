//! The page and what it asks of this program, over HTTP/1.1.
//!
//! What the servers saw is for the page alone. A page of another origin can send requests here, and
//! with a name that it points at this machine it could even read the answers. So whatever was not
//! addressed to this origin is refused, and so is what another page sends.
//!
//! Other users of this machine can send requests as well. So all but the page's files is for those
//! who have the token: the program prints it as the fragment of the page's address. Browsers send a
//! fragment to nobody; the page sends it in a header.

use super::page::File;
use super::rows::Rows;
use super::stage::{PLAIN, Playing, Seen};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use percent_encoding::percent_decode_str;
use privet_core::Result;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use subtle::ConstantTimeEq as _;
use tokio::net::TcpListener;

/// A connection without a request for this long is closed.
const IDLE_LIMIT: Duration = Duration::from_secs(60);

/// The header in which the page sends the token.
const TOKEN: &str = "x-privet-token";

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// Computes how long a cast has computed answers, or what each scheme costs.
pub(super) type Ask = Arc<dyn Fn(Question<'_>) -> Result<String> + Send + Sync>;

/// What takes time to say.
pub(super) enum Question<'a> {
    /// How long the servers of this cast have computed answers, in microseconds.
    Busy(&'a str),
    /// What each scheme costs, as JSON.
    Costs,
}

/// What the page shows.
pub(super) struct Service {
    /// `HOST:PORT` of the page.
    host: String,
    token: String,
    files: &'static [File],
    policy: HeaderValue,
    stage: String,
    rows: Rows,
    seen: Arc<Seen>,
    ask: Ask,
}

impl Service {
    pub(super) fn new(
        (host, token): (String, String),
        files: &'static [File],
        rows: Rows,
        (playing, seen): (&[Playing], Arc<Seen>),
        ask: Ask,
    ) -> Self {
        let stage = serde_json::json!({
            "what": rows.what,
            "rows": rows.keys().len(),
            "examples": rows.examples,
            "casts": playing,
        });
        let servers: Vec<&str> =
            playing.iter().flat_map(|playing| &playing.urls).map(String::as_str).collect();
        let policy = format!(
            "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; \
             style-src 'self'; img-src 'self'; connect-src 'self' {}; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'",
            servers.join(" ")
        );
        let policy = HeaderValue::try_from(policy)
            .unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'"));
        Self { host, token, files, policy, stage: stage.to_string(), rows, seen, ask }
    }

    /// Answers until the runtime ends.
    pub(super) async fn serve(self: Arc<Self>, listener: TcpListener) {
        loop {
            // What prevents one connection ends when another does.
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let service = Arc::clone(&self);
            let answer = service_fn(move |request| {
                let service = Arc::clone(&service);
                // Some answers take a while to compute.
                let answering = tokio::task::spawn_blocking(move || service.respond(&request));
                async move {
                    let gone = |_| said(StatusCode::INTERNAL_SERVER_ERROR, "this failed");
                    Ok::<_, Infallible>(answering.await.unwrap_or_else(gone))
                }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(IDLE_LIMIT)
                .serve_connection(TokioIo::new(stream), answer);
            tokio::spawn(async move {
                // That a browser has gone is no error of this program.
                let _ = connection.await;
            });
        }
    }

    fn respond<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        let mut response = match self.refusal(request) {
            Some(refusal) => refusal,
            None => self.answer(request),
        };
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_SECURITY_POLICY, self.policy.clone());
        for (name, value) in [
            ("cache-control", "no-store"),
            ("cross-origin-embedder-policy", "require-corp"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("referrer-policy", "no-referrer"),
            ("x-content-type-options", "nosniff"),
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        response
    }

    /// Why this is not for the page of this origin, if it is not.
    fn refusal<B>(&self, request: &Request<B>) -> Option<Response<Full<Bytes>>> {
        let named = |name| request.headers().get(name).map(HeaderValue::as_bytes);
        let origin = format!("http://{}", self.host);
        if named(header::HOST) != Some(self.host.as_bytes()) {
            let words = format!("this page is at {origin}\n");
            return Some(said(StatusCode::MISDIRECTED_REQUEST, words));
        }
        let is_strange = named(header::ORIGIN).is_some_and(|from| from != origin.as_bytes());
        let site = named(HeaderName::from_static("sec-fetch-site"));
        let is_elsewhere = site.is_some_and(|site| ![&b"same-origin"[..], b"none"].contains(&site));
        let path = request.uri().path();
        let is_page = path == "/";
        if is_strange || (is_elsewhere && !is_page) {
            return Some(said(StatusCode::FORBIDDEN, "this is for the page of this place alone\n"));
        }
        let is_file = self.files.iter().any(|file| file.path == path);
        let token = named(HeaderName::from_static(TOKEN)).unwrap_or_default();
        if !is_file && !bool::from(self.token.as_bytes().ct_eq(token)) {
            let words = "open the whole address that the program printed: what follows its # lets \
                         you read what was seen\n";
            return Some(said(StatusCode::FORBIDDEN, words));
        }
        (request.method() != Method::GET)
            .then(|| said(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered here\n"))
    }

    fn answer<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        let path = request.uri().path();
        if let Some(file) = self.files.iter().find(|file| file.path == path) {
            let mut response = reply(StatusCode::OK, file.kind, file.bytes);
            let gzip = HeaderValue::from_static("gzip");
            response.headers_mut().insert(header::CONTENT_ENCODING, gzip);
            return response;
        }
        let asked = |name: &str| {
            let mut parts = request.uri().query().unwrap_or_default().split('&');
            let value = parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='))?;
            Some(percent_decode_str(value).decode_utf8_lossy().into_owned())
        };
        match path {
            "/api/stage" => reply(StatusCode::OK, JSON, self.stage.clone()),
            "/api/keys" => {
                reply(StatusCode::OK, TEXT, self.rows.keys().collect::<Vec<_>>().join("\n"))
            }
            "/api/seen" => self.seen(asked("after").and_then(|it| it.parse().ok()).unwrap_or(0)),
            "/api/busy" => self.asked(Question::Busy(&asked("cast").unwrap_or_default())),
            "/api/costs" => self.asked(Question::Costs),
            "/plain" => self.plain(request, &asked("key").unwrap_or_default()),
            _ => said(StatusCode::NOT_FOUND, "there is nothing here\n"),
        }
    }

    /// A lookup that hides nothing.
    fn plain<B>(&self, request: &Request<B>, key: &str) -> Response<Full<Bytes>> {
        let line = format!("GET {}", request.uri());
        self.seen.note(PLAIN, 0, line.into_bytes());
        match self.rows.value(key) {
            Some(value) => reply(StatusCode::OK, JSON, value.to_owned()),
            None => reply(StatusCode::OK, JSON, "null"),
        }
    }

    /// A line of JSON that describes what was seen, then its bytes, one after the other.
    fn seen(&self, after: u64) -> Response<Full<Bytes>> {
        let sights = self.seen.after(after);
        let mut body = serde_json::json!(sights).to_string().into_bytes();
        body.push(b'\n');
        sights.iter().for_each(|sight| body.extend_from_slice(&sight.bytes));
        reply(StatusCode::OK, "application/octet-stream", body)
    }

    fn asked(&self, question: Question<'_>) -> Response<Full<Bytes>> {
        match (self.ask)(question) {
            Ok(json) => reply(StatusCode::OK, JSON, json),
            Err(error) => said(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        }
    }
}

fn said(status: StatusCode, words: impl Into<Bytes>) -> Response<Full<Bytes>> {
    reply(status, TEXT, words)
}

fn reply(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;

    const HOST: &str = "127.0.0.1:7780";
    const SECRET: &str = "00112233445566778899aabbccddeeff";
    const WITH_TOKEN: (&str, &str) = (TOKEN, SECRET);

    fn service() -> Service {
        const FILES: &[File] = &[File { path: "/", kind: "text/html", bytes: b"page" }];
        let ask: Ask = Arc::new(|question| match question {
            Question::Busy(cast) => Ok(format!("\"{cast}\"")),
            Question::Costs => Ok("[]".to_owned()),
        });
        let seen = Arc::new(Seen::new());
        let address = (HOST.to_owned(), SECRET.to_owned());
        Service::new(address, FILES, Rows::people(50), (&[], seen), ask)
    }

    fn asked(service: &Service, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = service.respond(&request.body(()).unwrap());
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cache-control", "no-store"),
        ] {
            assert_eq!(response.headers()[name], value, "{path}");
        }
        let policy = response.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{policy}");
        assert!(!policy.contains("unsafe-inline"), "{policy}");
        assert!(!response.headers().contains_key("access-control-allow-origin"));
        let status = response.status().as_u16();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let body = runtime.block_on(response.into_body().collect()).unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    fn page(service: &Service, path: &str) -> (u16, String) {
        asked(service, path, &[("host", HOST), ("sec-fetch-site", "same-origin"), WITH_TOKEN])
    }

    #[test]
    fn only_the_page_of_this_place_is_answered() {
        let service = service();
        for path in ["/", "/api/seen", "/api/keys", "/plain?key=x"] {
            let status = |headers: &[(&str, &str)]| {
                asked(&service, path, &[headers, &[WITH_TOKEN]].concat()).0
            };
            assert_eq!(status(&[("host", HOST)]), 200);
            assert_eq!(status(&[("host", HOST), ("sec-fetch-site", "none")]), 200);
            assert_eq!(status(&[]), 421, "{path}");
            // A name of somebody else that leads to this machine.
            assert_eq!(status(&[("host", "page.example:7780")]), 421, "{path}");
            assert_eq!(status(&[("host", "127.0.0.1:7781")]), 421, "{path}");
            let strange = [("host", HOST), ("origin", "https://page.example")];
            assert_eq!(status(&strange), 403, "{path}");
            // A link from elsewhere leads to the page, and to nothing else.
            let link = [("host", HOST), ("sec-fetch-site", "cross-site")];
            assert_eq!(status(&link), if path == "/" { 200 } else { 403 }, "{path}");
        }
        let post = Request::post("/").header("host", HOST).body(()).unwrap();
        assert_eq!(service.respond(&post).status(), 405);
    }

    #[test]
    fn what_was_seen_is_for_those_who_have_the_token() {
        let service = service();
        let paths = ["/api/seen", "/api/keys", "/api/stage", "/api/busy?cast=one", "/api/costs"];
        for path in paths.into_iter().chain(["/plain?key=x", "/nowhere"]) {
            let (status, words) = asked(&service, path, &[("host", HOST)]);
            assert_eq!(status, 403, "{path}");
            assert!(words.starts_with("open the whole address that the program printed"));
            for wrong in ["", "0", &SECRET[1..], &SECRET.to_uppercase(), &SECRET.repeat(2)] {
                let headers = [("host", HOST), (TOKEN, wrong)];
                assert_eq!(asked(&service, path, &headers).0, 403, "{path} {wrong}");
            }
        }
        assert_eq!(asked(&service, "/", &[("host", HOST)]).0, 200);
        assert_eq!(page(&service, "/api/seen").1, "[]\n");
    }

    #[test]
    fn a_plain_lookup_is_seen_and_what_is_refused_is_not() {
        let service = service();
        let key = service.rows.keys().next().unwrap().to_owned();
        let path = format!("/plain?key={}", key.replace(' ', "%20"));
        assert_eq!(asked(&service, &path, &[("host", "page.example")]).0, 421);
        assert_eq!(page(&service, "/api/seen?after=0").1, "[]\n");
        assert_eq!(page(&service, &path).1, service.rows.value(&key).unwrap());
        assert_eq!(page(&service, "/plain?key=nobody").1, "null");
        let (_, seen) = page(&service, "/api/seen?after=0");
        assert!(seen.contains("\"cast\":\"plain\"") && seen.contains(&path), "{seen}");
        let (_, later) = page(&service, "/api/seen?after=1");
        assert!(later.ends_with("GET /plain?key=nobody") && !later.contains(&path), "{later}");
        // Nothing else that the page reads has what was looked up.
        let (_, stage) = page(&service, "/api/stage");
        assert!(!stage.contains("nobody"), "{stage}");
    }

    #[test]
    fn the_page_learns_what_there_is() {
        let service = service();
        assert_eq!(page(&service, "/"), (200, "page".to_owned()));
        assert_eq!(page(&service, "/style.css").0, 404);
        assert_eq!(page(&service, "/api/busy?cast=one").1, "\"one\"");
        assert_eq!(page(&service, "/api/costs").1, "[]");
        assert_eq!(page(&service, "/api/keys").1.lines().count(), 50);
        let stage: serde_json::Value =
            serde_json::from_str(&page(&service, "/api/stage").1).unwrap();
        assert_eq!((&stage["rows"], &stage["what"]), (&50.into(), &"people".into()));
    }
}
