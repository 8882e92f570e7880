//! The offline phase in which the table streams by once, and all hints take in its records.

use crate::contract::{Preparation, Scheme, SchemeOf};
use crate::offline::StreamConsumer;
use crate::stored_hints::check_finished;
use privet_core::codec::Reader;
use privet_core::hints::{PartitionStream, Partitions};
use privet_core::{Result, SecretRng};
use privet_kernels::Kernels;
use privet_kernels::subset_hints::PartitionGroup;
use zeroize::Zeroizing;

/// The part that takes the stream in: a generation of hints in the making.
pub trait GrowingHints: Sized {
    /// The scheme.
    type Scheme: Scheme;

    /// The pieces in which the table is taken in.
    fn cut(parameters: &<Self::Scheme as Scheme>::Parameters) -> &Partitions;

    /// A fresh key, and nothing taken in yet.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
    fn begin(
        parameters: <Self::Scheme as Scheme>::Parameters,
        rng: &mut SecretRng,
        kernels: Kernels,
    ) -> Result<Self>;

    /// Goes on from what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it is not of the prescribed form.
    fn decode(
        parameters: <Self::Scheme as Scheme>::Parameters,
        reader: &mut Reader<'_>,
        kernels: Kernels,
    ) -> Result<Self>;

    /// Writes everything that is needed to go on.
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.generation());
    }

    /// The generation so far.
    fn generation(&self) -> &[u8];

    /// Lets every hint take its records from a group of pieces, of which `first` is the first.
    fn take_in(&mut self, first: u32, group: &mut PartitionGroup);
}

/// A generation of hints in preparation.
pub struct StreamedHints<H> {
    stream: PartitionStream,
    pub(crate) hints: H,
}

impl<H: GrowingHints> StreamConsumer for StreamedHints<H> {
    fn next_offset(&self) -> u64 {
        self.stream.next_offset()
    }

    fn absorb(&mut self, offset: u64, chunk: &[u8]) -> Result<()> {
        let hints = &mut self.hints;
        self.stream.absorb(offset, chunk, |first, group| hints.take_in(first, group))
    }

    fn finish(&mut self) -> Result<()> {
        self.stream.finish()
    }
}

impl<H: GrowingHints> Preparation for StreamedHints<H> {
    fn begin(
        parameters: <H::Scheme as Scheme>::Parameters,
        records_digest: [u8; 32],
        rng: &mut SecretRng,
        kernels: Kernels,
    ) -> Result<Self> {
        let stream = PartitionStream::new(*H::cut(&parameters), records_digest)?;
        Ok(Self { stream, hints: H::begin(parameters, rng, kernels)? })
    }

    fn resume(
        parameters: <H::Scheme as Scheme>::Parameters,
        records_digest: [u8; 32],
        checkpoint: &[u8],
        kernels: Kernels,
    ) -> Result<Self> {
        let mut reader = Reader::new("a checkpoint", checkpoint);
        let stream = PartitionStream::decode(*H::cut(&parameters), records_digest, &mut reader)?;
        Ok(Self { stream, hints: H::decode(parameters, &mut reader, kernels)? })
    }

    /// `the stream so far ‖ hints so far`
    fn checkpoint(&self) -> Zeroizing<Vec<u8>> {
        // Reserves room for everything at once: a vector that grows would leave copies behind.
        let room = self.hints.generation().len() + (1 << 17);
        let mut bytes = Zeroizing::new(Vec::with_capacity(room));
        self.stream.encode(&mut bytes);
        self.hints.encode(&mut bytes);
        bytes
    }

    fn checkpoint_offset(&self) -> u64 {
        self.stream.checkpoint_offset()
    }

    fn generation(&self) -> Result<Zeroizing<Vec<u8>>> {
        check_finished(self.stream.is_finished())?;
        Ok(Zeroizing::new(self.hints.generation().to_vec()))
    }
}

impl<H: GrowingHints> SchemeOf for StreamedHints<H> {
    type Scheme = H::Scheme;
}
