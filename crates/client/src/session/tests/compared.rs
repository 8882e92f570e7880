//! Streams from two servers: each sends a share, or each everything.

use super::reserved::*;
use super::toy::{self, Flow, Kind};
use super::world::*;
use crate::session::compared::{Leads, Sources, Stream};
use crate::session::*;
use privet_core::Reason;
use privet_schemes::SchemeId;
use privet_wire::PartKind;
use std::collections::HashSet;

/// 200 bytes, in strides of 96.
const LEN: u64 = RECORDS * RECORD_LEN;

fn kind(flow: Flow, endless: bool) -> Kind {
    Kind { flow, endless, ..Kind::default() }
}

fn world(kind: Kind, compare: bool) -> World {
    let options = SessionOptions { compare_streams: compare, ..options(2) };
    World::with_parts(vec![toy_peer_of(kind, 2, 20); 2], options, toy::parts(1))
}

/// What was fetched of the stream, and from which server.
fn stretches(world: &World) -> Vec<(usize, u64, u64)> {
    let stretches = world.sent.iter().filter_map(|(server, request)| match request {
        Request::Fetch(request) if request.part != PartKind::Layout => {
            Some((*server, request.offset, request.len))
        }
        _ => None,
    });
    stretches.collect()
}

/// Cuts what each server streams into chunks of its own length, and hands each to `change`.
fn chunked(
    lens: [usize; 2],
    mut change: impl FnMut(usize, u64, &mut Vec<u8>) + 'static,
) -> Falsify {
    let mut asked = HashSet::new();
    Box::new(move |request, responses| {
        let Request::Fetch(request) = request else { return responses };
        if request.part == PartKind::Layout {
            return responses;
        }
        // Of two requests for the same stretch, the first goes to the first server.
        let server = usize::from(!asked.insert(request.offset));
        let mut chunks = Vec::new();
        for response in responses {
            let Ok(Response::Chunk(chunk)) = response else {
                chunks.push(response);
                continue;
            };
            let mut offset = chunk.offset;
            for data in chunk.data.chunks(lens[server]) {
                let mut data = data.to_vec();
                let len = data.len() as u64;
                change(server, offset, &mut data);
                chunks.push(Ok(Response::Chunk(FetchChunk { offset, data: data.into() })));
                offset += len;
            }
        }
        chunks
    })
}

#[test]
fn shares_cover_every_stream_once() {
    let lens = [0, 1, 2, 3, 199, 200, 1 << 40, u64::MAX];
    for (len, step) in lens.into_iter().flat_map(|len| [(len, 1), (len, 64), (len, 1 << 20)]) {
        let stream = Stream { len, step };
        for sources in [Sources::First, Sources::Shares(2), Sources::Shares(3), Sources::All(2)] {
            let (mut offset, mut turns) = (0, Vec::new());
            while offset < len {
                let share = sources.share(offset, stream);
                let end = share.end;
                assert!(offset < end && end <= len, "{sources:?} {offset} {end} {stream:?}");
                assert!(share.start == offset, "{sources:?} {share:?} {stream:?}");
                assert!(offset < step || offset % step == 0, "{sources:?} {share:?} {stream:?}");
                turns.push(sources.servers(offset, stream));
                assert_eq!(sources.servers(end - 1, stream), sources.servers(offset, stream));
                offset = end;
            }
            match sources {
                Sources::First => assert!(turns.iter().all(|turn| *turn == (0..1))),
                Sources::All(servers) => {
                    assert!(turns.iter().all(|turn| *turn == (0..servers as usize)));
                }
                Sources::Shares(servers) => {
                    assert!(turns.iter().all(|turn| turn.len() == 1));
                    assert!(turns.windows(2).all(|pair| pair[0].end == pair[1].start));
                    assert_eq!(turns.len() as u64, servers.min(len));
                }
            }
        }
    }
}

#[test]
fn bytes_are_handed_on_as_far_as_all_have_sent_them_and_not_twice() {
    let stream: Vec<u8> = (0..1000).map(|i| (i * 7 / 3) as u8).collect();
    for seed in 0..200 {
        let mut dice = Dice(seed);
        let (mut leads, mut agreed, mut sent) = (Leads::default(), Vec::new(), [0; 3]);
        leads.begin(3);
        while agreed.len() < stream.len() {
            let server = dice.roll(3) as usize;
            let from = sent[server];
            let to = stream.len().min(from + dice.roll(90) as usize);
            sent[server] = to;
            let bytes = stream[from..to].to_vec().into();
            for bytes in leads.take(server, bytes, agreed.len() as u64).unwrap() {
                agreed.extend(bytes);
            }
            assert_eq!(agreed, stream[..*sent.iter().min().unwrap()]);
            for (server, sent) in sent.iter().enumerate() {
                assert_eq!(leads.ahead(server), (sent - agreed.len()) as u64);
            }
        }
    }
}

#[test]
fn each_server_streams_its_half() {
    for flow in [Flow::Streamed, Flow::Backwards] {
        let mut world = world(kind(flow, true), false);
        assert_eq!(world.found(Target::index(7)), expected(7));
        // Strides are cut where the halves meet.
        assert_eq!(stretches(&world), [(0, 0, 96), (0, 96, 4), (1, 100, 96), (1, 196, 4)]);
    }
}

#[test]
fn the_next_generation_comes_in_halves_as_well() {
    let mut world = world(kind(Flow::Streamed, false), false);
    world.run();
    let first = stretches(&world).len();
    for k in 0..50 {
        assert_eq!(world.found(Target::index(k)), expected(k));
    }
    let later = stretches(&world)[first..].to_vec();
    assert!(later.len() > 4);
    for (server, offset, len) in later {
        assert_eq!(server, usize::from(offset >= LEN / 2));
        assert!(server == 1 || offset + len <= LEN / 2);
    }
}

#[test]
fn a_wrong_byte_of_either_half_is_noticed_at_the_end_and_nothing_is_asked() {
    for at in [0, 95, 96, 99, 100, 150, 199] {
        let mut world = world(kind(Flow::Streamed, true), false);
        world.falsify = chunked([13; 2], move |_, offset, data| {
            if (offset..offset + data.len() as u64).contains(&at) {
                data[(at - offset) as usize] ^= 0x80;
            }
        });
        let error = world.get(Target::index(7)).unwrap_err();
        assert_eq!(error.blame(), Blame::Integrity);
        assert_eq!(error.reason(), Some(Reason::WrongHalf), "{error}");
        assert_eq!(world.queries_to(0).len(), 0);

        let mut next = after(world);
        assert_eq!(next.found(Target::index(7)), expected(7), "nothing of it was kept");
        assert_eq!(stretches(&next)[0].1, 0);
    }
}

#[test]
fn everything_comes_from_both_if_it_is_compared() {
    for (flow, lens) in [(Flow::Streamed, [5000, 5000]), (Flow::Backwards, [7, 11])] {
        let mut world = world(kind(flow, true), true);
        world.falsify = chunked(lens, |_, _, _| {});
        assert_eq!(world.found(Target::index(7)), expected(7));
        let due = [(0, 96), (96, 96), (192, 8)];
        let due: Vec<_> = due
            .iter()
            .flat_map(|(offset, len)| [0, 1].map(|server| (server, *offset, *len)))
            .collect();
        assert_eq!(stretches(&world), due);
    }
}

#[test]
fn the_first_difference_ends_the_session_wherever_it_is_and_whosever_it_is() {
    for at in 0..LEN {
        for liar in [0, 1] {
            let mut world = world(kind(Flow::Streamed, true), true);
            world.falsify = chunked([7, 11], move |server, offset, data| {
                if server == liar && (offset..offset + data.len() as u64).contains(&at) {
                    data[(at - offset) as usize] ^= 1;
                }
            });
            let error = world.get(Target::index(7)).unwrap_err();
            assert_eq!(error.blame(), Blame::Integrity);
            assert!(error.message().contains("sent different bytes"), "{error}");
            assert!(error.message().contains(&format!("from byte {at} ")), "byte {at}: {error}");
            // No stretch beyond the one with the difference was asked for, and no query.
            assert!(stretches(&world).iter().all(|(_, offset, _)| *offset <= at));
            assert_eq!(world.queries_to(0).len(), 0);
        }
    }
}

#[test]
fn a_lie_that_both_agree_on_is_noticed_at_the_end() {
    let mut world = world(kind(Flow::Streamed, true), true);
    world.falsify = chunked([10; 2], |_, offset, data| data[0] ^= u8::from(offset == 40));
    let error = world.get(Target::index(7)).unwrap_err();
    assert_eq!(error.blame(), Blame::Integrity);
    assert!(!error.message().contains("sent different bytes"), "{error}");
}

#[test]
fn a_server_that_is_ahead_waits_within_one_stretch() {
    for slow in [0, 1] {
        let mut world = world(kind(Flow::Streamed, true), true);
        let mut asked = HashSet::new();
        world.fate = Box::new(move |_, request| match request {
            Request::Fetch(request) if request.part == PartKind::Table => {
                let server = usize::from(!asked.insert(request.offset));
                if server == slow { Fate::Late(500) } else { Fate::Arrives }
            }
            _ => Fate::Arrives,
        });
        let lookup = world.session.lookup(Target::index(7));
        let mut most = 0;
        while world.step() {
            let Phase::Open(open) = &world.session.phase else { continue };
            let ahead = [0, 1].map(|server| open.hints.leads.ahead(server));
            assert!(ahead[slow] == 0 && ahead[1 - slow] <= 96, "{ahead:?}");
            most = most.max(ahead[1 - slow]);
        }
        assert_eq!(most, 96);
        assert_eq!(world.value(lookup), expected(7));
    }
}

#[test]
fn streams_that_break_off_lose_nothing_in_either_way() {
    for (seed, compare, endless) in
        (0..60).flat_map(|seed| [(seed, false, true), (seed, true, true), (seed, true, false)])
    {
        let mut world = world(kind(Flow::Streamed, endless), compare);
        world.falsify = chunked([17, 9], |_, _, _| {});
        let mut dice = Dice(seed);
        world.fate = Box::new(move |_, _| match dice.roll(7) {
            0 => Fate::Lost,
            1 => Fate::Breaks,
            2 => Fate::Twice,
            3 => Fate::Cut(3),
            4 => Fate::TurnedAway,
            _ => Fate::Arrives,
        });
        let lookups = world.look_up(0..15);
        world.run();
        for (index, lookup) in (0..).zip(lookups) {
            assert_eq!(world.value(lookup), expected(index), "seed {seed}");
        }
    }
}

#[test]
fn a_stretch_that_one_server_does_not_give_is_compared_anew_with_the_next_lookup() {
    let mut world = world(kind(Flow::Streamed, false), true);
    world.run();
    let first = stretches(&world).len();
    world.falsify = Box::new(|request, responses| match request {
        Request::Fetch(_) => vec![Err(Error::api_misuse("no"))],
        _ => responses,
    });
    for k in 0..8 {
        assert_eq!(world.found(Target::index(k)), expected(k));
    }
    let refused = stretches(&world).len();
    assert!(refused > first);
    world.true_responses();
    for k in 0..30 {
        assert_eq!(world.found(Target::index(k)), expected(k));
    }
    let later = &stretches(&world)[refused..];
    assert_eq!(later[0].1, 0);
    assert!(later.chunks(2).all(|pair| (pair[0].1, pair[0].2) == (pair[1].1, pair[1].2)));
}

#[test]
fn where_nothing_is_streamed_from_two_there_is_nothing_to_compare() {
    let one = Peer::indexed_by(SchemeId::DummySubsets, 64, 4, 1);
    let dpf = Peer::indexed_by(SchemeId::Dpf, 64, 4, 1);
    let asked = toy_peer_of(kind(Flow::Asked, true), 2, 20);
    for peer in [one, dpf, asked] {
        let mut world = World::with(&peer, |options| options.compare_streams = true);
        world.run();
        let error = world.failure.as_ref().unwrap();
        assert_eq!(error.blame(), Blame::ApiMisuse);
        assert_eq!(error.reason(), Some(Reason::NothingToCompare), "{error}");
        assert!(world.asked_nothing());
    }
}
