//! The names of the schemes: the same on the command line, on the wire, in the registry and (with `_`) in folder names.

use privet_core::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// A scheme's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SchemeId {
    /// SimplePIR: one server, learning with errors, a public reusable hint.
    SimplePir,
    /// DoublePIR: one server, learning with errors twice, a public reusable hint whose size does not grow with the number of records.
    DoublePir,
    /// DPF-PIR: two servers that do not collude, distributed point functions, nothing kept.
    Dpf,
    /// Dummy subsets: one server that reads about √n records for each query, secret single-use hints.
    DummySubsets,
    /// Dummy subsets with two servers that do not collude: one computes hints, now and for every query, the other answers; hints never run out.
    DummySubsetsTwo,
    /// Piano: one server that reads about √n/2 records for each query, secret single-use hints; the server answers with one record.
    Piano,
    /// Piano as first published: the answer has a record for each chunk of the table.
    PianoAllParities,
    /// SinglePass: two servers that do not collude, hints from a single pass over the table that never run out.
    SinglePass,
    /// TAPIR with Merkle trees: SinglePass whose answers are verified, two servers that do not collude and of which one may lie.
    TapirMerkle,
    /// TAPIR with Pointproofs: the same with short proofs, and a reference string whose maker must be trusted.
    TapirPointproofs,
    /// APIR-DPF: DPF-PIR whose answers are verified.
    ApirDpf,
    /// APIR-Matrix with a Merkle tree: two servers that XOR rows of the table, answers verified against one hash.
    ApirMatrix,
    /// Finite differences: two servers that do not collude and read a small part of a preprocessed table, privacy without an assumption, nothing kept.
    FiniteDifferences,
    /// Finite differences with three or more servers, of which no two collude: the more there are, the less each reads.
    FiniteDifferencesMany,
    /// The trivial scheme: the client fetches the whole table once.
    Download,
}

impl SchemeId {
    /// Every scheme there is.
    pub const ALL: &'static [SchemeId] = &[
        SchemeId::SimplePir,
        SchemeId::DoublePir,
        SchemeId::Dpf,
        SchemeId::DummySubsets,
        SchemeId::DummySubsetsTwo,
        SchemeId::Piano,
        SchemeId::PianoAllParities,
        SchemeId::SinglePass,
        SchemeId::TapirMerkle,
        SchemeId::TapirPointproofs,
        SchemeId::ApirDpf,
        SchemeId::ApirMatrix,
        SchemeId::FiniteDifferences,
        SchemeId::FiniteDifferencesMany,
        SchemeId::Download,
    ];

    /// The name that users type and that goes over the wire.
    pub fn name(self) -> &'static str {
        match self {
            SchemeId::SimplePir => "simplepir",
            SchemeId::DoublePir => "doublepir",
            SchemeId::Dpf => "dpf",
            SchemeId::DummySubsets => "dummy-subsets",
            SchemeId::DummySubsetsTwo => "dummy-subsets-two",
            SchemeId::Piano => "piano",
            SchemeId::PianoAllParities => "piano-all-parities",
            SchemeId::SinglePass => "singlepass",
            SchemeId::TapirMerkle => "tapir-mt",
            SchemeId::TapirPointproofs => "tapir-pp",
            SchemeId::ApirDpf => "apir-dpf",
            SchemeId::ApirMatrix => "apir-matrix-mt",
            SchemeId::FiniteDifferences => "finite-differences",
            SchemeId::FiniteDifferencesMany => "finite-differences-many",
            SchemeId::Download => "download",
        }
    }

    /// Whether each answer is verified against what two servers had agreed on, so that one of them that
    /// lies is found out before anything of its answer is used.
    pub fn verifies(self) -> bool {
        match self {
            SchemeId::TapirMerkle
            | SchemeId::TapirPointproofs
            | SchemeId::ApirDpf
            | SchemeId::ApirMatrix => true,
            SchemeId::SimplePir
            | SchemeId::DoublePir
            | SchemeId::Dpf
            | SchemeId::DummySubsets
            | SchemeId::DummySubsetsTwo
            | SchemeId::Piano
            | SchemeId::PianoAllParities
            | SchemeId::SinglePass
            | SchemeId::FiniteDifferences
            | SchemeId::FiniteDifferencesMany
            | SchemeId::Download => false,
        }
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
        Self::ALL.iter().copied().find(|id| id.name() == name).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|id| id.name()).collect();
            Error::api_misuse(format!(
                "there is no scheme {name:?} here; known are: {}",
                known.join(", ")
            ))
        })
    }
}
