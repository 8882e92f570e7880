//! A server under attack: clients that no library would let anybody write try to take it from all
//! others. Meanwhile an honest client at another address gets what it asks for, the server's memory
//! stays within a limit, and afterwards the server holds what it held before.
//!
//! All of 127.0.0.0/8 is this machine, so attackers and the honest client have addresses of their
//! own. The server runs in a process of its own, which is this program once more.
//!
//! Nothing is timed here but that an errand takes at most two seconds, and up to three times as
//! long where more threads ran before the attack than the machine has cores.
//! `PRIVET_ABUSE_MEASURE=10` lets each attack go on for ten seconds and prints what it did to the
//! honest client and to the server, without checking it. Attackers, honest client and server share
//! this machine's cores, so it also prints how the honest client fares while the same attackers
//! work on another server. Run that with one test at a time, in release:
//!
//! ```text
//! PRIVET_ABUSE_MEASURE=10 cargo test --release -p privet-server --test abuse -- \
//!     --test-threads 1 --nocapture
//! ```

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

mod attack;
// Shared with the other test program, which needs more of it.
#[allow(dead_code, unreachable_pub)]
#[path = "../server/common.rs"]
mod common;
mod connections;
mod floods;
mod frames;
mod honest;
mod load;
mod process;
mod slow;
mod together;
mod unread;
mod web;
