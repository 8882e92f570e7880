//! Crashes, failures, damage, and other places.

mod crashes;
mod damage;
mod disk;
mod failures;
mod history;
mod places;
