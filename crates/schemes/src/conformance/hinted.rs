//! What every scheme with single-use hints has to satisfy.

use super::messages;
use crate::contract::{
    AnswerOf, Answerer, HintedClient, Message, Offline, Parameters, Preparation, QueryMessage,
    QueryOf, Record, ReservationId, Reserved, Role, Scheme, Updatable,
};
use crate::offline::StreamConsumer as _;
use crate::planted::set_queries_per_generation;
use crate::test_tables::{Sequence, identity, public_bytes, query_through_its_encoding, sequences};
use privet_core::{Blame, RecordIndex, Result, SecretRng, TableDelta, TableShape, TableView};
use privet_kernels::{Arm, Kernels};
use proptest::prelude::*;
use std::collections::BTreeMap;
use zeroize::Zeroizing;

type Bytes = Zeroizing<Vec<u8>>;

/// A scheme, as the suite tests it.
pub(crate) trait Hinted: Sized + 'static {
    type Parameters: Parameters + Clone;
    type Scheme: Offline<Parameters = Self::Parameters>;
    type Server: Answerer<Scheme = Self::Scheme>;
    type Client: Updatable<Scheme = Self::Scheme>;
    type Preparation: Preparation<Scheme = Self::Scheme>;
    /// All that there is of a client's state beside what every client tells of it.
    type State: PartialEq;

    /// Whether a record is told as soon as all before it are answered, and never before.
    const TELLS_IN_ORDER: bool = false;
    /// Whether a lookup in a table of any size finds a hint. (If not, all but e^-20 do.)
    const RUNS_OUT: bool = true;
    /// Whom an edit in the journal blames that comes while a lookup is open.
    const EDIT_WHILE_OPEN: Blame = Blame::Corrupted;

    /// The parameters of a table that is cut into pieces of so many records; by default, of as
    /// many as the scheme chooses.
    fn parameters(shape: TableShape, cut: Option<u64>) -> Self::Parameters;

    /// What clients know of the parameters.
    fn clients(parameters: &Self::Parameters) -> Self::Parameters {
        parameters.clone()
    }

    fn shape(parameters: &Self::Parameters) -> TableShape;

    /// Records of a piece, and how many there can be.
    fn cut(parameters: &Self::Parameters) -> u64;
    fn cuts() -> BoxedStrategy<u64>;

    fn server(parameters: &Self::Parameters, table: TableView<'_>) -> Self::Server;

    /// What clients stream, if they do.
    fn stream(_world: &World<Self>) -> Option<Vec<u8>> {
        None
    }

    /// A server's reply to what a preparation asks it next, if it asks.
    fn reply(_world: &World<Self>, _preparation: &mut Self::Preparation) -> Vec<u8> {
        unreachable!("the table is streamed")
    }

    /// Tables whose preparation is interrupted.
    fn checkpointed() -> Vec<(u64, u64, Option<u64>)> {
        [(1, 1), (300, 7), (5_000, 32), (1_200, 300), (20_000, 64)]
            .map(|(records, record_len)| (records, record_len, None))
            .into()
    }

    fn state(client: &Self::Client) -> Self::State;

    /// Whether the hints are what the table says.
    fn check(_world: &World<Self>, _client: &Self::Client) {}

    /// The state as the next generation, if hints never run out.
    fn condense(_client: &Self::Client) -> Option<Result<Bytes>> {
        None
    }

    /// Journal records that look like `good`, the next reservation's, and are wrong in one place.
    /// `used` is that of the reservation before.
    fn wrong_changes(world: &World<Self>, used: &[u8], good: &[u8]) -> Vec<Vec<u8>>;
}

/// A table, its server in all roles, and what a client draws from.
pub(crate) struct World<S: Hinted> {
    pub(crate) parameters: S::Parameters,
    pub(crate) records: Vec<u8>,
    pub(crate) server: S::Server,
    pub(crate) rng: SecretRng,
}

impl<S: Hinted> World<S> {
    pub(crate) fn new(records: u64, record_len: u64) -> Self {
        Self::with(S::parameters(TableShape::new(records, record_len).unwrap(), None))
    }

    pub(crate) fn cut(records: u64, record_len: u64, cut: u64) -> Self {
        Self::with(S::parameters(TableShape::new(records, record_len).unwrap(), Some(cut)))
    }

    pub(crate) fn with(parameters: S::Parameters) -> Self {
        let records = public_bytes("a table", S::shape(&parameters).bytes() as usize);
        Self::of(parameters, records)
    }

    pub(crate) fn of(parameters: S::Parameters, records: Vec<u8>) -> Self {
        let server = Self::serve(&parameters, &records);
        Self { parameters, records, server, rng: SecretRng::from_fixed_seed([3; 32]) }
    }

    pub(crate) fn serve(parameters: &S::Parameters, records: &[u8]) -> S::Server {
        let shape = S::shape(parameters);
        let identity = identity(shape.records(), shape.record_len());
        S::server(parameters, TableView::new(identity, records).unwrap())
    }

    fn digest(&self) -> [u8; 32] {
        S::stream(self).map_or([0; 32], |stream| *blake3::hash(&stream).as_bytes())
    }

    pub(crate) fn preparation(&mut self) -> S::Preparation {
        let mut key = [0; 32];
        self.rng.fill(&mut key);
        self.preparation_with(key, Kernels::detect())
    }

    pub(crate) fn preparation_with(&self, seed: [u8; 32], kernels: Kernels) -> S::Preparation {
        let (parameters, rng) =
            (S::clients(&self.parameters), &mut SecretRng::from_fixed_seed(seed));
        S::Preparation::begin(parameters, self.digest(), rng, kernels).unwrap()
    }

    pub(crate) fn resume(&self, checkpoint: &[u8]) -> Result<S::Preparation> {
        let (digest, kernels) = (self.digest(), Kernels::detect());
        S::Preparation::resume(S::clients(&self.parameters), digest, checkpoint, kernels)
    }

    /// How many bytes a preparation takes in.
    fn offline_len(&self) -> u64 {
        S::Scheme::offline_phase(&self.parameters).len()
    }

    /// Brings a preparation what it wants next: `piece` bytes of the stream, or one reply.
    fn feed(&self, preparation: &mut S::Preparation, piece: usize) {
        let offset = preparation.next_offset();
        let bytes = match S::stream(self) {
            Some(stream) => {
                let start = offset as usize;
                stream[start..(start + piece).min(stream.len())].to_vec()
            }
            None => S::reply(self, preparation),
        };
        preparation.absorb(offset, &bytes).unwrap();
    }

    /// What comes of a preparation that gets all it wants.
    pub(crate) fn prepared(&self, preparation: &mut S::Preparation, piece: usize) -> Bytes {
        while preparation.next_offset() < self.offline_len() {
            self.feed(preparation, piece);
        }
        preparation.finish().unwrap();
        preparation.generation().unwrap()
    }

    pub(crate) fn generation(&mut self) -> Bytes {
        let mut preparation = self.preparation();
        self.prepared(&mut preparation, 1 << 16)
    }

    pub(crate) fn try_load(&self, generation: &[u8]) -> Result<S::Client> {
        let generation = Zeroizing::new(generation.to_vec());
        S::Client::load(S::clients(&self.parameters), generation, Kernels::detect())
    }

    pub(crate) fn load(&self, generation: &[u8]) -> S::Client {
        self.try_load(generation).unwrap()
    }

    pub(crate) fn client(&mut self) -> S::Client {
        let generation = self.generation();
        self.load(&generation)
    }

    pub(crate) fn indices(&mut self, sequence: Sequence, count: u64) -> Vec<u64> {
        let records = S::shape(&self.parameters).records();
        sequence.indices(records, S::cut(&self.parameters), count, &mut self.rng)
    }

    pub(crate) fn index(&self, index: u64) -> RecordIndex {
        RecordIndex::new(index, S::shape(&self.parameters)).unwrap()
    }

    pub(crate) fn record(&self, index: u64) -> &[u8] {
        let len = S::shape(&self.parameters).record_len() as usize;
        &self.records[index as usize * len..][..len]
    }

    /// Reserves, and applies the change.
    pub(crate) fn reserve(
        &mut self,
        client: &mut S::Client,
        index: u64,
    ) -> Result<Reserved<QueryOf<S::Server>>> {
        let reserved = client.reserve(&self.index(index), &mut self.rng)?;
        client.apply(&reserved.change)?;
        Ok(reserved)
    }

    /// One answer of each server, over the wire and back.
    pub(crate) fn answers(&self, queries: &[QueryOf<S::Server>]) -> Vec<AnswerOf<S::Server>> {
        assert_eq!(queries.len(), S::Scheme::servers(&self.parameters));
        let answer = |(role, query): (u8, &QueryOf<S::Server>)| {
            let query = query_through_its_encoding(&self.parameters, Role(role), query);
            let answer = self.server.answer(Role(role), &[query]).remove(0).encode();
            assert_eq!(answer.len(), AnswerOf::<S::Server>::encoded_len(&self.parameters));
            AnswerOf::<S::Server>::decode(&self.parameters, &answer).unwrap()
        };
        (0..).zip(queries).map(answer).collect()
    }

    /// Settles and applies; returns the change.
    pub(crate) fn settle(
        &self,
        client: &mut S::Client,
        reserved: &Reserved<QueryOf<S::Server>>,
    ) -> Bytes {
        let change = client.settle(reserved.id, &self.answers(&reserved.queries)).unwrap();
        client.apply(&change).unwrap();
        change
    }

    /// Settles, and takes the record if it can be told.
    pub(crate) fn tell(
        &self,
        client: &mut S::Client,
        reserved: &Reserved<QueryOf<S::Server>>,
    ) -> Option<Result<Record>> {
        self.settle(client, reserved);
        client.take_record(reserved.id)
    }

    /// One whole lookup.
    pub(crate) fn get(&mut self, client: &mut S::Client, index: u64) -> Result<Record> {
        let reserved = self.reserve(client, index)?;
        self.tell(client, &reserved).expect("nothing else is under way")
    }

    fn assert_right(&self, record: Result<Record>, index: u64) {
        match record {
            Ok(record) => assert_eq!(*record, self.record(index), "record {index}"),
            Err(error) => panic!("record {index}: {error}"),
        }
    }

    /// Some edits, also several of one record, and the table that has seen them.
    pub(crate) fn edit(&mut self, count: u64) -> TableDelta {
        let shape = S::shape(&self.parameters);
        let len = shape.record_len() as usize;
        let mut edits: Vec<(u64, Vec<u8>)> = Vec::new();
        for _ in 0..count {
            let index = match edits.last() {
                Some((last, _)) if self.rng.below(3) == 0 => *last,
                _ => self.rng.below(shape.records()),
            };
            let mut difference = vec![0; len];
            self.rng.fill(&mut difference);
            let record = &mut self.records[index as usize * len..][..len];
            record.iter_mut().zip(&difference).for_each(|(byte, change)| *byte ^= change);
            edits.push((index, difference));
        }
        self.server = Self::serve(&self.parameters, &self.records);
        TableDelta::new(shape, edits).unwrap()
    }
}

fn encoded<P, Q: QueryMessage<P>>(queries: &[Q]) -> Vec<Vec<u8>> {
    queries.iter().map(QueryMessage::encode_query).collect()
}

/// All that there is of a client's state.
type Whole<S> = (<S as Hinted>::State, Vec<ReservationId>, crate::contract::Supply);

fn whole<S: Hinted>(client: &S::Client) -> Whole<S> {
    (S::state(client), client.open(), client.supply())
}

pub(crate) fn any_table_any_sequence<S: Hinted>() {
    let tables = prop_oneof![
        (1u64..=5_000, 1u64..=300, Just(None)),
        (1u64..=20, 1u64..=20, Just(None)),
        (1u64..=3_000, 1u64..=40, S::cuts().prop_map(Some)),
    ];
    let look_up = |(records, record_len, cut), sequence, seed| {
        let shape = TableShape::new(records, record_len).unwrap();
        let mut world = World::<S>::with(S::parameters(shape, cut));
        world.rng = SecretRng::from_fixed_seed([seed; 32]);
        let mut client = world.client();
        let count = client.supply().total.min(40);
        for index in world.indices(sequence, count) {
            let record = world.get(&mut client, index);
            world.assert_right(record, index);
        }
        S::check(&world, &client);
    };
    for once_failed in [(1, 1, Some(2)), (991, 3, Some(2)), (3, 73, None)] {
        look_up(once_failed, Sequence::Random, 0);
    }
    let config = ProptestConfig::with_cases(80);
    proptest!(config, |(table in tables, sequence in sequences(), seed: u8)| {
        look_up(table, sequence, seed);
    });
}

/// Every query of a generation finds its record, whatever is asked, and then there are no more.
/// Hints that never run out are written down then, and not before.
pub(crate) fn a_generation_serves_its_queries_and_then_says_so<S: Hinted>() {
    for (records, sequence) in Sequence::ALL
        .map(|sequence| (900, sequence))
        .into_iter()
        .chain([1, 2, 7, 12].map(|records| (records, Sequence::Random)))
    {
        let mut world = World::<S>::new(records, 3);
        let mut client = world.client();
        let refused = |client: &S::Client| match S::condense(client) {
            Some(result) => assert_eq!(result.unwrap_err().blame(), Blame::ApiMisuse),
            None => assert!(S::RUNS_OUT),
        };
        for round in 0..3 {
            let total = client.supply().total;
            assert!(total > 0);
            for (used, index) in (0..).zip(world.indices(sequence, total)) {
                assert_eq!(client.supply().used, used);
                if used < 5 || used + 5 > total {
                    refused(&client);
                }
                let reserved = world.reserve(&mut client, index).unwrap();
                if used + 1 == total {
                    refused(&client);
                }
                let record = world.tell(&mut client, &reserved).unwrap();
                world.assert_right(record, index);
            }
            assert_eq!(client.supply().left(), 0);
            let index = world.index(0);
            let more = client.reserve(&index, &mut world.rng);
            assert_eq!(more.err().unwrap().blame(), Blame::Exhausted);
            let Some(condensed) = S::condense(&client) else { break };
            let condensed = condensed.unwrap();
            assert!(condensed == S::condense(&client).unwrap().unwrap());
            client = world.load(&condensed);
            assert_eq!((client.supply().used, client.open().len()), (0, 0), "round {round}");
            S::check(&world, &client);
        }
    }
}

/// Lookups overlap, their answers come in any order, and now and then the client is killed and
/// starts anew from its generation and its journal, of which the last answers may be missing; or
/// its state is written down as the next generation. Whatever can be told is told, right and once.
pub(crate) fn answers_in_any_order_and_replayed_changes<S: Hinted>() {
    let steps = prop::collection::vec(0u8..8, 70);
    let config = ProptestConfig::with_cases(40);
    let cut = prop::sample::select(&[2u64, 4, 8][..]);
    proptest!(config, |(seed: u8, few: bool, cut in cut, steps in steps)| {
        set_queries_per_generation((!S::RUNS_OUT).then_some(20));
        let mut world = World::<S>::cut(200, 4, cut);
        world.rng = SecretRng::from_fixed_seed([seed; 32]);
        let mut generation = world.generation();
        let mut client = world.load(&generation);
        let mut journal: Vec<Bytes> = Vec::new();
        let mut wanted: BTreeMap<ReservationId, u64> = BTreeMap::new();
        let mut open: Vec<Reserved<QueryOf<S::Server>>> = Vec::new();
        let mut settled_last = None;
        for step in steps.into_iter().map(Some).chain([None]) {
            match step {
                Some(0..=3) if client.supply().left() > 0 => {
                    let index = if few { 40 + world.rng.below(3) } else { world.rng.below(200) };
                    let reserved = world.reserve(&mut client, index).unwrap();
                    journal.push(reserved.change.clone());
                    wanted.insert(reserved.id, index);
                    open.push(reserved);
                    settled_last = None;
                }
                Some(4..=6) if !open.is_empty() => {
                    let at = world.rng.below(open.len() as u64) as usize;
                    let reserved = open.swap_remove(at);
                    journal.push(world.settle(&mut client, &reserved));
                    settled_last = Some(reserved);
                }
                Some(7) => {
                    let mut again = world.load(&generation);
                    let lost = settled_last.take().filter(|_| world.rng.below(2) == 0);
                    if lost.is_some() {
                        journal.pop();
                    }
                    journal.iter().for_each(|change| again.apply(change).unwrap());
                    assert!(lost.is_some() || whole::<S>(&again) == whole::<S>(&client));
                    open.extend(lost);
                    client = again;
                }
                None => for reserved in open.drain(..) {
                    // What is not answered is not told, even if it is known from elsewhere.
                    assert!(client.take_record(reserved.id).is_none());
                    world.settle(&mut client, &reserved);
                },
                _ => {}
            }
            let mut ids: Vec<ReservationId> = open.iter().map(|reserved| reserved.id).collect();
            ids.sort_unstable();
            prop_assert_eq!(client.open(), ids.clone());
            if S::TELLS_IN_ORDER && let Some(first) = ids.first() {
                let told = |id: &ReservationId| client.take_record(*id).is_some();
                prop_assert!(!wanted.range(first..).map(|(id, _)| id).any(told));
            }
            let used_up = client.supply().left() == 0;
            if open.is_empty() && (step.is_none() || used_up) {
                for (id, index) in std::mem::take(&mut wanted) {
                    let record = client.take_record(id).unwrap();
                    world.assert_right(record, index);
                    prop_assert!(client.take_record(id).is_none(), "told twice");
                }
                S::check(&world, &client);
                if let Some(condensed) = S::condense(&client).filter(|_| used_up) {
                    generation = condensed.unwrap();
                    client = world.load(&generation);
                    (journal, settled_last) = (Vec::new(), None);
                }
            }
        }
        set_queries_per_generation(None);
    });
}

pub(crate) fn what_is_sent_does_not_depend_on_what_was_answered<S: Hinted>() {
    let mut world = World::<S>::new(700, 2);
    let generation = world.generation();
    let (mut answered, mut silent) = (world.load(&generation), world.load(&generation));
    let [mut rng, mut same_rng] = [6; 2].map(|seed| SecretRng::from_fixed_seed([seed; 32]));
    let count = 200.min(silent.supply().total) as usize;
    for (number, index) in [5, 5, 5, 600, 5, 601, 5, 5].into_iter().cycle().take(count).enumerate()
    {
        let index = world.index(index);
        let one = answered.reserve(&index, &mut rng).unwrap();
        let other = silent.reserve(&index, &mut same_rng).unwrap();
        assert!(encoded(&one.queries) == encoded(&other.queries), "query {number}");
        assert_eq!(one.change, other.change);
        answered.apply(&one.change).unwrap();
        silent.apply(&other.change).unwrap();
        world.settle(&mut answered, &one);
    }
    assert_eq!((answered.open().len(), silent.open().len()), (0, count));
}

pub(crate) fn changes_that_do_not_fit_are_refused_and_change_nothing<S: Hinted>() {
    let mut world = World::<S>::new(500, 3);
    let mut client = world.client();
    let reserved = world.reserve(&mut client, 5).unwrap();
    let settled = client.settle(reserved.id, &world.answers(&reserved.queries)).unwrap();
    let next = world.index(6);
    let good = client.reserve(&next, &mut world.rng).unwrap().change;
    let corrupted = |client: &mut S::Client, change: &[u8]| {
        let before = whole::<S>(client);
        let refusal = client.apply(change).expect_err("a change that does not fit");
        assert_eq!(refusal.blame(), Blame::Corrupted, "{change:?}");
        assert!(before == whole::<S>(client), "{change:?}");
    };
    for wrong in [&reserved.change[..], &[], &[9; 12], &[9; 49]] {
        corrupted(&mut client, wrong);
    }
    for change in [&good, &settled] {
        let all = change.len() <= 200;
        for len in (0..change.len()).filter(|len| all || len % 7 == 0 || len + 1 == change.len()) {
            corrupted(&mut client, &change[..len]);
        }
        corrupted(&mut client, &[&change[..], &[0]].concat());
    }
    for wrong in S::wrong_changes(&world, &reserved.change, &good) {
        corrupted(&mut client, &wrong);
    }
    client.apply(&settled).unwrap();
    corrupted(&mut client, &settled);
    client.apply(&good).unwrap();
}

pub(crate) fn answers_that_fit_no_lookup_are_refused<S: Hinted>() {
    let mut world = World::<S>::new(500, 3);
    let mut client = world.client();
    let reserved = world.reserve(&mut client, 5).unwrap();
    let answers = || world.answers(&reserved.queries);
    let misuse = |result: Result<Bytes>| {
        assert_eq!(result.err().unwrap().blame(), Blame::ApiMisuse);
    };
    misuse(client.settle(reserved.id, &[]));
    misuse(client.settle(reserved.id, &answers()[1..]));
    misuse(client.settle(reserved.id, &answers().into_iter().chain(answers()).collect::<Vec<_>>()));
    misuse(client.settle(ReservationId(1), &answers()));
    for id in [0, 1] {
        assert!(client.take_record(ReservationId(id)).is_none());
    }
    let record = world.tell(&mut client, &reserved).unwrap();
    world.assert_right(record, 5);
    misuse(client.settle(reserved.id, &answers()));
    assert!(client.take_record(reserved.id).is_none(), "once");
}

/// Two preparations of the same coins: one is killed now and then, and goes on from a checkpoint.
pub(crate) fn a_preparation_goes_on_from_a_checkpoint_to_the_same_hints<S: Hinted>() {
    for (records, record_len, cut) in S::checkpointed() {
        let shape = TableShape::new(records, record_len).unwrap();
        let mut world = World::<S>::with(S::parameters(shape, cut));
        let kernels = Kernels::detect();
        let whole = world.prepared(&mut world.preparation_with([9; 32], kernels), usize::MAX / 2);
        let mut broken = world.preparation_with([9; 32], kernels);
        let len = world.offline_len();
        assert_eq!(broken.generation().unwrap_err().blame(), Blame::ApiMisuse);
        while broken.next_offset() < len {
            if broken.checkpoint_offset() == broken.next_offset() || world.rng.below(3) == 0 {
                // Killed: everything since the last complete group is lost.
                let due = broken.checkpoint_offset();
                assert!(due <= broken.next_offset());
                broken = world.resume(&broken.checkpoint()).unwrap();
                assert_eq!((broken.next_offset(), broken.checkpoint_offset()), (due, due));
            }
            // Each time a little further than the last.
            let piece = len as usize / 13 + 1;
            (0..1 + world.rng.below(4)).for_each(|_| {
                if broken.next_offset() < len {
                    world.feed(&mut broken, piece);
                }
            });
        }
        let again = world
            .resume(&broken.checkpoint())
            .map(|mut again| world.prepared(&mut again, piece_of(len)));
        assert!(again.unwrap() == whole, "resumed at the end");
        assert!(world.prepared(&mut broken, 1) == whole);
        let mut client = world.load(&whole);
        let record = world.get(&mut client, records - 1);
        world.assert_right(record, records - 1);
    }
}

pub(crate) fn preparations_differ<S: Hinted>() {
    let mut world = World::<S>::new(300, 7);
    assert!(world.generation() != world.generation());
}

pub(crate) fn what_arrives_out_of_order_too_long_too_short_or_damaged_is_noticed<S: Hinted>() {
    let mut world = World::<S>::new(3_000, 5);
    let mut preparation = world.preparation();
    let (stream, right) = match S::stream(&world) {
        Some(stream) => (true, stream),
        None => (false, S::reply(&world, &mut preparation)),
    };
    let blame = |result: Result<()>| result.unwrap_err().blame();
    assert_eq!(blame(preparation.finish()), Blame::PeerMisbehaved);
    assert_eq!(blame(preparation.absorb(1, &right[1..])), Blame::PeerMisbehaved);
    let longer = [&right[..], &[0]].concat();
    assert_eq!(blame(preparation.absorb(0, &longer)), Blame::PeerMisbehaved);
    if !stream {
        for wrong in [&right[1..], &[]] {
            assert_eq!(blame(preparation.absorb(0, wrong)), Blame::PeerMisbehaved);
        }
    }
    assert_eq!(preparation.generation().unwrap_err().blame(), Blame::ApiMisuse);
    preparation.absorb(0, &right).unwrap();
    for (offset, more) in [(0, &right[..]), (right.len(), &right), (right.len(), &[0])] {
        assert_eq!(blame(preparation.absorb(offset as u64, more)), Blame::PeerMisbehaved);
    }
    preparation.finish().unwrap();
    if !stream {
        return;
    }
    let mut short = world.preparation();
    short.absorb(0, &right[1..]).unwrap();
    assert_eq!(blame(short.finish()), Blame::PeerMisbehaved);
    assert_eq!(short.generation().unwrap_err().blame(), Blame::ApiMisuse);
    for at in [0, 1, 7_499, right.len() - 1] {
        let mut damaged = right.clone();
        damaged[at] ^= 1;
        let mut preparation = world.preparation();
        preparation.absorb(0, &damaged).unwrap();
        assert_eq!(blame(preparation.finish()), Blame::Integrity, "byte {at}");
        assert!(preparation.generation().is_err());
    }
}

pub(crate) fn damaged_hints_and_checkpoints_are_refused_at_every_length<S: Hinted>() {
    let mut world = World::<S>::new(60, 3);
    let mut preparation = world.preparation();
    let begun = preparation.checkpoint();
    world.feed(&mut preparation, 100);
    let amid = preparation.checkpoint();
    while preparation.next_offset() < world.offline_len() {
        world.feed(&mut preparation, 50);
    }
    let complete = preparation.checkpoint();
    let generation = world.prepared(&mut preparation, 50);
    let load = |bytes: &[u8]| world.try_load(bytes).map(|_| ());
    let resume = |bytes: &[u8]| world.resume(bytes).map(|_| ());
    for (bytes, read) in [
        (&generation, &load as &dyn Fn(&[u8]) -> Result<()>),
        (&begun, &resume),
        (&amid, &resume),
        (&complete, &resume),
    ] {
        read(bytes).unwrap();
        let corrupted = |bytes: &[u8], what: &str| {
            assert_eq!(read(bytes).expect_err(what).blame(), Blame::Corrupted, "{what}");
        };
        // The beginning of a checkpoint may be an earlier one, and as good.
        for len in (0..bytes.len()).filter(|len| bytes[..*len] != begun[..]) {
            corrupted(&bytes[..len], &format!("the first {len} of {} bytes", bytes.len()));
        }
        corrupted(&[&bytes[..], &[0]].concat(), "a byte more");
    }
    let mut other_version = generation.to_vec();
    other_version[0] += 1;
    assert_eq!(load(&other_version).unwrap_err().blame(), Blame::Corrupted);
}

pub(crate) fn every_arm_prepares_the_same_hints<S: Hinted>() {
    let world = World::<S>::new(3_000, 17);
    let prepared = Arm::available().into_iter().map(|arm| {
        let kernels = Kernels::with_arm(arm).unwrap();
        world.prepared(&mut world.preparation_with([5; 32], kernels), 1 << 20)
    });
    let prepared: Vec<_> = prepared.collect();
    assert!(prepared.windows(2).all(|pair| pair[0] == pair[1]));
}

/// Lookups and edits in any order, and then every record; and a second client that has nothing but
/// the journal.
pub(crate) fn lookups_and_edits_in_any_order<S: Hinted>() {
    let tables = (prop_oneof![1u64..=60, 1u64..=1_000], 1u64..=20);
    let steps = prop::collection::vec(0u8..4, 1..40);
    let config = ProptestConfig::with_cases(40);
    proptest!(config, |(table in tables, seed: u8, steps in steps)| {
        let mut world = World::<S>::new(table.0, table.1);
        world.rng = SecretRng::from_fixed_seed([seed; 32]);
        let generation = world.generation();
        let mut client = world.load(&generation);
        let mut journal: Vec<Bytes> = Vec::new();
        for step in steps {
            if step == 0 {
                let count = world.rng.below(6);
                let delta = world.edit(count);
                let supply = client.supply();
                journal.push(client.apply_delta(&delta).unwrap());
                prop_assert_eq!(client.supply(), supply, "an edit uses nothing up");
            } else if client.supply().left() > 0 {
                let index = world.rng.below(table.0);
                let reserved = world.reserve(&mut client, index).unwrap();
                journal.push(reserved.change.clone());
                journal.push(world.settle(&mut client, &reserved));
                let record = client.take_record(reserved.id).unwrap();
                world.assert_right(record, index);
            }
            S::check(&world, &client);
        }
        let mut replayed = world.load(&generation);
        journal.iter().for_each(|change| replayed.apply(change).unwrap());
        prop_assert!(whole::<S>(&replayed) == whole::<S>(&client));
        for index in (0..table.0.min(60)).cycle().take(replayed.supply().left().min(120) as usize) {
            let record = world.get(&mut replayed, index);
            world.assert_right(record, index);
        }
    });
}

pub(crate) fn edits_wait_for_answers_and_fit_their_table<S: Hinted>() {
    let mut world = World::<S>::new(200, 4);
    let mut client = world.client();
    let delta = world.edit(3);
    let change = client.delta_change(&delta).unwrap();
    let (first, second) =
        (world.reserve(&mut client, 7).unwrap(), world.reserve(&mut client, 8).unwrap());
    // Neither with both open, nor with one.
    for waits in [&second, &first] {
        assert_eq!(client.delta_change(&delta).unwrap_err().blame(), Blame::ApiMisuse);
        assert_eq!(client.apply_delta(&delta).unwrap_err().blame(), Blame::ApiMisuse);
        let before = whole::<S>(&client);
        assert_eq!(client.apply(&change).unwrap_err().blame(), S::EDIT_WHILE_OPEN);
        assert!(before == whole::<S>(&client));
        world.settle(&mut client, waits);
    }
    client.apply_delta(&delta).unwrap();
    for (records, record_len) in [(201, 4), (199, 4), (200, 5)] {
        let other = TableShape::new(records, record_len).unwrap();
        let of_another = TableDelta::new(other, Vec::new()).unwrap();
        assert_eq!(client.delta_change(&of_another).unwrap_err().blame(), Blame::ApiMisuse);
    }
    for len in 0..change.len() {
        let refusal = client.apply(&change[..len]).unwrap_err();
        assert_eq!(refusal.blame(), Blame::Corrupted, "{len}");
    }
}

/// Cut short, too long, or with one bit wrong: a query is refused, or read as what it says and
/// answered.
pub(crate) fn what_a_stranger_sends_is_answered_or_refused<S: Hinted>() {
    let mut world = World::<S>::cut(37, 3, 4);
    let client = world.client();
    let index = world.index(5);
    let reserved = client.reserve(&index, &mut world.rng).unwrap();
    for (role, query) in (0..).map(Role).zip(&reserved.queries) {
        let bytes = query.encode_query();
        let decode =
            |bytes: &[u8]| QueryOf::<S::Server>::decode_query(&world.parameters, role, bytes);
        assert_eq!(bytes.len(), QueryOf::<S::Server>::query_len(&world.parameters, role));
        for len in (0..2 * bytes.len() + 2).filter(|len| *len != bytes.len()) {
            let mut other = bytes.clone();
            other.resize(len, 0);
            assert_eq!(decode(&other).err().unwrap().blame(), Blame::InvalidMessage, "{len}");
        }
        let flipped = (0..8 * bytes.len()).map(|bit| {
            let mut other = bytes.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            other
        });
        let random = (0..1_000u32).map(|number| {
            let mut other = public_bytes(&format!("query {number}"), bytes.len());
            // Small numbers are offsets more often.
            other.iter_mut().for_each(|byte| *byte &= 0xff >> (number % 8));
            other
        });
        for other in flipped.chain(random) {
            match decode(&other) {
                Ok(query) => {
                    assert!(query.encode_query() == other, "{other:?}");
                    let answer = world.server.answer(role, &[query]).remove(0).encode();
                    assert_eq!(answer.len(), AnswerOf::<S::Server>::encoded_len(&world.parameters));
                }
                Err(refusal) => assert_eq!(refusal.blame(), Blame::InvalidMessage, "{other:?}"),
            }
        }
    }
    let right = AnswerOf::<S::Server>::encoded_len(&world.parameters);
    for len in 0..2 * right {
        match AnswerOf::<S::Server>::decode(&world.parameters, &vec![0; len]) {
            Ok(answer) => assert!(len == right && answer.encode() == vec![0; right]),
            Err(refusal) => {
                assert!(len != right);
                assert_eq!(refusal.blame(), Blame::InvalidMessage);
            }
        }
    }
}

pub(crate) fn parameters_are_read_back_and_nothing_else_is<S: Hinted>() {
    let known = |records: u64, record_len| {
        let shape = TableShape::new(records, record_len).unwrap();
        (identity(records, record_len), S::parameters(shape, None))
    };
    let known = [1, 2, 3, 5, 37, 1_000, 4_096, 5_000, 1 << 20]
        .into_iter()
        .flat_map(|records| [known(records, 1), known(records, 7), known(records, 32)])
        .collect();
    messages::parameters_are_read_back::<S::Scheme>(known, true);
}

pub(crate) fn the_same_coins_make_the_same_queries_of_one_length<S: Hinted>() {
    let mut world = World::<S>::new(700, 2);
    let client = world.client();
    let next = |index: u64| {
        let [mut rng, mut again] = [3; 2].map(|seed| SecretRng::from_fixed_seed([seed; 32]));
        let index = world.index(index);
        let one = client.reserve(&index, &mut rng).unwrap();
        let other = client.reserve(&index, &mut again).unwrap();
        assert!(encoded(&one.queries) == encoded(&other.queries) && one.change == other.change);
        let lens = (0..).map(Role).zip(&one.queries).map(|(role, query)| {
            let len = query.encode_query().len();
            assert_eq!(len, QueryOf::<S::Server>::query_len(&world.parameters, role));
            len
        });
        lens.collect::<Vec<_>>()
    };
    let expected = next(0);
    assert!((0..700).all(|index| next(index) == expected));
}

fn piece_of(len: u64) -> usize {
    len as usize / 13 + 1
}

/// One test for each thing that a scheme with single-use hints has to satisfy.
macro_rules! hinted_suite {
    ($module:ident: $scheme:ty) => {
        $crate::conformance::hinted::hinted_suite! { $module: $scheme:
            any_table_any_sequence,
            a_generation_serves_its_queries_and_then_says_so,
            answers_in_any_order_and_replayed_changes,
            what_is_sent_does_not_depend_on_what_was_answered,
            changes_that_do_not_fit_are_refused_and_change_nothing,
            answers_that_fit_no_lookup_are_refused,
            a_preparation_goes_on_from_a_checkpoint_to_the_same_hints,
            preparations_differ,
            what_arrives_out_of_order_too_long_too_short_or_damaged_is_noticed,
            damaged_hints_and_checkpoints_are_refused_at_every_length,
            every_arm_prepares_the_same_hints,
            lookups_and_edits_in_any_order,
            edits_wait_for_answers_and_fit_their_table,
            what_a_stranger_sends_is_answered_or_refused,
            parameters_are_read_back_and_nothing_else_is,
            the_same_coins_make_the_same_queries_of_one_length,
        }
    };
    ($module:ident: $scheme:ty: $($test:ident,)*) => {
        mod $module {
            use super::*;

            $(
                #[test]
                fn $test() {
                    $crate::conformance::hinted::$test::<$scheme>();
                }
            )*
        }
    };
}
pub(crate) use hinted_suite;
