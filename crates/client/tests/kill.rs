//! A process is killed in the middle of a download, of a hint or of the whole table, at every chunk
//! in turn; the next one goes on where it ended. Meanwhile the state directory is locked against a
//! second process that would download.
//!
//! This program is both: started with `PRIVET_KILL_URL` it is the process that gets killed, after
//! the chunk numbered `PRIVET_KILL_AFTER`.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;

use common::{connect, record, records_by, refusal, serve, stored};
use privet_client::{Client, ClientOptions, Progress};
use privet_core::{Blame, Reason};
use privet_schemes::SchemeId;
use privet_wire::PartKind;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn main() {
    match std::env::var("PRIVET_KILL_URL") {
        Ok(url) => download_until_killed(&url),
        Err(_) => tokio::runtime::Runtime::new().unwrap().block_on(async {
            // Both come in several chunks.
            kill_at_every_chunk(SchemeId::SimplePir, 8192).await;
            kill_at_every_chunk(SchemeId::Download, 50_000).await;
        }),
    }
}

fn impatient(url: &str, state: &Path) -> ClientOptions {
    ClientOptions { busy_patience: Duration::from_millis(100), ..stored(url, state) }
}

/// Downloads of up to 64 MiB go on at multiples of this.
const BOUNDARY: u64 = 1 << 20;

/// Reports when it has stored the last chunk that it will ever get, and waits until it is killed.
fn download_until_killed(url: &str) {
    let after: usize = std::env::var("PRIVET_KILL_AFTER").unwrap().parse().unwrap();
    let state = std::env::var("PRIVET_KILL_STATE").unwrap();
    let mut chunks = 0;
    let stand_still = move |progress| {
        if let Progress::Part { part: PartKind::Hint | PartKind::Table, fetched: true, .. } =
            progress
        {
            chunks += 1;
            if chunks == after {
                println!("here");
                // This pipe stays silent: it ends only with this process.
                let _ = std::io::stdin().read(&mut [0]);
            }
        }
    };
    drop(Client::connect_blocking(impatient(url, state.as_ref()), stand_still));
}

async fn kill_at_every_chunk(scheme: SchemeId, records: u64) {
    let (server, url) = serve(vec![records_by(scheme, records)]).await;
    let part_len = server.tables()[0].description.schemes[0].hint.unwrap().len;
    let chunks = part_len.div_ceil(privet_wire::limits::FETCH_CHUNK_LEN as u64) as usize;
    assert!(chunks >= 6, "{chunks} chunks");
    for after in 1..=chunks {
        let state = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env("PRIVET_KILL_URL", &url)
            .env("PRIVET_KILL_AFTER", after.to_string())
            .env("PRIVET_KILL_STATE", state.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "here\n");

        let busy = refusal(impatient(&url, state.path())).await;
        assert_eq!(busy.blame(), Blame::Unavailable);
        assert_eq!(busy.reason(), Some(Reason::UsedByAnotherProcess), "{busy}");
        child.kill().unwrap();
        child.wait().unwrap();

        let client = connect(impatient(&url, state.path())).await;
        let fetched = client.stats().prepare.down;
        // A download that is not whole goes on at the boundary before.
        let had = (after * privet_wire::limits::FETCH_CHUNK_LEN) as u64;
        let missing = if had < part_len { part_len - had / BOUNDARY * BOUNDARY } else { 0 };
        assert!(
            (missing..missing + 1000).contains(&fetched),
            "killed after chunk {after} of {chunks}: {missing} bytes were missing, {fetched} came"
        );
        for index in [0, 1, 4095, records - 1] {
            assert_eq!(client.get_index(index).await.unwrap().to_vec(), record(index));
        }
    }
    println!("{scheme}: killed at each of {chunks} chunks, resumed each time");
}
