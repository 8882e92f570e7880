//! The entry of APIR-DPF in the registry.

use super::{ApirDpf, ApirDpfClient, ApirDpfParameters, ApirDpfServer};
use crate::registry::room::*;

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
        start.ready(server, |server| server)
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
}
