//! Tables that take the place of others row by row, compared with plain maps.

use super::*;
use crate::build::{BuildOptions, OnDuplicate, RangeColumns, build_table};
use crate::import::{ColumnType, Format, Source};
use crate::key_map::{KeyMapKind, Normalization};
use crate::owner::OwnedTable;
use crate::snapshot::Snapshot;
use crate::update_log::{PublisherKey, UpdateLog, log_path};
use privet_core::Blame;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use tempfile::TempDir;

fn how(on_duplicate: OnDuplicate, columns_may_change: bool) -> HowReplaced {
    HowReplaced { on_duplicate, nested: false, columns_may_change }
}

/// The values of each key, in their order.
type Contents = BTreeMap<String, Vec<String>>;

fn publisher() -> PublisherKey {
    PublisherKey::from_secret(&[5; 32])
}

fn source(csv: String) -> Source {
    Source::reader("rows", std::io::Cursor::new(csv)).format(Format::Csv)
}

fn csv(contents: &Contents) -> String {
    let mut csv = "name,value\n".to_owned();
    for (key, values) in contents {
        for value in values {
            csv += &format!("{key},{value}\n");
        }
    }
    csv
}

fn keyed() -> BuildOptions {
    BuildOptions {
        key: Some("name".into()),
        raw_value: Some("value".into()),
        has_log: true,
        ..BuildOptions::default()
    }
}

/// A table with a history of its own.
struct Owned {
    _directory: TempDir,
    snapshot: Snapshot,
}

impl Owned {
    fn build(csv: String, options: &BuildOptions) -> Self {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("t.privet");
        build_table(options, source(csv), &path, &mut |_| Ok(())).unwrap();
        let snapshot = Snapshot::open(&path).unwrap();
        UpdateLog::create(&log_path(&path), &snapshot, publisher().id()).unwrap();
        Self { _directory: directory, snapshot: Snapshot::open(&path).unwrap() }
    }

    fn open(&self) -> OwnedTable<'_> {
        OwnedTable::open(&self.snapshot, publisher()).unwrap()
    }

    /// Makes the table hold these rows, by as many epochs as that takes. `see` is called with the
    /// table after each.
    fn replace(
        &self,
        csv: String,
        on_duplicate: OnDuplicate,
        mut see: impl FnMut(&OwnedTable<'_>),
    ) -> Result<Counts> {
        let mut table = self.open();
        let made = table.replacement(source(csv), how(on_duplicate, false), &mut |_| Ok(()))?;
        for edits in &made.epochs {
            table.publish(edits).unwrap();
            see(&table);
        }
        drop(table);
        // What others read, who have the files alone.
        let log = UpdateLog::of(&self.snapshot).unwrap().unwrap();
        log.table(&self.snapshot).unwrap().verified_digest().unwrap();
        Ok(made.counts)
    }

    fn holds(&self, contents: &Contents, others: impl IntoIterator<Item = String>) {
        let table = self.open();
        for (key, values) in contents {
            assert_eq!(values_of(&table, key), *values, "{key}");
        }
        for key in others.into_iter().filter(|key| !contents.contains_key(key)) {
            assert!(values_of(&table, &key).is_empty(), "{key}");
        }
    }
}

fn values_of(table: &OwnedTable<'_>, key: &str) -> Vec<String> {
    let values = table.values_of(key.as_bytes()).unwrap();
    values.into_iter().map(|value| String::from_utf8(value).unwrap()).collect()
}

/// What changes from one to the other, as a replacement counts it.
fn difference(before: &Contents, after: &Contents) -> Counts {
    let mut counts = Counts::default();
    for (key, values) in after {
        *match before.get(key) {
            None => &mut counts.inserted,
            Some(old) if old == values => &mut counts.unchanged,
            Some(_) => &mut counts.replaced,
        } += 1;
    }
    counts.deleted = before.keys().filter(|key| !after.contains_key(*key)).count() as u64;
    counts
}

fn contents(most_values: usize, longest: usize) -> impl Strategy<Value = Contents> {
    let value = proptest::string::string_regex(&format!("[a-z]{{1,{longest}}}")).unwrap();
    let key = (0u32..120).prop_map(|key| format!("key {key}"));
    prop::collection::btree_map(key, prop::collection::vec(value, 1..=most_values), 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever a table held: if it takes the rows, it has these and no others. If not, it stays.
    #[test]
    fn a_table_becomes_what_the_file_says(
        cuckoo: bool,
        parts in 1u8..4,
        lists: bool,
        before in contents(1, 60),
        weeks in prop::collection::vec(contents(3, 60), 1..4),
    ) {
        let options = BuildOptions {
            key_map: if cuckoo { KeyMapKind::Cuckoo } else { KeyMapKind::Buckets },
            parts: Some(parts),
            on_duplicate: if lists { OnDuplicate::All } else { OnDuplicate::Error },
            ..keyed()
        };
        let table = Owned::build(csv(&before), &options);
        let mut held = before;
        for mut week in weeks {
            if !lists {
                week.values_mut().for_each(|values| values.truncate(1));
            }
            let epoch = table.open().identity().epoch;
            match table.replace(csv(&week), OnDuplicate::Error, |_| ()) {
                Ok(counts) => {
                    let mut expected = difference(&held, &week);
                    if parts > 1 {
                        prop_assert!(counts.deleted >= expected.deleted);
                        expected.deleted = counts.deleted;
                    }
                    prop_assert_eq!(counts, expected);
                    held = week;
                }
                Err(error) => {
                    prop_assert_eq!(error.reason(), Some(Reason::DoesNotFit), "{}", error);
                    prop_assert_eq!(table.open().identity().epoch, epoch);
                }
            }
            table.holds(&held, (0..120).map(|key| format!("key {key}")));
        }
        // The same rows again are no change.
        let epoch = table.open().identity().epoch;
        let again = table.replace(csv(&held), OnDuplicate::Error, |_| ()).unwrap();
        prop_assert_eq!(again, Counts { unchanged: held.len() as u64, ..Counts::default() });
        prop_assert_eq!(table.open().identity().epoch, epoch);
    }

    /// Where a difference takes several epochs, every version between has what was or what will be.
    #[test]
    fn every_version_between_is_whole(
        cuckoo: bool,
        parts in 1u8..4,
        before in contents(1, 30),
        after in contents(1, 30),
    ) {
        let kind = if cuckoo { KeyMapKind::Cuckoo } else { KeyMapKind::Buckets };
        let options = BuildOptions { key_map: kind, parts: Some(parts), ..keyed() };
        let owned = Owned::build(csv(&before), &options);
        let mut table = owned.open();
        let selection = crate::import::Selection {
            key: Some("name".into()),
            until: None,
            value: owned.snapshot.header().value_form.clone(),
        };
        let rows = vec![source(csv(&after))];
        let rows = KeptRows::read(rows, &selection, &options, &mut |_| Ok(())).unwrap();
        let records: Vec<Vec<u8>> = (0..table.identity().shape.records())
            .map(|number| owned.snapshot.view().record(number).unwrap().to_vec())
            .collect();
        let read = |number: u64| Ok(records[number as usize].clone());
        let shape = table.identity().shape;
        let Ok(made) = replacement(&table.layout().clone(), shape, read, &rows, 1) else {
            return Ok(());
        };
        let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for edits in &made.epochs {
            prop_assert!(parts > 1 || edits.written().len() < 20);
            table.publish(edits).unwrap();
            for key in &keys {
                let found = values_of(&table, key);
                let known = [before.get(*key), after.get(*key)];
                let known = known.map(|values| values.cloned().unwrap_or_default());
                prop_assert!(known.contains(&found), "{}: {:?}", key, found);
            }
        }
        drop(table);
        owned.holds(&after, before.keys().cloned());
    }

    #[test]
    fn rows_by_number_become_those_of_the_file(
        before in prop::collection::vec("[a-z]{1,9}", 1..30),
        after in prop::collection::vec("[a-z]{1,9}", 1..40),
    ) {
        let csv = |rows: &[String]| format!("value\n{}\n", rows.join("\n"));
        let options = BuildOptions { key: None, ..keyed() };
        let owned = Owned::build(csv(&before), &options);
        let longest = before.iter().map(String::len).max();
        let equal = before.iter().all(|value| Some(value.len()) == longest);
        let fits = |value: &String| Some(value.len()) == longest || (!equal && Some(value.len()) < longest);
        let made = owned.replace(csv(&after), OnDuplicate::Error, |_| ());
        if after.len() < before.len() || !after.iter().all(fits) {
            let error = made.unwrap_err();
            prop_assert_eq!(error.reason(), Some(Reason::DoesNotFit), "{}", error);
            return Ok(());
        }
        let same = before.iter().zip(&after).filter(|(before, after)| before == after).count();
        prop_assert_eq!(made.unwrap(), Counts {
            inserted: (after.len() - before.len()) as u64,
            replaced: (before.len() - same) as u64,
            unchanged: same as u64,
            ..Counts::default()
        });
        let rows = (0..).map(|row: u32| row.to_string()).zip(after);
        owned.holds(&rows.map(|(row, value)| (row, vec![value])).collect(), []);
    }
}

/// A list that comes anew each week and is as long as before needs no table that is built anew.
#[test]
fn a_cuckoo_table_follows_a_list_whose_keys_come_and_go() {
    let week = |number: u32| -> Contents {
        let keys = 20 * number..400 + 20 * number;
        let value = |key: u32| format!("value {:04}", key + number % 2);
        keys.map(|key| (format!("key {key}"), vec![value(key)])).collect()
    };
    let options = BuildOptions { key_map: KeyMapKind::Cuckoo, ..keyed() };
    let owned = Owned::build(csv(&week(0)), &options);
    for number in 1..30 {
        let counts = owned.replace(csv(&week(number)), OnDuplicate::Error, |_| ()).unwrap();
        assert_eq!((counts.inserted, counts.deleted, counts.replaced), (20, 20, 380));
        owned.holds(&week(number), week(number - 1).into_keys());
    }
}

#[test]
fn what_has_no_room_is_refused_with_figures_and_nothing_changes() {
    let rows = |keys: std::ops::Range<u32>| -> Contents {
        keys.map(|key| (format!("key {key}"), vec![format!("value {key}")])).collect()
    };
    for kind in KeyMapKind::ALL {
        let options = BuildOptions { key_map: kind, ..keyed() };
        let owned = Owned::build(csv(&rows(0..50)), &options);
        let error = owned.replace(csv(&rows(0..5000)), OnDuplicate::Error, |_| ()).unwrap_err();
        assert_eq!((error.blame(), error.reason()), (Blame::Exhausted, Some(Reason::DoesNotFit)));
        assert!(error.message().starts_with("rows: more than 1,000 of the 4,950 keys"), "{error}");
        let mut long = rows(0..50);
        long.insert("key 7".into(), vec!["long".repeat(40_000)]);
        let error = owned.replace(csv(&long), OnDuplicate::Error, |_| ()).unwrap_err();
        assert_eq!(error.reason(), Some(Reason::DoesNotFit));
        assert!(
            error.message().contains("1 of the 1 keys that are new or have a longer"),
            "{error}"
        );
        owned.holds(&rows(0..50), []);
        assert_eq!(owned.open().identity().epoch.0, 0);
    }
}

#[test]
fn a_key_that_occurs_twice_is_refused_unless_one_row_is_chosen() {
    let owned = Owned::build("name,value\nada,1\nbob,2\n".into(), &keyed());
    let twice = || "name,value\nada,3\nada,4\n".to_owned();
    let error = owned.replace(twice(), OnDuplicate::Error, |_| ()).unwrap_err();
    assert_eq!(error.reason(), Some(Reason::KeyTwice));
    for (choice, value) in [(OnDuplicate::First, "3"), (OnDuplicate::Last, "4")] {
        owned.replace(twice(), choice, |_| ()).unwrap();
        owned.holds(&[("ada".to_owned(), vec![value.to_owned()])].into(), ["bob".to_owned()]);
    }
    // Nor does a file without rows empty the table.
    let error = owned.replace("name,value\n".into(), OnDuplicate::Error, |_| ()).unwrap_err();
    assert!(error.message().contains("at least one"), "{error}");
}

#[test]
fn keys_are_those_of_the_table_in_any_spelling() {
    let options = BuildOptions {
        normalization: Normalization::from_names(&["lower", "alphanumeric"]).unwrap(),
        ..keyed()
    };
    let owned = Owned::build("name,value\nA-1,x\nB-2,y\n".into(), &options);
    let counts = owned.replace("name,value\na1,x\nb 3,y\n".into(), OnDuplicate::Error, |_| ());
    let expected = Counts { inserted: 1, deleted: 1, unchanged: 1, ..Counts::default() };
    assert_eq!(counts.unwrap(), expected);
    let table = owned.open();
    assert_eq!((values_of(&table, "B-3"), values_of(&table, "b2")), (vec!["y".into()], vec![]));
}

/// A list of networks comes anew with other bounds. In one epoch, clients get bounds and values.
#[test]
fn ranges_become_those_of_the_file() {
    let options = BuildOptions {
        key: None,
        ranges: Some(RangeColumns { from: "net".into(), to: None, nested: false }),
        key_map: KeyMapKind::Cuckoo,
        ..keyed()
    };
    let rows = |first: u32, seconds: u32| {
        let mut csv = "net,value\n".to_owned();
        for number in first..first + 100 {
            csv += &format!("10.0.{number}.0/24,first{number}\n");
        }
        for number in 0..seconds {
            csv += &format!("10.1.{number}.0/25,second{number}\n");
        }
        csv
    };
    let owned = Owned::build(rows(0, 100), &options);
    let mut epochs = 0;
    let counts = owned.replace(rows(50, 90), OnDuplicate::Error, |_| epochs += 1).unwrap();
    let expected = Counts { inserted: 50, deleted: 60, unchanged: 140, ..Counts::default() };
    assert_eq!((counts, epochs), (expected, 1));
    let value = |address: &str| values_of(&owned.open(), address);
    assert_eq!(value("10.0.120.9"), ["first120"]);
    assert_eq!(value("10.1.89.9"), ["second89"]);
    for gone in ["10.0.7.9", "10.1.95.9", "10.1.3.200"] {
        assert!(value(gone).is_empty(), "{gone}");
    }
    // Also if nothing but a bound changes.
    let wider = rows(50, 90).replace("10.1.3.0/25", "10.1.3.0/24");
    let counts = owned.replace(wider, OnDuplicate::Error, |_| epochs += 1).unwrap();
    assert_eq!((counts.unchanged, epochs), (190, 2));
    assert_eq!(value("10.1.3.200"), ["second3"]);
    // Points of another kind are another table of ranges all the same.
    let numbers = "net,value\n5,x\n9,y\n".to_owned();
    owned.replace(numbers, OnDuplicate::Error, |_| ()).unwrap();
    assert_eq!((value("7"), value("10.1.3.200")), (vec!["x".into()], vec!["y".into()]));
}

/// A row of nested ranges may lie in several pieces, so none is changed alone.
#[test]
fn a_table_of_nested_ranges_is_changed_as_a_whole() {
    let options = BuildOptions {
        key: None,
        ranges: Some(RangeColumns { from: "net".into(), to: None, nested: true }),
        ..keyed()
    };
    let rows = "net,value\n10.0.0.0/8,carrier\n10.1.0.0/16,customer\n".to_owned();
    let owned = Owned::build(rows.clone(), &options);
    {
        let table = owned.open();
        let mut editor = table.editor().unwrap();
        for row in ["10.9.9.9", "10.0.0.0/8", "10.1.0.0/16", "11.0.0.0"] {
            for edit in [editor.set(row.as_bytes(), b"x"), editor.delete(row.as_bytes())] {
                assert_eq!(edit.unwrap_err().reason(), Some(Reason::RangesNested), "{row}");
            }
        }
        let key_map = table.layout().records().key_map().unwrap();
        let read = |number| Ok(owned.snapshot.view().record(number).unwrap().to_vec());
        let mut editor = Editor::new(key_map, read);
        for edit in [editor.set(b"10.9.9.9", b"x"), editor.delete(b"10.9.9.9")] {
            assert_eq!(edit.unwrap_err().reason(), Some(Reason::RangesNested));
        }
        assert_eq!(values_of(&table, "10.9.9.9"), ["carrier"]);
    }
    // The file that takes its place may have ranges in ranges, without saying so again.
    let other = rows.replace("carrier", "another") + "10.1.2.0/24,office\n";
    owned.replace(other, OnDuplicate::Error, |_| ()).unwrap();
    let table = owned.open();
    for (key, value) in [("10.0.9.9", "another"), ("10.9.9.9", "another"), ("10.1.2.3", "office")] {
        assert_eq!(values_of(&table, key), [value]);
    }
}

/// No version has rows that its description is not of.
#[test]
fn what_describes_the_values_changes_with_all_of_them() {
    let rows = |from: u32, column: &str| {
        let rows = (from..from + 60).map(|key| format!("key {key},{key}\n"));
        format!("name,{column}\n{}", rows.collect::<String>())
    };
    let options = BuildOptions { raw_value: None, ..keyed() };
    for key in [Some("name".to_owned()), None] {
        let options = BuildOptions { key, ..options.clone() };
        let owned = Owned::build(rows(0, "phone"), &options);
        let (layout, shape) = (owned.snapshot.layout(), owned.snapshot.identity().shape);
        let made = |csv: String| {
            let selection = crate::import::Selection {
                key: options.key.clone(),
                until: None,
                value: owned.snapshot.header().value_form.clone(),
            };
            let rows = KeptRows::read(vec![source(csv)], &selection, &options, &mut |_| Ok(()));
            let read = |number| Ok(owned.snapshot.view().record(number).unwrap().to_vec());
            replacement(layout, shape, read, &rows.unwrap(), 1).unwrap().epochs
        };
        let named = |edits: &TableUpdate| {
            let values = edits.layout.as_ref()?.values()?.columns.clone();
            values.last().map(|column| column.name.clone())
        };
        let same = made(rows(1, "phone"));
        assert!(same.len() > 1, "one epoch is not enough");
        assert!(same.iter().all(|edits| named(edits).is_none_or(|name| name == "phone")));
        let other = made(rows(1, "photo"));
        assert_eq!(other.iter().map(named).collect::<Vec<_>>(), [Some("photo".to_owned())]);
    }
}

#[test]
fn columns_stay_unless_that_is_said() {
    let options = BuildOptions { raw_value: None, ..keyed() };
    let owned = Owned::build("name,phone,floor\nada,1,2\nbob,3,4\n".into(), &options);
    let mut table = owned.open();
    let mut made = |rows: &str, may_change| {
        let source = match rows.starts_with('{') {
            true => source(rows.to_owned()).format(Format::JsonLines),
            false => source(rows.to_owned()),
        };
        let made =
            table.replacement(source, how(OnDuplicate::Error, may_change), &mut |_| Ok(()))?;
        for edits in &made.epochs {
            table.publish(edits)?;
        }
        let columns = table.layout().values().map_or(&[][..], |values| &values.columns);
        Ok::<_, Error>(columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>())
    };
    let error = made("name,phone\nada,1\n", false).unwrap_err();
    assert_eq!(error.reason(), Some(Reason::ColumnsDiffer));
    assert!(error.message().contains("\"floor\""), "{error}");
    for (row, named) in [
        ("{\"name\":\"ada\",\"phone\":\"1\"}\n", "\"floor\""),
        ("{\"name\":\"ada\",\"phone\":\"1\",\"floor\":2}\n", "\"floor\""),
    ] {
        let error = made(row, false).unwrap_err();
        assert_eq!(error.reason(), Some(Reason::ColumnsDiffer));
        assert!(error.message().contains(named), "{error}");
    }
    // Nor do they become of another type, also where that is no text either.
    let typed = Owned::build(
        "name,on\nada,true\n".into(),
        &BuildOptions { types: vec![("on".into(), ColumnType::Boolean)], ..options.clone() },
    );
    let source_of = || source("name,on\nada,5\n".into()).types([("on".into(), ColumnType::Number)]);
    let how_made = |may_change| {
        let how = how(OnDuplicate::Error, may_change);
        typed.open().replacement(source_of(), how, &mut |_| Ok(())).map(|made| made.epochs.len())
    };
    assert_eq!(how_made(false).unwrap_err().reason(), Some(Reason::ColumnsDiffer));
    assert_eq!(how_made(true).unwrap(), 1);
    // Clients are told what the values are then.
    assert_eq!(made("name,phone\nada,1\n", true).unwrap(), ["phone"]);
    assert_eq!(made("name,phone,fax\nada,1,5\n", false).unwrap(), ["phone", "fax"]);
    // Of rows that may differ, they are told what all of them have, or nothing.
    let like = "{\"name\":\"ada\",\"phone\":\"1\",\"fax\":\"6\"}\n";
    assert_eq!(made(like, true).unwrap(), ["phone", "fax"]);
    assert!(made("{\"name\":\"ada\",\"phone\":\"1\"}\n", true).unwrap().is_empty());
}
