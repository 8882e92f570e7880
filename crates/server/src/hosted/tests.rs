use super::*;
use privet_core::{Epoch, TableDigest};
use privet_kernels::Kernels;
use privet_schemes::SchemeId;
use std::cell::Cell;
use std::fs;

fn identity(records: u64, record_len: u64) -> TableIdentity {
    TableIdentity {
        id: TableId([3; 16]),
        epoch: Epoch(1),
        digest: TableDigest([4; 32]),
        shape: privet_core::TableShape::new(records, record_len).unwrap(),
    }
}

fn server(identity: TableIdentity) -> Box<dyn ErasedServer> {
    let records: Vec<u8> = (0..identity.shape.bytes()).map(|number| (number * 31) as u8).collect();
    let options = ServerOptions { kernels: Kernels::detect(), threads: 1 };
    registry::server(SchemeId::SimplePir, TableView::new(identity, &records).unwrap(), options)
        .unwrap()
}

/// Obtains the hint; returns it, where it came from, and how often it was computed.
fn obtain(
    server: &dyn ErasedServer,
    identity: &TableIdentity,
    cache: Option<&HintCache>,
) -> (Bytes, HintOrigin, u32) {
    let computed = Cell::new(0);
    let precompute = || {
        computed.set(computed.get() + 1);
        server.precompute(&|_| {})
    };
    let hint = obtain_hint("test", server.plan(), identity, cache, precompute).unwrap().unwrap();
    let bytes = hint.part.copy(0, usize::MAX);
    assert_eq!(hint.digest, *blake3::hash(&bytes).as_bytes());
    (bytes, hint.origin, computed.get())
}

#[test]
fn a_hint_is_computed_once_and_again_only_when_its_entry_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let cache = HintCache::open(dir.path()).unwrap();
    let identity = identity(40, 3);
    let server = server(identity);
    let (expected, origin, computed) = obtain(&*server, &identity, None);
    assert_eq!((origin, computed), (HintOrigin::Computed, 1));

    assert_eq!(
        obtain(&*server, &identity, Some(&cache)),
        (expected.clone(), HintOrigin::Computed, 1)
    );
    assert_eq!(
        obtain(&*server, &identity, Some(&cache)),
        (expected.clone(), HintOrigin::Cached, 0)
    );

    let path = cache.path(&CacheKey::new(server.plan(), &identity));
    let good = fs::read(&path).unwrap();
    for boundary in [0, 8, 12, 16, 48, 56, 88, 120, 4096, good.len() - 1] {
        let mut flipped = good.clone();
        flipped[boundary] ^= 1;
        for damaged in [&flipped[..], &good[..boundary]] {
            fs::write(&path, damaged).unwrap();
            assert_eq!(
                obtain(&*server, &identity, Some(&cache)),
                (expected.clone(), HintOrigin::Rebuilt, 1)
            );
            // The damaged entry was replaced by a whole one.
            assert_eq!(
                obtain(&*server, &identity, Some(&cache)),
                (expected.clone(), HintOrigin::Cached, 0)
            );
        }
    }
}

#[test]
fn a_table_whose_contents_changed_does_not_find_the_old_hint() {
    let dir = tempfile::tempdir().unwrap();
    let cache = HintCache::open(dir.path()).unwrap();
    let identity = identity(40, 3);
    let server = server(identity);
    obtain(&*server, &identity, Some(&cache));
    for other in [
        TableIdentity { digest: TableDigest([5; 32]), ..identity },
        TableIdentity { epoch: Epoch(2), ..identity },
        TableIdentity { id: TableId([9; 16]), ..identity },
    ] {
        assert_eq!(obtain(&*server, &other, Some(&cache)).1, HintOrigin::Computed);
    }
    assert_eq!(obtain(&*server, &identity, Some(&cache)).1, HintOrigin::Cached);
}

#[test]
fn a_cache_that_cannot_be_written_costs_nothing_but_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let gone = dir.path().join("gone");
    let cache = HintCache::open(&gone).unwrap();
    fs::remove_dir(&gone).unwrap();
    let identity = identity(40, 3);
    let server = server(identity);
    let (expected, ..) = obtain(&*server, &identity, None);
    assert_eq!(obtain(&*server, &identity, Some(&cache)), (expected, HintOrigin::Computed, 1));
}

#[test]
fn parts_are_copied_piece_by_piece_and_never_beyond_their_end() {
    let part = Part::Memory(Arc::from(*b"0123456789"));
    assert_eq!(part.len(), 10);
    assert_eq!(&part.copy(0, 4)[..], b"0123");
    assert_eq!(&part.copy(8, 4)[..], b"89");
    assert!(part.copy(10, 4).is_empty());
    assert!(part.copy(u64::MAX, usize::MAX).is_empty());
}
