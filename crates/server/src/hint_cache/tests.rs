use super::*;
use privet_core::Blame;

fn key(byte: u8) -> CacheKey {
    CacheKey { table: TableId([7; 16]), scheme: SchemeId::SimplePir, digest: [byte; 32] }
}

fn hint() -> Vec<u8> {
    (0..10_000u32).flat_map(|word| word.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect()
}

fn kept() -> Vec<u8> {
    (0..3_000u32).flat_map(|word| word.wrapping_mul(0x85eb_ca6b).to_le_bytes()).collect()
}

const LENGTHS: PartLengths = PartLengths { hint: 40_000, kept: 12_000 };

fn lengths(hint: u64, kept: u64) -> PartLengths {
    PartLengths { hint, kept }
}

fn refusal(cache: &HintCache, key: &CacheKey, lengths: PartLengths) -> Error {
    cache.load(key, lengths).err().expect("the entry is refused")
}

#[test]
fn what_is_stored_is_found_again_by_the_next_process() {
    let dir = tempfile::tempdir().unwrap();
    let inside = dir.path().join("made/on/demand");
    let cache = HintCache::open(&inside).unwrap();
    assert!(cache.load(&key(1), LENGTHS).unwrap().is_none());
    cache.store(&key(1), &hint(), &kept()).unwrap();

    let found = HintCache::open(&inside).unwrap().load(&key(1), LENGTHS).unwrap().unwrap();
    assert_eq!(found.hint(), hint());
    assert_eq!(found.hint_digest(), *blake3::hash(&hint()).as_bytes());
    assert_eq!(found.kept(), kept());
    // Releasing does not remove it.
    found.release();
    assert_eq!((found.hint(), found.kept()), (&hint()[..], &kept()[..]));
    assert!(cache.load(&key(2), LENGTHS).unwrap().is_none());
}

#[test]
fn either_part_may_be_empty() {
    let dir = tempfile::tempdir().unwrap();
    let cache = HintCache::open(dir.path()).unwrap();
    cache.store(&key(1), &hint(), &[]).unwrap();
    let found = cache.load(&key(1), lengths(40_000, 0)).unwrap().unwrap();
    assert_eq!((found.hint(), found.kept()), (&hint()[..], &[][..]));
    cache.store(&key(2), &[], &kept()).unwrap();
    let found = cache.load(&key(2), lengths(0, 12_000)).unwrap().unwrap();
    assert_eq!((found.hint(), found.kept()), (&[][..], &kept()[..]));
    assert_eq!(found.hint_digest(), *blake3::hash(&[]).as_bytes());
}

#[test]
fn an_entry_is_replaced_as_a_whole_and_no_temporary_file_stays() {
    let dir = tempfile::tempdir().unwrap();
    let cache = HintCache::open(dir.path()).unwrap();
    cache.store(&key(1), &hint(), &kept()).unwrap();
    // A reader that has the old entry mapped keeps it.
    let before = cache.load(&key(1), LENGTHS).unwrap().unwrap();
    cache.store(&key(1), b"another", b"one").unwrap();
    assert_eq!((before.hint(), before.kept()), (&hint()[..], &kept()[..]));
    let after = cache.load(&key(1), lengths(7, 3)).unwrap().unwrap();
    assert_eq!((after.hint(), after.kept()), (&b"another"[..], &b"one"[..]));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn every_single_damaged_byte_of_the_header_and_of_both_parts_is_noticed() {
    let (hint, kept) = (&hint()[..100], &kept()[..60]);
    let good = [&header(&key(1), hint, kept)[..], hint, kept].concat();
    assert_eq!(good.len(), HEADER_LEN + 160);
    let found = verify(&good, &key(1), lengths(100, 60), &|_| ()).unwrap();
    assert_eq!(found, (hint, *blake3::hash(hint).as_bytes()));
    let mut bad = good.clone();
    for at in 0..good.len() {
        bad[at] ^= 0x20;
        let error = verify(&bad, &key(1), lengths(100, 60), &|_| ()).unwrap_err();
        assert_eq!(error.blame(), Blame::Corrupted, "byte {at}");
        bad[at] = good[at];
    }
}

/// The header after `change`, with a valid checksum: as in a file of another entry, or in a forged
/// one.
fn resealed(good: &[u8], change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut file = good.to_vec();
    change(&mut file[..SIGNED_LEN]);
    let seal = blake3::hash(&file[..SIGNED_LEN]);
    file[SIGNED_LEN..][..32].copy_from_slice(seal.as_bytes());
    file
}

#[test]
fn every_field_of_the_header_is_held_against_what_is_prescribed() {
    let (hint, kept) = (&hint()[..100], &kept()[..60]);
    let good = [&header(&key(1), hint, kept)[..], hint, kept].concat();
    verify(&resealed(&good, |_| ()), &key(1), lengths(100, 60), &|_| ()).unwrap();
    type Change = fn(&mut [u8]);
    let fields: [(&str, Change); 8] = [
        ("it is no cached hint", |header| header[0] ^= 1),
        ("written by another release", |header| header[8] = 2),
        ("its header is damaged", |header| header[12] = 1),
        ("belongs to another table", |header| header[16] ^= 1),
        ("99 bytes of hint and 60 of what", |header| header[48] = 99),
        ("the hint in it is damaged", |header| header[56] ^= 1),
        ("100 bytes of hint and 61 of what", |header| header[88] = 61),
        ("what the server keeps in it is damaged", |header| header[96] ^= 1),
    ];
    for (sentence, change) in fields {
        let error =
            verify(&resealed(&good, change), &key(1), lengths(100, 60), &|_| ()).unwrap_err();
        assert_eq!(error.blame(), Blame::Corrupted);
        assert!(error.to_string().contains(sentence), "{sentence:?} is not in: {error}");
    }
    // The bytes after the checksum are checked only for being zero.
    for at in [SIGNED_LEN + 32, HEADER_LEN - 1] {
        let mut file = good.clone();
        file[at] = 1;
        let error = verify(&file, &key(1), lengths(100, 60), &|_| ()).unwrap_err();
        assert!(error.to_string().contains("its header is damaged"), "{error}");
    }
}

#[test]
fn a_byte_that_moves_from_one_part_to_the_other_is_noticed() {
    let (hint, kept) = (&hint()[..100], &kept()[..60]);
    let good = [&header(&key(1), hint, kept)[..], hint, kept].concat();
    let moved = resealed(&good, |header| (header[48], header[88]) = (101, 59));
    let error = verify(&moved, &key(1), lengths(101, 59), &|_| ()).unwrap_err();
    assert!(error.to_string().contains("the hint in it is damaged"), "{error}");
    // Lengths whose sum overflows, or differs from the file's length.
    let endless = resealed(&good, |header| header[88..96].fill(255));
    let error = verify(&endless, &key(1), lengths(100, u64::MAX), &|_| ()).unwrap_err();
    assert!(error.to_string().contains("after its header it has 160 bytes"), "{error}");
}

#[test]
fn an_entry_of_the_format_before_is_another_releases() {
    // Version 1 had one part: its length, its digest, and the digest of the 88 bytes before.
    let hint = hint();
    let mut file = Vec::new();
    file.extend(MAGIC);
    file.extend(1u32.to_le_bytes());
    file.extend([0; 4]);
    file.extend([1; 32]);
    file.extend((hint.len() as u64).to_le_bytes());
    file.extend(blake3::hash(&hint).as_bytes());
    file.extend(blake3::hash(&file).as_bytes());
    file.resize(HEADER_LEN, 0);
    file.extend(&hint);

    let dir = tempfile::tempdir().unwrap();
    let cache = HintCache::open(dir.path()).unwrap();
    fs::write(cache.path(&key(1)), &file).unwrap();
    let error = refusal(&cache, &key(1), lengths(40_000, 0));
    assert_eq!(error.blame(), Blame::Corrupted);
    assert!(error.to_string().contains("it was written by another release"), "{error}");
    // It does not prevent storing.
    cache.store(&key(1), &hint, &[]).unwrap();
    cache.load(&key(1), lengths(40_000, 0)).unwrap().unwrap();
}

#[test]
fn an_entry_that_cannot_be_used_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let cache = HintCache::open(dir.path()).unwrap();
    let path = cache.path(&key(1));
    for (at, part) in [(HEADER_LEN + 7, "the hint"), (HEADER_LEN + 40_007, "the server keeps")] {
        cache.store(&key(1), &hint(), &kept()).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        bytes[at] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let error = refusal(&cache, &key(1), LENGTHS);
        assert_eq!(error.blame(), Blame::Corrupted);
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn every_truncation_and_every_trailing_byte_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let cache = HintCache::open(dir.path()).unwrap();
    cache.store(&key(1), &hint()[..100], &kept()[..60]).unwrap();
    let good = fs::read(cache.path(&key(1))).unwrap();
    // Around every boundary of the format, and beyond the end.
    let fields = [0, 8, 12, 16, 48, 56, 88, 96, 128, 160, HEADER_LEN];
    for boundary in fields.into_iter().chain([HEADER_LEN + 100, good.len()]) {
        for len in boundary.saturating_sub(1)..=boundary + 1 {
            if len == good.len() {
                continue;
            }
            let mut bad = good.clone();
            bad.resize(len, 0);
            fs::write(cache.path(&key(1)), &bad).unwrap();
            let error = refusal(&cache, &key(1), lengths(100, 60));
            assert_eq!(error.blame(), Blame::Corrupted, "{len} bytes");
        }
    }
}

#[test]
fn a_whole_entry_in_the_wrong_place_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let cache = HintCache::open(dir.path()).unwrap();
    cache.store(&key(1), &hint(), &kept()).unwrap();
    fs::rename(cache.path(&key(1)), cache.path(&key(2))).unwrap();
    let foreign = refusal(&cache, &key(2), LENGTHS);
    assert!(foreign.to_string().contains("belongs to another table"), "{foreign}");

    cache.store(&key(1), &hint(), &kept()).unwrap();
    for (prescribed, said) in [
        (lengths(40_004, 12_000), "40004 and 12000 are prescribed"),
        (lengths(40_000, 0), "40000 and 0 are prescribed"),
        // The same number of bytes in all, divided differently.
        (lengths(52_000, 0), "52000 and 0 are prescribed"),
    ] {
        let length = refusal(&cache, &key(1), prescribed).to_string();
        assert!(length.contains("40000 bytes of hint and 12000 of what the server"), "{length}");
        assert!(length.contains(said), "{length}");
    }

    fs::create_dir(cache.path(&key(3))).unwrap();
    assert_eq!(refusal(&cache, &key(3), lengths(1, 0)).blame(), Blame::Corrupted);
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
    assert_eq!(gone.store(&key(1), b"hint", b"").unwrap_err().blame(), Blame::Unavailable);
}

#[test]
fn files_of_crashed_writers_are_removed_and_those_of_writers_at_work_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let unfinished = dir.path().join(".privet-hint-abc");
    let foreign = dir.path().join("something-else");
    for path in [&unfinished, &foreign] {
        fs::write(path, b"part of a hint").unwrap();
    }
    let writer = File::open(dir.path()).unwrap();
    writer.lock_shared().unwrap();
    let cache = HintCache::open(dir.path()).unwrap();
    // Two may write at once.
    cache.store(&key(1), &hint(), &kept()).unwrap();
    assert!(unfinished.exists());
    drop(writer);
    HintCache::open(dir.path()).unwrap();
    assert!(!unfinished.exists() && foreign.exists());
    // Nobody writes while another removes.
    let remover = File::open(dir.path()).unwrap();
    remover.lock().unwrap();
    let (done, is_done) = std::sync::mpsc::channel();
    let writer = std::thread::spawn(move || {
        cache.store(&key(2), &hint(), &kept()).unwrap();
        done.send(()).unwrap();
    });
    assert!(is_done.recv_timeout(Duration::from_millis(200)).is_err());
    drop(remover);
    writer.join().unwrap();
}

#[test]
fn entries_of_other_versions_go_unless_somebody_uses_them() {
    let dir = tempfile::tempdir().unwrap();
    let cache = HintCache::open(dir.path()).unwrap();
    let elsewhere = CacheKey { table: TableId([8; 16]), ..key(4) };
    let otherwise = CacheKey { scheme: SchemeId::SimplePirPacked, ..key(5) };
    for key in [&key(1), &key(2), &key(3), &elsewhere, &otherwise] {
        cache.store(key, &hint(), &kept()).unwrap();
    }
    let in_use = HintCache::open(dir.path()).unwrap().load(&key(2), LENGTHS).unwrap().unwrap();
    cache.remove_other_versions(&key(3));
    let is_there = |key: &CacheKey| cache.path(key).exists();
    assert_eq!([1, 2, 3].map(|byte| is_there(&key(byte))), [false, true, true]);
    assert!(is_there(&elsewhere) && is_there(&otherwise));
    drop(in_use);
    cache.remove_other_versions(&key(3));
    assert!(!is_there(&key(2)) && is_there(&key(3)));
}

#[test]
fn entries_that_nobody_uses_go_when_they_are_old() {
    let dir = tempfile::tempdir().unwrap();
    let cache = HintCache::open(dir.path()).unwrap();
    let written = |byte, ago| {
        cache.store(&key(byte), &hint(), &kept()).unwrap();
        let file = File::options().write(true).open(cache.path(&key(byte))).unwrap();
        file.set_modified(SystemTime::now() - ago).unwrap();
    };
    written(1, UNUSED + Duration::from_secs(60));
    written(2, UNUSED + Duration::from_secs(60));
    written(3, UNUSED - Duration::from_secs(3600));
    let foreign = dir.path().join("of somebody else.hint");
    let file = File::create(&foreign).unwrap();
    file.set_modified(SystemTime::now() - UNUSED - Duration::from_secs(60)).unwrap();
    let in_use = cache.load(&key(1), LENGTHS).unwrap().unwrap();
    cache.remove_unused();
    let is_there = [1, 2, 3].map(|byte| cache.path(&key(byte)).exists());
    assert_eq!(is_there, [true, false, true]);
    assert!(foreign.exists());
    drop(in_use);
}

#[test]
fn an_entry_of_an_earlier_release_is_found_under_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let cache = HintCache::open(dir.path()).unwrap();
    cache.store(&key(1), &hint(), &kept()).unwrap();
    fs::rename(cache.path(&key(1)), dir.path().join(key(1).earlier_file_name())).unwrap();
    assert!(cache.load(&key(1), LENGTHS).unwrap().is_some());
    assert!(cache.path(&key(1)).exists());
}
