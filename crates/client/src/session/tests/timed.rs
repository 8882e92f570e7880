//! How long the measured slots are, and that measuring leaves everything else unchanged.

use super::super::planted::take_rehearsed;
use super::world::{Peer, World, options, parts};
use crate::session::records::RecordReader;
use crate::session::timetable::Measuring;
use crate::session::*;
use privet_core::{Blame, PublicSeed, SecretRng};
use privet_schemes::SchemeId;
use privet_table::RecordLayout;
use privet_table::key_map::{
    Case, Directory, KeyForm, KeyFormat, KeyMapKind, Normalization, PackOptions, Points, Range,
    pack_with,
};
use std::sync::atomic::{AtomicU64, Ordering};

fn micros(count: u64) -> Duration {
    Duration::from_micros(count)
}

/// Schemes with lookups by index, without state and with, of one server and of two.
const SCHEMES: [SchemeId; 4] =
    [SchemeId::SimplePir, SchemeId::DummySubsets, SchemeId::Dpf, SchemeId::TapirMerkle];

/// A clock that advances by so much at each look.
fn ticking(step: Duration) -> Clock {
    let ticks = AtomicU64::new(0);
    Clock::new(move || step * ticks.fetch_add(1, Ordering::Relaxed) as u32)
}

#[test]
fn slots_are_measured_when_a_session_opens() {
    for scheme in SCHEMES {
        let peer = Peer::indexed_by(scheme, 64, 16, 1);
        let mut world = World::with(&peer, |options| options.clock = ticking(micros(100)));
        world.run();
        let timetable = &world.session.shared.timetable;
        // By this clock everything takes one tick, and a slot five quarters of that.
        let lengths = timetable.lengths.expect("something is sent");
        assert_eq!((lengths.query, lengths.answer), (micros(125), micros(125)), "{scheme}");
        assert!(timetable.measured.is_some(), "{scheme}");
        assert!(!world.found(Target::index(3)).is_empty(), "{scheme}");
    }
}

/// Reading a record and a value is part of the measurement, with the longest possible ones.
#[test]
fn reading_is_measured_with_what_takes_longest() {
    let dummies = Measuring::brief().fewest;
    take_rehearsed();
    World::of(&Peer::indexed(64, 16, 1)).run();
    assert_eq!(take_rehearsed(), dummies * 16);
    let keyed = Peer::keyed(20);
    let record_len = keyed.identity().shape.record_len() as usize;
    World::of(&keyed).run();
    assert!(take_rehearsed() >= dummies * record_len);
}

/// So are keys of the table's own form, as long as is promised.
#[test]
fn dummy_keys_are_brought_into_the_tables_form() {
    let pairs: Vec<_> = (0..1000).map(|n: u32| (n.to_string().into_bytes(), vec![1])).collect();
    let options =
        PackOptions { kind: KeyMapKind::Buckets, parts: Some(1), ..PackOptions::default() };
    let normalization = Normalization { case: Some(Case::Lower), ..Normalization::default() };
    let ranges = Some(Directory::new(Points::Numbers, &[Range { from: 5, to: 9 }], false).unwrap());
    for form in [
        KeyForm { normalization, ..KeyForm::default() },
        KeyForm { ranges, ..KeyForm::default() },
        KeyForm { format: KeyFormat::Hex, ..KeyForm::default() },
        KeyForm { format: KeyFormat::Base64, ..KeyForm::default() },
    ] {
        let packed = pack_with(&options, &pairs[..], PublicSeed::derive("privet test", b"seed"));
        let map = packed.unwrap().with_key_form(form.clone()).key_map().clone();
        let shape = map.shape();
        let records = RecordReader::decode(&RecordLayout::Keyed(map).encode(), shape, 1).unwrap();
        let mut rng = SecretRng::from_fixed_seed([1; 32]);
        for number in 0..5 {
            let Target::Written(key) = records.dummy(number, 1024, &mut rng) else { panic!() };
            assert!(key.len() > 1020 && std::str::from_utf8(&key).is_ok(), "{number}");
            assert!(form.read(&key).is_ok(), "{number}: it takes as long as a key");
        }
        // What is malformed takes no longer: it is not hashed, however long it is.
        let located = |key: &[u8]| {
            let index = records.locate(&Target::written(key), 0).unwrap();
            index.expose()
        };
        for malformed in [&b"~".repeat(1024), &b"1.".repeat(512), &b"ab ".repeat(341)] {
            if form.read(malformed).is_err() {
                assert!(located(malformed) == located(b""), "{form:?}");
            }
        }
    }
}

#[test]
fn a_clock_that_stands_still_is_refused() {
    let measuring = Measuring { looks: 100, ..Measuring::brief() };
    let parts = Parts { measuring, ..parts() };
    let mut world = World::with_parts(vec![Peer::indexed(64, 16, 1)], options(1), parts);
    let error = world.get(Target::index(3)).unwrap_err();
    assert_eq!(error.blame(), Blame::ApiMisuse);
    assert!(error.message().contains("clock"), "{error}");
    assert!(world.queries().is_empty(), "nothing is asked");
}

#[test]
fn a_client_that_holds_the_table_waits_for_nothing() {
    let mut world = World::of(&Peer::indexed_by(SchemeId::Download, 64, 16, 1));
    world.run();
    assert!(world.session.shared.timetable.lengths.is_none());
    let before = world.now;
    world.found(Target::index(3));
    assert_eq!(world.now, before);
}

#[test]
fn measuring_uses_no_hint_up() {
    for scheme in SCHEMES {
        let peer = Peer::indexed_by(scheme, 64, 16, 1);
        let servers = peer.scheme().plan.servers;
        let options = SessionOptions { clock: ticking(micros(100)), ..options(servers) };
        let measuring = Measuring { dummies: 80, fewest: 80, ..Measuring::brief() };
        let parts = Parts { measuring, ..parts() };
        let mut world = World::with_parts(vec![peer; servers], options, parts);
        world.run();
        assert!(world.session.shared.timetable.measured.is_some(), "{scheme}");
        assert_eq!(world.journal.len() + world.completions.len(), 0, "{scheme}");
        assert!(world.queries().is_empty(), "{scheme}");
        if let Phase::Open(open) = &mut world.session.phase
            && let Some(hints) = open.hinted()
        {
            assert_eq!(hints.supply().used, 0, "{scheme}");
            assert!(hints.open().is_empty() && hints.ended().is_none(), "{scheme}");
        }
        let expected = world.peers[0].records[5 * 16..][..16].to_vec();
        assert_eq!(world.found(Target::index(5)), expected, "{scheme}");
    }
}
