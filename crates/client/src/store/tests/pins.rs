//! Pins: who may replace them, and what goes when they are replaced.

use super::*;
use privet_table::update_log::EpochHash;

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
    let (part, _) = stored(&mut store, &bytes(20), PartKind::Hint);
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

/// A crash while pins are taken over leaves them in a file that only the earlier spelling names.
#[test]
fn pins_that_were_not_quite_taken_over_are_known() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(directory.path());
    store.pin("https://a", "t", &pin(1, 3)).unwrap();
    std::fs::rename(store.pin_path("https://a"), store.pin_path("HTTPS://A:443")).unwrap();
    assert_eq!(store.pins("https://a").unwrap(), []);
    let elsewhere = store.pins_elsewhere(&["https://a"]).unwrap();
    assert_eq!(elsewhere.iter().map(|known| known.pin).collect::<Vec<_>>(), [pin(1, 3)]);
}

#[test]
fn a_pin_file_damaged_anywhere_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(directory.path());
    store.pin("http://a", "table", &pin(1, 0)).unwrap();
    let path = store.pin_path("http://a");
    for file in damaged(&std::fs::read(&path).unwrap()) {
        std::fs::write(&path, &file).unwrap();
        let error = store.pins("http://a").unwrap_err();
        assert_eq!(error.blame(), Blame::Corrupted);
        assert!(error.message().contains(path.to_str().unwrap()), "{error} names the file");
        let refused = store.pin("http://a", "table", &pin(1, 0)).unwrap_err();
        assert_eq!(refused.blame(), Blame::Corrupted);
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
