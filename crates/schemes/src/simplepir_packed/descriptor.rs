//! The entry of packed SimplePIR in the registry.

use super::{
    SimplePirPacked, SimplePirPackedClient, SimplePirPackedParameters, SimplePirPackedSetup,
};
use crate::registry::room::*;

impl Registered for SimplePirPacked {
    const ABOUT: About = About {
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
}
