//! Those who speak something else than HTTP/2: browsers, probes, a client that takes this for
//! another port. They get one short answer, which says what listens here, and no frames of HTTP/2.
//!
//! It costs the server a few kilobytes and its clients nothing: the stray holds the place of its
//! connection until then, for no longer than a handshake may take, and has spent as much of its
//! allowance as a refused request.

use super::Allowance;
use crate::grpc::{self, WHAT_LISTENS_HERE};
use tokio::io::{self, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A status that no probe takes for good health, and words.
pub(super) type Answer = (&'static str, &'static str);

pub(super) const HTTP_1_ANSWER: Answer = ("505 HTTP Version Not Supported", WHAT_LISTENS_HERE);

const PLAIN_ANSWER: Answer = (
    "400 Bad Request",
    "This is a server of private lookups (Privet). It speaks TLS: write https://, not http://.\n",
);

/// How much of a stray's request is read: it may wait with its eyes shut until all of it is taken.
const MOST_READ: usize = 16 << 10;

/// The answer for whoever is connected by `stream`, if it is a stray that would understand one.
/// Waits for its first bytes, and leaves them where they are.
pub(super) async fn speaks(stream: &TcpStream, tls: bool, web: bool) -> io::Result<Option<Answer>> {
    let mut first = [0; grpc::BEGINNING];
    let len = stream.peek(&mut first).await?;
    Ok(answer(&first[..len], tls, web))
}

fn answer(first: &[u8], tls: bool, web: bool) -> Option<Answer> {
    // Methods of HTTP are words in capitals, and a handshake of TLS begins with no letter.
    let is_text = first.iter().take(3).all(u8::is_ascii_uppercase);
    match tls {
        _ if first.is_empty() => None,
        true => is_text.then_some(PLAIN_ANSWER),
        false => (is_text && !grpc::may_begin(first, web)).then_some(HTTP_1_ANSWER),
    }
}

/// Answers, and closes the connection.
pub(super) async fn tell(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    (status, words): Answer,
    allowance: &Allowance,
) {
    allowance.refused();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{words}",
        words.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
    // Bytes that nobody has read would make the system break off the connection, perhaps before
    // the answer has arrived.
    let mut read = [0; 1024];
    let mut rest = MOST_READ;
    while let Ok(len @ 1..) = stream.read(&mut read).await {
        allowance.spend(len);
        rest = rest.saturating_sub(len);
        if rest == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_from_the_preface_however_little_of_it_has_come() {
        const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        for len in 1..=PREFACE.len() {
            assert_eq!(answer(&PREFACE[..len], false, false), None);
        }
        for request in
            ["GET / HTTP/1.1\r\n", "POST /a HTTP/1.0", "PRIVET", "PUT", "HEAD / HTTP/1.1"]
        {
            let request = request.as_bytes();
            assert_eq!(answer(request, false, false), Some(HTTP_1_ANSWER));
            assert_eq!(answer(request, false, true), None, "a page may ask so");
            assert_eq!(answer(request, true, false), Some(PLAIN_ANSWER));
            assert_eq!(answer(request, true, true), Some(PLAIN_ANSWER));
        }
        // What is no request gets no answer in words.
        for other in [&b""[..], &[0x16, 3, 1], b"\0\0\0", b"ssh", b"SSh-2.0"] {
            assert_eq!(answer(other, false, false), None);
            assert_eq!(answer(other, true, false), None);
        }
        assert_eq!(answer(PREFACE, true, false), Some(PLAIN_ANSWER));
    }
}
