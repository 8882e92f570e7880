#![allow(clippy::unwrap_used)]
//! Small sizes, so that every byte and every position can be tried.

mod adversary;
mod known_answers;
mod reference_string;
mod round_trips;
mod updates;

use super::{Openings, Pointproofs, PointproofsProver, PointproofsVerifier, ReferenceString};
use privet_core::commit::{Gathering as _, Opened, Prover as _, VectorCommitment as _, Vectors};
use privet_core::{SecretRng, TableShape};
use privet_kernels::Kernels;
use privet_laboratory_kernels::bls12_381::Scalar;
use std::sync::Arc;

/// Bytes that are different everywhere.
fn bytes(name: &str, len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    blake3::Hasher::new().update(name.as_bytes()).finalize_xof().fill(&mut out);
    out
}

/// The string for an α that everyone knows.
fn known_string(size: u32) -> Arc<ReferenceString> {
    let mut uniform = [0; 48];
    uniform.copy_from_slice(&bytes("alpha", 48));
    Arc::new(ReferenceString::from_alpha(size, &Scalar::from_uniform(&uniform)))
}

/// A table, both servers (they are alike) and a client.
struct Parties {
    vectors: Vectors,
    table: Vec<u8>,
    prover: PointproofsProver,
    verifier: PointproofsVerifier,
}

impl Parties {
    fn new(size: u32, vector_len: u32, records: u64, record_len: u64, openings: Openings) -> Self {
        let shape = TableShape::new(records, record_len).unwrap();
        let vectors = Vectors::new(shape, vector_len, 1).unwrap();
        let mut table = bytes("a table", shape.bytes() as usize);
        table.resize(vectors.padded_bytes() as usize, 0);
        Self::of(vectors, table, known_string(size), openings)
    }

    fn of(
        vectors: Vectors,
        table: Vec<u8>,
        string: Arc<ReferenceString>,
        openings: Openings,
    ) -> Self {
        let client = Pointproofs::for_client(vectors, string.size(), string.digest()).unwrap();
        let server = Pointproofs::new(vectors, string, openings).unwrap();
        let kept = server.precompute(&table, Kernels::detect(), &|_| {}).unwrap();
        assert_eq!(kept.len() as u64, server.kept_len());
        let prover = server.prover(&table, &kept, Kernels::detect()).unwrap();
        let announcement = prover.announcement();
        assert_eq!(announcement.len() as u64, client.announcement_len());
        let mut gathering = client.gathering(Kernels::detect()).unwrap();
        for (number, vector) in table.chunks_exact(vectors.vector_bytes() as usize).enumerate() {
            gathering.absorb(number as u32, vector);
        }
        let verifier = gathering.finish(&announcement).unwrap();
        Self { vectors, table, prover, verifier }
    }

    fn answer(&self, role: u8, offsets: &[u16]) -> Answer {
        let record_len = self.vectors.record_len();
        let mut records = Vec::new();
        for (vector, offset) in offsets.iter().enumerate() {
            let number = vector * self.vectors.vector_len() as usize + usize::from(*offset);
            records.extend_from_slice(&self.table[number * record_len..][..record_len]);
        }
        let mut proof = vec![0; 48];
        self.prover.open(role, &self.table, offsets, &records, &mut proof);
        Answer { offsets: offsets.to_vec(), records, proof }
    }

    /// Both servers' answers to random offsets.
    fn answers(&self, rng: &mut SecretRng) -> [Answer; 2] {
        let len = u64::from(self.vectors.vector_len());
        [0, 1].map(|role| {
            let offsets: Vec<u16> =
                (0..self.vectors.count()).map(|_| rng.below(len) as u16).collect();
            self.answer(role, &offsets)
        })
    }
}

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

/// The client's verdict on two answers: for each server, whether it is to blame.
fn verdict(verifier: &PointproofsVerifier, answers: [&Answer; 2]) -> [bool; 2] {
    use privet_core::commit::Verifier as _;
    match verifier.verify(answers.map(Answer::opened)) {
        Ok(()) => [false; 2],
        Err(rejected) => {
            assert_ne!(rejected.servers, [false; 2], "somebody is to blame");
            rejected.servers
        }
    }
}
