//! The tests that every scheme of a kind must pass, written once and run for each.
//!
//! | suite | for |
//! |---|---|
//! | [`stateless`] | clients that may repeat, lose and forget queries |
//! | [`hinted`] | clients whose hints are secret and serve one query each |
//!
//! `versions` has what a scheme does when its table changes, and `point_functions` the views for
//! the statistics of two schemes.
//!
//! A scheme's tests say how its parts are made (one `impl` of a suite's trait) and call the suite's
//! macro, which names the tests. Tests that only one scheme has stay in its folder: known answers,
//! messages packed by hand, computations by the definition, the proofs of its own formulas.

pub mod hinted;
pub mod known;
mod messages;
#[cfg(test)]
pub(crate) mod point_functions;
pub mod stateless;
#[cfg(not(target_family = "wasm"))]
pub mod versions;
