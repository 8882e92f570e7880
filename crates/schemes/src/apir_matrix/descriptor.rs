//! The entry of APIR-Matrix in the registry.

use super::{ApirMatrix, ApirMatrixClient, ApirMatrixParameters, ApirMatrixSetup};
use crate::registry::room::*;

impl Registered for ApirMatrix {
    const ABOUT: About = About {
        servers: 2..=2,
        verifies: true,
        ..About::new(
            "Two servers that XOR rows of the table, answers verified against one hash",
            20,
        )
    };

    fn parameters(identity: &TableIdentity, _tuning: &Tuning) -> Result<Self::Parameters> {
        Ok(ApirMatrixParameters::new(identity))
    }

    fn setup(start: ServerStart<'_>, parameters: Self::Parameters) -> NewServer {
        let setup = ApirMatrixSetup::new(parameters, start.table, start.kernels, start.threads)?;
        start.precomputing(setup, |server| server)
    }

    fn client(
        start: ClientStart,
        parameters: Self::Parameters,
        downloaded: Downloaded,
    ) -> NewClient {
        let client = ApirMatrixClient::new(parameters.clone(), &*downloaded, start.kernels)?;
        start.stateless(parameters, client)
    }

    fn words(parameters: &Self::Parameters) -> Option<String> {
        Some(format!(
            "{} rows of {} records and {} hashes, by which answers are verified",
            count(parameters.rows()),
            count(parameters.row_records()),
            parameters.path_nodes()
        ))
    }
}
