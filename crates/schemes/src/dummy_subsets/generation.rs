//! A generation of hints: the key from which they follow, their cutoffs and their parities; and its
//! layout in memory and on disk.

use super::DummySubsetsParameters;
use crate::stored_hints::{blank, fresh_key, read};
use privet_core::codec::words_from_bytes;
use privet_core::{Result, Secret, SecretRng};
use privet_kernels::memory::little_endian_bytes;
use zeroize::Zeroizing;

const VERSION: u32 = 1;

/// All hints of one generation. Ids below `M` are single hints; ids from `M` on are pairs.
///
/// **Distribution** (Ren, Mughees, Sun, §3.1 and Algorithm 4). A single hint selects exactly `p/2 +
/// 1` random partitions and one random record in each; a pair splits the partitions into random
/// halves of `p/2`, with a random record in each partition. The paper makes a single hint from
/// `p/2` partitions below the median, and draws an extra index from one of the others. Here the
/// cutoff is one rank higher: the extra index is the pseudorandom offset of the partition with the
/// next smallest value. The distribution is the same, and nothing has to be stored or searched for
/// it.
pub(crate) struct Generation {
    /// One for each id: it selects the partitions whose value is below it. 0 for a hint that is
    /// invalid because the values at the cutoff tie.
    pub(crate) cutoffs: Zeroizing<Vec<u32>>,
    /// The encoding. Its parities are always up to date, its cutoffs only from when they are
    /// computed. Hints are used in this form because they are large: after a read from disk, no
    /// second copy is needed.
    pub(crate) bytes: Zeroizing<Vec<u8>>,
    /// Where in the encoding the parities begin: a record for each single hint, then two for each
    /// pair (the half below the cutoff, the other half).
    pub(crate) parities: usize,
}

/// `version (u32) ‖ key (16) ‖ cutoffs (u32 each) ‖ parities`
const KEY: std::ops::Range<usize> = 4..20;

impl Generation {
    /// A fresh key, and nothing computed yet.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
    pub(crate) fn fresh(parameters: &DummySubsetsParameters, rng: &mut SecretRng) -> Result<Self> {
        Self::with_key(parameters, &fresh_key(rng))
    }

    pub(crate) fn with_key(parameters: &DummySubsetsParameters, key: &[u8; 16]) -> Result<Self> {
        let (hints, parities, len) = Self::layout(parameters);
        let mut bytes = blank(VERSION, len as u64)?;
        bytes[KEY].copy_from_slice(key);
        Ok(Self { cutoffs: Zeroizing::new(vec![0; hints]), bytes, parities })
    }

    /// The number of hints, where the parities begin, and the length of the encoding.
    fn layout(parameters: &DummySubsetsParameters) -> (usize, usize, usize) {
        let hints = (parameters.singles() + parameters.pairs()) as usize;
        let records = parameters.singles() as usize + 2 * parameters.pairs() as usize;
        let parities = KEY.end + hints * 4;
        (hints, parities, parities + records * parameters.cut().record_len())
    }

    pub(crate) fn key(&self) -> [u8; 16] {
        let mut key = [0; 16];
        key.copy_from_slice(&self.bytes[KEY]);
        key
    }

    /// Key, cutoffs and parities, to change.
    pub(crate) fn parts_mut(&mut self) -> (Secret<[u8; 16]>, &mut [u32], &mut [u8]) {
        (Secret::new(self.key()), &mut self.cutoffs, &mut self.bytes[self.parities..])
    }

    /// Writes the cutoffs into the encoding.
    pub(crate) fn cutoffs_computed(&mut self) {
        self.bytes[KEY.end..self.parities].copy_from_slice(&little_endian_bytes(&self.cutoffs));
    }

    /// Reads an encoding.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it is not one for `parameters`.
    pub(crate) fn decode(
        parameters: &DummySubsetsParameters,
        bytes: Zeroizing<Vec<u8>>,
    ) -> Result<Self> {
        let (_, parities, len) = Self::layout(parameters);
        read(VERSION, len as u64, &bytes)?;
        let cutoffs = Zeroizing::new(words_from_bytes(&bytes[KEY.end..parities]));
        Ok(Self { cutoffs, bytes, parities })
    }
}
