//! An owner's eye on the own key.
//!
//! Nobody but the owner of a key can tell a rotation from a theft. So each owner's client looks the
//! own key up in every epoch, and compares it with what the owner asked for. As long as one of the
//! two servers is honest, friends see what the owner sees. The lookup is as private as any other:
//! no server learns that this client is a monitor, nor of which key.

use crate::directory::Sighting;
use privet_core::{Error, Result};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::path::Path;

/// What an owner knows of the own key. It belongs on a disk: the monitor runs once in every epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) user: String,
    /// The key that was seen published. `None` before the first one.
    key: Option<String>,
    /// The key that the owner has asked the publisher for, until it is published.
    asked_for: Option<String>,
    /// The last epoch in which all was right.
    right_in: Option<u64>,
}

/// What the monitor makes of a sighting.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The key is the one that it was.
    AsExpected,
    /// It is the one that the owner asked for, for the first time.
    Published,
    /// It is the one that it was, although the owner has asked for another.
    NotYet,
    /// Somebody else has changed it.
    Alarm(Alarm),
}

/// What is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Alarm {
    /// Another key, or none, since one of these epochs.
    Changed(RangeInclusive<u64>),
    /// The directory is an earlier one than this, which the monitor has seen.
    Earlier(u64),
}

impl Account {
    pub(crate) fn new(user: String) -> Self {
        Self { user, key: None, asked_for: None, right_in: None }
    }

    pub(crate) fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|error| {
            Error::api_misuse(format!("cannot read the account {}", path.display()))
                .caused_by(error)
        })?;
        serde_json::from_slice(&bytes).map_err(|error| {
            Error::corrupted(format!("{} is not an account: {error}", path.display()))
        })
    }

    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| Error::internal("an account is JSON").caused_by(error))?;
        // Whole or not at all: an account that is lost raises false alarms.
        let new = path.with_extension("new");
        std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, path)).map_err(|error| {
            Error::unavailable(format!("cannot write the account {}", path.display()))
                .caused_by(error)
        })
    }

    /// Notes that the owner has registered this key, or rotates to it.
    pub(crate) fn ask_for(&mut self, key: String) {
        self.asked_for = Some(key);
    }

    /// Compares what the directory says with what it should, and remembers what is right.
    pub(crate) fn judge(&mut self, seen: &Sighting) -> Verdict {
        if let Some(before) = self.right_in.filter(|before| seen.epochs.end() < before) {
            return Verdict::Alarm(Alarm::Earlier(before));
        }
        let verdict = if self.asked_for.is_some() && seen.key == self.asked_for {
            self.key = self.asked_for.take();
            Verdict::Published
        } else if seen.key == self.key {
            if self.asked_for.is_some() { Verdict::NotYet } else { Verdict::AsExpected }
        } else {
            // The change is later than the last epoch in which all was right. A change within that
            // epoch would mean that the directory has two versions of it.
            let last = *seen.epochs.end();
            let first = self.right_in.map_or(0, |right| last.min(right + 1));
            return Verdict::Alarm(Alarm::Changed(first..=last));
        };
        self.right_in = self.right_in.max(Some(*seen.epochs.start()));
        verdict
    }
}

impl Verdict {
    /// The verdict in words.
    pub(crate) fn told(&self, account: &Account, seen: &Sighting) -> String {
        let Account { user, key, .. } = account;
        let own = key.as_deref().unwrap_or("none");
        let epoch = seen.epochs.end();
        match self {
            Verdict::AsExpected => format!("epoch {epoch}: the key of {user} is what it was"),
            Verdict::Published => {
                format!("epoch {epoch}: the key that {user} asked for is published: {own}")
            }
            Verdict::NotYet => format!(
                "epoch {epoch}: the key that {user} asked for is not published yet; ask again, and \
                 complain if that goes on"
            ),
            Verdict::Alarm(Alarm::Earlier(before)) => format!(
                "ALARM: the directory of epoch {before} was seen before, and now it is that of \
                 epoch {epoch}"
            ),
            Verdict::Alarm(Alarm::Changed(epochs)) => {
                let (first, last) = (epochs.start(), epochs.end());
                let when = match first == last {
                    true => format!("in epoch {last}"),
                    false => format!("in one of the epochs {first} to {last}"),
                };
                let now = seen.key.as_deref().unwrap_or("no key at all");
                format!(
                    "ALARM: the key of {user} was changed {when}, and {user} did not ask for that. \
                     It is {now}; it should be {own}. Do not try again: tell your friends, and ask \
                     the publisher"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(key: &str, epoch: u64) -> Sighting {
        let key = Some(key.to_owned()).filter(|key| !key.is_empty());
        Sighting { key, epochs: epoch..=epoch }
    }

    /// An account whose first key was published in epoch 3.
    fn bob() -> Account {
        let mut bob = Account::new("bob".to_owned());
        bob.ask_for("first".to_owned());
        assert_eq!(bob.judge(&seen("", 2)), Verdict::NotYet);
        assert_eq!(bob.judge(&seen("first", 3)), Verdict::Published);
        bob
    }

    fn changed(first: u64, last: u64) -> Verdict {
        Verdict::Alarm(Alarm::Changed(first..=last))
    }

    #[test]
    fn what_the_owner_asked_for_raises_no_alarm() {
        let mut bob = bob();
        assert_eq!(bob.judge(&seen("first", 3)), Verdict::AsExpected);
        bob.ask_for("second".to_owned());
        assert_eq!(bob.judge(&seen("first", 4)), Verdict::NotYet);
        assert_eq!(bob.judge(&seen("second", 5)), Verdict::Published);
        assert_eq!(bob.judge(&seen("second", 9)), Verdict::AsExpected);
    }

    #[test]
    fn whatever_else_raises_one_that_names_the_epoch() {
        for wrong in ["other", "second", ""] {
            let mut bob = bob();
            assert_eq!(bob.judge(&seen(wrong, 4)), changed(4, 4), "{wrong}");
            // It goes on until all is right again.
            assert_eq!(bob.judge(&seen(wrong, 5)), changed(4, 5), "{wrong}");
            assert_eq!(bob.judge(&seen("first", 6)), Verdict::AsExpected, "{wrong}");
            assert_eq!(bob.judge(&seen(wrong, 7)), changed(7, 7), "{wrong}");
        }
    }

    #[test]
    fn the_way_back_to_a_former_key_is_a_change_as_well() {
        let mut bob = bob();
        bob.ask_for("second".to_owned());
        assert_eq!(bob.judge(&seen("second", 4)), Verdict::Published);
        assert_eq!(bob.judge(&seen("first", 5)), changed(5, 5));
    }

    #[test]
    fn an_owner_who_waits_for_a_key_notices_another() {
        let mut bob = bob();
        bob.ask_for("second".to_owned());
        assert_eq!(bob.judge(&seen("other", 4)), changed(4, 4));
        let mut zoe = Account::new("zoe".to_owned());
        zoe.ask_for("first".to_owned());
        assert_eq!(zoe.judge(&seen("other", 7)), changed(0, 7));
    }

    #[test]
    fn two_keys_in_one_epoch_and_epochs_that_go_back_raise_an_alarm() {
        assert_eq!(bob().judge(&seen("other", 3)), changed(3, 3));
        assert_eq!(bob().judge(&seen("first", 2)), Verdict::Alarm(Alarm::Earlier(3)));
    }

    #[test]
    fn what_is_seen_while_the_client_moves_on_counts_for_the_earlier_epoch() {
        let mut bob = bob();
        let moving = Sighting { epochs: 4..=6, ..seen("first", 0) };
        assert_eq!(bob.judge(&moving), Verdict::AsExpected);
        assert_eq!(bob.judge(&seen("other", 6)), changed(5, 6));
    }

    #[test]
    fn an_alarm_says_what_was_seen_and_when() {
        let mut bob = bob();
        let told = |bob: &mut Account, epoch| {
            let seen = seen("other", epoch);
            bob.judge(&seen).told(bob, &seen)
        };
        assert!(told(&mut bob, 4).starts_with(
            "ALARM: the key of bob was changed in epoch 4, and bob did not ask for that. It is \
             other; it should be first."
        ));
        assert!(told(&mut bob, 6).contains("changed in one of the epochs 4 to 6,"));
    }
}
