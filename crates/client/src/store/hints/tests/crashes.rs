//! Cuts the history off at every operation, and every recovery from that too.

use super::history::{
    Expected, History, Seen, generation, goes_on, hints, key_at, live, live_through_changes, lived,
    record, seen,
};
use crate::disk::simulated::{Dice, Disk, SURVIVALS, Survival};
use crate::state::HintStore as _;
use privet_core::{Blame, Result};
use privet_schemes::contract::ReservationId;

/// Seeds for each way of surviving that involves a choice.
const SEEDS: u64 = 3;

/// The names of the files; those of journals without the number of the file.
fn without_files(disk: &Disk) -> Vec<String> {
    let generation = |name: String| match name.strip_prefix("journal-") {
        Some(rest) => format!("journal-{}", rest.split('-').next().unwrap()),
        None => name,
    };
    disk.file_names().into_iter().map(generation).collect()
}

fn cut_off(live: History, operation: usize) -> (Disk, Expected) {
    let disk = Disk::default().stopping_at(operation);
    let mut expected = Expected::new();
    // The last operations belong to closing, whose end is not reported.
    let _ = live(&disk, &mut expected);
    (disk, expected)
}

#[test]
fn the_history_itself_ends_as_expected() {
    let disk = Disk::default();
    let mut expected = Expected::new();
    live(&disk, &mut expected).unwrap();
    let found = seen(&mut hints(&disk).unwrap()).unwrap();
    expected.confirm(&found).unwrap();
    assert_eq!((found.changes.len(), found.unfinished.len(), found.ready), (3, 1, false));
    assert_eq!(without_files(&disk), ["anchor", "generation-4.hints", "journal-4"]);
}

#[test]
fn the_history_through_changes_ends_as_expected() {
    let disk = Disk::default();
    let mut expected = Expected::new();
    live_through_changes(&disk, &mut expected).unwrap();
    let found = seen(&mut hints(&disk).unwrap()).unwrap();
    expected.confirm(&found).unwrap();
    assert_eq!((found.changes.len(), found.unfinished.len(), found.ready), (4, 1, false));
    assert_eq!((found.prepared_for, found.stands_at, found.checkpoint), (Some(11), Some(12), None));
    assert_eq!(without_files(&disk), ["anchor", "generation-1.hints", "journal-1"]);
    // Two generations that were used, one that the hints gave up when the table moved on, and
    // checkpoints.
    let erased: [&[u8]; 5] =
        [&generation(1)[..64], &generation(2)[..64], &generation(3)[..64], &[20; 64], &[70; 64]];
    for what in erased {
        assert!(!holds(&disk, what), "a file still holds {what:?}");
    }
}

#[test]
fn a_crash_at_any_operation_loses_nothing_that_was_acknowledged() {
    crash_at_any_operation(live);
}

#[test]
fn a_crash_while_the_table_changes_loses_nothing_that_was_acknowledged() {
    crash_at_any_operation(live_through_changes);
}

fn crash_at_any_operation(live: History) {
    let operations = operations(live);
    let mut renewed = 0;
    for operation in 0..operations {
        let (disk, expected) = cut_off(live, operation);
        let second = |name: &String| name.starts_with("journal") && !name.ends_with("-1.hints");
        renewed += usize::from(disk.file_names().iter().any(second));
        for survival in SURVIVALS {
            let seeds = if let Survival::Prefix | Survival::Subset = survival { SEEDS } else { 1 };
            for seed in 0..seeds {
                let at =
                    format!("operation {operation} of {operations}, {survival:?}, seed {seed}");
                let mut dice = Dice::new(seed + 1000 * operation as u64);
                let survivor = disk.after(survival, &mut dice);
                let mut opened = hints(&survivor).unwrap_or_else(|error| panic!("{at}: {error:?}"));
                let found = seen(&mut opened).unwrap_or_else(|error| panic!("{at}: {error:?}"));
                drop(opened);
                let names = survivor.file_names();
                let journals = names.iter().filter(|name| name.starts_with("journal")).count();
                assert_eq!(journals, usize::from(found.generation.is_some()), "{at}: {names:?}");
                assert!(!names.iter().any(|name| name.ends_with(".new")), "{at}: {names:?}");
                // Each outcome is checked against what was certain at the crash.
                let mut expected = expected.clone();
                expected.confirm(&found).unwrap_or_else(|why| panic!("{at}: {why}"));
                goes_on(&survivor, &found).unwrap_or_else(|error| panic!("{at}: {error:?}"));
            }
        }
    }
    assert!(renewed > 10, "a journal was renewed during {renewed} operations only");
}

#[test]
fn a_crash_within_the_recovery_from_a_crash_is_no_worse() {
    crash_within_recovery(live, 1);
}

#[test]
fn a_crash_within_the_recovery_from_one_while_the_table_changes_is_no_worse() {
    // Every third one, to save time; each way of surviving still occurs.
    crash_within_recovery(live_through_changes, 3);
}

fn crash_within_recovery(live: History, step: usize) {
    let operations = operations(live);
    for operation in (0..operations).step_by(step) {
        let (disk, expected) = cut_off(live, operation);
        // A killed process leaves everything, but nothing of it is safe yet: this is the most that
        // a recovery can lose. The other ways take turns, to save time.
        let other = (operation % 2 == 0).then(|| SURVIVALS[1 + operation / 2 % 4]);
        for first in std::iter::once(Survival::Killed).chain(other) {
            let mut dice = Dice::new(operation as u64);
            let survivor = disk.after(first, &mut dice);
            for within in 0.. {
                let at = format!("operation {operation} of {operations}, {first:?}, then {within}");
                let recovering = survivor.after(Survival::Killed, &mut dice).stopping_at(within);
                let mut expected = expected.clone();
                let outcome = hints(&recovering).and_then(|mut hints| seen(&mut hints));
                if let Ok(found) = &outcome {
                    expected.acted_upon(found).unwrap_or_else(|why| panic!("{at}: {why}"));
                }
                let second = SURVIVALS[1 + (operation + within) % 4];
                let survivor = recovering.after(second, &mut dice);
                let found = hints(&survivor).and_then(|mut hints| seen(&mut hints));
                let found = found.unwrap_or_else(|error| panic!("{at}, {second:?}: {error:?}"));
                expected.confirm(&found).unwrap_or_else(|why| panic!("{at}, {second:?}: {why}"));
                if recovering.operations() <= within {
                    break;
                }
            }
        }
    }
}

/// How many operations the whole history takes.
fn operations(live: History) -> usize {
    let disk = Disk::default();
    live(&disk, &mut Expected::new()).unwrap();
    let operations = disk.operations();
    assert!(operations > 200, "{operations} operations are a short history");
    operations
}

#[test]
fn what_was_replaced_is_nowhere_on_the_disk() {
    let (disk, _) = lived();
    // Of the first generation: hints, a change, a query. And of a checkpoint.
    let erased: [&[u8]; 5] =
        [&generation(1)[..64], &generation(9)[..64], &[3; 40], &[0xc2; 64], &[25; 64]];
    for what in erased {
        let once = (0..operations(live))
            .step_by(3)
            .any(|operation| holds(&cut_off(live, operation).0, what));
        assert!(once, "{what:?} was on the disk before");
        assert!(!holds(&disk, what), "a file still holds {what:?}");
    }
}

fn holds(disk: &Disk, what: &[u8]) -> bool {
    disk.all_bytes().iter().any(|bytes| bytes.windows(what.len()).any(|window| window == what))
}

/// Whether or not a file is erased in time: what was prepared for one version is never continued,
/// or switched to, in another.
#[test]
fn what_was_prepared_before_the_table_changed_counts_for_nothing_if_a_crash_leaves_it() {
    let disk = Disk::default();
    let mut opened = hints(&disk).unwrap();
    opened.preparation().unwrap().save_generation(&generation(1)).unwrap();
    opened.switch().unwrap();
    opened.preparation().unwrap().save_checkpoint(10, b"checkpoint").unwrap();
    let checkpoint = disk.read("preparing-0.hints");
    opened.preparation().unwrap().save_generation(&generation(2)).unwrap();
    let prepared = disk.read("generation-2.hints");
    opened.follow(b"change", &key_at(5)).unwrap();
    drop(opened);
    for (name, left) in [("preparing-0.hints", checkpoint), ("generation-2.hints", prepared)] {
        let disk = disk.snapshot();
        let folder: &dyn crate::disk::Folder = &disk;
        let medium = folder.create(name).unwrap();
        medium.write_at(0, &left).unwrap();
        medium.sync().unwrap();
        folder.sync().unwrap();
        let mut opened = hints(&disk).unwrap();
        let found = seen(&mut opened).unwrap();
        assert_eq!((found.checkpoint, found.ready), (None, false), "{name}");
        assert_eq!(opened.switch().unwrap_err().blame(), Blame::ApiMisuse, "{name}");
        assert!(!disk.file_names().contains(&name.to_owned()), "{name} is erased");
    }
}

/// A disk on which generation 1 is used up and answered, except for changes that are only handed
/// over. Beside it lies a generation from a process that condensed it and ended before the switch.
fn used_up() -> Disk {
    let disk = Disk::default();
    let mut opened = hints(&disk).unwrap();
    opened.preparation().unwrap().save_generation(&generation(1)).unwrap();
    opened.switch().unwrap();
    opened.reserve_one(ReservationId(0), &record(b"the last", b"query")).unwrap();
    opened.preparation().unwrap().save_generation(&generation(2)).unwrap();
    disk
}

fn condense(disk: &Disk) -> Result<()> {
    let mut opened = hints(disk)?;
    let found = seen(&mut opened)?;
    match found.generation.as_deref() {
        Some(current) if *current == generation(1) => {
            for (id, _) in found.unfinished {
                opened.settle(ReservationId(id), b"answered")?;
            }
            opened.switch_to(&generation(3))
        }
        _ => Ok(()),
    }
}

#[test]
fn a_condensation_that_is_cut_off_is_made_again_whatever_it_left() {
    let done = used_up();
    condense(&done).unwrap();
    let before = used_up().operations();
    let operations = done.operations() - before;
    assert!(operations > 20, "{operations} operations");
    let (mut switched, mut again) = (0, 0);
    for operation in 0..operations {
        for survival in SURVIVALS {
            let at = format!("operation {operation} of {operations}, {survival:?}");
            let mut dice = Dice::new(operation as u64);
            let disk = used_up().stopping_at(before + operation);
            // The last operations belong to closing, whose end is not reported.
            let _ = condense(&disk);
            let survivor = disk.after(survival, &mut dice);
            let found = seen(&mut hints(&survivor).unwrap()).unwrap();
            match found.generation.as_deref() {
                Some(current) if *current == generation(1) => again += 1,
                Some(current) if *current == generation(3) => switched += 1,
                other => panic!("{at}: generation {:?}", other.map(|bytes| bytes[0])),
            }
            condense(&survivor).unwrap_or_else(|error| panic!("{at}: {error:?}"));
            let found = seen(&mut hints(&survivor).unwrap()).unwrap();
            let expected = Seen {
                generation: Some(generation(3)),
                prepared_for: Some(4),
                stands_at: Some(4),
                ..Seen::default()
            };
            assert_eq!(found, expected, "{at}");
            goes_on(&survivor, &found).unwrap();
            let names = without_files(&survivor);
            assert_eq!(names, ["anchor", "generation-2.hints", "journal-2"], "{at}");
        }
    }
    assert!(switched > 10 && again > 50, "{switched} {again}");
}
