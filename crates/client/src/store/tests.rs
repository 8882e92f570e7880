//! Crashes at every moment, damage at every byte, two writers, and pins.

mod crashes;
mod erased_hints;
mod following;
mod left;

use super::*;
use erased_hints::used_hints_in;
use privet_core::{Epoch, TableDigest, TableIdentity, TableShape};
use privet_schemes::SchemeId;
use privet_schemes::contract::{ReservationId, Reserved};
use privet_schemes::offline::{Download, StreamConsumer};
use privet_schemes::reservation::Reservation;
use privet_table::update_log::{EpochHash, PublisherId};
use privet_wire::PartDescription;

/// Small chunks, so that a part of a few hundred bytes has every boundary there is.
const CHUNK_LEN: u32 = 16;

fn identity(id: u8, epoch: u64) -> TableIdentity {
    let shape = TableShape::new(3, 5).unwrap();
    TableIdentity {
        id: TableId([id; 16]),
        epoch: Epoch(epoch),
        digest: TableDigest([9; 32]),
        shape,
    }
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 256) as u8).collect()
}

fn part_of(bytes: &[u8], kind: PartKind) -> PartKey {
    let digest = *blake3::hash(bytes).as_bytes();
    PartKey { table: identity(1, 0), kind, len: bytes.len() as u64, digest }
}

impl Store {
    pub(super) fn table_directory(&self, table: TableId) -> PathBuf {
        self.tables.path(&table.to_string())
    }

    pub(super) fn part_path(&self, part: &PartKey, extension: &str) -> PathBuf {
        self.table_directory(part.table.id).join(part_file_name(part, extension))
    }

    pub(super) fn pin_path(&self, server: &str) -> PathBuf {
        self.pins.path(&pin_file_name(server))
    }
}

pub(super) fn store(root: &Path) -> Store {
    let mut store = Store::open(root).unwrap();
    store.chunk_len = CHUNK_LEN;
    store
}

fn partial(opened: Opened) -> Download {
    match opened {
        Opened::Have { part: PartState::Partial(download), .. } => *download,
        Opened::Have { .. } => panic!("complete already"),
        Opened::Busy { .. } => panic!("busy"),
    }
}

fn complete(opened: Opened) -> Arc<dyn HintSource> {
    match opened {
        Opened::Have { part: PartState::Complete(source), .. } => source,
        Opened::Have { .. } => panic!("not complete"),
        Opened::Busy { .. } => panic!("busy"),
    }
}

fn notice(opened: &Opened) -> Option<&str> {
    match opened {
        Opened::Have { notice, .. } => notice.as_deref(),
        Opened::Busy { .. } => panic!("busy"),
    }
}

/// Appends the missing bytes in pieces of `step` bytes, as a session would, and completes the part.
fn finish(
    store: &mut Store,
    part: &PartKey,
    mut download: Download,
    bytes: &[u8],
    step: usize,
) -> Arc<dyn HintSource> {
    let from = download.next_offset() as usize;
    for (k, piece) in bytes[from..].chunks(step).enumerate() {
        let offset = (from + k * step) as u64;
        download.absorb(offset, piece).unwrap();
        store.append(part, offset, piece).unwrap();
    }
    download.finish().unwrap();
    store.complete(part).unwrap()
}

fn contents(source: &dyn HintSource) -> Result<Vec<u8>> {
    let mut out = vec![0; source.len() as usize];
    source.read_at(0, &mut out)?;
    Ok(out)
}

pub(super) fn pin(table: u8, epoch: u64) -> Pin {
    Pin {
        table: identity(table, epoch),
        parameter_digest: [4; 32],
        layout: PartDescription { len: 7, digest: [5; 32] },
        hint: None,
        publisher: None,
        last_epoch: None,
        next_key: None,
        first_publisher: None,
        scheme: None,
    }
}

#[test]
fn a_part_comes_back_whole_and_in_pieces_whatever_its_length() {
    for len in [0, 1, 15, 16, 17, 31, 32, 33, 100] {
        let (directory, bytes) = (tempfile::tempdir().unwrap(), bytes(len));
        let part = part_of(&bytes, PartKind::Hint);
        let mut store = store(directory.path());
        let download = partial(store.open(&part).unwrap());
        let source = finish(&mut store, &part, download, &bytes, 7);
        assert_eq!(contents(&*source).unwrap(), bytes);

        let again = complete(super::tests::store(directory.path()).open(&part).unwrap());
        for start in 0..=len {
            for end in start..=len {
                let mut out = vec![0; end - start];
                again.read_at(start as u64, &mut out).unwrap();
                assert_eq!(out, bytes[start..end], "{start}..{end} of {len}");
            }
        }
        assert_eq!(again.read_at(1, &mut vec![0; len]).unwrap_err().blame(), Blame::Corrupted);
        assert_eq!(again.read_at(u64::MAX, &mut [0]).unwrap_err().blame(), Blame::Corrupted);
    }
}

/// A kill leaves the file up to some byte. Whichever byte that is, the download goes on and ends
/// right.
#[test]
fn a_download_survives_a_kill_at_every_byte() {
    let bytes = bytes(100);
    let part = part_of(&bytes, PartKind::Hint);
    let directory = tempfile::tempdir().unwrap();
    let whole = {
        let mut store = store(directory.path());
        let download = partial(store.open(&part).unwrap());
        drop(download);
        store.append(&part, 0, &bytes).unwrap();
        std::fs::read(store.part_path(&part, "partial")).unwrap()
    };
    let stride = CHUNK_LEN as usize + 16;
    for cut in 0..=whole.len() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = store(directory.path());
        let path = store.part_path(&part, "partial");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &whole[..cut]).unwrap();

        let download = partial(store.open(&part).unwrap());
        let whole_chunks = cut.saturating_sub(104) / stride;
        let due = if cut == whole.len() { 100 } else { whole_chunks * CHUNK_LEN as usize };
        assert_eq!(download.next_offset(), due as u64, "cut at {cut}");
        let source = finish(&mut store, &part, download, &bytes, 11);
        assert_eq!(contents(&*source).unwrap(), bytes, "cut at {cut}");
        assert!(!path.exists());
    }
}

/// After a power failure, pages of the tail may hold anything: chunks that fail their check are cut
/// off, earlier ones are kept.
#[test]
fn a_partial_file_with_a_flipped_bit_anywhere_is_cut_back_and_finished() {
    let bytes = bytes(70);
    let part = part_of(&bytes, PartKind::Hint);
    let origin = tempfile::tempdir().unwrap();
    let mut origin_store = store(origin.path());
    drop(origin_store.open(&part).unwrap());
    origin_store.append(&part, 0, &bytes).unwrap();
    let whole = std::fs::read(origin_store.part_path(&part, "partial")).unwrap();
    for at in 0..whole.len() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = store(directory.path());
        let path = store.part_path(&part, "partial");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        std::fs::write(&path, &damaged).unwrap();
        let download = partial(store.open(&part).unwrap());
        let intact = at.saturating_sub(104) / (CHUNK_LEN as usize + 16) * CHUNK_LEN as usize;
        assert_eq!(download.next_offset(), intact as u64, "flipped at {at}");
        let source = finish(&mut store, &part, download, &bytes, 70);
        assert_eq!(contents(&*source).unwrap(), bytes, "flipped at {at}");
    }
}

/// A complete file never yields a wrong byte: damage shows when it is opened (header, size) or when
/// the chunk is read, and the part is fetched again.
#[test]
fn a_complete_file_damaged_anywhere_is_noticed_and_fetched_again() {
    let bytes = bytes(70);
    let part = part_of(&bytes, PartKind::Hint);
    let origin = tempfile::tempdir().unwrap();
    let mut origin_store = store(origin.path());
    let download = partial(origin_store.open(&part).unwrap());
    finish(&mut origin_store, &part, download, &bytes, 70);
    let whole = std::fs::read(origin_store.part_path(&part, "part")).unwrap();

    let flipped = (0..whole.len()).map(|at| {
        let mut file = whole.clone();
        file[at] ^= 1;
        file
    });
    let cut = (0..whole.len()).map(|len| whole[..len].to_vec());
    let longer = std::iter::once([&whole[..], &[0]].concat());
    for file in flipped.chain(cut).chain(longer) {
        let directory = tempfile::tempdir().unwrap();
        let mut store = store(directory.path());
        let path = store.part_path(&part, "part");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &file).unwrap();
        let opened = store.open(&part).unwrap();
        let notice = notice(&opened).expect("the user hears of it");
        assert!(notice.contains(path.to_str().unwrap()), "{notice} names the file");
        let download = partial(opened);
        assert_eq!(download.next_offset(), 0);
        let source = finish(&mut store, &part, download, &bytes, 9);
        assert_eq!(contents(&*source).unwrap(), bytes);
    }
}

/// A complete, undamaged part of kind `kind`, and its file.
fn stored(store: &mut Store, bytes: &[u8], kind: PartKind) -> (PartKey, PathBuf) {
    let part = part_of(bytes, kind);
    let download = partial(store.open(&part).unwrap());
    finish(store, &part, download, bytes, 30);
    let path = store.part_path(&part, "part");
    (part, path)
}

/// Flips a bit of byte `at` in place, so that a process that has the file open sees it.
fn flip(path: &Path, at: usize) {
    let mut file = std::fs::read(path).unwrap();
    file[at] ^= 1;
    std::fs::write(path, file).unwrap();
}

/// Damage is found before anything is read, and whatever will be read.
#[test]
fn a_part_that_is_damaged_anywhere_is_noticed_when_it_is_opened() {
    for kind in [PartKind::Hint, PartKind::Table] {
        let (directory, bytes) = (tempfile::tempdir().unwrap(), bytes(70));
        let mut store = store(directory.path());
        let (part, path) = stored(&mut store, &bytes, kind);
        for at in 0..std::fs::metadata(&path).unwrap().len() as usize {
            flip(&path, at);
            let opened = store.open(&part).unwrap();
            let notice = notice(&opened).unwrap();
            assert!(notice.starts_with(path.to_str().unwrap()), "{notice}");
            assert!(notice.ends_with(&format!("; the {kind} will be fetched again")), "{notice}");
            let download = partial(opened);
            assert_eq!(download.next_offset(), 0, "flipped at {at}");
            let source = finish(&mut store, &part, download, &bytes, 9);
            assert_eq!(contents(&*source).unwrap(), bytes);
            assert_eq!(contents(&*complete(store.open(&part).unwrap())).unwrap(), bytes);
        }
    }
}

#[test]
fn a_part_damaged_while_it_is_open_fails_what_reads_it_and_keeps_its_name() {
    for kind in [PartKind::Hint, PartKind::Table] {
        let (directory, bytes) = (tempfile::tempdir().unwrap(), bytes(160));
        let mut store = store(directory.path());
        let (part, path) = stored(&mut store, &bytes, kind);
        let source = complete(store.open(&part).unwrap());
        flip(&path, 104 + 5 * 32);
        let mut out = [0; 16];
        source.read_at(4 * 16, &mut out).unwrap();
        for _ in 0..2 {
            assert_eq!(source.read_at(5 * 16, &mut out).unwrap_err().blame(), Blame::Corrupted);
        }
        // Reading checks only the chunks that it touches.
        assert_eq!(source.read_at(4 * 16 + 1, &mut out).unwrap_err().blame(), Blame::Corrupted);
        source.read_at(6 * 16, &mut out).unwrap();
        assert!(path.exists());
        // Whatever this session read, the next one finds the damage.
        partial(super::tests::store(directory.path()).open(&part).unwrap());
    }
}

#[test]
fn chunks_out_of_place_or_from_another_file_do_not_pass() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(directory.path());
    let mut write = |bytes: &[u8]| {
        let part = part_of(bytes, PartKind::Hint);
        let download = partial(store.open(&part).unwrap());
        finish(&mut store, &part, download, bytes, bytes.len());
        (store.part_path(&part, "part"), part)
    };
    let (path, part) = write(&bytes(48));
    let (other_path, _) = write(&bytes(64)[16..]);
    let (whole, other) = (std::fs::read(&path).unwrap(), std::fs::read(other_path).unwrap());
    let swapped = [&whole[..104], &whole[136..168], &whole[104..136], &whole[168..]].concat();
    let foreign = [&whole[..104], &other[104..136], &whole[136..]].concat();
    for file in [swapped, foreign] {
        std::fs::write(&path, file).unwrap();
        let folder = Directory::existing(path.parent().unwrap());
        let name = part_file_name(&part, COMPLETE);
        let error = CompletePart::open(&folder, &name, &part).err().unwrap();
        assert_eq!(error.blame(), Blame::Corrupted);
    }
}

#[test]
fn a_second_writer_waits_and_readers_do_not() {
    let (bytes, other) = (bytes(64), bytes(40));
    let (part, second_part) = (part_of(&bytes, PartKind::Layout), part_of(&other, PartKind::Hint));
    let directory = tempfile::tempdir().unwrap();
    let (mut first, mut second) = (store(directory.path()), store(directory.path()));
    let download = partial(first.open(&part).unwrap());
    first.append(&part, 0, &bytes[..40]).unwrap();
    let Opened::Busy { done } = second.open(&part).unwrap() else { panic!("two writers") };
    assert_eq!(done, 104 + 2 * 32, "header and two chunks");
    let mut download = download;
    download.absorb(0, &bytes[..40]).unwrap();
    finish(&mut first, &part, download, &bytes, 24);

    assert_eq!(contents(&*complete(second.open(&part).unwrap())).unwrap(), bytes);
    // A download of something else does not make readers wait.
    drop(first.open(&second_part).unwrap());
    assert_eq!(contents(&*complete(second.open(&part).unwrap())).unwrap(), bytes);
    assert!(matches!(second.open(&second_part).unwrap(), Opened::Busy { .. }));
    // A writer that dies gives up its lock.
    drop(first);
    partial(second.open(&second_part).unwrap());
}

#[test]
fn a_part_is_not_complete_before_its_last_byte() {
    let bytes = bytes(64);
    let part = part_of(&bytes, PartKind::Hint);
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(directory.path());
    drop(store.open(&part).unwrap());
    store.append(&part, 0, &bytes[..63]).unwrap();
    assert_eq!(store.append(&part, 0, &bytes[..1]).unwrap_err().blame(), Blame::ApiMisuse);
    assert_eq!(store.append(&part, 63, &bytes[..2]).unwrap_err().blame(), Blame::ApiMisuse);
    assert_eq!(store.complete(&part).err().unwrap().blame(), Blame::ApiMisuse);
    assert_eq!(partial(store.open(&part).unwrap()).next_offset(), 48);
}

#[test]
fn a_discarded_part_leaves_nothing() {
    let bytes = bytes(64);
    let part = part_of(&bytes, PartKind::Hint);
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(directory.path());
    drop(store.open(&part).unwrap());
    store.append(&part, 0, &bytes).unwrap();
    store.discard(&part).unwrap();
    assert_eq!(partial(store.open(&part).unwrap()).next_offset(), 0);
}

#[test]
fn pins_are_kept_per_server_and_name_and_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(directory.path());
    assert_eq!(store.pins("http://a").unwrap(), []);
    store.pin("http://a", "one", &pin(1, 0)).unwrap();
    store.pin("http://a", "two", &pin(2, 0)).unwrap();
    store.pin("http://b", "one", &pin(1, 0)).unwrap();
    store.pin("http://a", "one", &pin(1, 7)).unwrap();
    let mut pins = super::tests::store(directory.path()).pins("http://a").unwrap();
    pins.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(pins, [("one".to_owned(), pin(1, 7)), ("two".to_owned(), pin(2, 0))]);
    assert_eq!(store.pins("http://b").unwrap(), [("one".to_owned(), pin(1, 0))]);
}

/// Two clients that begin at once, and are shown different tables, do not both pin them.
#[test]
fn a_pin_that_nobody_compared_is_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let (mut one, mut other) = (store(directory.path()), store(directory.path()));
    for store in [&mut one, &mut other] {
        assert_eq!(store.pins("http://a").unwrap(), []);
    }
    one.pin("http://a", "t", &pin(1, 0)).unwrap();
    other.pin("http://a", "t", &pin(1, 0)).unwrap();
    one.pin("http://a", "t", &pin(2, 0)).unwrap();
    for _ in 0..2 {
        let refused = other.pin("http://a", "t", &pin(3, 0)).unwrap_err();
        assert_eq!(refused.blame(), Blame::Integrity);
    }
    assert_eq!(store(directory.path()).pins("http://a").unwrap(), [("t".to_owned(), pin(2, 0))]);
    // A client that has read it, or whose user accepts any table, may replace it.
    other.pins("http://a").unwrap();
    other.pin("http://a", "t", &pin(3, 0)).unwrap();
    let mut accepting = store(directory.path()).replacing_damaged_pins(true);
    accepting.pin("http://a", "t", &pin(4, 0)).unwrap();
}

/// As above, but the server tells the second client another name of the table.
#[test]
fn a_pin_that_nobody_compared_counts_under_another_name() {
    let of = |epoch, publisher| Pin { publisher, ..pin(1, epoch) };
    let (own, others) = (Some(PublisherId([1; 32])), Some(PublisherId([2; 32])));
    let first = of(5, own);
    let contents = |digest| TableIdentity { digest: TableDigest([digest; 32]), ..first.table };
    let contradicting = [
        ("other contents", Pin { table: contents(77), ..first }),
        ("another layout", Pin { layout: PartDescription { len: 8, ..first.layout }, ..first }),
        ("another scheme", Pin { parameter_digest: [5; 32], ..first }),
        ("another publisher", of(5, others)),
        ("an older version of nobody", of(4, None)),
        ("a later version of nobody", of(6, None)),
        ("an older version of another publisher", of(4, others)),
        ("a later version of another publisher", of(6, others)),
        (
            "one to which another publisher's updates led",
            Pin { last_epoch: Some(EpochHash([6; 32])), ..of(6, others) },
        ),
        (
            "one to which keys have changed from another publisher's",
            Pin { first_publisher: Some(PublisherId([3; 32])), ..of(6, others) },
        ),
    ];
    for (what, second) in contradicting {
        let directory = tempfile::tempdir().unwrap();
        let (mut one, mut other) = (store(directory.path()), store(directory.path()));
        for store in [&mut one, &mut other] {
            assert_eq!(store.pins("http://a").unwrap(), []);
        }
        one.pin("http://a", "t", &first).unwrap();
        // A pin of another table in between makes no difference.
        other.pin("http://a", "v", &pin(2, 0)).unwrap();
        for _ in 0..2 {
            let refused = other.pin("http://a", "u", &second).unwrap_err();
            assert_eq!(refused.blame(), Blame::Integrity, "{what}: {refused}");
        }
        let pins = store(directory.path()).pins("http://a").unwrap();
        assert_eq!(pins, [("t".to_owned(), first), ("v".to_owned(), pin(2, 0))], "{what}");
        // At another server, or if the user accepts any table.
        other.pin("http://b", "u", &second).unwrap();
        let mut accepting = store(directory.path()).replacing_damaged_pins(true);
        accepting.pin("http://a", "u", &second).unwrap();
    }
}

#[test]
fn two_processes_may_see_versions_of_one_table_that_follow_one_another() {
    let of = |epoch| Pin { publisher: Some(PublisherId([1; 32])), ..pin(1, epoch) };
    // The versions that each sees, and the one that stays pinned.
    for (first, second, kept) in [(5, 5, 5), (5, 6, 6), (6, 5, 6)] {
        for name in ["t", "u"] {
            let directory = tempfile::tempdir().unwrap();
            let (mut one, mut other) = (store(directory.path()), store(directory.path()));
            one.pin("http://a", "t", &of(first)).unwrap();
            for _ in 0..2 {
                other.pin("http://a", name, &of(second)).unwrap();
            }
            let mut pins = store(directory.path()).pins("http://a").unwrap();
            assert_eq!(pins.pop(), Some((name.to_owned(), of(kept))), "{first}, {second}");
            let expected = [("t".to_owned(), of(first))];
            assert_eq!(pins, expected[usize::from(name == "t")..]);
            // Each goes on from there, and refuses a fork of the version that the other saw.
            let forked = Pin { parameter_digest: [9; 32], ..of(6) };
            match (first, second) {
                (6, 5) => assert!(other.pin("http://a", name, &forked).is_err()),
                _ => other.pin("http://a", name, &of(7)).unwrap(),
            }
            one.pin("http://a", "t", &of(7)).unwrap();
        }
    }
}

#[test]
fn a_replaced_table_is_forgotten_unless_pinned_elsewhere() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(directory.path());
    let bytes = bytes(20);
    let part = part_of(&bytes, PartKind::Hint);
    let download = partial(store.open(&part).unwrap());
    finish(&mut store, &part, download, &bytes, 20);
    let named = PartDescription { len: part.len, digest: part.digest };
    let first = Pin { hint: Some(named), ..pin(1, 0) };
    store.pin("http://a", "t", &first).unwrap();
    store.pin("http://b", "t", &first).unwrap();

    store.pin("http://a", "t", &pin(2, 0)).unwrap();
    complete(store.open(&part).unwrap());
    store.pin("http://b", "t", &pin(2, 0)).unwrap();
    assert!(!store.part_path(&part, "part").exists(), "nobody pins the old table any more");
    partial(store.open(&part).unwrap());
}

fn key_of(pin: &Pin, scheme: SchemeId) -> HintsKey {
    let Pin { table, parameter_digest, .. } = *pin;
    HintsKey { table, scheme, parameter_digest, servers: [0; 32] }
}

#[test]
fn pins_under_an_earlier_spelling_of_an_address_are_taken_over() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(directory.path());
    store.pin("HTTPS://A:443", "t", &pin(1, 3)).unwrap();
    store.adopt_pins("https://b", "https://b").unwrap();
    store.adopt_pins("https://c/", "https://c").unwrap();
    assert_eq!(store.pins("https://b").unwrap(), []);
    store.adopt_pins("HTTPS://A:443", "https://a").unwrap();
    assert_eq!(store.pins("https://a").unwrap(), [("t".to_owned(), pin(1, 3))]);
    assert_eq!(store.pins("HTTPS://A:443").unwrap(), [], "they are in one place");
    let file = std::fs::read(store.pin_path("https://a")).unwrap();
    assert_eq!(pin_file::decode(&file).unwrap().server, "https://a");
    assert_eq!(report(&Directory::existing(directory.path())).unwrap().pins, 1);

    // Pins under the present spelling count.
    store.pin("HTTPS://A:443", "t", &pin(2, 9)).unwrap();
    store.adopt_pins("HTTPS://A:443", "https://a").unwrap();
    assert_eq!(store.pins("https://a").unwrap(), [("t".to_owned(), pin(1, 3))]);

    let damaged = store.pin_path("HTTP://D");
    std::fs::write(&damaged, b"privetpn").unwrap();
    let error = store.adopt_pins("HTTP://D", "http://d").unwrap_err();
    assert_eq!(error.blame(), Blame::Corrupted, "not quietly forgotten");
    assert!(error.message().contains(damaged.to_str().unwrap()), "{error}");
}

#[test]
fn a_pin_file_damaged_anywhere_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(directory.path());
    store.pin("http://a", "table", &pin(1, 0)).unwrap();
    let path = store.pin_path("http://a");
    let whole = std::fs::read(&path).unwrap();
    let flipped = (0..whole.len()).map(|at| {
        let mut file = whole.clone();
        file[at] ^= 0x80;
        file
    });
    let cut = (0..whole.len()).map(|len| whole[..len].to_vec());
    let longer = std::iter::once([&whole[..], &[0]].concat());
    for file in flipped.chain(cut).chain(longer) {
        std::fs::write(&path, &file).unwrap();
        let error = store.pins("http://a").unwrap_err();
        assert_eq!(error.blame(), Blame::Corrupted);
        assert!(error.message().contains(path.to_str().unwrap()), "{error} names the file");
        assert_eq!(
            store.pin("http://a", "table", &pin(1, 0)).unwrap_err().blame(),
            Blame::Corrupted
        );
    }
    let mut accepting = super::tests::store(directory.path()).replacing_damaged_pins(true);
    assert_eq!(accepting.pins("http://a").unwrap(), []);
    accepting.pin("http://a", "table", &pin(2, 0)).unwrap();
    assert_eq!(store.pins("http://a").unwrap(), [("table".to_owned(), pin(2, 0))]);
}

#[test]
fn pins_written_at_once_are_all_kept() {
    let directory = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for table in 0..8 {
            let root = directory.path();
            scope.spawn(move || {
                store(root).pin("http://a", &format!("t{table}"), &pin(table, 0)).unwrap()
            });
        }
    });
    assert_eq!(store(directory.path()).pins("http://a").unwrap().len(), 8);
}

#[cfg(unix)]
#[test]
fn everything_belongs_to_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("state");
    let mut store = store(&root);
    let bytes = bytes(20);
    let part = part_of(&bytes, PartKind::Hint);
    let download = partial(store.open(&part).unwrap());
    finish(&mut store, &part, download, &bytes, 20);
    store.pin("http://a", "t", &pin(1, 0)).unwrap();
    let mut pending = vec![root];
    let mut seen = 0;
    while let Some(path) = pending.pop() {
        let metadata = std::fs::metadata(&path).unwrap();
        let mode = metadata.permissions().mode() & 0o777;
        assert_eq!(mode, if metadata.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
        seen += 1;
        if metadata.is_dir() {
            pending.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    assert!(seen >= 8, "directories, part, pins and locks");
}

#[test]
fn a_state_directory_that_cannot_be_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "in the way").unwrap();
    let error = Store::open(&file.join("state")).err().unwrap();
    assert_eq!(error.blame(), Blame::Unavailable);
    assert!(error.message().contains("file"));
}
