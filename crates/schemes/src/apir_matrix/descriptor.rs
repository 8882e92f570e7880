//! The entry of APIR-Matrix in the registry.

use super::{ApirMatrix, ApirMatrixClient, ApirMatrixParameters, ApirMatrixSetup};
use crate::registry::factors::apir_matrix_mt as fitted;
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
        start.precomputing(setup)
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
        let answer = |[read, summed]: [f64; 2]| read * pass(matrix) + summed * xored(matrix);
        let ([copies, nodes, leaves, placed], [bit, fixed]) = (fitted::SETUP, fitted::QUERY);
        let [checked, digested, whole, node] = fitted::RECOVER;
        Costs {
            setup: copies * copied(shape.bytes())
                + nodes * short_hashes(2 * shape.records())
                + leaves * hashed(shape.bytes())
                + placed * steps(shape.records()),
            prepare: started(),
            query: bit * steps(rows) + fixed * steps(1),
            answer: answer(fitted::ANSWER),
            answer_of_eight: answer(fitted::ANSWER_OF_EIGHT),
            recover: checked * short_hashes(2 * parameters.row_records())
                + digested * hashed(parameters.row_len())
                + whole * steps(1)
                + node * steps(path),
            server_bytes: matrix.saturating_sub(shape.bytes()),
            ..Costs::default()
        }
    }
}
