//! A scheme of the other kind: two servers, single-use hints, a journal before every query. It hides nothing; it has the shape of one that does.

use super::world::*;
use crate::session::*;
use privet_core::{RecordIndex, SecretRng};
use privet_schemes::contract::Reserved;
use privet_schemes::registry::Recovered;
use privet_schemes::reservation::{Pending, Reservation, Sendable};

const RECORD_LEN: usize = 4;

struct Toy {
    plan: SchemePlan,
    next_hint: u8,
}

impl ErasedClient for Toy {
    fn plan(&self) -> &SchemePlan {
        &self.plan
    }

    fn prepare(&mut self, index: &RecordIndex, _: &mut SecretRng) -> Result<Prepared> {
        if self.next_hint == 20 {
            return Err(Error::exhausted("no hint is left"));
        }
        let queries = (0..2).map(|role| vec![self.next_hint, role, index.expose() as u8]).collect();
        let reserved = Reserved { change: vec![self.next_hint], queries, pending: () };
        self.next_hint += 1;
        Ok(Prepared::Reserved(Reservation::new(reserved, Vec::clone)))
    }

    fn recover(&mut self, _: Pending, answers: &[&[u8]]) -> Result<Recovered> {
        let record = answers[0].iter().zip(answers[1]).map(|(a, b)| a ^ b).collect();
        Ok(Recovered { record: Zeroizing::new(record), completion: Some(answers[0].to_vec()) })
    }
}

fn start_toy(
    plan: SchemePlan,
    _: &TableIdentity,
    _: Arc<dyn HintSource>,
    _: Kernels,
) -> Result<Box<dyn ErasedClient>> {
    Ok(Box::new(Toy { plan, next_hint: 0 }))
}

fn toy_peer() -> Peer {
    let peer = Peer::indexed(50, RECORD_LEN as u64, 1);
    let plan = SchemePlan {
        servers: 2,
        query_len: 3,
        answer_len: RECORD_LEN,
        offline: OfflinePhase::Nothing,
        ..peer.scheme().plan.clone()
    };
    peer.served_by(plan, |query| Ok(vec![query[2] * (query[1] + 1); RECORD_LEN]))
}

fn toy_world(peers: Vec<Peer>) -> World {
    World::with_session(peers, Session::with_client(options(2), Duration::ZERO, start_toy).unwrap())
}

/// What [`Toy`] recovers for an index: what the servers' answers, once and twice the index, come to.
fn expected(index: u8) -> Vec<u8> {
    vec![index ^ (index * 2); RECORD_LEN]
}

use zeroize::Zeroizing;

#[test]
fn no_query_is_sent_before_its_record_is_durable() {
    let mut world = toy_world(vec![toy_peer(), toy_peer()]);
    for index in [7, 7, 9] {
        assert_eq!(world.found(Target::index(index)), expected(index as u8));
    }
    assert_eq!(world.journal.len(), 3);
    // Each lookup is completed in turn, after its own record and before the next.
    let completions =
        [(1, vec![7; RECORD_LEN]), (2, vec![7; RECORD_LEN]), (3, vec![9; RECORD_LEN])];
    assert_eq!(world.completions, completions);
    for (sent_before, record) in &world.journal {
        let (_, sendable) = Sendable::from_journal(record).unwrap();
        let after: Vec<_> = world.sent[*sent_before..].iter().take(2).collect();
        for (server, query) in sendable.queries().iter().enumerate() {
            let Request::Answer(request) = &after[server].1 else { panic!("not a query") };
            assert_eq!(
                (after[server].0, request.role, &request.query[..]),
                (server, Role(server as u8), &query[..])
            );
            let earlier = &world.sent[..*sent_before];
            assert!(!earlier.iter().any(|(_, request)| matches!(request, Request::Answer(request) if request.query == query[..])));
        }
    }
}

#[test]
fn a_record_that_may_not_be_durable_is_never_sent() {
    let mut world = toy_world(vec![toy_peer(), toy_peer()]);
    world.journal_breaks = true;
    assert_eq!(world.get(Target::index(7)).unwrap_err().blame(), Blame::Unavailable);
    assert!(world.queries().is_empty());
    world.journal_breaks = false;
    assert_eq!(world.found(Target::index(7)), expected(7));
    let queries: Vec<_> = world.queries();
    assert_eq!(queries.len(), 2);
}

#[test]
fn hints_that_run_out_are_an_error_and_no_query() {
    let mut world = toy_world(vec![toy_peer(), toy_peer()]);
    for index in 0..20 {
        world.found(Target::index(index));
    }
    assert_eq!(world.get(Target::index(0)).unwrap_err().blame(), Blame::Exhausted);
    assert_eq!(world.queries().len(), 40);
}

#[test]
fn retries_to_either_server_repeat_the_committed_bytes() {
    for seed in 0..40 {
        let mut world = toy_world(vec![toy_peer(), toy_peer()]);
        let mut dice = Dice(seed);
        world.fate = Box::new(move |_, _| match dice.roll(4) {
            0 => Fate::Lost,
            1 => Fate::Breaks,
            2 => Fate::Twice,
            _ => Fate::Arrives,
        });
        let lookups: Vec<_> =
            (0..10).map(|index| world.session.lookup(Target::index(index))).collect();
        world.run();
        for (index, lookup) in lookups.iter().enumerate() {
            let value = world.outcomes[lookup].as_ref().unwrap().as_ref().unwrap().to_vec();
            assert_eq!(value, expected(index as u8));
        }
        let committed = world.journal.iter().flat_map(|(_, record)| {
            let (_, sendable) = Sendable::from_journal(record).unwrap();
            sendable.queries().to_vec()
        });
        let committed: std::collections::HashSet<_> = committed.collect();
        let sent = world.sent.iter().filter_map(|(_, request)| match request {
            Request::Answer(request) => Some(request.query.to_vec()),
            _ => None,
        });
        assert_eq!(sent.collect::<std::collections::HashSet<_>>(), committed);
        assert_eq!(committed.len(), 20);
    }
}

#[test]
fn servers_that_differ_get_no_query() {
    let honest = toy_peer();
    let changes: [fn(&mut TableIdentity); 3] = [
        |identity| identity.epoch.0 += 1,
        |identity| identity.digest.0[0] ^= 1,
        |identity| identity.id.0[0] ^= 1,
    ];
    for change in changes {
        let mut world = toy_world(vec![honest.clone(), honest.clone().with_identity(change)]);
        world.run();
        assert_eq!(world.failed_with(), Blame::Integrity);
        assert_eq!(world.trace().iter().map(|sent| sent.1).collect::<Vec<_>>(), ["describe"; 2]);
    }
}

#[test]
fn a_lookup_fails_only_after_both_servers_had_their_query() {
    let mut world = toy_world(vec![toy_peer(), toy_peer()]);
    world.found(Target::index(1));
    world.falsify = Box::new(|request, mut responses| {
        if let (Request::Answer(request), Ok(Response::Answered(answer))) =
            (request, &mut responses[0])
            && request.role == Role(0)
        {
            answer.epoch.0 += 1;
        }
        responses
    });
    let before = world.sent.len();
    assert_eq!(world.get(Target::index(2)).unwrap_err().blame(), Blame::PeerMisbehaved);
    assert_eq!(
        world.trace()[before..].iter().map(|sent| (sent.0, sent.1)).collect::<Vec<_>>(),
        [(0, "answer"), (1, "answer")]
    );
}
