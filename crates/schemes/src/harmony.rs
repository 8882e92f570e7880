//! placeholder
mod change;
mod client;
mod descriptor;
mod generation;
mod history;
mod messages;
mod params;
mod preparation;
mod server;
mod shortcuts;
#[cfg(test)]
mod tests;

pub use client::HarmonyClient;
pub use messages::{HarmonyAnswer, HarmonyQuery};
pub use params::HarmonyParameters;
pub use preparation::HarmonyPreparation;
pub use server::HarmonyServer;

use crate::SchemeId;
use crate::contract::{Offline, Scheme};
use crate::offline::OfflinePhase;

/// The scheme's types, without a state.
pub struct Harmony;

impl Scheme for Harmony {
    const ID: SchemeId = SchemeId::named("harmony");
    type Parameters = HarmonyParameters;
    type Query = HarmonyQuery;
    type Answer = HarmonyAnswer;

    fn servers(_parameters: &HarmonyParameters) -> usize {
        1
    }
}

impl Offline for Harmony {
    fn offline_phase(parameters: &HarmonyParameters) -> OfflinePhase {
        OfflinePhase::StreamTable { len: parameters.shape().bytes() }
    }
}
