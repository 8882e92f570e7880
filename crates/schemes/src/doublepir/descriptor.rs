//! The entry of DoublePIR in the registry.

use super::{DoublePir, DoublePirClient, DoublePirParameters, DoublePirSetup};
use crate::registry::room::*;

impl Registered for DoublePir {
    const ABOUT: About = About {
        assumes: Assumption::Lwe,
        ..About::new(
            "One server, learning with errors twice, a hint that does not grow with the table",
            90,
        )
    };

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

    fn costs(parameters: &Self::Parameters) -> Costs {
        let (columns, per_column) = (parameters.columns(), parameters.records_per_column());
        let (first, second) = (parameters.rows() * columns, parameters.kept_bytes());
        let hint = parameters.hint_bytes();
        // However few columns the second matrix has, a row of it takes as long as 60 more.
        let products = byte_products(first + second + 60 * parameters.second_rows());
        Costs {
            setup: byte_products(1230 * (first + second)) + 34.0 * xored(hint) + hashed(hint),
            prepare: hashed(hint),
            query: 1.4 * aes_blocks(256 * (columns + per_column)),
            answer: 1.3 * pass(first + second) + 3.0 * products,
            answer_of_eight: 0.125 * pass(first + second) + 1.4 * products,
            recover: 4.5 * byte_products(hint),
            server_bytes: parameters.kept_bytes() + hint,
            ..Costs::default()
        }
    }
}
