//! What the registry has of SimplePIR.

use super::{SimplePir, SimplePirClient, SimplePirParameters, SimplePirServer};
use crate::offline::HintSource;
use crate::registry::{
    About, ClientStart, ErasedClient, ErasedPatches, ErasedSetup, Of, Registered, ServerStart,
    Tuning,
};
use privet_core::{Result, TableIdentity};
use std::sync::Arc;

impl Registered for SimplePir {
    const ABOUT: About = About::new("One server, learning with errors, a public reusable hint", 80);
    const PATCHES: Option<&'static dyn ErasedPatches> = Some(&Of::<Self>::VALUE);

    fn parameters(identity: &TableIdentity, _tuning: &Tuning) -> Result<SimplePirParameters> {
        SimplePirParameters::new(identity)
    }

    fn setup(
        start: ServerStart<'_>,
        parameters: SimplePirParameters,
    ) -> Result<Box<dyn ErasedSetup>> {
        let setup = SimplePirServer::new(parameters, start.table, start.kernels, start.threads)?;
        start.precomputing(setup, |server| server)
    }

    fn client(
        start: ClientStart,
        parameters: SimplePirParameters,
        downloaded: Arc<dyn HintSource>,
    ) -> Result<Box<dyn ErasedClient>> {
        let client = SimplePirClient::new(parameters.clone(), downloaded, start.kernels)?;
        start.stateless(parameters, client)
    }
}
