//! Restarts: ready from the cache, whatever its state.

use crate::common::*;
use privet_schemes::SchemeId;
use privet_schemes::doublepir::DoublePirParameters;
use privet_server::{HintOrigin, ServedTable, ServerConfig};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// One life of a server.
#[derive(Debug)]
struct Life {
    /// Where its hint came from.
    origin: HintOrigin,
    /// Whether it was being computed.
    computed: bool,
    /// What the server said it holds beside the table.
    extra_bytes: u64,
}

impl Life {
    fn summary(&self) -> (HintOrigin, bool) {
        (self.origin, self.computed)
    }
}

/// Starts a server with that cache, looks a few records up, and stops it.
async fn one_life(cache: Option<&Path>, table: ServedTable) -> Life {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let shares = Arc::clone(&heard);
    let config = ServerConfig {
        cache_dir: cache.map(Path::to_owned),
        progress: Some(Arc::new(move |progress| {
            assert_eq!(progress.table, "t");
            shares.lock().unwrap().push(progress.share);
        })),
        ..config()
    };
    let last = table.identity.shape.records() - 1;
    let server = start(config, vec![table]).await;
    let ready = server.tables()[0].clone();
    let extra = metric(&server, "privet_table_extra_bytes{table=\"t\"}").await;
    assert_eq!(extra, ready.extra_bytes as f64);
    let counted = format!("privet_hints_total{{origin=\"{}\"}}", ready.hint_origin.name());
    assert_eq!(metric(&server, &counted).await, 1.0);
    let mut stub = stub(&server).await;
    let mut client = TableClient::new(&mut stub, "t").await;
    for index in [0, last / 2, last] {
        client.check(&mut stub, index).await;
    }
    drop(stub);
    server.shutdown();
    server.wait().await.unwrap();
    let shares = heard.lock().unwrap();
    assert!(shares.is_sorted() && shares.iter().all(|share| (0.0..=1.0).contains(share)));
    // A progress bar must learn that it is over.
    assert!(shares.last().is_none_or(|last| *last == 1.0), "{shares:?}");
    let computed = !shares.is_empty();
    Life { origin: ready.hint_origin, computed, extra_bytes: ready.extra_bytes }
}

fn simplepir() -> ServedTable {
    table("t", 60, 5, 1)
}

/// The only entry of a cache.
fn entry(cache: &Path) -> PathBuf {
    let entries: Vec<_> = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [entry] = &entries[..] else { panic!("one entry, not {entries:?}") };
    entry.clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_start_does_not_compute_again_unless_the_entry_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    let life = async || one_life(Some(&cache), simplepir()).await.summary();
    assert_eq!(life().await, (HintOrigin::Computed, true));
    assert_eq!(life().await, (HintOrigin::Cached, false));

    let entry = entry(&cache);
    let good = fs::read(&entry).unwrap();
    for damaged in [&good[..good.len() - 1], &good[..4096], b"something else", b""] {
        fs::write(&entry, damaged).unwrap();
        assert_eq!(life().await, (HintOrigin::Rebuilt, true));
        assert_eq!(life().await, (HintOrigin::Cached, false));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_server_keeps_is_read_back_or_computed_again_with_the_hint() {
    let dir = tempfile::tempdir().unwrap();
    let doublepir = || served_by(SchemeId::DoublePir, table("t", 300, 1, 1));
    let identity = doublepir().identity;
    let parameters = DoublePirParameters::new(&identity).unwrap();
    let (hint_len, kept_len) = (parameters.hint_bytes(), parameters.kept_bytes());
    let life = async || one_life(Some(dir.path()), doublepir()).await;

    let first = life().await;
    assert_eq!(first.summary(), (HintOrigin::Computed, true));
    let entry = entry(dir.path());
    let good = fs::read(&entry).unwrap();
    assert_eq!(good.len() as u64, 4096 + hint_len + kept_len);
    let second = life().await;
    assert_eq!(second.summary(), (HintOrigin::Cached, false));
    // In both lives the hint was served from the file: only the second matrix is in memory.
    for life in [&first, &second] {
        assert!((kept_len..hint_len).contains(&life.extra_bytes), "{life:?}");
    }

    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 0x40;
    fs::write(&entry, &flipped).unwrap();
    assert_eq!(life().await.summary(), (HintOrigin::Rebuilt, true));
    assert!(fs::read(&entry).unwrap() == good);
    assert_eq!(life().await.summary(), (HintOrigin::Cached, false));

    let in_memory = one_life(None, doublepir()).await;
    assert_eq!(in_memory.summary(), (HintOrigin::Computed, true));
    assert!(in_memory.extra_bytes >= kept_len + hint_len, "{in_memory:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_usable_cache_hints_stay_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a file");
    fs::write(&file, b"in the way").unwrap();
    for unusable in [&file, &file.join("below")] {
        let life = one_life(Some(unusable), simplepir()).await;
        assert_eq!(life.summary(), (HintOrigin::Computed, true));
    }
    assert_eq!(fs::read(&file).unwrap(), b"in the way");
}
