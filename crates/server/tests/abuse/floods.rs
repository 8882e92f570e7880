//! Frames that cost a client little and a server more, as many as it takes.

use crate::attack::{Attacker, defaults, withstands};
use crate::frames::{
    Body, CONTINUATION, DATA, END_HEADERS, HEADERS, PING, Raw, SETTINGS, field, frame, head, reset,
    window_update,
};
use crate::process::Attacked;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Frames that are sent at a time.
const AT_ONCE: usize = 512;

/// Sends the same bytes until the server closes the connection.
async fn again_and_again(raw: &mut Raw, attacker: &Attacker, bytes: &[u8]) -> io::Result<()> {
    loop {
        raw.send(bytes).await?;
        attacker.in_place();
    }
}

/// Begins requests and takes each of them back.
pub(crate) async fn begin_and_reset(attacker: Attacker) -> io::Result<()> {
    let mut raw = attacker.open(None).await?;
    let block = head("Answer");
    loop {
        let mut requests = Vec::new();
        for _ in 0..AT_ONCE {
            let stream = raw.stream();
            requests.extend(frame(HEADERS, END_HEADERS, stream, &block));
            requests.extend(reset(stream));
        }
        raw.send(&requests).await?;
        attacker.in_place();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rapid_reset() {
    withstands("floods::rapid_reset", begin_and_reset).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rapid_reset_of_whole_requests() {
    withstands("floods::rapid_reset_of_whole_requests", async |attacker: Attacker| {
        let mut raw = attacker.open(None).await?;
        loop {
            let stream = raw.request("Prepare", Body::Whole(&attacker.aim.prepare)).await?;
            raw.send(&reset(stream)).await?;
            attacker.in_place();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resets_that_the_server_has_to_send() {
    withstands("floods::resets_that_the_server_has_to_send", async |attacker: Attacker| {
        let mut raw = attacker.open(None).await?;
        let block = head("Answer");
        loop {
            let mut requests = Vec::new();
            for _ in 0..AT_ONCE {
                let stream = raw.stream();
                requests.extend(frame(HEADERS, END_HEADERS, stream, &block));
                // No window may grow by nothing.
                requests.extend(window_update(stream, 0));
            }
            raw.send(&requests).await?;
            attacker.in_place();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn continuations() {
    withstands("floods::continuations", async |attacker: Attacker| {
        let mut raw = attacker.open(None).await?;
        let stream = raw.stream();
        raw.send(&frame(HEADERS, 0, stream, &head("Answer"))).await?;
        let more = frame(CONTINUATION, 0, stream, &field("x", &"y".repeat(100)));
        again_and_again(&mut raw, &attacker, &more.repeat(AT_ONCE)).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_larger_than_allowed() {
    withstands("floods::headers_larger_than_allowed", async |attacker: Attacker| {
        // One long field is put into the receiver's table, and then named by one byte.
        const INTO_THE_TABLE: u8 = 0x40;
        const NEWEST_OF_THE_TABLE: u8 = 0x80 | 62;
        let mut raw = attacker.open(None).await?;
        let mut long = field("x", &"y".repeat(120));
        long[0] = INTO_THE_TABLE;
        let named = vec![NEWEST_OF_THE_TABLE; 15_000];
        let block = [head("Answer"), long, named].concat();
        loop {
            let stream = raw.stream();
            raw.send(&frame(HEADERS, END_HEADERS, stream, &block)).await?;
            attacker.in_place();
        }
    })
    .await;
}

pub(crate) async fn only_pings(attacker: Attacker) -> io::Result<()> {
    let mut raw = attacker.open(None).await?;
    let pings = frame(PING, 0, 0, &[7; 8]).repeat(AT_ONCE);
    again_and_again(&mut raw, &attacker, &pings).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pings() {
    withstands("floods::pings", only_pings).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_asks_for_nothing_is_read_slowly() {
    const AT_FIRST: u64 = 4 << 20;
    const A_SECOND: f64 = (64 << 10) as f64;
    const TEST: &str = "floods::whoever_asks_for_nothing_is_read_slowly";
    let attacked = Attacked::start(TEST, defaults).await;
    let began = Instant::now();
    let treatment = Arc::default();
    let from = Ipv4Addr::new(127, 0, 0, 2);
    let mut raw = Raw::open(attacked.address, from, None, &treatment).await.unwrap();
    let ping = frame(PING, 0, 0, &[7; 8]);
    let (len, pings) = (ping.len() as u64, ping.repeat(AT_ONCE));
    let flood = tokio::spawn(async move { while raw.send(&pings).await.is_ok() {} });

    let read = || treatment.pings_answered.load(Ordering::Relaxed) * len;
    let nearly = async {
        while read() < AT_FIRST / 10 * 9 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), nearly).await.expect("it may send so many");
    // Enough for as many again, if nobody holds it up.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let most = AT_FIRST as f64 + A_SECOND * began.elapsed().as_secs_f64();
    assert!(read() as f64 <= 1.02 * most, "{} bytes of pings were read, not {most}", read());
    flood.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings() {
    withstands("floods::settings", async |attacker: Attacker| {
        let mut raw = attacker.open(None).await?;
        // With streams whose windows each of them moves.
        for _ in 0..64 {
            raw.begin("Answer").await?;
        }
        let window = |len: u32| frame(SETTINGS, 0, 0, &[&[0, 4][..], &len.to_be_bytes()].concat());
        let both = [window(0), window(1 << 16)].concat();
        again_and_again(&mut raw, &attacker, &both.repeat(AT_ONCE)).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn empty_data() {
    withstands("floods::empty_data", async |attacker: Attacker| {
        let mut raw = attacker.open(None).await?;
        let stream = raw.begin("Answer").await?;
        let nothing = frame(DATA, 0, stream, &[]).repeat(AT_ONCE);
        again_and_again(&mut raw, &attacker, &nothing).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_that_are_not_read() {
    withstands("floods::replies_that_are_not_read", async |attacker: Attacker| {
        let mut deaf = attacker.deaf().await?;
        let pings = frame(PING, 0, 0, &[7; 8]).repeat(AT_ONCE);
        attacker.in_place();
        again_and_again(&mut deaf, &attacker, &pings).await
    })
    .await;
}
