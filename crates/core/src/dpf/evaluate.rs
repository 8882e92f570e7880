//! The server's side: from a key to bits, a piece at a time.
//!
//! A whole expansion has one bit for each record: too much to lie in memory, and it is needed just once, in order. So a server goes down to the roots of small subtrees
//! ([`Evaluation::nodes`]), and expands those that belong to a piece of the table right before it reads that piece ([`Evaluation::leaves`]), in buffers that stay in the processor's
//! first-level cache. Trees are grown breadth-first, level by level, so that many AES blocks are under way at once, wherever possible from several neighbouring roots; and only as
//! far to the right as the table reaches: what a prefix of the leaves needs is a prefix of every level.
//!
//! A key's holder may know all of it, so nothing here is secret from whoever runs it: positions are public, and the work depends on them alone.

use super::Key;
use privet_kernels::{Kernels, TreeKeys};

/// Nodes that are grown together: 16 KiB of them, and as much in the buffer that they are grown into.
const TOGETHER: usize = 1024;

/// Nodes of a smaller buffer: clearing the larger one would take a fifth of the time to grow so few.
const FEW: usize = 128;

/// One party's key, ready to be expanded.
#[derive(Clone, Copy)]
pub struct Evaluation<'a> {
    kernels: Kernels,
    keys: &'a TreeKeys,
    key: &'a Key,
}

impl<'a> Evaluation<'a> {
    /// Expands `key` under the AES keys with which it was made.
    pub fn new(kernels: Kernels, keys: &'a TreeKeys, key: &'a Key) -> Self {
        Self { kernels, keys, key }
    }

    /// Levels below the root.
    pub fn depth(&self) -> u32 {
        self.key.corrections.len() as u32
    }

    /// The node at `position`, counted from the left, of level `level`. The root is level 0.
    ///
    /// # Panics
    /// If the tree is not that deep.
    pub fn node(&self, level: u32, position: u64) -> u128 {
        assert!(level <= self.depth(), "a tree of depth {} has no level {level}", self.depth());
        (0..level).fold(self.key.root, |node, above| {
            let side = position >> (level - 1 - above) & 1;
            self.children(above, node)[side as usize]
        })
    }

    /// The first `out.len()` nodes of level `level` below `tops`, neighbours on level `top_level`.
    ///
    /// # Panics
    /// If there are no such levels, or not as many nodes.
    pub fn nodes(&self, top_level: u32, tops: &[u128], level: u32, out: &mut [u128]) {
        self.grow(top_level, tops, level, out, &|nodes, out| out.copy_from_slice(nodes));
    }

    /// The first `out.len()` leaves below `tops`, neighbours on level `top_level`: the bit of record `r` is bit `r % 128` of leaf `r / 128`.
    ///
    /// # Panics
    /// If there is no such level, or there are not as many leaves.
    pub fn leaves(&self, top_level: u32, tops: &[u128], out: &mut [u128]) {
        self.grow(top_level, tops, self.depth(), out, &|nodes, out| {
            self.kernels.ggm_convert(self.keys, nodes, self.key.final_word, out);
        });
    }

    /// Grows the first nodes of `level` below `tops`, and makes the words of `out` from as many of them by `finish`, at most [`TOGETHER`] at a time.
    fn grow(
        &self,
        top_level: u32,
        tops: &[u128],
        level: u32,
        out: &mut [u128],
        finish: &impl Fn(&[u128], &mut [u128]),
    ) {
        assert!(
            top_level <= level
                && level <= self.depth()
                && tops.len().saturating_mul(room(level - top_level)) >= out.len(),
            "a tree of depth {} has no {} nodes of level {level} below {} of level {top_level}",
            self.depth(),
            out.len(),
            tops.len()
        );
        let below = room(level - top_level);
        if below > TOGETHER && out.len() > TOGETHER {
            for (top, out) in tops.iter().zip(out.chunks_mut(below)) {
                self.grow(top_level + 1, &self.children(top_level, *top), level, out, finish);
            }
            return;
        }
        let trees = (TOGETHER / below).max(1);
        for (tops, out) in tops.chunks(trees).zip(out.chunks_mut(trees.saturating_mul(below))) {
            let (mut few, mut many);
            let nodes: &mut [u128] = if out.len() <= FEW {
                few = [0; FEW];
                &mut few
            } else {
                many = [0; TOGETHER];
                &mut many
            };
            let nodes = &mut nodes[..out.len()];
            self.grow_breadth_first(top_level, tops, level, nodes, out);
            finish(nodes, out);
        }
    }

    /// Fills `nodes` with the first nodes of `level` below `tops`. `other`, as long as `nodes`, holds every other level on the way.
    fn grow_breadth_first(
        &self,
        top_level: u32,
        tops: &[u128],
        level: u32,
        nodes: &mut [u128],
        other: &mut [u128],
    ) {
        let wanted = nodes.len() as u64;
        let width = |of: u32| wanted.div_ceil(1 << (level - of)) as usize;
        let (mut parents, mut children) =
            if (level - top_level).is_multiple_of(2) { (nodes, other) } else { (other, nodes) };
        parents[..width(top_level)].copy_from_slice(&tops[..width(top_level)]);
        for above in top_level..level {
            let corrections = self.key.corrections[above as usize];
            let grown = &mut children[..width(above + 1)];
            self.kernels.ggm_expand(self.keys, &parents[..width(above)], corrections, grown);
            std::mem::swap(&mut parents, &mut children);
        }
    }

    /// Both children of a node of level `level`.
    fn children(&self, level: u32, node: u128) -> [u128; 2] {
        let mut children = [0; 2];
        let corrections = self.key.corrections[level as usize];
        self.kernels.ggm_expand(self.keys, &[node], corrections, &mut children);
        children
    }
}

/// How many nodes there can be `levels` below one.
fn room(levels: u32) -> usize {
    1usize.checked_shl(levels).unwrap_or(usize::MAX)
}
