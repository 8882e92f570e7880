//! Tables served from files: opened, handed to a server, and followed when their files change.
//!
//! [`privet_server`] serves tables from any source, and [`privet_table`] reads and writes files.
//! This crate puts the two together: a server of table files, without command-line arguments and
//! printing.
//!
//! | module | what it holds |
//! |---|---|
//! | [`table_file`] | [`TableFile`]: which file is served, and how; opens it for a server |
//! | [`followed`] | [`FollowedTable`]: finds new versions in a table file and its update log |
//! | [`watch`] | [`Watching`](watch::Watching): watches the files, and has a server follow them |
//! | [`memory`] | how much memory is available |
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
//! // Checks the files once a second, until this is dropped.
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
//! Each error says who is at fault ([`Blame`](privet_core::Blame)) and, if it is about a file,
//! which file.
//!
//! | blame | what happened |
//! |---|---|
//! | `ApiMisuse` | a file is missing or of another kind, or was not made for this table |
//! | `Corrupted` | a file is damaged, or was written to while it was open |
//! | `Integrity` | a log is another publisher's, or has another history than the served table |
//! | `Unavailable` | memory, a log that was there before, or support by the system is missing: try again |

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod followed;
pub mod memory;
pub mod table_file;
pub mod watch;

pub use followed::FollowedTable;
pub use table_file::TableFile;
