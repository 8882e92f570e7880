//! A real server on loopback, real schemes, and a client that is only the generated stub: the tests
//! see what any client sees.

#![allow(clippy::unwrap_used, missing_docs)]

mod asked;
mod cache;
mod common;
mod damage;
mod doublepir;
mod download;
mod dummy_subsets;
mod fetching;
mod hinted;
mod load;
mod lookups;
mod operations;
mod piano;
mod points;
mod refusals;
mod strays;
mod tls;
mod two_servers;
mod updates;
mod web;
