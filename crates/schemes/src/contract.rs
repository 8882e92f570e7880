//! The contract between schemes and the rest of the house.
//!
//! Schemes differ in the number of servers, in what the client keeps, in how the offline phase flows and in what the server can prove.
//! Each difference is a small trait of its own, and a scheme implements the ones it has, never an empty one:
//!
//! | trait | has it | gist |
//! |---|---|---|
//! | [`Scheme`] | all | name, number of servers, parameters, messages |
//! | [`Answerer`] | every server | answers a batch of queries, purely, on an immutable table |
//! | [`StatelessClient`] | clients that may repeat, lose and forget queries | any number of queries in flight |
//! | [`HintedClient`] | clients whose hints are secret and serve once | reserve a hint, commit the change, then send |
//! | [`Offline`] | schemes with a hint | what has to flow before the first query |
//!
//! Capabilities still to come (patching a hint from a delta, verifying an answer) get traits of their own when a scheme has them.

use crate::SchemeId;
use crate::offline::OfflinePhase;
use privet_core::{PublicSeed, RecordIndex, Result, SecretRng, TableIdentity};
use zeroize::Zeroizing;

/// A record as it came back: its bytes tell which record was wanted, so they are erased when dropped.
pub type Record = Zeroizing<Vec<u8>>;

/// Which of a scheme's servers: 0 for the only one, 0 or 1 of two, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Role(pub u8);

/// What every scheme has: a name, a number of servers, and the types of what crosses the wire.
pub trait Scheme {
    /// The scheme's name.
    const ID: SchemeId;
    /// How many servers take part in one query.
    const SERVERS: usize;
    /// Public parameters, fixed by the table and by what its server announces.
    type Parameters: Parameters;
    /// What goes to one server.
    type Query: Message<Self::Parameters>;
    /// What one server sends back.
    type Answer: Message<Self::Parameters>;
}

/// Parameters of a scheme for one table. A value of such a type is valid and reaches the security target: there is no way to construct another.
pub trait Parameters: Sized + Send + Sync {
    /// The canonical encoding, without what the table's identity already says.
    fn encode(&self) -> Vec<u8>;

    /// Reads what a server announced for the table `identity`.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if it does not parse,
    /// [`Blame::PeerMisbehaved`](privet_core::Blame::PeerMisbehaved) if it does, but is inconsistent with the table or below the security target.
    fn decode(identity: &TableIdentity, bytes: &[u8]) -> Result<Self>;
}

/// A message with a canonical little-endian encoding whose size follows from the parameters alone, never from a secret.
pub trait Message<P>: Sized + Send {
    /// The exact size of every encoding under `parameters`, in bytes.
    fn encoded_len(parameters: &P) -> usize;

    /// The encoding.
    fn encode(&self) -> Vec<u8>;

    /// Parses bytes from outside.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) unless `bytes` is exactly one valid encoding.
    fn decode(parameters: &P, bytes: &[u8]) -> Result<Self>;
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

/// A server: it holds one table in one epoch, never changes, and is shared by threads.
pub trait Answerer: SchemeOf + Send + Sync {
    /// The parameters it answers under.
    fn parameters(&self) -> &ParametersOf<Self>;

    /// Answers several queries, of different clients or one, in one pass over the table: answer `k` belongs to query `k`. The work depends on their number
    /// alone.
    fn answer(&self, role: Role, queries: &[QueryOf<Self>]) -> Vec<AnswerOf<Self>>;
}

/// A client whose queries need no state beyond the (public, reusable) hint: it may have any number in flight, lose any and repeat any.
pub trait StatelessClient: SchemeOf {
    /// What the client keeps between query and answer. Secret.
    type Pending: Send + 'static;

    /// One query for each server. Fresh coins every time: two queries for one index have nothing in common.
    fn query(
        &self,
        index: &RecordIndex,
        rng: &mut SecretRng,
    ) -> Result<(Vec<QueryOf<Self>>, Self::Pending)>;

    /// The record, from one answer of each server in order.
    ///
    /// # Errors
    /// If the hint cannot be read or the answers cannot belong to the query. What a server sees never depends on that.
    fn recover(&self, pending: Self::Pending, answers: &[AnswerOf<Self>]) -> Result<Record>;
}

/// A client whose hints are secret and may serve one query each.
///
/// Its state changes only by [`apply`](Self::apply), and every change is a journal record, so that the state after a crash is the state before, replayed.
/// The order *reserve, commit, send* is kept by types: see [`reservation`](crate::reservation).
pub trait HintedClient: SchemeOf {
    /// What the client keeps between query and answer. Secret.
    type Pending: Send + 'static;

    /// Chooses a hint for `index` and fixes everything that will be sent, without changing the state.
    ///
    /// # Errors
    /// [`Blame::Exhausted`](privet_core::Blame::Exhausted) if no usable hint is left; never a weaker query.
    fn reserve(
        &self,
        index: &RecordIndex,
        rng: &mut SecretRng,
    ) -> Result<Reserved<QueryOf<Self>, Self::Pending>>;

    /// Applies one state change. Deterministic: the same changes in the same order give the same state.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if `change` is none of its own.
    fn apply(&mut self, change: &[u8]) -> Result<()>;

    /// The record, and the state change that completes the query (a hint refreshed by the answer, say), to be committed and applied in turn.
    fn recover(
        &self,
        pending: Self::Pending,
        answers: &[AnswerOf<Self>],
    ) -> Result<(Record, Vec<u8>)>;
}

/// What [`HintedClient::reserve`] fixes: the state change, one query for each server, and what recovering will need.
pub struct Reserved<Query, Pending> {
    /// The state change that retires the chosen hint.
    pub change: Vec<u8>,
    /// One query for each server.
    pub queries: Vec<Query>,
    /// What recovering will need.
    pub pending: Pending,
}

/// A scheme whose client needs something from the server before the first query.
pub trait Offline: Scheme {
    /// What has to flow, and how much of it.
    fn offline_phase(parameters: &Self::Parameters) -> OfflinePhase;
}

/// A public seed that belongs to one table and one purpose: nobody chooses it, and both sides compute it alike. It stays the same through the
/// table's epochs, so that hints can be patched instead of fetched again.
pub fn table_seed(purpose: &'static str, identity: &TableIdentity) -> PublicSeed {
    PublicSeed::derive(purpose, &identity.id.0)
}
