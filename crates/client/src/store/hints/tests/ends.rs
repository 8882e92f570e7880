//! Hints that have ended: once that was reported, no crash undoes it, and nothing is reserved any
//! more.

use super::super::*;
use super::history::{generation, hints, key, key_at, record, seen};
use crate::disk::simulated::{Dice, Disk, SURVIVALS};
use crate::state::HintStore as _;
use crate::store::HintsCondition;

const WHY: &str = "the second server's answer is not from the table";

/// A disk with hints, two of them used and one of those answered.
fn in_use() -> Disk {
    let disk = Disk::default();
    let mut opened = hints(&disk).unwrap();
    opened.preparation().unwrap().save_generation(&generation(1)).unwrap();
    opened.switch().unwrap();
    opened.reserve_one(ReservationId(0), &record(b"first", b"query")).unwrap();
    opened.settle(ReservationId(0), b"first answer").unwrap();
    opened.reserve_one(ReservationId(1), &record(b"second", b"query")).unwrap();
    drop(opened);
    disk
}

/// An end that an answer causes, and one without an answer.
const CAUSES: [Option<ReservationId>; 2] = [Some(ReservationId(1)), None];

/// Whether it was reported that the hints have ended, durably.
fn end(disk: &Disk, cause: Option<ReservationId>) -> bool {
    let ended = hints(disk).and_then(|mut hints| {
        hints.end(cause, b"the end", WHY)?;
        // Closing is cut off as well.
        Ok(())
    });
    ended.is_ok()
}

fn condition(disk: &Disk) -> HintsCondition {
    inspect(disk, true).unwrap().unwrap().condition
}

fn why(disk: &Disk) -> Option<String> {
    match condition(disk) {
        HintsCondition::Whole { ended, .. } => ended,
        _ => panic!("not whole"),
    }
}

fn changes(disk: &Disk) -> Vec<Vec<u8>> {
    seen(&mut hints(disk).unwrap()).unwrap().changes
}

#[test]
fn after_the_end_nothing_is_reserved_or_switched_by_this_process_or_a_later_one() {
    let disk = in_use();
    assert_eq!(why(&disk), None);
    let mut opened = hints(&disk).unwrap();
    // A next generation that waits for its turn waits for ever.
    opened.preparation().unwrap().save_generation(&generation(2)).unwrap();
    opened.end(Some(ReservationId(1)), b"the end", WHY).unwrap();
    for _ in 0..2 {
        let next = record(b"third", b"query");
        for outcome in [
            opened.reserve_one(ReservationId(2), &next).map(drop),
            opened.switch(),
            opened.switch_to(&generation(3)),
            opened.follow(b"change", &key_at(5)),
            opened.restart(&key_at(5)),
        ] {
            assert_eq!(outcome.unwrap_err().blame(), Blame::Integrity);
        }
        drop(opened);
        opened = hints(&disk).unwrap();
    }
    let found = seen(&mut opened).unwrap();
    assert_eq!(found.changes.last().unwrap(), b"the end");
    assert!(found.unfinished.is_empty());
    drop(opened);
    assert_eq!(why(&disk).as_deref(), Some(WHY));
    assert!(erase_folder(&disk).unwrap());
    let mut anew = hints(&disk).unwrap();
    assert!(seen(&mut anew).unwrap().generation.is_none(), "it begins anew");
}

#[test]
fn a_crash_at_any_operation_leaves_the_end_whole_or_not_begun() {
    CAUSES.into_iter().for_each(crash_at_any_operation);
}

fn crash_at_any_operation(cause: Option<ReservationId>) {
    let before = in_use().operations();
    let done = in_use();
    assert!(end(&done, cause));
    let operations = done.operations() - before;
    assert!(operations > 5, "{operations} operations");
    let (mut ended, mut open) = (0, 0);
    for operation in 0..operations {
        for survival in SURVIVALS {
            let at = format!("operation {operation} of {operations}, {survival:?}");
            let disk = in_use().stopping_at(before + operation);
            let said = end(&disk, cause);
            let survivor = disk.after(survival, &mut Dice::new(operation as u64));
            let changes = changes(&survivor);
            let has_ended = why(&survivor).is_some();
            assert_eq!(
                has_ended,
                changes.last().unwrap() == b"the end",
                "{at}: one with the other"
            );
            assert!(has_ended || !said, "{at}: what was said is lost");
            if has_ended {
                ended += 1;
            } else {
                open += 1;
                assert_eq!(changes.len(), 3, "{at}");
            }
        }
    }
    assert!(ended > 5 && open > 5, "{ended} {open}");
}

#[test]
fn a_reason_of_any_length_is_kept_as_far_as_it_goes() {
    for (len, kept) in [(0, 0), (1, 1), (2048, 2048), (2049, 2048), (100_000, 2048)] {
        let disk = in_use();
        hints(&disk).unwrap().end(Some(ReservationId(1)), b"the end", &"x".repeat(len)).unwrap();
        assert_eq!(why(&disk).unwrap().len(), kept);
    }
    // A two-byte character at the cut is left out.
    let disk = in_use();
    let reason = format!("x{}", "é".repeat(2000));
    hints(&disk).unwrap().end(Some(ReservationId(1)), b"the end", &reason).unwrap();
    assert_eq!(why(&disk).unwrap().len(), 2047);
}

#[test]
fn an_end_of_something_that_is_not_unfinished_is_refused_and_changes_nothing() {
    let disk = in_use();
    let before = changes(&disk);
    for id in [0, 2] {
        let mut opened = hints(&disk).unwrap();
        assert_eq!(
            opened.end(Some(ReservationId(id)), b"the end", WHY).unwrap_err().blame(),
            Blame::ApiMisuse
        );
        drop(opened);
        assert_eq!((changes(&disk), why(&disk)), (before.clone(), None));
    }
}

/// Whatever the user believes of the servers, and whatever table they show: only erasing the hints
/// allows a new beginning.
#[test]
fn an_end_outlives_the_table_it_came_with() {
    for cause in CAUSES {
        let disk = in_use();
        assert!(end(&disk, cause));
        let folder = || Arc::new(disk.clone()) as Arc<dyn Folder>;
        for (key, others) in [
            (key_at(5), Others::Replace),
            (key_at(5), Others::Refuse),
            (HintsKey { servers: [3; 32], ..key() }, Others::Replace),
            (key(), Others::Replace),
        ] {
            for to_follow in [false, true] {
                let opened = KeptHints::open(folder(), &key, to_follow, others).unwrap();
                let Opening::Have { mut hints, notice } = opened else { panic!("busy") };
                let saved = hints.load().unwrap();
                assert_eq!((saved.ended.as_deref(), notice), (Some(WHY), None));
                assert_eq!(saved.changes.last().unwrap().as_slice(), b"the end");
            }
        }
        assert_eq!(changes(&disk).last().unwrap(), b"the end");
        assert!(has_ended(&disk).unwrap());
        let mut again = hints(&disk).unwrap();
        for cause in CAUSES {
            let twice = again.end(cause, b"the end", WHY).unwrap_err();
            assert_eq!(twice.blame(), Blame::Integrity);
        }
    }
    assert!(!has_ended(&in_use()).unwrap());
    let nothing = hints(&Disk::default()).unwrap().end(None, b"the end", WHY);
    assert_eq!(nothing.unwrap_err().blame(), Blame::ApiMisuse);
}
