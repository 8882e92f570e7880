//! Responses that nobody reads.

use crate::attack::{Attacker, Strength, defaults, framed};
use crate::common::*;
use crate::frames::{Body, PING, frame, window_update};
use crate::honest::Errand;
use crate::load::stub_of;
use crate::process::Attacked;
use privet_schemes::SchemeId;
use privet_server::{ServedTable, ServerConfig};
use privet_wire::proto;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Makes `count` requests whose responses may send nothing but their headers.
pub(crate) async fn with_closed_windows(
    attacker: Attacker,
    method: &str,
    count: usize,
) -> io::Result<()> {
    let mut raw = attacker.open(Some(0)).await?;
    let body = Body::Whole(attacker.message(method));
    raw.keep_open(count, method, body, || attacker.in_place()).await
}

impl Attacker {
    /// A valid message to a method.
    fn message(&self, method: &str) -> &[u8] {
        match method {
            "Describe" => &self.aim.describe,
            "Fetch" => &self.aim.fetch,
            "Prepare" => &self.aim.prepare,
            _ => &self.aim.answer,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_with_closed_windows() {
    let attacked = Attacked::start("unread::requests_with_closed_windows", defaults).await;
    for (method, connections, addresses, count) in [
        ("Fetch", 1, 1, 64),
        ("Fetch", 64, 1, 4),
        ("Fetch", 64, 32, 4),
        ("Prepare", 1, 1, 16),
        ("Prepare", 16, 1, 2),
        ("Answer", 8, 1, 256),
        ("Describe", 8, 1, 256),
    ] {
        let what =
            format!("{connections} x {count} {method}, closed windows, {addresses} addresses");
        attacked
            .withstands(&what, Strength { connections, addresses }, move |attacker| async move {
                with_closed_windows(attacker, method, count).await
            })
            .await;
    }
}

/// All places are taken, and nobody has more than one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_response_with_a_closed_window_for_each_address() {
    const TEST: &str = "unread::one_response_with_a_closed_window_for_each_address";
    let attacked = Attacked::start(TEST, defaults).await;
    for (errand, method, places) in
        [(Errand::Hints, "Prepare", 16), (Errand::Download, "Fetch", 64)]
    {
        let strength = Strength { connections: places, addresses: places as u8 };
        attacked
            .lets_through(errand, strength, move |attacker| async move {
                with_closed_windows(attacker, method, 1).await
            })
            .await;
    }
}

const WIDE: &str = "wide";

/// One more table, whose answers have 400 kB.
fn with_a_wide_table(folder: &Path) -> (ServerConfig, Vec<ServedTable>) {
    let (config, mut tables) = defaults(folder);
    tables.push(served_by(SchemeId::Dpf, table(WIDE, 16, 400_000, 3)));
    (config, tables)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_answers_with_closed_windows() {
    let attacked =
        Attacked::start("unread::long_answers_with_closed_windows", with_a_wide_table).await;
    attacked
        .withstands(
            "8 x 64 queries for answers of 400 kB with closed windows",
            Strength::from_one_address(8),
            async |attacker: Attacker| {
                let mut stub = stub_of(&attacker).await?;
                let mut client = TableClient::new(&mut stub, WIDE).await;
                let query = proto::AnswerRequest::from(client.prepare_all(0).0.remove(0));
                let body = framed(&query);
                let mut raw = attacker.open(Some(0)).await?;
                raw.keep_open(64, "Answer", Body::Whole(&body), || attacker.in_place()).await
            },
        )
        .await;
}

/// The windows are open, but what comes is not even read from the network.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_on_connections_that_are_not_read() {
    let attacked =
        Attacked::start("unread::responses_on_connections_that_are_not_read", defaults).await;
    for method in ["Fetch", "Answer"] {
        let what = format!("16 x 64 {method} on connections that are not read");
        attacked
            .withstands(&what, Strength::from_one_address(16), move |attacker| async move {
                let mut deaf = attacker.deaf().await?;
                for _ in 0..64 {
                    deaf.request(method, Body::Whole(attacker.message(method))).await?;
                }
                attacker.in_place();
                // Without reading, only this shows that the connection has been closed.
                loop {
                    deaf.send(&frame(PING, 0, 0, &[7; 8])).await?;
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            })
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn windows_that_open_byte_by_byte() {
    let attacked = Attacked::start("unread::windows_that_open_byte_by_byte", defaults).await;
    attacked
        .withstands(
            "16 x 4 downloads whose windows open byte by byte",
            Strength::from_one_address(16),
            async |attacker: Attacker| {
                let mut raw = attacker.open(Some(0)).await?;
                let mut streams = Vec::new();
                for _ in 0..4 {
                    streams.push(raw.request("Fetch", Body::Whole(&attacker.aim.fetch)).await?);
                }
                attacker.in_place();
                loop {
                    for stream in &streams {
                        raw.send(&window_update(*stream, 1)).await?;
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
        )
        .await;
}
