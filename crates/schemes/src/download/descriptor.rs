//! The entry of the download in the registry.

use super::{Download, DownloadClient, DownloadParameters};
use crate::registry::factors::download as fitted;
use crate::registry::room::*;

impl Registered for Download {
    const ABOUT: About = About {
        assumes: Assumption::Nothing,
        ..About::new("The client fetches the whole table once and asks nobody", 130)
    };
    const PATCHES: Option<&'static dyn ErasedPatches> = Some(&Of::<Self>::VALUE);

    fn parameters(identity: &TableIdentity, _tuning: &Tuning) -> Result<Self::Parameters> {
        Ok(DownloadParameters::new(identity))
    }

    fn setup(start: ServerStart<'_>, _: Self::Parameters) -> NewServer {
        start.fetched()
    }

    fn client(
        start: ClientStart,
        parameters: Self::Parameters,
        downloaded: Downloaded,
    ) -> NewClient {
        start.local(DownloadClient::new(parameters, downloaded)?)
    }

    fn work(_: &Self::Parameters) -> Work {
        Work::Nothing
    }

    fn costs(parameters: &Self::Parameters) -> Costs {
        let bytes = parameters.shape().bytes();
        Costs {
            setup: fitted::SETUP * hashed(bytes),
            prepare: fitted::PREPARE * hashed(bytes),
            recover: fitted::RECOVER * steps(1),
            ..Costs::default()
        }
    }
}
