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
    /// Dummy subsets: one server that reads about √n records for each query, secret single-use hints.
    DummySubsets,
}

impl SchemeId {
    /// Every scheme there is.
    pub const ALL: &'static [SchemeId] = &[SchemeId::SimplePir, SchemeId::DummySubsets];

    /// The name that users type and that goes over the wire.
    pub fn name(self) -> &'static str {
        match self {
            SchemeId::SimplePir => "simplepir",
            SchemeId::DummySubsets => "dummy-subsets",
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
