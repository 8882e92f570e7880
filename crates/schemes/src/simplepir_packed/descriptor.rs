//! The entry of packed SimplePIR in the registry.

use super::{
    SimplePirPacked, SimplePirPackedClient, SimplePirPackedParameters, SimplePirPackedSetup,
};
use crate::registry::room::*;

impl Registered for SimplePirPacked {
    const ABOUT: About = About {
        assumes: Assumption::RingLwe,
        queries_first: true,
        ..About::new("One server, ring learning with errors, a small hint, short messages", 85)
    };

    fn parameters(identity: &TableIdentity, _tuning: &Tuning) -> Result<Self::Parameters> {
        SimplePirPackedParameters::new(identity)
    }

    fn setup(start: ServerStart<'_>, parameters: Self::Parameters) -> NewServer {
        let (table, kernels, threads) = (start.table, start.kernels, start.threads);
        let setup = SimplePirPackedSetup::new(parameters, table, kernels, threads)?;
        start.precomputing(setup, |server| server.succeeding().announcing())
    }

    fn client(
        start: ClientStart,
        parameters: Self::Parameters,
        downloaded: Downloaded,
    ) -> NewClient {
        let client = SimplePirPackedClient::new(parameters.clone(), downloaded, start.kernels)?;
        start.ahead(parameters, client)
    }

    fn costs(parameters: &Self::Parameters) -> Costs {
        let (rows, columns) = (parameters.rows(), parameters.pass_columns());
        let (bytes, blocks) = (rows * columns, parameters.blocks());
        Costs {
            setup: steps(blocks * (100_000_000 + 6_000 * parameters.columns())),
            prepare: steps(1_000),
            query: steps(300_000 + 60 * parameters.columns()),
            answer: pass(bytes) + 1.2 * byte_products(bytes),
            answer_of_eight: 0.125 * pass(bytes) + byte_products(bytes),
            recover: steps(60_000 + 1_000 * parameters.shape().record_len().min(100)),
            server_bytes: parameters.kept_bytes() + parameters.hint_bytes(),
            ..Costs::default()
        }
    }
}
