//! What the registry has of APIR-DPF.

use super::{ApirDpf, ApirDpfClient, ApirDpfParameters, ApirDpfServer};
use crate::offline::HintSource;
use crate::registry::{
    About, ClientStart, ErasedClient, ErasedSetup, Registered, ServerStart, Tuning,
};
use privet_core::{Result, TableIdentity};
use std::sync::Arc;

impl Registered for ApirDpf {
    const ABOUT: About = About {
        servers: 2..=2,
        verifies: true,
        ..About::new("DPF-PIR whose answers are verified, nothing kept", 10)
    };

    fn parameters(identity: &TableIdentity, _tuning: &Tuning) -> Result<ApirDpfParameters> {
        Ok(ApirDpfParameters::new(identity))
    }

    fn setup(
        start: ServerStart<'_>,
        parameters: ApirDpfParameters,
    ) -> Result<Box<dyn ErasedSetup>> {
        let server = ApirDpfServer::new(parameters, start.table, start.kernels, start.threads)?;
        start.ready(server, |server| server)
    }

    fn client(
        start: ClientStart,
        parameters: ApirDpfParameters,
        _downloaded: Arc<dyn HintSource>,
    ) -> Result<Box<dyn ErasedClient>> {
        let client = ApirDpfClient::new(parameters.clone(), start.kernels);
        start.stateless(parameters, client)
    }

    fn words(parameters: &ApirDpfParameters) -> Option<String> {
        Some(format!(
            "answers are verified by a tag for each of {} parts of a record",
            parameters.elements()
        ))
    }
}
