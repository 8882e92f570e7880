//! Real directories: copies, moves, modes, locks, other tables, and what erasing leaves.

use super::super::anchor::{Anchor, AnchorFile, SLOT_LEN, SLOTS};
use super::super::*;
use super::history::{generation, key, key_at, record, seen};
use crate::disk::Directory;
use crate::state::{HintStore as _, Pin, State as _};
use crate::store::tests::pin;
use crate::store::{HintsCondition, Store};
use privet_core::{Epoch, Error, Reason};
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

type Opened = (Box<KeptHints>, Option<String>);

/// The hints for `key`, and the notice.
fn open(path: &Path, key: &HintsKey, to_follow: bool, others: Others) -> Result<Opened> {
    match KeptHints::open(Arc::new(Directory::create(path).unwrap()), key, to_follow, others)? {
        Opening::Have { hints, notice } => Ok((hints, notice)),
        Opening::Busy => panic!("busy"),
    }
}

fn hints(path: &Path) -> Opened {
    open(path, &key(), false, Others::Replace).unwrap()
}

fn is_busy(path: &Path) -> bool {
    let folder = Arc::new(Directory::create(path).unwrap());
    matches!(KeptHints::open(folder, &key(), false, Others::Replace).unwrap(), Opening::Busy)
}

/// The error of somebody who wants the hints for `key`.
fn refusal(path: &Path, key: &HintsKey, to_follow: bool, others: Others) -> Error {
    open(path, key, to_follow, others).err().expect("it is refused")
}

/// Checks that the hints of [`used`] are still there.
fn check_kept(path: &Path) {
    let (mut kept, notice) = hints(path);
    assert_eq!(notice, None);
    assert_eq!(seen(&mut kept).unwrap().changes.len(), 2);
}

/// Checks that hints were erased, and that the user is told why.
fn check_erased((mut hints, notice): Opened, why: &str) {
    assert!(notice.unwrap().contains(why));
    let found = seen(&mut hints).unwrap();
    assert_eq!((found.generation, found.changes.len(), found.checkpoint), (None, 0, None));
}

/// A directory with hints of which two are used.
fn used(path: &Path) {
    let (mut hints, notice) = hints(path);
    assert_eq!(notice, None, "there was nothing to tell");
    hints.preparation().unwrap().save_generation(&generation(1)).unwrap();
    hints.switch().unwrap();
    for id in 0..2 {
        hints.reserve_one(ReservationId(id), &record(b"change", b"query")).unwrap();
    }
    hints.preparation().unwrap().save_checkpoint(7, b"checkpoint").unwrap();
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn copied_hints_are_erased_and_the_original_keeps_its_own() {
    let place = tempfile::tempdir().unwrap();
    let (original, copied) = (place.path().join("original"), place.path().join("copy"));
    used(&original);
    copy(&original, &copied);
    check_erased(hints(&copied), "copied or restored");
    assert_eq!(names(&copied), ["anchor"]);
    assert_eq!(hints(&copied).1, None, "it is told once");
    check_kept(&original);
}

/// The copy takes the original's place, as from a backup.
#[test]
fn a_restored_backup_is_erased() {
    let place = tempfile::tempdir().unwrap();
    let (original, backup) = (place.path().join("original"), place.path().join("backup"));
    used(&original);
    copy(&original, &backup);
    std::fs::remove_dir_all(&original).unwrap();
    copy(&backup, &original);
    check_erased(hints(&original), "backup");
}

/// The backup is written into the existing files, which keeps their numbers and birth times. What
/// reveals it is that the anchor was changed later than it says it was written. (The clock of a
/// file system cannot be turned back, so the anchor is made older here instead.)
#[test]
fn a_backup_restored_in_place_is_erased() {
    let place = tempfile::tempdir().unwrap();
    used(place.path());
    let folder = Directory::create(place.path()).unwrap();
    let file = files::open(&folder, "anchor").unwrap().unwrap();
    let mut older = AnchorFile::read(file.clone()).unwrap().anchor().clone();
    older.written -= 30_000;
    let restore = |older: &Anchor| {
        for (sequence, at) in (100..).zip(SLOTS) {
            file.write_at(at, &older.encode(sequence)).unwrap();
        }
    };
    restore(&older);
    let (within, notice) = hints(place.path());
    assert_eq!(notice, None, "clocks may differ by so little");
    drop(within);
    older.written -= 60_000;
    restore(&older);
    check_erased(hints(place.path()), "backup");
    assert_eq!(names(place.path()), ["anchor"]);
}

#[test]
fn a_server_that_announces_the_tables_id_with_other_contents_erases_nothing() {
    let place = tempfile::tempdir().unwrap();
    used(place.path());
    let mut other = key();
    other.table.digest.0[0] ^= 1;
    let refused = refusal(place.path(), &other, false, Others::Refuse);
    assert_eq!(refused.blame(), Blame::Integrity, "{refused}");
    check_kept(place.path());
}

/// The server that computed the hints knows their secret, so no other server may take its place.
#[test]
fn hints_that_other_servers_computed_are_refused_and_kept() {
    let place = tempfile::tempdir().unwrap();
    used(place.path());
    let mut other = key();
    other.servers[0] ^= 1;
    let refused = refusal(place.path(), &other, false, Others::Refuse);
    assert_eq!(refused.blame(), Blame::ApiMisuse, "{refused}");
    assert_eq!(refused.reason(), Some(Reason::HintsOfOtherServers), "{refused}");
    check_kept(place.path());
    // The hints were begun anew with these servers, and the old secret is gone.
    let (mut hints, _) = open(place.path(), &other, false, Others::Replace).unwrap();
    assert_eq!(seen(&mut hints).unwrap().generation, None);
}

#[test]
fn an_anchor_of_a_later_version_is_no_damage() {
    let place = tempfile::tempdir().unwrap();
    used(place.path());
    let path = place.path().join("anchor");
    let mut bytes = std::fs::read(&path).unwrap();
    for at in SLOTS.map(|at| at as usize) {
        bytes[at + 8] += 1;
        let end = at + SLOT_LEN;
        let checksum = blake3::hash(&bytes[at..end - 32]);
        bytes[end - 32..end].copy_from_slice(checksum.as_bytes());
    }
    std::fs::write(&path, bytes).unwrap();
    let refused = refusal(place.path(), &key(), false, Others::Replace);
    assert_eq!(refused.blame(), Blame::Unavailable);
    assert!(refused.message().contains("version 6"), "{refused}");
    assert_eq!(refused.reason(), None, "they are not to be erased: {refused}");
}

#[test]
fn an_anchor_of_an_older_version_is_no_damage_and_says_what_to_do() {
    let place = tempfile::tempdir().unwrap();
    used(place.path());
    let path = place.path().join("anchor");
    let bytes = std::fs::read(&path).unwrap();
    // Version 2 lacked the table's shape, version 3 the number of the journal's file. Both lacked
    // the journal's time.
    let time = SLOT_LEN - 40..SLOT_LEN - 32;
    for (version, left_out) in [(2, 132..148), (3, SLOT_LEN - 88..SLOT_LEN - 80)] {
        let mut older = Vec::new();
        for at in SLOTS.map(|at| at as usize) {
            let mut slot = bytes[at..at + SLOT_LEN - 32].to_vec();
            slot.drain(time.clone());
            slot.drain(left_out.clone());
            slot[8] = version;
            let checksum = blake3::hash(&slot);
            older.resize(at, 0);
            older.extend([&slot[..], checksum.as_bytes()].concat());
        }
        std::fs::write(&path, older).unwrap();
        let refused = refusal(place.path(), &key(), false, Others::Replace);
        assert_eq!(refused.blame(), Blame::Unavailable);
        assert!(refused.message().contains(&format!("version {version}")), "{refused}");
        assert_eq!(refused.reason(), Some(Reason::HintsUnusable), "{refused}");
    }
    // The advice in the error also erases the journal of that format.
    std::fs::write(place.path().join("journal-1.redb"), [1; 100]).unwrap();
    assert!(erase_folder(&Directory::existing(place.path())).unwrap());
    assert!(names(place.path()).is_empty());
}

/// The client must check where the hints stand, whether the table has moved on or a server has gone
/// back.
#[test]
fn hints_of_another_version_are_opened_as_they_are_by_who_can_follow() {
    let place = tempfile::tempdir().unwrap();
    used(place.path());
    for epoch in [3, 5, 9] {
        for others in [Others::Refuse, Others::Replace] {
            let (mut hints, notice) = open(place.path(), &key_at(epoch), true, others).unwrap();
            assert_eq!(notice, None);
            let saved = hints.load().unwrap();
            assert_eq!(saved.changes.len(), 2);
            assert_eq!(saved.prepared_for, Some(key().table));
            assert_eq!(saved.stands_at, Some(key()), "not at {epoch}");
        }
    }
    let mut elsewhere = key_at(5);
    elsewhere.servers[0] ^= 1;
    let refused = refusal(place.path(), &elsewhere, true, Others::Refuse);
    assert_eq!(refused.blame(), Blame::ApiMisuse, "{refused}");
    let mut other = key_at(5);
    other.table.id.0[0] ^= 1;
    let refused = refusal(place.path(), &other, true, Others::Refuse);
    assert_eq!(refused.blame(), Blame::Integrity, "{refused}");

    let (mut at_home, _) = hints(place.path());
    let saved = at_home.load().unwrap();
    assert_eq!((saved.prepared_for, saved.stands_at), (None, None), "they are what was asked for");
}

/// If the client can follow, hints of the new version may be on disk before the pin says so, and
/// the other way round.
#[test]
fn hints_that_have_followed_are_those_of_the_new_version_and_no_other() {
    let place = tempfile::tempdir().unwrap();
    used(place.path());
    let (mut opened, _) = hints(place.path());
    for id in 0..2 {
        opened.settle(ReservationId(id), b"answered").unwrap();
    }
    opened.follow(b"edits", &key_at(5)).unwrap();
    drop(opened);
    let refused = refusal(place.path(), &key(), false, Others::Refuse);
    assert_eq!(refused.blame(), Blame::Integrity, "{refused}");
    let (mut hints, notice) = open(place.path(), &key_at(5), false, Others::Refuse).unwrap();
    assert_eq!(notice, None);
    let saved = hints.load().unwrap();
    assert_eq!(saved.changes.last().unwrap().as_slice(), b"edits");
    assert_eq!((saved.prepared_for, saved.stands_at), (Some(key().table), None));
    let Some(Private { condition: HintsCondition::Whole { epoch, .. }, .. }) = ({
        drop(hints);
        inspect(&Directory::existing(place.path()), true).unwrap()
    }) else {
        panic!("not whole")
    };
    assert_eq!(epoch, Epoch(5), "what is reported of them");
}

/// A restore tool may skip the anchor if it has not changed since: then only the journal shows that
/// it was replaced.
#[test]
fn a_journal_that_was_put_back_alone_is_erased_with_its_hints() {
    let place = tempfile::tempdir().unwrap();
    used(place.path());
    let journal = place.path().join("journal-1-1.hints");
    let backup = std::fs::read(&journal).unwrap();
    let (mut opened, _) = hints(place.path());
    opened.reserve_one(ReservationId(2), &record(b"change", b"query")).unwrap();
    // As if the process were killed: the anchor has not counted this commit.
    opened.poisoned = true;
    drop(opened);
    std::fs::rename(&journal, place.path().join("removed")).unwrap();
    std::fs::write(&journal, backup).unwrap();
    let folder = Directory::existing(place.path());
    let Some(Private { condition: HintsCondition::Whole { copied, .. }, .. }) =
        inspect(&folder, true).unwrap()
    else {
        panic!("not whole")
    };
    assert!(copied, "what is reported of them");
    check_erased(hints(place.path()), "backup");
    assert_eq!(names(place.path()), ["anchor", "removed"]);
}

/// What becomes of the files `put_back`, if they are put back as they were before the last lookup,
/// in place and at once: the notice, or the error.
fn after_putting_back(put_back: &[&str], killed: bool) -> Result<Option<String>> {
    let place = tempfile::tempdir().unwrap();
    used(place.path());
    let path = |name: &&str| place.path().join(name);
    let backup: Vec<_> = put_back.iter().map(|name| std::fs::read(path(name)).unwrap()).collect();
    let (mut opened, notice) = hints(place.path());
    assert_eq!(notice, None);
    opened.reserve_one(ReservationId(2), &record(b"change", b"query")).unwrap();
    // As if the process were killed: the anchor has not counted this commit.
    opened.poisoned = killed;
    drop(opened);
    // Longer than a tick of the file system's clock.
    std::thread::sleep(std::time::Duration::from_millis(50));
    for (name, bytes) in put_back.iter().zip(backup) {
        // Into the same file, which keeps its number and its birth.
        std::fs::write(path(name), bytes).unwrap();
    }
    let folder = Directory::existing(place.path());
    let copied = match inspect(&folder, true)?.map(|private| private.condition) {
        Some(HintsCondition::Whole { copied, .. }) => copied,
        other => matches!(other, Some(HintsCondition::Damaged(_))),
    };
    let (mut hints, notice) = open(place.path(), &key(), false, Others::Refuse)?;
    assert_eq!(copied, notice.is_some(), "what is reported of them");
    let found = seen(&mut hints).unwrap();
    assert_eq!(found.generation.is_none(), notice.is_some());
    assert!(notice.is_some() || found.changes.len() == 3, "no older state");
    Ok(notice)
}

#[test]
fn hints_that_are_put_back_in_place_are_noticed_at_once() {
    const JOURNAL: &str = "journal-1-1.hints";
    for (put_back, killed) in [
        (&[][..], false),
        (&[], true),
        (&["anchor", JOURNAL], false),
        (&["anchor", JOURNAL], true),
        (&["anchor"], false),
        (&["anchor"], true),
        (&[JOURNAL], true),
    ] {
        let notice = after_putting_back(put_back, killed).unwrap();
        assert_eq!(notice.is_some(), !put_back.is_empty(), "{put_back:?}, killed: {killed}");
        assert!(notice.is_none_or(|notice| notice.contains("backup")));
    }
    let refused = after_putting_back(&[JOURNAL], false).unwrap_err();
    assert_eq!(refused.blame(), Blame::Corrupted, "{refused}");
}

/// The format before, in which neither file says when the other was changed.
#[test]
fn hints_of_the_version_before_are_read_and_written_anew() {
    let place = tempfile::tempdir().unwrap();
    let (mut opened, _) = hints(place.path());
    opened.preparation().unwrap().save_generation(&generation(1)).unwrap();
    opened.switch().unwrap();
    drop(opened);
    let folder = Directory::existing(place.path());
    let file = files::open(&folder, "anchor").unwrap().unwrap();
    let mut anchor = AnchorFile::read(file).unwrap().anchor().clone();

    // The journal has a beginning and no commits.
    let name = journal_name(1, 1);
    let mut bytes = std::fs::read(place.path().join(&name)).unwrap();
    bytes[8] = 4;
    let mut key = blake3::Hasher::new_derive_key("privet 2026-11 commits of a hint journal");
    key.update(&anchor.lineage).update(&1u64.to_le_bytes());
    let sealed = 348;
    let seal = blake3::keyed_hash(key.finalize().as_bytes(), &bytes[..sealed]);
    assert_ne!(bytes[sealed..sealed + 32], [0; 32], "it is where the seal was");
    bytes[sealed..sealed + 32].copy_from_slice(seal.as_bytes());
    std::fs::write(place.path().join(&name), &bytes).unwrap();
    anchor.seal = *seal.as_bytes();
    let file = files::open(&folder, &name).unwrap().unwrap();
    let mut journal = Journal::open(file, &anchor).unwrap();
    journal.commit(&[Entry::Change(b"change")]).unwrap();
    let anchor = counting(anchor, &journal).unwrap();
    for (sequence, at) in (100..).zip(SLOTS) {
        let mut slot = anchor.encode(sequence);
        slot.truncate(SLOT_LEN - 40);
        slot[8] = 4;
        let checksum = blake3::hash(&slot);
        slot.extend(checksum.as_bytes());
        let medium = folder.open("anchor").unwrap().unwrap();
        medium.set_len(at).unwrap();
        medium.write_at(at, &slot).unwrap();
    }
    let (mut opened, notice) = hints(place.path());
    assert_eq!(notice, None);
    assert_eq!(seen(&mut opened).unwrap().changes.len(), 1);
    opened.reserve_one(ReservationId(0), &record(b"change", b"query")).unwrap();
    drop(opened);
    assert_eq!(std::fs::read(place.path().join("anchor")).unwrap()[8], 5);
    let journal = std::fs::read(place.path().join(journal_name(1, 2))).unwrap();
    assert_eq!(journal[8], 5);
    assert_eq!(names(place.path()), ["anchor", "generation-1.hints", "journal-1-2.hints"]);
    let (mut opened, notice) = hints(place.path());
    assert_eq!(notice, None);
    assert_eq!(seen(&mut opened).unwrap().changes.len(), 2);
}

#[test]
fn moved_hints_are_kept() {
    let place = tempfile::tempdir().unwrap();
    let (before, after) = (place.path().join("before"), place.path().join("after"));
    used(&before);
    std::fs::rename(&before, &after).unwrap();
    check_kept(&after);
}

#[test]
fn hints_of_another_version_are_erased() {
    let place = tempfile::tempdir().unwrap();
    let mut epoch = key();
    epoch.table.epoch.0 += 1;
    let mut digest = key();
    digest.table.digest.0[0] ^= 1;
    let mut parameters = key();
    parameters.parameter_digest[31] ^= 1;
    for (number, other) in [epoch, digest, parameters].into_iter().enumerate() {
        let path = place.path().join(number.to_string());
        used(&path);
        check_erased(open(&path, &other, false, Others::Replace).unwrap(), "changed");
        assert_eq!(names(&path), ["anchor"]);
    }
}

#[test]
fn a_second_handle_is_told_to_wait_until_the_last_part_of_the_first_is_dropped() {
    let place = tempfile::tempdir().unwrap();
    let (mut first, _) = hints(place.path());
    assert!(is_busy(place.path()));
    let bench = first.preparation().unwrap();
    let second = first.preparation().err().unwrap();
    assert_eq!(second.blame(), Blame::ApiMisuse, "one preparation at a time");
    drop(first);
    assert!(is_busy(place.path()));
    drop(bench);
    hints(place.path());
}

#[test]
fn what_is_erased_was_overwritten() {
    let place = tempfile::tempdir().unwrap();
    used(place.path());
    let file = |name: &str| File::open(place.path().join(name)).unwrap();
    let mut old = ["generation-1.hints", "journal-1-1.hints", "preparing-0.hints"].map(file);
    let (mut hints, _) = hints(place.path());
    hints.preparation().unwrap().save_generation(&generation(2)).unwrap();
    hints.switch().unwrap();
    for file in &mut old {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        assert!(!bytes.is_empty() && bytes.iter().all(|byte| *byte == 0));
    }
    assert_eq!(names(place.path()), ["anchor", "generation-2.hints", "journal-2-1.hints"]);
}

#[test]
fn wrong_order_is_refused_and_harms_nothing() {
    let place = tempfile::tempdir().unwrap();
    let (mut hints, _) = hints(place.path());
    let record = record(b"change", b"query");
    let misuse = |outcome: Result<()>| assert_eq!(outcome.unwrap_err().blame(), Blame::ApiMisuse);
    misuse(hints.reserve_one(ReservationId(0), &record).map(drop));
    misuse(hints.switch());
    misuse(hints.settle(ReservationId(0), b"change"));
    misuse(hints.follow(b"change", &key_at(5)));
    hints.preparation().unwrap().save_generation(&generation(1)).unwrap();
    misuse(hints.preparation().unwrap().save_generation(&generation(1)));
    misuse(hints.preparation().unwrap().save_checkpoint(0, b"checkpoint"));
    hints.switch().unwrap();
    misuse(hints.reserve_one(ReservationId(1), &record).map(drop));
    hints.reserve_one(ReservationId(0), &record).unwrap();
    misuse(hints.reserve_one(ReservationId(0), &record).map(drop));
    hints.settle(ReservationId(0), b"change").unwrap();
    misuse(hints.settle(ReservationId(0), b"change"));
    hints.flush().unwrap();
    misuse(hints.settle(ReservationId(0), b"change"));
    let (mut elsewhere, mut other) = (key_at(5), key_at(5));
    elsewhere.servers[0] ^= 1;
    other.table.id.0[0] ^= 1;
    for to in [&elsewhere, &other, &key(), &key_at(3)] {
        misuse(hints.follow(b"change", to));
    }
    misuse(hints.restart(&other));
    let bench = hints.preparation().unwrap();
    misuse(hints.follow(b"change", &key_at(5)));
    misuse(hints.restart(&key_at(5)));
    drop(bench);
    hints.reserve_one(ReservationId(1), &record).unwrap();
    misuse(hints.follow(b"change", &key_at(5)));
    assert_eq!(seen(&mut hints).unwrap().changes.len(), 3);
}

#[test]
fn a_table_that_is_pinned_nowhere_any_more_loses_its_hints() {
    let place = tempfile::tempdir().unwrap();
    let mut store = Store::open(place.path()).unwrap();
    let parameter_digest = key().parameter_digest;
    let pin = |table| Pin { parameter_digest, ..pin(table, 4) };
    store.pin("http://a", "t", &pin(1)).unwrap();
    store.pin("http://b", "t", &pin(1)).unwrap();
    let private =
        place.path().join("tables").join(key().table.id.to_string()).join("private-dummy-subsets");
    used(&private);
    store.pin("http://a", "t", &pin(2)).unwrap();
    assert_eq!(hints(&private).0.load().unwrap().changes.len(), 2, "it is pinned at b still");
    let in_use = hints(&private);
    store.pin("http://b", "t", &pin(2)).unwrap();
    drop(in_use);
    assert_eq!(hints(&private).0.load().unwrap().changes.len(), 2, "it was in use");
    store.pin("http://b", "t", &pin(1)).unwrap();
    store.pin("http://b", "t", &pin(2)).unwrap();
    assert!(!private.exists());
}

#[cfg(unix)]
#[test]
fn secrets_belong_to_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = tempfile::tempdir().unwrap();
    let path: PathBuf = place.path().join("private");
    // As if another program had created it with wider permissions.
    std::fs::create_dir(&path).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    used(&path);
    let (mut hints, _) = hints(&path);
    hints.preparation().unwrap().save_generation(&generation(2)).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    let names = names(&path);
    assert_eq!(names, ["anchor", "generation-1.hints", "generation-2.hints", "journal-1-1.hints"]);
    for name in names {
        assert_eq!(mode(&path.join(&name)), 0o600, "{name}");
    }
}
