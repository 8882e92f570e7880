//! Hot loops and raw memory for Privet.
//!
//! A private lookup with linear server work is a loop over every byte of the table. The speed of
//! Privet is the speed of a few such loops. They are here, separate from all cryptographic ideas:
//! slices in, slices out.
//!
//! | module | what it holds |
//! |---|---|
//! | [`dispatch`] | which instruction sets this processor has, and [`Kernels`], the proof of it |
//! | [`byte_matrix`] | a matrix of bytes, re-tiled for the vector units, times vectors and matrices of 32-bit words |
//! | [`keystream`] | AES-128 in counter mode as a public matrix that is never stored |
//! | [`ggm_tree`] | nodes of a distributed point function's tree, from one level to the next |
//! | [`hash_lanes`] | BLAKE3 of many short inputs, one in each lane |
//! | [`authenticated_sum`] | the XOR of selected records, with a tag by which a client verifies it |
//! | [`selected_xor`] | the XOR of selected records, for several selections in one pass |
//! | [`subset_hints`] | pseudorandom subsets of a table from a short secret key, and the XOR of their records |
//! | [`swap_or_not`] | a secret permutation of `2^k` numbers, from a short key, in both directions |
//! | [`gather`] | records from scattered places of a table, side by side |
//! | [`permutations`] | many permutations of equal size: one swap in each, and a pass of records through one |
//! | [`ring`] | polynomials modulo `X^d + 1`: transforms modulo primes, products, sums over automorphisms |
//! | [`thresholds`] | counts the thresholds above secret numbers: sampling by inversion |
//! | [`yardstick`] | loops that measure the machine's limits, for benchmarks |
//! | [`rates`] | how fast one core runs these loops, and some kernels |
//! | [`memory`] | huge-page buffers and read-only file mappings |
//! | [`threads`] | independent pieces of work on a few threads |
//! | [`progress`] | how far work on several threads is, told in ascending order |
//! | [`taint`] | marks on secrets, for a tool that reports branches and addresses that depend on them |
//!
//! # One algorithm, several arms
//!
//! Every kernel is a method of [`Kernels`]. It has up to three implementations, called *arms*:
//! `portable`, `avx2` and `avx512`. `portable` is plain Rust, runs everywhere, and is the oracle in
//! the tests. All arms give the same bits. The arm is chosen once, at run time, from what the
//! processor reports, so one binary serves all machines.
//!
//! A new kernel is a method of [`Kernels`] that checks the shapes and calls `on_arm!`, a portable
//! form, a form for vectors, and a test that runs all arms. The form for vectors is one body for
//! AVX2 and AVX-512 where they do the same (`x86_64/vectors.rs`), and otherwise a file for each. A
//! new arm is a value of [`Arm`], with a module for `on_arm!` to choose.
//!
//! WebAssembly has vectors in its baseline or not at all. There the portable arm uses them, mostly
//! by the compiler, and for AES in `wasm32`.
//!
//! # Unsafe code
//!
//! Only this crate and that of the laboratory's kernels may contain `unsafe`. There are three
//! reasons. It calls functions compiled for instructions that the build's baseline lacks; this is
//! sound because a [`Kernels`] exists only for an arm that the processor has. It loads and stores
//! vectors; the pointers come from slices and arrays of checked length. And it asks the operating
//! system for memory. With the feature `taint` there is a fourth: it tells valgrind what is secret.
//!
//! # Shapes
//!
//! A slice of the wrong length is a bug of the caller, not bad input. Methods check the shapes
//! first, and panic with a message; each documents that under *Panics*. Values that may come from
//! outside (sizes to allocate, files, positions in a table) give typed errors.

pub mod authenticated_sum;
pub mod byte_matrix;
pub mod dispatch;
pub mod gather;
pub mod ggm_tree;
pub mod hash_lanes;
pub mod keystream;
pub mod memory;
pub mod permutations;
pub mod progress;
pub mod rates;
pub mod ring;
pub mod selected_xor;
pub mod subset_hints;
pub mod swap_or_not;
pub mod taint;
pub mod threads;
pub mod thresholds;
pub mod yardstick;

mod portable;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm32;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(test)]
mod tests;

pub use byte_matrix::TiledBytes;
pub use dispatch::{Arm, ArmUnavailable, Kernels, UnknownArm};
pub use gather::PositionOutOfRange;
pub use ggm_tree::TreeKeys;
pub use hash_lanes::Numbers;
#[cfg(not(target_family = "wasm"))]
pub use memory::{FileChanged, FileMapping, MappingError};
pub use memory::{HugeBuffer, MemoryError, ThpMode, transparent_huge_pages};
pub use subset_hints::PartitionGroup;
pub use swap_or_not::SwapOrNot;
