//! The tests that every scheme without client state must pass.

mod queries;

use super::messages;
use crate::contract::{
    AnswerOf, Answerer, Message, Offline, ParametersOf, QueryMessage, QueryOf, Role, Scheme,
    StatelessClient,
};
use crate::offline::OfflinePhase;
use crate::test_statistics::{coins, rng_for};
use crate::test_tables::{identity, look_up, public_bytes};
use privet_core::{
    Blame, Epoch, RecordIndex, Result, SecretRng, TableDigest, TableId, TableIdentity, TableShape,
    TableView,
};
use privet_kernels::{Arm, Kernels};
use proptest::prelude::*;
use std::collections::HashSet;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub use queries::*;

/// A scheme, as the suite tests it.
pub trait Stateless: Sized + 'static {
    type Scheme: Offline;
    type Server: Answerer<Scheme = Self::Scheme>;
    type Client: StatelessClient<Scheme = Self::Scheme>;
    /// The choices besides a table's shape. The default: what the scheme chooses itself.
    type Form: Clone + Debug + Default;

    /// Whether clients refuse wrong answers.
    const VERIFIES: bool = false;
    /// Whether a query is noise for another table of the same shape.
    const BOUND_TO_ITS_TABLE: bool = true;
    /// A part of the panic message of a client that gets the index of a larger table. `None`: it
    /// may not notice.
    const INDEX_OF_ANOTHER_TABLE: Option<&'static str> = None;
    /// How many servers a [`World`] makes. If one, it answers in all roles.
    const COPIES: usize = 2;
    /// How many random tables are tried.
    const CASES: u32 = 48;
    /// Whether parameters say the form. If not, other forms than the default are for tests only.
    const FORM_IS_ANNOUNCED: bool = true;
    /// Numbers of threads, which must make no difference.
    const THREADS: &'static [usize] = &[0, 1, 2, 3];

    /// Tables of any size, in any form that suits them.
    fn tables() -> BoxedStrategy<Table<Self>>;

    /// Small tables. Every record of them is looked up.
    fn small() -> Vec<Table<Self>>;

    /// Tables that together cover all paths through the code.
    fn kinds() -> Vec<Table<Self>>;

    fn parameters(
        identity: &TableIdentity,
        form: &Self::Form,
    ) -> Result<ParametersOf<Self::Server>>;

    /// Turns any bytes into a table that suits the form.
    fn fit(_form: &Self::Form, _table: &mut [u8]) {}

    /// A server, and the hint that clients download.
    fn setup(
        parameters: &ParametersOf<Self::Server>,
        form: &Self::Form,
        table: TableView<'_>,
        kernels: Kernels,
        threads: usize,
    ) -> Result<(Self::Server, Vec<u8>)>;

    fn client(
        parameters: &ParametersOf<Self::Server>,
        hint: &[u8],
        kernels: Kernels,
    ) -> Result<Self::Client>;

    /// A shape so large that no query is made twice by chance, and a client for it.
    fn wide() -> (TableShape, Self::Client) {
        let world = World::<Self>::new(1_000, 5);
        (world.identity.shape, world.client)
    }

    /// The number of random bytes for the queries of a lookup, if it is always the same.
    fn random_bytes(_parameters: &ParametersOf<Self::Server>) -> Option<usize> {
        None
    }

    /// The bits of a query, and of an answer, that must be zero. The others may be anything, if
    /// [`ALL_BITS_FREE`](Self::ALL_BITS_FREE).
    fn spare_bits(_parameters: &ParametersOf<Self::Server>) -> [Vec<usize>; 2] {
        [Vec::new(), Vec::new()]
    }
    const ALL_BITS_FREE: bool = true;
}

/// Number of records, bytes of each, and a form.
pub type Table<S> = (u64, u64, <S as Stateless>::Form);

/// Tables of these sizes in the form that the scheme chooses.
pub fn by_default<F: Default>(sizes: &[(u64, u64)]) -> Vec<(u64, u64, F)> {
    sizes.iter().map(|(records, record_len)| (*records, *record_len, F::default())).collect()
}

/// Small tables on both sides of every edge: of a leaf, a byte of bits, a row, a column.
pub const SMALL: [(u64, u64); 16] = [
    (1, 1),
    (1, 300),
    (2, 1),
    (3, 7),
    (5, 2_000),
    (8, 15),
    (9, 16),
    (17, 33),
    (64, 1),
    (65, 3),
    (127, 2),
    (128, 1),
    (129, 5),
    (255, 1),
    (256, 3),
    (257, 33),
];

/// A table, servers that hold it, and a client.
pub struct World<S: Stateless> {
    pub identity: TableIdentity,
    pub table: Vec<u8>,
    pub hint: Vec<u8>,
    pub servers: Vec<S::Server>,
    pub client: S::Client,
}

type PendingOf<S> = <<S as Stateless>::Client as StatelessClient>::Pending;

impl<S: Stateless> World<S> {
    pub fn new(records: u64, record_len: u64) -> Self {
        Self::of(&(records, record_len, S::Form::default()))
    }

    pub fn of((records, record_len, form): &Table<S>) -> Self {
        let identity = identity(*records, *record_len);
        let mut table = public_bytes("a table", identity.shape.bytes() as usize);
        S::fit(form, &mut table);
        Self::with_table(identity, form, table)
    }

    pub fn with_table(identity: TableIdentity, form: &S::Form, table: Vec<u8>) -> Self {
        let (parameters, kernels) = (S::parameters(&identity, form).unwrap(), Kernels::detect());
        let view = TableView::new(identity, &table).unwrap();
        let made = |threads| S::setup(&parameters, form, view, kernels, threads).unwrap();
        let (servers, mut hints): (Vec<_>, Vec<_>) = (1..=S::COPIES).map(made).unzip();
        let hint = hints.swap_remove(0);
        assert!(hints.iter().all(|other| *other == hint), "servers of one table announce the same");
        let client = S::client(&parameters, &hint, kernels).unwrap();
        Self { identity, hint, servers, client, table }
    }

    pub fn parameters(&self) -> &ParametersOf<S::Server> {
        self.servers[0].parameters()
    }

    pub fn records(&self) -> u64 {
        self.identity.shape.records()
    }

    pub fn index(&self, of: u64) -> RecordIndex {
        RecordIndex::new(of, self.identity.shape).unwrap()
    }

    pub fn record(&self, of: u64) -> &[u8] {
        let len = self.identity.shape.record_len() as usize;
        &self.table[of as usize * len..][..len]
    }

    /// The server of each role.
    pub fn roles(&self) -> Vec<&S::Server> {
        let roles = 0..S::Scheme::servers(self.parameters());
        roles.map(|role| &self.servers[role % self.servers.len()]).collect()
    }

    /// The encoded queries of one lookup, one for each server, and what the client keeps.
    pub fn lookup(&self, of: u64, rng: &mut SecretRng) -> (Vec<Vec<u8>>, PendingOf<S>) {
        let (queries, pending) = self.client.query(&self.index(of), rng).unwrap();
        (queries.iter().map(QueryMessage::encode_query).collect(), pending)
    }

    pub fn queries<const SERVERS: usize>(
        &self,
        of: u64,
        rng: &mut SecretRng,
    ) -> [Vec<u8>; SERVERS] {
        self.lookup(of, rng).0.try_into().expect("one query for each server")
    }

    pub fn query(&self, bytes: &[u8]) -> QueryOf<S::Server> {
        QueryOf::<S::Server>::decode_query(self.parameters(), Role(0), bytes).unwrap()
    }

    /// The bytes of one server's answer to one query.
    pub fn answer(&self, role: usize, query: &[u8]) -> Vec<u8> {
        let mut answers = self.roles()[role].answer(Role(role as u8), &[self.query(query)]);
        assert_eq!(answers.len(), 1);
        answers.remove(0).encode()
    }

    /// The answers to all queries of one lookup, as each server sends them.
    pub fn answers(&self, queries: &[Vec<u8>]) -> Vec<Vec<u8>> {
        (0..).zip(queries).map(|(role, query)| self.answer(role, query)).collect()
    }

    /// Answers as the client reads them.
    pub fn read<B: AsRef<[u8]>>(&self, answers: &[B]) -> Vec<AnswerOf<S::Server>> {
        let read = |bytes: &B| AnswerOf::<S::Server>::decode(self.parameters(), bytes.as_ref());
        answers.iter().map(|bytes| read(bytes).unwrap()).collect()
    }

    pub fn check(&self, wanted: &[u64]) {
        let table = TableView::new(self.identity, &self.table).unwrap();
        look_up(&self.client, &self.roles(), table, wanted);
    }

    pub fn check_all(&self) {
        self.check(&(0..self.records()).collect::<Vec<_>>());
    }
}

/// The parameters of all tables that the suite names.
fn all_parameters<S: Stateless>() -> Vec<(TableIdentity, ParametersOf<S::Server>)> {
    let sizes = [(1, 9), (20, 9), (200, 9), (5_000, 9)];
    let tables = by_default::<S::Form>(&sizes).into_iter().chain(S::small()).chain(S::kinds());
    tables
        .map(|(records, record_len, form)| {
            let identity = identity(records, record_len);
            (identity, S::parameters(&identity, &form).unwrap())
        })
        .collect()
}

pub fn any_table_returns_the_records_asked_for<S: Stateless>() {
    let picks = prop::collection::vec(any::<u64>(), 1..=(S::CASES as usize / 4).min(11));
    proptest!(ProptestConfig::with_cases(S::CASES), |(table in S::tables(), picks in picks)| {
        let world = World::<S>::of(&table);
        let mut wanted: Vec<u64> = picks.iter().map(|pick| pick % world.records()).collect();
        wanted.extend([0, world.records() - 1]);
        world.check(&wanted);
    });
}

pub fn every_record_of_small_tables_comes_back<S: Stateless>() {
    S::small().iter().for_each(|table| World::<S>::of(table).check_all());
}

pub fn the_extreme_tables_come_back_too<S: Stateless>() {
    for (records, record_len, form) in S::kinds() {
        for byte in [0, 255] {
            let identity = identity(records, record_len);
            let mut table = vec![byte; identity.shape.bytes() as usize];
            S::fit(&form, &mut table);
            let around = records / 2;
            World::<S>::with_table(identity, &form, table).check(&[0, around, records - 1]);
        }
    }
}

pub fn large_batches_and_empty_ones_are_answered<S: Stateless>() {
    let world = World::<S>::of(&S::kinds()[0]);
    world.check(&(0..70).map(|k| k * 43 % world.records()).collect::<Vec<_>>());
    world.check(&[7; 9]);
    world.check(&[]);
}

/// All arms make the same queries, hints, answers and records, with any number of threads.
pub fn no_arm_and_no_number_of_threads_makes_a_difference<S: Stateless>() {
    for table in S::kinds() {
        let (records, record_len, form) = &table;
        let identity = identity(*records, *record_len);
        let mut bytes = public_bytes("a table", identity.shape.bytes() as usize);
        S::fit(form, &mut bytes);
        let (view, parameters) =
            (TableView::new(identity, &bytes).unwrap(), S::parameters(&identity, form).unwrap());
        let run = |arm: Arm, threads: usize| {
            let kernels = Kernels::with_arm(arm).unwrap();
            let (server, hint) = S::setup(&parameters, form, view, kernels, threads).unwrap();
            let client = S::client(&parameters, &hint, kernels).unwrap();
            let (mut of_roles, mut pendings) = (Vec::new(), Vec::new());
            let mut rng = rng_for(7);
            let wanted: Vec<u64> = (0..9).map(|k| k * 977 % records).collect();
            for of in &wanted {
                let index = RecordIndex::new(*of, identity.shape).unwrap();
                let (queries, pending) = client.query(&index, &mut rng).unwrap();
                of_roles.resize_with(queries.len(), Vec::new);
                of_roles.iter_mut().zip(queries).for_each(|(all, query)| all.push(query));
                pendings.push(pending);
            }
            let mut answers: Vec<_> = (0..)
                .zip(&of_roles)
                .map(|(role, queries)| server.answer(Role(role), queries).into_iter())
                .collect();
            let mut seen: Vec<Vec<u8>> =
                of_roles.iter().flatten().map(QueryMessage::encode_query).collect();
            for (of, pending) in wanted.iter().zip(pendings) {
                let of_lookup: Vec<_> = answers.iter_mut().map(|of| of.next().unwrap()).collect();
                seen.extend(of_lookup.iter().map(Message::encode));
                let record = client.recover(pending, &of_lookup).unwrap();
                let start = (of * record_len) as usize;
                assert_eq!(*record, bytes[start..][..*record_len as usize], "{arm}: {table:?}");
            }
            (blake3::hash(&hint), seen)
        };
        let expected = run(Arm::Portable, 1);
        for arm in Arm::available() {
            for threads in S::THREADS {
                let same = run(arm, *threads) == expected;
                assert!(same, "{table:?}: {arm} with {threads} threads differs from portable");
            }
        }
    }
}

pub fn parameters_are_read_back_and_nothing_else_is<S: Stateless>() {
    messages::parameters_are_read_back::<S::Scheme>(all_parameters::<S>(), S::FORM_IS_ANNOUNCED);
}

/// Whether bytes are a message; if so, they are its only encoding.
fn is_read<S: Stateless>(parameters: &ParametersOf<S::Server>, answer: bool, bytes: &[u8]) -> bool {
    let encoded = match answer {
        true => AnswerOf::<S::Server>::decode(parameters, bytes).map(|answer| answer.encode()),
        false => QueryOf::<S::Server>::decode_query(parameters, Role(0), bytes)
            .map(|query| query.encode_query()),
    };
    match &encoded {
        Ok(encoded) => assert!(encoded == bytes, "a message has one encoding"),
        Err(refusal) => assert_eq!(refusal.blame(), Blame::InvalidMessage),
    }
    encoded.is_ok()
}

pub fn a_message_of_any_other_length_is_refused<S: Stateless>() {
    for (identity, parameters) in all_parameters::<S>() {
        for answer in [false, true] {
            let right = match answer {
                true => AnswerOf::<S::Server>::encoded_len(&parameters),
                false => QueryOf::<S::Server>::query_len(&parameters, Role(0)),
            };
            let mut lens: Vec<usize> = vec![0, 1, 3, 4, 7, 8, 16, right * 2];
            match right {
                0..=600 => lens.extend(0..right * 2 + 2),
                _ => {
                    lens.extend([right - 16, right - 8, right - 4, right - 1, right + 1, right + 4])
                }
            }
            for len in lens.into_iter().filter(|len| *len != right) {
                let read = is_read::<S>(&parameters, answer, &vec![0; len]);
                assert!(!read, "{:?}: {len} bytes were read, {right} are right", identity.shape);
            }
            assert!(is_read::<S>(&parameters, answer, &vec![0; right]), "{:?}", identity.shape);
        }
    }
}

pub fn bits_that_mean_nothing_are_refused<S: Stateless>() {
    if !S::ALL_BITS_FREE {
        return;
    }
    for (identity, parameters) in all_parameters::<S>() {
        let lens = [
            QueryOf::<S::Server>::query_len(&parameters, Role(0)),
            AnswerOf::<S::Server>::encoded_len(&parameters),
        ];
        for ((answer, len), spare) in
            [false, true].into_iter().zip(lens).zip(S::spare_bits(&parameters))
        {
            let bits = 8 * len;
            for bit in (0..bits).filter(|bit| *bit < 64 || bit + 256 >= bits) {
                let mut bytes = vec![0; len];
                bytes[bit / 8] = 1 << (bit % 8);
                let read = is_read::<S>(&parameters, answer, &bytes);
                assert_eq!(read, !spare.contains(&bit), "bit {bit}: {:?}", identity.shape);
            }
        }
    }
}

/// Bytes that no client made: random ones, all equal ones, and a client's with one wrong bit.
pub fn what_a_stranger_sends_is_answered_or_refused<S: Stateless>() {
    let worlds: Vec<_> = S::small().iter().map(World::<S>::of).collect();
    let config = ProptestConfig::with_cases(256);
    proptest!(config, |(number in 0..worlds.len(), seed: u64, plain: u8)| {
        let world = &worlds[number];
        let mut rng = rng_for(seed);
        let roles = S::Scheme::servers(world.parameters());
        let of = rng.below(world.records());
        let (queries, pending) = world.lookup(of, &mut rng);
        let honest = world.answers(&queries);
        let mut made = |honest: &[u8]| {
            let mut random = vec![0; honest.len()];
            rng.fill(&mut random);
            let mut flipped = honest.to_vec();
            let bit = rng.below(8 * honest.len() as u64) as usize;
            flipped[bit / 8] ^= 1 << (bit % 8);
            [random, vec![plain; honest.len()], flipped]
        };
        for bytes in made(&queries[roles - 1]) {
            if is_read::<S>(world.parameters(), false, &bytes) {
                let answer = world.answer(roles - 1, &bytes);
                prop_assert_eq!(answer.len(), honest[0].len());
            }
        }
        let mut pending = Some(pending);
        for (kind, bytes) in made(&honest[roles - 1]).into_iter().enumerate() {
            if !is_read::<S>(world.parameters(), true, &bytes) {
                continue;
            }
            let (_, of_next) = world.lookup(of, &mut SecretRng::from_os().unwrap());
            // The last one is the answer to this lookup with one wrong bit.
            let pending = if kind == 2 { pending.take().unwrap() } else { of_next };
            let mut answers = honest.clone();
            answers[roles - 1] = bytes;
            match world.client.recover(pending, &world.read(&answers)) {
                Ok(record) => {
                    // A random answer may be the right one.
                    let right = kind != 2 && *record == world.record(of);
                    prop_assert!(!S::VERIFIES || right, "a wrong answer was believed");
                    prop_assert_eq!(record.len(), world.record(of).len());
                }
                Err(refusal) => {
                    prop_assert!(S::VERIFIES);
                    prop_assert_eq!(refusal.blame(), Blame::Integrity);
                }
            }
        }
    });
}

pub fn a_record_takes_one_answer_of_each_server<S: Stateless>() {
    let world = World::<S>::of(&S::kinds()[0]);
    let servers = S::Scheme::servers(world.parameters());
    let mut rng = SecretRng::from_os().unwrap();
    for count in [0, 1, 2, servers - 1, servers + 1, servers + 9] {
        if count != servers {
            let (queries, pending) = world.lookup(3, &mut rng);
            let mut answers = world.answers(&queries);
            answers = answers.into_iter().cycle().take(count).collect();
            let refusal = world.client.recover(pending, &world.read(&answers)).err().unwrap();
            assert_eq!(refusal.blame(), Blame::ApiMisuse, "{count} answers");
        }
    }
}

pub fn a_server_refuses_a_table_of_another_shape<S: Stateless>() {
    let parameters = S::parameters(&identity(20, 2), &S::Form::default()).unwrap();
    let view = TableView::new(identity(10, 4), &[0; 40]).unwrap();
    let refusal = S::setup(&parameters, &S::Form::default(), view, Kernels::detect(), 1).err();
    assert_eq!(refusal.unwrap().blame(), Blame::ApiMisuse);
}

pub fn a_client_needs_exactly_what_is_announced<S: Stateless>() {
    let world = World::<S>::of(&S::small()[2]);
    let phase = S::Scheme::offline_phase(world.parameters());
    match phase {
        OfflinePhase::Nothing => assert!(world.hint.is_empty()),
        _ => assert_eq!(phase, OfflinePhase::Download { len: world.hint.len() as u64 }),
    }
    for len in [0, 1, world.hint.len().saturating_sub(1), world.hint.len() + 1] {
        if !phase.is_empty() && len != world.hint.len() {
            let refusal = S::client(world.parameters(), &vec![0; len], Kernels::detect());
            assert_eq!(refusal.err().unwrap().blame(), Blame::Corrupted, "a hint of {len} bytes");
        }
    }
}

pub fn lookups_outlive_epochs_and_belong_to_one_table<S: Stateless>() {
    let world = World::<S>::of(&S::kinds()[0]);
    let (_, _, form) = &S::kinds()[0];
    let mut rng = SecretRng::from_os().unwrap();
    let mut looked_up_as = |identity: TableIdentity| {
        let parameters = S::parameters(&identity, form).unwrap();
        let client = S::client(&parameters, &world.hint, Kernels::detect()).unwrap();
        let (queries, pending) = client.query(&world.index(3), &mut rng).unwrap();
        let queries: Vec<_> = queries.iter().map(QueryMessage::encode_query).collect();
        client.recover(pending, &world.read(&world.answers(&queries)))
    };
    let mut updated = world.identity;
    updated.epoch = Epoch(5);
    updated.digest = TableDigest([1; 32]);
    assert_eq!(*looked_up_as(updated).unwrap(), world.record(3));
    let mut other = world.identity;
    other.id = TableId([8; 16]);
    match (S::BOUND_TO_ITS_TABLE, looked_up_as(other)) {
        (true, Ok(record)) => assert!(!S::VERIFIES && *record != world.record(3)),
        (true, Err(refusal)) => {
            assert!(S::VERIFIES);
            assert_eq!(refusal.blame(), Blame::Integrity);
        }
        (false, record) => assert_eq!(*record.unwrap(), world.record(3)),
    }
}

pub fn the_index_of_a_larger_table_is_a_bug<S: Stateless>() {
    let Some(expected) = S::INDEX_OF_ANOTHER_TABLE else { return };
    let (shape, client) = S::wide();
    let larger = TableShape::new(2 * shape.records(), shape.record_len()).unwrap();
    let index = RecordIndex::new(larger.records() - 1, larger).unwrap();
    let query = || client.query(&index, &mut SecretRng::from_os().unwrap()).is_ok();
    let panic = catch_unwind(AssertUnwindSafe(query)).expect_err("no panic");
    let said = panic.downcast_ref::<String>().map(String::as_str);
    let said = said.or(panic.downcast_ref::<&str>().copied()).unwrap();
    assert!(said.contains(expected), "{said}");
}

/// One test for each property of a scheme without client state.
#[macro_export]
macro_rules! stateless_suite {
    ($scheme:ty) => {
        $crate::conformance::stateless::stateless_suite! { $scheme:
            any_table_returns_the_records_asked_for,
            every_record_of_small_tables_comes_back,
            the_extreme_tables_come_back_too,
            large_batches_and_empty_ones_are_answered,
            no_arm_and_no_number_of_threads_makes_a_difference,
            parameters_are_read_back_and_nothing_else_is,
            a_message_of_any_other_length_is_refused,
            bits_that_mean_nothing_are_refused,
            what_a_stranger_sends_is_answered_or_refused,
            a_record_takes_one_answer_of_each_server,
            a_server_refuses_a_table_of_another_shape,
            a_client_needs_exactly_what_is_announced,
            lookups_outlive_epochs_and_belong_to_one_table,
            the_index_of_a_larger_table_is_a_bug,
            no_two_queries_are_alike_and_lengths_never_depend_on_the_index,
            making_a_query_draws_as_much_for_every_index,
            one_server_sees_the_same_whatever_the_index,
        }
    };
    ($scheme:ty: $($test:ident,)*) => {
        mod suite {
            use super::*;

            $(
                #[test]
                fn $test() {
                    $crate::conformance::stateless::$test::<$scheme>();
                }
            )*
        }
    };
}
pub use stateless_suite;
