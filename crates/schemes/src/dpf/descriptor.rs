//! The entry of DPF-PIR in the registry.

use super::{Dpf, DpfClient, DpfParameters, DpfServer};
use crate::registry::room::*;

impl Registered for Dpf {
    const ABOUT: About = About {
        servers: 2..=2,
        ..About::new("Two servers, distributed point functions, nothing kept", 70)
    };

    fn parameters(identity: &TableIdentity, _tuning: &Tuning) -> Result<Self::Parameters> {
        Ok(DpfParameters::new(identity))
    }

    fn setup(start: ServerStart<'_>, parameters: DpfParameters) -> NewServer {
        let server = DpfServer::new(parameters, start.table, start.kernels, start.threads)?;
        start.ready(server, |server| server)
    }

    fn client(
        start: ClientStart,
        parameters: Self::Parameters,
        _downloaded: Downloaded,
    ) -> NewClient {
        let client = DpfClient::new(parameters.clone(), start.kernels);
        start.stateless(parameters, client)
    }

    fn costs(parameters: &Self::Parameters) -> Costs {
        let shape = parameters.shape();
        let compute = 4.5 * aes_blocks(shape.records() / 128)
            + 0.6 * xored(shape.bytes() + 4 * shape.records())
            + steps(2_000);
        Costs {
            setup: copied(shape.bytes()),
            prepare: started(),
            query: steps(6_500),
            answer: 1.15 * pass(shape.bytes()) + compute,
            answer_of_eight: 0.125 * pass(shape.bytes()) + 0.65 * compute,
            recover: steps(700),
            ..Costs::default()
        }
    }
}
