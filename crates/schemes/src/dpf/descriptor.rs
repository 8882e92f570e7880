//! What the registry has of DPF-PIR.

use super::{Dpf, DpfClient, DpfParameters, DpfServer};
use crate::offline::HintSource;
use crate::registry::{
    About, ClientStart, ErasedClient, ErasedSetup, Registered, ServerStart, Tuning,
};
use privet_core::{Result, TableIdentity};
use std::sync::Arc;

impl Registered for Dpf {
    const ABOUT: About = About {
        servers: 2..=2,
        ..About::new("Two servers, distributed point functions, nothing kept", 70)
    };

    fn parameters(identity: &TableIdentity, _tuning: &Tuning) -> Result<DpfParameters> {
        Ok(DpfParameters::new(identity))
    }

    fn setup(start: ServerStart<'_>, parameters: DpfParameters) -> Result<Box<dyn ErasedSetup>> {
        let server = DpfServer::new(parameters, start.table, start.kernels, start.threads)?;
        start.ready(server, |server| server)
    }

    fn client(
        start: ClientStart,
        parameters: DpfParameters,
        _downloaded: Arc<dyn HintSource>,
    ) -> Result<Box<dyn ErasedClient>> {
        let client = DpfClient::new(parameters.clone(), start.kernels);
        start.stateless(parameters, client)
    }
}
