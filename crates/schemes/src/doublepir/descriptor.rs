//! The entry of DoublePIR in the registry.

use super::{DoublePir, DoublePirClient, DoublePirParameters, DoublePirSetup};
use crate::registry::factors::doublepir as fitted;
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
        start.precomputing(setup)
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
        let products = byte_products(first + second);
        // A row of the second matrix takes its time however few columns it has.
        let answer = |[read, multiplied, row]: [f64; 3]| {
            read * pass(first + second)
                + multiplied * products
                + row * byte_products(parameters.second_rows())
        };
        let [multiplied, split, digested] = fitted::SETUP;
        Costs {
            setup: multiplied * products + split * xored(hint) + digested * hashed(hint),
            prepare: fitted::PREPARE * hashed(hint),
            query: fitted::QUERY * aes_blocks(256 * (columns + per_column)),
            answer: answer(fitted::ANSWER),
            answer_of_eight: answer(fitted::ANSWER_OF_EIGHT),
            recover: fitted::RECOVER * byte_products(hint),
            server_bytes: parameters.kept_bytes() + hint,
            ..Costs::default()
        }
    }
}
