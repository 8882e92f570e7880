//! Downloads that are interrupted anywhere go on at a boundary.

use super::living::Living;
use super::world::*;
use crate::session::boundaries::Boundaries;
use crate::session::preparation::Pace;
use crate::session::*;
use privet_schemes::SchemeId;
use privet_table::key_map::KeyMapKind;
use privet_wire::PartKind;

const KEYS: usize = 60;

/// How finely a test cuts.
#[derive(Clone, Copy)]
struct Cut {
    /// Pieces of the stream begin at multiples of this.
    piece: u64,
    /// The shortest step between two boundaries.
    step: u64,
}

/// A client of `peer` that has what `former` kept, and misses at once what broke off.
fn world(peer: &Peer, former: Option<World>, cut: Cut) -> World {
    let patience =
        Patience { chunk: Duration::from_millis(50), least_rate: 1, ..options(1).patience };
    patient(patience, peer, former, cut)
}

fn patient(patience: Patience, peer: &Peer, former: Option<World>, cut: Cut) -> World {
    let servers = peer.scheme().plan.servers;
    let mut options = SessionOptions { patience, ..options(servers) };
    let mut state = former.map(|former| former.keeper.state);
    if let Some(state) = &mut state {
        know_pins(&mut options, &mut **state);
    }
    let pace = Pace {
        shortest_piece: cut.piece,
        stride: 4 * cut.piece,
        checkpoint_interval: 1,
        shortest_step: cut.step,
        ..Pace::default()
    };
    let mut world =
        World::with_parts(vec![peer.clone(); servers], options, Parts { pace, ..parts() });
    if let Some(state) = state {
        world.keeper.state = state;
    }
    // Chunks end where few steps do.
    let len = cut.piece as usize * 5 / 8;
    world.falsify = Box::new(move |_, responses| {
        responses.into_iter().flat_map(|response| in_chunks(response, len)).collect()
    });
    world
}

fn in_chunks(response: Result<Response>, len: usize) -> Vec<Result<Response>> {
    let Ok(Response::Chunk(chunk)) = response else { return vec![response] };
    let offsets = (chunk.offset..).step_by(len);
    let piece = |(offset, data): (u64, &[u8])| {
        Ok(Response::Chunk(FetchChunk { offset, data: data.to_vec().into() }))
    };
    offsets.zip(chunk.data.chunks(len)).map(piece).collect()
}

/// Each download breaks off after a few chunks.
fn break_off(world: &mut World, mut dice: Dice) {
    world.fate = Box::new(move |_, request| match request {
        Request::Fetch(_) => Fate::Cut(2 + dice.roll(6) as usize),
        _ => Fate::Arrives,
    });
}

/// The places from which parts of `kind` were asked for.
fn places(world: &World, kind: PartKind) -> impl Iterator<Item = u64> {
    world.sent.iter().filter_map(move |(_, request)| match request {
        Request::Fetch(request) if request.part == kind => Some(request.offset),
        _ => None,
    })
}

/// The same for a client whose downloads all break off, and for others whose processes end at some
/// moment as well.
fn asked_from(kind: PartKind, scheme: SchemeId, cut: Cut) -> Vec<u64> {
    let mut dice = Dice(7);
    let mut offsets = Vec::new();
    for ends in 0..3 {
        let mut living = Living::new(scheme, KeyMapKind::Cuckoo, KEYS);
        let mut client = world(&living.peer(0, &[], 0), None, cut);
        let mut version = 0;
        if kind == PartKind::Updates {
            client.run();
            let edit = |k: usize| (format!("key-{k}").into_bytes(), Some(b"another".to_vec()));
            version = living.update(&(0..20).map(edit).collect::<Vec<_>>());
        }
        let peer = living.peer(version, &[], 0);
        for _ in 0..=ends {
            offsets.extend(places(&client, kind));
            client = world(&peer, Some(client), cut);
            break_off(&mut client, Dice(dice.roll(1000)));
            (0..dice.roll(90)).all(|_| client.step());
        }
        living.check(&mut client, &mut dice, 3);
        assert!(client.failure.is_none(), "{:?}", client.failure);
        offsets.extend(places(&client, kind));
    }
    offsets
}

#[test]
fn whatever_breaks_off_goes_on_at_a_boundary() {
    for (kind, scheme, step) in [
        (PartKind::Layout, SchemeId::Dpf, 32),
        (PartKind::Hint, SchemeId::SimplePir, 4096),
        (PartKind::Table, SchemeId::Download, 64),
        (PartKind::Table, SchemeId::DummySubsets, 64),
        (PartKind::Table, SchemeId::TapirMerkle, 64),
        (PartKind::Updates, SchemeId::Dpf, 64),
    ] {
        let cut = Cut { piece: step, step };
        let offsets = asked_from(kind, scheme, cut);
        assert!(offsets.iter().any(|offset| *offset > 0), "{kind} of {scheme}: none goes on");
        let between = |offsets: &[u64]| offsets.iter().filter(|at| *at % step != 0).count();
        assert_eq!(between(&offsets), 0, "{kind} of {scheme}: {offsets:?}");
        // The planted leak: a boundary at each byte.
        let exact = asked_from(kind, scheme, Cut { step: 1, ..cut });
        assert!(between(&exact) > 0, "{kind} of {scheme}: the leak is not found, {exact:?}");
    }
}

const LEAST_RATE: u64 = 100;

fn impatient() -> Patience {
    Patience {
        chunk: Duration::from_secs(10),
        give_up_after: Duration::from_secs(20),
        least_rate: LEAST_RATE,
        ..options(1).patience
    }
}

/// Repeating takes longer than a download may go on without a new byte.
#[test]
fn a_line_that_is_just_fast_enough_may_repeat_what_broke_off() {
    let cut = Cut { piece: 400, step: 4096 };
    let peer = Peer::keyed(20);
    let mut world = patient(impatient(), &peer, None, cut);
    world.fate = Box::new(|_, request| match request {
        // 250 bytes in two seconds.
        Request::Fetch(_) => Fate::Drips(2000),
        _ => Fate::Arrives,
    });
    let mut broke = false;
    world.falsify = Box::new(move |request, responses| {
        let mut chunks: Vec<_> =
            responses.into_iter().flat_map(|response| in_chunks(response, 250)).collect();
        if chunks.len() > 16 && matches!(request, Request::Fetch(_)) && !broke {
            broke = true;
            chunks.truncate(16);
            chunks.push(Err(Error::unavailable("it broke off")));
        }
        chunks
    });
    let (key, value) = pair(7);
    assert_eq!(world.found(Target::key(key)), value);
    assert_eq!(places(&world, PartKind::Hint).collect::<Vec<_>>(), [0, 0]);
}

/// What comes of a chunk of these bytes of the hint, for a client whose first attempt broke off
/// after `chunks` chunks: whether it finds its record, and where it asked from.
fn comes_of(
    misplaced: std::ops::Range<u64>,
    chunks: usize,
) -> (Result<Option<Value>, Blame>, Vec<u64>) {
    let mut world = patient(impatient(), &Peer::keyed(20), None, Cut { piece: 400, step: 4096 });
    let mut attempt = 0;
    world.falsify = Box::new(move |request, responses| {
        let mut responses: Vec<_> =
            responses.into_iter().flat_map(|response| in_chunks(response, 250)).collect();
        if is_for(PartKind::Hint, request) {
            attempt += 1;
            match attempt {
                1 => responses.truncate(chunks),
                2 => {
                    let data = vec![7; (misplaced.end - misplaced.start) as usize].into();
                    let chunk = FetchChunk { offset: misplaced.start, data };
                    responses = vec![Ok(Response::Chunk(chunk))];
                }
                _ => return responses,
            }
            responses.push(Err(Error::unavailable("it broke off")));
        }
        responses
    });
    let found = world.get(Target::key(pair(7).0)).map_err(|error| error.blame());
    (found, places(&world, PartKind::Hint).collect())
}

/// Otherwise a server that tries places would find out how much came before.
#[test]
fn what_comes_of_a_misplaced_chunk_does_not_tell_how_much_came_before() {
    for (misplaced, is_wrong) in [
        (5000..5250, true),
        (4500..4502, true),
        (6000..6002, true),
        (4000..4100, true),
        (7000..7250, true),
        (4000..4096, false),
        (0..250, false),
    ] {
        // The step from 4096 to 8192.
        let results = [18, 20, 24].map(|chunks| comes_of(misplaced.clone(), chunks));
        let [(found, asked), ..] = &results;
        assert!(results.iter().all(|result| result == &results[0]), "{misplaced:?}: {results:?}");
        assert_eq!(asked[..2], [0, 4096]);
        assert_eq!(*found == Err(Blame::PeerMisbehaved), is_wrong, "{misplaced:?}: {found:?}");
    }
}

#[test]
fn a_server_that_repeats_and_adds_a_byte_does_not_keep_a_client() {
    let cut = Cut { piece: 400, step: 4096 };
    let mut world = patient(impatient(), &Peer::keyed(20), None, cut);
    let mut done = 4000;
    world.falsify = Box::new(move |request, mut responses| {
        let (Request::Fetch(request), Some(Ok(Response::Chunk(chunk)))) =
            (request, responses.first_mut())
        else {
            return responses;
        };
        if request.part == PartKind::Hint {
            done += 1;
            let _ = chunk.data.split_off(done - request.offset as usize);
            responses.truncate(1);
            responses.push(Err(Error::unavailable("it broke off")));
        }
        responses
    });
    assert_eq!(world.get(Target::key(pair(7).0)).unwrap_err().blame(), Blame::Unavailable);
    let (bytes, time) = (places(&world, PartKind::Hint).count() as u64, world.now);
    // It gave 4000 bytes, and each of them may be repeated once at this rate.
    let most = Duration::from_secs(30 + 2 * (4000 + bytes) / LEAST_RATE);
    assert!(time < most, "{bytes} attempts in {time:?}");
}

#[test]
fn steps_are_a_64th_of_the_whole_within_limits() {
    let step = |len| Boundaries::of(len, &Pace::default()).step();
    let mib = |count: u64| count << 20;
    for (len, expected) in [
        (0, 1),
        (1000, 1),
        (mib(64), 1),
        (mib(65), 2),
        (mib(128), 2),
        (mib(200), 4),
        (mib(1 << 20), 4),
        (u64::MAX, 4),
    ] {
        assert_eq!(step(len), mib(expected), "{len}");
    }
    let boundaries = Boundaries::of(mib(100), &Pace::default());
    for (offset, expected) in [(0, 0), (1, 0), (mib(2) - 1, 0), (mib(2), mib(2)), (mib(5), mib(4))]
    {
        assert_eq!(boundaries.at_or_before(offset), expected);
        assert_eq!(boundaries.from(mib(2)).at_or_before(mib(2) + offset) - mib(2), expected);
    }
    assert_eq!(boundaries.from(mib(3)).at_or_before(mib(3) + 5), mib(3), "not before its share");
}
