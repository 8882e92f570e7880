//! The server's side.

use super::claims::{Claim, RecordHash, commitments_digest};
use super::toeplitz::Toeplitz;
use super::{Openings, POINT_LEN, Pointproofs};
use privet_core::commit::{Changed, Prover, VectorCommitment as _, Vectors};
use privet_core::{Error, Result};
use privet_laboratory_kernels::bls12_381::{
    FixedBases, G1, G1Sum, Scalar, ScalarSum, TableLayout, add_products, multi_exponentiation,
};
use std::sync::Arc;

/// The most memory for tables of multiples: for a short time while commitments are computed, and
/// for as long as a prover exists.
const TABLES_FOR_COMMITMENTS: u64 = 64 << 20;
const TABLES_FOR_OPENINGS: u64 = 32 << 20;

/// Tables with digits of fewer bits than this save no time.
const NARROWEST_WORTHWHILE: usize = 8;

/// The commitments, and the data from which proofs are computed.
pub struct PointproofsProver {
    parameters: Pointproofs,
    commitments: Vec<[u8; POINT_LEN]>,
    commitments_digest: [u8; 32],
    /// All records of all vectors.
    scalars: Vec<Scalar>,
    source: OpeningSource,
}

/// The data from which the product of openings is computed.
enum OpeningSource {
    /// The bases of openings, of all vectors.
    Bases(Arc<Bases>),
    /// Every opening of every vector.
    Openings { toeplitz: Arc<Toeplitz>, openings: Vec<G1> },
}

/// The bases of openings, with tables if they are few enough for tables to be faster.
enum Bases {
    Tables(FixedBases),
    Points(Vec<G1>),
}

/// Computes the kept data: the commitments, and the openings if they are precomputed.
pub(super) fn precompute(
    parameters: &Pointproofs,
    table: &[u8],
    progress: &(dyn Fn(f64) + Sync),
) -> Result<Vec<u8>> {
    let commit = Commit::new(parameters, parameters.count())?;
    let toeplitz = toeplitz(parameters)?;
    let vectors = parameters.vectors();
    let hash = RecordHash::new();
    let count = parameters.count();
    let mut kept = reserved(parameters.kept_len())?;
    // Room for the commitments, which are known only at the end.
    kept.resize(count * POINT_LEN, 0);
    let mut sums = Vec::with_capacity(count);
    for (number, vector) in table.chunks_exact(vectors.vector_bytes() as usize).enumerate() {
        let scalars: Vec<Scalar> = hash.scalars(vector, vectors.record_len()).collect();
        sums.push(commit.commitment(&scalars));
        if let Some(toeplitz) = &toeplitz {
            for opening in toeplitz.openings(&scalars) {
                kept.extend_from_slice(&opening.to_uncompressed());
            }
        }
        progress((number + 1) as f64 / count as f64);
    }
    let places = kept.chunks_exact_mut(POINT_LEN);
    for (place, commitment) in places.zip(G1Sum::all_to_affine(&sums)) {
        place.copy_from_slice(&commitment.compress());
    }
    Ok(kept)
}

fn reserved<T>(len: u64) -> Result<Vec<T>> {
    let mut out = Vec::new();
    let reserved = usize::try_from(len).ok().and_then(|len| out.try_reserve_exact(len).ok());
    reserved.map(|()| out).ok_or_else(|| {
        Error::unavailable(
            "no memory for Pointproofs' commitments; shorter tables or other vectors need less",
        )
    })
}

fn copied<T: Copy>(of: &[T]) -> Result<Vec<T>> {
    let mut copy = reserved(of.len() as u64)?;
    copy.extend_from_slice(of);
    Ok(copy)
}

fn toeplitz(parameters: &Pointproofs) -> Result<Option<Toeplitz>> {
    let bases = parameters.reference_string()?.opening_bases(parameters.vector_len());
    Ok((parameters.openings == Openings::Precomputed).then(|| Toeplitz::new(bases)))
}

/// Computes commitments.
struct Commit(FixedBases);

impl Commit {
    /// For `products` commitments.
    fn new(parameters: &Pointproofs, products: usize) -> Result<Self> {
        let bases = parameters.reference_string()?.commitment_bases(parameters.vector_len());
        let layout = layout(bases.len(), products, TABLES_FOR_COMMITMENTS);
        FixedBases::new(bases, layout).map(Self).map_err(|error| {
            Error::unavailable("no memory for tables of multiples").caused_by(error)
        })
    }

    fn commitment(&self, scalars: &[Scalar]) -> G1Sum {
        self.0.product(scalars)
    }
}

/// The tables with which `products` products of powers of that many bases take the least time
/// within a limit of memory. The time includes making the tables. (An entry costs about as much as
/// two of the additions that wider digits save. From a hundred bases on, it does not pay to cut
/// exponents into pieces.)
fn layout(bases: usize, products: usize, limit: u64) -> TableLayout {
    let widths = (4..=11).map(|window| TableLayout { pieces: 1, piece_bits: 256, window });
    let affordable = widths.filter(|layout| layout.window == 4 || layout.bytes(bases) <= limit);
    let cost = |layout: &TableLayout| {
        (2 << (layout.window - 1)) + products * 256usize.div_ceil(layout.window)
    };
    affordable.min_by_key(cost).unwrap_or(TableLayout { pieces: 1, piece_bits: 256, window: 4 })
}

impl Bases {
    fn new(points: &[G1]) -> Result<Self> {
        // Chosen for many answers.
        let layout = layout(points.len(), 1 << 10, TABLES_FOR_OPENINGS);
        if layout.window < NARROWEST_WORTHWHILE {
            return Ok(Self::Points(points.to_vec()));
        }
        FixedBases::new(points, layout).map(Self::Tables).map_err(|error| {
            Error::unavailable("no memory for tables of multiples").caused_by(error)
        })
    }

    fn product(&self, exponents: &[Scalar]) -> G1Sum {
        match self {
            Self::Tables(tables) => tables.product(exponents),
            Self::Points(points) => multi_exponentiation(points, exponents),
        }
    }

    fn resident_bytes(&self) -> u64 {
        match self {
            Self::Tables(tables) => tables.resident_bytes(),
            Self::Points(points) => size_of_val(points.as_slice()) as u64,
        }
    }
}

impl PointproofsProver {
    pub(super) fn new(parameters: &Pointproofs, table: &[u8], kept: &[u8]) -> Result<Self> {
        let damaged = || {
            Error::corrupted(
                "the commitments that were kept are damaged; delete the file, and they are computed again",
            )
        };
        if kept.len() as u64 != parameters.kept_len() {
            return Err(damaged());
        }
        let (commitments, openings) = kept.split_at(parameters.count() * POINT_LEN);
        let commitments = commitments.as_chunks::<POINT_LEN>().0.to_vec();
        if commitments.iter().any(|commitment| G1::from_compressed(commitment).is_none()) {
            return Err(damaged());
        }
        let source = match toeplitz(parameters)? {
            None => {
                let reference_string = parameters.reference_string()?;
                let bases = reference_string.opening_bases(parameters.vector_len());
                OpeningSource::Bases(Arc::new(Bases::new(bases)?))
            }
            Some(toeplitz) => {
                let encoded = openings.as_chunks().0;
                let mut openings = reserved(encoded.len() as u64)?;
                for opening in encoded {
                    openings.push(G1::from_uncompressed_of_our_own(opening).ok_or_else(damaged)?);
                }
                OpeningSource::Openings { toeplitz: Arc::new(toeplitz), openings }
            }
        };
        let vectors = parameters.vectors();
        let mut scalars = reserved((parameters.count() * parameters.vector_len()) as u64)?;
        scalars.extend(RecordHash::new().scalars(table, vectors.record_len()));
        Ok(Self {
            parameters: parameters.clone(),
            commitments_digest: commitments_digest(&commitments),
            commitments,
            scalars,
            source,
        })
    }

    /// The product of the openings of all vectors to the power of their weights.
    fn aggregated(&self, offsets: &[u16], weights: &[u128]) -> G1Sum {
        let len = self.parameters.vector_len();
        match &self.source {
            OpeningSource::Bases(bases) => {
                let mut exponents = vec![ScalarSum::default(); 2 * len - 1];
                let vectors = self.scalars.chunks_exact(len);
                for ((vector, offset), weight) in vectors.zip(offsets).zip(weights) {
                    // The opened record itself meets the base in the middle, which is infinity.
                    let from = len - 1 - usize::from(*offset);
                    add_products(&mut exponents[from..from + len], *weight, vector);
                }
                let exponents: Vec<Scalar> = exponents.iter().map(ScalarSum::reduce).collect();
                bases.product(&exponents)
            }
            OpeningSource::Openings { openings, .. } => {
                let vectors = openings.chunks_exact(len);
                let opened: Vec<G1> = vectors
                    .zip(offsets)
                    .map(|(vector, offset)| vector[usize::from(*offset)])
                    .collect();
                multi_exponentiation(&opened, weights)
            }
        }
    }
}

impl Prover for PointproofsProver {
    fn announcement(&self) -> Vec<u8> {
        let share = self.parameters.reference_string.as_ref().map(|string| string.share());
        let mut announcement = share.unwrap_or_default();
        announcement.extend_from_slice(self.commitments.as_flattened());
        announcement
    }

    fn open(&self, role: u8, _table: &[u8], offsets: &[u16], records: &[u8], proof: &mut [u8]) {
        let claim = Claim::new(&self.parameters, &self.commitments_digest, role, offsets, records);
        let aggregated = self.aggregated(offsets, &claim.weights);
        proof.copy_from_slice(&aggregated.to_affine().compress());
    }

    fn copied(&self) -> Result<Self> {
        Ok(Self {
            parameters: self.parameters.clone(),
            commitments: copied(&self.commitments)?,
            commitments_digest: self.commitments_digest,
            scalars: copied(&self.scalars)?,
            source: match &self.source {
                OpeningSource::Bases(bases) => OpeningSource::Bases(Arc::clone(bases)),
                OpeningSource::Openings { toeplitz, openings } => {
                    let toeplitz = Arc::clone(toeplitz);
                    OpeningSource::Openings { toeplitz, openings: copied(openings)? }
                }
            },
        })
    }

    fn update(&mut self, after: Vectors, table: &[u8], changed: &[Changed<'_>]) -> Result<Vec<u8>> {
        let parameters = self.parameters.grown(after)?;
        if table.len() as u64 != after.padded_bytes() {
            return Err(Error::api_misuse("the table is not padded to whole vectors"));
        }
        let new_from = self.commitments.len();
        let count = parameters.count();
        let more_records = ((count - new_from) * parameters.vector_len()) as u64;
        let no_memory = || Error::unavailable("no memory for the table's new records");
        let reserve = usize::try_from(more_records).map_err(|_| no_memory())?;
        self.scalars.try_reserve_exact(reserve).map_err(|_| no_memory())?;
        if let OpeningSource::Openings { openings, .. } = &mut self.source {
            openings.try_reserve_exact(reserve).map_err(|_| no_memory())?;
        }
        let edits = self.edits(&parameters, table, changed)?;
        let commit =
            (count > new_from).then(|| Commit::new(&parameters, count - new_from)).transpose()?;
        // Nothing fails from here on.
        self.parameters = parameters;
        let mut renewed = Vec::new();
        for edits in edits.chunk_by(|a, b| a.vector == b.vector) {
            renewed.push((edits[0].vector as u32, self.edit(edits)));
        }
        for number in new_from..count {
            if let Some(commit) = &commit {
                renewed.push((number as u32, self.add(number, table, commit)));
            }
        }
        Ok(self.renew(&renewed))
    }

    fn resident_bytes(&self) -> u64 {
        let source = match &self.source {
            OpeningSource::Bases(bases) => bases.resident_bytes(),
            OpeningSource::Openings { openings, .. } => size_of_val(openings.as_slice()) as u64,
        };
        let commitments = size_of_val(self.commitments.as_slice());
        source + (commitments + size_of_val(self.scalars.as_slice())) as u64
    }

    fn held(&self) -> Vec<&[u8]> {
        vec![self.commitments.as_flattened()]
    }
}

/// A record that has changed, in a vector that was there before.
struct RecordEdit {
    vector: usize,
    offset: usize,
    after: Scalar,
}

impl PointproofsProver {
    /// The records that have really changed in the old vectors, once each and in order.
    fn edits(
        &self,
        parameters: &Pointproofs,
        table: &[u8],
        changed: &[Changed<'_>],
    ) -> Result<Vec<RecordEdit>> {
        let len = parameters.vector_len();
        let record_len = parameters.vectors().record_len();
        let records = self.commitments.len() * len;
        let mut places: Vec<u64> = changed.iter().map(|change| change.index).collect();
        places.sort_unstable();
        places.dedup();
        if places.last().is_some_and(|last| *last >= parameters.vectors().shape().records()) {
            return Err(Error::api_misuse("an edit lies beyond the table's end"));
        }
        let hash = RecordHash::new();
        let edits = places.into_iter().map(|place| place as usize).filter(|place| *place < records);
        let edits = edits.map(|place| RecordEdit {
            vector: place / len,
            offset: place % len,
            after: hash.scalar(&table[place * record_len..][..record_len]),
        });
        Ok(edits
            .filter(|edit| self.scalars[edit.vector * len + edit.offset] != edit.after)
            .collect())
    }

    /// Follows the edits of one vector, at least one, and returns its commitment.
    fn edit(&mut self, edits: &[RecordEdit]) -> G1Sum {
        let len = self.parameters.vector_len();
        let vector = edits[0].vector;
        let scalars = &mut self.scalars[vector * len..][..len];
        let mut differences = Vec::with_capacity(edits.len());
        for edit in edits {
            differences.push(edit.after - scalars[edit.offset]);
            scalars[edit.offset] = edit.after;
        }
        let Some(reference_string) = self.parameters.reference_string.clone() else {
            return G1Sum::default();
        };
        let bases = reference_string.commitment_bases(len);
        let edited: Vec<G1> = edits.iter().map(|edit| bases[edit.offset]).collect();
        let mut commitment = multi_exponentiation(&edited, &differences);
        let before = G1::from_compressed(&self.commitments[vector]);
        commitment.add_affine(&before.unwrap_or(G1::infinity()));

        if let OpeningSource::Openings { toeplitz, openings } = &mut self.source {
            let openings = &mut openings[vector * len..][..len];
            if edits.len() > toeplitz.worthwhile_changes() {
                openings.copy_from_slice(&toeplitz.openings(scalars));
            } else {
                let bases = reference_string.opening_bases(len);
                let sums: Vec<G1Sum> = openings
                    .iter()
                    .enumerate()
                    .map(|(i, opening)| {
                        let edited: Vec<G1> =
                            edits.iter().map(|edit| bases[len - 1 - i + edit.offset]).collect();
                        let mut sum = multi_exponentiation(&edited, &differences);
                        sum.add_affine(opening);
                        sum
                    })
                    .collect();
                openings.copy_from_slice(&G1Sum::all_to_affine(&sums));
            }
        }
        commitment
    }

    /// Takes in a new vector at the end, and returns its commitment.
    fn add(&mut self, number: usize, table: &[u8], commit: &Commit) -> G1Sum {
        let vectors = self.parameters.vectors();
        let vector_bytes = vectors.vector_bytes() as usize;
        let records = &table[number * vector_bytes..][..vector_bytes];
        let scalars: Vec<Scalar> =
            RecordHash::new().scalars(records, vectors.record_len()).collect();
        if let OpeningSource::Openings { toeplitz, openings } = &mut self.source {
            openings.extend(toeplitz.openings(&scalars));
        }
        self.scalars.extend_from_slice(&scalars);
        commit.commitment(&scalars)
    }

    /// Stores new commitments, and returns them with their numbers in the form that clients need.
    fn renew(&mut self, renewed: &[(u32, G1Sum)]) -> Vec<u8> {
        let (numbers, sums): (Vec<u32>, Vec<G1Sum>) = renewed.iter().copied().unzip();
        let mut message = Vec::with_capacity(renewed.len() * (4 + POINT_LEN));
        for (number, commitment) in numbers.into_iter().zip(G1Sum::all_to_affine(&sums)) {
            let commitment = commitment.compress();
            match self.commitments.get_mut(number as usize) {
                Some(place) => *place = commitment,
                None => self.commitments.push(commitment),
            }
            message.extend_from_slice(&number.to_le_bytes());
            message.extend_from_slice(&commitment);
        }
        self.commitments_digest = commitments_digest(&self.commitments);
        message
    }
}
