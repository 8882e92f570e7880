//! Merkle trees.
