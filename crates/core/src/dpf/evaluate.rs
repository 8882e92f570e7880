//! The server's side: from a key to bits, a piece at a time.
//!
//! A whole expansion has one bit for each record. That is too much to keep in memory, and it is
//! needed only once, in order. So a server goes down to the roots of small subtrees
//! ([`Evaluation::nodes`]). Right before it reads a piece of the table, it expands the subtrees of
//! that piece ([`Evaluation::leaves`]), in buffers that stay in the processor's first-level cache.
//! Trees are grown breadth-first, level by level, so that many AES blocks are computed at once.
//! They grow only as far to the right as the table reaches: a prefix of the leaves needs only a
//! prefix of every level.
//!
//! A key's holder may know all of it, so nothing here is secret from the server: positions are
//! public, and the work depends only on them.

use super::Key;
use crate::TableId;
use privet_kernels::{Kernels, TreeKeys};

/// The number of nodes that are grown together: 16 KiB, and as much in the buffer for their
/// children.
const TOGETHER: usize = 1024;

/// Nodes of a smaller buffer. To clear the larger one would take a fifth of the time to grow so few
/// nodes.
const FEW: usize = 128;

/// One party's key, ready to be expanded.
pub struct Evaluation<'a> {
    kernels: Kernels,
    tree_keys: TreeKeys,
    key: &'a Key,
}

/// A node of one party's tree, with its level: the root is on level 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    level: u32,
    value: u128,
}

/// Neighbouring nodes on one level.
#[derive(Clone, Debug)]
pub struct Nodes {
    level: u32,
    values: Vec<u128>,
}

impl Node {
    /// The seed, with the control bit in place of its lowest bit.
    pub fn value(self) -> u128 {
        self.value
    }
}

impl Nodes {
    /// The node at `place`, counted from the first of these nodes.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn node(&self, place: usize) -> Node {
        Node { level: self.level, value: self.values[place] }
    }
}

impl<'a> Evaluation<'a> {
    /// Expands `key` for the table `table`. A key that was made for another table also expands to
    /// bits, but they mean nothing.
    pub fn new(kernels: Kernels, table: &TableId, key: &'a Key) -> Self {
        Self { kernels, tree_keys: key.nonce.tree_keys(table), key }
    }

    /// Levels below the root.
    pub fn depth(&self) -> u32 {
        self.key.corrections.len() as u32
    }

    /// The root of the tree.
    pub fn root(&self) -> Node {
        Node { level: 0, value: self.key.root }
    }

    /// The node at `position`, counted from the left, among those of level `level` below `top`.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn descend(&self, top: Node, level: u32, position: u64) -> Node {
        self.check(top, level, position.saturating_add(1));
        (0..level - top.level)
            .rev()
            .fold(top, |node, below| self.children(node)[(position >> below & 1) as usize])
    }

    /// The first `count` nodes of level `level` below `top`.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn nodes(&self, top: Node, level: u32, count: usize) -> Nodes {
        let mut values = vec![0; count];
        self.grow(top, level, &mut values, &|nodes, out| out.copy_from_slice(nodes));
        Nodes { level, values }
    }

    /// The first `out.len()` leaves below `top`: the bit of record `r` is bit `r % 128` of leaf `r
    /// / 128`.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn leaves(&self, top: Node, out: &mut [u128]) {
        self.grow(top, self.depth(), out, &|nodes, out| {
            self.kernels.ggm_convert(&self.tree_keys, nodes, self.key.final_word, out);
        });
    }

    /// The first `nodes.len()` nodes of the last level below `top`, and their leaves. If there is a
    /// leaf for each record, these are the record's control bit and payload. The levels in between
    /// are grown in these two buffers, so both together should fit into the processor's first-level
    /// cache.
    ///
    /// # Panics
    /// If there are not as many nodes, if `nodes` is empty, or if there is not one leaf for each
    /// node.
    pub fn ends(&self, top: Node, nodes: &mut [u128], leaves: &mut [u128]) {
        assert!(!nodes.is_empty() && nodes.len() == leaves.len(), "one leaf for each node");
        self.check(top, self.depth(), nodes.len() as u64);
        self.grow_breadth_first(top, self.depth(), nodes, leaves);
        self.kernels.ggm_convert(&self.tree_keys, nodes, self.key.final_word, leaves);
    }

    fn check(&self, top: Node, level: u32, count: u64) {
        let depth = self.depth();
        assert!(
            top.level <= level && level <= depth && count <= room(level - top.level),
            "a tree of depth {depth} has no {count} nodes of level {level} below one of level {}",
            top.level
        );
    }

    /// Grows the first nodes of `level` below `top`, at most [`TOGETHER`] at a time. `finish` turns
    /// each into a word of `out`.
    fn grow(
        &self,
        top: Node,
        level: u32,
        out: &mut [u128],
        finish: &impl Fn(&[u128], &mut [u128]),
    ) {
        self.check(top, level, out.len() as u64);
        if out.len() > TOGETHER {
            let below_each = usize::try_from(room(level - top.level - 1)).unwrap_or(usize::MAX);
            for (top, out) in self.children(top).into_iter().zip(out.chunks_mut(below_each)) {
                self.grow(top, level, out, finish);
            }
            return;
        }
        let (mut few, mut many);
        let nodes: &mut [u128] = if out.len() <= FEW {
            few = [0; FEW];
            &mut few
        } else {
            many = [0; TOGETHER];
            &mut many
        };
        let nodes = &mut nodes[..out.len()];
        self.grow_breadth_first(top, level, nodes, out);
        finish(nodes, out);
    }

    /// Fills `nodes` with the first nodes of `level` below `top`. `other`, as long as `nodes`,
    /// holds every other level on the way.
    fn grow_breadth_first(&self, top: Node, level: u32, nodes: &mut [u128], other: &mut [u128]) {
        let wanted = nodes.len() as u64;
        let width = |of: u32| wanted.div_ceil(room(level - of)) as usize;
        let (mut parents, mut children) =
            if (level - top.level).is_multiple_of(2) { (nodes, other) } else { (other, nodes) };
        parents[..width(top.level)].fill(top.value);
        for above in top.level..level {
            let corrections = self.key.corrections[above as usize];
            let grown = &mut children[..width(above + 1)];
            self.kernels.ggm_expand(&self.tree_keys, &parents[..width(above)], corrections, grown);
            std::mem::swap(&mut parents, &mut children);
        }
    }

    fn children(&self, node: Node) -> [Node; 2] {
        let mut children = [0; 2];
        let corrections = self.key.corrections[node.level as usize];
        self.kernels.ggm_expand(&self.tree_keys, &[node.value], corrections, &mut children);
        children.map(|value| Node { level: node.level + 1, value })
    }
}

/// How many nodes there can be `levels` below one.
fn room(levels: u32) -> u64 {
    1u64.checked_shl(levels).unwrap_or(u64::MAX)
}
