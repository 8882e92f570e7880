//! The entry of DoublePIR in the registry.

use super::{DoublePir, DoublePirClient, DoublePirParameters, DoublePirSetup};
use crate::registry::room::*;

impl Registered for DoublePir {
    const ABOUT: About = About::new(
        "One server, learning with errors twice, a hint that does not grow with the table",
        90,
    );

    fn parameters(identity: &TableIdentity, _tuning: &Tuning) -> Result<Self::Parameters> {
        DoublePirParameters::new(identity)
    }

    fn setup(start: ServerStart<'_>, parameters: Self::Parameters) -> NewServer {
        let setup = DoublePirSetup::new(parameters, start.table, start.kernels, start.threads)?;
        start.precomputing(setup, |server| server)
    }

    fn client(
        start: ClientStart,
        parameters: Self::Parameters,
        downloaded: Downloaded,
    ) -> NewClient {
        let client = DoublePirClient::new(parameters.clone(), downloaded, start.kernels)?;
        start.ahead(parameters, client)
    }

    fn words(parameters: &Self::Parameters) -> Option<String> {
        Some(format!(
            "{} columns of {} records, second matrix {}",
            count(parameters.columns()),
            count(parameters.records_per_column()),
            bytes(parameters.kept_bytes())
        ))
    }
}
