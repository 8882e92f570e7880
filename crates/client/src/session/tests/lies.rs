//! Servers that lie. Each lie gets the right blame. No lie gets another query, causes a panic, or
//! takes memory.

use super::world::*;
use crate::session::pins::pin_of;
use crate::session::*;
use crate::state::Opened;
use privet_core::{Reason, TableIdentity};
use privet_schemes::SchemeId;
use privet_schemes::offline::StreamConsumer as _;
use privet_table::{IndexLayout, RecordLayout};
use privet_wire::limits::FETCH_CHUNK_LEN;
use privet_wire::{PartDescription, PartKind, SchemeDescription, TableDescription};

type Lie = fn(&Request, Vec<Result<Response>>) -> Vec<Result<Response>>;

/// How a session ends if its server tells `lie`: who is to blame, and whether the session was over
/// for good.
fn outcome(
    lie: impl FnMut(&Request, Vec<Result<Response>>) -> Vec<Result<Response>> + 'static,
) -> (Blame, bool) {
    let mut world = World::of(&Peer::keyed(20));
    world.falsify = Box::new(lie);
    let error = world.get(Target::key(pair(1).0)).unwrap_err();
    (error.blame(), world.failure.is_some())
}

fn on_chunk(
    mut responses: Vec<Result<Response>>,
    at: usize,
    lie: fn(&mut FetchChunk),
) -> Vec<Result<Response>> {
    if let Some(Ok(Response::Chunk(chunk))) = responses.get_mut(at) {
        lie(chunk);
    }
    responses
}

fn flip(chunk: &mut FetchChunk) {
    let mut data = chunk.data.to_vec();
    data[0] ^= 1;
    chunk.data = data.into();
}

#[test]
fn lies_in_downloads_end_the_session() {
    let lies: &[(&str, Lie, Blame)] = &[
        ("a gap", |_, r| on_chunk(r, 1, |chunk| chunk.offset += 1), Blame::PeerMisbehaved),
        ("an overlap", |_, r| on_chunk(r, 1, |chunk| chunk.offset -= 1), Blame::PeerMisbehaved),
        (
            "the end of all numbers",
            |_, r| on_chunk(r, 0, |chunk| chunk.offset = u64::MAX),
            Blame::PeerMisbehaved,
        ),
        (
            "a chunk longer than the part",
            |_, r| on_chunk(r, 0, |chunk| chunk.data = vec![0; FETCH_CHUNK_LEN].into()),
            Blame::PeerMisbehaved,
        ),
        (
            "a chunk after the end",
            |_, mut r| {
                if let Some(Ok(Response::Chunk(last))) = r.iter().rev().nth(1) {
                    let offset = last.offset + last.data.len() as u64;
                    let extra = Response::Chunk(FetchChunk { offset, data: vec![0].into() });
                    r.insert(r.len() - 1, Ok(extra));
                }
                r
            },
            Blame::PeerMisbehaved,
        ),
        ("other bytes than announced", |_, r| on_chunk(r, 0, flip), Blame::Integrity),
    ];
    for (name, lie, blame) in lies {
        assert_eq!(outcome(*lie), (*blame, true), "{name}");
    }
}

#[test]
fn a_download_with_the_wrong_digest_is_not_kept() {
    for (peer, kind) in [
        (Peer::keyed(20), PartKind::Layout),
        (Peer::keyed_by(SchemeId::Download, 400), PartKind::Table),
    ] {
        let mut world = World::of(&peer);
        world.falsify = Box::new(move |request, responses| match is_for(kind, request) {
            true => on_chunk(responses, 0, flip),
            false => responses,
        });
        let error = world.get(Target::key(pair(1).0)).unwrap_err();
        assert_eq!((error.blame(), world.failed_with()), (Blame::Integrity, Blame::Integrity));
        assert!(error.message().starts_with(&format!("the {kind}: ")), "{error}");
        let chosen = world.session.table().unwrap();
        let announced = match kind {
            PartKind::Layout => chosen.layout,
            _ => chosen.scheme.hint.unwrap(),
        };
        let part = chosen.part(kind, announced);
        let Opened::Have { part: PartState::Partial(download), .. } =
            world.keeper.state.open(&part).unwrap()
        else {
            panic!("it was kept")
        };
        assert_eq!(download.next_offset(), 0);
    }
}

/// A layout that comes with the description is not fetched, and is believed no more than a fetched
/// one.
#[test]
fn a_layout_that_is_sent_along_is_checked_as_one_that_is_fetched() {
    let truth = Peer::keyed(20).layout;
    let mut bent = truth.clone();
    bent[0] ^= 1;
    let longer = [&truth[..], &[0]].concat();
    let cases = [
        (None, Ok(true)),
        (Some(truth.clone()), Ok(false)),
        (Some(bent), Err(Blame::Integrity)),
        (Some(longer), Err(Blame::PeerMisbehaved)),
        (Some(truth[1..].to_vec()), Err(Blame::PeerMisbehaved)),
    ];
    for (told, expected) in cases {
        let mut peer = Peer::keyed(20);
        peer.description.tables[0].layout_bytes = told;
        let mut world = World::of(&peer);
        let found = world.get(Target::key(pair(1).0));
        let fetched = world.sent.iter().any(|(_, request)| is_for(PartKind::Layout, request));
        let found = found.map(|value| {
            assert_eq!(value.unwrap().to_vec(), pair(1).1);
            fetched
        });
        assert_eq!(found.map_err(|error| error.blame()), expected);
        // Whatever was false is not kept.
        let chosen = world.session.table().unwrap();
        let part = chosen.part(PartKind::Layout, chosen.layout);
        if let Opened::Have { part: PartState::Partial(kept), .. } =
            world.keeper.state.open(&part).unwrap()
        {
            assert!(expected.is_err() && kept.next_offset() == 0);
        }
    }
}

#[test]
fn lies_in_answers_cost_one_lookup() {
    type AnswerLie = fn(AnswerResponse) -> Response;
    fn changed(mut answer: AnswerResponse, lie: fn(&mut AnswerResponse)) -> Response {
        lie(&mut answer);
        Response::Answered(answer)
    }
    let lies: [(&str, AnswerLie, Blame); 7] = [
        ("another table", |a| changed(a, |a| a.table.0[0] ^= 1), Blame::PeerMisbehaved),
        ("another epoch", |a| changed(a, |a| a.epoch.0 += 1), Blame::PeerMisbehaved),
        ("parameters", |a| changed(a, |a| a.parameter_digest[31] ^= 1), Blame::PeerMisbehaved),
        ("nothing", |a| changed(a, |a| a.answer.clear()), Blame::InvalidMessage),
        (
            "a byte too many",
            |a| changed(a, |a| a.answer = vec![0; a.answer.len() + 1].into()),
            Blame::InvalidMessage,
        ),
        ("something else", |_| Response::End, Blame::PeerMisbehaved),
        (
            "a description",
            |_| Response::Described(ServerDescription::new("liar", Vec::new()).unwrap()),
            Blame::PeerMisbehaved,
        ),
    ];
    for (name, lie, blame) in lies {
        let told = outcome(move |_, responses| match &responses[0] {
            Ok(Response::Answered(answer)) => vec![Ok(lie(answer.clone()))],
            _ => responses,
        });
        assert_eq!(told, (blame, false), "{name}");
    }
}

#[test]
fn a_server_that_repeats_itself_for_ever_is_given_up() {
    let mut world = World::of(&Peer::keyed(20));
    let mut first = None;
    world.falsify = Box::new(move |request, responses| match request {
        // The first chunk again and again, and never another.
        Request::Fetch(request) if request.part == PartKind::Hint => {
            let first = first.get_or_insert_with(|| responses.into_iter().next().unwrap().unwrap());
            (0..3000).map(|_| Ok(first.clone())).collect()
        }
        _ => responses,
    });
    let lookup = world.session.lookup(Target::key(pair(1).0));
    world.run();
    assert_eq!(world.outcomes[&lookup].as_ref().unwrap_err().blame(), Blame::Unavailable);
}

/// Whatever a server does to its responses, a session ends: every lookup has an outcome, and
/// nothing panics.
#[test]
fn random_lies_end_in_errors() {
    let peer = Peer::keyed(20);
    let (mut errors, mut failures) = (0, 0);
    for seed in 0..300 {
        let mut world = World::of(&peer);
        let mut dice = Dice(seed);
        world.falsify = Box::new(move |_, mut responses| {
            if dice.roll(3) != 0 {
                return responses;
            }
            let at = dice.roll(responses.len() as u64) as usize;
            match (&mut responses[at], dice.roll(4)) {
                (Ok(Response::Chunk(chunk)), 0) => chunk.offset = dice.roll(60_000),
                (Ok(Response::Chunk(chunk)), 1) => {
                    chunk.data = vec![1; 1 + dice.roll(9000) as usize].into()
                }
                (Ok(Response::Answered(answer)), 0) => {
                    answer.answer = vec![1; dice.roll(9000) as usize].into()
                }
                (Ok(Response::Answered(answer)), 1) => answer.epoch.0 = dice.roll(3),
                (Ok(Response::Described(description)), 0) => description.tables.clear(),
                (Ok(Response::Described(description)), 1) => {
                    description.tables[0].identity.epoch.0 = dice.roll(3)
                }
                (response, 2) => *response = Ok(Response::End),
                _ => {
                    let blames = [
                        Blame::InvalidMessage,
                        Blame::Integrity,
                        Blame::Exhausted,
                        Blame::Unavailable,
                    ];
                    responses.truncate(at);
                    responses.push(Err(Error::new(blames[dice.roll(4) as usize], "no")));
                }
            }
            responses
        });
        let lookups: Vec<_> =
            (0..6).map(|k| world.session.lookup(Target::key(pair(k).0))).collect();
        world.run();
        for lookup in lookups {
            errors += usize::from(world.outcomes[&lookup].is_err());
        }
        failures += usize::from(world.failure.is_some());
    }
    assert!(errors > 300 && errors < 1800, "{errors} of 1800 lookups failed");
    assert!(failures > 50 && failures < 300, "{failures} of 300 sessions failed");
}

#[test]
fn a_layout_that_is_none_or_for_another_table_is_refused() {
    let peer = Peer::keyed(20);
    let truncated = peer.layout[..peer.layout.len() - 1].to_vec();
    let foreign = Peer::keyed(100).layout;
    for layout in [Vec::new(), vec![0xff; 4000], truncated, foreign] {
        let mut world = World::of(&peer.clone().with_layout(layout));
        world.run();
        assert_eq!(world.failed_with(), Blame::InvalidMessage);
        assert!(world.queries().is_empty());
    }
}

#[test]
fn every_byte_of_a_layout_may_be_wrong() {
    let peer = Peer::keyed(20);
    for at in 0..peer.layout.len() {
        let mut layout = peer.layout.clone();
        layout[at] ^= 0x41;
        let mut world = World::of(&peer.clone().with_layout(layout));
        // A wrong displacement or value gives a wrong answer, which the client cannot recognise. It
        // must not cause a panic.
        let _ = world.get(Target::key(pair(1).0));
        let _ = world.get(Target::key(pair(3).0));
    }
}

#[test]
fn the_choice_of_table_and_scheme_is_explained() {
    let (one, other) = (Peer::indexed(3, 3, 1), Peer::indexed(4, 4, 2));
    let both = |peer: &Peer| (peer.identity(), described(&peer.layout), peer.scheme().clone());
    let (a, b) = (both(&one), both(&other));
    let serving = |tables: &[(&str, &(TableIdentity, PartDescription, SchemeDescription))]| {
        let tables = tables.iter().map(|(name, (identity, layout, scheme))| {
            TableDescription::new(name, *identity, *layout, vec![scheme.clone()]).unwrap()
        });
        let mut peer = one.clone();
        peer.description = ServerDescription::new("a peer in memory", tables.collect()).unwrap();
        peer
    };
    let (two, none) = (serving(&[("first", &a), ("second", &b)]), serving(&[]));
    let failure = |peer: &Peer, table: Option<&str>| {
        let choice = SessionOptions { table: table.map(str::to_owned), ..options(1) };
        let mut world = World::with_options(vec![peer.clone()], choice);
        world.run();
        assert_eq!(world.failed_with(), Blame::ApiMisuse);
        world.failure.unwrap().message().to_owned()
    };
    assert_eq!(
        failure(&two, None),
        "the server has several tables: first, second; choose one by name"
    );
    assert_eq!(
        failure(&two, Some("third")),
        "the server has no table called \"third\"; it has: first, second"
    );
    assert_eq!(failure(&none, None), "the server serves no table");

    let mut choice = options(1);
    choice.table = Some("first".to_owned());
    choice.schemes = vec![SchemeId::SimplePir];
    let mut world = World::with_options(vec![two], choice);
    world.run();
    assert_eq!(world.session.table().unwrap().identity, one.identity());
}

/// A session that has pinned what `before` serves meets `after`.
fn meets(before: &Peer, after: &Peer, accept: bool) -> World {
    let mut world = World::of(before);
    world.run();
    assert_eq!(world.state_pins("server 0").len(), 1);
    let again = SessionOptions { accept_new_table: accept, ..options(1) };
    let mut next = World::after(world, vec![after.clone()], again);
    next.run();
    next
}

#[test]
fn a_table_that_is_not_the_pinned_one_is_refused_until_accepted() {
    let peer = Peer::indexed(20, 4, 1);
    assert!(meets(&peer, &peer, false).failure.is_none());
    let layout = RecordLayout::Index(IndexLayout::for_lengths(1, 3)).encode();
    let changed = [
        (
            peer.clone().with_identity(|identity| identity.id.0[3] ^= 1),
            "is another table than before",
        ),
        (
            peer.clone().with_identity(|identity| identity.epoch.0 = 2),
            "was updated from version 1 to version 2",
        ),
        (
            peer.clone().with_identity(|identity| identity.epoch.0 = 0),
            "went back from version 1 to version 0",
        ),
        (
            peer.clone().with_identity(|identity| identity.digest.0[0] ^= 1),
            "has other contents than before",
        ),
        (peer.clone().with_layout(layout), "has another record layout or hint than before"),
        (Peer::indexed(21, 4, 1), "has other contents than before"),
    ];
    for (after, what) in changed {
        let refused = meets(&peer, &after, false);
        assert_eq!(refused.failed_with(), Blame::Integrity);
        let message = refused.failure.as_ref().unwrap().message().to_owned();
        assert!(message.contains(what), "{message}");
        assert_eq!(refused.reason(), Some(Reason::TableReplaced), "{message}");
        assert_eq!(refused.kinds(), ["describe"]);

        let mut accepted = meets(&peer, &after, true);
        assert!(accepted.failure.is_none());
        // The layout of some of these does not fit the records. It only matters here that they are
        // asked for.
        let _ = accepted.get(Target::index(5));
        assert_eq!(accepted.queries().len(), 1);
        let pins = accepted.state_pins("server 0");
        assert_eq!(
            pins,
            [("table".to_owned(), pin_of(accepted.session.table().unwrap(), None, None))]
        );
    }
}
