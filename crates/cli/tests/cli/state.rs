//! `privet state`: what is kept, whether it is whole, and how it is erased.

use crate::place::Place;
use insta::assert_snapshot;
use privet_client::state::{
    HintStore, HintsKey, HintsOpened, Opened, PartKey, PartState, Pin, State as _,
};
use privet_client::store::Store;
use privet_core::{Epoch, TableDigest, TableId, TableIdentity, TableShape};
use privet_schemes::SchemeId;
use privet_schemes::contract::{ReservationId, Reserved};
use privet_schemes::offline::StreamConsumer as _;
use privet_schemes::reservation::{JournalRecord, Reservation};
use privet_table::update_log::PublisherId;
use privet_wire::{PartDescription, PartKind};

fn identity(id: u8) -> TableIdentity {
    let shape = TableShape::new(300, 5).unwrap();
    let (id, epoch) = (TableId([id; 16]), Epoch(4));
    TableIdentity { id, epoch, digest: TableDigest([9; 32]), shape }
}

/// A change and a query in a journal record. Their contents do not matter here.
fn record(id: u64) -> JournalRecord {
    let (change, query) = (vec![id as u8; 40], vec![id as u8; 700]);
    Reservation::new(Reserved::new(ReservationId(id), change.into(), vec![query])).record().clone()
}

fn hints(store: &mut Store) -> Box<dyn HintStore> {
    let key = HintsKey {
        table: identity(2),
        scheme: SchemeId::DummySubsets,
        parameter_digest: [5; 32],
        servers: [0; 32],
    };
    unlocked(|| match store.open_hints(&key, false).unwrap() {
        HintsOpened::Have { hints, .. } => Some(hints),
        HintsOpened::Busy => None,
    })
}

/// Retries `open` until no other process holds the lock. A command that another test is starting at
/// this moment shares the lock between its fork and its exec.
fn unlocked<T>(mut open: impl FnMut() -> Option<T>) -> T {
    for _ in 0..500 {
        if let Some(opened) = open() {
            return opened;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("it stays locked")
}

/// Stores a part of `len` bytes, of which the first `kept` are present.
fn keep_part(store: &mut Store, kind: PartKind, len: usize, kept: usize) {
    let bytes = vec![kind as u8; len];
    let digest = *blake3::hash(&bytes).as_bytes();
    let part = PartKey { table: identity(1), kind, len: len as u64, digest };
    let mut download = unlocked(|| match store.open(&part).unwrap() {
        Opened::Have { part: PartState::Partial(download), .. } => Some(download),
        Opened::Have { .. } => panic!("there is nothing yet"),
        _ => None,
    });
    download.absorb(0, &bytes[..kept]).unwrap();
    store.append(&part, 0, &bytes[..kept]).unwrap();
    if kept == len {
        store.complete(&part).unwrap();
    }
}

/// A state directory `kept` with pins, parts and hints. Three hints are used, and one lookup is
/// answered.
fn kept() -> (Place, Store) {
    let place = Place::new();
    let mut store = Store::open(&place.path("kept")).unwrap();
    keep_part(&mut store, PartKind::Layout, 300, 300);
    keep_part(&mut store, PartKind::Hint, 200_000, 70_000);
    for (server, table) in [("http://a", 1), ("http://a", 2), ("http://b", 2)] {
        let pin = Pin {
            table: identity(table),
            parameter_digest: [5; 32],
            layout: PartDescription { len: 300, digest: [6; 32] },
            hint: None,
            publisher: (table == 2).then_some(PublisherId([7; 32])),
            last_epoch: None,
            next_key: None,
            first_publisher: None,
            scheme: None,
        };
        store.pin(server, &format!("table-{table}"), &pin).unwrap();
    }
    let mut hints = hints(&mut store);
    hints.preparation().unwrap().save_generation(&[7; 50_000]).unwrap();
    hints.switch().unwrap();
    for id in 0..3 {
        hints.reserve_one(ReservationId(id), &record(id)).unwrap();
    }
    hints.settle(ReservationId(1), &[8; 20]).unwrap();
    hints.flush().unwrap();
    hints.preparation().unwrap().save_checkpoint(123_456, &[9; 20_000]).unwrap();
    (place, store)
}

const PRIVATE: &str = "kept/tables/02020202020202020202020202020202/private-dummy-subsets";

#[test]
fn what_is_kept_is_shown_in_counts_and_sizes() {
    let (place, _store) = kept();
    assert_snapshot!(place.run("state show kept").printed(), @r#"
    kept
      pins                   3 tables from 2 servers, 1.10 KiB
    table [ID]
      seen as                table-1 at http://a
      pinned                 epoch 4
      hint                   64.12 KiB, partly downloaded
      layout                 420 B, complete
    table [ID]
      seen as                table-2 at http://a
      seen as                table-2 at http://b
      pinned                 epoch 4, updates signed by [DIGEST]
      private hints          dummy-subsets, 333.08 KiB
        epoch                4
        used                 by 3 lookups
        unfinished lookups   2
        next generation      120.56 KiB received
    "#);
    assert_snapshot!(place.run("state show kept --json").printed(), @r#"
    {"state":"kept","pinned_tables":3,"pinned_servers":2,"pin_bytes":1124,"damaged_pin_files":0,"seen":[{"server":"http://a","name":"table-1","table_id":"[ID]"},{"server":"http://a","name":"table-2","table_id":"[ID]"},{"server":"http://b","name":"table-2","table_id":"[ID]"}],"tables":[{"table_id":"[ID]","pinned":[{"epoch":4,"publisher":null}],"parts":[{"kind":"hint","bytes":65656,"form":"partial"},{"kind":"layout","bytes":420,"form":"complete"}],"hints":[]},{"table_id":"[ID]","pinned":[{"epoch":4,"publisher":"[DIGEST]"}],"parts":[],"hints":[{"scheme":"dummy-subsets","bytes":341076,"condition":"whole","epoch":4,"copied":false,"used":3,"unfinished":2,"next":"partial","next_offset":123456,"ended":null}]}]}
    "#);
    assert_snapshot!(place.run("state verify kept").printed(), @r#"
    kept
      files read             7
      damaged                none
    "#);
    assert_snapshot!(place.run("state verify kept --json").printed(), @r#"
    {"state":"kept","files":7,"damaged":[],"in_use":[],"ended":[]}
    "#);
}

#[test]
fn hints_that_have_ended_say_why() {
    let (place, mut store) = kept();
    let why = "the second server's answer is not from the table that was agreed on";
    hints(&mut store).end(Some(ReservationId(2)), &[8; 20], why).unwrap();
    assert_snapshot!(place.run("state show kept").printed(), @r#"
    kept
      pins                   3 tables from 2 servers, 1.10 KiB
    table [ID]
      seen as                table-1 at http://a
      pinned                 epoch 4
      hint                   64.12 KiB, partly downloaded
      layout                 420 B, complete
    table [ID]
      seen as                table-2 at http://a
      seen as                table-2 at http://b
      pinned                 epoch 4, updates signed by [DIGEST]
      private hints          dummy-subsets, 333.08 KiB
        epoch                4
        used                 by 3 lookups
        unfinished lookups   1
        next generation      120.56 KiB received
        ended                the second server's answer is not from the table that was agreed on (`privet state reset`)
    "#);
    assert_snapshot!(place.run("state verify kept").printed(), @r#"
    kept
      files read             7
      damaged                none
      ended                  kept/tables/[ID]/private-dummy-subsets: the second server's answer is not from the table that was agreed on (`privet state reset`)
    "#);
    assert_snapshot!(place.run("state verify kept --json").printed(), @r#"
    {"state":"kept","files":7,"damaged":[],"in_use":[],"ended":[{"hints":"kept/tables/[ID]/private-dummy-subsets","why":"the second server's answer is not from the table that was agreed on"}]}
    "#);
}

#[test]
fn looking_changes_nothing() {
    let (place, mut store) = kept();
    let contents = || {
        let names = ["anchor", "generation-1.hints", "journal-1-1.hints", "preparing-0.hints"];
        names.map(|name| std::fs::read(place.path(&format!("{PRIVATE}/{name}"))).unwrap())
    };
    let before = contents();
    place.run("state show kept");
    place.run("state verify kept");
    assert!(contents() == before, "the files differ");
    assert_eq!(hints(&mut store).load().unwrap().unfinished.len(), 2);
}

#[test]
fn hints_in_use_are_left_alone() {
    let (place, mut store) = kept();
    let _in_use = hints(&mut store);
    assert_snapshot!(place.run("state show kept").printed(), @r#"
    kept
      pins                   3 tables from 2 servers, 1.10 KiB
    table [ID]
      seen as                table-1 at http://a
      pinned                 epoch 4
      hint                   64.12 KiB, partly downloaded
      layout                 420 B, complete
    table [ID]
      seen as                table-2 at http://a
      seen as                table-2 at http://b
      pinned                 epoch 4, updates signed by [DIGEST]
      private hints          dummy-subsets, 333.08 KiB
        condition            in use by another process, which alone can tell more
    "#);
    assert_snapshot!(place.run("state verify kept").printed(), @r#"
    kept
      files read             3
      not read               kept/tables/[ID]/private-dummy-subsets: another process uses it
      damaged                none
    "#);
    let one = "--table 02020202020202020202020202020202";
    assert_snapshot!(place.run(&format!("state reset kept {one} --yes")), @r#"
    [exit 3]
    [stderr]
    privet: another process uses kept/tables/[ID]/private-dummy-subsets; end it and try again
    "#);
}

#[test]
fn damage_is_named_with_exit_code_4() {
    let (place, _store) = kept();
    place.flip(&format!("{PRIVATE}/generation-1.hints"), 4000);
    let parts = std::fs::read_dir(place.path("kept/tables/01010101010101010101010101010101"));
    let part = parts.unwrap().map(|entry| entry.unwrap().path());
    let part = part.into_iter().find(|path| path.extension().is_some_and(|it| it == "part"));
    let mut bytes = std::fs::read(part.as_ref().unwrap()).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(part.unwrap(), bytes).unwrap();
    assert_snapshot!(place.run("state verify kept"), @r#"
    [exit 4]
    [stdout]
    kept
      files read             7
      damaged                kept/tables/[ID]/layout-[ID].part: it is damaged
      damaged                kept/tables/[ID]/private-dummy-subsets/generation-1.hints: its contents are damaged
    [stderr]
    privet: 2 files are damaged
    "#);
    place.flip(&format!("{PRIVATE}/anchor"), 0);
    place.flip(&format!("{PRIVATE}/anchor"), 4096);
    assert_snapshot!(place.run("state show kept").printed(), @r#"
    kept
      pins                   3 tables from 2 servers, 1.10 KiB
    table [ID]
      seen as                table-1 at http://a
      pinned                 epoch 4
      hint                   64.12 KiB, partly downloaded
      layout                 420 B, complete
    table [ID]
      seen as                table-2 at http://a
      seen as                table-2 at http://b
      pinned                 epoch 4, updates signed by [DIGEST]
      private hints          dummy-subsets, 333.08 KiB
        damaged              kept/tables/[ID]/private-dummy-subsets/anchor: it is damaged
    "#);
}

#[test]
fn a_reset_says_what_would_be_lost_and_needs_a_yes() {
    let (place, _) = kept();
    assert_snapshot!(place.run("state reset kept").mistake(), @r#"
    privet: this would erase 1 set of private hints, 2 downloaded parts and 3 pins of 2 tables from kept. Hints and downloads are prepared anew at the next lookup; without the pins, whatever the servers show then is believed. If that is what you want, say so with --yes
    "#);
    let one = "--table 02020202020202020202020202020202";
    assert_snapshot!(place.run(&format!("state reset kept {one}")).mistake(), @r#"
    privet: this would erase 1 set of private hints, 0 downloaded parts and 2 pins of 1 table from kept. Hints and downloads are prepared anew at the next lookup; without the pins, whatever the servers show then is believed. If that is what you want, say so with --yes
    "#);
    assert_snapshot!(place.run(&format!("state reset kept {one} --yes")).printed(), @r#"
    erased 1 set of private hints, 0 downloaded parts and 2 pins of 1 table from kept
    "#);
    assert_snapshot!(place.run("state show kept").printed(), @r#"
    kept
      pins                   1 table from 1 server, 396 B
    table [ID]
      seen as                table-1 at http://a
      pinned                 epoch 4
      hint                   64.12 KiB, partly downloaded
      layout                 420 B, complete
    "#);
    assert_snapshot!(place.run("state reset kept --yes").printed(), @r#"
    erased 0 sets of private hints, 2 downloaded parts and 1 pin of 1 table from kept
    "#);
    assert_snapshot!(place.run("state show kept").printed(), @r#"
    kept
      pins                   0 tables from 0 servers, 0 B
      tables                 none
    "#);
    assert_eq!(std::fs::read_dir(place.path("kept/tables")).unwrap().count(), 0);
}

#[test]
fn a_server_can_be_forgotten() {
    let (place, _) = kept();
    assert_snapshot!(place.run("state reset kept --server HTTP://A/").mistake(), @r#"
    privet: this would erase 2 pins of HTTP://A/ from kept. Without them, whatever that server shows next is believed. If that is what you want, say so with --yes
    "#);
    assert_snapshot!(place.run("state reset kept --server HTTP://A/ --yes").printed(), @r#"
    erased 2 pins of HTTP://A/ from kept
    "#);
    assert_snapshot!(place.run("state show kept").printed(), @r#"
    kept
      pins                   1 table from 1 server, 396 B
    table [ID]
      hint                   64.12 KiB, partly downloaded
      layout                 420 B, complete
    table [ID]
      seen as                table-2 at http://b
      pinned                 epoch 4, updates signed by [DIGEST]
      private hints          dummy-subsets, 333.08 KiB
        epoch                4
        used                 by 3 lookups
        unfinished lookups   2
        next generation      120.56 KiB received
    "#);
}

#[test]
fn other_directories_are_refused() {
    let place = Place::new();
    assert_snapshot!(place.run("state show missing").mistake(), @r#"
    privet: missing is no state directory: nothing is kept there
    "#);
    assert_snapshot!(place.run("state show").mistake(), @r#"
    privet: [DIRECTORY]/.local/state/privet is no state directory: nothing is kept there
    "#);
    assert_snapshot!(place.run("state reset . --yes").mistake(), @r#"
    privet: . is no state directory: nothing is kept there
    "#);
    assert_snapshot!(place.run("state reset . --table 12").mistake(), @r#"
    error: invalid value '12' for '--table <ID>': a table's id has 32 hexadecimal digits: see `privet state show`

    For more information, try '--help'.
    "#);
}
