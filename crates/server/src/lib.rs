//! The Privet server: holds tables, answers queries about them without learning which records they
//! ask for, and stays up.
//!
//! The cryptography is elsewhere ([`privet_schemes`]), and so are the messages ([`privet_wire`]).
//! What is here is the work around one line,
//! [`ErasedServer::answer`](privet_schemes::registry::ErasedServer::answer) (and, for schemes that
//! have it, [`prepare`](privet_schemes::registry::ErasedServer::prepare)): to have the table ready,
//! with its hint and whatever else the scheme computes from it, to bring many queries to one pass
//! over the table, to bound what any client can make the server hold, and to stop without dropping
//! a query half answered.
//!
//! ```text
//!            ┌ connections ─ admission ─ service ─┬─ Describe
//! clients ───┤  cap, TLS,     slots,     checks    ├─ Fetch ─── fetch: bounded chunks of a layout, hint or table
//!            └  idle limits   deadline,            ├─ Prepare ─ preparations: turns ─ hints for one client
//!                             counting             └─ Answer ── batch: queue ─ one pass for many queries
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`] | [`ServerConfig`]: every knob, its default and the reason |
//! | [`table`] | [`ServedTable`]: what is to be served, [`RecordSource`], where its records lie, and [`SetupSource`], where what was computed from them lies, if it was |
//! | [`running`] | [`Server::start`] and [`RunningServer`]: start, wait, stop |
//! | [`updates`] | [`NextVersion`]: what becomes of a table while it is served, and the [epochs](UpdateFeed) that say so |
//! | [`updating`] | [`TableUpdates`]: has a next version take the place of the one before, and retires that after a while |
//! | `hosted` | tables made ready, in each version that is served: the scheme's server, the parts to fetch, the hint (and what the server keeps) from cache, patched or computed |
//! | `scrub` | reading again, all the time, what is answered from: is it still what it was? |
//! | `hint_cache` | the files in which what was precomputed survives a restart |
//! | `connections` | accepting, TLS, the connection cap, idle limits |
//! | `admission` | slots, deadlines and load shedding for requests; counts what passes |
//! | `service` | the four methods: is this about a table that is served, in a version that is, under its parameters? |
//! | `fetch` | streams that read no further ahead than a bound |
//! | `secret_bytes` | what a client sent, erased after use |
//! | `preparations` | turns to compute hints for one client |
//! | `batch` | the queue in front of the compute thread |
//! | `observe` | metrics, and the HTTP endpoint that shows them |
//!
//! # Schemes of one server, of two, and of none to ask
//!
//! What a scheme's clients fetch first and whom they ask is the scheme's own matter, and this crate
//! serves all of them alike:
//!
//! | clients | the server |
//! |---|---|
//! | download a hint | computes it at the first start and serves it from the cache's file; what it keeps for itself lies in the same file |
//! | receive the table, to make hints from it or to keep it | announces the digest of the records, once they are found to be the table's, and streams them from where they lie |
//! | receive the table in an order of the scheme's own | announces the digest of the table as the scheme's server holds it, and streams it from that memory |
//! | ask for hints of their own | computes them for each client anew, on request and in the one role that may know the client's secret; everything of the request is erased afterwards |
//! | ask servers that answer from points of the table | computes the points at each start, or takes those of a file that were computed once: read into memory, or left there and mapped |
//! | ask two servers | runs twice, in two places, as the same program; each request says which of the two it is asked to be, and roles never share a pass |
//! | keep the table and ask nobody | refuses every query: a client that sends one gives away what it looks for |
//!
//! # Tables that change
//!
//! A table is served in several versions side by side: the current one, and for a [grace
//! period](ServerConfig::grace) those before it. Every message says which version it is about, so a
//! switch-over costs no request anything: what was begun with one version is finished with it.
//! Clients that want to move on fetch the signed epochs that lead from the version that they have
//! to one that is served; from these, each brings its own state up to date.
//!
//! What a version holds, it holds alone: its scheme's server, its records and its hint. While a
//! table changes the server so needs the memory for it as many times as versions are served, and
//! once more for the one in the making.
//!
//! # What one client can make the server hold
//!
//! | by | at most |
//! |---|---|
//! | connecting | [`max_connections`](ServerConfig::max_connections), each with a window of 1 MiB; the silent ones are closed |
//! | asking | [`max_concurrent_requests`](ServerConfig::max_concurrent_requests) requests no longer than the longest valid one, and as many answers, each within [`request_deadline`](ServerConfig::request_deadline) |
//! | fetching | [`max_concurrent_fetches`](ServerConfig::max_concurrent_fetches) streams of three chunks each |
//! | asking for hints | [`max_preparations`](ServerConfig::max_preparations) requests and as many replies, of which [`preparations_at_once`](ServerConfig::preparations_at_once) are computed at a time, each within [`preparation_deadline`](ServerConfig::preparation_deadline) |
//! | not reading | [`stall_limit`](ServerConfig::stall_limit), then its connection is closed |
//!
//! # What is observed
//!
//! Logs and metrics hold sizes, counts, durations and statuses: all of them follow from public
//! parameters and from when a client asks. Query content is never logged; the index that a query is
//! about is nowhere in this process to be logged.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod admission;
mod batch;
pub mod config;
mod connections;
mod fetch;
mod hint_cache;
mod hosted;
mod observe;
mod preparations;
pub mod running;
mod scrub;
mod secret_bytes;
mod service;
pub mod table;
pub mod updates;
pub mod updating;

pub use config::{Progress, ProgressListener, QueryObserver, ServerConfig, TlsFiles};
pub use hosted::{HintOrigin, ReadyTable};
pub use running::{RunningServer, Server, ShutdownHandle};
pub use table::{RecordSource, ServedTable, SetupSource};
pub use updates::{CheckedBytes, EpochSource, NextVersion, UpdateFeed, VersionStep};
pub use updating::TableUpdates;
