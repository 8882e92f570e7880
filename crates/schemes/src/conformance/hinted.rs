//! The tests that every scheme with single-use hints must pass.

mod changes;
mod lookups;
mod preparations;

use super::messages;
use crate::contract::{
    AnswerOf, Answerer, HintedClient, Message, Offline, Parameters, Preparation, QueryMessage,
    QueryOf, Record, ReservationId, Reserved, Role, Scheme,
};
use crate::offline::StreamConsumer as _;
use crate::test_tables::{Sequence, identity, public_bytes, query_through_its_encoding, sequences};
use privet_core::{Blame, RecordIndex, Result, SecretRng, TableDelta, TableShape, TableView};
use privet_kernels::{Arm, Kernels};
use proptest::prelude::*;
use zeroize::Zeroizing;

pub use changes::*;
pub use lookups::*;
pub use preparations::*;

type Bytes = Zeroizing<Vec<u8>>;

/// Brings a client up to date with the table after `delta`, and returns the change.
pub fn follow(client: &mut impl HintedClient, delta: &TableDelta) -> Result<Bytes> {
    let change = client.delta_change(delta)?;
    client.apply(&change)?;
    Ok(change)
}

/// A scheme, as the suite tests it.
pub trait Hinted: Sized + 'static {
    type Parameters: Parameters + Clone;
    type Scheme: Offline<Parameters = Self::Parameters>;
    type Server: Answerer<Scheme = Self::Scheme>;
    type Client: HintedClient<Scheme = Self::Scheme>;
    type Preparation: Preparation<Scheme = Self::Scheme>;
    /// The parts of a client's state that are the scheme's own.
    type State: PartialEq;

    /// Whether a record is known as soon as all earlier lookups are answered, and never before.
    const TELLS_IN_ORDER: bool = false;
    /// The blame of an edit that comes in the journal while a lookup is open.
    const EDIT_WHILE_OPEN: Blame = Blame::Corrupted;

    /// The parameters of a table that is cut into pieces of `cut` records; by default, of as
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

    /// Journal records that are like `good`, which is right for the next reservation, but wrong in
    /// one place. `used` is the record of the reservation before.
    fn wrong_changes(world: &World<Self>, used: &[u8], good: &[u8]) -> Vec<Vec<u8>>;
}

/// A table, its server in all roles, and what a client draws from.
pub struct World<S: Hinted> {
    pub parameters: S::Parameters,
    pub records: Vec<u8>,
    pub server: S::Server,
    pub rng: SecretRng,
}

impl<S: Hinted> World<S> {
    pub fn new(records: u64, record_len: u64) -> Self {
        Self::with(S::parameters(TableShape::new(records, record_len).unwrap(), None))
    }

    pub fn cut(records: u64, record_len: u64, cut: u64) -> Self {
        Self::with(S::parameters(TableShape::new(records, record_len).unwrap(), Some(cut)))
    }

    pub fn with(parameters: S::Parameters) -> Self {
        let records = public_bytes("a table", S::shape(&parameters).bytes() as usize);
        Self::of(parameters, records)
    }

    pub fn of(parameters: S::Parameters, records: Vec<u8>) -> Self {
        let server = Self::serve(&parameters, &records);
        Self { parameters, records, server, rng: SecretRng::from_fixed_seed([3; 32]) }
    }

    pub fn serve(parameters: &S::Parameters, records: &[u8]) -> S::Server {
        let shape = S::shape(parameters);
        let identity = identity(shape.records(), shape.record_len());
        S::server(parameters, TableView::new(identity, records).unwrap())
    }

    fn digest(&self) -> [u8; 32] {
        S::stream(self).map_or([0; 32], |stream| *blake3::hash(&stream).as_bytes())
    }

    pub fn preparation(&mut self) -> S::Preparation {
        let mut key = [0; 32];
        self.rng.fill(&mut key);
        self.preparation_with(key, Kernels::detect())
    }

    pub fn preparation_with(&self, seed: [u8; 32], kernels: Kernels) -> S::Preparation {
        let (parameters, rng) =
            (S::clients(&self.parameters), &mut SecretRng::from_fixed_seed(seed));
        S::Preparation::begin(parameters, self.digest(), rng, kernels).unwrap()
    }

    pub fn resume(&self, checkpoint: &[u8]) -> Result<S::Preparation> {
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

    /// The result of a preparation that gets everything that it asks for.
    pub fn prepared(&self, preparation: &mut S::Preparation, piece: usize) -> Bytes {
        while preparation.next_offset() < self.offline_len() {
            self.feed(preparation, piece);
        }
        preparation.finish().unwrap();
        preparation.generation().unwrap()
    }

    pub fn generation(&mut self) -> Bytes {
        let mut preparation = self.preparation();
        self.prepared(&mut preparation, 1 << 16)
    }

    pub fn try_load(&self, generation: &[u8]) -> Result<S::Client> {
        let generation = Zeroizing::new(generation.to_vec());
        S::Client::load(S::clients(&self.parameters), generation, Kernels::detect())
    }

    pub fn load(&self, generation: &[u8]) -> S::Client {
        self.try_load(generation).unwrap()
    }

    pub fn client(&mut self) -> S::Client {
        let generation = self.generation();
        self.load(&generation)
    }

    pub fn indices(&mut self, sequence: Sequence, count: u64) -> Vec<u64> {
        let records = S::shape(&self.parameters).records();
        sequence.indices(records, S::cut(&self.parameters), count, &mut self.rng)
    }

    pub fn index(&self, index: u64) -> RecordIndex {
        RecordIndex::new(index, S::shape(&self.parameters)).unwrap()
    }

    pub fn record(&self, index: u64) -> &[u8] {
        let len = S::shape(&self.parameters).record_len() as usize;
        &self.records[index as usize * len..][..len]
    }

    /// Reserves, and applies the change.
    pub fn reserve(
        &mut self,
        client: &mut S::Client,
        index: u64,
    ) -> Result<Reserved<QueryOf<S::Server>>> {
        let reserved = client.reserve(&self.index(index), &mut self.rng)?;
        client.apply(&reserved.change)?;
        Ok(reserved)
    }

    /// One answer of each server, over the wire and back.
    pub fn answers(&self, queries: &[QueryOf<S::Server>]) -> Vec<AnswerOf<S::Server>> {
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
    pub fn settle(&self, client: &mut S::Client, reserved: &Reserved<QueryOf<S::Server>>) -> Bytes {
        let change = client.settle(reserved.id, &self.answers(&reserved.queries)).unwrap();
        client.apply(&change).unwrap();
        change
    }

    /// Settles, and takes the record if it is known.
    pub fn tell(
        &self,
        client: &mut S::Client,
        reserved: &Reserved<QueryOf<S::Server>>,
    ) -> Option<Result<Record>> {
        self.settle(client, reserved);
        client.take_record(reserved.id)
    }

    /// One whole lookup.
    pub fn get(&mut self, client: &mut S::Client, index: u64) -> Result<Record> {
        let reserved = self.reserve(client, index)?;
        self.tell(client, &reserved).expect("nothing else is under way")
    }

    fn assert_right(&self, record: Result<Record>, index: u64) {
        match record {
            Ok(record) => assert_eq!(*record, self.record(index), "record {index}"),
            Err(error) => panic!("record {index}: {error}"),
        }
    }

    /// Some edits, also several of one record, and the table after them.
    pub fn edit(&mut self, count: u64) -> TableDelta {
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

/// The whole state of a client.
type Whole<S> = (<S as Hinted>::State, Vec<ReservationId>, crate::contract::Supply);

fn whole<S: Hinted>(client: &S::Client) -> Whole<S> {
    (S::state(client), client.open(), client.supply())
}

/// A query that is cut short, too long, or has one wrong bit is refused, or is read and answered.
pub fn what_a_stranger_sends_is_answered_or_refused<S: Hinted>() {
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

pub fn parameters_are_read_back_and_nothing_else_is<S: Hinted>() {
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

/// One test for each property of a scheme with single-use hints.
macro_rules! hinted_suite {
    ($module:ident: $scheme:ty) => {
        $crate::conformance::hinted::hinted_suite! { $module: $scheme:
            any_table_any_sequence,
            a_generation_serves_its_queries_and_then_says_so,
            answers_in_any_order_and_replayed_changes,
            what_is_sent_does_not_depend_on_what_was_answered,
            changes_that_do_not_fit_are_refused_and_change_nothing,
            answers_that_fit_no_lookup_are_refused,
            clients_that_verify_end_and_no_others,
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
