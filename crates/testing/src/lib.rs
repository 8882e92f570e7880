//! What a server could see of a client, measured outside the client, on its connection.
//!
//! A [`Relay`] stands between a client and its server, passes all bytes on, and records what the
//! client sends: how much, in which order, and when. The client can be any program in any language.
//! [`observe`] runs a command in that way, with a reader of its output that reads in a certain
//! [`Reading`], or not at all. [`differences`] says how two records differ.
//!
//! The lines must not be encrypted, so that the frames of HTTP/2 and the messages of gRPC can be
//! told apart. How bytes are cut into segments differs from run to run and says nothing; how many
//! messages there are, how long each is and when it left is what a server sees.
//!
//! The program of this crate does the same for a command that is typed:
//!
//! ```text
//! privet-testing --server 127.0.0.1:7700 --reading all --reading first-line -- \
//!     privet get {url} --keys-from keys
//! ```

mod compare;
mod http2;
mod observe;
mod record;
mod relay;

pub use compare::{Margins, differences};
pub use observe::{Observed, Reading, observe, read};
pub use record::{Connection, Frame, Message, Record};
pub use relay::Relay;
