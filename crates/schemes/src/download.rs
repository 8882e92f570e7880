//! Download: the trivial scheme. The client fetches the whole table once, keeps it, and looks
//! records up on its own.
//!
//! **Who learns what.** The server learns that the client fetched the table. It also learns when
//! the client runs, because a session begins with the question whether the table is still the same.
//! It learns nothing of lookups: not which, not how many, not whether there are any. There is no
//! assumption to break and no query to attack. The client refuses by its digest a table that is not
//! the announced one. So a server cannot answer wrongly; it can only show different clients
//! different tables.
//!
//! **What it costs**, for a table of N bytes:
//!
//! | | bytes | work |
//! |---|---|---|
//! | offline, client, once per table | N down | its digest |
//! | query, answer | – | – |
//! | recover, client | – | reading one record where it is kept |
//! | edits, client | – | the table is read and written once |
//! | state | N bytes on the client's disk, public; on the server the table file | – |
//!
//! It is the right choice for small tables: `auto` takes it if ten days of lookups by packed
//! SimplePIR would move as many bytes. It is also the yardstick for other tables: a scheme whose
//! first use costs more than the table must save that later.

mod client;
mod descriptor;
mod params;
#[cfg(test)]
mod tests;
mod update;

pub use client::DownloadClient;
pub use params::DownloadParameters;

use crate::SchemeId;
use crate::contract::{Message, Offline, Scheme};
use crate::offline::OfflinePhase;
use privet_core::{Error, Result};

/// The scheme's types, without a state.
pub struct Download;

/// The type of messages that are never sent: it has no value.
pub enum NoMessage {}

impl Message<DownloadParameters> for NoMessage {
    fn encoded_len(_parameters: &DownloadParameters) -> usize {
        0
    }

    fn encode(&self) -> Vec<u8> {
        match *self {}
    }

    fn decode(_parameters: &DownloadParameters, _bytes: &[u8]) -> Result<Self> {
        Err(Error::invalid_message("a table that is fetched whole has neither queries nor answers"))
    }
}

impl Scheme for Download {
    const ID: SchemeId = SchemeId::named("download");
    type Parameters = DownloadParameters;
    type Query = NoMessage;
    type Answer = NoMessage;

    fn servers(_parameters: &DownloadParameters) -> usize {
        1
    }
}

impl Offline for Download {
    fn offline_phase(parameters: &DownloadParameters) -> OfflinePhase {
        OfflinePhase::KeepTable { len: parameters.shape().bytes() }
    }
}
