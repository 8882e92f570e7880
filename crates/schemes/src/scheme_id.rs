//! The names of the schemes: the same on the command line, on the wire, in the registry and (with
//! `_`) in folder names.

use crate::contract::Scheme;
use crate::dummy_subsets::{self, two_servers};
use crate::{
    apir_dpf, apir_matrix, doublepir, download, dpf, harmony, piano, simplepir, simplepir_packed,
    singlepass, tapir,
};
use privet_core::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// A scheme's name. It leads to the scheme's description: [`about`](Self::about) and the functions
/// of [`registry`](crate::registry).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SchemeId(&'static str);

/// Constants for schemes that code names. A scheme that no code names needs no constant.
#[allow(non_upper_case_globals)]
impl SchemeId {
    /// SimplePIR.
    pub const SimplePir: Self = simplepir::SimplePir::ID;
    /// SimplePIR with a packed hint.
    pub const SimplePirPacked: Self = simplepir_packed::SimplePirPacked::ID;
    /// DoublePIR.
    pub const DoublePir: Self = doublepir::DoublePir::ID;
    /// DPF-PIR.
    pub const Dpf: Self = dpf::Dpf::ID;
    /// Dummy subsets with one server.
    pub const DummySubsets: Self = dummy_subsets::DummySubsets::ID;
    /// Dummy subsets with two servers.
    pub const DummySubsetsTwo: Self = two_servers::DummySubsetsTwo::ID;
    /// HarmonyPIR.
    pub const Harmony: Self = harmony::Harmony::ID;
    /// Piano.
    pub const Piano: Self = piano::Piano::ID;
    /// Piano as first published: the answer has a record for each chunk of the table.
    pub const PianoAllParities: Self = piano::PianoAllParities::ID;
    /// SinglePass.
    pub const SinglePass: Self = singlepass::SinglePass::ID;
    /// TAPIR with Merkle trees.
    pub const TapirMerkle: Self = tapir::MERKLE;
    /// APIR-DPF.
    pub const ApirDpf: Self = apir_dpf::ApirDpf::ID;
    /// APIR-Matrix with a Merkle tree.
    pub const ApirMatrix: Self = apir_matrix::ApirMatrix::ID;
    /// The whole table, fetched once.
    pub const Download: Self = download::Download::ID;
}

impl SchemeId {
    /// The scheme called `name`. Only for the scheme's room, which the registry must know.
    pub const fn named(name: &'static str) -> Self {
        Self(name)
    }

    /// The name that users type and that goes over the wire.
    pub const fn name(self) -> &'static str {
        self.0
    }

    /// Whether the client verifies each answer against what two servers had agreed on. If one of
    /// them lies, the client notices before it uses anything of the answer.
    pub fn verifies(self) -> bool {
        self.about().verifies
    }
}

impl fmt::Debug for SchemeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SchemeId({})", self.name())
    }
}

impl fmt::Display for SchemeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for SchemeId {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::all().find(|id| id.name() == name).ok_or_else(|| {
            let known: Vec<_> = Self::all().map(Self::name).collect();
            Error::api_misuse(format!(
                "there is no scheme {name:?} here; known are: {}",
                known.join(", ")
            ))
        })
    }
}
