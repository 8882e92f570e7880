//! Servers behind a front that has a path for each.

use crate::common::{listener, pair, serve, stored, table};
use privet_client::Client;
use privet_core::{Blame, Reason};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{Request, Response, StatusCode};
use tonic::service::Routes;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Server};

/// Sends what comes below a path to a server, without the path. To others it shows a page.
#[derive(Clone)]
struct Front(Arc<Mutex<Vec<(&'static str, Channel)>>>);

impl<B> Service<Request<B>> for Front
where
    B: tonic::codegen::Body<Data = tonic::codegen::Bytes> + Send + 'static,
    B::Error: Into<tonic::codegen::StdError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let path = request.uri().path().to_owned();
        let ways = self.0.lock().unwrap();
        let way = ways.iter().find_map(|(before, server)| {
            Some((path.strip_prefix(before)?.to_owned(), server.clone()))
        });
        let mut request = request.map(Body::new);
        Box::pin(async move {
            let page = |status: StatusCode| {
                let mut page = Response::new(Body::new("<html>a page</html>".to_owned()));
                *page.status_mut() = status;
                Ok(page)
            };
            let Some((path, mut server)) = way else { return page(StatusCode::NOT_FOUND) };
            *request.uri_mut() = path.parse().unwrap();
            if std::future::poll_fn(|context| server.poll_ready(context)).await.is_err() {
                return page(StatusCode::BAD_GATEWAY);
            }
            match server.call(request).await {
                Ok(response) => Ok(response),
                Err(_) => page(StatusCode::BAD_GATEWAY),
            }
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_behind_paths_are_known_apart() {
    let (one, one_url) = serve(vec![table("packages", 1, 0)]).await;
    let (_other, other_url) = serve(vec![table("packages", 2, 5)]).await;
    let channel = |url: &str| Channel::from_shared(url.to_owned()).unwrap().connect_lazy();
    let (to_one, to_other) = (channel(&one_url), channel(&other_url));
    let front = Front(Arc::new(Mutex::new(vec![("/a/one", to_one), ("/two", to_other.clone())])));
    let (listener, at) = listener().await;
    let routes = Routes::default().into_axum_router().fallback_service(front.clone());
    let serving = Server::builder().add_routes(Routes::from(routes));
    tokio::spawn(serving.serve_with_incoming(TcpIncoming::from(listener)));

    let state = tempfile::tempdir().unwrap();
    let value = async |path: &str| -> privet_core::Result<Vec<u8>> {
        let client = Client::connect(stored(&format!("{at}{path}"), state.path()), |_| {}).await?;
        Ok(client.get(&pair(1, 0).0).await?.unwrap().to_vec())
    };
    for _ in 0..2 {
        assert_eq!(value("/a/one").await.unwrap(), pair(1, 0).1);
        assert_eq!(value("/two/").await.unwrap(), pair(1, 5).1);
    }
    // Other paths show a page, and no server.
    for path in ["", "/two/a", "/A/one"] {
        let error = value(path).await.unwrap_err();
        assert_eq!(error.blame(), Blame::PeerMisbehaved, "{path}: {error}");
        let words = "not as a Privet server does";
        assert!(error.message().contains(words), "{path}: {error}");
    }
    let page = value("").await.unwrap_err();
    assert!(page.message().contains("(HTTP status 404 Not Found, and no gRPC)"), "{page}");
    // What is known of the one is not known of the other.
    front.0.lock().unwrap()[0].1 = to_other;
    let error = value("/a/one").await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::TableReplaced), "{error}");
    assert_eq!(value("/two").await.unwrap(), pair(1, 5).1);
    // A server that is away for a while is waited for, and does not misbehave.
    front.0.lock().unwrap()[0].1 = channel(&one_url);
    one.shutdown();
    one.wait().await.unwrap();
    let error = value("/a/one").await.unwrap_err();
    assert_eq!(error.blame(), Blame::Unavailable, "{error}");
    assert!(error.message().contains("HTTP status 502 Bad Gateway"), "{error}");
}
