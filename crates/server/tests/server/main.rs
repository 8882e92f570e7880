//! A real server on loopback, real schemes, and a client that is nothing but the generated stub:
//! what is tested is what any client meets.

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
mod tls;
mod two_servers;
mod updates;
