//! The entry of APIR-Matrix in the registry.

use super::{ApirMatrix, ApirMatrixClient, ApirMatrixParameters, ApirMatrixSetup};
use crate::registry::room::*;

impl Registered for ApirMatrix {
    const ABOUT: About = About {
        assumes: Assumption::Nothing,
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

    fn costs(parameters: &Self::Parameters) -> Costs {
        let (rows, shape) = (parameters.rows(), parameters.shape());
        let matrix = rows * parameters.row_len();
        let path = u64::from(parameters.path_nodes());
        Costs {
            setup: copied(shape.bytes())
                + 1.4 * short_hashes(2 * shape.records())
                + 3.5 * hashed(shape.bytes())
                + steps(5 * shape.records()),
            prepare: started(),
            query: steps(rows / 8 + 2_000),
            answer: 1.2 * pass(matrix) + 0.55 * xored(matrix),
            answer_of_eight: 0.125 * pass(matrix) + 0.35 * xored(matrix),
            recover: 2.0 * short_hashes(2 * parameters.row_records())
                + hashed(parameters.row_len())
                + steps(6_000 + 150 * path),
            server_bytes: matrix.saturating_sub(shape.bytes()),
            ..Costs::default()
        }
    }
}
