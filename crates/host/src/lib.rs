//! Tables served from files: opened, handed to a server, and followed when their files change.
//!
//! [`privet_server`] serves tables wherever they lie, and [`privet_table`] reads and writes files.
//! This crate puts the two together: a server of table files, without arguments and printing.
//!
//! | module | what it holds |
//! |---|---|
//! | [`table_file`] | [`TableFile`]: which file is served, and how; what a server takes of it |
//! | [`followed`] | [`FollowedTable`]: what becomes of a table file and its update log |
//! | [`watch`] | [`Watching`](watch::Watching): looks into the files, and has a server follow |
//! | [`points`] | tables served from points that were computed before, in a file of their own |
//! | [`memory`] | how much memory there is for all that |
//!
//! # A server of one table
//!
//! ```no_run
//! use privet_host::TableFile;
//! use privet_host::watch::{Hangups, Watching};
//! use privet_server::{Server, ServerConfig};
//! use std::time::Duration;
//!
//! # async fn serve() -> privet_core::Result<()> {
//! let (table, followed) = TableFile::new("capitals", "capitals.privet").open()?;
//! let config = ServerConfig::new(([127, 0, 0, 1], 7700).into());
//! let server = Server::start(config, vec![table]).await?;
//!
//! // The files are looked at once a second, until this is dropped.
//! let (updates, second) = (server.table_updates(), Duration::from_secs(1));
//! let watching = Watching::start(vec![followed], updates, second, Hangups::ignored());
//!
//! println!("listening at http://{}", server.local_addr());
//! server.wait().await?;
//! drop(watching);
//! # Ok(())
//! # }
//! ```
//!
//! # Whose fault
//!
//! Each error says who is at fault ([`Blame`](privet_core::Blame)) and, where it is about a file,
//! which.
//!
//! | blame | what happened |
//! |---|---|
//! | `ApiMisuse` | a file is missing or of another kind, or was not made for this table |
//! | `Corrupted` | a file is damaged, or was written to while it was open |
//! | `Integrity` | a log is another publisher's, or has another history than what is served |
//! | `Unavailable` | memory, a log that was there, or help of the system is missing: try again |

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod followed;
pub mod memory;
pub mod points;
pub mod table_file;
pub mod watch;

pub use followed::FollowedTable;
pub use table_file::TableFile;
