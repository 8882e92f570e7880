//! Whole sessions against servers in memory, under a clock that the tests advance: see [`world`].

mod faults;
mod invariants;
mod lies;
mod reserved;
mod world;
