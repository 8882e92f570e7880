//! Clients and servers over loopback, in one program, which is linked once.

#![allow(clippy::unwrap_used)]

mod common;
mod download;
mod end_to_end;
mod lookups;
mod paths;
mod proxies;
mod single_use;
mod strangers;
mod successors;
mod two_servers;
mod verified;
