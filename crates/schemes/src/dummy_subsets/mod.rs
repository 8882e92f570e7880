//! Dummy subsets.

mod change;
mod client;
mod generation;
mod messages;
mod params;
mod preparation;
mod search;
mod server;
#[cfg(test)]
mod tests;

pub use client::DummySubsetsClient;
pub use messages::{DummySubsetsAnswer, DummySubsetsQuery};
pub use params::{DEFAULT_HINT_SECURITY, DummySubsetsParameters};
pub use preparation::DummySubsetsPreparation;
pub use server::DummySubsetsServer;

use crate::SchemeId;
use crate::contract::{Offline, Scheme};
use crate::offline::OfflinePhase;

/// The scheme's types, without a state.
pub struct DummySubsets;

impl Scheme for DummySubsets {
    const ID: SchemeId = SchemeId::DummySubsets;
    const SERVERS: usize = 1;
    type Parameters = DummySubsetsParameters;
    type Query = DummySubsetsQuery;
    type Answer = DummySubsetsAnswer;
}

impl Offline for DummySubsets {
    fn offline_phase(parameters: &DummySubsetsParameters) -> OfflinePhase {
        OfflinePhase::StreamTable { len: parameters.shape().bytes() }
    }
}
