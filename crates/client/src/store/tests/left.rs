//! Tables that were left for their successors, and the files of pins that know of them.

use super::*;
use crate::disk::Directory;
use crate::store::pin_file::{self, MAX_TOMBSTONES, PinFile};
use crate::store::{Scope, reset};
use privet_table::update_log::{EpochHash, Left, NextKeyDigest};

const SERVER: &str = "http://a";

fn left(table: u8) -> Left {
    Left { id: pin(table, 0).table.id, by: EpochHash([table; 32]) }
}

fn file(store: &Store) -> PinFile {
    pin_file::decode(&std::fs::read(store.pin_path(SERVER)).unwrap()).unwrap()
}

#[test]
fn a_successors_pin_and_the_table_that_was_left_are_one_write() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(directory.path());
    let next_key = Some(NextKeyDigest([8; 32]));
    let first = Pin { publisher: Some(PublisherId([1; 32])), next_key, ..pin(1, 4) };
    store.pin(SERVER, "t", &first).unwrap();
    let second = Pin { next_key: None, ..Pin { table: pin(2, 0).table, ..first } };
    store.pin_successor(SERVER, "t", &second, &[left(1)]).unwrap();
    let known = file(&store);
    assert_eq!((known.pins, known.left), (vec![("t".to_owned(), second)], vec![left(1)]));
    let mut again = super::store(directory.path());
    assert_eq!(again.tables_left().unwrap(), [(SERVER.to_owned(), left(1))]);
    assert_eq!(again.pins(SERVER).unwrap()[0].1, second);
    // Later pins keep it, and the same twice is once.
    again.pin(SERVER, "other", &Pin { next_key, ..pin(3, 0) }).unwrap();
    again.pin_successor(SERVER, "t", &second, &[left(1)]).unwrap();
    assert_eq!(file(&again).left, [left(1)]);

    // A process that began before does not pin the old table again, under any name.
    for name in ["t", "new"] {
        let error = again.pin(SERVER, name, &first).unwrap_err();
        assert_eq!(error.blame(), Blame::Integrity, "{error}");
    }
    // A person may: then it is no longer left.
    let mut accepting = super::store(directory.path()).replacing_damaged_pins(true);
    accepting.pins(SERVER).unwrap();
    accepting.pin(SERVER, "t", &first).unwrap();
    assert_eq!(file(&accepting).left, []);
}

/// It comes before anything is known of its table, so a server must not fill the disk with it.
#[test]
fn a_lineage_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(directory.path());
    let part = part_of(b"lineage", PartKind::Lineage);
    let opened = store.open(&part).unwrap();
    assert!(matches!(opened, Opened::Have { part: PartState::Partial(_), notice: None }));
    store.append(&part, 0, b"lineage").unwrap();
    let mut read = [0; 7];
    store.complete(&part).unwrap().read_at(0, &mut read).unwrap();
    assert_eq!(&read, b"lineage");
    let again = store.open(&part).unwrap();
    assert!(matches!(again, Opened::Have { part: PartState::Partial(_), .. }), "nor the memory");
    assert!(!store.table_directory(part.table.id).exists());
}

#[test]
fn a_file_of_the_version_before_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(directory.path());
    let known = Pin {
        publisher: Some(PublisherId([1; 32])),
        last_epoch: Some(EpochHash([2; 32])),
        hint: Some(PartDescription { len: 9, digest: [3; 32] }),
        ..pin(1, 4)
    };
    store.pin(SERVER, "t", &known).unwrap();
    let written = std::fs::read(store.pin_path(SERVER)).unwrap();
    // Without next key, first publisher and scheme of the one pin, and the number of tombstones.
    let mut earlier = written[..written.len() - 32 - 4 - 4 - 66].to_vec();
    earlier[8..12].copy_from_slice(&2u32.to_le_bytes());
    let checksum = blake3::hash(&earlier);
    earlier.extend(checksum.as_bytes());
    std::fs::write(store.pin_path(SERVER), &earlier).unwrap();
    assert_eq!(store.pins(SERVER).unwrap(), [("t".to_owned(), known)]);
    assert_eq!(store.tables_left().unwrap(), []);
    store.pin(SERVER, "t", &Pin { table: pin(1, 5).table, ..known }).unwrap();
    assert_eq!(std::fs::read(store.pin_path(SERVER)).unwrap()[8..12], 3u32.to_le_bytes());
}

#[test]
fn whoever_forgets_a_server_or_a_table_forgets_that_it_was_left() {
    for (scope, kept) in [
        (Scope::Server(SERVER.to_owned()), vec![]),
        (Scope::Table(left(1).id), vec![left(4)]),
        (Scope::Table(left(2).id), vec![left(1), left(4)]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let mut store = store(directory.path());
        store.pin_successor(SERVER, "t", &pin(2, 0), &[left(1), left(4)]).unwrap();
        reset(&Directory::existing(directory.path()), &scope).unwrap();
        let left = store.tables_left().unwrap().into_iter().map(|(_, left)| left);
        assert_eq!(left.collect::<Vec<_>>(), kept, "{scope:?}");
    }
}

#[test]
fn a_server_cannot_have_the_list_of_tables_left_grow_without_end() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(directory.path());
    let many = |count: usize| -> Vec<Left> {
        let id = |number: usize| {
            let mut id = [7; 16];
            id[..8].copy_from_slice(&(number as u64).to_le_bytes());
            privet_core::TableId(id)
        };
        (0..count).map(|number| Left { id: id(number), ..left(1) }).collect()
    };
    store.pin_successor(SERVER, "t", &pin(2, 0), &many(MAX_TOMBSTONES)).unwrap();
    assert_eq!(store.tables_left().unwrap().len(), MAX_TOMBSTONES);
    let error = store.pin_successor(SERVER, "t", &pin(3, 0), &[left(2)]).unwrap_err();
    assert_eq!(error.reason(), Some(Reason::TooManyTablesRemembered), "{error}");
    assert_eq!(store.pins(SERVER).unwrap()[0].1, pin(2, 0));
}

/// A program without some crate of schemes does not erase what another one pinned.
#[test]
fn a_scheme_that_this_program_does_not_know_stays_pinned() {
    let pins = vec![("t".to_owned(), pin(1, 4)), ("u".to_owned(), pin(2, 0))];
    let unknown_schemes = vec![("u".to_owned(), "of-later".to_owned())];
    let server = SERVER.to_owned();
    let bytes = pin_file::encode(&PinFile { server, pins, unknown_schemes, ..PinFile::default() });
    let decoded = pin_file::decode(&bytes).unwrap();
    assert_eq!(decoded.pins[1].1.scheme, None);
    assert_eq!(pin_file::encode(&decoded), bytes);

    let directory = tempfile::tempdir().unwrap();
    let mut store = store(directory.path());
    store.pin(SERVER, "v", &pin(3, 0)).unwrap();
    std::fs::write(store.pin_path(SERVER), &bytes).unwrap();
    store.pin(SERVER, "v", &pin(3, 0)).unwrap();
    assert_eq!(file(&store).unknown_schemes, decoded.unknown_schemes);
    reset(&Directory::existing(directory.path()), &Scope::Table(pin(1, 0).table.id)).unwrap();
    assert_eq!(file(&store).unknown_schemes, decoded.unknown_schemes);
}
