//! Whole sessions against servers in memory, under a clock that the tests advance: see [`world`].

mod agreement;
mod asked;
mod authenticated;
mod candidates;
mod coins;
mod compared;
mod differing;
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
mod pins;
mod reserved;
mod schemes;
mod simulator;
mod single_use;
mod slow;
mod timed;
mod toy;
mod traces;
mod two_servers;
mod verified;
mod world;

pub(super) use toy::plan_in as toy_plan_in;
