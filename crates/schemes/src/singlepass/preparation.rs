//! The offline phase: the client sends a seed to the hint server, gets the hints back, and draws
//! the same permutations.

use super::draws::Seed;
use super::generation::Generation;
use super::messages::{SinglePassReply, SinglePassRequest};
use super::{SinglePass, SinglePassParameters};
use crate::contract::{Message as _, Preparation, SchemeOf};
use crate::offline::StreamConsumer;
use crate::stored_hints::{check_version, fresh_key, unreadable};
use privet_core::codec::Reader;
use privet_core::{Error, Result, Secret, SecretRng};
use privet_kernels::Kernels;
use zeroize::Zeroizing;

const VERSION: u32 = 1;

/// A generation of hints in preparation: requested, or received.
pub struct SinglePassPreparation {
    parameters: SinglePassParameters,
    kernels: Kernels,
    pub(super) seed: Seed,
    hints: Option<Zeroizing<Vec<u8>>>,
}

impl StreamConsumer for SinglePassPreparation {
    fn next_offset(&self) -> u64 {
        self.hints.as_ref().map_or(0, |hints| hints.len() as u64)
    }

    fn absorb(&mut self, offset: u64, reply: &[u8]) -> Result<()> {
        let due = self.next_offset();
        if self.hints.is_some() || offset != due {
            return Err(Error::peer_misbehaved(format!(
                "the server sent byte {offset} of its hints when byte {due} of {} was due",
                self.parameters.hint_bytes()
            )));
        }
        let reply = SinglePassReply::decode(&self.parameters, reply).map_err(|error| {
            Error::peer_misbehaved("the server sent hints of another size than it had announced")
                .caused_by(error)
        })?;
        self.hints = Some(Zeroizing::new(reply.hints));
        Ok(())
    }

    /// Checks that the hints have arrived. The client cannot check that they are right: no digest
    /// of the table determines them.
    fn finish(&mut self) -> Result<()> {
        match self.hints {
            Some(_) => Ok(()),
            None => Err(Error::peer_misbehaved(format!(
                "the server sent none of the {} bytes of hints",
                self.parameters.hint_bytes()
            ))),
        }
    }
}

impl Preparation for SinglePassPreparation {
    fn begin(
        parameters: SinglePassParameters,
        _records_digest: [u8; 32],
        rng: &mut SecretRng,
        kernels: Kernels,
    ) -> Result<Self> {
        let seed = fresh_key(rng);
        Ok(Self { parameters, kernels, seed: Secret::new(*seed), hints: None })
    }

    fn resume(
        parameters: SinglePassParameters,
        _records_digest: [u8; 32],
        checkpoint: &[u8],
        kernels: Kernels,
    ) -> Result<Self> {
        let mut reader = Reader::new("a checkpoint", checkpoint);
        let version = reader.u32().map_err(unreadable)?;
        check_version("the checkpoint of unfinished hints has", VERSION, version)?;
        let seed = Secret::new(reader.array().map_err(unreadable)?);
        let hints = match reader.remaining() {
            0 => None,
            rest => {
                let bytes = reader.bytes(rest).map_err(unreadable)?;
                let reply = SinglePassReply::decode(&parameters, bytes).map_err(unreadable)?;
                Some(Zeroizing::new(reply.hints))
            }
        };
        Ok(Self { parameters, kernels, seed, hints })
    }

    /// `version (u32) ‖ seed (32) ‖ hints, if they have arrived`
    fn checkpoint(&self) -> Zeroizing<Vec<u8>> {
        let hints = self.hints.as_ref().map_or(&[][..], |hints| hints);
        // Reserves room for everything at once: a vector that grows would leave copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(36 + hints.len()));
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.seed.expose());
        bytes.extend_from_slice(hints);
        bytes
    }

    fn checkpoint_offset(&self) -> u64 {
        self.next_offset()
    }

    /// Draws the permutations: the client's part of the work, about a nanosecond or two for each
    /// record of the table.
    fn generation(&self) -> Result<Zeroizing<Vec<u8>>> {
        let hints = self.hints.as_ref().ok_or_else(|| {
            Error::api_misuse("a generation of hints is asked for before it is finished")
        })?;
        Generation::encode_first(&self.parameters, &self.seed, hints, self.kernels)
    }

    fn next_request(&mut self) -> Option<Zeroizing<Vec<u8>>> {
        let request = SinglePassRequest { seed: Secret::new(*self.seed.expose()) };
        self.hints.is_none().then(|| Zeroizing::new(request.encode()))
    }
}

impl SchemeOf for SinglePassPreparation {
    type Scheme = SinglePass;
}
