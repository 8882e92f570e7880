//! A key: the message that one party receives.

use super::generate::{TreePair, final_word, unit_leaf};
use super::{CONTROL, Domain, LEAF_BITS, Nonce};
use crate::codec::Reader;
use crate::{Error, RecordIndex, Result, SecretRng, TableId};
use privet_kernels::Kernels;
use privet_kernels::taint::declassify;
use zeroize::ZeroizeOnDrop;

/// One party's share of a point function, with one bit for each record or with a payload.
///
/// # Encoding
/// The size follows only from the domain's depth. All numbers are little-endian:
///
/// ```text
/// 16 bytes           the nonce
/// 16 bytes           the root; its lowest bit is its control bit: 0 for party 0, 1 for party 1
/// depth × 16 bytes   for each level from the top, the correction of left children
/// ⌈depth / 8⌉ bytes  the lowest bit of the correction of right children, whose other bits are those of the left: that of level i is bit i % 8 of byte i / 8
/// 16 bytes           the final word
/// ```
///
/// Unused bits of the last of the `⌈depth / 8⌉` bytes are zero. Every other string of the right
/// length is a valid key: it expands to some bits, as any key does.
#[derive(ZeroizeOnDrop)]
pub struct Key {
    #[zeroize(skip)]
    pub(super) nonce: Nonce,
    pub(super) root: u128,
    pub(super) corrections: Vec<[u128; 2]>,
    pub(super) final_word: u128,
}

impl Key {
    /// The keys of party 0 and party 1 for the function that is 1 at `index` and 0 at every other
    /// record of the table `table`. Draws 16 bytes from `rng` for the nonce, and then what
    /// [`TreePair::generate`] draws. Takes the same time, and touches the same memory, for every
    /// index.
    ///
    /// # Panics
    /// If `index` was made for a larger table, and `domain` has no such record; if `domain` does
    /// not have one bit for each record.
    pub fn pair(
        kernels: Kernels,
        table: &TableId,
        domain: Domain,
        index: &RecordIndex,
        rng: &mut SecretRng,
    ) -> [Key; 2] {
        assert_eq!(
            domain.leaf_records_log2,
            LEAF_BITS.ilog2(),
            "the domain has one bit for each record"
        );
        Self::pair_that_differs(kernels, table, domain, index, &unit_leaf(index), rng)
    }

    /// The keys of party 0 and party 1 whose leaves XOR to `payload` at `index` and to 0 at every
    /// other record of the table `table`. The control bits of their last level differ only at
    /// `index`. [`Evaluation::ends`](super::Evaluation::ends) computes both. Draws from `rng` what
    /// [`pair`](Self::pair) draws. Takes the same time, and touches the same memory, for every
    /// index and payload.
    ///
    /// # Panics
    /// If `index` was made for a larger table, and `domain` has no such record; if `domain` does
    /// not have a leaf for each record.
    pub fn pair_with_payload(
        kernels: Kernels,
        table: &TableId,
        domain: Domain,
        index: &RecordIndex,
        payload: &u128,
        rng: &mut SecretRng,
    ) -> [Key; 2] {
        assert_eq!(domain.leaf_records_log2, 0, "the domain has one leaf for each record");
        Self::pair_that_differs(kernels, table, domain, index, payload, rng)
    }

    /// Keys whose leaves XOR to `difference` at the leaf of `index`.
    fn pair_that_differs(
        kernels: Kernels,
        table: &TableId,
        domain: Domain,
        index: &RecordIndex,
        difference: &u128,
        rng: &mut SecretRng,
    ) -> [Key; 2] {
        // This branch goes the same way for every index of the table. Without it, the index of
        // another table would count as some record of this one.
        assert!(
            declassify(index.expose() < domain.records()),
            "the index belongs to another table: the point function is defined on {} records",
            domain.records()
        );
        let nonce = Nonce::draw(rng);
        let tree_keys = nonce.tree_keys(table);
        let leaf = domain.leaf_of(index);
        let trees = TreePair::generate(kernels, &tree_keys, domain, leaf, rng);
        let final_word = final_word(kernels, &tree_keys, &trees.ends, *difference);
        let corrections = &trees.corrections;
        trees.roots.map(|root| Key { nonce, root, corrections: corrections.clone(), final_word })
    }

    /// The nonce of the lookup, which is the same in both of its keys.
    pub fn nonce(&self) -> Nonce {
        self.nonce
    }

    /// Size of every encoding of a key for `domain`, in bytes.
    pub fn encoded_len(domain: Domain) -> usize {
        let depth = domain.depth() as usize;
        16 * (depth + 3) + depth.div_ceil(8)
    }

    /// The encoding.
    pub fn encode(&self) -> Vec<u8> {
        let depth = self.corrections.len();
        let mut bytes = Vec::with_capacity(16 * (depth + 3) + depth.div_ceil(8));
        bytes.extend(self.nonce.as_bytes());
        bytes.extend(self.root.to_le_bytes());
        bytes.extend(self.corrections.iter().flat_map(|[left, _]| left.to_le_bytes()));
        let controls = |levels: &[[u128; 2]]| {
            let bits = levels.iter().map(|[_, right]| (right & CONTROL) as u8);
            bits.rev().fold(0, |byte, bit| byte << 1 | bit)
        };
        bytes.extend(self.corrections.chunks(8).map(controls));
        bytes.extend(self.final_word.to_le_bytes());
        bytes
    }

    /// Reads a key for `domain`.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](crate::Blame::InvalidMessage) unless `bytes` is exactly one
    /// encoding.
    pub fn decode(domain: Domain, bytes: &[u8]) -> Result<Self> {
        let depth = domain.depth() as usize;
        let mut reader = Reader::new("a DPF key", bytes);
        let nonce = Nonce::from_bytes(reader.array()?);
        let root = u128::from_le_bytes(reader.array()?);
        let (lefts, _) = reader.bytes(16 * depth)?.as_chunks::<16>();
        let controls = reader.bytes(depth.div_ceil(8))?;
        let final_word = u128::from_le_bytes(reader.array()?);
        reader.finish()?;

        let unused = (depth.next_multiple_of(8) - depth) as u32;
        if controls.last().is_some_and(|last| last.leading_zeros() < unused) {
            return Err(Error::invalid_message(format!(
                "a DPF key of depth {depth} has bits for levels that are not there"
            )));
        }
        let correction = |(level, left): (usize, &[u8; 16])| {
            let left = u128::from_le_bytes(*left);
            let control = u128::from(controls[level / 8] >> (level % 8) & 1);
            [left, left & !CONTROL | control]
        };
        let corrections = lefts.iter().enumerate().map(correction).collect();
        Ok(Self { nonce, root, corrections, final_word })
    }
}
