//! What the registry has of APIR-Matrix.

use super::{ApirMatrix, ApirMatrixClient, ApirMatrixParameters, ApirMatrixSetup};
use crate::offline::HintSource;
use crate::registry::{
    About, ClientStart, ErasedClient, ErasedSetup, Registered, ServerStart, Tuning,
};
use privet_core::quantities::count;
use privet_core::{Result, TableIdentity};
use std::sync::Arc;

impl Registered for ApirMatrix {
    const ABOUT: About = About {
        servers: 2..=2,
        verifies: true,
        ..About::new(
            "Two servers that XOR rows of the table, answers verified against one hash",
            20,
        )
    };

    fn parameters(identity: &TableIdentity, _tuning: &Tuning) -> Result<ApirMatrixParameters> {
        Ok(ApirMatrixParameters::new(identity))
    }

    fn setup(
        start: ServerStart<'_>,
        parameters: ApirMatrixParameters,
    ) -> Result<Box<dyn ErasedSetup>> {
        let setup = ApirMatrixSetup::new(parameters, start.table, start.kernels, start.threads)?;
        start.precomputing(setup, |server| server)
    }

    fn client(
        start: ClientStart,
        parameters: ApirMatrixParameters,
        downloaded: Arc<dyn HintSource>,
    ) -> Result<Box<dyn ErasedClient>> {
        let client = ApirMatrixClient::new(parameters.clone(), &*downloaded, start.kernels)?;
        start.stateless(parameters, client)
    }

    fn words(parameters: &ApirMatrixParameters) -> Option<String> {
        Some(format!(
            "{} rows of {} records and {} hashes, by which answers are verified",
            count(parameters.rows()),
            count(parameters.row_records()),
            parameters.path_nodes()
        ))
    }
}
