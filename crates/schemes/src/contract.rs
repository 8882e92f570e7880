//! The contract between the schemes and the rest of the program.
//!
//! Schemes differ in the number of servers, in what the client keeps, in how the offline phase
//! flows and in what the server can prove. Each difference is a small trait. A scheme implements
//! only the traits that apply to it. Some methods have a default. A scheme implements such a method
//! only if the default does not suit it:
//!
//! | trait | has it | gist |
//! |---|---|---|
//! | [`Scheme`] | all | name, number of servers, parameters, messages |
//! | [`Answerer`] | every server that is asked | answers a batch of queries, purely, on an immutable table |
//! | [`Setup`] | servers that compute something from the table first | what clients download, and what the server itself keeps |
//! | [`StatelessClient`] | clients that may repeat, lose and forget queries | any number of queries in flight |
//! | [`HintedClient`] | clients whose hints are secret and serve once | reserve a hint, commit the change, then send |
//! | [`Preparation`] | the same clients, before | turns the streamed table into a generation of hints |
//! | [`PatchedDownload`] | SimplePIR, download | brings what clients downloaded up to date with edits of the table |
//! | [`Asked`] | schemes in which a server computes the hints | what clients ask it for |
//! | [`LocalClient`] | clients that hold the table | reads the record on its own and asks nobody |
//! | [`Offline`] | all | what has to flow before the first query |

mod received;

pub use received::of_all;
pub(crate) use received::{announced, asked, nothing_to_ask, refused};

use crate::SchemeId;
use crate::offline::{HintSource, OfflinePhase, Precomputed, PublicWords, StreamConsumer};
use privet_core::{
    Error, PublicSeed, RecordIndex, Result, SecretRng, TableChanges, TableDelta, TableIdentity,
    TableShape, TableSource,
};
use privet_kernels::Kernels;
use zeroize::Zeroizing;

/// A record as it came back: its bytes show which record was wanted, so they are erased when
/// dropped.
pub type Record = Zeroizing<Vec<u8>>;

/// Which of a scheme's servers: 0 for the only one, 0 or 1 of two, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Role(pub u8);

/// What every scheme has: a name, a number of servers, and the types of what crosses the wire.
pub trait Scheme {
    /// The scheme's name.
    const ID: SchemeId;
    /// Public parameters, fixed by the table and by what its server announces.
    type Parameters: Parameters;
    /// What goes to one server.
    type Query: QueryMessage<Self::Parameters>;
    /// What one server sends back.
    type Answer: Message<Self::Parameters>;

    /// How many servers take part in one query. It follows from the parameters, because finite
    /// differences work with any number from two to thirteen; `finite-differences-many` announces
    /// how many it is.
    fn servers(parameters: &Self::Parameters) -> usize;
}

/// Parameters of a scheme for one table. A value of such a type is valid and reaches the security
/// target: there is no way to construct another.
pub trait Parameters: Sized + Send + Sync {
    /// The canonical encoding, without what the table's identity already says.
    fn encode(&self) -> Vec<u8>;

    /// Reads what a server announced for the table `identity`.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if it does not parse,
    /// [`Blame::PeerMisbehaved`](privet_core::Blame::PeerMisbehaved) if it does, but is
    /// inconsistent with the table or below the security target.
    fn decode(identity: &TableIdentity, bytes: &[u8]) -> Result<Self>;
}

/// A message with a canonical little-endian encoding whose size follows from the parameters alone,
/// never from a secret.
pub trait Message<P>: Sized + Send {
    /// The exact size of every encoding under `parameters`, in bytes.
    fn encoded_len(parameters: &P) -> usize;

    /// The encoding.
    fn encode(&self) -> Vec<u8>;

    /// Parses bytes from outside.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) unless `bytes` is exactly one
    /// valid encoding.
    fn decode(parameters: &P, bytes: &[u8]) -> Result<Self>;
}

/// A query: a message whose form may depend on which server it is for. Every [`Message`] is one, of
/// the same form for all servers.
pub trait QueryMessage<P>: Sized + Send {
    /// The exact size of every query to the server of role `role`, in bytes.
    fn query_len(parameters: &P, role: Role) -> usize;

    /// The encoding.
    fn encode_query(&self) -> Vec<u8>;

    /// Parses bytes from outside, sent to the server of role `role`.
    ///
    /// # Errors
    /// As [`Message::decode`].
    fn decode_query(parameters: &P, role: Role, bytes: &[u8]) -> Result<Self>;
}

impl<P, M: Message<P>> QueryMessage<P> for M {
    fn query_len(parameters: &P, _role: Role) -> usize {
        M::encoded_len(parameters)
    }

    fn encode_query(&self) -> Vec<u8> {
        self.encode()
    }

    fn decode_query(parameters: &P, _role: Role, bytes: &[u8]) -> Result<Self> {
        M::decode(parameters, bytes)
    }
}

/// The query type of a server's or client's scheme.
pub type QueryOf<T> = <<T as SchemeOf>::Scheme as Scheme>::Query;
/// The answer type of a server's or client's scheme.
pub type AnswerOf<T> = <<T as SchemeOf>::Scheme as Scheme>::Answer;
/// The parameter type of a server's or client's scheme.
pub type ParametersOf<T> = <<T as SchemeOf>::Scheme as Scheme>::Parameters;

/// Which scheme a server or client belongs to.
pub trait SchemeOf {
    /// The scheme.
    type Scheme: Scheme;
}

/// A server: it holds one table in one epoch. Threads share it, and it does not change.
pub trait Answerer: SchemeOf + Sized + Send + Sync {
    /// Whether several queries cost less in one pass than one by one. If so, it pays to wait for
    /// more queries.
    const SHARES_PASSES: bool;

    /// The parameters it answers under.
    fn parameters(&self) -> &ParametersOf<Self>;

    /// Answers several queries, of different clients or one, in one pass over the table: answer `k`
    /// belongs to query `k`. The work depends on their number alone.
    fn answer(&self, role: Role, queries: &[QueryOf<Self>]) -> Vec<AnswerOf<Self>>;

    /// Memory held for answering, padding included, in bytes: that of [`held`](Self::held), and of
    /// whatever else there is.
    fn resident_bytes(&self) -> u64 {
        self.held().iter().map(|bytes| bytes.len() as u64).sum()
    }

    /// How much of the table's memory the system backs with huge pages, if it says.
    fn huge_page_bytes(&self) -> Option<u64>;

    /// All bytes that answers are computed from: those of the table, and those that were computed
    /// from it. They may lie anywhere, in any order. They never change. So a caller that notes
    /// their digest can check later whether the memory, or a mapped file, still holds the same
    /// bytes.
    fn held(&self) -> Vec<&[u8]>;

    /// Checks that the bytes that lie in a file are still those that the server was made of, as far
    /// as the system can say at once. Answers from before the file changed are right.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted), with the file's name, if somebody has
    /// written to it or cut it short: answers since then may be wrong.
    fn check_held(&self) -> Result<()> {
        Ok(())
    }

    /// The reply to a request for hints, if clients [ask](Asked) this server for them. May take a
    /// long time. Work and size are the same for all requests.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if there are no such requests,
    /// or not for this role, or the request does not parse;
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
    fn reply(&self, _role: Role, _request: &[u8]) -> Result<Vec<u8>> {
        Err(nothing_to_ask())
    }

    /// The table in the order in which clients stream it, if that is the scheme's own.
    fn streamed(&self) -> Option<&[u8]> {
        None
    }

    /// What clients download, as [`Precomputed::hint`] has it, if the server holds it. A
    /// [successor](Self::successor) whose clients download something must, because nobody else has
    /// it.
    fn announced(&self) -> Option<&[u8]> {
        None
    }

    /// What the server keeps of its [`Setup`], as [`Precomputed::kept`] had it, so that another
    /// start need not compute it. `None`: it cannot be had from the server.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
    fn kept(&self) -> Result<Option<PublicWords>> {
        Ok(None)
    }

    /// The server of `table`, which is this server's table after `changes`. This server goes on
    /// answering meanwhile, so both exist until clients have moved to the next version. With the
    /// successor comes what its clients must know of the new commitments (empty if there are
    /// none), which is the same on every server that has the same table. `parameters` are those of
    /// the successor. `None`: a start from the table is the only way, or the cheaper one. `threads`
    /// threads share the work.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the changes do not lead from this
    /// server's table to one of the shape of `table` and `parameters`;
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
    fn successor(
        &self,
        _parameters: ParametersOf<Self>,
        _table: TableSource<'_>,
        _changes: &TableChanges,
        _threads: usize,
    ) -> Result<Option<(Self, Vec<u8>)>> {
        Ok(None)
    }
}

/// A server that is starting: it holds the table, and does the long computation on it once. The
/// result follows from table and parameters alone. So it may be kept in a file and read back at the
/// next start.
pub trait Setup: Send + Sync {
    /// The finished server.
    type Server: Answerer;

    /// Size of what the server itself needs of the result, in bytes.
    fn kept_len(&self) -> u64;

    /// The long part of a server's start. `progress` is called with the share done, from 0 to 1.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
    fn precompute(&self, progress: &(dyn Fn(f64) + Sync)) -> Result<Precomputed>;

    /// The server. `kept` is [`Precomputed::kept`], just computed or read back.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if `kept` is not of the prescribed size,
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
    fn finish(self, kept: &[u8]) -> Result<Self::Server>;
}

/// A client whose queries need no state beyond the (public, reusable) hint: it may have any number
/// in flight, lose any and repeat any.
pub trait StatelessClient: SchemeOf {
    /// What the client keeps between query and answer. Secret.
    type Pending: Send + 'static;

    /// One query for each server. Fresh coins every time: two queries for one index have nothing in
    /// common.
    fn query(
        &self,
        index: &RecordIndex,
        rng: &mut SecretRng,
    ) -> Result<(Vec<QueryOf<Self>>, Self::Pending)>;

    /// The record, from one answer of each server in order.
    ///
    /// # Errors
    /// If the hint cannot be read or the answers cannot belong to the query. What a server sees
    /// never depends on that.
    fn recover(&self, pending: Self::Pending, answers: &[AnswerOf<Self>]) -> Result<Record>;
}

/// A client that makes most of a query before it knows the index: a *blank*. Making a blank takes
/// long, filling it in does not.
pub trait Ahead: StatelessClient {
    /// All of a query but its index, with what reading the answer needs. Secret, and good for one
    /// query: the difference of two queries from one blank would say what both ask for. So it is
    /// consumed, and only rehearsals copy it.
    type Blank: Send + 'static;

    /// Makes blanks, on any thread.
    fn blank_maker(&self) -> impl Fn(&mut SecretRng) -> Self::Blank + Send + Sync + 'static;

    /// The same blank once more, for a rehearsal, whose queries are never sent.
    fn copy_to_rehearse(blank: &Self::Blank) -> Self::Blank;

    /// The query for `index`, as [`query`](StatelessClient::query) makes it.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the blank has another size than
    /// queries here.
    fn fill(
        &self,
        blank: Self::Blank,
        index: &RecordIndex,
    ) -> Result<(Vec<QueryOf<Self>>, Self::Pending)>;
}

/// A client that received the whole table and kept it: its lookups need no server.
pub trait LocalClient: SchemeOf {
    /// The record.
    ///
    /// # Errors
    /// If the table cannot be read where it is kept.
    fn record(&self, index: &RecordIndex) -> Result<Record>;
}

/// A client whose hints are secret and may serve one query each.
///
/// Its hints come in *generations*: each is prepared from the whole table by a [`Preparation`],
/// serves a fixed number of queries, and is replaced by the next. Within a generation the state
/// changes only by [`apply`](Self::apply), and every change is a journal record. So the client
/// restores its state after a crash: it takes the generation as it was prepared, and applies all
/// changes again. Types enforce the order *reserve, commit, send*: see
/// [`reservation`](crate::reservation).
///
/// **A reservation fixes everything that later queries depend on.** An answer
/// ([`settle`](Self::settle)) completes the values of hints, never the choice among them. So what
/// the client sends does not depend on any answer, nor on whether there was one.
pub trait HintedClient: SchemeOf + Sized {
    /// A client with the hints of one generation, as [`Preparation::generation`] encoded them.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if they are not of the prescribed form.
    fn load(
        parameters: ParametersOf<Self>,
        generation: Zeroizing<Vec<u8>>,
        kernels: Kernels,
    ) -> Result<Self>;

    /// The parameters of the table as it is now.
    fn parameters(&self) -> &ParametersOf<Self>;

    /// Chooses a hint for `index` and fixes everything that will be sent, without changing the
    /// state.
    ///
    /// # Errors
    /// [`Blame::Exhausted`](privet_core::Blame::Exhausted) if the generation has served all its
    /// queries; never a weaker query.
    fn reserve(&self, index: &RecordIndex, rng: &mut SecretRng) -> Result<Reserved<QueryOf<Self>>>;

    /// Applies one state change, of [`reserve`](Self::reserve) or [`settle`](Self::settle).
    /// Deterministic: the same changes in the same order give the same state.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if `change` does not fit this state. If
    /// it is an update of the table that makes no sense, the error with which the update is
    /// refused. The state is then unchanged.
    fn apply(&mut self, change: &[u8]) -> Result<()>;

    /// The state change that the answers to a reservation's queries bring. There is one answer of
    /// each server, in order.
    ///
    /// # Errors
    /// If the reservation is not open, or the answers cannot belong to it.
    fn settle(&self, id: ReservationId, answers: &[AnswerOf<Self>]) -> Result<Zeroizing<Vec<u8>>>;

    /// The record that a settled reservation was for, once. `None`: the record is not known yet,
    /// because the hint that was used waits for the answer of another reservation, one of
    /// [`open`](Self::open).
    ///
    /// # Errors
    /// [`Blame::Exhausted`](privet_core::Blame::Exhausted) if no hint contained the record (which
    /// has a probability below e^-40) and the query that was sent was a cover.
    fn take_record(&mut self, id: ReservationId) -> Option<Result<Record>>;

    /// The reservations that have not been settled, oldest first. After a crash their queries are
    /// sent again.
    fn open(&self) -> Vec<ReservationId>;

    /// How many queries the generation has served, and serves in all.
    fn supply(&self) -> Supply;

    /// Whether every record waits for the answers to all earlier queries. If so, a session asks
    /// again for an answer that did not come: without it, no later lookup could succeed.
    fn waits_for_all_answers(&self) -> bool {
        false
    }

    /// The number that the work of the next lookup is proportional to, in a unit of the client's
    /// own, such as the number of hints that it searches. It follows from the number of lookups so
    /// far, and is public. 1: the work does not grow.
    fn search_len(&self) -> u64 {
        1
    }

    /// Whether the hints can follow edits that lead to a table of shape `after`. If not, they stay
    /// good for the table before the edits, and the client prepares others for the new one.
    fn follows(&self, after: TableShape) -> bool;

    /// The state change that a public delta brings: for the journal and [`apply`](Self::apply),
    /// like any other. After it, the hints are those of the table after the delta.
    ///
    /// A delta does not say which version of the table it begins with. A delta that is applied
    /// twice makes hints wrong, and no verification notices, because the commitments are right. So
    /// the registry's client keeps [the version of its
    /// hints](crate::registry::ErasedHints::table) beside them, and every change to another version
    /// records it. It refuses a delta that begins at another version.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) while a reservation is open (its answer
    /// belongs to the table before the delta), or if the delta is for a table of another shape, or
    /// leads to one to which the hints do not [follow](Self::follows).
    fn delta_change(&self, delta: &TableDelta) -> Result<Zeroizing<Vec<u8>>>;

    /// Settles a lookup with answers that no server gave, for a
    /// [rehearsal](crate::registry::Rehearsal).
    ///
    /// # Errors
    /// As [`settle`](Self::settle).
    fn settle_rehearsed(&mut self, id: ReservationId, answers: &[AnswerOf<Self>]) -> Result<()> {
        let change = self.settle(id, answers)?;
        self.apply(&change)
    }

    /// Whether hints never run out, because every query brings a replacement for the hint that it
    /// used. A generation still serves a fixed number of queries, so that its journal does not grow
    /// without end. When all of them are made and answered, the client
    /// [writes its state down](Self::condense) as the next generation, and asks no server for that.
    const ENDLESS: bool = false;

    /// The present state of an [endless](Self::ENDLESS) client, encoded as a generation: a client
    /// that [loads](Self::load) it continues from this state. Secret.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if hints run out, the generation is not
    /// used up or a reservation is open. Before that, a query could still be made through a hint
    /// that the next generation holds as well.
    fn condense(&self) -> Result<Zeroizing<Vec<u8>>> {
        Err(Error::api_misuse("hints that run out are prepared anew, not condensed"))
    }

    /// Whether the client checks every record of every answer, before it uses any of them, against
    /// commitments to the table on which the servers had agreed.
    ///
    /// **The first wrong answer ends it for good**: [`settle`](Self::settle) then returns a change
    /// after which the client never makes a query again, and [`take_record`](Self::take_record)
    /// returns an error, [`Blame::Integrity`](privet_core::Blame::Integrity). Whether that happens
    /// does not depend on which record was wanted, so a server that lies learns nothing from it. (A
    /// client that checked only what it needs would show the server something: this is the
    /// selective failure attack.)
    ///
    /// Queries go strictly one after the other: the client makes none while another is not settled.
    fn verifies(&self) -> bool {
        self.disagreement().is_some()
    }

    /// The state change that ends a client that [verifies](Self::verifies), because servers sent
    /// different updates of the table.
    fn disagreement(&self) -> Option<Zeroizing<Vec<u8>>> {
        None
    }

    /// Why a client that [verifies](Self::verifies) will make no more queries:
    /// [`Blame::Integrity`](privet_core::Blame::Integrity). It stays so after every restart.
    fn ended(&self) -> Option<Error> {
        None
    }
}

/// A scheme whose clients can patch what they downloaded when the table is edited, instead of
/// downloading it again. Its servers patch what they announce in the same way.
pub trait PatchedDownload: Offline {
    /// Whether what was downloaded under `before` can become what `after` prescribes.
    fn patches(before: &Self::Parameters, after: &Self::Parameters) -> bool;

    /// Writes the whole download that `after` prescribes to `sink`, in order and in pieces of at
    /// most about a MiB. It makes it from the download under `before` and the changes since. Memory
    /// is bounded by the changes and a piece.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if no patch is possible
    /// ([`patches`](Self::patches)), or if the changes are between other tables;
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if `part` is not of the size that
    /// `before` prescribes; and the errors of `part` and `sink`.
    fn patch(
        before: &Self::Parameters,
        after: &Self::Parameters,
        changes: &TableChanges,
        part: &dyn HintSource,
        kernels: Kernels,
        sink: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()>;
}

/// Turns the data of the offline phase (the table streamed once, or a server's replies) into a
/// generation of hints.
pub trait Preparation: SchemeOf + StreamConsumer + Sized {
    /// Begins a generation with fresh secrets. Returns quickly.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
    fn begin(
        parameters: ParametersOf<Self>,
        records_digest: [u8; 32],
        rng: &mut SecretRng,
        kernels: Kernels,
    ) -> Result<Self>;

    /// Goes on from a [`checkpoint`](Self::checkpoint).
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it is not of the prescribed form.
    fn resume(
        parameters: ParametersOf<Self>,
        records_digest: [u8; 32],
        checkpoint: &[u8],
        kernels: Kernels,
    ) -> Result<Self>;

    /// Everything that is needed to go on from [`checkpoint_offset`](Self::checkpoint_offset).
    /// Secret.
    fn checkpoint(&self) -> Zeroizing<Vec<u8>>;

    /// The offset at which a checkpoint taken now would go on: at most
    /// [`next_offset`](StreamConsumer::next_offset), because a checkpoint leaves out an incomplete
    /// group of partitions.
    fn checkpoint_offset(&self) -> u64;

    /// The generation, for [`HintedClient::load`]. Secret.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) before
    /// [`finish`](StreamConsumer::finish) has succeeded.
    fn generation(&self) -> Result<Zeroizing<Vec<u8>>>;

    /// If the client [asks](Asked) a server: the request whose whole reply is to be absorbed at
    /// [`next_offset`](StreamConsumer::next_offset), and `None` once nothing is left to ask. It
    /// stays the same until then. The stream that is absorbed is the replies, one after the other.
    /// Secret.
    fn next_request(&mut self) -> Option<Zeroizing<Vec<u8>>> {
        None
    }
}

/// A scheme in which one server computes hints for a client, from a secret that this server may
/// learn and the others must not.
pub trait Asked: Offline {
    /// The server that computes the hints.
    const ASKED: Role;
    /// What the client sends to it.
    type Request: Message<Self::Parameters>;
    /// What it replies.
    type Reply: Message<Self::Parameters>;
}

/// Numbers the reservations of one generation, from 0 in the order in which they were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReservationId(pub u64);

/// How far a generation of single-use hints is used up. Public: it is the number of queries that
/// the server has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supply {
    /// Queries reserved so far.
    pub used: u64,
    /// Queries in all.
    pub total: u64,
}

impl Supply {
    /// Queries left.
    pub fn left(self) -> u64 {
        self.total.saturating_sub(self.used)
    }
}

/// What [`HintedClient::reserve`] fixes: the state change and one query for each server. Other
/// crates cannot read the queries here: only a [`Reservation`](crate::reservation::Reservation)
/// gives them out.
pub struct Reserved<Query> {
    /// Its number: the number of reservations made before in this generation.
    pub id: ReservationId,
    /// The state change that takes the chosen hint out of use and puts its successor in its place.
    pub change: Zeroizing<Vec<u8>>,
    /// One query for each server.
    pub(crate) queries: Vec<Query>,
}

impl<Query> Reserved<Query> {
    /// What a client fixed, with one query for each server.
    pub fn new(id: ReservationId, change: Zeroizing<Vec<u8>>, queries: Vec<Query>) -> Self {
        Self { id, change, queries }
    }

    /// The same with its queries encoded.
    pub(crate) fn encoded(self, encode: impl Fn(&Query) -> Vec<u8>) -> Reserved<Vec<u8>> {
        let queries = self.queries.iter().map(encode).collect();
        Reserved { id: self.id, change: self.change, queries }
    }
}

/// What a scheme's client receives before the first query.
pub trait Offline: Scheme {
    /// What has to flow, and how much of it: perhaps nothing.
    fn offline_phase(parameters: &Self::Parameters) -> OfflinePhase;
}

/// A public seed for one table and one purpose. Nobody chooses it; both sides compute it. It stays
/// the same from epoch to epoch, so that clients can patch hints instead of fetching them again.
pub fn table_seed(purpose: &'static str, identity: &TableIdentity) -> PublicSeed {
    PublicSeed::derive(purpose, &identity.id.0)
}
