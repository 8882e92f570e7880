//! Values in several records, and several values of a key: servers see the same in each lookup,
//! whatever it looks up.

use super::toy::{self, Kind};
use super::world::*;
use crate::session::*;
use privet_core::PublicSeed;
use privet_schemes::SchemeId;
use privet_table::key_map::{KeyMapKind, PackOptions, encode_list, pack_with};
use privet_table::{IndexLayout, KeyMap, RecordLayout};
use std::cell::RefCell;
use std::rc::Rc;

const KEYS: usize = 80;
const PARTS: usize = 4;

/// The values of key number `k`: most are short, every tenth needs all parts, one is so long that
/// it lies in the stash, and some keys have several.
fn values(k: usize) -> Vec<Vec<u8>> {
    let value = |len: usize| (0..len).map(|i| (k * 31 + i + i / 256) as u8).collect();
    match k {
        3 => vec![value(3000)],
        _ if k % 10 == 5 => vec![value(450)],
        _ if k % 10 == 6 => vec![value(100), value(0), value(350)],
        _ => (0..=k % 3).map(|number| value(3 + number)).collect(),
    }
}

fn key(k: usize) -> Vec<u8> {
    format!("key-{k}").into_bytes()
}

/// Keys of every class: with a short value, with a few of them, with one or several in all parts,
/// in the stash, not there.
const CLASSES: [usize; 7] = [0, 2, 5, 16, 3, KEYS, KEYS + 1];

/// A table whose keys have four parts, one of them in the stash.
struct Table {
    map: KeyMap,
    records: Vec<u8>,
}

impl Table {
    fn new(kind: KeyMapKind) -> Self {
        let pairs: Vec<_> = (0..KEYS).map(|k| (key(k), encode_list(values(k)))).collect();
        let options =
            PackOptions { kind, parts: Some(PARTS as u8), lists: true, ..PackOptions::default() };
        let seed = PublicSeed::derive("privet test", b"seed");
        let packed = pack_with(&options, &pairs[..], seed).unwrap();
        let map = packed.key_map().clone();
        assert!(map.stash_entries() >= PARTS as u64, "the long value is in the stash: {map:?}");
        let (mut records, mut record) = (Vec::new(), Vec::new());
        for bucket in 0..map.buckets() {
            packed.write_record(&pairs[..], bucket, &mut record);
            records.extend(&record);
        }
        Self { map, records }
    }

    fn served_by(&self, scheme: SchemeId) -> Peer {
        let layout = RecordLayout::Keyed(self.map.clone()).encode();
        Peer::new(scheme, layout, &self.records, self.map.shape(), 1)
    }

    /// The same records, to be looked up by their numbers.
    fn served_by_number(&self, scheme: SchemeId) -> Peer {
        let len = self.map.record_len();
        let layout = RecordLayout::Index(IndexLayout::for_lengths(len, len)).encode();
        Peer::new(scheme, layout, &self.records, self.map.shape(), 1)
    }
}

fn world_of(peer: &Peer) -> World {
    let servers = peer.scheme().plan.servers;
    World::with_options(vec![peer.clone(); servers], options(servers))
}

fn found(outcome: Result<Option<Value>>) -> Option<Vec<Vec<u8>>> {
    outcome.unwrap().map(|value| {
        assert!(value.is_list());
        value.values().map(<[u8]>::to_vec).collect()
    })
}

fn expected(k: usize) -> Option<Vec<Vec<u8>>> {
    (k < KEYS).then(|| values(k))
}

/// What a server sees of one request: when it came, to which server, of which kind, how long it
/// was, and how long the responses were.
type Seen = (Duration, usize, &'static str, usize, Vec<usize>);

/// A world that records everything that servers see from now on.
struct Watched {
    world: World,
    began: (usize, Duration),
    times: Vec<Duration>,
    responses: Rc<RefCell<Vec<Vec<usize>>>>,
}

impl Watched {
    fn new(mut world: World) -> Self {
        world.run();
        let responses = Rc::new(RefCell::new(Vec::new()));
        let noted = Rc::clone(&responses);
        world.falsify = Box::new(move |_, responses| {
            let len = |response: &Result<Response>| match response {
                Ok(Response::Answered(response)) => response.answer.len(),
                Ok(Response::Chunk(chunk)) => chunk.data.len(),
                Ok(Response::Prepared(response)) => response.reply.len(),
                _ => 0,
            };
            noted.borrow_mut().push(responses.iter().map(len).collect());
            responses
        });
        let began = (world.sent.len(), world.now);
        Self { world, began, times: Vec::new(), responses }
    }

    fn get(&mut self, target: Target) -> Result<Option<Value>> {
        let lookup = self.world.session.lookup(target);
        loop {
            while let Some(output) = self.world.poll() {
                if let Output::Errand(Errand::Send { .. }) = output {
                    self.times.push(self.world.now - self.began.1);
                }
                self.world.carry_out(output);
            }
            if !self.world.step() {
                return self.world.outcomes.remove(&lookup).unwrap();
            }
        }
    }

    fn seen(&self) -> Vec<Seen> {
        let requests = self.world.trace()[self.began.0..].to_vec();
        let responses = self.responses.borrow();
        assert_eq!((requests.len(), responses.len()), (self.times.len(), self.times.len()));
        let seen = requests.into_iter().zip(&self.times).zip(responses.iter());
        seen.map(|(((server, kind, len), at), responses)| {
            (*at, server, kind, len, responses.clone())
        })
        .collect()
    }
}

/// The classes of keys for which a server sees something else than for the first.
fn told_apart(mut look_up: impl FnMut(usize) -> Vec<Seen>) -> Vec<usize> {
    let reference = look_up(CLASSES[0]);
    CLASSES[1..].iter().copied().filter(|k| look_up(*k) != reference).collect()
}

#[test]
fn whatever_is_looked_up_servers_see_the_same() {
    for kind in KeyMapKind::ALL {
        let table = Table::new(kind);
        for scheme in [
            SchemeId::SimplePir,
            SchemeId::Dpf,
            SchemeId::ApirDpf,
            SchemeId::ApirMatrix,
            SchemeId::DummySubsets,
            SchemeId::DummySubsetsTwo,
            SchemeId::Piano,
            SchemeId::SinglePass,
            SchemeId::TapirMerkle,
            SchemeId::Download,
        ] {
            let peer = table.served_by(scheme);
            let fetches = match scheme {
                SchemeId::Download => 0,
                _ => table.map.candidates_per_key() * peer.scheme().plan.servers,
            };
            let look_up = |k: usize| {
                let mut watched = Watched::new(world_of(&peer));
                for times in 1..=2 {
                    assert_eq!(found(watched.get(Target::key(key(k)))), expected(k), "{scheme}");
                    let seen = watched.seen();
                    let queries = seen.iter().filter(|seen| seen.2 == "answer").count();
                    assert_eq!(queries, times * fetches, "{scheme}");
                }
                watched.seen()
            };
            assert_eq!(told_apart(look_up), [0; 0], "{scheme}, {kind:?}");
        }
    }
}

/// A client that fetches the records of the first part, and those of the other parts only if the
/// first says that there are any.
fn hasty(table: &Table, watched: &mut Watched, k: usize) {
    let key = key(k);
    let numbers: Vec<u64> = table.map.candidates(&key).collect();
    let of_a_part = numbers.len() / PARTS;
    let mut is_cut = false;
    for (candidate, number) in numbers.into_iter().enumerate() {
        if candidate >= of_a_part && !is_cut {
            return;
        }
        let record = watched.get(Target::index(number)).unwrap().unwrap();
        let piece = table.map.piece_in(&key, candidate, &record).unwrap();
        is_cut |= candidate < of_a_part && piece.is_some_and(|piece| piece[0] > 0);
    }
}

/// A client that asks for nothing if it finds the key in the stash that it has.
fn knowing(table: &Table, watched: &mut Watched, k: usize) {
    let nothing = vec![None::<&[u8]>; table.map.candidates_per_key()];
    if !matches!(table.map.value(&key(k), &nothing), Ok(Some(_))) {
        for number in table.map.candidates(&key(k)) {
            watched.get(Target::index(number)).unwrap();
        }
    }
}

#[test]
fn clients_that_ask_for_less_where_less_would_do_are_caught() {
    for kind in KeyMapKind::ALL {
        let table = Table::new(kind);
        for scheme in [SchemeId::SimplePir, SchemeId::Dpf, SchemeId::DummySubsets] {
            let peer = table.served_by_number(scheme);
            let seen_of = |client: fn(&Table, &mut Watched, usize)| {
                told_apart(|k| {
                    let mut watched = Watched::new(world_of(&peer));
                    client(&table, &mut watched, k);
                    watched.seen()
                })
            };
            assert_eq!(seen_of(hasty), [5, 16], "{scheme}: values of several parts");
            assert_eq!(seen_of(knowing), [3], "{scheme}: the value in the stash");
        }
    }
}

#[test]
fn all_queries_of_a_lookup_go_out_before_anything_comes_back() {
    for kind in KeyMapKind::ALL {
        let table = Table::new(kind);
        let mut one_at_a_time = options(2);
        one_at_a_time.in_flight = 1;
        let peers = vec![table.served_by(SchemeId::Dpf); 2];
        let mut world = World::with_options(peers, one_at_a_time);
        world.run();
        let lookups: Vec<_> =
            CLASSES.iter().map(|k| world.session.lookup(Target::key(key(*k)))).collect();
        while let Some(output) = world.poll() {
            world.carry_out(output);
        }
        let sent = [0, 1].map(|server| world.queries_to(server).len());
        assert_eq!(sent, [table.map.candidates_per_key(); 2], "of one lookup");
        world.run();
        for (lookup, k) in lookups.iter().zip(CLASSES) {
            assert_eq!(found(world.outcomes.remove(lookup).unwrap()), expected(k));
        }
    }
}

#[test]
fn a_lookup_of_which_any_fetch_fails_has_failed() {
    let table = Table::new(KeyMapKind::Buckets);
    let peer = table.served_by(SchemeId::SimplePir);
    for spoilt in 0..PARTS {
        let mut world = world_of(&peer);
        world.run();
        let mut answers = 0;
        world.falsify = Box::new(move |request, mut responses| {
            if let (Request::Answer(_), Ok(Response::Answered(response))) =
                (request, &mut responses[0])
            {
                if answers % PARTS == spoilt {
                    response.answer = Vec::new().into();
                }
                answers += 1;
            }
            responses
        });
        for k in CLASSES {
            let error = world.get(Target::key(key(k))).unwrap_err();
            assert_eq!(error.blame(), Blame::InvalidMessage, "key {k}");
        }
        assert_eq!(world.queries_to(0).len(), PARTS * CLASSES.len());
    }
}

/// A server that lies, or a table that is damaged.
#[test]
fn pieces_that_contradict_each_other_fail_their_lookup_and_nothing_else() {
    let mut table = Table::new(KeyMapKind::Buckets);
    let honest = table.served_by(SchemeId::SimplePir);
    // The last byte of the third piece of a long value.
    let number = table.map.candidates(&key(15)).nth(2).unwrap();
    let start = (number * table.map.record_len()) as usize;
    let record = table.records[start..][..table.map.record_len() as usize].to_vec();
    let piece = table.map.piece_in(&key(15), 2, &record).unwrap().unwrap();
    let at = record.windows(piece.len()).position(|window| window == piece).unwrap();
    table.records[start + at + piece.len() - 1] ^= 1;
    let lying = table.served_by(SchemeId::SimplePir);

    let seen = [honest, lying].map(|peer| {
        let mut watched = Watched::new(world_of(&peer));
        let outcomes = [5, 15, 25].map(|k| watched.get(Target::key(key(k))));
        (outcomes, watched.seen())
    });
    let [(true_outcomes, true_traffic), (outcomes, traffic)] = seen;
    assert_eq!(traffic, true_traffic);
    assert!(true_outcomes.iter().all(Result::is_ok));
    let [before, error, after] = outcomes;
    assert_eq!(error.unwrap_err().blame(), Blame::Integrity);
    assert_eq!((found(before), found(after)), (expected(5), expected(25)));
}

/// With a scheme that hides nothing: a lookup asks for its key's candidates, in their order, and
/// nothing else has an influence.
#[test]
fn which_records_are_asked_for_follows_from_the_key_alone() {
    for kind in KeyMapKind::ALL {
        let table = Table::new(kind);
        let peer = toy::serve(table.served_by(SchemeId::SimplePir), 2, 500, Kind::default());
        let session = Session::with_parts(options(2), Duration::ZERO, toy::parts(1)).unwrap();
        let mut world = World::with_session(vec![peer; 2], session);
        for k in CLASSES.into_iter().chain(20..40) {
            let before = world.queries_to(0).len();
            assert_eq!(found(world.get(Target::key(key(k)))), expected(k), "key {k}");
            let queries = world.queries_to(0).split_off(before);
            let asked: Vec<u64> = queries.iter().map(|query| toy::index_of(query)).collect();
            let candidates: Vec<u64> = table.map.candidates(&key(k)).collect();
            assert_eq!(asked, candidates, "key {k}");
        }
    }
}
