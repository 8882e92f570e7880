//! True answers are accepted for every shape, and both ways to compute openings give the same
//! bytes.

use super::{Openings, Parties, bytes, known_string, verdict};
use crate::pointproofs::Pointproofs;
use privet_core::commit::{Prover as _, VectorCommitment as _, Vectors, Verifier as _};
use privet_core::{Blame, SecretRng, TableShape};
use privet_kernels::Kernels;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_shape(vector_len in 1u32..12, longer in 0u32..4, records in 1u64..40, record_len in 1u64..70) {
        let mut rng = SecretRng::from_os().unwrap();
        let size = vector_len + longer;
        let parties = Parties::new(size, vector_len, records, record_len, Openings::OnDemand);
        let [first, second] = parties.answers(&mut rng);
        prop_assert_eq!(verdict(&parties.verifier, [&first, &second]), [false; 2]);

        let precomputed = Parties::new(size, vector_len, records, record_len, Openings::Precomputed);
        prop_assert_eq!(precomputed.prover.announcement(), parties.prover.announcement());
        prop_assert_eq!(&precomputed.answer(0, &first.offsets).proof, &first.proof);
        prop_assert_eq!(&precomputed.answer(1, &second.offsets).proof, &second.proof);

        // The client's stored data is read back unchanged.
        let parameters = Pointproofs::for_client(parties.vectors, size, known_string(size).digest()).unwrap();
        let mut kept = Vec::new();
        parties.verifier.encode(&mut kept);
        prop_assert_eq!(kept.len() as u64, parameters.verifier_len());
        let verifier = parameters.read_verifier(&kept, Kernels::detect()).unwrap();
        prop_assert_eq!(verdict(&verifier, [&first, &second]), [false; 2]);
        let mut again = Vec::new();
        verifier.encode(&mut again);
        prop_assert_eq!(again, kept);
    }
}

#[test]
fn every_offset_of_both_servers() {
    let parties = Parties::new(4, 4, 11, 3, Openings::OnDemand);
    for first in 0..4 {
        for second in 0..4 {
            let answers =
                [parties.answer(0, &[first, 0, 3]), parties.answer(1, &[second, 0, first])];
            assert_eq!(verdict(&parties.verifier, answers.each_ref()), [false; 2]);
        }
    }
}

#[test]
fn enough_records_for_every_table_layout() {
    // More than one window of exponents, and a vector as long as the string.
    let parties = Parties::new(70, 70, 150, 2, Openings::OnDemand);
    let answers = parties.answers(&mut SecretRng::from_os().unwrap());
    assert_eq!(verdict(&parties.verifier, answers.each_ref()), [false; 2]);
}

#[test]
fn progress_reaches_the_end() {
    let vectors = Vectors::new(TableShape::new(9, 4).unwrap(), 2, 1).unwrap();
    let parameters = Pointproofs::new(vectors, known_string(2), Openings::OnDemand).unwrap();
    let heard = std::sync::Mutex::new(Vec::new());
    let table = bytes("a table", vectors.padded_bytes() as usize);
    parameters
        .precompute(&table, Kernels::detect(), &|share| heard.lock().unwrap().push(share))
        .unwrap();
    assert_eq!(*heard.lock().unwrap(), [0.2, 0.4, 0.6, 0.8, 1.0]);
}

#[test]
fn what_was_kept_is_refused_if_it_is_damaged() {
    for openings in [Openings::OnDemand, Openings::Precomputed] {
        let vectors = Vectors::new(TableShape::new(5, 4).unwrap(), 3, 1).unwrap();
        let parameters = Pointproofs::new(vectors, known_string(3), openings).unwrap();
        let table = bytes("a table", vectors.padded_bytes() as usize);
        let kept = parameters.precompute(&table, Kernels::detect(), &|_| {}).unwrap();
        let blame =
            |kept: &[u8]| parameters.prover(&table, kept, Kernels::detect()).err().unwrap().blame();
        assert_eq!(blame(&kept[1..]), Blame::Corrupted);
        assert_eq!(blame(&[kept.clone(), vec![0]].concat()), Blame::Corrupted);
        let mut damaged = kept.clone();
        *damaged.last_mut().unwrap() ^= 1;
        assert_eq!(blame(&damaged), Blame::Corrupted);
    }
    let parties = Parties::new(3, 3, 5, 4, Openings::OnDemand);
    let mut kept = Vec::new();
    parties.verifier.encode(&mut kept);
    let parameters = Pointproofs::for_client(parties.vectors, 3, known_string(3).digest()).unwrap();
    let blame =
        |kept: &[u8]| parameters.read_verifier(kept, Kernels::detect()).err().unwrap().blame();
    assert_eq!(blame(&kept[1..]), Blame::Corrupted);
    for place in [90, 96 + 90, kept.len() - 1] {
        let mut damaged = kept.clone();
        damaged[place] ^= 1;
        assert_eq!(blame(&damaged), Blame::Corrupted);
    }
    assert!(parameters.resume_gathering(&[], Kernels::detect()).is_ok());
    let resumed = parameters.resume_gathering(&[1], Kernels::detect());
    assert_eq!(resumed.err().unwrap().blame(), Blame::Corrupted);
}

#[test]
fn a_client_cannot_serve_and_a_string_cannot_be_too_short() {
    let vectors = Vectors::new(TableShape::new(5, 4).unwrap(), 3, 1).unwrap();
    let client = Pointproofs::for_client(vectors, 3, [7; 32]).unwrap();
    let table = [0; 24];
    let blame = client.precompute(&table, Kernels::detect(), &|_| {}).err().unwrap().blame();
    assert_eq!(blame, Blame::ApiMisuse);
    let kept = parameters_kept();
    let blame = client.prover(&table, &kept, Kernels::detect()).err().unwrap().blame();
    assert_eq!(blame, Blame::ApiMisuse);
    let blame =
        Pointproofs::new(vectors, known_string(2), Openings::OnDemand).err().unwrap().blame();
    assert_eq!(blame, Blame::ApiMisuse);
    for size in [0, 2, (1 << 16) + 1, u32::MAX] {
        let refused = Pointproofs::for_client(vectors, size, [7; 32]);
        assert_eq!(refused.err().unwrap().blame(), Blame::ApiMisuse);
    }
}

/// Two commitments that a prover would accept.
fn parameters_kept() -> Vec<u8> {
    let parties = Parties::new(3, 3, 5, 4, Openings::OnDemand);
    parties.prover.announcement()[48 + 3 * 96..].to_vec()
}

#[test]
fn vectors_longer_than_powers_are_prepared_for() {
    let parties = Parties::new(1030, 1030, 1031, 1, Openings::OnDemand);
    let answers = [parties.answer(0, &[1029, 0]), parties.answer(1, &[0, 700])];
    assert_eq!(verdict(&parties.verifier, answers.each_ref()), [false; 2]);
    let mut lie = answers.clone();
    lie[1].records[1] ^= 1;
    assert_eq!(verdict(&parties.verifier, lie.each_ref()), [false, true]);
}
