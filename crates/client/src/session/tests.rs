//! Whole sessions against servers in memory, under a clock that the tests advance: see [`world`].

mod agreement;
mod asked;
mod authenticated;
mod candidates;
mod compared;
mod endless;
mod faults;
mod following;
mod generations;
mod invariants;
mod kept_table;
mod lies;
mod living;
mod parts;
mod peer;
mod reserved;
mod simulator;
mod single_use;
mod toy;
mod traces;
mod two_servers;
mod verified;
mod world;
