//! Pages that misbehave over HTTP/1.1. In all other attacks every second attacker is a page over
//! HTTP/2.

use crate::attack::{Attacker, Strength, defaults};
use crate::frames::connect;
use crate::process::Attacked;
use std::io;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncWriteExt as _, copy, sink};
use tokio::net::TcpStream;

/// How often something is sent, so that nobody can take an attacker for dead.
const A_WHILE: Duration = Duration::from_millis(50);

/// The head of a call whose body has `len` bytes.
fn head(method: &str, len: usize) -> Vec<u8> {
    format!(
        "POST /privet.v1.Privet/{method} HTTP/1.1\r\nHost: attacked\r\n\
         Content-Type: application/grpc-web+proto\r\nContent-Length: {len}\r\n\r\n"
    )
    .into_bytes()
}

fn call(method: &str, body: &[u8]) -> Vec<u8> {
    [&head(method, body.len()), body].concat()
}

/// Sends the bytes one by one until the server closes the connection.
async fn drip(mut stream: TcpStream, attacker: &Attacker, bytes: &[u8]) -> io::Result<()> {
    attacker.in_place();
    for byte in bytes {
        stream.write_all(&[*byte]).await?;
        tokio::time::sleep(A_WHILE).await;
    }
    Ok(())
}

/// Sends the bytes again and again, and reads what comes only if `reads`.
async fn flood(
    stream: TcpStream,
    attacker: &Attacker,
    bytes: &[u8],
    reads: bool,
) -> io::Result<()> {
    let (mut reader, mut writer) = stream.into_split();
    attacker.in_place();
    let writing = async {
        loop {
            writer.write_all(bytes).await?;
        }
    };
    let reading = async {
        match reads {
            true => copy(&mut reader, &mut sink()).await.map(drop),
            false => std::future::pending().await,
        }
    };
    tokio::select! {
        ended = writing => ended,
        ended = reading => ended,
    }
}

/// Sends the bytes, and then nothing that is a request. Nothing is read.
async fn wait(mut stream: TcpStream, attacker: &Attacker, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    attacker.in_place();
    loop {
        tokio::time::sleep(A_WHILE).await;
        stream.write_all(b"\r\n").await?;
    }
}

async fn attack(attacker: Attacker) -> io::Result<()> {
    let stream = connect(attacker.aim.address, attacker.from).await?;
    let (aim, longest) = (&attacker.aim, attacker.aim.longest_request);
    match attacker.number % 10 {
        0 => drip(stream, &attacker, &head("Answer", 9).repeat(9)).await,
        1 => drip(stream, &attacker, &call("Answer", &aim.answer)).await,
        2 => wait(stream, &attacker, &head("Answer", aim.answer.len())).await,
        3 => {
            let announced = [&[0][..], &(longest as u32).to_be_bytes()].concat();
            let nearly = [announced, vec![0; longest - 1]].concat();
            let nearly = [head("Describe", nearly.len() + 1), nearly].concat();
            wait(stream, &attacker, &nearly).await
        }
        4 => wait(stream, &attacker, &call("Fetch", &aim.fetch)).await,
        5 => flood(stream, &attacker, &call("Answer", &aim.answer), false).await,
        6 => {
            let preflight = "OPTIONS / HTTP/1.1\r\nHost: a\r\nOrigin: https://a.example\r\n\r\n";
            flood(stream, &attacker, preflight.repeat(64).as_bytes(), true).await
        }
        7 => flood(stream, &attacker, &b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(64), true).await,
        8 => {
            let endless = ["X-A: ", &"a".repeat(1000), "\r\n"].concat().repeat(500);
            flood(
                stream,
                &attacker,
                [&head("Answer", 9)[..80], endless.as_bytes()].concat().as_slice(),
                true,
            )
            .await
        }
        _ => {
            let chunked = String::from_utf8_lossy(&head("Answer", 9)).into_owned();
            let chunked = chunked.replace("Content-Length: 9", "Transfer-Encoding: chunked");
            let pieces = [chunked.as_bytes(), &b"1\r\n\0\r\n".repeat(1 << 16)].concat();
            flood(stream, &attacker, &pieces, true).await
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_over_http_1_in_every_way_at_once() {
    let name = "web::pages_over_http_1_in_every_way_at_once";
    let attacked = Attacked::start(name, defaults).await;
    for addresses in [1, 5] {
        let what = format!("pages over HTTP/1.1 from {addresses} addresses");
        attacked.withstands(&what, Strength { connections: 50, addresses }, attack).await;
    }
}

/// As [`whoever asks for nothing`](crate::floods): a preflight earns no allowance, as calls do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_sends_preflights_alone_is_read_slowly() {
    const AT_FIRST: f64 = (4 << 20) as f64;
    const A_SECOND: f64 = (64 << 10) as f64;
    const BUFFER: f64 = (512 << 10) as f64;
    let name = "web::whoever_sends_preflights_alone_is_read_slowly";
    let attacked = Attacked::start(name, defaults).await;
    let began = Instant::now();
    let stream = connect(attacked.address, Ipv4Addr::new(127, 0, 0, 2)).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let preflight = format!("OPTIONS / HTTP/1.1\r\nHost: a\r\nX-A: {}\r\n\r\n", "a".repeat(900));
    let len = preflight.len() as f64;
    let flood = tokio::spawn(async move {
        let preflights = preflight.repeat(64);
        let mut unread = sink();
        let writing = async { while writer.write_all(preflights.as_bytes()).await.is_ok() {} };
        let _ = tokio::join!(writing, copy(&mut reader, &mut unread));
    });
    let read = async || attacked.counted("privet_requests_total").await * len;
    let nearly = async { while read().await < 0.9 * AT_FIRST {} };
    tokio::time::timeout(Duration::from_secs(60), nearly).await.expect("it may send so many");
    // Enough for as many again, if nobody holds it up.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let read = read().await;
    // What the connection had in its buffer when the allowance was used up counts, too.
    let most = AT_FIRST + A_SECOND * began.elapsed().as_secs_f64() + BUFFER;
    assert!(read <= most, "{read} bytes of preflights were read, not {most}");
    flood.abort();
}
