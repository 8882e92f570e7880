//! What is refused before anything is written, and a whole life of a table.

use super::*;
use crate::build::{BuildOptions, OnDuplicate};
use crate::import::{Format, OnEmptyKey};
use crate::key_map::{KeyFormat, KeyMapKind, Normalization};
use privet_core::Reason;
use tempfile::TempDir;

fn rows(csv: &str) -> Source {
    Source::reader("rows", std::io::Cursor::new(csv.to_owned())).format(Format::Csv)
}

fn refusal<T>(outcome: Result<T>) -> (Option<Reason>, String) {
    let error = outcome.err().expect("refused");
    (error.reason(), error.to_string())
}

/// A table of two keys that is to be built in a folder with a publisher's key.
fn wanted() -> (TempDir, NewTable) {
    let folder = TempDir::new().unwrap();
    let key = folder.path().join("p.key");
    PublisherKey::generate().unwrap().create_file(&key).unwrap();
    let making = BuildOptions { key: Some("k".into()), ..BuildOptions::default() };
    let output = folder.path().join("t.privet");
    (folder, NewTable { output, making, publisher_key: Some(key), ..NewTable::default() })
}

fn built(wanted: &NewTable, csv: &str) -> Result<Built> {
    build(wanted, vec![rows(csv)], &mut |_| Ok(()))
}

#[test]
fn what_is_said_of_keys_needs_some() {
    let (_folder, table) = wanted();
    let with = |making| NewTable { making, ..table.clone() };
    let plain = BuildOptions::default;
    for making in [
        BuildOptions { key_format: Some(KeyFormat::Hex), ..plain() },
        BuildOptions { key_map: KeyMapKind::Cuckoo, ..plain() },
        BuildOptions { parts: Some(2), ..plain() },
        BuildOptions { room: 1, ..plain() },
        BuildOptions { on_duplicate: OnDuplicate::All, ..plain() },
        BuildOptions { normalization: Normalization::from_names(&["trim"]).unwrap(), ..plain() },
    ] {
        let refused = refusal(built(&with(making), "k,v\na,1\n"));
        assert_eq!(refused.0, Some(Reason::NoKeyColumn), "{refused:?}");
    }
    let sources = vec![rows("k,v\na,1\n").on_empty_key(OnEmptyKey::Skip)];
    let refused = refusal(build(&with(plain()), sources, &mut |_| Ok(())));
    assert_eq!(refused.0, Some(Reason::NoKeyColumn), "{refused:?}");
    assert!(!table.output.exists());
    built(&with(plain()), "k,v\na,1\n").unwrap();
}

#[test]
fn keys_change_only_with_the_table_that_ends() {
    let (_folder, table) = wanted();
    let hand_over_to = table.publisher_key.clone();
    let refused = refusal(built(&NewTable { hand_over_to, ..table.clone() }, "k,v\na,1\n"));
    assert!(refused.1.contains("the one that ends for it"), "{refused:?}");
    assert!(!table.output.exists());
}

#[test]
fn an_update_does_one_thing_and_a_trial_none() {
    let (_folder, table) = wanted();
    built(&table, "k,v\na,1\nb,2\n").unwrap();
    let key = table.publisher_key.clone().unwrap();
    let signed =
        || Update { table: table.output.clone(), publisher_key: key.clone(), ..Update::default() };
    let edits = || {
        NewRows::Edited(RowEdits {
            set: vec![("a".into(), r#"{"v":"3"}"#.into())],
            delete: vec![b"b".to_vec()],
            ..RowEdits::default()
        })
    };
    let does = |wanted: Update, rows| update(&wanted, rows, &mut |_| Ok(()));
    let refused = refusal(does(signed(), NewRows::AsBefore));
    assert_eq!(refused.0, Some(Reason::NothingToChange));
    let hand_over_to = Some(key.clone());
    let refused = refusal(does(Update { hand_over_to, ..signed() }, edits()));
    assert!(refused.1.contains("by themselves"), "{refused:?}");
    let tried = does(Update { dry_run: true, ..signed() }, edits()).unwrap();
    assert_eq!((tried.epoch, tried.epochs, tried.deleted), (1, 1, 1));
    let compacts = Update { dry_run: true, compact: Some(0), ..signed() };
    assert!(refusal(does(compacts, edits())).1.contains("tried"));
    // A caller who wants no more ends it before anything is signed.
    let ended = |_: Progress| Err(Error::api_misuse("enough"));
    assert_eq!(refusal(update(&signed(), edits(), &mut { ended })).1, "enough");

    let updated = does(Update { compact: Some(0), ..signed() }, edits()).unwrap();
    assert_eq!((updated.epoch, updated.epochs), (1, 1));
    assert_eq!((updated.replaced, updated.deleted), (1, 1));
    assert!(updated.compacted && updated.log_bytes == 0);
    let (by, on_duplicate) = (rows("k,v\na,3\n"), OnDuplicate::Error);
    let replaced = NewRows::Replaced { by, on_duplicate, nested: false };
    let updated = does(signed(), replaced).unwrap();
    assert_eq!((updated.epochs, updated.unchanged), (0, Some(1)));
}
