#![allow(clippy::unwrap_used)]

mod forgeries;
mod known_answers;
mod updates;

use super::*;
use crate::TableShape;
use crate::commit::{Gathering as _, Opened, Prover as _, Rejected, Verifier as _};
use privet_kernels::Arm;
use proptest::prelude::*;

fn all_kernels() -> impl Iterator<Item = Kernels> {
    Arm::available().into_iter().map(|arm| Kernels::with_arm(arm).unwrap())
}

/// A table with its cut, padded to whole vectors, and everything made from it.
struct World {
    merkle: Merkle,
    table: Vec<u8>,
    prover: MerkleProver,
    verifier: MerkleVerifier,
}

fn cut(records: u64, record_len: u64, vector_len: u32, at_least: u32, cap_levels: u8) -> Merkle {
    let shape = TableShape::new(records, record_len).unwrap();
    Merkle::new(Vectors::new(shape, vector_len, at_least).unwrap(), cap_levels).unwrap()
}

fn table(merkle: &Merkle, text: &str) -> Vec<u8> {
    let mut table = vec![0; merkle.vectors.padded_bytes() as usize];
    let filled = &mut table[..merkle.vectors.shape().bytes() as usize];
    blake3::Hasher::new().update(text.as_bytes()).finalize_xof().fill(filled);
    table
}

fn gathered(merkle: &Merkle, table: &[u8], kernels: Kernels) -> MerkleVerifier {
    let mut gathering = merkle.gathering(kernels).unwrap();
    for number in 0..merkle.vectors.count() {
        gathering.absorb(number, merkle.records(table, number));
    }
    gathering.finish(&[]).unwrap()
}

fn encoded(verifier: &MerkleVerifier) -> Vec<u8> {
    let mut bytes = Vec::new();
    verifier.encode(&mut bytes);
    bytes
}

/// An answer with its proof.
#[derive(Clone)]
struct Answer {
    offsets: Vec<u16>,
    records: Vec<u8>,
    proof: Vec<u8>,
}

impl Answer {
    fn opened(&self) -> Opened<'_> {
        Opened { offsets: &self.offsets, records: &self.records, proof: &self.proof }
    }
}

impl World {
    fn new(merkle: Merkle, kernels: Kernels) -> Self {
        let table = table(&merkle, "a table");
        let prover = merkle.prover(&table, &[], kernels).unwrap();
        let verifier = gathered(&merkle, &table, kernels);
        Self { merkle, table, prover, verifier }
    }

    fn offsets(&self, seed: u64) -> Vec<u16> {
        let vector_len = u64::from(self.merkle.vectors.vector_len());
        let draw =
            |q: u64| (seed ^ q).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) % vector_len;
        (0..self.merkle.vectors.count().into()).map(|q| draw(q) as u16).collect()
    }

    fn answer(&self, offsets: Vec<u16>) -> Answer {
        let len = self.merkle.vectors.record_len();
        let record = |(vector, &offset): (u32, &u16)| {
            &self.merkle.records(&self.table, vector)[usize::from(offset) * len..][..len]
        };
        let records = (0..).zip(&offsets).flat_map(record).copied().collect::<Vec<_>>();
        // Not zero, so that unwritten bytes show.
        let mut proof = vec![7; self.merkle.proof_len()];
        self.prover.open(0, &self.table, &offsets, &records, &mut proof);
        Answer { offsets, records, proof }
    }

    fn verify(&self, answers: [&Answer; 2]) -> Result<(), [bool; 2]> {
        let verdict = self.verifier.verify(answers.map(Answer::opened));
        verdict.map_err(|Rejected { servers }| servers)
    }
}

/// The definition, computed in the simplest way.
fn node(merkle: &Merkle, table: &[u8], vector: u32, height: u32, position: u32) -> Node {
    let vector_len = merkle.vectors.vector_len();
    if u64::from(position) << height >= u64::from(vector_len) {
        return [0; 32];
    }
    if height == 0 {
        let len = merkle.vectors.record_len();
        let index = u64::from(vector) * u64::from(vector_len) + u64::from(position);
        let mut input = index.to_le_bytes().to_vec();
        input.extend(&table[index as usize * len..][..len]);
        let key = blake3::derive_key("privet 2026-11 merkle leaf", b"");
        return *blake3::keyed_hash(&key, &input).as_bytes();
    }
    let below = |side| node(merkle, table, vector, height - 1, 2 * position + side);
    let key = blake3::derive_key("privet 2026-11 merkle node", b"");
    *blake3::keyed_hash(&key, &[below(0), below(1)].concat()).as_bytes()
}

fn check_definition(merkle: Merkle, seed: u64) {
    let height = merkle.cap_height();
    for kernels in all_kernels() {
        let world = World::new(merkle, kernels);
        let cap = (0..merkle.vectors.count()).flat_map(|vector| {
            let nodes = (0..1 << merkle.cap_levels).map(move |position| (vector, position));
            nodes.map(|(vector, position)| node(&merkle, &world.table, vector, height, position))
        });
        let cap: Vec<Node> = cap.filter(|node| *node != ZERO).collect();
        assert!(world.verifier.cap == cap, "{merkle:?}");
        assert_eq!(encoded(&world.verifier), cap.as_flattened());
        assert_eq!(merkle.verifier_len(), cap.as_flattened().len() as u64);

        let answers = [seed, !seed].map(|seed| world.answer(world.offsets(seed)));
        for answer in &answers {
            let paths = (0..).zip(&answer.offsets).flat_map(|(vector, &offset)| {
                let siblings =
                    (0..height).map(move |height| (height, u32::from(offset) >> height ^ 1));
                let table = &world.table;
                siblings
                    .map(move |(height, position)| node(&merkle, table, vector, height, position))
            });
            let paths: Vec<Node> = paths.collect();
            assert_eq!(answer.proof, paths.as_flattened(), "{merkle:?}");
        }
        assert_eq!(world.verify([&answers[0], &answers[1]]), Ok(()));
        let read = merkle.read_verifier(&encoded(&world.verifier), kernels).unwrap();
        assert_eq!(read.verify(answers.each_ref().map(Answer::opened)), Ok(()));
        let kept = world.prover.resident_bytes();
        let rounded_up = merkle.vectors.vector_len() + height;
        assert!(kept <= 32 * u64::from(merkle.vectors.count()) * u64::from(rounded_up));
    }
}

/// All small vector lengths with all caps. The numbers lie on both sides of groups of 128 vectors
/// and 16 lanes.
#[test]
fn caps_and_proofs_are_those_of_the_definition() {
    for vector_len in (1..=17).chain([31, 32, 33]) {
        for cap_levels in 0..=depth(vector_len.into()) as u8 {
            for vectors in [1, 2, 15, 17] {
                let records = u64::from(vector_len) * vectors - u64::from(vector_len) / 2;
                check_definition(cut(records, 5, vector_len, 0, cap_levels), records);
            }
        }
    }
    for vectors in [127, 128, 129, 300] {
        check_definition(cut(vectors * 6 - 1, 33, 6, 0, 1), vectors);
    }
}

/// More than the 512 leaves that are hashed before the level above; and records that are hashed one
/// by one.
#[test]
fn long_vectors_and_long_records() {
    for vector_len in [511, 512, 513, 1024, 1500] {
        check_definition(cut(2000, 3, vector_len, 3, 2), 5);
    }
    for record_len in [55, 56, 57, 1016, 1017, 3000] {
        check_definition(cut(30, record_len, 7, 0, 1), 6);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_shape(records in 1u64..400, record_len in 1u64..90, vector_len in 1u32..70, at_least in 0u32..5, caps in 0u8..8, seed: u64) {
        let cap_levels = caps % (depth(vector_len.into()) as u8 + 1);
        check_definition(cut(records, record_len, vector_len, at_least, cap_levels), seed);
    }
}

#[test]
fn a_path_leads_to_the_root_from_every_record() {
    for kernels in all_kernels() {
        let hasher = MerkleHasher::new(kernels);
        for records in (1..40).chain([63, 64, 65, 600]) {
            let merkle = cut(records, 9, records as u32, 0, 0);
            let table = table(&merkle, "a table");
            let tree = Tree::new(&hasher, &table, 9).unwrap();
            assert_eq!(tree.depth(), depth(records));
            assert_eq!(tree.root(), node(&merkle, &table, 0, tree.depth(), 0));
            for index in 0..records {
                let path: Vec<Node> = tree.path(index).collect();
                assert_eq!(path.len(), tree.depth() as usize);
                let leaf = hasher.leaf(index, &table[index as usize * 9..][..9]);
                assert_eq!(hasher.root_of_path(index, leaf, &path), tree.root());
                let elsewhere = (index + 1) % (1 << tree.depth());
                if elsewhere != index {
                    assert_ne!(hasher.root_of_path(elsewhere, leaf, &path), tree.root());
                }
            }
        }
    }
    let hasher = MerkleHasher::new(Kernels::detect());
    assert!(Tree::new(&hasher, &[], 9).is_err());
    assert!(Tree::new(&hasher, &[1; 10], 9).is_err());
    assert!(Tree::new(&hasher, &[1; 10], 0).is_err());
}

#[test]
fn sizes() {
    for (leaves, height) in
        [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1 << 16, 16), ((1 << 16) + 1, 17)]
    {
        assert_eq!(depth(leaves), height, "{leaves}");
    }
    assert_eq!([0, 1, 2, 3, 4, 9].map(|height| width(9, height)), [9, 5, 3, 2, 1, 1]);

    let vectors = cut(1 << 20, 32, 1024, 0, 0).vectors;
    let roots = 1024 * 32;
    let expected = [
        (0, 0),
        (roots - 1, 0),
        (roots, 0),
        (2 * roots - 1, 0),
        (2 * roots, 1),
        (1024 * roots - 1, 9),
    ];
    for (bytes, cap_levels) in expected.into_iter().chain([(1024 * roots, 10), (u64::MAX, 10)]) {
        assert_eq!(Merkle::cap_levels_for(vectors, bytes), cap_levels, "{bytes}");
    }
    let error = Merkle::new(vectors, 11).unwrap_err();
    assert_eq!(error.blame(), crate::Blame::ApiMisuse);
    let merkle = Merkle::new(vectors, 4).unwrap();
    assert_eq!((merkle.proof_len(), merkle.verifier_len()), (1024 * 6 * 32, 1024 * 16 * 32));
    assert_eq!((merkle.announcement_len(), merkle.kept_len()), (0, 0));
}
