//! The entry of DPF-PIR in the registry.

use super::{Dpf, DpfClient, DpfParameters, DpfServer};
use crate::registry::factors::dpf as fitted;
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
        start.ready(server)
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
        let answer = |[read, expanded, summed, fixed]: [f64; 4]| {
            read * pass(shape.bytes())
                + expanded * aes_blocks(shape.records() / 128)
                + summed * xored(shape.bytes() + 4 * shape.records())
                + fixed * steps(1)
        };
        Costs {
            setup: fitted::SETUP * copied(shape.bytes()),
            prepare: started(),
            query: fitted::QUERY * steps(1),
            answer: answer(fitted::ANSWER),
            answer_of_eight: answer(fitted::ANSWER_OF_EIGHT),
            recover: fitted::RECOVER * steps(1),
            ..Costs::default()
        }
    }
}
