//! The entry of SimplePIR in the registry.

use super::{SimplePir, SimplePirClient, SimplePirParameters, SimplePirServer};
use crate::registry::factors::simplepir as fitted;
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
        start.precomputing(setup)
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
        let answer =
            |[read, multiplied]: [f64; 2]| read * pass(bytes) + multiplied * byte_products(bytes);
        let ([multiplied, digested], [unmasked, fixed]) = (fitted::SETUP, fitted::RECOVER);
        Costs {
            setup: multiplied * byte_products(1024 * bytes)
                + digested * hashed(parameters.hint_bytes()),
            prepare: fitted::PREPARE * hashed(parameters.hint_bytes()),
            query: fitted::QUERY * aes_blocks(256 * parameters.columns()),
            answer: answer(fitted::ANSWER),
            answer_of_eight: answer(fitted::ANSWER_OF_EIGHT),
            recover: unmasked * byte_products(4096 * record_rows) + fixed * steps(1),
            server_bytes: parameters.hint_bytes(),
            ..Costs::default()
        }
    }
}
