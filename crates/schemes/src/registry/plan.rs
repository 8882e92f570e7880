//! What is known of a scheme on a table before any of its state exists.

use crate::SchemeId;
use crate::apir_dpf::{ApirDpf, ApirDpfParameters};
use crate::apir_matrix::{ApirMatrix, ApirMatrixParameters};
use crate::contract::{Message, Offline, Parameters, QueryMessage, Role};
use crate::doublepir::{DoublePir, DoublePirParameters};
use crate::download::{Download, DownloadParameters};
use crate::dpf::{Dpf, DpfParameters};
use crate::dummy_subsets::two_servers::DummySubsetsTwo;
use crate::dummy_subsets::{DummySubsets, DummySubsetsParameters};
use crate::finite_differences::many_servers::{FiniteDifferencesMany, ManyServersParameters};
use crate::finite_differences::{FiniteDifferences, FiniteDifferencesParameters};
use crate::offline::OfflinePhase;
use crate::piano::{AllParities, Piano, PianoAllParities, PianoParameters, SingleParity};
use crate::simplepir::{SimplePir, SimplePirParameters};
use crate::singlepass::{SinglePass, SinglePassParameters};
#[cfg(not(target_family = "wasm"))]
use crate::tapir::PointproofsForm;
use crate::tapir::{MerkleForm, Tapir, TapirParameters};
use privet_core::{Error, Result, TableIdentity};

/// No query, answer, request or reply is longer, 128 MiB: both sides hold them in memory.
pub(crate) const MAX_MESSAGE_LEN: usize = 1 << 27;

/// What is known of a scheme on a table before any of its state exists: sizes of all messages, and what has to flow first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemePlan {
    /// The scheme.
    pub scheme: SchemeId,
    /// The scheme's parameters in their canonical encoding.
    pub parameters: Vec<u8>,
    /// How many servers take part in a query.
    pub servers: usize,
    /// Size of every query to the server of each role, in bytes.
    pub query_lens: Vec<usize>,
    /// Size of every answer of one server, in bytes.
    pub answer_len: usize,
    /// What has to flow before the first query.
    pub offline: OfflinePhase,
}

impl SchemePlan {
    /// Reads what a server announced, refusing parameters that are malformed, inconsistent with the table or below the security target.
    ///
    /// # Errors
    /// As [`Parameters::decode`].
    pub fn from_announcement(
        scheme: SchemeId,
        identity: &TableIdentity,
        parameters: &[u8],
    ) -> Result<Self> {
        let plan = match scheme {
            SchemeId::SimplePir => {
                SimplePirParameters::decode(identity, parameters).map(|p| Self::of::<SimplePir>(&p))
            }
            SchemeId::DoublePir => {
                DoublePirParameters::decode(identity, parameters).map(|p| Self::of::<DoublePir>(&p))
            }
            SchemeId::Dpf => {
                DpfParameters::decode(identity, parameters).map(|p| Self::of::<Dpf>(&p))
            }
            SchemeId::DummySubsets => DummySubsetsParameters::decode(identity, parameters)
                .map(|p| Self::of::<DummySubsets>(&p)),
            SchemeId::DummySubsetsTwo => DummySubsetsParameters::decode(identity, parameters)
                .map(|p| Self::of::<DummySubsetsTwo>(&p)),
            SchemeId::Piano => {
                PianoParameters::decode(identity, parameters).map(|p| Self::of::<Piano>(&p))
            }
            SchemeId::PianoAllParities => PianoParameters::decode(identity, parameters)
                .map(|p| Self::of::<PianoAllParities>(&p)),
            SchemeId::SinglePass => SinglePassParameters::decode(identity, parameters)
                .map(|p| Self::of::<SinglePass>(&p)),
            SchemeId::Download => {
                DownloadParameters::decode(identity, parameters).map(|p| Self::of::<Download>(&p))
            }
            SchemeId::TapirMerkle => TapirParameters::<MerkleForm>::decode(identity, parameters)
                .map(|p| Self::of::<Tapir<MerkleForm>>(&p)),
            #[cfg(not(target_family = "wasm"))]
            SchemeId::TapirPointproofs => {
                TapirParameters::<PointproofsForm>::decode(identity, parameters)
                    .map(|p| Self::of::<Tapir<PointproofsForm>>(&p))
            }
            #[cfg(target_family = "wasm")]
            SchemeId::TapirPointproofs => Err(super::not_in_this_build(scheme)),
            SchemeId::ApirDpf => {
                ApirDpfParameters::decode(identity, parameters).map(|p| Self::of::<ApirDpf>(&p))
            }
            SchemeId::ApirMatrix => ApirMatrixParameters::decode(identity, parameters)
                .map(|p| Self::of::<ApirMatrix>(&p)),
            SchemeId::FiniteDifferences => {
                FiniteDifferencesParameters::decode(identity, parameters)
                    .map(|p| Self::of::<FiniteDifferences>(&p))
            }
            SchemeId::FiniteDifferencesMany => ManyServersParameters::decode(identity, parameters)
                .map(|p| Self::of::<FiniteDifferencesMany>(&p)),
        }?;
        plan.check_messages().map_err(|error| {
            Error::peer_misbehaved("the server announced parameters that are refused")
                .caused_by(error)
        })?;
        Ok(plan)
    }

    /// Refuses messages beyond reason.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), with the numbers.
    pub(super) fn check_messages(&self) -> Result<()> {
        let asked = match self.offline {
            OfflinePhase::Ask { request_len, reply_len, .. } => request_len.max(reply_len),
            _ => 0,
        };
        let longest = self.longest_query().max(self.answer_len).max(asked);
        if longest <= MAX_MESSAGE_LEN {
            return Ok(());
        }
        Err(Error::api_misuse(format!(
            "{} on this table would have messages of {longest} bytes; the limit is {MAX_MESSAGE_LEN}",
            self.scheme
        )))
    }

    pub(super) fn of<S: Offline>(parameters: &S::Parameters) -> Self {
        let servers = S::servers(parameters);
        Self {
            scheme: S::ID,
            parameters: parameters.encode(),
            servers,
            query_lens: (0..servers)
                .map(|role| S::Query::query_len(parameters, Role(role as u8)))
                .collect(),
            answer_len: S::Answer::encoded_len(parameters),
            offline: S::offline_phase(parameters),
        }
    }

    /// Size of the longest query to one server, in bytes.
    pub fn longest_query(&self) -> usize {
        self.query_lens.iter().copied().max().unwrap_or(0)
    }

    /// How much a client of the table keeps, in bytes, of one generation of single-use hints; 0 by
    /// schemes without such. The journal of the lookups made with them comes on top, and while the
    /// next generation is prepared, as much again.
    ///
    /// It follows from the parameters, so it is known before anything is received.
    pub fn hints_len(&self, identity: &TableIdentity) -> u64 {
        let bytes = &self.parameters;
        let len = match self.scheme {
            SchemeId::DummySubsets | SchemeId::DummySubsetsTwo => {
                DummySubsetsParameters::decode(identity, bytes).map(|p| p.state_bytes())
            }
            SchemeId::Piano => {
                PianoParameters::decode(identity, bytes).map(|p| p.state_bytes::<SingleParity>())
            }
            SchemeId::PianoAllParities => {
                PianoParameters::decode(identity, bytes).map(|p| p.state_bytes::<AllParities>())
            }
            SchemeId::SinglePass => {
                SinglePassParameters::decode(identity, bytes).map(|p| p.state_bytes())
            }
            SchemeId::TapirMerkle => {
                TapirParameters::<MerkleForm>::decode(identity, bytes).map(|p| p.state_bytes())
            }
            #[cfg(not(target_family = "wasm"))]
            SchemeId::TapirPointproofs => {
                TapirParameters::<PointproofsForm>::decode(identity, bytes).map(|p| p.state_bytes())
            }
            _ => Ok(0),
        };
        // Parameters that are none never get here: no plan is made of them.
        len.unwrap_or(0)
    }

    /// A digest of everything both sides must agree on: the scheme, its parameters and the table in its epoch. Every message carries it.
    pub fn digest(&self, identity: &TableIdentity) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("privet 2026-11 parameter digest");
        hasher.update(&identity.id.0);
        hasher.update(&identity.epoch.0.to_le_bytes());
        hasher.update(&identity.digest.0);
        hasher.update(&identity.shape.records().to_le_bytes());
        hasher.update(&identity.shape.record_len().to_le_bytes());
        hasher.update(&(self.scheme.name().len() as u64).to_le_bytes());
        hasher.update(self.scheme.name().as_bytes());
        hasher.update(&self.parameters);
        *hasher.finalize().as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Tuning, plan};
    use super::*;
    use crate::test_tables::identity;
    use privet_core::Blame;

    #[test]
    fn messages_beyond_reason_are_refused() {
        let table = identity(1 << 14, 32);
        for scheme in [SchemeId::DummySubsetsTwo, SchemeId::SinglePass] {
            let good = plan(scheme, &table, &Tuning::default()).unwrap();
            good.check_messages().unwrap();
            let (mut answer, mut query, mut reply) = (good.clone(), good.clone(), good);
            answer.answer_len = MAX_MESSAGE_LEN + 1;
            query.query_lens[1] = MAX_MESSAGE_LEN + 1;
            let OfflinePhase::Ask { reply_len, .. } = &mut reply.offline else { panic!() };
            *reply_len = MAX_MESSAGE_LEN + 1;
            for long in [answer, query, reply] {
                let refused = long.check_messages().err().unwrap();
                assert_eq!(refused.blame(), Blame::ApiMisuse);
                assert!(refused.message().contains("134217729 bytes"), "{refused}");
            }
        }
    }
}
