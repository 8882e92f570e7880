use super::*;
use privet_core::Blame;

fn key(byte: u8) -> CacheKey {
    CacheKey([byte; 32])
}

fn hint() -> Vec<u8> {
    (0..10_000u32).flat_map(|word| word.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect()
}

fn refusal(cache: &HintCache, key: &CacheKey, len: u64) -> Error {
    cache.load(key, len).err().expect("the entry is refused")
}

#[test]
fn what_is_stored_is_found_again_by_the_next_process() {
    let dir = tempfile::tempdir().unwrap();
    let inside = dir.path().join("made/on/demand");
    let cache = HintCache::open(&inside).unwrap();
    assert!(cache.load(&key(1), 40_000).unwrap().is_none());
    cache.store(&key(1), &hint()).unwrap();

    let found = HintCache::open(&inside).unwrap().load(&key(1), 40_000).unwrap().unwrap();
    assert_eq!(found.as_slice(), hint());
    assert_eq!(found.digest(), *blake3::hash(&hint()).as_bytes());
    assert!(cache.load(&key(2), 40_000).unwrap().is_none());
}

#[test]
fn an_entry_is_replaced_as_a_whole_and_no_temporary_file_stays() {
    let dir = tempfile::tempdir().unwrap();
    let cache = HintCache::open(dir.path()).unwrap();
    cache.store(&key(1), &hint()).unwrap();
    // A reader that has the old entry mapped keeps it.
    let before = cache.load(&key(1), 40_000).unwrap().unwrap();
    cache.store(&key(1), b"another").unwrap();
    assert_eq!(before.as_slice(), hint());
    assert_eq!(cache.load(&key(1), 7).unwrap().unwrap().as_slice(), b"another");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn every_single_damaged_byte_of_the_header_and_of_the_hint_is_noticed() {
    let hint = &hint()[..100];
    let good = [&header(&key(1), hint)[..], hint].concat();
    assert_eq!(good.len(), HEADER_LEN + 100);
    assert_eq!(verify(&good, &key(1), 100).unwrap(), *blake3::hash(hint).as_bytes());
    let mut bad = good.clone();
    for at in 0..good.len() {
        bad[at] ^= 0x20;
        assert_eq!(verify(&bad, &key(1), 100).unwrap_err().blame(), Blame::Corrupted, "byte {at}");
        bad[at] = good[at];
    }
}

#[test]
fn an_entry_that_cannot_be_used_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let cache = HintCache::open(dir.path()).unwrap();
    cache.store(&key(1), &hint()).unwrap();
    let path = cache.path(&key(1));
    let mut bytes = fs::read(&path).unwrap();
    bytes[HEADER_LEN + 7] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let error = refusal(&cache, &key(1), 40_000);
    assert_eq!(error.blame(), Blame::Corrupted);
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
}

#[test]
fn every_truncation_and_every_trailing_byte_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let cache = HintCache::open(dir.path()).unwrap();
    let hint = &hint()[..100];
    cache.store(&key(1), hint).unwrap();
    let good = fs::read(cache.path(&key(1))).unwrap();
    // Around every boundary of the format, and beyond the end.
    for boundary in [0, 8, 12, 16, 48, 56, 88, 120, HEADER_LEN, good.len()] {
        for len in boundary.saturating_sub(1)..=boundary + 1 {
            if len == good.len() {
                continue;
            }
            let mut bad = good.clone();
            bad.resize(len, 0);
            fs::write(cache.path(&key(1)), &bad).unwrap();
            assert_eq!(refusal(&cache, &key(1), 100).blame(), Blame::Corrupted, "{len} bytes");
        }
    }
}

#[test]
fn a_whole_entry_in_the_wrong_place_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let cache = HintCache::open(dir.path()).unwrap();
    cache.store(&key(1), &hint()).unwrap();
    fs::rename(cache.path(&key(1)), cache.path(&key(2))).unwrap();
    let foreign = refusal(&cache, &key(2), 40_000);
    assert!(foreign.to_string().contains("belongs to another table"), "{foreign}");

    cache.store(&key(1), &hint()).unwrap();
    let length = refusal(&cache, &key(1), 40_004);
    assert!(length.to_string().contains("40000 bytes of hint, 40004 are prescribed"), "{length}");

    fs::create_dir(cache.path(&key(3))).unwrap();
    assert_eq!(refusal(&cache, &key(3), 1).blame(), Blame::Corrupted);
}

#[test]
fn a_directory_that_cannot_be_used_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, b"").unwrap();
    let error = HintCache::open(&file).err().expect("a file is no directory");
    assert_eq!(error.blame(), Blame::Unavailable);
    assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
    let gone = HintCache::open(&dir.path().join("gone")).unwrap();
    fs::remove_dir(dir.path().join("gone")).unwrap();
    assert_eq!(gone.store(&key(1), b"hint").unwrap_err().blame(), Blame::Unavailable);
}

#[test]
fn files_of_crashed_writers_are_removed_and_those_of_writers_at_work_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let leftover = dir.path().join(".privet-hint-abc");
    let at_work = dir.path().join(".privet-hint-def");
    let foreign = dir.path().join("something-else");
    let two_days_ago = SystemTime::now() - Duration::from_secs(48 * 3600);
    for path in [&leftover, &at_work, &foreign] {
        fs::write(path, b"part of a hint").unwrap();
    }
    for path in [&leftover, &foreign] {
        File::options().write(true).open(path).unwrap().set_modified(two_days_ago).unwrap();
    }
    HintCache::open(dir.path()).unwrap();
    assert!(!leftover.exists());
    assert!(at_work.exists() && foreign.exists());
}
