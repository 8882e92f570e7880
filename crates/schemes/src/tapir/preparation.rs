//! The offline phase: the table streams by once; the client commits to it, and every hint takes in
//! its records (RequestHint and VerSetup, Figure 4).

use super::generation::encode_first;
use super::{Form, Tapir, TapirParameters};
use crate::contract::{Preparation, SchemeOf};
use crate::offline::StreamConsumer;
use crate::singlepass::draws::{Purpose, Seed, Streams};
use crate::singlepass::permutations::draw;
use crate::stored_hints::{check_version, fresh_key, unreadable};
use privet_core::codec::Reader;
use privet_core::commit::{Gathering, VectorCommitment, VectorStream, Verifier};
use privet_core::{Error, Result, Secret, SecretRng};
use privet_kernels::Kernels;
use zeroize::Zeroizing;

const VERSION: u32 = 1;

/// A generation of hints in preparation.
pub struct TapirPreparation<F: Form> {
    parameters: TapirParameters<F>,
    stream: VectorStream,
    hints: GrowingHints,
    gathering: Option<<F::Commitment as VectorCommitment>::Gathering>,
    verifier: Option<<F::Commitment as VectorCommitment>::Verifier>,
}

/// The part that takes the stream in.
struct GrowingHints {
    /// The seed of the permutations. No server ever gets it.
    seed: Seed,
    kernels: Kernels,
    record_len: usize,
    /// The permutation of the present partition.
    row: Zeroizing<Vec<u16>>,
    hints: Zeroizing<Vec<u8>>,
}

impl GrowingHints {
    fn new<F: Form>(parameters: &TapirParameters<F>, seed: Seed, kernels: Kernels) -> Self {
        let pass = parameters.pass();
        Self {
            seed,
            kernels,
            record_len: pass.record_len(),
            row: Zeroizing::new(vec![0; pass.partition_records() as usize]),
            hints: Zeroizing::new(vec![0; pass.hint_bytes() as usize]),
        }
    }

    fn take_in(&mut self, partition: u32, records: &[u8]) {
        let streams = Streams::new(&self.seed, Purpose::Permutations, self.kernels);
        let mut draws = streams.stream(partition, self.row.len());
        draw(&mut draws, &mut self.row);
        self.kernels.xor_accumulate_permuted(records, self.record_len, &self.row, &mut self.hints);
    }
}

impl<F: Form> StreamConsumer for TapirPreparation<F> {
    fn next_offset(&self) -> u64 {
        self.stream.next_offset()
    }

    fn absorb(&mut self, offset: u64, chunk: &[u8]) -> Result<()> {
        let Self { stream, hints, gathering, .. } = self;
        stream.absorb(offset, chunk, |partition, records| {
            hints.take_in(partition, records);
            if let Some(gathering) = gathering {
                gathering.absorb(partition, records);
            }
        })
    }

    fn finish(&mut self) -> Result<()> {
        let announcement = self.stream.finish()?;
        if let Some(gathering) = self.gathering.take() {
            self.verifier = Some(gathering.finish(announcement)?);
        }
        Ok(())
    }
}

impl<F: Form> Preparation for TapirPreparation<F> {
    fn begin(
        parameters: TapirParameters<F>,
        records_digest: [u8; 32],
        rng: &mut SecretRng,
        kernels: Kernels,
    ) -> Result<Self> {
        let seed = fresh_key(rng);
        let commitment = parameters.commitment();
        let stream =
            VectorStream::new(commitment.vectors(), commitment.announcement_len(), records_digest)?;
        let gathering = Some(commitment.gathering(kernels)?);
        let hints = GrowingHints::new(&parameters, Secret::new(*seed), kernels);
        Ok(Self { parameters, stream, hints, gathering, verifier: None })
    }

    fn resume(
        parameters: TapirParameters<F>,
        records_digest: [u8; 32],
        checkpoint: &[u8],
        kernels: Kernels,
    ) -> Result<Self> {
        let mut reader = Reader::new("a checkpoint", checkpoint);
        let version = reader.u32().map_err(unreadable)?;
        check_version("the checkpoint of unfinished hints has", VERSION, version)?;
        let commitment = parameters.commitment();
        let stream = VectorStream::decode(
            commitment.vectors(),
            commitment.announcement_len(),
            records_digest,
            &mut reader,
        )?;
        let seed = Secret::new(reader.array().map_err(unreadable)?);
        let mut hints = GrowingHints::new(&parameters, seed, kernels);
        let len = hints.hints.len();
        hints.hints.copy_from_slice(reader.bytes(len).map_err(unreadable)?);
        let gathered = reader.bytes(reader.remaining()).map_err(unreadable)?;
        let gathering = Some(commitment.resume_gathering(gathered, kernels)?);
        Ok(Self { parameters, stream, hints, gathering, verifier: None })
    }

    /// `version (u32) ‖ the stream so far ‖ seed (32) ‖ hints so far ‖ commitments so far`
    fn checkpoint(&self) -> Zeroizing<Vec<u8>> {
        let mut public = Vec::new();
        self.stream.encode(&mut public);
        let mut gathered = Vec::new();
        if let Some(gathering) = &self.gathering {
            gathering.encode(&mut gathered);
        }
        // Reserves room for everything at once: a vector that grows would leave copies behind.
        let room = 36 + public.len() + self.hints.hints.len() + gathered.len();
        let mut bytes = Zeroizing::new(Vec::with_capacity(room));
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(public);
        bytes.extend(self.hints.seed.expose());
        bytes.extend_from_slice(&self.hints.hints);
        bytes.extend(gathered);
        bytes
    }

    fn checkpoint_offset(&self) -> u64 {
        self.stream.checkpoint_offset()
    }

    /// Draws the permutations again, which takes a nanosecond or two for each record of the table.
    /// So they need not be kept while the table streams by.
    fn generation(&self) -> Result<Zeroizing<Vec<u8>>> {
        let verifier = self.verifier.as_ref().ok_or_else(|| {
            Error::api_misuse("a generation of hints is asked for before it is finished")
        })?;
        let mut encoded = Vec::new();
        verifier.encode(&mut encoded);
        let GrowingHints { seed, hints, kernels, .. } = &self.hints;
        encode_first(&self.parameters, seed, hints, &encoded, *kernels)
    }
}

#[cfg(test)]
impl<F: Form> TapirPreparation<F> {
    pub(super) fn set_seed(&mut self, seed: Seed) {
        self.hints.seed = seed;
    }
}

impl<F: Form> SchemeOf for TapirPreparation<F> {
    type Scheme = Tapir<F>;
}
