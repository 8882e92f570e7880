//! For statistics of distributed point functions: the keys that one server sees, and a key
//! generator in which leaks can be planted.

use crate::test_statistics::{count_bits, deviation_of_coins, rng_for};
use privet_core::dpf::Nonce;
use privet_core::{SecretRng, TableId};
use privet_kernels::Kernels;

/// The depth of the tested trees.
pub(crate) const DEPTH: usize = 3;

/// What the server of one role has, and the secret that it must not know.
pub(crate) struct View {
    /// Root, correction of each level, final word, nonce.
    pub(crate) key: Vec<u128>,
    /// The control bits of the corrections of right children, and those of nodes.
    pub(crate) controls: Vec<bool>,
    pub(crate) leaves: Vec<u128>,
    /// The client's secret, if it has one.
    pub(crate) secret: u128,
}

impl View {
    /// The words of a key's bytes, before anything is computed from them.
    pub(crate) fn of(bytes: &[u8], secret: u128) -> Self {
        let (words, rest) = bytes.as_chunks::<16>();
        assert_eq!((words.len(), rest.len()), (DEPTH + 3, 1));
        let mut key: Vec<u128> = words.iter().map(|word| u128::from_le_bytes(*word)).collect();
        key.rotate_left(1);
        // In bytes, the final word is the last, after one byte of control bits.
        let controls_at = 16 * (2 + DEPTH);
        key[1 + DEPTH] = u128::from_le_bytes(bytes[controls_at + 1..].try_into().unwrap());
        let controls = (0..DEPTH).map(|level| bytes[controls_at] >> level & 1 == 1).collect();
        Self { key, controls, leaves: Vec::new(), secret }
    }

    pub(crate) fn words(&self) -> impl Iterator<Item = u128> {
        self.key.iter().chain(&self.leaves).copied()
    }

    /// All its bits but the first, which is the role.
    pub(crate) fn bits(&self) -> impl Iterator<Item = bool> {
        self.words().flat_map(bits_of).skip(1).chain(self.controls.iter().copied())
    }
}

fn bits_of(word: u128) -> impl Iterator<Item = bool> {
    (0..128).map(move |bit| word >> bit & 1 == 1)
}

/// In how many rows each bit of each word is set, 128 bits at a time: bit `k` of all counts of a
/// word lies in its plane `k`.
pub(crate) fn count_bits_of_words<I: Iterator<Item = u128>>(
    rows: impl Iterator<Item = I>,
) -> Vec<u32> {
    let mut counts: Vec<Vec<u128>> = Vec::new();
    for row in rows {
        for (place, word) in row.enumerate() {
            if place == counts.len() {
                counts.push(vec![0; 32]);
            }
            let mut carry = word;
            for plane in &mut counts[place] {
                (*plane, carry) = (*plane ^ carry, *plane & carry);
                if carry == 0 {
                    break;
                }
            }
        }
    }
    let count = |planes: &[u128], bit: u32| {
        (0..).zip(planes).map(|(power, plane)| ((plane >> bit & 1) as u32) << power).sum()
    };
    counts.iter().flat_map(|planes| (0..128).map(move |bit| count(planes, bit))).collect()
}

#[test]
fn bits_of_words_are_counted_like_others() {
    let mut rng = SecretRng::from_fixed_seed([7; 32]);
    let mut word = || u128::from(rng.below(u64::MAX)) << 50 | u128::from(rng.below(u64::MAX));
    let rows: Vec<Vec<u128>> = (0..300).map(|_| vec![word(), !0, word(), 0]).collect();
    let expected = count_bits(rows.iter().map(|row| row.iter().copied().flat_map(bits_of)));
    assert_eq!(count_bits_of_words(rows.iter().map(|row| row.iter().copied())), expected);
}

/// What both servers see of many lookups of one record. `make` makes their keys and the secret.
pub(crate) fn views(
    count: usize,
    index: u64,
    mut make: impl FnMut(u64, &mut SecretRng) -> ([Vec<u8>; 2], u128),
    view: impl Fn(&[u8], u128) -> View,
) -> [Vec<View>; 2] {
    let mut rng = rng_for(index);
    let pairs: Vec<_> = (0..count).map(|_| make(index, &mut rng)).collect();
    let of =
        |server: usize| pairs.iter().map(|(keys, secret)| view(&keys[server], *secret)).collect();
    [of(0), of(1)]
}

/// How often each bit is set.
pub(crate) fn frequencies(views: &[View]) -> f64 {
    deviation_of_coins(&count_bits(views.iter().map(View::bits)), views.len())
}

/// How often each bit of a word differs from the same bit of every other word: of root, corrections
/// of every level, final word, nonce and leaves.
pub(crate) fn words_apart(views: &[View]) -> f64 {
    let apart = |view: &View| {
        let words: Vec<u128> = view.words().collect();
        (0..words.len()).flat_map(move |a| {
            let one = words[a];
            words[a + 1..].iter().map(|other| one ^ other).collect::<Vec<_>>()
        })
    };
    deviation_of_coins(&count_bits_of_words(views.iter().map(apart)), views.len())
}

/// How much the counts of each set bit differ between views of two indices.
pub(crate) fn difference(ones: &[View], others: &[View]) -> f64 {
    let set = [ones, others].map(|views| count_bits(views.iter().map(View::bits)));
    // For the other index the zeros are counted, so that the sum is one of fair coins.
    let sums = set[0].iter().zip(&set[1]).map(|(one, other)| one + others.len() as u32 - other);
    deviation_of_coins(&sums.collect::<Vec<_>>(), ones.len() + others.len())
}

/// A level of key generation.
pub(crate) struct Level<'a> {
    pub(crate) number: usize,
    /// The direction of the path: 0 left, 1 right.
    pub(crate) turn: usize,
    /// The difference of the two parties' children, for each side.
    pub(crate) differs: [u128; 2],
    /// The corrections of the levels above.
    pub(crate) seeds: &'a [u128],
    /// The corrections: of the seed, and of the control bits of each side.
    pub(crate) seed: u128,
    pub(crate) controls: [u128; 2],
}

/// Key generation as in the paper, with branches. `correct` may change the correction of each
/// level, and returns whether nodes go down the path. `last` makes the final word from the sum of
/// the two leaves.
pub(crate) fn encoded_pair(
    table: &TableId,
    [nonce, roots @ ..]: [[u8; 16]; 3],
    leaf: u64,
    mut correct: impl FnMut(&mut Level<'_>) -> bool,
    last: impl FnOnce(u128) -> u128,
) -> [Vec<u8>; 2] {
    let kernels = Kernels::detect();
    let roots: [u128; 2] =
        std::array::from_fn(|party| u128::from_le_bytes(roots[party]) & !1 | party as u128);
    let keys = &Nonce::from_bytes(nonce).tree_keys(table);
    let mut nodes = roots;
    let (mut seeds, mut rights) = (Vec::new(), 0u8);
    for number in 0..DEPTH {
        let turn = (leaf >> (DEPTH - 1 - number) & 1) as usize;
        let grown = nodes.map(|node| {
            let mut children = [0; 2];
            kernels.ggm_expand(keys, &[node], [0, 0], &mut children);
            children
        });
        let differs = [grown[0][0] ^ grown[1][0], grown[0][1] ^ grown[1][1]];
        let seed = differs[1 - turn] & !1;
        let controls = [differs[0] & 1 ^ turn as u128 ^ 1, differs[1] & 1 ^ turn as u128];
        let mut level = Level { number, turn, differs, seeds: &seeds, seed, controls };
        let descends = correct(&mut level);
        let Level { seed, controls, .. } = level;
        if descends {
            for (node, grown) in nodes.iter_mut().zip(grown) {
                let corrected = if *node & 1 == 1 { seed | controls[turn] } else { 0 };
                *node = grown[turn] ^ corrected;
            }
        }
        seeds.push(seed | controls[0]);
        rights |= (controls[1] as u8) << number;
    }
    let mut ends = [0; 2];
    kernels.ggm_convert(keys, &nodes, 0, &mut ends);
    let last = last(ends[0] ^ ends[1]);
    roots.map(|root| {
        let mut bytes = nonce.to_vec();
        bytes.extend(root.to_le_bytes());
        bytes.extend(seeds.iter().flat_map(|seed| seed.to_le_bytes()));
        bytes.push(rights);
        bytes.extend(last.to_le_bytes());
        bytes
    })
}
