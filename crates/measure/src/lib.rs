//! What measures and forecasts: options in, a report out. The command and the package for Python
//! say what to measure, and show what comes of it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`bench`](mod@bench) | one scheme measured on one shape, with the machine's limits taken in the same run |
//! | [`load`] | a running server under lookups that come at a fixed rate |
//! | [`plan`](mod@plan) | which scheme suits a table and its use, and what each would cost |
//! | [`accuracy`] | what was planned, beside what is measured |
//! | [`machine`] | how fast a machine does what schemes count |
//! | `yardsticks` | the limits of one core of this machine |
//! | [`traffic`] | bytes that cross the wire |
//! | [`plot`] | curves in an SVG file |
//! | [`page`] | how reports are put before people |
//! | [`watch`] | how people see what is under way |

pub mod accuracy;
pub mod bench;
pub mod load;
pub mod machine;
pub mod page;
pub mod plan;
pub mod plot;
pub mod traffic;
pub mod watch;
mod yardsticks;

use privet_core::{Epoch, TableDigest, TableId, TableIdentity, TableShape};

/// A table of this shape of which nothing else is known: no cost depends on its id or its contents.
pub fn identity_of(shape: TableShape) -> TableIdentity {
    TableIdentity { id: TableId([0; 16]), epoch: Epoch(0), digest: TableDigest([0; 32]), shape }
}
