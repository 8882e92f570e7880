//! Hints that no pin needs any more.

use super::*;

/// Makes hints that served one query, whose answer did not come, under the parameters of `pin`.
pub(super) fn used_hints_in(state: &mut dyn State, pin: &Pin, scheme: SchemeId) {
    let HintsOpened::Have { mut hints, .. } =
        state.open_hints(&key_of(pin, scheme), false).unwrap()
    else {
        panic!("nobody else has them")
    };
    hints.preparation().unwrap().save_generation(b"secret").unwrap();
    hints.switch().unwrap();
    let reserved = Reserved::new(ReservationId(0), vec![7].into(), vec![vec![8, 9]]);
    hints.reserve_one(ReservationId(0), Reservation::new(reserved).record()).unwrap();
}

/// The same, and their place.
fn used_hints(store: &mut Store, pin: &Pin, scheme: SchemeId) -> PathBuf {
    used_hints_in(store, pin, scheme);
    store.table_directory(pin.table.id).join(format!("{PRIVATE}{}", scheme.name()))
}

fn with_parameters(parameters: u8, epoch: u64) -> Pin {
    Pin { parameter_digest: [parameters; 32], ..pin(1, epoch) }
}

#[test]
fn hints_of_a_scheme_that_no_pin_calls_for_any_more_are_erased() {
    let (old, new) = (with_parameters(4, 0), with_parameters(8, 0));
    let subsets = SchemeId::DummySubsets;
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(directory.path());
    for server in ["http://a", "http://b"] {
        store.pin(server, "t", &old).unwrap();
    }
    let hints = used_hints(&mut store, &old, subsets);
    store.pin("http://a", "t", &new).unwrap();
    assert!(hints.join("anchor").exists(), "another server's pin calls for them");
    store.pin("http://b", "t", &new).unwrap();
    assert!(!hints.exists());

    // The same by an update, when the new pin needs nothing of the old.
    let updated = with_parameters(9, 1);
    let hints = used_hints(&mut store, &updated, subsets);
    store.pin("http://a", "t", &updated).unwrap();
    store.pin("http://b", "t", &updated).unwrap();
    assert!(hints.join("anchor").exists());
    store.pin("http://a", "t", &updated).unwrap();
    assert!(hints.join("anchor").exists(), "nothing changed");
}

#[test]
fn hints_in_use_or_of_nobody_knows_what_are_not_erased_by_a_pin() {
    let (old, new) = (with_parameters(4, 0), with_parameters(8, 0));
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(directory.path());
    store.pin("http://a", "t", &old).unwrap();
    let hints = used_hints(&mut store, &old, SchemeId::DummySubsets);
    {
        let folder = Directory::existing(&hints);
        let _in_use = folder.lock("anchor").unwrap().unwrap();
        store.pin("http://a", "t", &new).unwrap();
        assert!(hints.join("anchor").exists());
    }
    store.pin("http://a", "t", &old).unwrap();
    std::fs::write(hints.join("anchor"), [7; 8192]).unwrap();
    store.pin("http://a", "t", &new).unwrap();
    let report = report(&Directory::existing(directory.path())).unwrap();
    assert!(
        matches!(report.tables[0].hints[0].condition, HintsCondition::Damaged(_)),
        "it is still there to be told of: {report:?}"
    );
}
