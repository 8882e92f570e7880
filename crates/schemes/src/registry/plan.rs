//! What is known of a scheme on a table before any of its state exists.

use crate::SchemeId;
use crate::contract::{Message, Offline, Parameters, QueryMessage, Role};
use crate::doublepir::{DoublePir, DoublePirParameters};
use crate::download::{Download, DownloadParameters};
use crate::dpf::{Dpf, DpfParameters};
use crate::dummy_subsets::two_servers::DummySubsetsTwo;
use crate::dummy_subsets::{DummySubsets, DummySubsetsParameters};
use crate::offline::OfflinePhase;
use crate::piano::{Piano, PianoAllParities, PianoParameters};
use crate::simplepir::{SimplePir, SimplePirParameters};
use crate::singlepass::{SinglePass, SinglePassParameters};
use privet_core::{Result, TableIdentity};

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
        match scheme {
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
        }
    }

    pub(super) fn of<S: Offline>(parameters: &S::Parameters) -> Self {
        Self {
            scheme: S::ID,
            parameters: parameters.encode(),
            servers: S::SERVERS,
            query_lens: (0..S::SERVERS)
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
