//! The Privet server: holds tables, answers queries about them without learning which records they
//! ask for, and keeps running.
//!
//! The cryptography is elsewhere ([`privet_schemes`]), and so are the messages ([`privet_wire`]).
//! This crate does the work around one line,
//! [`ErasedServer::answer`](privet_schemes::registry::ErasedServer::answer) (and, for schemes that
//! have it, [`prepare`](privet_schemes::registry::ErasedServer::prepare)). It makes the table
//! ready, with its hint and whatever else the scheme computes from it. It brings many queries to
//! one pass over the table. It bounds what any client can make the server hold. And it stops
//! without dropping a query that is being answered.
//!
//! ```text
//!            ┌ connections ─ admission ─ service ─┬─ Describe
//! clients ───┤  caps, TLS,    places,    checks    ├─ Fetch ─── fetch: bounded chunks of a layout, hint or table
//!            └  idle limits   deadlines,           ├─ Prepare ─ preparations: turns ─ hints for one client
//!                             counting             └─ Answer ── batch: queue ─ one pass for many queries
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`] | [`ServerConfig`]: all settings, their defaults and the reasons |
//! | [`limits`] | [`Limits`]: what clients may make the server hold, and for how long |
//! | [`table`] | [`ServedTable`]: a table to be served, [`RecordSource`]: its records, and [`SetupSource`]: a server of data that was precomputed from them |
//! | [`running`] | [`Server::start`] and [`RunningServer`]: start, wait, stop |
//! | [`updates`] | [`NextVersion`]: how a served table changes, and the [epochs](UpdateFeed) that say so |
//! | [`updating`] | [`TableUpdates`]: replaces the current version by the next, and retires the earlier one after a while |
//! | `hosted` | tables that are ready, in each served version: the scheme's server, the parts to fetch, the hint (and what the server keeps) from cache, patched or computed |
//! | `scrub` | reads served data again, all the time, and checks that it is unchanged |
//! | `hint_cache` | the files that keep precomputed data across a restart |
//! | `grpc` | what is spoken with clients |
//! | [`web`] | what is spoken with pages in browsers |
//! | `connections` | accepting, TLS, idle limits; a word for those who speak something else |
//! | `descriptors` | enough open files for all connections |
//! | `admission` | places for connections and requests, and who loses one; deadlines; counts what passes |
//! | `service` | the four methods: is this about a served table, in a served version, under its parameters? |
//! | `fetch` | streams that read ahead no further than a bound |
//! | `secret_bytes` | clients' messages, erased after use |
//! | `preparations` | turns to compute hints for one client |
//! | `batch` | where queries become answers: at once, or from the queue in front of the compute threads |
//! | `observe` | metrics, health, the HTTP endpoint that shows both, and probes by gRPC |
//!
//! # Schemes with one server, with two, and with none
//!
//! What clients fetch first and which servers they ask depends on the scheme. This crate serves all
//! of them:
//!
//! | clients | the server |
//! |---|---|
//! | download a hint | computes it at the first start and serves it from the cache's file; the same file holds what the server keeps for itself |
//! | receive the table, to make hints from it or to keep it | announces the digest of the records, once they are found to be the table's, and streams them from their source |
//! | receive the table in an order of the scheme's own | announces the digest of the table as the scheme's server holds it, and streams it from that memory |
//! | ask for hints of their own | computes them for each client anew, on request and only in the role that may know the client's secret; erases the request afterwards |
//! | ask servers that answer from points of the table | computes the points at each start, or takes precomputed ones from a file: reads them into memory, or maps the file |
//! | ask two servers | runs twice, in two places, as the same program; each request says which of the two roles it is for, and roles never share a pass |
//! | keep the table and ask no server | refuses every query: a client that sends one reveals what it looks for |
//!
//! # Tables that change
//!
//! A table is served in several versions side by side: the current one, and for a [grace
//! period](ServerConfig::grace) the earlier ones. Every message says which version it is about, so
//! a switch-over costs no request anything: a client finishes with one version what it began with
//! it. Clients that want to move on fetch the signed epochs from their version to a served one, and
//! bring their own state up to date from these.
//!
//! Versions share no memory: each has its own scheme's server, records and hint. So while a table
//! changes, the server needs this memory once for each served version, and once more for the
//! version that is being made.
//!
//! # What clients can make the server hold
//!
//! | by | at most |
//! |---|---|
//! | connecting | [`connections`](Limits::connections); silent ones are closed |
//! | sending | [`bodies`](Limits::bodies) requests that have not arrived, no longer than the longest valid one and with [`body_bytes`](Limits::body_bytes) together, each for [`body_deadline`](Limits::body_deadline); besides them a window of 1 MiB for each connection |
//! | asking | [`answers`](Limits::answers) requests, and as many answers, each within [`request_deadline`](Limits::request_deadline) |
//! | fetching | [`fetches`](Limits::fetches) streams of three chunks each |
//! | asking for hints | [`preparations`](Limits::preparations) requests and as many replies, at most [`preparations_at_once`](ServerConfig::preparations_at_once) of them being computed at a time, each within [`preparation_deadline`](Limits::preparation_deadline) |
//! | reading slowly | [`stall_limit`](Limits::stall_limit), then its connection is closed |
//!
//! One address can hold a quarter of each. When all places of a kind are taken, the address that
//! holds most of them loses one to the next client.
//!
//! # What is observed
//!
//! Logs and metrics hold sizes, counts, durations and statuses. All of them follow from public
//! parameters and from when a client asks. Query content is never logged, and the index that a
//! query is about does not exist in this process.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod admission;
mod batch;
pub mod config;
mod connections;
mod descriptors;
mod fetch;
mod grpc;
mod hint_cache;
mod hosted;
pub mod limits;
mod observe;
mod preparations;
pub mod running;
mod scrub;
mod secret_bytes;
mod seldom;
mod service;
pub mod table;
pub mod updates;
pub mod updating;
mod vital;
pub mod web;

pub use config::{Progress, ProgressListener, QueryObserver, ServerConfig, TlsFiles};
pub use hosted::{HintOrigin, ReadyTable};
pub use limits::{Cap, Limits};
pub use privet_table::update_log::EpochSource;
pub use running::{RunningServer, Server, ShutdownHandle};
pub use table::{RecordSource, ServedTable, SetupSource};
pub use updates::{CheckedBytes, Next, NextVersion, Signing, UpdateFeed, VersionStep};
pub use updating::TableUpdates;
pub use vital::VitalGuard;
pub use web::WebOrigin;
