//! Clients over a second transport, whose servers are in memory.

use super::*;
use crate::client::{Client, begin};
use crate::conductor::ConductorOptions;
use crate::exchange::{Call, Messages};
use crate::session::tests::peer::{Peer, pair};
use crate::session::{Clock, Patience, Request, Response, SessionOptions};
use crate::state::MemoryState;
use privet_core::{Blame, Error};
use privet_kernels::Kernels;
use privet_schemes::SchemeId;
use privet_wire::prost::Message;
use privet_wire::prost::bytes::Bytes;
use privet_wire::{DescribeRequest, proto};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::vec;

/// What a way makes of the responses.
type Manner = fn(Vec<Result<Bytes>>) -> Vec<Result<Bytes>>;

/// A server, and what a test sees of the way to it.
struct InMemory {
    peer: Peer,
    /// `None`: nothing ever comes in return to a query.
    manner: Option<Manner>,
    queries: AtomicUsize,
    under_way: AtomicUsize,
}

impl InMemory {
    fn truthful(peer: Peer) -> Self {
        let (queries, under_way) = Default::default();
        Self { peer, manner: Some(|responses| responses), queries, under_way }
    }

    fn responses(&self, path: &str, message: Bytes) -> Vec<Result<Bytes>> {
        fn read<M: Message + Default, R: TryFrom<M, Error = Error>>(message: Bytes) -> R {
            M::decode(message).unwrap().try_into().unwrap()
        }
        let peer = &self.peer;
        let responses = match path.rsplit('/').next().unwrap() {
            "Describe" => peer.respond(&Request::Describe(DescribeRequest::default())),
            "Fetch" => peer.respond(&Request::Fetch(read::<proto::FetchRequest, _>(message))),
            _ => {
                self.queries.fetch_add(1, Ordering::SeqCst);
                let answered = peer.answered(&read::<proto::AnswerRequest, _>(message));
                vec![answered.map(Response::Answered)]
            }
        };
        let sent = responses.into_iter().filter_map(|response| match response.unwrap() {
            Response::Described(it) => Some(proto::DescribeResponse::from(it).encode_to_vec()),
            Response::Chunk(it) => Some(proto::FetchChunk::from(it).encode_to_vec()),
            Response::Answered(it) => Some(proto::AnswerResponse::from(it).encode_to_vec()),
            Response::End | Response::Prepared(_) => None,
        });
        sent.map(|message| Ok(message.into())).collect()
    }
}

impl Transport for InMemory {
    type Messages = vec::IntoIter<Result<Bytes>>;

    fn address(&self) -> &str {
        "memory"
    }

    async fn call(&self, call: Call) -> Result<Self::Messages> {
        struct UnderWay<'a>(&'a AtomicUsize);
        impl Drop for UnderWay<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        self.under_way.fetch_add(1, Ordering::SeqCst);
        let _under_way = UnderWay(&self.under_way);
        let responses = self.responses(call.path, call.message);
        assert!(responses.iter().flatten().all(|response| response.len() <= call.limit));
        match self.manner {
            None if call.path.ends_with("Answer") => std::future::pending().await,
            None => Ok(responses.into_iter()),
            Some(manner) => Ok(manner(responses).into_iter()),
        }
    }
}

impl Messages for vec::IntoIter<Result<Bytes>> {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        Iterator::next(self).transpose()
    }
}

fn connect(servers: &[Arc<InMemory>], answer: Duration) -> Result<Client> {
    let transports = servers.to_vec();
    let (opening, opened) = begin(
        |_| {},
        move |_| {
            let started = Instant::now();
            let clock = Clock::new(move || started.elapsed()).resting(std::thread::sleep);
            let mut session = SessionOptions::new(transports.len(), Kernels::detect(), clock);
            let give_up_after = answer;
            session.patience = Patience { answer, give_up_after, ..Patience::default() };
            let options = ConductorOptions {
                session,
                addresses: (0..transports.len()).map(|number| format!("memory {number}")).collect(),
                busy_patience: Duration::ZERO,
                max_time: None,
            };
            let (state, desk) = (Box::new(MemoryState::default()), OtherThread::default());
            Ok((Conductor::new(options, state, desk, started.elapsed())?, transports, started))
        },
    )?;
    opening.opened(opened.blocking_recv())
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn any_transport_carries_a_client() {
    for scheme in [SchemeId::SimplePir, SchemeId::Dpf, SchemeId::DummySubsets] {
        let peer = Peer::keyed_by(scheme, 40);
        let count = peer.scheme().plan.servers;
        let servers: Vec<_> =
            (0..count).map(|_| Arc::new(InMemory::truthful(peer.clone()))).collect();
        let client = connect(&servers, LONG).unwrap();
        let keys = [0, 3, 39, 40];
        let found = client.get_many_blocking(&keys.map(|k| Target::key(pair(k).0)));
        for (k, found) in keys.into_iter().zip(found) {
            let found = found.unwrap().map(|found| found.to_vec());
            assert_eq!(found, (k < 40).then_some(pair(k).1), "{scheme}");
        }
        client.finish_blocking().unwrap();
        let stats = client.close_blocking();
        assert!(stats.lookups == 4 && stats.lookup.down > 0, "{scheme}");
        for server in servers {
            assert!(server.queries.load(Ordering::SeqCst) >= 4, "{scheme}");
            assert_eq!(server.under_way.load(Ordering::SeqCst), 0);
        }
    }
}

/// Nobody waits for the answer any more, so the transport does not either.
#[test]
fn what_is_given_up_ends_on_its_way() {
    let truthful = InMemory::truthful(Peer::keyed_by(SchemeId::SimplePir, 40));
    let server = Arc::new(InMemory { manner: None, ..truthful });
    let client = connect(std::slice::from_ref(&server), Duration::from_millis(50)).unwrap();
    let error = client.get_target_blocking(Target::key(pair(1).0)).unwrap_err();
    assert_eq!(error.blame(), Blame::Unavailable, "{error}");
    let begun = Instant::now();
    while server.under_way.load(Ordering::SeqCst) > 0 {
        assert!(begun.elapsed() < LONG, "it is still waited for");
        std::thread::yield_now();
    }
    // And so does all that is under way when the client ends.
    let client = connect(std::slice::from_ref(&server), LONG).unwrap();
    drop(client.begin(Target::key(pair(1).0)));
    while server.under_way.load(Ordering::SeqCst) == 0 {
        assert!(begun.elapsed() < LONG, "nothing leaves");
        std::thread::yield_now();
    }
    client.close_blocking();
    assert_eq!(server.under_way.load(Ordering::SeqCst), 0);
}

#[test]
fn what_cannot_be_a_response_is_told_with_the_address_that_it_came_from() {
    let manners: [Manner; 3] = [
        |_| vec![Ok(Bytes::new())],
        |responses| [responses.clone(), responses].concat(),
        |_| Vec::new(),
    ];
    for manner in manners.map(Some) {
        let truthful = InMemory::truthful(Peer::keyed_by(SchemeId::SimplePir, 40));
        let error = connect(&[Arc::new(InMemory { manner, ..truthful })], LONG).err().unwrap();
        assert!(matches!(error.blame(), Blame::InvalidMessage | Blame::PeerMisbehaved), "{error}");
        assert!(error.message().starts_with("memory: "), "{error}");
    }
}
