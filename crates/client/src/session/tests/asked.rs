//! Hints that come in other ways than from the plain stream: from replies to requests that only one
//! of two servers may see, and from the table in another order.

use super::reserved::*;
use super::toy::{self, Flow, Kind};
use super::world::*;
use crate::session::*;
use crate::state::NextGeneration;
use privet_schemes::offline::OfflinePhase;
use privet_wire::{PartKind, SchemeDescription};
use std::collections::HashSet;

fn kind(flow: Flow) -> Kind {
    Kind { flow, ..Kind::default() }
}

fn asked_world() -> World {
    toy::world(&toy_peer_of(kind(Flow::Asked), 2, 20))
}

/// The requests for hints that were sent, each with its server.
fn requests(world: &World) -> Vec<(usize, Vec<u8>)> {
    let requests = world.sent.iter().filter_map(|(server, request)| match request {
        Request::Prepare(request) => Some((*server, request.request.to_vec())),
        _ => None,
    });
    requests.collect()
}

fn secret_of(request: &[u8]) -> &[u8] {
    &request[..16]
}

fn contains(bytes: &[u8], secret: &[u8]) -> bool {
    bytes.windows(secret.len()).any(|window| window == secret)
}

#[test]
fn hints_are_asked_for_reply_by_reply() {
    let mut world = asked_world();
    assert_eq!(world.found(Target::index(7)), expected(7));
    // 200 bytes in replies of 56.
    let asked = requests(&world);
    assert_eq!(asked.len(), 4);
    for (number, (server, request)) in asked.iter().enumerate() {
        assert_eq!((*server, toy::reply_number_of(request)), (1, number.to_le_bytes().to_vec()));
        assert_eq!(secret_of(request), secret_of(&asked[0].1));
    }
    for k in 0..60 {
        assert_eq!(world.found(Target::index(k * 3 % RECORDS)), expected(k * 3 % RECORDS));
    }
    assert_eq!(requests(&world).len(), 16, "and so are those of later generations");
    let progress: Vec<_> = world.events.iter().filter(|event| event.contains("Hint")).collect();
    assert!(progress.iter().any(|event| event.contains("done: 224, total: 224")), "{progress:?}");
}

/// Whatever happens to any message: no other server sees a request, and a repeat has the same
/// bytes.
#[test]
fn no_fault_makes_a_request_go_elsewhere_or_change() {
    let run = |fault: Option<(usize, Fate)>| {
        let mut world = asked_world();
        world.fate = Box::new(move |k, _| match fault {
            Some((at, fate)) if at == k => fate,
            _ => Fate::Arrives,
        });
        assert_eq!(world.found(Target::index(7)), expected(7), "{fault:?}");
        world
    };
    let messages = run(None).sent.len();
    for at in 0..messages {
        for fate in [Fate::Lost, Fate::Breaks, Fate::TurnedAway, Fate::Late(400_000), Fate::Twice] {
            let world = run(Some((at, fate)));
            let mut asked = requests(&world);
            assert!(asked.iter().all(|(server, _)| *server == 1));
            let secret = secret_of(&asked[0].1).to_vec();
            for (server, request) in &world.sent {
                if let (0, Request::Answer(request)) = (server, request) {
                    assert!(!contains(&request.query, &secret));
                }
            }
            asked.dedup();
            assert_eq!(asked.len(), 4, "{fate:?} at {at}");
        }
    }
}

#[test]
fn a_reply_may_take_long() {
    for (late, sent) in [(200_000, 4), (400_000, 5)] {
        let mut world = asked_world();
        let mut asked = 0;
        world.fate = Box::new(move |_, request| {
            let asks = matches!(request, Request::Prepare(_));
            asked += usize::from(asks);
            if asks && asked == 2 { Fate::Late(late) } else { Fate::Arrives }
        });
        world.found(Target::index(7));
        assert_eq!(requests(&world).len(), sent, "{late} ms");
    }
}

#[test]
fn asking_goes_on_where_an_earlier_process_ended() {
    let mut first = asked_world();
    let mut parts = toy::parts(1);
    parts.pace.checkpoint_interval = 1;
    first.session = Session::with_parts(options(2), Duration::ZERO, parts).unwrap();
    let mut asked = 0;
    first.fate = Box::new(move |_, request| {
        asked += usize::from(matches!(request, Request::Prepare(_)));
        if asked == 3 { Fate::Lost } else { Fate::Arrives }
    });
    while requests(&first).len() < 3 {
        assert!(first.step());
    }
    assert_eq!(kept(&mut first).next, NextGeneration::Partial { offset: 2 * 56 });
    let lost = requests(&first)[2].clone();

    let mut second = after(first);
    assert_eq!(second.found(Target::index(0)), expected(0));
    let asked = requests(&second);
    assert_eq!((asked.len(), &asked[0]), (2, &lost), "the very request that had no reply");
}

#[test]
fn replies_that_are_none_end_the_session_before_the_first_query() {
    type Lie = fn(&mut PrepareResponse);
    let lies: [(Lie, Blame); 5] = [
        (|reply| reply.table.0[0] ^= 1, Blame::PeerMisbehaved),
        (|reply| reply.epoch.0 += 1, Blame::PeerMisbehaved),
        (|reply| reply.parameter_digest[9] ^= 1, Blame::PeerMisbehaved),
        (|reply| reply.reply = Vec::new().into(), Blame::InvalidMessage),
        (|reply| reply.reply = vec![0; 57].into(), Blame::InvalidMessage),
    ];
    for (lie, blame) in lies {
        let mut world = asked_world();
        world.falsify = Box::new(move |_, mut responses| {
            if let Ok(Response::Prepared(reply)) = &mut responses[0] {
                lie(reply);
            }
            responses
        });
        world.run();
        assert_eq!(world.failed_with(), blame);
        assert!(world.failure.as_ref().unwrap().message().starts_with("the second server"));
        assert_eq!((requests(&world).len(), world.queries().len()), (1, 0));
    }
    let others: [fn() -> Response; 3] = [
        || Response::End,
        || Response::Chunk(FetchChunk { offset: 0, data: vec![1; 56].into() }),
        || Response::Described(ServerDescription::new("liar", Vec::new()).unwrap()),
    ];
    for other in others {
        let mut world = asked_world();
        world.falsify = Box::new(move |request, responses| match request {
            Request::Prepare(_) => vec![Ok(other())],
            _ => responses,
        });
        world.run();
        assert_eq!(world.failed_with(), Blame::PeerMisbehaved);
        assert!(world.queries().is_empty());
    }
}

#[test]
fn a_refused_request_in_the_background_costs_no_lookup() {
    let mut world = asked_world();
    world.found(Target::index(0));
    world.falsify = Box::new(|request, responses| match request {
        Request::Prepare(_) => vec![Err(Error::invalid_message("no"))],
        _ => responses,
    });
    for k in 1..20 {
        assert_eq!(world.found(Target::index(k)), expected(k));
    }
    assert_eq!(world.get(Target::index(0)).unwrap_err().blame(), Blame::Exhausted);
    let after_it = requests(&world);
    assert!(after_it[4..].iter().all(|asked| *asked == after_it[4]), "always the same one");
    world.true_responses();
    assert_eq!(world.found(Target::index(0)), expected(0));
}

#[test]
fn a_plan_that_asks_a_server_that_is_not_there_is_refused() {
    let peer = toy_peer_of(kind(Flow::Asked), 2, 20);
    let (identity, mut plan) = (peer.identity(), peer.scheme().plan.clone());
    let OfflinePhase::Ask { role, .. } = &mut plan.offline else { panic!("it asks") };
    *role = Role(2);
    let scheme = SchemeDescription::new(plan, &identity, None).unwrap();
    let mut world = toy::world(&peer.announcing(identity, scheme));
    world.run();
    assert_eq!(world.failed_with(), Blame::ApiMisuse);
    assert!(requests(&world).is_empty());
}

#[test]
fn a_table_in_another_order_is_streamed_as_the_part_that_it_is() {
    let mut world = toy::world(&toy_peer_of(kind(Flow::Backwards), 1, 8));
    for k in 0..30 {
        assert_eq!(world.found(Target::index(k)), expected(k));
    }
    let parts = world.sent.iter().filter_map(|(_, request)| match request {
        Request::Fetch(request) => Some(request.part),
        _ => None,
    });
    let parts: Vec<_> = parts.collect();
    assert!(parts.len() > 6 && parts[1..].iter().all(|part| *part == PartKind::Hint), "{parts:?}");

    let mut peer = toy_peer_of(kind(Flow::Backwards), 1, 8);
    peer.hint.swap(3, 5);
    let mut world = toy::world(&peer);
    world.run();
    assert_eq!(world.failed_with(), Blame::Integrity);
    assert_eq!(kept(&mut world).next, NextGeneration::None);
}

#[test]
fn hints_are_not_used_with_several_servers_whose_addresses_are_not_known() {
    for flow in [Flow::Asked, Flow::Streamed] {
        let options = SessionOptions { addresses_digest: None, ..options(2) };
        let peers = vec![toy_peer_of(kind(flow), 2, 20); 2];
        let mut world = World::with_parts(peers, options, toy::parts(1));
        assert!(world.get(Target::index(7)).is_err());
        assert_eq!(world.failed_with(), Blame::ApiMisuse);
        assert!(requests(&world).is_empty() && world.keeper.hints.is_none());
    }
}

/// Requests are erased when the last copy is dropped; a copy byte for byte would stay.
#[test]
fn copies_of_a_secret_message_share_its_bytes() {
    let mut world = asked_world();
    world.run();
    let before = world.sent.len();
    // Each message is sent twice; one goes to each server.
    world.fate =
        Box::new(move |at, _| if at < before + 2 { Fate::TurnedAway } else { Fate::Arrives });
    world.found(Target::index(7));
    let queries = world.sent[before..].iter().map(|(server, request)| match request {
        Request::Answer(request) => (*server, request.query.as_ptr()),
        other => panic!("{other:?}"),
    });
    let queries: Vec<_> = queries.collect();
    assert_eq!(queries.len(), 4);
    assert_eq!(queries.iter().collect::<HashSet<_>>().len(), 2);

    let mut world = asked_world();
    world.fate = Box::new(|_, request| match request {
        Request::Prepare(_) => Fate::TurnedAway,
        _ => Fate::Arrives,
    });
    while requests(&world).len() < 3 {
        assert!(world.step());
    }
    let places = world.sent.iter().filter_map(|(_, request)| match request {
        Request::Prepare(request) => {
            let message = privet_wire::proto::PrepareRequest::from(request.clone());
            assert_eq!(message.request.as_ptr(), request.request.as_ptr(), "also as it is sent");
            Some(request.request.as_ptr())
        }
        _ => None,
    });
    assert_eq!(places.collect::<HashSet<_>>().len(), 1);
}

#[test]
fn requests_do_not_print() {
    let mut world = asked_world();
    world.found(Target::index(0));
    let (_, request) = requests(&world).remove(0);
    let bytes = format!("{:?}", secret_of(&request));
    let printed = format!("{:?}", world.sent);
    assert!(!printed.contains(bytes.trim_matches(['[', ']'])), "{printed}");
}
