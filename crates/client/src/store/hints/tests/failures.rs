//! A full or failing disk: at every operation once, and from every operation on.

use super::history::{
    Expected, History, goes_on, hints, key_at, live, live_through_changes, record, seen,
};
use crate::disk::simulated::{Dice, Disk, Survival};
use crate::state::HintStore as _;
use privet_core::Blame;
use privet_schemes::contract::ReservationId;

fn refused(live: History, refuse: std::ops::Range<usize>, survival: Survival) -> bool {
    let at = format!("{refuse:?} refused, {survival:?}");
    let disk = Disk::default().refusing(refuse.clone());
    let mut expected = Expected::new();
    match live(&disk, &mut expected) {
        Err(error) => assert_eq!(error.blame(), Blame::Unavailable, "{at}: {error:?}"),
        // Closing cannot fail: commits that it does not count are counted at the next opening.
        Ok(()) if disk.has_refused() => {}
        Ok(()) => return false,
    }
    let survivor = disk.after(survival, &mut Dice::new(refuse.start as u64)).refusing(0..0);
    let found = hints(&survivor).and_then(|mut hints| seen(&mut hints));
    let found = found.unwrap_or_else(|error| panic!("{at}: {error:?}"));
    expected.confirm(&found).unwrap_or_else(|why| panic!("{at}: {why}"));
    goes_on(&survivor, &found).unwrap_or_else(|error| panic!("{at}: {error:?}"));
    true
}

#[test]
fn one_refused_operation_fails_the_call_and_loses_nothing() {
    for live in [live as History, live_through_changes] {
        let survival = |operation| [Survival::Killed, Survival::Subset][operation % 2];
        let mut operation = 0;
        while refused(live, operation..operation + 1, survival(operation)) {
            operation += 1;
        }
        assert!(operation > 200, "only {operation} operations");
    }
}

#[test]
fn a_disk_that_fails_for_good_loses_nothing() {
    for live in [live as History, live_through_changes] {
        let survival = |operation| [Survival::Nothing, Survival::Killed][operation % 2];
        let mut operation = 0;
        while refused(live, operation..usize::MAX, survival(operation)) {
            operation += 1;
        }
        assert!(operation > 200, "only {operation} operations");
    }
}

#[test]
fn after_a_failed_commit_the_handle_does_nothing_more() {
    let disk = Disk::default();
    live(&disk, &mut Expected::new()).unwrap();
    let mut opened = hints(&disk).unwrap();
    let before = seen(&mut opened).unwrap();
    let now = disk.operations();
    let record = record(b"change", b"query");
    let id = ReservationId(2);
    let disk = disk.refusing(now..now + 1);
    assert_eq!(opened.reserve_one(id, &record).err().unwrap().blame(), Blame::Unavailable);
    assert!(disk.has_refused());
    let written = disk.operations();
    for outcome in [
        opened.reserve_one(id, &record).map(drop),
        opened.reserve(&[]).map(drop),
        opened.settle(ReservationId(1), b"change"),
        opened.flush(),
        opened.follow(b"change", &key_at(5)),
        opened.restart(&key_at(5)),
        opened.load().map(drop),
        opened.preparation().map(drop),
        opened.switch(),
    ] {
        let error = outcome.unwrap_err();
        assert_eq!(error.blame(), Blame::Unavailable);
        assert!(error.message().contains("start again"), "{error}");
    }
    drop(opened);
    assert_eq!(disk.operations(), written, "nothing was written after the failure");
    assert_eq!(seen(&mut hints(&disk).unwrap()).unwrap(), before);
}
