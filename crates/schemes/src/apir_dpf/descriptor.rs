//! The entry of APIR-DPF in the registry.

use super::{ApirDpf, ApirDpfClient, ApirDpfParameters, ApirDpfServer};
use crate::registry::factors::apir_dpf as fitted;
use crate::registry::room::*;
use privet_kernels::authenticated_sum;

impl Registered for ApirDpf {
    const ABOUT: About = About {
        servers: 2..=2,
        verifies: true,
        ..About::new("DPF-PIR whose answers are verified, nothing kept", 10)
    };

    fn parameters(identity: &TableIdentity, _tuning: &Tuning) -> Result<Self::Parameters> {
        Ok(ApirDpfParameters::new(identity))
    }

    fn setup(start: ServerStart<'_>, parameters: Self::Parameters) -> NewServer {
        let server = ApirDpfServer::new(parameters, start.table, start.kernels, start.threads)?;
        start.ready(server)
    }

    fn client(
        start: ClientStart,
        parameters: Self::Parameters,
        _downloaded: Downloaded,
    ) -> NewClient {
        let client = ApirDpfClient::new(parameters.clone(), start.kernels);
        start.stateless(parameters, client)
    }

    fn words(parameters: &Self::Parameters) -> Option<String> {
        Some(format!(
            "answers are verified by a tag for each of {} parts of a record",
            parameters.elements()
        ))
    }

    fn costs(parameters: &Self::Parameters) -> Costs {
        let shape = parameters.shape();
        let products = authenticated_sum::elements(shape.record_len() as usize) as u64;
        // Records that do not fill an element are gathered first.
        let gathered = if shape.record_len() < 16 { 10 } else { 0 };
        let [expanded, multiplied, collected] = fitted::ANSWER;
        let answer = expanded * aes_blocks(shape.records())
            + multiplied * steps(products * shape.records())
            + collected * steps(gathered * shape.records());
        Costs {
            setup: fitted::SETUP * copied(shape.bytes()),
            prepare: started(),
            query: fitted::QUERY * steps(1),
            answer,
            answer_of_eight: answer,
            recover: fitted::RECOVER * steps(1),
            ..Costs::default()
        }
    }
}
