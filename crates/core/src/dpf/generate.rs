//! The client's side: two trees that differ on one path.
//!
//! Everything here works on secrets. No branch and no address depends on them: both children of
//! every node are computed and compared, and masks select what depends on the path. The number of
//! steps is the domain's depth, whatever the index.

use super::{CONTROL, Domain, LEAF_BITS};
use crate::{RecordIndex, SecretRng};
use privet_kernels::taint::declassify;
use privet_kernels::{Kernels, TreeKeys};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use zeroize::{ZeroizeOnDrop, Zeroizing};

/// Two parties' trees, which are equal everywhere except on the path to one secret leaf. The caller
/// chooses the contents of that leaf: [`ends`](Self::ends) are two secrets, and only the client has
/// both.
#[derive(ZeroizeOnDrop)]
pub struct TreePair {
    /// Each party's root. The lowest bit is its control bit: 0 for party 0, 1 for party 1.
    pub roots: [u128; 2],
    /// The corrections of each level, from the top: they are XORed to the left and the right child
    /// of a node whose control bit is set. The two differ at most in their lowest bits.
    pub corrections: Vec<[u128; 2]>,
    /// Each party's node at the secret leaf: unrelated seeds, different control bits.
    pub ends: [u128; 2],
}

impl TreePair {
    /// Two fresh trees over `domain` that differ on the path to `leaf`. `keys` must not have been
    /// used for another pair: see [`Nonce`](super::Nonce).
    ///
    /// Draws 32 bytes from `rng`: the root of party 0 and that of party 1, 16 bytes each,
    /// little-endian. The lowest bit of each is not used.
    ///
    /// # Panics
    /// If `domain` has no such leaf.
    pub fn generate(
        kernels: Kernels,
        keys: &TreeKeys,
        domain: Domain,
        leaf: u64,
        rng: &mut SecretRng,
    ) -> Self {
        // This branch goes the same way for every leaf of the domain.
        let leaves = domain.leaves();
        assert!(declassify(leaf < leaves), "no such leaf among {leaves} of the domain");
        let roots = Zeroizing::new(draw_roots(rng));
        let mut nodes = roots.clone();
        let mut children = Zeroizing::new([0; 4]);
        let mut corrections = Vec::with_capacity(domain.depth() as usize);
        for level in (0..domain.depth()).rev() {
            let turn = Choice::from((leaf >> level & 1) as u8);
            kernels.ggm_expand(keys, nodes.as_slice(), [0, 0], children.as_mut_slice());
            corrections.push(descend(&mut nodes, &children, turn));
        }
        Self { roots: *roots, corrections, ends: *nodes }
    }
}

fn draw_roots(rng: &mut SecretRng) -> [u128; 2] {
    let mut bytes = Zeroizing::new([0; 32]);
    rng.fill(bytes.as_mut_slice());
    let (words, _) = bytes.as_chunks::<16>();
    [u128::from_le_bytes(words[0]) & !CONTROL, u128::from_le_bytes(words[1]) | CONTROL]
}

/// Takes both parties' nodes one level down the path: to the right if `turn` is set. `children` are
/// the left and right child of party 0's node and of party 1's, not yet corrected. Returns the
/// level's correction.
fn descend(nodes: &mut [u128; 2], children: &[u128; 4], turn: Choice) -> [u128; 2] {
    let [left_0, right_0, left_1, right_1] = children;
    let left = Zeroizing::new(left_0 ^ left_1);
    let right = Zeroizing::new(right_0 ^ right_1);
    // Off the path, the correction is the difference of the parties' children: one party applies
    // it, and they become equal, control bits included.
    let seed = u128::conditional_select(&right, &left, turn) & !CONTROL;
    // On the path, it makes the control bits differ, whatever they were.
    let to_right = u128::from(turn.unwrap_u8());
    let correction =
        [seed | ((*left & CONTROL) ^ to_right ^ CONTROL), seed | ((*right & CONTROL) ^ to_right)];
    let on_path = u128::conditional_select(&correction[0], &correction[1], turn);
    for (node, [left, right]) in nodes.iter_mut().zip(children.as_chunks::<2>().0) {
        let control = Choice::from((*node & CONTROL) as u8);
        *node = u128::conditional_select(left, right, turn)
            ^ u128::conditional_select(&0, &on_path, control);
    }
    correction
}

/// The final word of a key whose secret leaves XOR to `difference`. At these leaves, exactly one of
/// the two parties applies it.
pub(super) fn final_word(
    kernels: Kernels,
    keys: &TreeKeys,
    ends: &[u128; 2],
    difference: u128,
) -> u128 {
    let mut leaves = Zeroizing::new([0; 2]);
    kernels.ggm_convert(keys, ends, 0, leaves.as_mut_slice());
    leaves[0] ^ leaves[1] ^ difference
}

/// A leaf whose only 1 is at the place of `index`. Avoids a shift by a secret distance, whose time
/// depends on the distance on some machines.
pub(super) fn unit_leaf(index: &RecordIndex) -> u128 {
    let place = index.expose() % LEAF_BITS;
    (0..LEAF_BITS).fold(0, |word, bit| word | u128::from(bit.ct_eq(&place).unwrap_u8()) << bit)
}
