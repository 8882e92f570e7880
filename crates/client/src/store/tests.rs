//! Crashes at every moment, damage at every byte, and two writers.

mod crashes;
mod erased_hints;
mod following;
mod kept;
mod left;
mod pins;

use super::*;
use erased_hints::used_hints_in;
use privet_core::{Epoch, TableDigest, TableIdentity, TableShape};
use privet_schemes::SchemeId;
use privet_schemes::contract::{ReservationId, Reserved};
use privet_schemes::offline::{Download, StreamConsumer};
use privet_schemes::reservation::Reservation;
use privet_table::update_log::PublisherId;
use privet_wire::PartDescription;
use tempfile::TempDir;

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

fn key_of(pin: &Pin, scheme: SchemeId) -> HintsKey {
    let Pin { table, parameter_digest, .. } = *pin;
    HintsKey { table, scheme, parameter_digest, servers: [0; 32] }
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

/// A store in which a file of `part` holds these bytes, and the file's path.
fn with_file(part: &PartKey, extension: &str, file: &[u8]) -> (TempDir, Store, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let path = store.part_path(part, extension);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, file).unwrap();
    (directory, store, path)
}

/// The file of a part of which everything has come, and which is not completed.
fn partial_file(part: &PartKey, bytes: &[u8]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(directory.path());
    drop(store.open(part).unwrap());
    store.append(part, 0, bytes).unwrap();
    std::fs::read(store.part_path(part, "partial")).unwrap()
}

/// A file with a bit of each byte flipped in turn, cut off at every byte, and with one byte more.
fn damaged(whole: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let flipped = (0..whole.len()).map(|at| {
        let mut file = whole.to_vec();
        file[at] ^= 0x80;
        file
    });
    let cut = (0..whole.len()).map(|len| whole[..len].to_vec());
    flipped.chain(cut).chain([[whole, &[0]].concat()])
}

/// A kill leaves the file up to some byte. Whichever byte that is, the download goes on and ends
/// right.
#[test]
fn a_download_survives_a_kill_at_every_byte() {
    let bytes = bytes(100);
    let part = part_of(&bytes, PartKind::Hint);
    let whole = partial_file(&part, &bytes);
    let stride = CHUNK_LEN as usize + 16;
    for cut in 0..=whole.len() {
        let (_directory, mut store, path) = with_file(&part, "partial", &whole[..cut]);
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
    let whole = partial_file(&part, &bytes);
    for (at, file) in damaged(&whole).take(whole.len()).enumerate() {
        let (_directory, mut store, _) = with_file(&part, "partial", &file);
        let download = partial(store.open(&part).unwrap());
        let intact = at.saturating_sub(104) / (CHUNK_LEN as usize + 16) * CHUNK_LEN as usize;
        assert_eq!(download.next_offset(), intact as u64, "flipped at {at}");
        let source = finish(&mut store, &part, download, &bytes, 70);
        assert_eq!(contents(&*source).unwrap(), bytes, "flipped at {at}");
    }
}

/// A complete file never yields a wrong byte: damage shows when it is opened, before anything is
/// read and whatever will be read, and the part is fetched again.
#[test]
fn a_part_that_is_damaged_anywhere_is_noticed_when_it_is_opened() {
    for kind in [PartKind::Hint, PartKind::Table] {
        let (directory, bytes) = (tempfile::tempdir().unwrap(), bytes(70));
        let (part, path) = stored(&mut store(directory.path()), &bytes, kind);
        for file in damaged(&std::fs::read(path).unwrap()) {
            let (_directory, mut store, path) = with_file(&part, "part", &file);
            let opened = store.open(&part).unwrap();
            let notice = notice(&opened).expect("the user hears of it");
            assert!(notice.starts_with(path.to_str().unwrap()), "{notice}");
            assert!(notice.ends_with(&format!("; the {kind} will be fetched again")), "{notice}");
            let download = partial(opened);
            assert_eq!(download.next_offset(), 0);
            let source = finish(&mut store, &part, download, &bytes, 9);
            assert_eq!(contents(&*source).unwrap(), bytes);
            assert_eq!(contents(&*complete(store.open(&part).unwrap())).unwrap(), bytes);
        }
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

#[test]
fn a_part_damaged_while_it_is_open_fails_what_reads_it_and_keeps_its_name() {
    for kind in [PartKind::Hint, PartKind::Table] {
        let (directory, bytes) = (tempfile::tempdir().unwrap(), bytes(160));
        let mut store = store(directory.path());
        let (part, path) = stored(&mut store, &bytes, kind);
        let source = complete(store.open(&part).unwrap());
        // In place, so that a process that has the file open sees it.
        let mut file = std::fs::read(&path).unwrap();
        file[104 + 5 * 32] ^= 1;
        std::fs::write(&path, file).unwrap();
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
    let (part, path) = stored(&mut store, &bytes(48), PartKind::Hint);
    let (_, other_path) = stored(&mut store, &bytes(64)[16..], PartKind::Hint);
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

#[cfg(unix)]
#[test]
fn everything_belongs_to_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("state");
    let mut store = store(&root);
    stored(&mut store, &bytes(20), PartKind::Hint);
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
