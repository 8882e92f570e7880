//! Restarts: ready from the cache, whatever state it is in.

use crate::common::*;
use privet_server::{HintOrigin, ServerConfig};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Starts a server with that cache, looks a few records up, and stops it. Returns where its hint came from, and whether it was being computed.
async fn one_life(cache: &Path) -> (HintOrigin, bool) {
    let computing = Arc::new(AtomicUsize::new(0));
    let heard = Arc::clone(&computing);
    let config = ServerConfig {
        cache_dir: Some(cache.to_owned()),
        progress: Some(Arc::new(move |progress| {
            assert_eq!(progress.table, "t");
            assert!((0.0..=1.0).contains(&progress.share));
            heard.fetch_add(1, Ordering::SeqCst);
        })),
        ..config()
    };
    let server = start(config, vec![table("t", 60, 5, 1)]).await;
    let origin = server.tables()[0].hint_origin;
    assert_eq!(
        metric(&server, &format!("privet_hints_total{{origin=\"{}\"}}", origin.name())).await,
        1.0
    );
    let mut stub = stub(&server).await;
    let mut client = TableClient::new(&mut stub, "t").await;
    for index in [0, 31, 59] {
        client.check(&mut stub, index).await;
    }
    drop(stub);
    server.shutdown();
    server.wait().await.unwrap();
    (origin, computing.load(Ordering::SeqCst) > 0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_start_does_not_compute_again_unless_the_entry_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    assert_eq!(one_life(&cache).await, (HintOrigin::Computed, true));
    assert_eq!(one_life(&cache).await, (HintOrigin::Cached, false));

    let entries: Vec<_> =
        fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [entry] = &entries[..] else { panic!("one entry, not {entries:?}") };
    let good = fs::read(entry).unwrap();
    for damaged in [&good[..good.len() - 1], &good[..4096], b"something else", b""] {
        fs::write(entry, damaged).unwrap();
        assert_eq!(one_life(&cache).await, (HintOrigin::Rebuilt, true));
        assert_eq!(one_life(&cache).await, (HintOrigin::Cached, false));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_usable_cache_hints_stay_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a file");
    fs::write(&file, b"in the way").unwrap();
    assert_eq!(one_life(&file).await, (HintOrigin::Computed, true));
    assert_eq!(one_life(&file.join("below")).await, (HintOrigin::Computed, true));
    assert_eq!(fs::read(&file).unwrap(), b"in the way");
}
