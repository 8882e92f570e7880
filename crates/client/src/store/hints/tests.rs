//! Crashes, failures, damage, other places, and ends for good.

mod crashes;
mod damage;
mod disk;
mod ends;
mod failures;
mod history;
mod places;
