//! The command as a user sees it: what it prints, where, and with which exit code. Every run starts
//! the real program in a directory of its own, which is also its home directory, so nothing outside
//! is read or written.

#![allow(clippy::unwrap_used)]

mod authenticated;
mod bench;
mod build;
mod damaged_files;
mod demo_and_doctor;
mod followed;
mod formats;
mod get;
mod get_refused;
mod help;
mod history;
mod inspect;
mod interrupted;
mod keys;
mod load;
mod lost_log;
mod manual;
#[cfg(target_os = "linux")]
mod memory;
mod mistakes;
mod multi;
mod network;
mod pace;
mod papers;
mod place;
mod plan;
mod points;
mod reading;
mod schemes;
mod serve;
mod served;
mod setup;
mod state;
mod succession;
#[cfg(unix)]
mod terminal;
mod tls;
mod tour;
mod tradeoff;
#[cfg(unix)]
mod unread;
mod update;
mod verified;
mod weekly;
