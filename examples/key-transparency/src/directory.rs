//! The directory as a messenger sees it: one verified view of two servers, which follows the
//! epochs.
//!
//! All of the protection is in the options: the scheme, which verifies answers; the publisher,
//! whose signatures lead from epoch to epoch; and a folder, in which the client keeps what it has
//! seen. The client asks nothing unless both servers show the same epoch of the same directory.

use crate::Servers;
use privet_client::{Client, ClientOptions, Progress, Target};
use privet_core::{Error, Result};
use privet_schemes::SchemeId;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};

/// An open directory.
pub(crate) struct Directory {
    client: Client,
    followed: Arc<Mutex<Option<Followed>>>,
}

/// The epochs that were followed while the directory was open, and how many records they changed.
#[derive(Clone, Copy)]
struct Followed {
    from: u64,
    to: u64,
    records: u64,
}

/// What the directory says of a user.
pub(crate) struct Sighting {
    /// The key, or `None` if there is no such user.
    pub(crate) key: Option<String>,
    /// It was said in one of these epochs: in one alone, unless the client moved on meanwhile.
    pub(crate) epochs: RangeInclusive<u64>,
}

/// What was sent and received.
pub(crate) struct Spent {
    pub(crate) preparation: Preparation,
    /// Bytes received before the first lookup.
    pub(crate) first: u64,
    /// Bytes of queries, to both servers.
    pub(crate) sent: u64,
    /// Bytes of answers, from both servers.
    pub(crate) received: u64,
}

/// How the client came by its secret hints.
pub(crate) enum Preparation {
    /// It streamed the directory.
    Anew,
    /// It had them already, for this epoch.
    Kept,
    /// It had them for an earlier epoch, and patched them.
    Followed { from: u64, to: u64, records: u64 },
}

impl Directory {
    /// Compares what the two servers say, follows the epochs since the last visit, and at first use
    /// prepares secret hints.
    pub(crate) fn open(servers: &Servers) -> Result<Self> {
        let mut options = ClientOptions::new(servers.urls.clone());
        options.session.schemes = vec![SchemeId::TapirMerkle];
        options.session.publisher = Some(servers.publisher);
        options.state_dir = Some(servers.state.clone());
        let followed = Arc::new(Mutex::new(None));
        let news = Arc::clone(&followed);
        let client = Client::connect_blocking(options, move |progress| {
            if let Progress::Updated { from, to, records, .. } = progress {
                let mut news = news.lock().unwrap_or_else(PoisonError::into_inner);
                let before: Option<Followed> = *news;
                *news = Some(Followed {
                    from: before.map_or(from.0, |before| before.from),
                    to: to.0,
                    records: before.map_or(0, |before| before.records) + records,
                });
            }
        })?;
        Ok(Self { client, followed })
    }

    /// Looks a user up. Neither server learns which one, nor whether there is such a user.
    pub(crate) fn look_up(&self, user: &str) -> Result<Sighting> {
        let first = self.epoch();
        let value = self.client.get_target_blocking(Target::key(user.as_bytes()))?;
        let key = value.map(|value| String::from_utf8(value.to_vec())).transpose();
        let key = key.map_err(|error| {
            Error::integrity("the publisher's directory has a key that is no text").caused_by(error)
        })?;
        Ok(Sighting { key, epochs: first..=self.epoch() })
    }

    /// Waits until all is kept, and says what was sent and received.
    pub(crate) fn close(self) -> Result<Spent> {
        self.client.finish_blocking()?;
        let stats = self.client.stats();
        let preparation = match (stats.hint_was_stored, self.followed()) {
            (Some(true), Some(Followed { from, to, records })) => {
                Preparation::Followed { from, to, records }
            }
            (Some(true), None) => Preparation::Kept,
            _ => Preparation::Anew,
        };
        Ok(Spent {
            preparation,
            first: stats.describe.down + stats.prepare.down,
            sent: stats.lookup.up,
            received: stats.lookup.down,
        })
    }

    /// The epoch that the client has come to.
    fn epoch(&self) -> u64 {
        let opened_in = self.client.table().identity.epoch.0;
        self.followed().map_or(opened_in, |followed| followed.to.max(opened_in))
    }

    fn followed(&self) -> Option<Followed> {
        *self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
