//! A disk in memory that loses what was not synced, all of it or any part, and that can stop or refuse before any operation.

use super::super::folder::{Folder, Medium, Times};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

/// What a power failure spares of the writes that were not synced, or that there is none.
#[derive(Clone, Copy, Debug)]
pub(super) enum Survival {
    /// The process is killed: the system still has every write, synced or not, and may lose it yet.
    Killed,
    Nothing,
    Everything,
    /// The writes up to some moment.
    Prefix,
    /// Any of them, sector by sector.
    Subset,
}

pub(super) const SURVIVALS: [Survival; 5] =
    [Survival::Killed, Survival::Nothing, Survival::Everything, Survival::Prefix, Survival::Subset];

const SECTOR: usize = 512;

/// Small, fast, repeatable.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }
}

#[derive(Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Length(usize),
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write(at, new) => {
            let end = at + new.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[*at..end].copy_from_slice(new);
        }
        Change::Length(len) => bytes.resize(*len, 0),
    }
}

#[derive(Clone, Default)]
struct Contents {
    synced: Vec<u8>,
    pending: Vec<(usize, Change)>,
    now: Vec<u8>,
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

#[derive(Clone, Default)]
struct World {
    files: Vec<Contents>,
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
}

enum Step {
    Do(usize),
    /// The process does not live to see the outcome.
    Stop(usize),
    Refuse,
}

impl World {
    fn step(&mut self) -> io::Result<Step> {
        if self.dead {
            return Err(io::Error::other("the process is no more"));
        }
        let number = self.operations;
        self.operations += 1;
        if self.stop_at == Some(number) {
            self.dead = true;
            return Ok(Step::Stop(number));
        }
        if self.refuse.contains(&number) {
            self.refused = true;
            return Ok(Step::Refuse);
        }
        Ok(Step::Do(number))
    }

    fn change(&mut self, file: usize, change: Change) -> io::Result<()> {
        let (number, outcome) = match self.step()? {
            Step::Do(number) => (number, Ok(())),
            Step::Stop(number) => (number, Err(io::Error::other("stopped"))),
            Step::Refuse => {
                // A full disk takes what fits.
                if let Change::Write(at, mut bytes) = change {
                    bytes.truncate(bytes.len() / 2);
                    let half = Change::Write(at, bytes);
                    apply(&mut self.files[file].now, &half);
                    self.files[file].pending.push((self.operations, half));
                }
                return Err(io::ErrorKind::StorageFull.into());
            }
        };
        apply(&mut self.files[file].now, &change);
        self.files[file].pending.push((number, change));
        outcome
    }

    fn rename(&mut self, naming: Naming) -> io::Result<()> {
        let (number, outcome) = match self.step()? {
            Step::Do(number) => (number, Ok(())),
            Step::Stop(number) => (number, Err(io::Error::other("stopped"))),
            Step::Refuse => return Err(io::ErrorKind::StorageFull.into()),
        };
        name(&mut self.names, &naming);
        self.pending_names.push((number, naming));
        outcome
    }

    /// Whether a sync is to be done.
    fn sync(&mut self) -> io::Result<()> {
        match self.step()? {
            Step::Do(_) => Ok(()),
            Step::Stop(_) => Err(io::Error::other("stopped")),
            Step::Refuse => Err(io::Error::other("the disk does not answer")),
        }
    }

    /// What has no name, and will not get one back, need not be carried on.
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

/// The disk. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Disk(Arc<Mutex<World>>);

impl std::fmt::Debug for Disk {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Disk")
    }
}

impl Disk {
    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    /// How many operations there were that change or sync something.
    pub(super) fn operations(&self) -> usize {
        self.world().operations
    }

    /// The process ends in this operation: it may or may not have an effect.
    pub(super) fn stopping_at(self, operation: usize) -> Self {
        self.world().stop_at = Some(operation);
        self
    }

    /// These operations fail.
    pub(super) fn refusing(self, operations: std::ops::Range<usize>) -> Self {
        self.world().refuse = operations;
        self
    }

    pub(super) fn has_refused(&self) -> bool {
        self.world().refused
    }

    /// The disk as another process finds it.
    pub(super) fn after(&self, survival: Survival, dice: &mut Dice) -> Disk {
        let world = self.world();
        let mut next = World { place: world.place, ..World::default() };
        if let Survival::Killed = survival {
            next.files = world.files.clone();
            next.synced_names = world.synced_names.clone();
            next.pending_names = world.pending_names.clone();
            next.names = world.names.clone();
            // So that the order of changes stays the order of their numbers.
            next.operations = 0;
            let renumber = |number: &mut usize| *number = 0;
            next.files.iter_mut().flat_map(|file| &mut file.pending).for_each(|(n, _)| renumber(n));
            next.pending_names.iter_mut().for_each(|(n, _)| renumber(n));
            next.forget_the_nameless();
            return Disk(Arc::new(Mutex::new(next)));
        }
        let last = world.operations + 1;
        let until = match survival {
            Survival::Nothing => 0,
            Survival::Prefix | Survival::Subset => dice.below(last + 1),
            _ => last,
        };
        next.synced_names = world.synced_names.clone();
        // A file system keeps the order of what it does to names.
        for (number, naming) in &world.pending_names {
            if *number < until {
                name(&mut next.synced_names, naming);
            }
        }
        next.names = next.synced_names.clone();
        for file in &world.files {
            let mut bytes = file.synced.clone();
            for (number, change) in &file.pending {
                match (survival, change) {
                    (Survival::Subset, Change::Write(at, new)) => {
                        for (k, sector) in new.chunks(SECTOR).enumerate() {
                            if dice.below(2) == 0 {
                                let part = Change::Write(at + k * SECTOR, sector.to_vec());
                                apply(&mut bytes, &part);
                            }
                        }
                    }
                    (Survival::Subset, change) if dice.below(2) == 0 => apply(&mut bytes, change),
                    (Survival::Subset, _) => {}
                    _ if *number < until => apply(&mut bytes, change),
                    _ => {}
                }
            }
            let now = bytes.clone();
            next.files.push(Contents { synced: bytes, pending: Vec::new(), now });
        }
        next.forget_the_nameless();
        Disk(Arc::new(Mutex::new(next)))
    }

    /// The same disk, untouched by what happens to this one.
    pub(super) fn snapshot(&self) -> Disk {
        self.after(Survival::Everything, &mut Dice::new(0))
    }

    pub(super) fn read(&self, file: &str) -> Vec<u8> {
        let world = self.world();
        world.files[world.names[file]].now.clone()
    }

    /// Replaces a file's contents by damaged ones.
    pub(super) fn damage(&self, file: &str, bytes: Vec<u8>) {
        let mut world = self.world();
        let file = world.names[file];
        world.files[file] = Contents { synced: bytes.clone(), pending: Vec::new(), now: bytes };
    }

    pub(super) fn delete(&self, file: &str) {
        let mut world = self.world();
        world.names.remove(file);
        world.synced_names.remove(file);
    }

    /// Everything on the disk, whether it still has a name or not.
    pub(super) fn all_bytes(&self) -> Vec<Vec<u8>> {
        self.world().files.iter().map(|file| file.now.clone()).collect()
    }

    pub(super) fn file_names(&self) -> Vec<String> {
        self.world().names.keys().cloned().collect()
    }
}

impl Folder for Disk {
    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from("DISK").join(name)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.world().living()?;
        Ok(self.file_names())
    }

    fn open(&self, name: &str) -> io::Result<Option<Arc<dyn Medium>>> {
        let world = self.world();
        world.living()?;
        let file = world.names.get(name).copied();
        Ok(file.map(|file| Arc::new(DiskFile(self.clone(), file)) as Arc<dyn Medium>))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Medium>> {
        if let Some(there) = self.open(name)? {
            return Ok(there);
        }
        let mut world = self.world();
        let file = world.files.len();
        world.files.push(Contents::default());
        world.rename(Naming::Set(name.to_owned(), file))?;
        Ok(Arc::new(DiskFile(self.clone(), file)))
    }

    /// One process at a time is all that there is here.
    fn lock(&self, name: &str) -> io::Result<Option<Arc<dyn Medium>>> {
        self.create(name).map(Some)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.world().rename(Naming::Rename(from.to_owned(), to.to_owned()))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.world().rename(Naming::Remove(name.to_owned()))
    }

    fn sync(&self) -> io::Result<()> {
        let mut world = self.world();
        world.sync()?;
        for (_, naming) in std::mem::take(&mut world.pending_names) {
            name(&mut world.synced_names, &naming);
        }
        Ok(())
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
        self.0.world().change(self.1, Change::Write(offset as usize, bytes.to_vec()))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.world().change(self.1, Change::Length(len as usize))
    }

    fn sync(&self) -> io::Result<()> {
        let mut world = self.0.world();
        world.sync()?;
        let file = &mut world.files[self.1];
        file.synced = file.now.clone();
        file.pending.clear();
        Ok(())
    }

    fn place(&self) -> io::Result<[u8; 32]> {
        Ok(self.0.world().place)
    }

    fn times(&self) -> io::Result<Option<Times>> {
        Ok(None)
    }
}
