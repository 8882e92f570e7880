//! Wrong answers are rejected, and the right server is blamed.

use super::{Answer, Openings, Parties, known_string, verdict};
use crate::pointproofs::Pointproofs;
use privet_core::commit::{
    Gathering as _, Opened, Prover as _, VectorCommitment as _, Verifier as _,
};
use privet_core::{Blame, SecretRng};
use privet_kernels::Kernels;
use privet_laboratory_kernels::bls12_381::{G1, G2, Scalar, pairings_cancel};

/// Tries `lie` as the answer of either server, and of both.
fn assert_rejected(parties: &Parties, truth: &[Answer; 2], lie: impl Fn(&Answer) -> Answer) {
    let lies = truth.each_ref().map(&lie);
    assert_eq!(verdict(&parties.verifier, [&lies[0], &truth[1]]), [true, false]);
    assert_eq!(verdict(&parties.verifier, [&truth[0], &lies[1]]), [false, true]);
    assert_eq!(verdict(&parties.verifier, [&lies[0], &lies[1]]), [true, true]);
}

fn parties_and_answers() -> (Parties, [Answer; 2]) {
    let parties = Parties::new(3, 3, 5, 2, Openings::OnDemand);
    let answers = [parties.answer(0, &[1, 0]), parties.answer(1, &[2, 0])];
    assert_eq!(verdict(&parties.verifier, answers.each_ref()), [false; 2]);
    (parties, answers)
}

#[test]
fn every_bit_of_records_proof_and_offsets() {
    let (parties, truth) = parties_and_answers();
    for bit in 0..truth[0].records.len() * 8 {
        assert_rejected(&parties, &truth, |answer| {
            let mut lie = answer.clone();
            lie.records[bit / 8] ^= 1 << (bit % 8);
            lie
        });
    }
    for bit in 0..48 * 8 {
        assert_rejected(&parties, &truth, |answer| {
            let mut lie = answer.clone();
            lie.proof[bit / 8] ^= 1 << (bit % 8);
            lie
        });
    }
    for vector in 0..2 {
        // The padding beyond the table's end has equal records at two offsets. Proofs tell even
        // these apart.
        for step in [1, 2, 3, 1 << 15] {
            assert_rejected(&parties, &truth, |answer| {
                let mut lie = answer.clone();
                lie.offsets[vector] =
                    (lie.offsets[vector] + step) % if step < 3 { 3 } else { u16::MAX };
                lie
            });
        }
    }
}

#[test]
fn proofs_of_something_else() {
    let (parties, truth) = parties_and_answers();
    // The answer from another table, whose records the server claims to have.
    let mut other = Parties::new(3, 3, 5, 2, Openings::OnDemand);
    other.table[3] ^= 1;
    let other = Parties::of(other.vectors, other.table, known_string(3), Openings::OnDemand);
    let lie = other.answer(0, &truth[0].offsets);
    assert_eq!(verdict(&parties.verifier, [&lie, &truth[1]]), [true, false]);
    // The answer in the other server's role.
    let lie = parties.answer(1, &truth[0].offsets);
    assert_eq!(verdict(&parties.verifier, [&lie, &truth[1]]), [true, false]);
    // Records exchanged between vectors.
    assert_rejected(&parties, &truth, |answer| {
        let mut lie = answer.clone();
        lie.records.rotate_left(2);
        lie
    });
    // The other server's answer, repeated.
    assert_eq!(verdict(&parties.verifier, [&truth[1], &truth[1]]), [true, false]);
    // No proof at all: infinity, and the generator.
    for point in [G1::infinity(), G1::generator()] {
        assert_rejected(&parties, &truth, |answer| Answer {
            proof: point.compress().to_vec(),
            ..answer.clone()
        });
    }
}

#[test]
fn lies_of_both_servers_do_not_cancel() {
    let (parties, truth) = parties_and_answers();
    let shifted = |answer: &Answer, by: &G1| {
        let proof = answer.proof.as_slice().try_into().unwrap();
        let mut proof = G1::from_compressed(proof).unwrap().to_sum();
        proof.add_affine(by);
        Answer { proof: proof.to_affine().compress().to_vec(), ..answer.clone() }
    };
    let by = G1::generator();
    let lies = [shifted(&truth[0], &by), shifted(&truth[1], &by.negated())];
    assert_eq!(verdict(&parties.verifier, lies.each_ref()), [true, true]);
}

#[test]
fn a_proof_outside_the_group() {
    let (parties, truth) = parties_and_answers();
    // The point of the curve with x = 4, without its part in the group: its power r, computed as
    // its power r − 1 times the point itself.
    let mut point = [0; 96];
    point[47] = 4;
    point[48..].copy_from_slice(&Y_OF_4);
    let point = G1::from_uncompressed_of_our_own(&point).unwrap();
    let mut outside = point.to_sum().power(&(Scalar::ZERO - Scalar::ONE));
    outside.add_affine(&point);
    let outside = outside.to_affine();
    // No pairing tells it from infinity. So together with a true proof it would make another proof
    // that verifies.
    assert!(!outside.is_infinity() && pairings_cancel(&[(outside, G2::generator())]));
    assert_rejected(&parties, &truth, |answer| {
        let proof = answer.proof.as_slice().try_into().unwrap();
        let mut proof = G1::from_compressed(proof).unwrap().to_sum();
        proof.add_affine(&outside);
        Answer { proof: proof.to_affine().compress().to_vec(), ..answer.clone() }
    });
}

const Y_OF_4: [u8; 48] = [
    0x0a, 0x98, 0x9b, 0xad, 0xd4, 0x0d, 0x62, 0x12, 0xb3, 0x3c, 0xff, 0xc3, 0xf3, 0x76, 0x3e, 0x9b,
    0xc7, 0x60, 0xf9, 0x88, 0xc9, 0x92, 0x6b, 0x26, 0xda, 0x9d, 0xd8, 0x5e, 0x92, 0x84, 0x83, 0x44,
    0x63, 0x46, 0xb8, 0xed, 0x00, 0xe1, 0xde, 0x5d, 0x5e, 0xa9, 0x3e, 0x35, 0x4a, 0xbe, 0x70, 0x6c,
];

#[test]
fn answers_of_a_wrong_length() {
    let (parties, truth) = parties_and_answers();
    let cut = |answer: &Answer, offsets: usize, records: usize, proof: usize| Answer {
        offsets: answer.offsets.iter().cycle().take(offsets).copied().collect(),
        records: answer.records.iter().cycle().take(records).copied().collect(),
        proof: answer.proof.iter().cycle().take(proof).copied().collect(),
    };
    assert_eq!((truth[0].offsets.len(), truth[0].records.len()), (2, 4));
    for lengths in [
        (0, 0, 0),
        (1, 4, 48),
        (3, 4, 48),
        (2, 3, 48),
        (2, 5, 48),
        (2, 4, 47),
        (2, 4, 49),
        (2, 4, 0),
        (0, 0, 48),
    ] {
        assert_rejected(&parties, &truth, |answer| cut(answer, lengths.0, lengths.1, lengths.2));
    }
    let nothing = Opened { offsets: &[], records: &[], proof: &[] };
    let rejected = parties.verifier.verify([nothing, nothing]).unwrap_err();
    assert_eq!(rejected.servers, [true, true]);
}

#[test]
fn announcements() {
    let parties = Parties::new(3, 2, 5, 2, Openings::OnDemand);
    let parameters = Pointproofs::for_client(parties.vectors, 3, known_string(3).digest()).unwrap();
    let finish = |announcement: &[u8]| {
        parameters
            .gathering(Kernels::detect())
            .unwrap()
            .finish(announcement)
            .map(|_| ())
            .map_err(|error| error.blame())
    };
    let good = parties.prover.announcement();
    assert_eq!(finish(&good), Ok(()));
    assert_eq!(finish(&good[1..]), Err(Blame::PeerMisbehaved));
    assert_eq!(finish(&[]), Err(Blame::PeerMisbehaved));
    assert_eq!(finish(&[&good[..], &[0]].concat()), Err(Blame::PeerMisbehaved));
    // The digest fixes every byte of the share. A wrong sign of a commitment cannot be noticed;
    // bytes that are not a point are.
    let share = 48 + 3 * 96;
    for place in 0..share {
        let mut lie = good.clone();
        lie[place] ^= 1;
        assert_eq!(finish(&lie), Err(Blame::PeerMisbehaved), "byte {place}");
    }
    let mut lie = good.clone();
    lie[share] ^= 0x80;
    assert_eq!(finish(&lie), Err(Blame::PeerMisbehaved));
    // Another string than the parameters name.
    let other = Pointproofs::for_client(parties.vectors, 3, [9; 32]).unwrap();
    let finished = other.gathering(Kernels::detect()).unwrap().finish(&good);
    assert_eq!(finished.err().unwrap().blame(), Blame::PeerMisbehaved);
}

#[test]
fn commitments_of_another_table_verify_nothing() {
    let parties = Parties::new(3, 3, 9, 2, Openings::OnDemand);
    let answers = parties.answers(&mut SecretRng::from_os().unwrap());
    let mut other = Parties::new(3, 3, 9, 2, Openings::OnDemand);
    other.table[17] ^= 0x80;
    let other = Parties::of(other.vectors, other.table, known_string(3), Openings::OnDemand);
    assert_eq!(verdict(&other.verifier, answers.each_ref()), [true, true]);
}
