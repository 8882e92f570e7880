//! The state directory: what a client keeps on disk, safe against crashes at any moment and against
//! two processes at once.
//!
//! ```text
//! STATE/                                 $XDG_STATE_HOME/privet or ~/.local/state/privet, unless told otherwise
//!   pins/
//!     <hash of a server's address>.pins  what was first seen there: see `pin_file`
//!     lock                               held while pins are rewritten: an instant
//!   tables/<table id>/
//!     layout-<digest>.part               complete parts: see `part_file`
//!     hint-<digest>.part                 or table-<digest>.part, where the client keeps the whole table
//!     hint-<digest>.partial              a download under way
//!     lock                               held by the process that downloads
//!     private-<scheme>/                  single-use hints: see `hints`
//! ```
//!
//! **Readers never wait.** A complete part never changes, so any number of processes read it
//! without a lock.
//!
//! **One writer.** The process that downloads holds the table's lock. Others get [`Opened::Busy`]
//! and ask again until the part is complete. The lock ends with its process, even if that is
//! killed, and the next process goes on where the file ends.
//!
//! **Versions.** A part is identified by its length and digest, whatever version of its table it
//! was fetched for. The pins decide what stays when a table changes: a part stays as long as a pin
//! names it. So the next version's part can be there before its pin, and after a crash in between
//! both versions are usable. Single-use hints stay if the pins show that they can follow.
//!
//! **Secrets.** Single-use hints have a directory, a lock and rules of their own: they are never
//! fetched again silently, and never used twice.
//!
//! **Damage.** Parts are public: a damaged one is dropped and fetched again, and [`Opened::Have`]
//! says so. Pins cannot be fetched again: a damaged pin file is refused, and the error names it.
//!
//! Opening a part checks all of it. That it is fetched again shows the server that this client's
//! disk lost some of it, and nothing about what was looked up. If a part is damaged while it is
//! open, the lookups that read there fail. The next session finds the damage, whatever was looked
//! up.
//!
//! Where there is no such disk, a [`KeptState`] has a shell keep parts and pins.

mod files;
mod hints;
mod identity;
mod kept;
mod part_file;
mod pin_file;
mod report;
mod reset;
#[cfg(test)]
mod tests;

pub use kept::{Change, Keeping, KeptState};
pub use report::{
    HintsCondition, HintsReport, PartForm, PartReport, PinnedVersion, SeenTable, StateReport,
    TableReport, Verification, report, verify,
};
pub use reset::{Erased, Scope, reset, what_reset_would_erase};

#[cfg(feature = "disk")]
use crate::disk::Directory;
use crate::disk::Folder;
use crate::state::{
    HintsKey, HintsOpened, MemoryState, Opened, PartKey, PartState, Pin, PinElsewhere, State,
};
use files::StoredFile;
use hints::{KeptHints, Opening, Others};
use part_file::{CompletePart, GrowingPart};
use pin_file::PinFile;
use privet_core::{Blame, Error, Reason, Result, TableId};
use privet_schemes::offline::HintSource;
use privet_table::update_log::Left;
use privet_wire::PartKind;
use std::collections::HashMap;
use std::path::Path;
#[cfg(feature = "disk")]
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long to wait for another process that rewrites pins; that takes an instant.
const PIN_LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// The folder of the pins' files.
const PINS: &str = "pins";

/// The folder of the tables' folders.
const TABLES: &str = "tables";

/// The lock of a folder: a process that writes in the folder holds it.
const LOCK: &str = "lock";

/// Prefix of the name of a folder of single-use hints; the scheme's name follows.
const PRIVATE: &str = "private-";

/// Extension of a part's file while it grows, …
const PARTIAL: &str = "partial";

/// … and once it is complete.
const COMPLETE: &str = "part";

/// The pins of one server, by the tables' names.
type Pins = Vec<(String, Pin)>;

/// A state directory.
pub struct Store {
    /// The files of pins.
    pins: Arc<dyn Folder>,
    /// A folder for each table.
    tables: Arc<dyn Folder>,
    replace_damaged_pins: bool,
    chunk_len: u32,
    growing: Vec<(PartKey, GrowingPart, StoredFile)>,
    /// Has lineages while they come. They are short, and fetched before anything is known of their
    /// table: a server must not fill the disk with tables that it makes up.
    lineages: MemoryState,
    /// The pins as this process read them, with its own later changes. A session compared them with
    /// the servers' descriptions. They never include what another process has written meanwhile.
    known: HashMap<String, Pins>,
}

/// Where the state lies by default: `$XDG_STATE_HOME/privet`, or else `~/.local/state/privet`.
///
/// # Errors
/// [`Blame::ApiMisuse`] if neither variable is set.
#[cfg(feature = "disk")]
pub fn default_directory() -> Result<PathBuf> {
    // An empty or relative XDG_STATE_HOME counts as unset, as its specification says.
    let absolute =
        |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(state) = absolute("XDG_STATE_HOME") {
        return Ok(state.join("privet"));
    }
    let home = absolute("HOME").or_else(|| absolute("USERPROFILE"));
    home.map(|home| home.join(".local/state/privet")).ok_or_else(|| {
        Error::api_misuse("there is no place to keep hints: set HOME or XDG_STATE_HOME, or name a state directory")
    })
}

impl Store {
    /// Opens the state directory at `root`, and creates it if need be.
    ///
    /// # Errors
    /// [`Blame::Unavailable`] if it cannot be created.
    #[cfg(feature = "disk")]
    pub fn open(root: &Path) -> Result<Self> {
        let directory = Directory::create(root)
            .map_err(|error| files::failed(root, "create the directory", error))?;
        Self::on(&directory)
    }

    /// A state directory in a folder of any disk.
    ///
    /// # Errors
    /// [`Blame::Unavailable`] if nothing can be created in it.
    pub fn on(folder: &dyn Folder) -> Result<Self> {
        Ok(Self {
            pins: files::create_folder(folder, PINS)?,
            tables: files::create_folder(folder, TABLES)?,
            replace_damaged_pins: false,
            chunk_len: part_file::CHUNK_LEN,
            growing: Vec::new(),
            lineages: MemoryState::default(),
            known: HashMap::new(),
        })
    }

    /// Allows replacing damaged pins by what the server shows now: for a user who has decided to
    /// believe it.
    #[must_use]
    pub fn replacing_damaged_pins(mut self, replace: bool) -> Self {
        self.replace_damaged_pins = replace;
        self
    }

    /// Stores parts in chunks of another length: for tests with small tables.
    #[cfg(test)]
    pub(crate) fn with_chunk_len(mut self, chunk_len: u32) -> Self {
        self.chunk_len = chunk_len;
        self
    }

    /// The folder of a table; `None` if nothing is stored for it.
    fn table(&self, table: TableId) -> Result<Option<Arc<dyn Folder>>> {
        files::folder(&*self.tables, &table.to_string())
    }

    fn create_table(&self, table: TableId) -> Result<Arc<dyn Folder>> {
        files::create_folder(&*self.tables, &table.to_string())
    }

    fn growing(&mut self, part: &PartKey) -> Result<usize> {
        let found = self.growing.iter().position(|(key, ..)| key == part);
        found.ok_or_else(|| Error::api_misuse("a part must be opened before it is written"))
    }

    /// The complete part, if it is there and whole. Otherwise what is wrong with it.
    fn open_complete(&self, part: &PartKey) -> Result<Result<Option<CompletePart>>> {
        let Some(folder) = self.table(part.table.id)? else { return Ok(Ok(None)) };
        match CompletePart::open(&*folder, &part_file_name(part, COMPLETE), part) {
            Err(error) if error.blame() == Blame::Corrupted => Ok(Err(error)),
            other => other.map(Ok),
        }
    }

    /// Waits until no other process rewrites pins.
    fn lock_pins(&self) -> Result<StoredFile> {
        files::lock_within(&*self.pins, LOCK, PIN_LOCK_PATIENCE)?.ok_or_else(|| {
            Error::unavailable(format!(
                "another process has held {} for {} s; end it and try again, or use a state directory of your own",
                self.pins.path(LOCK).display(),
                PIN_LOCK_PATIENCE.as_secs()
            ))
            .because(Reason::UsedByAnotherProcess)
        })
    }

    fn has_pins(&self, name: &str) -> Result<bool> {
        Ok(files::open_to_read(&*self.pins, name)?.is_some())
    }

    /// Moves the pins of a server from an earlier spelling of its address to `server`, unless that
    /// has pins already.
    ///
    /// # Errors
    /// As [`State::pins`] and [`State::pin`].
    pub fn adopt_pins(&self, earlier: &str, server: &str) -> Result<()> {
        let (from, to) = (pin_file_name(earlier), pin_file_name(server));
        if from == to || self.has_pins(&to)? || !self.has_pins(&from)? {
            return Ok(());
        }
        let _lock = self.lock_pins()?;
        // Another process may have done it in the meantime.
        if let (false, Some(known)) = (self.has_pins(&to)?, self.read_pin_file(&from)?) {
            // After each step alone, the next attempt finds the pins.
            let encoded = pin_file::encode(&PinFile { server: server.to_owned(), ..known });
            files::replace(&*self.pins, &from, &encoded)?;
            files::rename(&*self.pins, &from, &to)?;
        }
        Ok(())
    }

    /// What is pinned at all servers, with the files' names, without the files that are damaged.
    fn readable_pins(&self) -> Result<Vec<(String, PinFile)>> {
        let mut found = Vec::new();
        for name in pin_files(&*self.pins)? {
            let file = pin_file::read(&*self.pins, &name)?.ok().flatten();
            found.extend(file.map(|file| (name, file)));
        }
        Ok(found)
    }

    fn read_pins(&self, name: &str) -> Result<Option<Pins>> {
        Ok(self.read_pin_file(name)?.map(|known| known.pins))
    }

    fn read_pin_file(&self, name: &str) -> Result<Option<PinFile>> {
        match pin_file::read(&*self.pins, name)? {
            Ok(file) => Ok(file),
            Err(_) if self.replace_damaged_pins => Ok(None),
            Err(damage) => Err(Error::corrupted(format!(
                "{} cannot be read ({}), so the tables that were seen at that server before are unknown; nothing was asked. If you believe what it serves now, accept its tables anew",
                self.pins.path(name).display(),
                damage.message()
            ))),
        }
    }

    /// The pins of `table` at all servers; `None` if a pin file cannot be read, because it may name
    /// the table too.
    fn pins_of(&self, table: TableId) -> Result<Option<Vec<Pin>>> {
        let mut found = Vec::new();
        for name in pin_files(&*self.pins)? {
            let Ok(Some(pins)) = self.read_pins(&name) else { return Ok(None) };
            found.extend(pins.into_iter().map(|(_, pin)| pin).filter(|pin| pin.table.id == table));
        }
        Ok(Some(found))
    }

    /// Drops what was stored for a table under the pin `old`, which `new` has replaced: downloaded
    /// parts that no pin names any more, and single-use hints, of any scheme, that no pin needs.
    /// Those hold the journal of what was looked up with them. If `new` follows `old`, the hints
    /// stay: they can follow, too, when they are next used.
    fn drop_superseded(&self, old: &Pin, new: &Pin) -> Result<()> {
        let table = old.table.id;
        // An unreadable pin file may need anything.
        let Some(pins) = self.pins_of(table)? else { return Ok(()) };
        self.drop_parts(table, &pins)?;
        if new.follows(old) {
            return Ok(());
        }
        self.erase_hints(table, |folder| match pins.is_empty() {
            // Only the user may erase the record that a server was caught.
            _ if hints::has_ended(folder)? => Ok(false),
            true => hints::erase_folder(folder),
            false => hints::erase_folder_if(folder, |parameter_digest| {
                pins.iter().all(|pin| pin.parameter_digest != *parameter_digest)
            }),
        })
    }

    /// Calls `erase` for each directory of single-use hints of `table`, and removes those that it
    /// has erased.
    fn erase_hints(
        &self,
        table: TableId,
        erase: impl Fn(&dyn Folder) -> Result<bool>,
    ) -> Result<()> {
        let Some(folder) = self.table(table)? else { return Ok(()) };
        for (name, private) in private_folders(&*folder)? {
            // A process that still uses them is not disturbed.
            if erase(&*private)? {
                drop(private);
                // A foreign file in it stays, and so does the folder.
                let _ = folder.remove_folder(&name);
            }
        }
        Ok(())
    }

    /// Removes the files of a table's parts that none of `pins` names, unless a process is writing
    /// there.
    fn drop_parts(&self, table: TableId, pins: &[Pin]) -> Result<()> {
        let Some(folder) = self.table(table)? else { return Ok(()) };
        // Another process's download goes on; its files are merely not needed.
        let Some(_lock) = files::lock(&*folder, LOCK)? else { return Ok(()) };
        let named: Vec<_> = pins.iter().flat_map(part_names).collect();
        for name in files::names(&*folder)? {
            let stem = Path::new(&name).file_stem().unwrap_or_default();
            let is_named = named.iter().any(|name| stem == name.as_str());
            if name != LOCK && !is_named {
                files::remove_if_there(&*folder, &name)?;
            }
        }
        Ok(())
    }
}

/// The name of the file of a server's pins.
fn pin_file_name(server: &str) -> String {
    let hash = blake3::hash(server.as_bytes()).to_hex();
    format!("{}.pins", &hash[..32])
}

/// The names of the files of pins in `folder`, of all servers, in order.
fn pin_files(folder: &dyn Folder) -> Result<Vec<String>> {
    let mut names = files::names(folder)?;
    names.retain(|name| extension(name) == "pins");
    Ok(names)
}

/// The extension of a file's name.
fn extension(name: &str) -> &str {
    Path::new(name).extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

/// The name of a part's file, without its extension.
fn part_name(kind: PartKind, digest: &[u8; 32]) -> String {
    let digest = blake3::Hash::from_bytes(*digest).to_hex();
    format!("{}-{}", kind.name(), &digest[..32])
}

/// The name of a part's file.
fn part_file_name(part: &PartKey, extension: &str) -> String {
    format!("{}.{extension}", part_name(part.kind, &part.digest))
}

/// The names of the parts that a pin names.
fn part_names(pin: &Pin) -> Vec<String> {
    let layout = (PartKind::Layout, pin.layout);
    let hint = pin
        .hint
        .into_iter()
        .flat_map(|hint| [PartKind::Hint, PartKind::Table].map(|kind| (kind, hint)));
    std::iter::once(layout).chain(hint).map(|(kind, part)| part_name(kind, &part.digest)).collect()
}

/// The folders of single-use hints in the folder of a table, with their names, in order.
fn private_folders(table: &dyn Folder) -> Result<Vec<(String, Arc<dyn Folder>)>> {
    let mut found = Vec::new();
    for name in files::folders(table)?.into_iter().filter(|name| name.starts_with(PRIVATE)) {
        if let Some(folder) = files::folder(table, &name)? {
            found.push((name, folder));
        }
    }
    Ok(found)
}

impl State for Store {
    fn open(&mut self, part: &PartKey) -> Result<Opened> {
        if part.kind == PartKind::Lineage {
            return self.lineages.open(part);
        }
        self.growing.retain(|(key, ..)| key != part);
        if let Ok(Some(complete)) = self.open_complete(part)? {
            return Ok(Opened::Have {
                part: PartState::Complete(Arc::new(complete)),
                notice: None,
            });
        }
        let folder = self.create_table(part.table.id)?;
        let partial = part_file_name(part, PARTIAL);
        let Some(lock) = files::lock(&*folder, LOCK)? else {
            let growing = folder.open_to_read(&partial).ok().flatten();
            let done = growing.map_or(0, |file| file.len().unwrap_or(0));
            return Ok(Opened::Busy { done });
        };
        // Look again, now that no other process can write: the part may have been completed in the
        // meantime, and this process may remove a damaged one.
        let mut notice = None;
        match self.open_complete(part)? {
            Ok(Some(complete)) => {
                return Ok(Opened::Have { part: PartState::Complete(Arc::new(complete)), notice });
            }
            Ok(None) => {}
            Err(damage) => {
                files::remove_if_there(&*folder, &part_file_name(part, COMPLETE))?;
                notice =
                    Some(format!("{}; the {} will be fetched again", damage.message(), part.kind));
            }
        }
        let (growing, download, _dropped) =
            GrowingPart::open(folder, &partial, part, self.chunk_len)?;
        self.growing.push((part.clone(), growing, lock));
        Ok(Opened::Have { part: PartState::Partial(Box::new(download)), notice })
    }

    fn append(&mut self, part: &PartKey, offset: u64, bytes: &[u8]) -> Result<()> {
        if part.kind == PartKind::Lineage {
            return self.lineages.append(part, offset, bytes);
        }
        let at = self.growing(part)?;
        self.growing[at].1.append(offset, bytes)
    }

    fn complete(&mut self, part: &PartKey) -> Result<Arc<dyn HintSource>> {
        if part.kind == PartKind::Lineage {
            let lineage = self.lineages.complete(part)?;
            // The session has it now. A server may show a client many.
            self.lineages.discard(part)?;
            return Ok(lineage);
        }
        let at = self.growing(part)?;
        let (_, growing, _lock) = self.growing.remove(at);
        Ok(Arc::new(growing.complete(&part_file_name(part, COMPLETE))?))
    }

    fn discard(&mut self, part: &PartKey) -> Result<()> {
        if part.kind == PartKind::Lineage {
            return self.lineages.discard(part);
        }
        let held =
            self.growing.iter().position(|(key, ..)| key == part).map(|at| self.growing.remove(at));
        if let (Some(_held), Some(folder)) = (held, self.table(part.table.id)?) {
            files::remove_if_there(&*folder, &part_file_name(part, PARTIAL))?;
            files::remove_if_there(&*folder, &part_file_name(part, COMPLETE))?;
        }
        Ok(())
    }

    fn open_hints(&mut self, key: &HintsKey, to_follow: bool) -> Result<HintsOpened> {
        // A table's id is public. A server that announces it with another publisher than it has
        // elsewhere must not lead hints anywhere, nor have them erased.
        let agree = |pins: Vec<Pin>| {
            pins.iter().all(|one| pins.iter().all(|pin| pin.shares_publisher(one)))
        };
        let to_follow = to_follow && self.pins_of(key.table.id)?.is_some_and(agree);
        let table = self.create_table(key.table.id)?;
        let folder = files::create_folder(&*table, &format!("{PRIVATE}{}", key.scheme.name()))?;
        let others = if self.replace_damaged_pins { Others::Replace } else { Others::Refuse };
        Ok(match KeptHints::open(folder, key, to_follow, others)? {
            Opening::Have { hints, notice } => HintsOpened::Have { hints, notice },
            Opening::Busy => HintsOpened::Busy,
        })
    }

    fn pins(&mut self, server: &str) -> Result<Vec<(String, Pin)>> {
        pin_file::check_server(server)?;
        let pins = self.read_pins(&pin_file_name(server))?.unwrap_or_default();
        self.known.insert(server.to_owned(), pins.clone());
        Ok(pins)
    }

    fn pins_elsewhere(&mut self, servers: &[&str]) -> Result<Vec<PinElsewhere>> {
        // By the files' names: after a crash in `adopt_pins`, a file of another name has the
        // address of one of `servers`, and `pins` does not find it.
        let here: Vec<_> = servers.iter().map(|server| pin_file_name(server)).collect();
        let of_file = |(_, PinFile { server, pins, .. }): (String, PinFile)| {
            let known =
                move |(name, pin)| PinElsewhere { server: String::clone(&server), name, pin };
            pins.into_iter().map(known)
        };
        let files = self.readable_pins()?.into_iter().filter(|(name, _)| !here.contains(name));
        Ok(files.flat_map(of_file).collect())
    }

    fn tables_left(&mut self) -> Result<Vec<(String, Left)>> {
        let of_file = |(_, PinFile { server, left, .. }): (String, PinFile)| {
            left.into_iter().map(move |left| (String::clone(&server), left))
        };
        Ok(self.readable_pins()?.into_iter().flat_map(of_file).collect())
    }

    fn pin_successor(&mut self, server: &str, name: &str, pin: &Pin, left: &[Left]) -> Result<()> {
        let _lock = self.lock_pins()?;
        pin_file::check_server(server)?;
        let mut file = self.read_pin_file(&pin_file_name(server))?.unwrap_or_default();
        file.server = server.to_owned();
        let known = match self.replace_damaged_pins {
            true => None,
            false => Some(self.known.get(server).map_or(&[][..], |known| known)),
        };
        let (kept, replaced) = file.pin(name, pin, left, known)?;
        files::replace(&*self.pins, &pin_file_name(server), &pin_file::encode(&file))?;
        let known = self.known.entry(server.to_owned()).or_default();
        known.retain(|(known, _)| known != name);
        known.push((name.to_owned(), *pin));
        match replaced {
            // What this process uses stays if another process is further.
            Some(old) if kept == *pin && !old.agrees_with(pin) => self.drop_superseded(&old, pin),
            _ => Ok(()),
        }
    }
}
