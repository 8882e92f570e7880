//! `vectors/pointproofs.json`, computed by a program that shares no code with this one.

use super::{Openings, Parties, verdict};
use crate::pointproofs::claims::{Claim, commitments_digest};
use crate::pointproofs::{Pointproofs, ReferenceString};
use privet_core::TableShape;
use privet_core::commit::{Prover as _, Vectors};
use privet_laboratory_kernels::bls12_381::Scalar;
use std::sync::Arc;

fn hex(text: &serde_json::Value) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap() as u8;
    let text = text.as_str().unwrap().as_bytes();
    text.as_chunks::<2>().0.iter().map(|[high, low]| digit(*high) << 4 | digit(*low)).collect()
}

#[test]
fn every_byte_is_as_computed_elsewhere() {
    let file: serde_json::Value =
        serde_json::from_str(include_str!("../../../../../vectors/pointproofs.json")).unwrap();
    let cases = file["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 3);
    for case in cases {
        let number = |name: &str| case[name].as_u64().unwrap();
        let alpha = Scalar::from_bytes(hex(&case["alpha"]).as_slice().try_into().unwrap()).unwrap();
        let string = Arc::new(ReferenceString::from_alpha(number("size") as u32, &alpha));
        assert_eq!(string.encode(), hex(&case["reference_string"]));
        assert_eq!(string.digest().as_slice(), hex(&case["reference"]));

        let shape = TableShape::new(number("records"), number("record_len")).unwrap();
        let vectors = Vectors::new(shape, number("vector_len") as u32, 1).unwrap();
        let mut table = super::bytes("a table", shape.bytes() as usize);
        table.resize(vectors.padded_bytes() as usize, 0);
        for openings in [Openings::OnDemand, Openings::Precomputed] {
            let parties = Parties::of(vectors, table.clone(), string.clone(), openings);
            let commitments = hex(&case["commitments"]);
            assert!(parties.prover.announcement().ends_with(&commitments));
            let mut answers = Vec::new();
            for (role, expected) in case["answers"].as_array().unwrap().iter().enumerate() {
                let offsets = expected["offsets"].as_array().unwrap();
                let offsets: Vec<u16> =
                    offsets.iter().map(|o| o.as_u64().unwrap() as u16).collect();
                let answer = parties.answer(role as u8, &offsets);
                assert_eq!(answer.records, hex(&expected["records"]));
                assert_eq!(answer.proof, hex(&expected["proof"]));
                let parameters = Pointproofs::new(vectors, string.clone(), openings).unwrap();
                let digest = commitments_digest(commitments.as_chunks().0);
                let claim = Claim::new(&parameters, &digest, role as u8, &offsets, &answer.records);
                let weights = expected["weights"].as_array().unwrap().iter().map(hex);
                assert!(
                    weights.eq(claim.weights.iter().map(|weight| weight.to_le_bytes().to_vec()))
                );
                answers.push(answer);
            }
            assert_eq!(verdict(&parties.verifier, [&answers[0], &answers[1]]), [false; 2]);
        }
    }
}
