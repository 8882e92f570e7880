//! Every file, damaged anywhere.

use super::history::{Seen, hints, lived, record, seen};
use crate::disk::simulated::Disk;
use crate::state::HintStore as _;
use privet_core::{Blame, Reason};
use privet_schemes::contract::ReservationId;

/// Opens the damaged disk. The result is either the old contents, or an error that names `file`.
fn check(disk: &Disk, file: &str, whole: &Seen, at: &str) -> bool {
    match hints(disk).and_then(|mut hints| seen(&mut hints)) {
        Ok(found) => {
            assert_eq!(found.generation, whole.generation, "{file}, {at}");
            assert_eq!(found.changes, whole.changes, "{file}, {at}");
            assert_eq!(found.unfinished, whole.unfinished, "{file}, {at}");
            true
        }
        Err(error) => {
            assert_eq!(error.blame(), Blame::Corrupted, "{file}, {at}: {error:?}");
            assert!(error.message().contains(file), "{file}, {at}: {error}");
            assert_eq!(error.reason(), Some(Reason::HintsUnusable), "{error}");
            false
        }
    }
}

/// Positions of interest: around every structure's edge, and a sample of the rest.
fn positions(file: &str, len: usize) -> Vec<usize> {
    let mut positions: Vec<usize> = match file {
        "anchor" => (0..len).collect(),
        _ if file.starts_with("journal") => (0..len).collect(),
        _ => (0..112).chain([112, len - 1]).collect(),
    };
    positions.extend((0..len).step_by(997));
    positions.retain(|at| *at < len);
    positions
}

/// A disk in the middle of use: no close followed the last commit, and only the journal has counted
/// it.
fn killed() -> (Disk, Seen) {
    let (disk, _) = lived();
    let mut opened = hints(&disk).unwrap();
    opened.reserve_one(ReservationId(2), &record(b"change", b"query")).unwrap();
    let killed = disk.snapshot();
    let whole = seen(&mut hints(&killed.snapshot()).unwrap()).unwrap();
    assert_eq!(whole.changes.last().unwrap(), b"change");
    (killed, whole)
}

#[test]
fn flipped_bits_are_refused_by_name_or_do_not_matter() {
    flip_everywhere(lived());
}

#[test]
fn flipped_bits_after_a_kill_do_not_bring_an_older_state_back() {
    flip_everywhere(killed());
}

fn flip_everywhere((disk, whole): (Disk, Seen)) {
    for file in disk.file_names() {
        let bytes = disk.read(&file);
        let mut refused = 0;
        for at in positions(&file, bytes.len()) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            let copy = disk.snapshot();
            copy.damage(&file, damaged);
            refused += usize::from(!check(&copy, &file, &whole, &format!("flipped at {at}")));
        }
        // The anchor has two slots, either of which will do; a journal has its commits twice.
        let least = if file == "anchor" { 0 } else { 50 };
        assert!(refused >= least, "{file}: only {refused} flips were refused");
    }
}

#[test]
fn whole_bytes_wrong_at_once_are_refused_or_do_not_matter() {
    let (disk, whole) = lived();
    for file in disk.file_names() {
        let bytes = disk.read(&file);
        for page in (0..bytes.len()).step_by(4096) {
            for filler in [0, 0xff] {
                let mut damaged = bytes.clone();
                let end = (page + 4096).min(damaged.len());
                damaged[page..end].fill(filler);
                let copy = disk.snapshot();
                copy.damage(&file, damaged);
                check(&copy, &file, &whole, &format!("page at {page} filled with {filler}"));
            }
        }
    }
}

#[test]
fn truncated_files_are_refused_by_name_or_do_not_matter() {
    let (disk, whole) = lived();
    for file in disk.file_names() {
        let bytes = disk.read(&file);
        for len in positions(&file, bytes.len()) {
            let copy = disk.snapshot();
            copy.damage(&file, bytes[..len].to_vec());
            let fine = check(&copy, &file, &whole, &format!("cut to {len}"));
            assert!(!fine || file != "generation-2.hints", "cut to {len}");
        }
        let copy = disk.snapshot();
        copy.damage(&file, [&bytes[..], &[0; 7]].concat());
        check(&copy, &file, &whole, "longer");
    }
}

#[test]
fn missing_files_are_refused_by_name() {
    let (disk, whole) = lived();
    for file in disk.file_names() {
        let copy = disk.snapshot();
        copy.delete(&file);
        assert!(!check(&copy, &file, &whole, "missing"));
    }
}

/// An earlier file in place of the last: the result of a half-restored backup.
#[test]
fn an_older_journal_is_not_taken_for_the_last() {
    let (disk, _) = lived();
    let journal = |disk: &Disk| {
        let mut names = disk.file_names().into_iter();
        names.find(|name| name.starts_with("journal")).unwrap()
    };
    let older = disk.read(&journal(&disk));
    let mut opened = hints(&disk).unwrap();
    opened.reserve_one(ReservationId(2), &record(b"change", b"query")).unwrap();
    drop(opened);
    let whole = seen(&mut hints(&disk).unwrap()).unwrap();
    let file = journal(&disk);
    assert_ne!(disk.read(&file), older);
    disk.damage(&file, older);
    assert!(!check(&disk, &file, &whole, "older"));
}

/// Disks on which a bit of each byte of a file is flipped in turn.
fn flipped(disk: &Disk, file: &'static str) -> impl Iterator<Item = (usize, Disk)> {
    let bytes = disk.read(file);
    (0..bytes.len()).map(move |at| {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        let copy = disk.snapshot();
        copy.damage(file, damaged);
        (at, copy)
    })
}

/// Damage to a generation that is only being prepared costs that preparation.
#[test]
fn damaged_preparations_count_as_none() {
    let disk = Disk::default();
    let mut opened = hints(&disk).unwrap();
    opened.preparation().unwrap().save_checkpoint(7, b"first").unwrap();
    opened.preparation().unwrap().save_checkpoint(9, b"second").unwrap();
    drop(opened);
    for (at, copy) in flipped(&disk, "preparing-1.hints") {
        let found = seen(&mut hints(&copy).unwrap()).unwrap();
        assert_eq!(found.checkpoint, Some((7, b"first".to_vec())), "{at}: the one before is left");
    }
    let mut opened = hints(&disk).unwrap();
    opened.preparation().unwrap().save_generation(&[1; 50]).unwrap();
    drop(opened);
    for (at, copy) in flipped(&disk, "generation-1.hints") {
        assert_eq!(seen(&mut hints(&copy).unwrap()).unwrap(), Seen::default(), "{at}");
        assert_eq!(copy.file_names(), ["anchor"]);
    }
}
