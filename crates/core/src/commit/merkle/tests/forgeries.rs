//! All kinds of answers that do not belong to the commitments.

use super::*;

/// Cuts with vector lengths that are not powers of two, caps between the root and the leaves, and
/// more vectors than lanes. All records differ: if the leaves are the cap and a proof is empty,
/// equal records can rightly replace each other.
fn worlds() -> impl Iterator<Item = World> {
    let cuts = [
        cut(1, 1, 1, 0, 0),
        cut(9, 3, 3, 0, 0),
        cut(40, 8, 8, 0, 1),
        cut(66, 4, 11, 0, 4),
        cut(133, 4, 7, 0, 2),
    ];
    cuts.into_iter()
        .flat_map(|merkle| all_kernels().map(move |kernels| World::new(merkle, kernels)))
}

#[test]
fn every_flipped_bit_is_rejected_and_says_whose_it_was() {
    for world in worlds() {
        let honest = [3, 4].map(|seed| world.answer(world.offsets(seed)));
        assert_eq!(world.verify(honest.each_ref()), Ok(()));
        for server in 0..2 {
            let verdict = |answer: &Answer| {
                let mut answers = honest.each_ref();
                answers[server] = answer;
                world.verify(answers)
            };
            let wrong = Err([server == 0, server == 1]);
            let mut forged = honest[server].clone();
            for bit in 0..8 * forged.records.len() {
                forged.records[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(verdict(&forged), wrong);
                forged.records[bit / 8] ^= 1 << (bit % 8);
            }
            for bit in 0..8 * forged.proof.len() {
                forged.proof[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(verdict(&forged), wrong);
                forged.proof[bit / 8] ^= 1 << (bit % 8);
            }
            assert_eq!(verdict(&forged), Ok(()));
        }
    }
}

#[test]
fn an_answer_for_one_record_is_rejected_for_every_other() {
    for world in worlds() {
        let vector_len = world.merkle.vectors.vector_len() as u16;
        let count = world.merkle.vectors.count() as usize;
        for offset in 0..vector_len {
            let answer = world.answer(vec![offset; count]);
            // All values of 16 bits, so also those beyond the vector.
            for asked in (0..2 * vector_len + 40).chain([u16::MAX]) {
                let mut other = answer.clone();
                other.offsets[count - 1] = asked;
                let expected = if asked == offset { Ok(()) } else { Err([true, false]) };
                assert_eq!(world.verify([&other, &answer]), expected, "{asked} {offset}");
            }
        }
    }
}

#[test]
fn records_and_paths_of_other_vectors_are_rejected() {
    for world in worlds().filter(|world| world.merkle.vectors.count() > 1) {
        let count = world.merkle.vectors.count() as usize;
        let (len, path_len) = (world.merkle.vectors.record_len(), world.merkle.proof_len() / count);
        let honest = world.answer(vec![0; count]);
        let mut forged = honest.clone();
        forged.records.copy_within(..len, len);
        forged.proof.copy_within(..path_len, path_len);
        assert_eq!(world.verify([&honest, &forged]), Err([false, true]));
    }
}

#[test]
fn both_servers_can_be_wrong() {
    for world in worlds() {
        let mut forged = world.answer(world.offsets(1));
        forged.records[0] ^= 1;
        assert_eq!(world.verify([&forged, &forged]), Err([true, true]));
    }
}

#[test]
fn wrong_lengths_are_rejected() {
    for world in worlds() {
        let honest = world.answer(world.offsets(1));
        let mut forgeries = vec![honest.clone(); 8];
        forgeries[0].offsets.push(0);
        forgeries[1].offsets.pop();
        forgeries[2].records.push(0);
        forgeries[3].records.pop();
        forgeries[4].proof.push(0);
        forgeries[5].proof.extend([0; 32]);
        forgeries[6].records.clear();
        forgeries[7].offsets.clear();
        if world.merkle.proof_len() > 0 {
            let mut short = honest.clone();
            short.proof.pop();
            forgeries.push(short.clone());
            short.proof.clear();
            forgeries.push(short);
        }
        for forged in &forgeries {
            assert_eq!(world.verify([forged, &honest]), Err([true, false]));
            assert_eq!(world.verify([&honest, forged]), Err([false, true]));
        }
    }
}

/// A leaf is not an inner node: a record whose bytes are two nodes does not open to their parent,
/// and two nodes do not open as a record.
#[test]
fn leaves_and_inner_nodes_are_apart() {
    let hasher = MerkleHasher::new(Kernels::detect());
    let (left, right) = ([1; 32], [2; 32]);
    let index = u64::from_le_bytes([1; 8]);
    let record = [&left[8..], &right[..]].concat();
    assert_ne!(hasher.leaf(index, &record), hasher.parent(&left, &right));
}
