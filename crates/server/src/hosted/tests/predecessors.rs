//! Versions that are damaged when the next one is made: nothing that is made from the damage is
//! served.
//!
//! The next version gets digests of its own. So anything made from a damaged one would count as
//! whole from then on.

use super::*;
use crate::scrub::tests::{
    ANSWERING, Holding, flip, is_known, is_served, next, table, tables, version,
};
use crate::{RunningServer, Server, ServerConfig};
use privet_core::{Blame, Epoch, Result};
use privet_laboratory::{FINITE_DIFFERENCES, FINITE_DIFFERENCES_MANY};
use privet_schemes::SchemeId;
use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

/// The data behind answers has a digest, and no scrub reads it before the test has ended.
fn config(cache: Option<&Path>) -> ServerConfig {
    ServerConfig {
        scrub_rate: 1,
        scrub_interval: Duration::from_secs(3600),
        cache_dir: cache.map(Path::to_owned),
        ..crate::scrub::tests::config()
    }
}

async fn started(scheme: SchemeId, cache: Option<&Path>) -> RunningServer {
    Server::start(config(cache), vec![table("t", 1, scheme)]).await.unwrap()
}

async fn updated(server: &RunningServer, scheme: SchemeId) -> Result<Arc<Version>> {
    server.update("t", next(&table("t", 1, scheme))).await?;
    Ok(version(&tables(server), "t"))
}

/// Everything that a version answers from, and that clients fetch of it.
fn contents(version: &Version) -> Vec<Vec<u8>> {
    let mut contents: Vec<_> = version.server.held().into_iter().map(<[u8]>::to_vec).collect();
    let kinds = [PartKind::Layout, PartKind::Hint, PartKind::Table];
    let parts = kinds.into_iter().filter_map(|kind| version.part(kind));
    contents.extend(parts.map(|part| part.copy(0, usize::MAX).unwrap().to_vec()));
    contents
}

/// Checks that the update is refused, and that the service of the table has ended with it.
fn ended(server: &RunningServer, refused: &privet_core::Error) {
    assert_eq!(refused.blame(), Blame::Unavailable, "{refused}");
    assert!(refused.message().contains("has found its copy damaged"), "{refused}");
    let tables = tables(server);
    let before = version(&tables, "t");
    assert_eq!(before.identity.epoch, Epoch(0));
    is_served(&tables, &before).unwrap_err();
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_server_has_no_damaged_successor() {
    privet_laboratory::register();
    let mut refusals = Vec::new();
    for scheme in ANSWERING {
        let whole = started(scheme, None).await;
        let expected = contents(&updated(&whole, scheme).await.unwrap());

        let bent = started(scheme, None).await;
        let before = version(&tables(&bent), "t");
        is_known(&before).await;
        let held = before.server.held();
        let (start, len) = (held[0].as_ptr().addr(), held[0].len());
        // Not in the record that changes.
        flip(start + len / 2);
        match updated(&bent, scheme).await {
            Ok(after) => assert_eq!(contents(&after), expected, "{scheme}"),
            Err(refused) => {
                ended(&bent, &refused);
                refusals.push(scheme);
            }
        }
    }
    // All others make the server anew, from the records.
    let of_the_one_before = [SchemeId::TapirMerkle, FINITE_DIFFERENCES, FINITE_DIFFERENCES_MANY];
    assert_eq!(refusals, of_the_one_before);
}

/// A patched hint is made from the earlier one, in memory or in a file.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_hint_is_not_patched() {
    let scheme = SchemeId::SimplePir;
    let in_memory = started(scheme, None).await;
    let before = version(&tables(&in_memory), "t");
    let Some(Part::Computed(words)) = before.hint.as_deref() else { panic!("a hint in memory") };
    let Cow::Borrowed(bytes) = words.as_bytes() else { panic!("lies as it is sent") };
    flip(bytes.as_ptr().addr() + bytes.len() / 2);
    ended(&in_memory, &updated(&in_memory, scheme).await.err().unwrap());

    // In a file that another program writes to.
    let directory = tempfile::tempdir().unwrap();
    let in_file = started(scheme, Some(directory.path())).await;
    let before = version(&tables(&in_file), "t");
    let Some(Part::Cached(entry)) = before.hint.as_deref() else { panic!("a hint in a file") };
    let mut bytes = std::fs::read(entry.file()).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(entry.file(), bytes).unwrap();
    // Found now, or a moment before by the check of files.
    updated(&in_file, scheme).await.err().unwrap();
    assert_eq!(version(&tables(&in_file), "t").identity.epoch, Epoch(0));
    is_served(&tables(&in_file), &before).unwrap_err();

    // So it is the damage that causes the refusal.
    let whole = started(scheme, None).await;
    let after = updated(&whole, scheme).await.unwrap();
    assert_eq!(after.origin, HintOrigin::Patched);
}

/// More than is read at a time, and not a multiple of that.
#[cfg(target_os = "linux")]
#[test]
fn any_number_of_threads_finds_the_damage() {
    let table = table("t", 1, SchemeId::Dpf);
    let memory: Vec<u8> = (0..(17 << 20) + 3).map(|at: u32| (at % 251) as u8).collect();
    let server = Holding { plan: table.plan().unwrap(), memory: Some(memory) };
    let tables = HostedTables::of_checked("t", table.identity, Arc::new(server));
    let version = version(&tables, "t");
    let held = version.server.held();
    for threads in [0, 1, 2, 5] {
        version.check_held(threads).unwrap();
        for at in [0, held[0].len() / 2, held[0].len() - 1] {
            flip(held[0].as_ptr().addr() + at);
            let refused = version.check_held(threads).unwrap_err();
            assert_eq!(refused.blame(), Blame::Corrupted, "{threads} threads");
            flip(held[0].as_ptr().addr() + at);
        }
    }
}
