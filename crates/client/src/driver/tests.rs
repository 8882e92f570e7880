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
use privet_wire::proto;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::vec;

/// A server, and what a test sees of the way to it.
struct InMemory {
    peer: Peer,
    manner: Manner,
    calls: Mutex<Vec<&'static str>>,
    under_way: Arc<AtomicUsize>,
}

#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Truthful,
    /// Sends messages with nothing in them.
    Empty,
    /// Sends each message twice.
    SaysAllTwice,
    /// Sends no message.
    SaysNothing,
    /// Answers no query, and never says so.
    NeverAnswers,
}

impl InMemory {
    fn new(peer: Peer, manner: Manner) -> Arc<Self> {
        let (calls, under_way) = (Mutex::default(), Arc::default());
        Arc::new(Self { peer, manner, calls, under_way })
    }

    fn responses(&self, path: &str, message: Bytes) -> Vec<Result<Bytes>> {
        fn read<M: Message + Default, R: TryFrom<M, Error = Error>>(message: Bytes) -> R {
            M::decode(message).unwrap().try_into().unwrap()
        }
        let responses = match path.rsplit('/').next().unwrap() {
            "Describe" => {
                self.peer.respond(&Request::Describe(read::<proto::DescribeRequest, _>(message)))
            }
            "Fetch" => self.peer.respond(&Request::Fetch(read::<proto::FetchRequest, _>(message))),
            "Prepare" => {
                self.peer.respond(&Request::Prepare(read::<proto::PrepareRequest, _>(message)))
            }
            _ => {
                let answered = self.peer.answered(&read::<proto::AnswerRequest, _>(message));
                vec![answered.map(Response::Answered)]
            }
        };
        let encoded = |response: Response| match response {
            Response::Described(response) => {
                Some(proto::DescribeResponse::from(response).encode_to_vec())
            }
            Response::Chunk(response) => Some(proto::FetchChunk::from(response).encode_to_vec()),
            Response::End => None,
            Response::Prepared(response) => {
                Some(proto::PrepareResponse::from(response).encode_to_vec())
            }
            Response::Answered(response) => {
                Some(proto::AnswerResponse::from(response).encode_to_vec())
            }
        };
        let sent = responses.into_iter().filter_map(|response| response.map(encoded).transpose());
        sent.map(|message| message.map(Bytes::from)).collect()
    }
}

impl Transport for InMemory {
    type Messages = vec::IntoIter<Result<Bytes>>;

    fn address(&self) -> &str {
        "memory"
    }

    async fn call(&self, call: Call) -> Result<Self::Messages> {
        struct UnderWay(Arc<AtomicUsize>);
        impl Drop for UnderWay {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        self.under_way.fetch_add(1, Ordering::SeqCst);
        let _under_way = UnderWay(Arc::clone(&self.under_way));
        self.calls.lock().unwrap().push(call.path);
        let responses = self.responses(call.path, call.message);
        for response in responses.iter().flatten() {
            assert!(response.len() <= call.limit, "{}", call.path);
        }
        Ok(match self.manner {
            Manner::NeverAnswers if call.path.ends_with("Answer") => std::future::pending().await,
            Manner::Truthful | Manner::NeverAnswers => responses,
            Manner::Empty => vec![Ok(Bytes::new())],
            Manner::SaysAllTwice => [responses.clone(), responses].concat(),
            Manner::SaysNothing => Vec::new(),
        }
        .into_iter())
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
        let count = peer.scheme().plan.servers.into();
        let servers: Vec<_> =
            (0..count).map(|_| InMemory::new(peer.clone(), Manner::Truthful)).collect();
        let client = connect(&servers, LONG).unwrap();
        for k in [0, 3, 39, 40] {
            let (key, value) = pair(k);
            let found = client.get_target_blocking(Target::key(&key)).unwrap();
            assert_eq!(found.map(|found| found.to_vec()), (k < 40).then_some(value), "{scheme}");
        }
        client.finish_blocking().unwrap();
        let stats = client.close_blocking();
        assert!(stats.lookups == 4 && stats.lookup.down > 0, "{scheme}");
        for server in servers {
            let calls = server.calls.lock().unwrap();
            assert!(calls.iter().filter(|path| path.ends_with("Answer")).count() >= 4, "{scheme}");
            assert_eq!(server.under_way.load(Ordering::SeqCst), 0);
        }
    }
}

/// Nobody waits for the answer any more, so the transport does not either.
#[test]
fn what_is_given_up_ends_on_its_way() {
    let server = InMemory::new(Peer::keyed_by(SchemeId::SimplePir, 40), Manner::NeverAnswers);
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
    let peer = || Peer::keyed_by(SchemeId::SimplePir, 40);
    for manner in [Manner::Empty, Manner::SaysAllTwice, Manner::SaysNothing] {
        let error = connect(&[InMemory::new(peer(), manner)], LONG).err().unwrap();
        assert!(matches!(error.blame(), Blame::InvalidMessage | Blame::PeerMisbehaved), "{error}");
        assert!(error.message().starts_with("memory: "), "{error}");
    }
}
