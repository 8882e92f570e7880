//! Errors, sorted by who is at fault.
//!
//! A reader of an error wants to know two things: whose mistake it was, and what to do now.
//! [`Blame`] answers the first, the message the second. Layers above map only the blame to a wire
//! status or an exit code.
//!
//! A message uses words that hold for every user of a library: "name the table". It names no
//! command and no flag. If a program may act on an error, or a command has a flag for it, the error
//! has a [`Reason`]. The command finds its advice by this reason.

mod reason;

pub use reason::Reason;

use std::fmt;
use std::sync::Arc;

/// The result type of every Privet crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Who is at fault for an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Blame {
    /// The caller asked for something impossible: an index beyond the table, a shape that the proof
    /// does not cover, an unknown column.
    ApiMisuse,
    /// Bytes from a peer do not parse, or are not what the parameters prescribe.
    InvalidMessage,
    /// A peer broke the protocol: a well-formed message at the wrong time, parameters below the
    /// security target.
    PeerMisbehaved,
    /// A digest, proof or pinned identity does not match: the received data must not be trusted.
    Integrity,
    /// Something is used up or full: hints, queries of a window, a size limit, a queue.
    Exhausted,
    /// A lookup failed for a reason that may depend on the wanted record. A client that reacts in a
    /// way that a server can see, such as asking again, shows that server something about the
    /// record.
    Selective,
    /// A file of our own is damaged: truncated, bit-rotted or written by something else.
    Corrupted,
    /// The other side, or a resource of this machine, is not available now. Trying again later may
    /// help.
    Unavailable,
    /// Privet itself: something happened that should never happen. A client that waits for an
    /// answer over the wire sees it as an unavailable server.
    Internal,
}

impl Blame {
    /// A stable lower-case name, for logs and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Blame::ApiMisuse => "api-misuse",
            Blame::InvalidMessage => "invalid-message",
            Blame::PeerMisbehaved => "peer-misbehaved",
            Blame::Integrity => "integrity",
            Blame::Exhausted => "exhausted",
            Blame::Selective => "selective",
            Blame::Corrupted => "corrupted",
            Blame::Unavailable => "unavailable",
            Blame::Internal => "internal",
        }
    }

    /// Whether nobody may try again: another try could show a lying server what was wanted, or
    /// what failed is damaged and stays so.
    pub fn is_final(self) -> bool {
        matches!(self, Blame::Integrity | Blame::Corrupted | Blame::Selective)
    }
}

impl fmt::Display for Blame {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// An error: who is at fault; what happened and what to do about it; a reason, if a program may act
/// on it; and the underlying cause, if any.
///
/// A program that branches on an error uses its [`blame`](Self::blame) or its
/// [`reason`](Self::reason). The message is for people, and its words may change.
///
/// A message never contains a record index, a key or query content: errors may be logged and sent
/// to a peer.
///
/// Its copies share the cause: several lookups may fail for the same reason.
#[derive(Clone)]
pub struct Error {
    blame: Blame,
    reason: Option<Reason>,
    message: String,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $blame:ident,)*) => {
        $(
            $(#[$doc])*
            pub fn $name(message: impl Into<String>) -> Self {
                Self::new(Blame::$blame, message)
            }
        )*
    };
}

impl Error {
    /// An error with the given blame and message.
    pub fn new(blame: Blame, message: impl Into<String>) -> Self {
        Self { blame, reason: None, message: message.into(), source: None }
    }

    constructors! {
        /// [`Blame::ApiMisuse`]
        api_misuse => ApiMisuse,
        /// [`Blame::InvalidMessage`]
        invalid_message => InvalidMessage,
        /// [`Blame::PeerMisbehaved`]
        peer_misbehaved => PeerMisbehaved,
        /// [`Blame::Integrity`]
        integrity => Integrity,
        /// [`Blame::Exhausted`]
        exhausted => Exhausted,
        /// [`Blame::Selective`]
        selective => Selective,
        /// [`Blame::Corrupted`]
        corrupted => Corrupted,
        /// [`Blame::Unavailable`]
        unavailable => Unavailable,
        /// [`Blame::Internal`]
        internal => Internal,
    }

    /// Sets the reason.
    #[must_use]
    pub fn because(mut self, reason: Reason) -> Self {
        self.reason = Some(reason);
        self
    }

    /// Attaches the error that caused this one.
    #[must_use]
    pub fn caused_by(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// Puts `context` and a colon before the message: `context: message`.
    #[must_use]
    pub fn within(mut self, context: impl fmt::Display) -> Self {
        self.message = format!("{context}: {}", self.message);
        self
    }

    /// Of two errors of one piece of work, the one to report: this one, unless only the `later`
    /// one [is final](Blame::is_final). Otherwise a server could hide one failure behind another.
    /// Returns the other one as well.
    pub fn by_gravity(self, later: Self) -> (Self, Self) {
        match later.blame.is_final() && !self.blame.is_final() {
            true => (later, self),
            false => (self, later),
        }
    }

    /// Who is at fault.
    pub fn blame(&self) -> Blame {
        self.blame
    }

    /// The reason, if a program may act on this error.
    pub fn reason(&self) -> Option<Reason> {
        self.reason
    }

    /// What happened and what to do, without the cause.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.message, self.blame)?;
        if let Some(source) = &self.source {
            write!(formatter, ", caused by: {source}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}
