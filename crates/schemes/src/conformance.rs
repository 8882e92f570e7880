//! What every scheme of a kind has to satisfy, written once and run for each.
//!
//! | suite | for |
//! |---|---|
//! | [`stateless`] | clients that may repeat, lose and forget queries |
//! | [`hinted`] | clients whose hints are secret and serve one query each |
//!
//! [`point_functions`] is what the statistics of two schemes look at.
//!
//! A scheme's tests say how its parts are made (one `impl` of a suite's trait) and call the
//! suite's macro, which names the tests. What is a scheme's own stays in its room: known answers,
//! messages packed by hand, computations by the definition, the proofs of its own formulas.

pub(crate) mod hinted;
mod messages;
pub(crate) mod point_functions;
pub(crate) mod stateless;
