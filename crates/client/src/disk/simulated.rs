//! A disk in memory that loses what was not synced, all of it or any part, and that can stop or
//! refuse before any operation.
//!
//! It stands under everything that the store keeps. Its clock advances only when a test says so.
//! But each change of a file has a later time than the one before, so that nothing hides behind a
//! coarse clock. If a change is lost, so is its time; a time may also be lost alone.

use super::{Folder, Medium, Times};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Which unsynced writes survive a power failure; or that there is no power failure.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Survival {
    /// The process is killed. The system still has every write, synced or not, but may lose it
    /// later.
    Killed,
    Nothing,
    Everything,
    /// The writes up to some moment.
    Prefix,
    /// Any of them, sector by sector.
    Subset,
}

pub(crate) const SURVIVALS: [Survival; 5] =
    [Survival::Killed, Survival::Nothing, Survival::Everything, Survival::Prefix, Survival::Subset];

const SECTOR: usize = 512;

/// The clock's first time, in milliseconds since 1970.
const BEGINNING: u64 = 1_795_000_000_000;

/// Operations that the disk skips although it was told to do them: they show that a test can fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Neglect {
    #[default]
    Nothing,
    /// Syncs of file contents.
    Contents,
    /// Syncs of names.
    Names,
}

/// Small, fast, repeatable.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }
}

#[derive(Clone)]
enum Unsynced {
    Write(usize, Vec<u8>),
    Length(usize),
}

fn apply(bytes: &mut Vec<u8>, change: &Unsynced) {
    match change {
        Unsynced::Write(at, new) => {
            let end = at + new.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[*at..end].copy_from_slice(new);
        }
        Unsynced::Length(len) => bytes.resize(*len, 0),
    }
}

#[derive(Clone, Default)]
struct Contents {
    synced: Vec<u8>,
    pending: Vec<Pending>,
    now: Vec<u8>,
    /// When it was changed last, in milliseconds since the beginning; …
    changed: u64,
    /// … the same at the last sync; and when it was created.
    synced_changed: u64,
    born: u64,
}

#[derive(Clone)]
struct Pending {
    number: usize,
    at: u64,
    change: Unsynced,
}

#[derive(Clone)]
enum Naming {
    Set(String, usize),
    Rename(String, String),
    Remove(String),
}

fn name(names: &mut BTreeMap<String, usize>, naming: &Naming) {
    match naming {
        Naming::Set(name, file) => {
            names.insert(name.clone(), *file);
        }
        Naming::Rename(from, to) => {
            if let Some(file) = names.remove(from) {
                names.insert(to.clone(), file);
            }
        }
        Naming::Remove(name) => {
            names.remove(name);
        }
    }
}

/// The folder that a file is in: its name up to the last slash.
fn folder_of(name: &str) -> &str {
    name.rfind('/').map_or("", |stroke| &name[..=stroke])
}

impl Naming {
    fn name(&self) -> &str {
        match self {
            Self::Set(name, _) | Self::Rename(name, _) | Self::Remove(name) => name,
        }
    }
}

#[derive(Clone, Default)]
struct World {
    files: Vec<Contents>,
    /// Each ends with a slash. Their names are durable at once.
    folders: BTreeSet<String>,
    synced_names: BTreeMap<String, usize>,
    pending_names: Vec<(usize, Naming)>,
    names: BTreeMap<String, usize>,
    place: [u8; 32],
    /// Changing operations so far.
    operations: usize,
    stop_at: Option<usize>,
    refuse: std::ops::Range<usize>,
    refused: bool,
    dead: bool,
    neglect: Neglect,
    /// Milliseconds since the beginning.
    passed: u64,
    /// Changes of files so far. Each takes the file system's clock a millisecond.
    changes: u64,
}

enum Fate {
    /// Do it, as the operation of this number. The process may not live to see the outcome.
    Do(usize, io::Result<()>),
    Refuse,
}

impl World {
    fn step(&mut self) -> io::Result<Fate> {
        if self.dead {
            return Err(io::Error::other("the process is no more"));
        }
        let number = self.operations;
        self.operations += 1;
        if self.stop_at == Some(number) {
            self.dead = true;
            return Ok(Fate::Do(number, Err(io::Error::other("stopped"))));
        }
        if self.refuse.contains(&number) {
            self.refused = true;
            return Ok(Fate::Refuse);
        }
        Ok(Fate::Do(number, Ok(())))
    }

    fn change(&mut self, file: usize, change: Unsynced) -> io::Result<()> {
        let (number, outcome) = match self.step()? {
            Fate::Do(number, outcome) => (number, outcome),
            Fate::Refuse => {
                // A full disk takes what fits.
                if let Unsynced::Write(at, mut bytes) = change {
                    bytes.truncate(bytes.len() / 2);
                    let half = Unsynced::Write(at, bytes);
                    self.apply(file, self.operations, half);
                }
                return Err(io::ErrorKind::StorageFull.into());
            }
        };
        self.apply(file, number, change);
        outcome
    }

    fn apply(&mut self, file: usize, number: usize, change: Unsynced) {
        let at = self.tick();
        let file = &mut self.files[file];
        apply(&mut file.now, &change);
        file.changed = at;
        file.pending.push(Pending { number, at, change });
    }

    /// The time of a change.
    fn tick(&mut self) -> u64 {
        self.changes += 1;
        self.passed + self.changes
    }

    fn rename(&mut self, naming: Naming) -> io::Result<()> {
        let Fate::Do(number, outcome) = self.step()? else {
            return Err(io::ErrorKind::StorageFull.into());
        };
        name(&mut self.names, &naming);
        self.pending_names.push((number, naming));
        outcome
    }

    fn create_folder(&mut self, name: &str) -> io::Result<()> {
        let Fate::Do(_, outcome) = self.step()? else {
            return Err(io::ErrorKind::StorageFull.into());
        };
        self.folders.insert(name.to_owned());
        outcome
    }

    /// Whether to do the sync.
    fn sync(&mut self) -> io::Result<()> {
        match self.step()? {
            Fate::Do(_, outcome) => outcome,
            Fate::Refuse => Err(io::Error::other("the disk does not answer")),
        }
    }

    /// Drops files that have no name and cannot get one back.
    fn forget_the_nameless(&mut self) {
        let named: Vec<usize> =
            self.names.values().chain(self.synced_names.values()).copied().collect();
        let set =
            |naming: &Naming| if let Naming::Set(_, file) = naming { Some(*file) } else { None };
        let pending: Vec<usize> =
            self.pending_names.iter().filter_map(|(_, naming)| set(naming)).collect();
        for (number, file) in self.files.iter_mut().enumerate() {
            if !named.contains(&number) && !pending.contains(&number) {
                *file = Contents::default();
            }
        }
    }

    fn living(&self) -> io::Result<()> {
        if self.dead { Err(io::Error::other("the process is no more")) } else { Ok(()) }
    }
}

/// The disk, or a folder on it. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    world: Arc<Mutex<World>>,
    /// What the names of the folder's files begin with.
    at: String,
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Disk")
    }
}

impl Disk {
    fn of(world: World) -> Self {
        Self { world: Arc::new(Mutex::new(world)), at: String::new() }
    }

    fn within(&self, name: &str) -> Self {
        Self { world: Arc::clone(&self.world), at: format!("{}{name}/", self.at) }
    }

    /// The name of a file of this folder on the whole disk.
    fn named(&self, name: &str) -> String {
        format!("{}{name}", self.at)
    }

    /// What the clock shows, in milliseconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        BEGINNING + self.world().passed
    }

    /// Advances the clock.
    pub(crate) fn pass(&self, time: Duration) {
        self.world().passed += time.as_millis() as u64;
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// How many operations there were that change or sync something.
    pub(crate) fn operations(&self) -> usize {
        self.world().operations
    }

    /// The process ends in this operation: it may or may not have an effect.
    pub(crate) fn stopping_at(self, operation: usize) -> Self {
        self.world().stop_at = Some(operation);
        self
    }

    /// These operations fail.
    pub(crate) fn refusing(self, operations: std::ops::Range<usize>) -> Self {
        self.world().refuse = operations;
        self
    }

    /// Makes the disk skip something.
    pub(crate) fn neglecting(self, neglect: Neglect) -> Self {
        self.world().neglect = neglect;
        self
    }

    pub(crate) fn has_refused(&self) -> bool {
        self.world().refused
    }

    /// The disk as another process finds it.
    pub(crate) fn after(&self, survival: Survival, dice: &mut Dice) -> Disk {
        let world = self.world();
        let (place, passed, folders) = (world.place, world.passed, world.folders.clone());
        let changes = world.changes;
        let mut next = World { place, passed, folders, changes, ..World::default() };
        if let Survival::Killed = survival {
            next.files = world.files.clone();
            next.synced_names = world.synced_names.clone();
            next.pending_names = world.pending_names.clone();
            next.names = world.names.clone();
            // So that the order of the operations' numbers stays the order of the changes.
            next.operations = 0;
            let renumber = |number: &mut usize| *number = 0;
            let pending = next.files.iter_mut().flat_map(|file| &mut file.pending);
            pending.for_each(|pending| renumber(&mut pending.number));
            next.pending_names.iter_mut().for_each(|(n, _)| renumber(n));
            next.forget_the_nameless();
            return Self::of(next);
        }
        let last = world.operations + 1;
        let until = match survival {
            Survival::Nothing => 0,
            Survival::Prefix | Survival::Subset => dice.below(last + 1),
            _ => last,
        };
        next.synced_names = world.synced_names.clone();
        // A file system keeps the order of changes to names.
        for (number, naming) in &world.pending_names {
            if *number < until {
                name(&mut next.synced_names, naming);
            }
        }
        next.names = next.synced_names.clone();
        for file in &world.files {
            let mut bytes = file.synced.clone();
            let mut changed = file.synced_changed;
            for Pending { number, at: when, change } in &file.pending {
                let before = bytes.clone();
                match (survival, change) {
                    (Survival::Subset, Unsynced::Write(at, new)) => {
                        for (k, sector) in new.chunks(SECTOR).enumerate() {
                            if dice.below(2) == 0 {
                                let part = Unsynced::Write(at + k * SECTOR, sector.to_vec());
                                apply(&mut bytes, &part);
                            }
                        }
                    }
                    (Survival::Subset, change) if dice.below(2) == 0 => apply(&mut bytes, change),
                    (Survival::Subset, _) => {}
                    _ if *number < until => apply(&mut bytes, change),
                    _ => {}
                }
                if bytes != before {
                    changed = *when;
                }
            }
            if !matches!(survival, Survival::Everything) && dice.below(4) == 0 {
                changed = file.born;
            }
            let now = bytes.clone();
            let (synced, pending, born) = (bytes, Vec::new(), file.born);
            let synced_changed = changed;
            next.files.push(Contents { synced, pending, now, changed, synced_changed, born });
        }
        next.forget_the_nameless();
        Self::of(next)
    }

    /// The same disk, untouched by what happens to this one.
    pub(crate) fn snapshot(&self) -> Disk {
        self.after(Survival::Everything, &mut Dice::new(0))
    }

    pub(crate) fn read(&self, file: &str) -> Vec<u8> {
        let world = self.world();
        world.files[world.names[file]].now.clone()
    }

    /// Replaces a file's contents by damaged ones.
    pub(crate) fn damage(&self, file: &str, bytes: Vec<u8>) {
        let mut world = self.world();
        let file = world.names[file];
        let (synced, pending) = (bytes.clone(), Vec::new());
        world.files[file] =
            Contents { synced, pending, now: bytes, ..std::mem::take(&mut world.files[file]) };
    }

    pub(crate) fn delete(&self, file: &str) {
        let mut world = self.world();
        world.names.remove(file);
        world.synced_names.remove(file);
    }

    /// Everything on the disk, with a name or without.
    pub(crate) fn all_bytes(&self) -> Vec<Vec<u8>> {
        self.world().files.iter().map(|file| file.now.clone()).collect()
    }

    pub(crate) fn file_names(&self) -> Vec<String> {
        self.world().names.keys().cloned().collect()
    }
}

impl Folder for Disk {
    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from("DISK").join(self.named(name))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.world().living()?;
        let names = self.file_names();
        let here = |name: &String| folder_of(name) == self.at;
        Ok(names.into_iter().filter(here).map(|name| name[self.at.len()..].to_owned()).collect())
    }

    fn folders(&self) -> io::Result<Vec<String>> {
        let world = self.world();
        world.living()?;
        let name = |folder: &String| {
            let name = folder.strip_prefix(&self.at)?.strip_suffix('/')?;
            (!name.contains('/')).then(|| name.to_owned())
        };
        Ok(world.folders.iter().filter_map(name).collect())
    }

    fn open(&self, name: &str) -> io::Result<Option<Arc<dyn Medium>>> {
        let world = self.world();
        world.living()?;
        let file = world.names.get(&self.named(name)).copied();
        Ok(file.map(|file| Arc::new(DiskFile(self.clone(), file)) as Arc<dyn Medium>))
    }

    fn open_to_read(&self, name: &str) -> io::Result<Option<Arc<dyn Medium>>> {
        self.open(name)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Medium>> {
        if let Some(there) = self.open(name)? {
            return Ok(there);
        }
        let mut world = self.world();
        let file = world.files.len();
        let born = world.tick();
        let (changed, synced_changed) = (born, born);
        world.files.push(Contents { changed, synced_changed, born, ..Contents::default() });
        world.rename(Naming::Set(self.named(name), file))?;
        drop(world);
        Ok(Arc::new(DiskFile(self.clone(), file)))
    }

    /// There is only one process at a time here.
    fn lock(&self, name: &str) -> io::Result<Option<Arc<dyn Medium>>> {
        self.create(name).map(Some)
    }

    fn lock_within(&self, name: &str, _: Duration) -> io::Result<Option<Arc<dyn Medium>>> {
        self.lock(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.world().rename(Naming::Rename(self.named(from), self.named(to)))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.world().rename(Naming::Remove(self.named(name)))
    }

    fn sync(&self) -> io::Result<()> {
        let mut world = self.world();
        world.sync()?;
        if world.neglect == Neglect::Names {
            return Ok(());
        }
        for (number, naming) in std::mem::take(&mut world.pending_names) {
            match folder_of(naming.name()) == self.at {
                true => name(&mut world.synced_names, &naming),
                false => world.pending_names.push((number, naming)),
            }
        }
        Ok(())
    }

    fn folder(&self, name: &str) -> io::Result<Option<Arc<dyn Folder>>> {
        let (folder, world) = (self.within(name), self.world());
        world.living()?;
        let is_there = world.folders.contains(&folder.at);
        Ok(is_there.then(|| Arc::new(folder) as Arc<dyn Folder>))
    }

    fn create_folder(&self, name: &str) -> io::Result<Arc<dyn Folder>> {
        if let Some(there) = self.folder(name)? {
            return Ok(there);
        }
        let folder = self.within(name);
        self.world().create_folder(&folder.at)?;
        Ok(Arc::new(folder))
    }

    fn remove_folder(&self, name: &str) -> io::Result<()> {
        let folder = self.within(name);
        if !folder.names()?.is_empty() || !folder.folders()?.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        let mut world = self.world();
        world.sync()?;
        world.folders.remove(&folder.at);
        Ok(())
    }

    fn seclude(&self) -> io::Result<()> {
        self.world().living()
    }
}

#[derive(Debug)]
struct DiskFile(Disk, usize);

impl Medium for DiskFile {
    fn len(&self) -> io::Result<u64> {
        let world = self.0.world();
        world.living()?;
        Ok(world.files[self.1].now.len() as u64)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let world = self.0.world();
        world.living()?;
        let bytes = &world.files[self.1].now;
        let from = bytes.get(offset as usize..).and_then(|rest| rest.get(..out.len()));
        out.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.world().change(self.1, Unsynced::Write(offset as usize, bytes.to_vec()))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.world().change(self.1, Unsynced::Length(len as usize))
    }

    fn sync(&self) -> io::Result<()> {
        let mut world = self.0.world();
        world.sync()?;
        if world.neglect == Neglect::Contents {
            return Ok(());
        }
        let file = &mut world.files[self.1];
        file.synced = file.now.clone();
        file.synced_changed = file.changed;
        file.pending.clear();
        Ok(())
    }

    fn place(&self) -> io::Result<[u8; 32]> {
        Ok(self.0.world().place)
    }

    fn times(&self) -> io::Result<Option<Times>> {
        let changed = BEGINNING + self.0.world().files[self.1].changed;
        Ok(Some(Times { changed, written: None }))
    }

    fn now(&self) -> u64 {
        self.0.now()
    }
}
