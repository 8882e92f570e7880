//! The client's side.

use super::claims::{Claim, RecordHash, commitments_digest, second_weight};
use super::reference_string::read_share;
use super::{POINT_LEN, Pointproofs};
use privet_core::codec::Reader;
use privet_core::commit::{Gathering, Opened, Rejected, VectorCommitment as _, Vectors, Verifier};
use privet_core::{Error, Result};
use privet_laboratory_kernels::bls12_381::{
    FixedBases, G1, G1Sum, G2, PreparedG2, Scalar, ScalarSum, TableLayout, pairings_cancel,
    prepared_pairings_cancel,
};

/// How exponents of 128 bits are cut for the commitments' tables, 6 KiB for each half.
const LAYOUT: TableLayout = TableLayout { pieces: 4, piece_bits: 32, window: 5 };

/// Bytes of both tables of a commitment.
pub(super) const TABLES_LEN: u64 = 2 * 6 * 1024;

/// About how many bytes `powers` powers of g₂ take.
pub(super) fn powers_len(powers: u64) -> u64 {
    let prepared = if powers <= MOST_PREPARED as u64 { powers * 19 * 1024 } else { 0 };
    powers * 192 + prepared
}

/// The most powers of g₂ that are prepared for their pairings: 20 MiB. If there are more, none is
/// prepared.
const MOST_PREPARED: usize = 1 << 10;

/// Has nothing to do while the table streams past: a client does not compute commitments, but
/// compares what two servers announce.
pub struct PointproofsGathering {
    parameters: Pointproofs,
}

impl PointproofsGathering {
    pub(super) fn new(parameters: &Pointproofs) -> Self {
        Self { parameters: parameters.clone() }
    }
}

impl Gathering for PointproofsGathering {
    type Verifier = PointproofsVerifier;

    fn absorb(&mut self, _number: u32, _records: &[u8]) {}

    fn encode(&self, _out: &mut Vec<u8>) {}

    fn finish(self, announcement: &[u8]) -> Result<PointproofsVerifier> {
        let parameters = self.parameters;
        if announcement.len() as u64 != parameters.announcement_len() {
            return Err(Error::peer_misbehaved(format!(
                "the servers announced {} bytes of commitments and reference string, not {}; do not use them",
                announcement.len(),
                parameters.announcement_len()
            )));
        }
        // The share fits in memory, because it is a part of the announcement.
        let (share, commitments) = announcement.split_at(parameters.share_len() as usize);
        let share = read_share(parameters.size, &parameters.reference_digest, share);
        let (alpha, mut powers) = share.ok_or_else(|| {
            Error::peer_misbehaved(
                "the servers announced a reference string that is invalid, or not the one that their parameters name; do not use them",
            )
        })?;
        let powers = powers.split_off(powers.len() - parameters.vector_len());
        let commitments = commitments.as_chunks().0.iter().map(G1::from_compressed);
        let commitments = commitments.collect::<Option<Vec<_>>>().ok_or_else(|| {
            Error::peer_misbehaved(
                "the servers announced a commitment that is not an element of the group; do not use them",
            )
        })?;
        PointproofsVerifier::new(&parameters, alpha, powers, commitments)
    }
}

/// The commitments and the powers of g₂.
///
/// # One equation for both servers
/// The equation of server 1, to the power of a further weight ρ, is multiplied with that of
/// server 0. Then all pairings with the same power of g₂ become one: there is one for each offset
/// that occurs in either answer, and one for the proofs. The number of different offsets depends
/// on the queries to *both* servers, and each server may know only its own query. To hide this
/// number, the client adds pairings that change nothing, up to the largest possible number. (A
/// difference of some microseconds for each offset remains, because products at one offset share
/// their doublings.) If the product is wrong, the client checks each server's equation alone, to
/// see which server is at fault.
///
/// ρ is 128 bits of a hash of both answers and both proofs. Without ρ, two servers that collude
/// could make two wrong equations whose errors cancel, such as proofs multiplied with a point and
/// with its inverse: the weights of an answer do not depend on the other answer. One server alone
/// could not do that, because the other's equation would be right. ρ costs little, and makes two
/// servers that lie together fail too.
pub struct PointproofsVerifier {
    parameters: Pointproofs,
    /// g₁^α.
    alpha: G1,
    /// The points with which the commitment of a vector is paired if its record at an offset is
    /// opened, the last offset first: g₂^(α^(M + 1 − i)) for position i, offset i − 1.
    powers: Powers,
    commitments: Vec<G1>,
    commitments_digest: [u8; 32],
    /// Two tables for each commitment C: for C and for C^(2^128), in places 2q and 2q + 1. The
    /// exponents are weights of 128 bits, and products of ρ and such weights.
    tables: FixedBases,
}

impl PointproofsVerifier {
    fn new(
        parameters: &Pointproofs,
        alpha: G1,
        powers: Vec<G2>,
        commitments: Vec<G1>,
    ) -> Result<Self> {
        let tables = tables(&commitments)?;
        let mut verifier = Self {
            parameters: parameters.clone(),
            alpha,
            powers: Powers::new(powers),
            commitments,
            commitments_digest: [0; 32],
            tables,
        };
        verifier.renew_digest();
        Ok(verifier)
    }

    fn renew_digest(&mut self) {
        let encoded: Vec<_> = self.commitments.iter().map(G1::compress).collect();
        self.commitments_digest = commitments_digest(&encoded);
    }

    pub(super) fn read(parameters: &Pointproofs, bytes: &[u8]) -> Result<Self> {
        let damaged = || Error::corrupted("the commitments that were kept are damaged");
        if bytes.len() as u64 != parameters.verifier_len() {
            return Err(damaged());
        }
        let mut reader = Reader::new("commitments", bytes);
        let mut first = || {
            let bytes = reader.array().ok()?;
            G1::from_uncompressed_of_our_own(&bytes)
        };
        let alpha = first().ok_or_else(damaged)?;
        let commitments = (0..parameters.count()).map(|_| first()).collect::<Option<_>>();
        let powers = (0..parameters.vector_len()).map(|_| {
            let bytes = reader.array().ok()?;
            G2::from_uncompressed_of_our_own(&bytes)
        });
        let powers = powers.collect::<Option<_>>().ok_or_else(damaged)?;
        Self::new(parameters, alpha, powers, commitments.ok_or_else(damaged)?)
    }

    /// A server's answer, if it has the right form. `None` counts like a wrong proof.
    fn examine<'a>(
        &self,
        role: u8,
        opened: &Opened<'a>,
        hash: &RecordHash,
    ) -> Option<Examined<'a>> {
        let vectors = self.parameters.vectors();
        let fits = opened.offsets.len() == self.commitments.len()
            && opened.records.len() == self.commitments.len() * vectors.record_len()
            && opened.offsets.iter().all(|offset| u32::from(*offset) < vectors.vector_len());
        if !fits {
            return None;
        }
        let proof = G1::from_compressed(opened.proof.try_into().ok()?)?;
        let claim = Claim::new(
            &self.parameters,
            &self.commitments_digest,
            role,
            opened.offsets,
            opened.records,
        );
        let mut weighted_records = ScalarSum::default();
        let scalars = hash.scalars(opened.records, vectors.record_len());
        for (scalar, weight) in scalars.zip(&claim.weights) {
            weighted_records.add_product(*weight, &scalar);
        }
        let weighted_records = weighted_records.reduce();
        Some(Examined { offsets: opened.offsets, proof, claim, weighted_records })
    }

    fn examine_both<'a>(&self, answers: &[Opened<'a>; 2]) -> [Option<Examined<'a>>; 2] {
        let hash = RecordHash::new();
        [0, 1].map(|role| self.examine(role as u8, &answers[role], &hash))
    }

    /// Whether both answers are right, by a single equation.
    fn hold_together(&self, examined: &[Option<Examined<'_>>; 2]) -> bool {
        let [Some(first), Some(second)] = examined else { return false };
        let proofs = [&first.proof, &second.proof];
        let weight = second_weight([&first.claim, &second.claim], proofs);
        self.holds(&[(first, 1), (second, weight)])
    }

    /// Whether the product of the equations of all `answers`, each to the power of its factor,
    /// holds.
    fn holds(&self, answers: &[(&Examined<'_>, u128)]) -> bool {
        let mut factors = Factors::default();
        let mut proofs = G1Sum::default();
        let mut records = Scalar::ZERO;
        for (answer, factor) in answers {
            let factor = Scalar::from(*factor);
            proofs.add(&answer.proof.to_sum().power(&factor));
            records = records + factor * answer.weighted_records;
            for (vector, (offset, weight)) in
                answer.offsets.iter().zip(&answer.claim.weights).enumerate()
            {
                factors.push(*offset, vector, Scalar::from(*weight) * factor);
            }
        }
        factors.0.sort_unstable_by_key(|factor| factor.offset);

        // The record of the first offset is paired with the same power as g₁^α.
        let mut sums = vec![proofs.negated(), self.alpha.to_sum().power(&records).negated()];
        let mut powers = vec![Power::Generator, Power::OfOffset(0)];
        for group in factors.0.chunk_by(|a, b| a.offset == b.offset) {
            let (places, exponents): (Vec<u32>, Vec<u128>) =
                group.iter().map(|factor| (factor.place, factor.exponent)).unzip();
            let sum = self.tables.product_of(&places, &exponents);
            if group[0].offset == 0 {
                sums[1].add(&sum);
            } else {
                sums.push(sum);
                powers.push(Power::OfOffset(group[0].offset));
            }
        }
        // A pairing that changes nothing: P is paired with some power, and 1/P is multiplied to the
        // point that is paired with this power anyway.
        let one = G1::generator().to_sum();
        let most = 1 + self.powers.points.len().min(1 + answers.len() * self.commitments.len());
        while sums.len() < most {
            sums.push(one);
            sums[1].add(&one.negated());
            powers.push(Power::OfOffset(0));
        }
        let pairs: Vec<(G1, Power)> = G1Sum::all_to_affine(&sums).into_iter().zip(powers).collect();
        self.powers.pairings_cancel(&pairs)
    }
}

/// The powers of g₂ for pairings.
struct Powers {
    /// For the last offset first.
    points: Vec<G2>,
    /// The same powers, prepared, and then the generator; or empty.
    prepared: Vec<PreparedG2>,
}

/// One of them.
#[derive(Clone, Copy)]
enum Power {
    Generator,
    OfOffset(u16),
}

impl Powers {
    fn new(points: Vec<G2>) -> Self {
        let mut prepared = Vec::new();
        if points.len() <= MOST_PREPARED {
            prepared.extend(points.iter().chain([&G2::generator()]).map(PreparedG2::new));
        }
        Self { points, prepared }
    }

    fn pairings_cancel(&self, pairs: &[(G1, Power)]) -> bool {
        let place = |power| match power {
            Power::Generator => self.points.len(),
            Power::OfOffset(offset) => self.points.len() - 1 - usize::from(offset),
        };
        if self.prepared.is_empty() {
            let generator = G2::generator();
            let point = |power| *self.points.get(place(power)).unwrap_or(&generator);
            let pairs: Vec<_> =
                pairs.iter().map(|(first, power)| (*first, point(*power))).collect();
            pairings_cancel(&pairs)
        } else {
            let prepared =
                pairs.iter().map(|(first, power)| (*first, &self.prepared[place(*power)]));
            prepared_pairings_cancel(&prepared.collect::<Vec<_>>())
        }
    }
}

/// An answer of the right form.
struct Examined<'a> {
    offsets: &'a [u16],
    proof: G1,
    claim: Claim,
    weighted_records: Scalar,
}

/// The exponents of the tables' bases, by the offset at which a commitment is opened.
#[derive(Default)]
struct Factors(Vec<Factor>);

struct Factor {
    offset: u16,
    place: u32,
    exponent: u128,
}

impl Factors {
    fn push(&mut self, offset: u16, vector: usize, exponent: Scalar) {
        for (half, bytes) in exponent.to_bytes().as_chunks::<16>().0.iter().enumerate() {
            let exponent = u128::from_le_bytes(*bytes);
            // Server 0's weights have no upper half. That is public.
            if exponent != 0 {
                self.0.push(Factor { offset, place: (2 * vector + half) as u32, exponent });
            }
        }
    }
}

/// The tables of all commitments.
fn tables(commitments: &[G1]) -> Result<FixedBases> {
    let halves: Vec<G1> = commitments.iter().flat_map(halves).collect();
    FixedBases::new(&halves, LAYOUT).map_err(|error| {
        Error::unavailable("no memory for tables of the commitments' multiples").caused_by(error)
    })
}

fn halves(commitment: &G1) -> [G1; 2] {
    let mut upper = commitment.to_sum();
    (0..128).for_each(|_| upper.double());
    [*commitment, upper.to_affine()]
}

impl Verifier for PointproofsVerifier {
    fn verify(&self, answers: [Opened<'_>; 2]) -> std::result::Result<(), Rejected> {
        let examined = self.examine_both(&answers);
        if self.hold_together(&examined) {
            return Ok(());
        }
        let alone =
            examined.map(|answer| !answer.is_some_and(|answer| self.holds(&[(&answer, 1)])));
        // Both cannot hold alone but not together. If that happened nevertheless, the client would
        // accept neither.
        let servers = if alone == [false; 2] { [true; 2] } else { alone };
        Err(Rejected { servers })
    }

    fn accepts(&self, answers: [Opened<'_>; 2]) -> bool {
        self.hold_together(&self.examine_both(&answers))
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.alpha.to_uncompressed());
        for commitment in &self.commitments {
            out.extend_from_slice(&commitment.to_uncompressed());
        }
        for power in &self.powers.points {
            out.extend_from_slice(&power.to_uncompressed());
        }
    }

    fn update(&mut self, after: Vectors, commitments: &[u8]) -> Result<()> {
        let parameters = self.parameters.grown(after)?;
        let wrong = || {
            Error::peer_misbehaved(
                "the servers announced invalid new commitments, or not one for each new vector; do not use them",
            )
        };
        let (entries, []) = commitments.as_chunks::<{ 4 + POINT_LEN }>() else {
            return Err(wrong());
        };
        if entries.len() > parameters.count() {
            return Err(wrong());
        }
        let mut renewed: Vec<(usize, G1)> = Vec::with_capacity(entries.len());
        for entry in entries {
            let (number, point) = entry.split_first_chunk::<4>().ok_or_else(wrong)?;
            let number = u32::from_le_bytes(*number) as usize;
            let in_order = renewed.last().is_none_or(|(before, _)| *before < number);
            if !in_order || number >= parameters.count() {
                return Err(wrong());
            }
            let point = G1::from_compressed(point.try_into().map_err(|_| wrong())?);
            renewed.push((number, point.ok_or_else(wrong)?));
        }
        let new_from = self.commitments.len();
        let added = renewed.iter().filter(|(number, _)| *number >= new_from).count();
        if added != parameters.count() - new_from {
            return Err(wrong());
        }
        let mut all = self.commitments.clone();
        all.resize(parameters.count(), G1::infinity());
        for (number, commitment) in &renewed {
            all[*number] = *commitment;
        }
        if added > 0 {
            self.tables = tables(&all)?;
        } else {
            for (number, commitment) in &renewed {
                for (half, base) in halves(commitment).iter().enumerate() {
                    self.tables.replace(2 * number + half, base);
                }
            }
        }
        self.parameters = parameters;
        self.commitments = all;
        self.renew_digest();
        Ok(())
    }
}
