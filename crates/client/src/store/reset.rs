//! Erasing stored data: all of it, one table's, or one server's pins.

use super::hints;
use super::pin_file::PinFile;
use super::report::{StateFolders, report};
use super::{LOCK, files, pin_file, pin_file_name, private_folders};
use crate::addresses::Address;
use crate::disk::Folder;
use privet_core::{Error, Reason, Result, TableId};
use std::path::Path;

/// What to erase in a state directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// Everything, also damaged pin files.
    Everything,
    /// Private hints, downloads and pins of one table.
    Table(TableId),
    /// The pins of the server at this address, also in a damaged file, and nothing else. For a
    /// server that lied about a table that others serve, too.
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

    /// The same, with a server's address in its normal spelling.
    fn normalised(&self) -> Result<Self> {
        Ok(match self {
            Self::Server(url) => Self::Server(Address::parse(url)?.url().to_owned()),
            other => other.clone(),
        })
    }

    /// Whether to erase a pin of `server` for `table`.
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
    /// Tables with any stored data.
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
pub fn what_reset_would_erase(root: &dyn Folder, scope: &Scope) -> Result<Erased> {
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

fn pins_to_remove(root: &dyn Folder, scope: &Scope) -> Result<u64> {
    let mut count = 0;
    for (folder, name) in StateFolders::at(root)?.pin_files()? {
        let PinFile { server, pins, .. } = pins_in(folder, &name)?.unwrap_or_default();
        count += pins.iter().filter(|(_, pin)| scope.has_pin(&server, pin.table.id)).count() as u64;
    }
    Ok(count)
}

/// The contents of a file of pins; `None` if it is damaged or not there.
fn pins_in(folder: &dyn Folder, name: &str) -> Result<Option<PinFile>> {
    Ok(pin_file::read(folder, name)?.ok().flatten())
}

/// Erases what `scope` says: overwrites private hints with zeros, and removes downloaded parts and
/// pins.
///
/// # Errors
/// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `root` is not a state directory, or a
///   server's address is not one;
/// - [`Blame::Unavailable`](privet_core::Blame::Unavailable) if another process uses any of it; the
///   error says which. Whatever was erased before that stays erased.
pub fn reset(root: &dyn Folder, scope: &Scope) -> Result<Erased> {
    let erased = what_reset_would_erase(root, scope)?;
    let scope = scope.normalised()?;
    let kept = StateFolders::at(root)?;
    for (table, folder) in kept.tables()? {
        if scope.has_table(table) {
            reset_table(&*folder)?;
            kept.remove_table(table);
        }
    }
    let Some(pins) = &kept.pins else { return Ok(erased) };
    let _lock = files::lock(&**pins, LOCK)?.ok_or_else(|| in_use(&pins.path(LOCK)))?;
    for (folder, name) in kept.pin_files()? {
        match &scope {
            Scope::Everything => files::remove_if_there(folder, &name)?,
            Scope::Server(server) if name == pin_file_name(server) => {
                files::remove_if_there(folder, &name)?;
            }
            _ => remove_pins_of(folder, &name, &scope)?,
        }
    }
    Ok(erased)
}

fn in_use(path: &Path) -> Error {
    Error::unavailable(format!("another process uses {}; end it and try again", path.display()))
        .because(Reason::UsedByAnotherProcess)
}

fn reset_table(folder: &dyn Folder) -> Result<()> {
    let _lock = files::lock(folder, LOCK)?.ok_or_else(|| in_use(&folder.path("")))?;
    for (name, private) in private_folders(folder)? {
        if !hints::erase_folder(&*private)? {
            return Err(in_use(&private.path("")));
        }
        // A foreign file in it stays, and so does the folder.
        let _ = folder.remove_folder(&name);
    }
    for name in files::names(folder)?.into_iter().filter(|name| name != LOCK) {
        files::remove_if_there(folder, &name)?;
    }
    files::remove_if_there(folder, LOCK)
}

fn remove_pins_of(folder: &dyn Folder, name: &str, scope: &Scope) -> Result<()> {
    let Some(mut file) = pins_in(folder, name)? else { return Ok(()) };
    let PinFile { server, pins, left, .. } = &mut file;
    let before = (pins.len(), left.len());
    pins.retain(|(_, pin)| !scope.has_pin(server, pin.table.id));
    left.retain(|left| !scope.has_pin(server, left.id));
    match (pins.len(), left.len()) {
        lens if lens == before => Ok(()),
        (0, 0) => files::remove_if_there(folder, name),
        _ => files::replace(folder, name, &pin_file::encode(&file)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Directory;
    use crate::state::State;
    use crate::store::tests::{pin, store};
    use privet_core::Blame;
    use privet_wire::limits::MAX_TABLES;

    #[test]
    fn a_server_is_forgotten_under_any_spelling_and_no_other_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = store(directory.path());
        let root = &Directory::existing(directory.path());
        let (liar, other) = ("http://liar:7700", "http://liar:7701");
        for name in ["one", "two"] {
            store.pin(liar, name, &pin(1, 0)).unwrap();
            store.pin(other, name, &pin(1, 0)).unwrap();
        }
        let scope = Scope::Server("HTTP://Liar:7700/".to_owned());
        let expected = Erased { pins: 2, ..Erased::default() };
        assert_eq!(what_reset_would_erase(root, &scope).unwrap(), expected);
        assert_eq!(store.pins(liar).unwrap().len(), 2, "nothing is erased yet");
        assert_eq!(reset(root, &scope).unwrap(), expected);
        assert_eq!(store.pins(liar).unwrap(), []);
        assert_eq!(store.pins(other).unwrap().len(), 2);

        std::fs::write(store.pin_path(liar), b"damaged").unwrap();
        reset(root, &scope).unwrap();
        assert_eq!(store.pins(liar).unwrap(), []);
        let nowhere = reset(root, &Scope::Server("liar".to_owned())).unwrap_err();
        assert_eq!(nowhere.blame(), Blame::ApiMisuse);
    }

    #[test]
    fn a_server_cannot_have_the_file_of_its_pins_grow_without_end() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = store(directory.path());
        let server = "http://a";
        let pins = (0..MAX_TABLES).map(|name| (name.to_string(), pin(1, 0))).collect();
        let full = PinFile { server: server.to_owned(), pins, ..PinFile::default() };
        files::replace(&*store.pins, &pin_file_name(server), &pin_file::encode(&full)).unwrap();
        let error = store.pin(server, "one more", &pin(1, 0)).unwrap_err();
        assert_eq!(error.reason(), Some(Reason::TooManyTablesRemembered), "{error}");
        assert_eq!(store.pins(server).unwrap().len(), MAX_TABLES);
        store.pin(server, "7", &pin(1, 1)).unwrap();
        assert_eq!(store.pins(server).unwrap().len(), MAX_TABLES);
    }
}
