//! The reference string: powers of a number that nobody knows.

use privet_core::codec::Reader;
use privet_core::{Error, Result, SecretRng};
use privet_laboratory_kernels::bls12_381::{
    G1, G1Sum, G2, G2Sum, Scalar, multi_exponentiation, multi_exponentiation_g2, pairings_cancel,
};
use zeroize::{Zeroize as _, Zeroizing};

const VERSION: u16 = 1;

const IDENTITY: &str = "privet 2026-11 pointproofs reference string";
const CHECK: &str = "privet 2026-11 pointproofs reference string check";

/// The size of the largest reference string: the greatest length of vectors.
const LARGEST: u32 = 1 << 16;

/// All commitments and proofs are made with it: powers of a number α in the exponent. A file has
/// 192 bytes for each record of the longest vectors that it is for.
///
/// **Clients must trust the person who made it.** [`generate`](Self::generate) draws, uses and
/// erases the number α. But somebody may keep it, by changing the program or by reading the memory
/// of the machine while it runs. That person can prove any record at any position to every client
/// that uses the string. No check of the string can tell whether this has happened. So its maker
/// should have no interest in wrong answers. Above all, a server that clients do not trust must not
/// make it. A string for `M` serves vectors of up to `M` records, of all tables.
pub struct ReferenceString {
    size: u32,
    /// g₁ to the power α^e in place e − 1, for e from 1 to 2M; infinity for e = M + 1.
    first: Vec<G1>,
    /// g₂ to the power α^e in place e − 1, for e from 1 to M.
    second: Vec<G2>,
    digest: [u8; 32],
}

impl ReferenceString {
    /// The first bytes of every encoding.
    pub const MAGIC: [u8; 8] = *b"PRIVETRS";

    /// A new reference string for vectors of up to `size` records. Takes about a third of a
    /// millisecond for each record.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) unless `size` is 1 to 2^16.
    pub fn generate(size: u32, rng: &mut SecretRng) -> Result<Self> {
        check_size(size)?;
        let mut uniform = Zeroizing::new([0; 48]);
        rng.fill(uniform.as_mut());
        let alpha = Zeroizing::new(Scalar::from_uniform(&uniform));
        // Probability 2^-255.
        if alpha.is_zero() {
            return Self::generate(size, rng);
        }
        Ok(Self::from_alpha(size, &alpha))
    }

    /// Takes the same time for every α.
    pub(super) fn from_alpha(size: u32, alpha: &Scalar) -> Self {
        let size_in_first = 2 * size as usize;
        let mut first = Vec::with_capacity(size_in_first);
        let mut power = G1::generator().to_sum().power(alpha);
        for exponent in 1..=size_in_first {
            if exponent == size as usize + 1 {
                // This power must stay secret: it is skipped, not computed.
                first.push(G1Sum::default());
                continue;
            }
            first.push(power);
            let mut step = if exponent == size as usize { *alpha * *alpha } else { *alpha };
            power = power.power(&step);
            step.zeroize();
        }
        let mut second = Vec::with_capacity(size as usize);
        let mut power = G2::generator().to_sum();
        for _ in 0..size {
            power = power.power(alpha);
            second.push(power);
        }
        Self::assembled(size, G1Sum::all_to_affine(&first), G2Sum::all_to_affine(&second))
    }

    fn assembled(size: u32, first: Vec<G1>, second: Vec<G2>) -> Self {
        let mut string = Self { size, first, second, digest: [0; 32] };
        string.digest = digest_of_share(size, &string.share());
        string
    }

    /// The longest vectors it is for, `M`.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Identifies the string. A client compares it with the digest of the share that a server
    /// sends, and this share determines the rest of the string.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// What a client needs: g₁^α and the powers of g₂.
    pub(super) fn share(&self) -> Vec<u8> {
        let mut share = self.first[0].compress().to_vec();
        for point in &self.second {
            share.extend_from_slice(&point.compress());
        }
        share
    }

    /// The powers of g₁ in commitments to vectors of `len` records.
    pub(super) fn commitment_bases(&self, len: usize) -> &[G1] {
        &self.first[..len]
    }

    /// The 2·len − 1 powers of g₁ in openings of vectors of `len` records: those around the missing
    /// one, which is in the middle, as infinity. In the opening of record `i`, record `j` is the
    /// exponent of number len − 1 − i + j; all numbers count from 0. So in its own opening, a
    /// record would meet the missing power.
    pub(super) fn opening_bases(&self, len: usize) -> &[G1] {
        let missing = self.size as usize;
        &self.first[missing + 1 - len..missing + len]
    }

    /// The canonical encoding, for a file: see [`decode`](Self::decode).
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(encoded_len(self.size));
        bytes.extend_from_slice(&Self::MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&self.size.to_le_bytes());
        bytes.extend_from_slice(&self.share());
        for (place, point) in self.first.iter().enumerate().skip(1) {
            if place != self.size as usize {
                bytes.extend_from_slice(&point.compress());
            }
        }
        let digest = blake3::hash(&bytes);
        bytes.extend_from_slice(digest.as_bytes());
        bytes
    }

    /// Reads an encoding and checks that it is a reference string: all its points must belong to
    /// the groups, and be the consecutive powers of one number, which can be any number. Takes
    /// about a third of a millisecond for each record of the longest vectors.
    ///
    /// ```text
    /// "PRIVETRS"  version: u16  M: u32
    /// g₁^α: 48 bytes  g₂^(α^e), e = 1 … M: 96 bytes each  g₁^(α^e), e = 2 … 2M without M + 1: 48 bytes each
    /// BLAKE3 of all that
    /// ```
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it is not.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let (content, digest) = bytes.split_at(bytes.len().saturating_sub(32));
        let mut reader = Reader::new("a reference string", content);
        if reader.array().map_err(ended_early)? != Self::MAGIC {
            return Err(Error::corrupted("this is not a reference string for Pointproofs"));
        }
        let version = reader.u16().map_err(ended_early)?;
        if version != VERSION {
            return Err(Error::corrupted(format!(
                "the reference string is of version {version}, and this program reads version {VERSION}"
            )));
        }
        let size = reader.u32().map_err(ended_early)?;
        check_size(size).map_err(|error| Error::corrupted(error.message()))?;
        if bytes.len() != encoded_len(size) {
            return Err(Error::corrupted(format!(
                "a reference string for vectors of {size} records has {} bytes, and this one has {}; copy it again from where it was made",
                encoded_len(size),
                bytes.len()
            )));
        }
        if blake3::hash(content).as_bytes() != digest {
            return Err(Error::corrupted(
                "the reference string is damaged: its digest does not match; copy it again from where it was made",
            ));
        }
        let alpha = read_first(&mut reader)?;
        let second = (0..size).map(|_| read_second(&mut reader)).collect::<Result<Vec<_>>>()?;
        let mut first = vec![alpha];
        for place in 1..2 * size {
            let missing = place == size;
            first.push(if missing { G1::infinity() } else { read_first(&mut reader)? });
        }
        reader.finish().map_err(|error| Error::corrupted(error.message()))?;
        let string = Self::assembled(size, first, second);
        if !string.is_consecutive(content) {
            return Err(Error::corrupted(
                "the points of the reference string are not the powers of one number; ask its maker for another",
            ));
        }
        Ok(string)
    }

    /// Whether all points are powers of one α that is not zero. A pairing compares each point with
    /// the one before, e.g. e(g₁^(α^(e+1)), g₂) = e(g₁^(α^e), g₂^α). All these equations are
    /// multiplied, each to a random power of 128 bits. These powers are hashed from `content`, and
    /// so from all points.
    fn is_consecutive(&self, content: &[u8]) -> bool {
        let mut weights = Weights::new(content);
        let size = self.size as usize;
        let (mut earlier, mut later, mut powers) = (Vec::new(), Vec::new(), Vec::new());
        for place in 1..2 * size {
            if place != size && place != size + 1 {
                earlier.push(self.first[place - 1]);
                later.push(self.first[place]);
                powers.push(weights.next());
            }
        }
        // Crosses the gap with a step of two powers, by g₂^(α²).
        let over_gap = weights.next();
        let gap = (size >= 2).then(|| {
            later.push(self.first[size + 1]);
            powers.push(over_gap);
            let before = self.first[size - 1];
            (multi_exponentiation(&[before], &[over_gap]).negated().to_affine(), self.second[1])
        });
        let without_gap = &powers[..earlier.len()];
        let earlier = multi_exponentiation(&earlier, without_gap).negated().to_affine();
        let later = multi_exponentiation(&later, &powers).to_affine();
        let mut pairs = vec![(earlier, self.second[0]), (later, G2::generator())];
        pairs.extend(gap);
        pairs.extend(second_is_consecutive(&self.first[0], &self.second, &mut weights));
        !self.first[0].is_infinity() && pairings_cancel(&pairs)
    }
}

fn read_first(reader: &mut Reader<'_>) -> Result<G1> {
    let bytes = reader.array().map_err(ended_early)?;
    G1::from_compressed(&bytes).ok_or_else(|| {
        Error::corrupted(
            "the reference string has a point outside the first group; ask its maker for another",
        )
    })
}

fn read_second(reader: &mut Reader<'_>) -> Result<G2> {
    let bytes = reader.array().map_err(ended_early)?;
    G2::from_compressed(&bytes).ok_or_else(|| {
        Error::corrupted(
            "the reference string has a point outside the second group; ask its maker for another",
        )
    })
}

fn ended_early(_: Error) -> Error {
    Error::corrupted("the reference string ends too early; copy it again from where it was made")
}

/// Random weights, hashed from the data to be checked.
struct Weights(blake3::OutputReader);

impl Weights {
    fn new(content: &[u8]) -> Self {
        Self(blake3::Hasher::new_derive_key(CHECK).update(content).finalize_xof())
    }

    fn next(&mut self) -> u128 {
        let mut bytes = [0; 16];
        self.0.fill(&mut bytes);
        u128::from_le_bytes(bytes)
    }
}

/// Pairs whose pairings cancel if `second` are the powers of g₂ under the same α as `alpha`, the
/// first power of g₁.
fn second_is_consecutive(alpha: &G1, second: &[G2], weights: &mut Weights) -> [(G1, G2); 2] {
    let powers: Vec<u128> = second.iter().map(|_| weights.next()).collect();
    let mut earlier = vec![G2::generator()];
    earlier.extend_from_slice(&second[..second.len() - 1]);
    let earlier = multi_exponentiation_g2(&earlier, &powers).to_affine();
    let later = multi_exponentiation_g2(second, &powers).to_affine();
    [(alpha.negated(), earlier), (G1::generator(), later)]
}

/// Reads a client's share of a reference string. Checks that it has this digest and is consistent
/// in itself. `None` if not.
pub(super) fn read_share(size: u32, digest: &[u8; 32], share: &[u8]) -> Option<(G1, Vec<G2>)> {
    if share.len() as u64 != share_len(size) || digest_of_share(size, share) != *digest {
        return None;
    }
    let (alpha, second) = share.split_first_chunk()?;
    let alpha = G1::from_compressed(alpha)?;
    let second = second.as_chunks().0.iter().map(G2::from_compressed);
    let second = second.collect::<Option<Vec<_>>>()?;
    let pairs = second_is_consecutive(&alpha, &second, &mut Weights::new(share));
    (!alpha.is_infinity() && pairings_cancel(&pairs)).then_some((alpha, second))
}

pub(super) fn digest_of_share(size: u32, share: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(IDENTITY);
    hasher.update(&size.to_le_bytes()).update(share);
    *hasher.finalize().as_bytes()
}

/// Bytes of the client's share.
pub(super) fn share_len(size: u32) -> u64 {
    G1::COMPRESSED_LEN as u64 + u64::from(size) * G2::COMPRESSED_LEN as u64
}

fn encoded_len(size: u32) -> usize {
    let first = 2 * size as usize - 1;
    let header = ReferenceString::MAGIC.len() + 2 + 4;
    header + first * G1::COMPRESSED_LEN + size as usize * G2::COMPRESSED_LEN + 32
}

pub(super) fn check_size(size: u32) -> Result<()> {
    if (1..=LARGEST).contains(&size) {
        return Ok(());
    }
    Err(Error::api_misuse(format!(
        "there are reference strings for vectors of 1 to {LARGEST} records, not for {size}"
    )))
}

impl std::fmt::Debug for ReferenceString {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ReferenceString").field("size", &self.size).finish_non_exhaustive()
    }
}
