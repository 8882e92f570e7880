//! The entry of SimplePIR in the registry.

use super::{SimplePir, SimplePirClient, SimplePirParameters, SimplePirServer};
use crate::registry::room::*;

impl Registered for SimplePir {
    const ABOUT: About = About {
        assumes: Assumption::Lwe,
        ..About::new("One server, learning with errors, a public reusable hint", 80)
    };
    const PATCHES: Option<&'static dyn ErasedPatches> = Some(&Of::<Self>::VALUE);

    fn parameters(identity: &TableIdentity, _tuning: &Tuning) -> Result<Self::Parameters> {
        SimplePirParameters::new(identity)
    }

    fn setup(start: ServerStart<'_>, parameters: Self::Parameters) -> NewServer {
        let setup = SimplePirServer::new(parameters, start.table, start.kernels, start.threads)?;
        start.precomputing(setup, |server| server.keeping())
    }

    fn client(
        start: ClientStart,
        parameters: Self::Parameters,
        downloaded: Downloaded,
    ) -> NewClient {
        let client = SimplePirClient::new(parameters.clone(), downloaded, start.kernels)?;
        start.ahead(parameters, client)
    }

    fn costs(parameters: &Self::Parameters) -> Costs {
        let bytes = parameters.rows() * parameters.columns();
        let record_rows = parameters.shape().record_len();
        Costs {
            setup: 1.2 * byte_products(1024 * bytes) + hashed(parameters.hint_bytes()),
            prepare: hashed(parameters.hint_bytes()),
            query: 1.4 * aes_blocks(256 * parameters.columns()),
            answer: 1.4 * pass(bytes) + 1.8 * byte_products(bytes),
            answer_of_eight: 0.125 * pass(bytes) + 1.3 * byte_products(bytes),
            recover: 4.8 * byte_products(4096 * record_rows) + steps(15_000),
            server_bytes: parameters.hint_bytes(),
            ..Costs::default()
        }
    }
}
