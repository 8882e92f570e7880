//! Erasing what is kept: all of it, one table's, or what is remembered of one server.

use super::files::{self, Lock};
use super::hints::{self, Directory};
use super::report::{entries, pin_files, report, tables};
use super::{PRIVATE, Pins, pin_file, pin_path, private_directories};
use crate::addresses::Address;
use privet_core::{Blame, Error, Result, TableId};
use std::path::Path;

/// What of a state directory is to be erased.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// Everything, files of pins that are damaged included.
    Everything,
    /// Private hints, downloads and pins of one table.
    Table(TableId),
    /// What is remembered of the server at this address: its pins, also in a damaged file, and
    /// nothing else. For a server that turned out to lie about a table that others serve, too.
    Server(String),
}

impl Scope {
    fn has_table(&self, table: TableId) -> bool {
        match self {
            Self::Everything => true,
            Self::Table(only) => *only == table,
            Self::Server(_) => false,
        }
    }

    /// The same, with a server's address in the spelling in which it is kept.
    fn normalised(&self) -> Result<Self> {
        Ok(match self {
            Self::Server(url) => Self::Server(Address::parse(url)?.url().to_owned()),
            other => other.clone(),
        })
    }

    /// Whether a pin of `server` for `table` is to be forgotten.
    fn has_pin(&self, server: &str, table: TableId) -> bool {
        match self {
            Self::Server(only) => {
                server == only || Address::parse(server).is_ok_and(|known| known.url() == only)
            }
            other => other.has_table(table),
        }
    }
}

/// What was erased, or would be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Tables of which anything was kept.
    pub tables: u64,
    /// Single-use hints, each of one table under one scheme.
    pub hints: u64,
    /// Downloaded parts.
    pub parts: u64,
    /// Pins.
    pub pins: u64,
}

/// What [`reset`] would erase.
///
/// # Errors
/// As [`report`].
pub fn what_reset_would_erase(root: &Path, scope: &Scope) -> Result<Erased> {
    let report = report(root)?;
    let scope = scope.normalised()?;
    let mut erased = Erased { pins: pins_to_remove(root, &scope)?, ..Erased::default() };
    for table in report.tables.iter().filter(|table| scope.has_table(table.table)) {
        erased.tables += 1;
        erased.hints += table.hints.len() as u64;
        erased.parts += table.parts.len() as u64;
    }
    Ok(erased)
}

fn pins_to_remove(root: &Path, scope: &Scope) -> Result<u64> {
    let mut count = 0;
    for path in pin_files(root)? {
        let (server, pins) = pins_in(&path)?.unwrap_or_default();
        count += pins.iter().filter(|(_, pin)| scope.has_pin(&server, pin.table.id)).count() as u64;
    }
    Ok(count)
}

/// The server and the pins in a file; `None` if it is damaged or not there.
fn pins_in(path: &Path) -> Result<Option<(String, Pins)>> {
    match files::read_if_there(path, pin_file::MAX_LEN) {
        Err(error) if error.blame() == Blame::Corrupted => Ok(None),
        Ok(Some(bytes)) => Ok(pin_file::decode_with_server(&bytes).ok()),
        other => other.map(|_| None),
    }
}

/// Erases what `scope` says: private hints with zeros, and downloaded parts and pins by removing
/// them.
///
/// # Errors
/// - [`Blame::ApiMisuse`] if `root` is no state directory, or a server's address is none;
/// - [`Blame::Unavailable`] if another process uses any of it: it says which. What was erased by
///   then stays erased.
pub fn reset(root: &Path, scope: &Scope) -> Result<Erased> {
    let erased = what_reset_would_erase(root, scope)?;
    let scope = scope.normalised()?;
    for (table, directory) in tables(root)? {
        if scope.has_table(table) {
            reset_table(&directory)?;
        }
    }
    let lock = root.join("pins/lock");
    let _lock = Lock::try_take(&lock)?.ok_or_else(|| in_use(&lock))?;
    for path in pin_files(root)? {
        match &scope {
            Scope::Everything => files::remove_if_there(&path)?,
            Scope::Server(server) if path == pin_path(root, server) => {
                files::remove_if_there(&path)?;
            }
            _ => remove_pins_of(&path, &scope)?,
        }
    }
    Ok(erased)
}

fn in_use(path: &Path) -> Error {
    Error::unavailable(format!("another process uses {}; end it and try again", path.display()))
}

fn reset_table(directory: &Path) -> Result<()> {
    let lock = directory.join("lock");
    let _lock = Lock::try_take(&lock)?.ok_or_else(|| in_use(directory))?;
    for (_, path) in private_directories(directory)? {
        if !hints::erase_folder(&Directory::existing(&path))? {
            return Err(in_use(&path));
        }
        // Somebody else's file in it stays, and the directory with it.
        let _ = std::fs::remove_dir(&path);
    }
    for path in entries(directory)? {
        let private =
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PRIVATE));
        if !private && path != lock && !path.is_dir() {
            files::remove_if_there(&path)?;
        }
    }
    files::remove_if_there(&lock)?;
    let _ = std::fs::remove_dir(directory);
    Ok(())
}

fn remove_pins_of(path: &Path, scope: &Scope) -> Result<()> {
    let Some((server, mut pins)) = pins_in(path)? else { return Ok(()) };
    let before = pins.len();
    pins.retain(|(_, pin)| !scope.has_pin(&server, pin.table.id));
    match pins.len() {
        len if len == before => Ok(()),
        0 => files::remove_if_there(path),
        _ => files::replace(path, &pin_file::encode(&server, &pins)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::State;
    use crate::store::tests::{pin, store};
    use privet_wire::limits::MAX_TABLES;

    #[test]
    fn a_server_is_forgotten_under_any_spelling_and_no_other_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = store(directory.path());
        let (liar, other) = ("http://liar:7700", "http://liar:7701");
        for name in ["one", "two"] {
            store.pin(liar, name, &pin(1, 0)).unwrap();
            store.pin(other, name, &pin(1, 0)).unwrap();
        }
        let scope = Scope::Server("HTTP://Liar:7700/".to_owned());
        let expected = Erased { pins: 2, ..Erased::default() };
        assert_eq!(what_reset_would_erase(directory.path(), &scope).unwrap(), expected);
        assert_eq!(store.pins(liar).unwrap().len(), 2, "nothing is erased yet");
        assert_eq!(reset(directory.path(), &scope).unwrap(), expected);
        assert_eq!(store.pins(liar).unwrap(), []);
        assert_eq!(store.pins(other).unwrap().len(), 2);

        std::fs::write(store.pin_path(liar), b"damaged").unwrap();
        reset(directory.path(), &scope).unwrap();
        assert_eq!(store.pins(liar).unwrap(), []);
        let nowhere = reset(directory.path(), &Scope::Server("liar".to_owned())).unwrap_err();
        assert_eq!(nowhere.blame(), Blame::ApiMisuse);
    }

    #[test]
    fn a_server_cannot_have_the_file_of_its_pins_grow_without_end() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = store(directory.path());
        let server = "http://a";
        let names: Vec<_> = (0..MAX_TABLES).map(|name| (name.to_string(), pin(1, 0))).collect();
        files::replace(&store.pin_path(server), &pin_file::encode(server, &names)).unwrap();
        let error = store.pin(server, "one more", &pin(1, 0)).unwrap_err();
        assert!(error.message().contains("state reset --server http://a"), "{error}");
        assert_eq!(store.pins(server).unwrap().len(), MAX_TABLES);
        store.pin(server, "7", &pin(1, 1)).unwrap();
        assert_eq!(store.pins(server).unwrap().len(), MAX_TABLES);
    }
}
