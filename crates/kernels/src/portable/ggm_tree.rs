//! Tree growing through the `aes` crate, which uses the processor's AES instructions where it finds
//! them.

use aes::cipher::{Array, BlockCipherEncrypt};
use aes::{Aes128Enc, Block};
use zeroize::Zeroize;

use crate::ggm_tree::TreeKeys;

/// Blocks encrypted in one call of the cipher.
const BATCH: usize = 32;

/// See [`Kernels::ggm_expand`](crate::Kernels::ggm_expand).
pub(crate) fn expand(
    keys: &TreeKeys,
    parents: &[u128],
    corrections: [u128; 2],
    children: &mut [u128],
) {
    for (side, cipher) in keys.ciphers.iter().enumerate() {
        let children = children.iter_mut().skip(side).step_by(2);
        grow(cipher, parents, corrections[side], children);
    }
}

/// See [`Kernels::ggm_convert`](crate::Kernels::ggm_convert).
pub(crate) fn convert(keys: &TreeKeys, nodes: &[u128], correction: u128, leaves: &mut [u128]) {
    grow(&keys.ciphers[0], nodes, correction, leaves.iter_mut());
}

/// Grows one child of each node, as many as `children` takes.
fn grow<'a>(
    cipher: &Aes128Enc,
    nodes: &[u128],
    correction: u128,
    mut children: impl Iterator<Item = &'a mut u128>,
) {
    let mut batch = [Array([0; 16]); BATCH];
    for nodes in nodes.chunks(BATCH) {
        let blocks = &mut batch[..nodes.len()];
        for (block, &node) in blocks.iter_mut().zip(nodes) {
            *block = Array(seed(node).to_le_bytes());
        }
        cipher.encrypt_blocks(blocks);
        for ((block, &node), child) in blocks.iter().zip(nodes).zip(&mut children) {
            let control = (node & 1).wrapping_neg();
            *child = u128::from_le_bytes(block.0) ^ seed(node) ^ (control & correction);
        }
    }
    let used: &mut [Block] = &mut batch[..nodes.len().min(BATCH)];
    used.iter_mut().for_each(|block| block.0.zeroize());
}

fn seed(node: u128) -> u128 {
    node & !1
}
