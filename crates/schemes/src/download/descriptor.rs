//! What the registry has of the download.

use super::{Download, DownloadClient, DownloadParameters};
use crate::offline::HintSource;
use crate::registry::{
    About, ClientStart, ErasedClient, ErasedPatches, ErasedSetup, Of, Registered, ServerStart,
    Tuning, Work,
};
use privet_core::{Result, TableIdentity};
use std::sync::Arc;

impl Registered for Download {
    const ABOUT: About = About::new("The client fetches the whole table once and asks nobody", 130);
    const PATCHES: Option<&'static dyn ErasedPatches> = Some(&Of::<Self>::VALUE);

    fn parameters(identity: &TableIdentity, _tuning: &Tuning) -> Result<DownloadParameters> {
        Ok(DownloadParameters::new(identity))
    }

    fn setup(start: ServerStart<'_>, _: DownloadParameters) -> Result<Box<dyn ErasedSetup>> {
        start.fetched()
    }

    fn client(
        start: ClientStart,
        parameters: DownloadParameters,
        downloaded: Arc<dyn HintSource>,
    ) -> Result<Box<dyn ErasedClient>> {
        start.local(DownloadClient::new(parameters, downloaded)?)
    }

    fn work(_: &DownloadParameters) -> Work {
        Work::Nothing
    }
}
