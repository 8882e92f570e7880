//! What happens to pins, parts and hints when their table changes.

use super::*;
use crate::session::Patch;
use crate::state::{MemoryState, patch_part};
use privet_core::TableChanges;
use privet_kernels::Kernels;
use privet_schemes::registry::{self, Tuning};
use privet_table::update_log::{EpochHash, PublisherId};

/// A pin of the version `epoch` by the publisher `publisher`, which names these parts.
fn pin_of(epoch: u64, publisher: Option<u8>, layout: &[u8], hint: &[u8]) -> Pin {
    let part = |bytes: &[u8]| PartDescription {
        len: bytes.len() as u64,
        digest: *blake3::hash(bytes).as_bytes(),
    };
    Pin {
        parameter_digest: [epoch as u8; 32],
        layout: part(layout),
        hint: Some(part(hint)),
        publisher: publisher.map(|byte| PublisherId([byte; 32])),
        last_epoch: publisher.map(|_| EpochHash([epoch as u8; 32])),
        ..pin(1, epoch)
    }
}

/// The same, once keys have changed from those of the publisher `first`.
fn changed(pin: Pin, first: u8) -> Pin {
    Pin { first_publisher: Some(PublisherId([first; 32])), ..pin }
}

/// Stores all of a part, as a client would after its download.
fn keep(state: &mut dyn State, part: &PartKey, bytes: &[u8]) {
    let mut download = partial(state.open(part).unwrap());
    let from = download.next_offset();
    download.absorb(from, &bytes[from as usize..]).unwrap();
    state.append(part, from, &bytes[from as usize..]).unwrap();
    state.complete(part).unwrap();
}

fn is_complete(state: &mut dyn State, part: &PartKey) -> bool {
    let opened = state.open(part).unwrap();
    let is_complete = matches!(opened, Opened::Have { part: PartState::Complete(_), .. });
    if !is_complete {
        state.discard(part).unwrap();
    }
    is_complete
}

/// A name for a part of the version `epoch`.
fn in_epoch(bytes: &[u8], kind: PartKind, epoch: u64) -> PartKey {
    PartKey { table: identity(1, epoch), ..part_of(bytes, kind) }
}

fn both(check: impl Fn(&mut dyn State)) {
    let directory = tempfile::tempdir().unwrap();
    check(&mut store(directory.path()));
    check(&mut MemoryState::default());
}

#[test]
fn all_that_a_pin_says_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let known = pin_of(3, Some(7), b"layout", b"hint");
    let table = identity(2, 3);
    let unknown = Pin { table, hint: None, ..pin_of(3, None, b"layout", b"hint") };
    let long = "t".repeat(privet_wire::limits::MAX_NAME_LEN);
    let long_known = changed(known, 6);
    for (name, pin) in [("known", known), ("unknown", unknown), (&long, long_known)] {
        store(directory.path()).pin("http://a", name, &pin).unwrap();
    }
    let pins = store(directory.path()).pins("http://a").unwrap();
    let expected = [("known", known), ("unknown", unknown), (&long, long_known)];
    assert_eq!(pins, expected.map(|(name, pin)| (name.to_owned(), pin)));
}

#[test]
fn pins_of_an_earlier_format_are_refused_until_they_are_accepted_anew() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(directory.path());
    let path = store.pin_path("http://a");
    let mut file = [&b"privetpn"[..], &1u32.to_le_bytes(), &[0; 200]].concat();
    let checksum = blake3::hash(&file);
    file.extend(checksum.as_bytes());
    std::fs::write(&path, file).unwrap();
    let error = store.pins("http://a").unwrap_err();
    assert_eq!(error.blame(), Blame::Corrupted);
    for part in [path.to_str().unwrap(), "earlier version of Privet", "accept its tables anew"] {
        assert!(error.message().contains(part), "{error}");
    }
    let mut accepting = super::store(directory.path()).replacing_damaged_pins(true);
    accepting.pin("http://a", "t", &pin(1, 0)).unwrap();
    assert_eq!(store.pins("http://a").unwrap().len(), 1);
}

/// The new version's part is there before its pin, which names the same layout. Nothing else stays.
#[test]
fn following_pins_keep_what_they_name_and_the_hints() {
    let (layout, before, after) = (bytes(40), bytes(90), bytes(91));
    both(|state| {
        let parts = [
            in_epoch(&layout, PartKind::Layout, 3),
            in_epoch(&before, PartKind::Hint, 3),
            in_epoch(&after, PartKind::Hint, 4),
        ];
        let first = pin_of(3, Some(7), &layout, &before);
        state.pin("http://a", "t", &first).unwrap();
        for (part, bytes) in parts.iter().zip([&layout, &before, &after]) {
            keep(state, part, bytes);
        }
        used_hints_in(state, &first, SchemeId::DummySubsets);
        let next = pin_of(4, Some(7), &layout, &after);
        state.pin("http://a", "t", &next).unwrap();
        assert_eq!(parts.each_ref().map(|part| is_complete(state, part)), [true, false, true]);
        let layout_now = in_epoch(&layout, PartKind::Layout, 4);
        assert!(is_complete(state, &layout_now), "the same bytes serve the next version");

        let key = key_of(&next, SchemeId::DummySubsets);
        let HintsOpened::Have { mut hints, notice } = state.open_hints(&key, true).unwrap() else {
            panic!("busy")
        };
        let saved = hints.load().unwrap();
        assert_eq!((saved.changes.len(), notice), (1, None));
        assert_eq!(saved.stands_at, Some(key_of(&first, SchemeId::DummySubsets)));
    });
}

#[test]
fn what_a_second_server_still_has_pinned_stays() {
    let (layout, before, after) = (bytes(40), bytes(90), bytes(91));
    both(|state| {
        let part = in_epoch(&before, PartKind::Hint, 3);
        for server in ["http://a", "http://b"] {
            state.pin(server, "t", &pin_of(3, Some(7), &layout, &before)).unwrap();
        }
        keep(state, &part, &before);
        state.pin("http://a", "t", &pin_of(4, Some(7), &layout, &after)).unwrap();
        assert!(is_complete(state, &part), "its pin is still to be written");
        state.pin("http://b", "t", &pin_of(4, Some(7), &layout, &after)).unwrap();
        assert!(!is_complete(state, &part));
    });
}

#[test]
fn a_pin_that_does_not_follow_erases_the_hints_and_one_that_learns_the_publisher_does_not() {
    let (layout, hint) = (bytes(40), bytes(90));
    let pin = |epoch, publisher| pin_of(epoch, publisher, &layout, &hint);
    let cases = [
        (pin(3, Some(7)), pin(4, Some(8)), false),
        // It has followed the epoch in which another publisher took over.
        (pin(3, Some(7)), changed(pin(4, Some(8)), 7), true),
        (changed(pin(3, Some(7)), 6), changed(pin(4, Some(8)), 6), true),
        (pin(3, Some(7)), changed(pin(4, Some(8)), 6), false),
        (pin(3, None), pin(4, Some(7)), false),
        (pin(3, Some(7)), pin(4, None), false),
        (pin(3, None), pin(4, None), false),
        (pin(3, Some(7)), pin(4, Some(7)), true),
        (pin(3, None), pin(3, Some(7)), true),
    ];
    for (number, (first, next, stay)) in cases.into_iter().enumerate() {
        both(|state| {
            state.pin("http://a", "t", &first).unwrap();
            used_hints_in(state, &first, SchemeId::DummySubsets);
            state.pin("http://a", "t", &next).unwrap();
            let opened = state.open_hints(&key_of(&next, SchemeId::DummySubsets), true);
            let HintsOpened::Have { mut hints, .. } = opened.unwrap() else { panic!("busy") };
            assert_eq!(hints.load().unwrap().generation.is_some(), stay, "case {number}");
        });
    }
}

/// One address may know of no change of keys: it is asked no more, or a crash came between the pins
/// of two servers.
#[test]
fn hints_follow_while_a_pin_is_from_before_a_change_of_keys() {
    let pin = |epoch, publisher| pin_of(epoch, Some(publisher), b"layout", b"hint");
    let cases = [
        (pin(3, 7), changed(pin(4, 8), 7), true),
        // Keys have changed twice.
        (pin(3, 7), changed(pin(6, 9), 7), true),
        (changed(pin(4, 8), 7), changed(pin(6, 9), 7), true),
        // Nobody has shown that one leads to the other.
        (pin(3, 7), pin(4, 8), false),
        (pin(3, 7), changed(pin(4, 8), 6), false),
    ];
    for (number, (before, after, follow)) in cases.into_iter().enumerate() {
        for servers in [["http://a", "https://a"], ["https://a", "http://a"]] {
            let directory = tempfile::tempdir().unwrap();
            let mut store = store(directory.path());
            store.pin(servers[0], "t", &before).unwrap();
            store.pin(servers[1], "t", &after).unwrap();
            used_hints_in(&mut store, &after, SchemeId::DummySubsets);
            let next = Pin { table: identity(1, 9), parameter_digest: [9; 32], ..after };
            match store.open_hints(&key_of(&next, SchemeId::DummySubsets), true) {
                Ok(HintsOpened::Have { mut hints, .. }) => {
                    let stands_at = hints.load().unwrap().stands_at;
                    assert_eq!(stands_at, Some(key_of(&after, SchemeId::DummySubsets)));
                    assert!(follow, "case {number}");
                }
                Ok(HintsOpened::Busy) => panic!("busy"),
                Err(error) => {
                    assert_eq!(error.reason(), Some(Reason::HintsOfAnotherVersion), "{error}");
                    assert!(!follow, "case {number}: {error}");
                }
            }
        }
    }
}

/// A process that began before another followed the table further does not take the pin back,
/// unless its user accepts what the server shows.
#[test]
fn a_pin_goes_back_only_for_who_accepts_that() {
    let (layout, hint) = (bytes(40), bytes(90));
    let pin = |epoch| pin_of(epoch, Some(7), &layout, &hint);
    for accepts in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let mut store = store(directory.path()).replacing_damaged_pins(accepts);
        store.pin("http://a", "t", &pin(3)).unwrap();
        store.pin("http://a", "t", &pin(2)).unwrap();
        let kept = if accepts { pin(2) } else { pin(3) };
        assert_eq!(store.pins("http://a").unwrap(), [("t".to_owned(), kept)]);
    }
}

/// A download for one version goes on in the next, if that names the same bytes.
#[test]
fn a_partial_part_is_gone_on_with_in_the_next_version() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = bytes(100);
    let mut store = store(directory.path());
    let part = in_epoch(&bytes, PartKind::Layout, 3);
    drop(store.open(&part).unwrap());
    store.append(&part, 0, &bytes[..50]).unwrap();
    let part = in_epoch(&bytes, PartKind::Layout, 4);
    let mut again = super::store(directory.path());
    drop(store);
    let download = partial(again.open(&part).unwrap());
    assert_eq!(download.next_offset(), 48);
    let source = finish(&mut again, &part, download, &bytes, 7);
    assert_eq!(contents(&*source).unwrap(), bytes);
    assert_eq!(contents(&*complete(again.open(&part).unwrap())).unwrap(), bytes);
}

/// A stored table of 20 records, edits of it that also make it grow, and the table afterwards.
fn edited() -> (Vec<u8>, Vec<u8>, Patch) {
    let shape = |records| TableShape::new(records, 5).unwrap();
    let before = bytes(100);
    let mut after = before.clone();
    after.resize(115, 0);
    let replaced = [3, 19, 20, 22].map(|index| {
        let at = index as usize * 5..index as usize * 5 + 5;
        let before = after[at.clone()].to_vec();
        after[at.clone()].fill(0xa0 + index as u8);
        (index, before, after[at].to_vec())
    });
    let changes = TableChanges::new(shape(20), shape(23), replaced).unwrap();
    let version = |epoch, records| TableIdentity { shape: shape(records), ..identity(1, epoch) };
    let key = |bytes: &[u8], table| PartKey { table, ..part_of(bytes, PartKind::Table) };
    let (from, to) = (key(&before, version(3, 20)), key(&after, version(4, 23)));
    let plan = |table| registry::plan(SchemeId::Download, table, &Tuning::default()).unwrap();
    let (before_plan, after_plan) = (plan(&from.table), plan(&to.table));
    let patch = Patch { from, to, before: before_plan, after: after_plan, changes };
    (before, after, patch)
}

fn patched(state: &mut dyn State, patch: &Patch) -> Opened {
    patch_part(state, patch, Kernels::detect()).unwrap()
}

#[test]
fn a_part_becomes_that_of_the_next_version_and_is_there_for_every_later_process() {
    both(|state| {
        let (before, after, patch) = edited();
        keep(state, &patch.from, &before);
        for _ in 0..2 {
            assert_eq!(contents(&*complete(patched(state, &patch))).unwrap(), after);
            assert_eq!(contents(&*complete(state.open(&patch.to).unwrap())).unwrap(), after);
        }
        assert!(
            is_complete(state, &patch.from),
            "the one before serves until a pin says otherwise"
        );
    });
}

#[test]
fn a_part_that_cannot_be_made_is_to_be_fetched() {
    both(|state| {
        let (before, after, mut patch) = edited();
        // There is none, or it is incomplete.
        assert_eq!(partial(patched(state, &patch)).next_offset(), 0);
        state.discard(&patch.to).unwrap();
        drop(state.open(&patch.from).unwrap());
        state.append(&patch.from, 0, &before[..50]).unwrap();
        assert_eq!(partial(patched(state, &patch)).next_offset(), 0);
        state.discard(&patch.to).unwrap();

        // The edits do not lead to what the server announces.
        keep(state, &patch.from, &before);
        patch.to.digest[0] ^= 1;
        assert_eq!(partial(patched(state, &patch)).next_offset(), 0);
        state.discard(&patch.to).unwrap();
        patch.to.digest[0] ^= 1;
        patch.to.len += 1;
        assert_eq!(partial(patched(state, &patch)).next_offset(), 0);
        state.discard(&patch.to).unwrap();
        patch.to.len -= 2;
        assert_eq!(partial(patched(state, &patch)).next_offset(), 0);
        state.discard(&patch.to).unwrap();
        patch.to.len += 1;
        assert_eq!(contents(&*complete(patched(state, &patch))).unwrap(), after);
    });
}

#[test]
fn a_damaged_part_is_not_patched_wherever_it_is_damaged() {
    let (before, after, patch) = edited();
    let origin = tempfile::tempdir().unwrap();
    let mut origin_store = store(origin.path());
    keep(&mut origin_store, &patch.from, &before);
    let whole = std::fs::read(origin_store.part_path(&patch.from, "part")).unwrap();
    let mut damages = 0;
    for (at, file) in damaged(&whole).take(whole.len()).enumerate().step_by(3) {
        let (_directory, mut store, _) = with_file(&patch.from, "part", &file);
        let opened = patched(&mut store, &patch);
        assert!(notice(&opened).is_some(), "flipped at {at}");
        let download = partial(opened);
        let source = finish(&mut store, &patch.to, download, &after, 30);
        assert_eq!(contents(&*source).unwrap(), after, "flipped at {at}");
        damages += 1;
    }
    assert!(damages > 50);
}

/// Whatever a process that was killed while it patched has left, the next one ends right.
#[test]
fn a_patch_that_was_cut_off_at_any_byte_is_finished() {
    let (before, after, patch) = edited();
    let whole = partial_file(&patch.to, &after);
    for cut in 0..=whole.len() {
        let (_directory, mut store, _) = with_file(&patch.to, "partial", &whole[..cut]);
        keep(&mut store, &patch.from, &before);
        assert_eq!(contents(&*complete(patched(&mut store, &patch))).unwrap(), after, "{cut}");
    }
}

#[test]
fn a_patch_waits_for_another_process_and_a_full_disk_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let (before, after, patch) = edited();
    let (mut first, mut second) = (store(directory.path()), store(directory.path()));
    keep(&mut first, &patch.from, &before);
    drop(first.open(&patch.to).unwrap());
    assert!(matches!(patched(&mut second, &patch), Opened::Busy { .. }));
    drop(first);
    // A directory in the place of the file, which cannot be written.
    let obstacle = second.part_path(&patch.to, "partial");
    std::fs::remove_file(&obstacle).unwrap();
    std::fs::create_dir(&obstacle).unwrap();
    let error = patch_part(&mut second, &patch, Kernels::detect()).err().unwrap();
    assert_eq!(error.blame(), Blame::Unavailable, "{error}");
    std::fs::remove_dir(&obstacle).unwrap();
    assert_eq!(contents(&*complete(patched(&mut second, &patch))).unwrap(), after);
}

/// The last pin is that of the table that was used last: so a session knows which table is meant.
#[test]
fn pins_are_kept_in_the_order_in_which_they_were_written_and_by_server() {
    both(|state| {
        let pin = pin_of(3, Some(7), b"layout", b"hint");
        for (server, name) in [("a", "one"), ("a", "two"), ("b", "three"), ("a", "one")] {
            state.pin(&format!("http://{server}"), name, &pin).unwrap();
        }
        let names =
            |pins: Vec<(String, Pin)>| pins.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(state.pins("http://a").unwrap()), ["two", "one"]);
        for (here, elsewhere) in [
            (&["http://a"][..], vec![("http://b", "three")]),
            (&["http://b", "http://c"], vec![("http://a", "two"), ("http://a", "one")]),
            (&["http://a", "http://b"], vec![]),
        ] {
            let found = state.pins_elsewhere(here).unwrap();
            assert!(found.iter().all(|known| known.pin == pin));
            let found: Vec<_> =
                found.iter().map(|known| (known.server.as_str(), known.name.as_str())).collect();
            assert_eq!(found, elsewhere);
        }
    });
    // Damaged pins of another server do not keep a client from asking here.
    let directory = tempfile::tempdir().unwrap();
    let mut store = store(directory.path());
    let pin = pin_of(3, Some(7), b"layout", b"hint");
    for server in ["http://a", "http://b"] {
        store.pin(server, "t", &pin).unwrap();
    }
    std::fs::write(store.pin_path("http://b"), b"damaged").unwrap();
    assert!(store.pins_elsewhere(&["http://a"]).unwrap().is_empty());
    assert_eq!(store.pins_elsewhere(&["http://b"]).unwrap().len(), 1);
}
