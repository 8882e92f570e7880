//! Plain Rust for every processor, and the oracle of the tests. It is clear first of all, and lets
//! the compiler use the vector instructions of the baseline.

pub(crate) mod authenticated_sum;
pub(crate) mod byte_matrix;
pub(crate) mod gather;
pub(crate) mod ggm_tree;
pub(crate) mod hash_lanes;
pub(crate) mod keystream;
pub(crate) mod permutations;
pub(crate) mod ring;
pub(crate) mod selected_xor;
pub(crate) mod strassen;
pub(crate) mod subset_hints;
pub(crate) mod swap_or_not;
pub(crate) mod thresholds;
pub(crate) mod yardstick;
