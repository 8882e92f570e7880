//! Requests that begin and do not come to an end.

use crate::attack::{Attacker, Strength, defaults, withstands};
use crate::frames::{Body, DATA, connect, frame};
use crate::process::Attacked;
use bytes::Bytes;
use std::io;
use std::time::Duration;
use tokio::task::JoinHandle;

/// As many as a server allows on one connection.
const STREAMS: usize = 256;

/// How often something is sent, so that nobody can take an attacker for dead.
const A_WHILE: Duration = Duration::from_millis(100);

/// Begins requests, and sends no byte of their bodies.
pub(crate) async fn without_bodies(attacker: Attacker, method: &str) -> io::Result<()> {
    let mut raw = attacker.open(None).await?;
    raw.keep_open(STREAMS, method, Body::Nothing, || attacker.in_place()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_without_bodies() {
    let attacked = Attacked::start("slow::queries_without_bodies", defaults).await;
    for addresses in [1, 8] {
        let what = format!("8 x 256 queries without bodies from {addresses} addresses");
        attacked
            .withstands(&what, Strength { connections: 8, addresses }, async |attacker| {
                without_bodies(attacker, "Answer").await
            })
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_byte_by_byte() {
    withstands("slow::queries_byte_by_byte", async |attacker: Attacker| {
        let mut raw = attacker.open(None).await?;
        let mut streams = Vec::new();
        for _ in 0..STREAMS {
            streams.push(raw.begin("Answer").await?);
        }
        attacker.in_place();
        // What is sent to a stream that the server has reset is a mistake, for which it
        // may close the connection: then all begins anew.
        for byte in &attacker.aim.answer {
            tokio::time::sleep(A_WHILE).await;
            for stream in &streams {
                raw.send(&frame(DATA, 0, *stream, &[*byte])).await?;
            }
        }
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_for_hints_that_never_arrive() {
    withstands("slow::requests_for_hints_that_never_arrive", async |attacker: Attacker| {
        let mut raw = attacker.open(None).await?;
        let (_, nearly) = attacker.aim.prepare.split_last().unwrap();
        let body = Body::Unfinished(nearly);
        raw.keep_open(STREAMS, "Prepare", body, || attacker.in_place()).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_method_without_bodies() {
    let attacked = Attacked::start("slow::every_method_without_bodies", defaults).await;
    for method in ["Describe", "Fetch", "Prepare"] {
        let what = format!("8 x 256 {method} without bodies");
        attacked
            .withstands(&what, Strength::from_one_address(8), move |attacker| async move {
                without_bodies(attacker, method).await
            })
            .await;
    }
}

/// A body as long as any may be, but for its last byte. A proper client sends it, piece by piece
/// as the server lets it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_bodies_that_never_end() {
    let attacked = Attacked::start("slow::long_bodies_that_never_end", defaults).await;
    for method in ["Answer", "Describe"] {
        let what = format!("8 x 256 {method} of the greatest length, all but the last byte");
        attacked
            .withstands(&what, Strength::from_one_address(8), move |attacker| async move {
                let stream = connect(attacker.aim.address, attacker.from).await?;
                let (mut requests, connection) =
                    h2::client::handshake(stream).await.map_err(io::Error::other)?;
                let connection = AbortOnDrop(tokio::spawn(connection));
                let longest = attacker.aim.longest_request;
                let announced = [&[0], &(longest as u32).to_be_bytes()[..]].concat();
                let nearly = Bytes::from([announced, vec![0; longest - 1]].concat());
                let mut uploads = Vec::new();
                for _ in 0..STREAMS {
                    let path = format!("http://attacked/privet.v1.Privet/{method}");
                    let head = http::Request::post(path)
                        .header("content-type", "application/grpc")
                        .header("te", "trailers")
                        .body(())
                        .unwrap();
                    requests = requests.ready().await.map_err(io::Error::other)?;
                    let (response, mut upload) =
                        requests.send_request(head, false).map_err(io::Error::other)?;
                    upload.send_data(nearly.clone(), false).map_err(io::Error::other)?;
                    uploads.push((response, upload));
                }
                attacker.in_place();
                // Those that were refused are tried again when all are.
                for (response, _kept) in uploads {
                    let _ = response.await;
                }
                drop(connection);
                Ok(())
            })
            .await;
    }
}

struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
