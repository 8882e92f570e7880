//! Servers see the same of a client whatever it looks up: for every scheme, every kind of layout,
//! and whatever the servers answer.
//!
//! Two clients with the same coins and the same number of lookups differ only in their keys, and in
//! how long they compute, which follows from the records of the keys. Each request to each server
//! must come at the same time, be of the same kind and of the same length. What is stored before a
//! query and after an answer must also be of the same number and length, because writing takes
//! time. The tests plant mistakes in the session itself, and each must show.

use super::super::planted::{SessionFlaw, plant};
use super::peer::{identity_of, records_of};
use super::simulator::slow::{Costs, Passing, slowed};
use super::world::*;
use crate::session::*;
use privet_core::{PublicSeed, SecretRng, TableShape};
use privet_laboratory::pointproofs::ReferenceString;
use privet_laboratory::tapir_pp::REFERENCE_STRING;
use privet_schemes::SchemeId;
use privet_schemes::registry::{PARTITION_RECORDS, Tuning};
use privet_table::authentication::{MerkleTree, shape_with_paths};
use privet_table::key_map::{
    Directory, KeyForm, KeyMapKind, PackOptions, Points, Range, encode_list, pack_with,
};
use privet_table::{RecordLayout, TableLayout};
use std::sync::{Arc, OnceLock};

const KEYS: usize = 24;

/// How keys map to records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    Buckets,
    Cuckoo,
    Parts,
    Ranges,
    Authenticated,
}

const LAYOUTS: [Layout; 5] =
    [Layout::Buckets, Layout::Cuckoo, Layout::Parts, Layout::Ranges, Layout::Authenticated];

/// What servers answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    Right,
    /// One bit is flipped in every answer of every server.
    AllWrong,
    /// One bit is flipped in every third answer of the last server.
    SomeWrong,
    /// An answer of the last server is a byte too short, once.
    OneTooShort,
    /// Every other record of the table is spoilt, in the same way at all servers: this affects some
    /// keys.
    RecordsSpoilt,
}

const ANSWERS: [Answers; 5] = [
    Answers::Right,
    Answers::AllWrong,
    Answers::SomeWrong,
    Answers::OneTooShort,
    Answers::RecordsSpoilt,
];

/// The key in the stash.
const IN_THE_STASH: usize = 3;

/// From here on, keys are no numbers. Ranges can have no such key, and its lookup fails.
const MALFORMED: usize = 1000;

/// Existing keys; missing and malformed keys; the same key always; the key in the stash; and some
/// of each.
const HISTORIES: [[usize; 6]; 5] = [
    [0, 1, 2, 4, 5, 6],
    [KEYS, MALFORMED, KEYS + 1, KEYS + 2, MALFORMED, MALFORMED + 1],
    [7, 7, 7, 7, 7, 7],
    [IN_THE_STASH; 6],
    [IN_THE_STASH, KEYS, 8, 9, 8, KEYS],
];

/// The range of `k`: of ten points, the first five.
fn range(k: usize) -> Range {
    let from = 10 * k as u128;
    Range { from, to: from + 4 }
}

/// What is looked up: a key, or a point in the range of `k`.
fn key(k: usize) -> Vec<u8> {
    match k {
        MALFORMED.. => format!("no number {k}").into_bytes(),
        _ => (10 * k + k % 5).to_string().into_bytes(),
    }
}

fn value(layout: Layout, k: usize) -> Vec<u8> {
    let (_, value) = pair(k);
    match layout {
        // Most values are in one part; some take both, one of them in the stash.
        Layout::Parts if k == IN_THE_STASH => encode_list([vec![3; 3000]]),
        Layout::Parts if k % 3 == 1 => encode_list([vec![k as u8; 150]]),
        Layout::Parts => encode_list([value]),
        _ => value,
    }
}

/// The key that the builder packs.
fn packed_key(layout: Layout, k: usize) -> Vec<u8> {
    if layout == Layout::Ranges { range(k).name().to_vec() } else { key(k) }
}

/// A table of [`KEYS`] keys, or of `few`: its layout, its records, and its shape.
fn table(layout: Layout, few: bool, spoilt: bool) -> (Vec<u8>, Vec<u8>, TableShape) {
    let pairs: Vec<_> = match few {
        true => vec![(packed_key(layout, 0), vec![0])],
        false => (0..KEYS).map(|k| (packed_key(layout, k), value(layout, k))).collect(),
    };
    let kind = if layout == Layout::Cuckoo { KeyMapKind::Cuckoo } else { KeyMapKind::Buckets };
    let lists = layout == Layout::Parts;
    let options = PackOptions { kind, parts: Some(if lists { 2 } else { 1 }), lists, room: 0 };
    let packed = pack_with(&options, &pairs[..], PublicSeed::derive("privet test", b"seed"));
    let mut key_form = KeyForm::default();
    if layout == Layout::Ranges {
        let ranges: Vec<Range> = (0..pairs.len()).map(range).collect();
        key_form.ranges = Some(Directory::new(Points::Numbers, &ranges, false).unwrap());
    }
    let packed = packed.unwrap().with_key_form(key_form);
    let map = packed.key_map().clone();
    assert!(few || map.stash_entries() >= map.parts() as u64, "the long value is in the stash");
    let mut records = records_of(&packed, &pairs);
    let (encoded, shape);
    if layout == Layout::Authenticated {
        let tree = MerkleTree::over(map.buckets(), |bucket, record| {
            packed.write_record(&pairs[..], bucket, record);
        });
        (0..).zip(&mut records).for_each(|(bucket, record)| tree.append_path(bucket, record));
        shape = shape_with_paths(map.shape()).unwrap();
        let keyed = RecordLayout::Keyed(map);
        encoded = TableLayout::authenticated(tree.authentication(), keyed).encode();
    } else {
        shape = map.shape();
        encoded = RecordLayout::Keyed(map).encode();
    }
    if spoilt {
        records.iter_mut().step_by(2).for_each(|record| record.fill(0xa5));
    }
    (encoded, records.concat(), shape)
}

/// A server of it by a scheme.
fn peer(scheme: SchemeId, layout: Layout, spoilt: bool) -> Peer {
    static REFERENCE: OnceLock<Arc<ReferenceString>> = OnceLock::new();
    let tuning = match scheme {
        privet_laboratory::TAPIR_PP => {
            let reference = REFERENCE.get_or_init(|| {
                let mut rng = SecretRng::from_fixed_seed([5; 32]);
                Arc::new(ReferenceString::generate(8, &mut rng).unwrap())
            });
            let tuning = Tuning::default().with(&REFERENCE_STRING, Arc::clone(reference));
            tuning.with(&PARTITION_RECORDS, 8u64)
        }
        _ => Tuning::default(),
    };
    let (layout, records, shape) = table(layout, scheme == SchemeId::DoublePir, spoilt);
    Peer::tuned(scheme, &tuning, identity_of(&layout, &records, shape, 1), layout, &records)
}

/// A client with coins of its own, the same each time. Its lookups take a different time for each
/// record.
fn client(peer: &Peer) -> World {
    let servers = peer.scheme().plan.servers;
    let passing = Passing::default();
    let parts = Parts { rng: SecretRng::from_fixed_seed([6; 32]), ..parts() };
    let parts = slowed(parts, Costs::Within, &passing);
    let clock = passing.clock(Duration::from_nanos(1), Duration::ZERO);
    let options = SessionOptions { clock, ..options(servers) };
    World::with_parts(vec![peer.clone(); servers], options, parts)
}

fn falsify(answers: Answers, servers: usize) -> Falsify {
    let last = servers - 1;
    let mut count = 0;
    Box::new(move |request, mut responses| {
        let (Request::Answer(request), Some(Ok(Response::Answered(response)))) =
            (request, responses.first_mut())
        else {
            return responses;
        };
        let of_the_last = usize::from(request.role.0) == last;
        count += usize::from(of_the_last);
        let mut answer = response.answer.to_vec();
        let middle = answer.len() / 2;
        match answers {
            Answers::AllWrong => answer[middle] ^= 0x10,
            Answers::SomeWrong if of_the_last && count % 3 == 2 => answer[middle] ^= 0x10,
            Answers::OneTooShort if of_the_last && count == 3 => answer.truncate(middle),
            _ => {}
        }
        response.answer = answer.into();
        responses
    })
}

/// Everything that servers see, and everything that is written meanwhile.
#[derive(PartialEq, Eq, Debug)]
struct Trace {
    /// When each request was sent, to which server, of which kind, and how long it was.
    sent: Vec<(Duration, usize, &'static str, usize)>,
    /// How much had been sent before each journal record, and how long it is.
    journal: Vec<(usize, usize)>,
    /// How many journal records there were before each completion, and how long it is.
    completions: Vec<(usize, usize)>,
    ends: usize,
    generations: u64,
}

/// The trace of a client that looks up two keys one after the other, and then the others together.
fn trace(peer: &Peer, answers: Answers, history: &[usize], mistake: Option<SessionFlaw>) -> Trace {
    let _planted = plant(mistake);
    let mut world = client(peer);
    world.falsify = falsify(answers, world.peers.len());
    let mut times = Vec::new();
    run(&mut world, &mut times);
    let (alone, together) = history.split_at(2);
    for k in alone {
        world.session.lookup(Target::key(key(*k)));
        run(&mut world, &mut times);
    }
    for k in together {
        world.session.lookup(Target::key(key(*k)));
    }
    run(&mut world, &mut times);
    let requests = world.trace().into_iter().zip(times);
    Trace {
        sent: requests.map(|((server, kind, len), at)| (at, server, kind, len)).collect(),
        journal: world.journal.iter().map(|(sent, record)| (*sent, record.len())).collect(),
        completions: world.completions.iter().map(|(at, change)| (*at, change.len())).collect(),
        ends: world.ends.len(),
        generations: world.condensed,
    }
}

/// Lets everything happen, and notes when each request is sent.
fn run(world: &mut World, times: &mut Vec<Duration>) {
    loop {
        while let Some(output) = world.session.poll(world.now) {
            if let Output::Errand(Errand::Send { .. }) = output {
                times.push(world.now);
            }
            world.carry_out(output);
        }
        if !world.step() {
            return;
        }
        // Requests that `step` itself sent left at the time of the call.
        times.resize(world.sent.len(), world.now);
    }
}

/// DoublePIR's hint has 16 MiB for each byte of a record, and it refuses records longer than 64
/// bytes. So here it serves a table with one key, and few lookups are made.
fn looks_up(scheme: SchemeId, layout: Layout) -> (&'static [Answers], &'static [[usize; 6]]) {
    match (scheme, layout) {
        (SchemeId::DoublePir, Layout::Parts | Layout::Authenticated) => (&[], &[]),
        (SchemeId::DoublePir, _) => (&ANSWERS[..2], &HISTORIES[..2]),
        _ => (&ANSWERS, &HISTORIES),
    }
}

fn assert_the_same(scheme: SchemeId, layout: Layout) {
    let (all_answers, histories) = looks_up(scheme, layout);
    let mut whole = None;
    for answers in all_answers {
        let spoilt = matches!(answers, Answers::RecordsSpoilt).then(|| peer(scheme, layout, true));
        let peer = match &spoilt {
            Some(spoilt) => spoilt,
            None => whole.get_or_insert_with(|| peer(scheme, layout, false)),
        };
        let reference = trace(peer, *answers, &histories[0], None);
        let asks = reference.sent.iter().any(|sent| sent.2 == "answer");
        assert_eq!(asks, scheme != SchemeId::Download, "{scheme}, {layout:?}");
        for history in &histories[1..] {
            let other = trace(peer, *answers, history, None);
            assert_eq!(other, reference, "{scheme}, {layout:?}, {answers:?}, {history:?}");
        }
    }
}

fn assert_the_same_for_every_scheme(layout: Layout) {
    for scheme in privet_laboratory::all() {
        assert_the_same(scheme, layout);
    }
}

#[test]
fn whatever_is_looked_up_in_buckets_servers_see_the_same() {
    assert_the_same_for_every_scheme(Layout::Buckets);
}

#[test]
fn whatever_is_looked_up_in_either_of_two_records_servers_see_the_same() {
    assert_the_same_for_every_scheme(Layout::Cuckoo);
}

#[test]
fn whatever_is_looked_up_in_parts_servers_see_the_same() {
    assert_the_same_for_every_scheme(Layout::Parts);
}

/// Ranges change how a client gets to the records of a key, and nothing after that: so a scheme of
/// each kind stands for all.
#[test]
fn whatever_is_looked_up_in_ranges_servers_see_the_same() {
    for scheme in [SchemeId::SimplePir, SchemeId::Dpf, SchemeId::DummySubsets] {
        assert_the_same(scheme, Layout::Ranges);
    }
}

#[test]
fn whatever_is_looked_up_and_verified_servers_see_the_same() {
    assert_the_same_for_every_scheme(Layout::Authenticated);
}

/// Whether any two histories have different traces.
fn tells(scheme: SchemeId, layout: Layout, answers: Answers, mistake: Option<SessionFlaw>) -> bool {
    let peer = peer(scheme, layout, answers == Answers::RecordsSpoilt);
    let traces: Vec<_> =
        HISTORIES.iter().map(|history| trace(&peer, answers, history, mistake)).collect();
    traces.iter().any(|trace| *trace != traces[0])
}

#[test]
fn planted_mistakes_show() {
    // One scheme without state, one with hints, one that verifies.
    for scheme in [SchemeId::Dpf, SchemeId::DummySubsets, SchemeId::TapirMerkle] {
        for layout in LAYOUTS {
            let not_found = Some(SessionFlaw::AsksAgainWhenNotFound);
            assert!(tells(scheme, layout, Answers::Right, not_found), "{scheme}, {layout:?}");
            let stash = Some(SessionFlaw::StashNotAskedFor);
            assert!(tells(scheme, layout, Answers::Right, stash), "{scheme}, {layout:?}");
            let at_once = Some(SessionFlaw::SendsWhenDone);
            assert!(tells(scheme, layout, Answers::Right, at_once), "{scheme}, {layout:?}");
        }
        let second = Some(SessionFlaw::SecondPartIfTold);
        assert!(tells(scheme, Layout::Parts, Answers::Right, second), "{scheme}");
        // The next lookup is handed in when this one's value is told.
        let reads = Some(SessionFlaw::ReadsWithoutSlot);
        assert!(tells(scheme, Layout::Cuckoo, Answers::Right, reads), "{scheme}");
        let failed = Some(SessionFlaw::AsksAgainWhenFailed);
        let (layout, answers) = (Layout::Authenticated, Answers::RecordsSpoilt);
        assert!(tells(scheme, layout, answers, failed), "{scheme}");
        assert!(!tells(scheme, layout, answers, None), "{scheme}");
        // A malformed key fails without any server's doing.
        assert!(tells(scheme, Layout::Ranges, Answers::Right, failed), "{scheme}");
    }
}
