//! A generation of hints: the key they follow from, their cutoffs and parities. How it is laid out in memory and on disk.

use super::DummySubsetsParameters;
use privet_core::codec::{Reader, words_from_bytes};
use privet_core::{Error, Result, Secret, SecretRng};
use privet_kernels::memory::little_endian_bytes;
use zeroize::Zeroizing;

const VERSION: u32 = 1;

/// All hints of one generation. Ids `0..M` are single hints, ids from `M` on are pairs.
///
/// **Distribution** (Ren, Mughees, Sun, §3.1 and Algorithm 4). A single hint selects exactly `p/2 + 1` random partitions and one random record in each; a pair
/// splits the partitions into random halves of `p/2`, with a random record in each partition. The paper makes a single hint of `p/2` partitions
/// below the median and an extra index drawn from one of the others; here the cutoff is one rank higher, so that the extra index is the pseudorandom
/// offset of the partition with the next smallest value. The distribution is the same, and nothing has to be stored or searched for it.
pub(crate) struct Generation {
    pub(crate) key: Secret<[u8; 16]>,
    /// One for each id: selects the partitions whose value is below. 0 for a hint that is invalid, because the values at the cutoff tie.
    pub(crate) cutoffs: Zeroizing<Vec<u32>>,
    /// A record for each single hint, then two for each pair: the half below the cutoff, the other half.
    pub(crate) parities: Zeroizing<Vec<u8>>,
}

impl Generation {
    /// A fresh key, and nothing computed yet.
    pub(crate) fn fresh(parameters: &DummySubsetsParameters, rng: &mut SecretRng) -> Self {
        let mut key = Zeroizing::new([0; 16]);
        rng.fill(key.as_mut());
        let hints = (parameters.singles() + parameters.pairs()) as usize;
        let records = parameters.singles() as usize + 2 * parameters.pairs() as usize;
        Self {
            key: Secret::new(*key),
            cutoffs: Zeroizing::new(vec![0; hints]),
            parities: Zeroizing::new(vec![0; records * parameters.record_len()]),
        }
    }

    pub(crate) fn key(&self) -> &[u8; 16] {
        self.key.expose()
    }

    /// Size of [`encode`](Self::encode)'s output in bytes.
    pub(crate) fn encoded_len(&self) -> usize {
        4 + 16 + self.cutoffs.len() * 4 + self.parities.len()
    }

    /// `version (u32) ‖ key (16) ‖ cutoffs (u32 each) ‖ parities`
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(VERSION.to_le_bytes());
        out.extend(self.key());
        out.extend_from_slice(&little_endian_bytes(&self.cutoffs));
        out.extend_from_slice(&self.parities);
    }

    pub(crate) fn decode(
        parameters: &DummySubsetsParameters,
        reader: &mut Reader<'_>,
    ) -> Result<Self> {
        let version = reader.u32()?;
        if version != VERSION {
            return Err(Error::corrupted(format!(
                "hints of format {version} are stored; this version reads format {VERSION}"
            )));
        }
        let key = Secret::new(reader.array()?);
        let hints = (parameters.singles() + parameters.pairs()) as usize;
        let cutoffs = Zeroizing::new(words_from_bytes(reader.bytes(hints * 4)?));
        let records = parameters.singles() as usize + 2 * parameters.pairs() as usize;
        let parities = Zeroizing::new(reader.bytes(records * parameters.record_len())?.to_vec());
        Ok(Self { key, cutoffs, parities })
    }
}
