//! What the registry has of DoublePIR.

use super::{DoublePir, DoublePirClient, DoublePirParameters, DoublePirSetup};
use crate::offline::HintSource;
use crate::registry::{
    About, ClientStart, ErasedClient, ErasedSetup, Registered, ServerStart, Tuning,
};
use privet_core::quantities::{bytes, count};
use privet_core::{Result, TableIdentity};
use std::sync::Arc;

impl Registered for DoublePir {
    const ABOUT: About = About::new(
        "One server, learning with errors twice, a hint that does not grow with the table",
        90,
    );

    fn parameters(identity: &TableIdentity, _tuning: &Tuning) -> Result<DoublePirParameters> {
        DoublePirParameters::new(identity)
    }

    fn setup(
        start: ServerStart<'_>,
        parameters: DoublePirParameters,
    ) -> Result<Box<dyn ErasedSetup>> {
        let setup = DoublePirSetup::new(parameters, start.table, start.kernels, start.threads)?;
        start.precomputing(setup, |server| server)
    }

    fn client(
        start: ClientStart,
        parameters: DoublePirParameters,
        downloaded: Arc<dyn HintSource>,
    ) -> Result<Box<dyn ErasedClient>> {
        let client = DoublePirClient::new(parameters.clone(), downloaded, start.kernels)?;
        start.stateless(parameters, client)
    }

    fn words(parameters: &DoublePirParameters) -> Option<String> {
        Some(format!(
            "{} columns of {} records, second matrix {}",
            count(parameters.columns()),
            count(parameters.records_per_column()),
            bytes(parameters.kept_bytes())
        ))
    }
}
