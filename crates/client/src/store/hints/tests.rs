//! Crashes, failures, damage, other places, ends for good, and the same in memory.

mod alike;
mod containers;
mod crashes;
mod damage;
mod ends;
mod failures;
mod history;
mod journal;
mod places;
