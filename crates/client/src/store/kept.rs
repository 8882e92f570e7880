//! A state in memory of which public files outlive the process: complete parts, and pins.
//!
//! A shell that has no synchronous disk keeps the files: a browser's. It hands in what it has when
//! a client begins, and is told what to keep and what to remove. A file is one whole part, or all
//! pins of one server as [`pin_file`] encodes them.
//!
//! **Single-use hints stay in memory.** Only a [`Change`] reaches the shell, and that can hold
//! nothing of them. A browser cannot tell a restored profile from the original, so a stored hint
//! could be used twice.
//!
//! **Parts** are checked by their digest when they are opened. A damaged one is fetched again.
//!
//! **Pins.** Several clients may keep the same files, in tabs or processes. So a client does not
//! write the pins that it has in memory. It adds its own to the file as it is at that moment, by
//! the rules of [`PinFile::pin`], and the shell replaces the file only if it is still that one.

use super::pin_file::{self, PinFile};
use super::{Pins, part_name, part_names, pin_file_name};
use crate::state::{
    HintsKey, HintsOpened, MemoryState, Opened, PartKey, PartState, Pin, PinElsewhere, State,
};
use privet_core::{Error, Result};
use privet_schemes::offline::{HintSource, StreamConsumer};
use privet_table::update_log::Left;
use privet_wire::PartKind;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a shell has to do for its files.
pub enum Change {
    /// Keep this part under this name.
    Keep(String, Arc<dyn HintSource>),
    /// Remove the part of this name, if it is there.
    Remove(String),
    /// Keep new pins in the file of this name: what [`Keeping::pins`] makes of it.
    Pin(String),
}

#[derive(Default)]
struct Shared {
    /// Parts as they were read, until they are opened.
    read: Vec<(String, Vec<u8>)>,
    /// Parts that pins of any server name, and among them those that lookups here may need.
    named: Vec<String>,
    /// Whether a file of pins is damaged, which may name others.
    is_unsure: bool,
    needed: Vec<String>,
    servers: Vec<PinsOf>,
    accepting: bool,
    changes: Vec<Change>,
}

struct PinsOf {
    url: String,
    /// The name of the file of its pins.
    file: String,
    /// Its pins as they were read, and this client's own.
    known: Pins,
    /// The pins that this client has made.
    made: Vec<(String, Pin, Vec<Left>)>,
}

/// The client's side: the state. [`Keeping`] is the shell's.
pub struct KeptState {
    memory: MemoryState,
    shared: Keeping,
}

/// The shell's side of a [`KeptState`].
#[derive(Clone, Default)]
pub struct Keeping(Arc<Mutex<Shared>>);

impl Keeping {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be done with the file of a part that was kept: `Some(true)`: [hand it
    /// in](Self::read). `Some(false)`: leave it where it is. `None`: no pin names it, so remove it,
    /// unless a pin has come since.
    pub fn wants(&self, name: &str) -> Option<bool> {
        let shared = self.lock();
        let is_in = |names: &[String]| names.iter().any(|known| known == name);
        (shared.is_unsure || is_in(&shared.named)).then(|| is_in(&shared.needed))
    }

    /// Takes a part as it was read, before the client begins.
    pub fn read(&self, name: String, bytes: Vec<u8>) {
        self.lock().read.push((name, bytes));
    }

    /// Forgets the parts that were handed in and not opened.
    pub fn forget_read(&self) {
        self.lock().read = Vec::new();
    }

    /// What to do now, in this order.
    pub fn changes(&self) -> Vec<Change> {
        mem::take(&mut self.lock().changes)
    }

    /// The file called `name` with the pins that this client has made, given what it holds at this
    /// moment.
    ///
    /// # Errors
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if another client has meanwhile seen
    /// something else, [`Blame::Corrupted`](privet_core::Blame::Corrupted) if the file is damaged.
    pub fn pins(&self, name: &str, stored: Option<&[u8]>) -> Result<Vec<u8>> {
        let shared = self.lock();
        let no_pins = || Error::api_misuse("there are no pins for a file of this name");
        let server = shared.servers.iter().find(|known| known.file == name).ok_or_else(no_pins)?;
        let mut file = match stored {
            Some(bytes) => decode(bytes, &server.url, name, shared.accepting)?,
            None => PinFile::default(),
        };
        file.server.clone_from(&server.url);
        let known = (!shared.accepting).then_some(server.known.as_slice());
        for (table, pin, left) in &server.made {
            file.pin(table, pin, left, known)?;
        }
        Ok(pin_file::encode(&file))
    }
}

fn decode(bytes: &[u8], server: &str, name: &str, accepting: bool) -> Result<PinFile> {
    match pin_file::decode(bytes) {
        Err(_) if accepting => Ok(PinFile::default()),
        decoded => decoded.map_err(|damage| {
            Error::corrupted(format!(
                "the kept file {name} cannot be read ({}), so the tables that were seen at {server} before are unknown; nothing was asked. If you believe what it serves now, accept its tables anew",
                damage.message()
            ))
        }),
    }
}

impl KeptState {
    /// A state with the pins in `files`, which have names, for a client of the servers `urls` and
    /// of `table`, if one is named. Of two files of one name, the pins in the later one count, and
    /// those of the earlier one that it does not have. Before it begins, the shell hands in the
    /// parts that it [wants](Keeping::wants). `accepting` is for a user who has decided to believe
    /// whatever the servers show.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if the pins of one of these servers are
    /// damaged.
    pub fn new(
        files: Vec<(String, Vec<u8>)>,
        urls: &[&str],
        table: Option<&str>,
        accepting: bool,
    ) -> Result<(Self, Keeping)> {
        let mut memory = MemoryState::default();
        let mut shared = Shared { accepting, ..Shared::default() };
        for url in urls {
            pin_file::check_server(url)?;
            let (url, file) = ((*url).to_owned(), pin_file_name(url));
            shared.servers.push(PinsOf { url, file, known: Vec::new(), made: Vec::new() });
        }
        for (name, bytes) in files {
            let here = shared.servers.iter_mut().find(|known| known.file == name);
            let decoded = pin_file::decode(&bytes);
            shared.is_unsure |= decoded.is_err();
            let file = match (&here, decoded) {
                (_, Ok(file)) => file,
                // A client that asks that server hears of the damage.
                (None, Err(_)) => continue,
                (Some(server), Err(_)) => decode(&bytes, &server.url, &name, accepting)?,
            };
            for (name, pin) in &file.pins {
                memory.pin(&file.server, name, pin)?;
                shared.named.extend(names(pin));
                if here.is_some() && table.is_none_or(|table| table == name) {
                    shared.needed.extend(names(pin));
                }
            }
            memory.note_left(&file.server, &file.left);
            if let Some(server) = here {
                server.known.extend(file.pins);
            }
        }
        let shared = Keeping(Arc::new(Mutex::new(shared)));
        Ok((Self { memory, shared: shared.clone() }, shared))
    }
}

/// The names of the parts that a pin names.
fn names(pin: &Pin) -> impl Iterator<Item = String> + '_ {
    part_names(pin).into_iter().map(|part| format!("{}-{part}.part", pin.table.id))
}

/// The name of a part's file, if it is of a kind that is kept: one that pins name.
fn file_name(part: &PartKey) -> Option<String> {
    let is_kept = matches!(part.kind, PartKind::Layout | PartKind::Hint | PartKind::Table);
    let name = || format!("{}-{}.part", part.table.id, part_name(part.kind, &part.digest));
    is_kept.then(name)
}

impl State for KeptState {
    fn open(&mut self, part: &PartKey) -> Result<Opened> {
        let opened = self.memory.open(part)?;
        let Opened::Have { part: PartState::Partial(mut download), notice } = opened else {
            return Ok(opened);
        };
        let name = file_name(part).filter(|_| download.next_offset() == 0);
        let read = name.and_then(|name| {
            let read = &mut self.shared.lock().read;
            let at = read.iter().position(|(known, _)| *known == name)?;
            Some(read.swap_remove(at))
        });
        let Some((name, bytes)) = read else {
            return Ok(Opened::Have { part: PartState::Partial(download), notice });
        };
        if download.absorb(0, &bytes).and_then(|()| download.finish()).is_ok() {
            self.memory.append(part, 0, &bytes)?;
            let part = PartState::Complete(self.memory.complete(part)?);
            return Ok(Opened::Have { part, notice });
        }
        self.shared.lock().changes.push(Change::Remove(name));
        let notice =
            Some(format!("the {} that was kept is damaged; it will be fetched again", part.kind));
        match self.memory.open(part)? {
            Opened::Have { part, .. } => Ok(Opened::Have { part, notice }),
            busy => Ok(busy),
        }
    }

    fn append(&mut self, part: &PartKey, offset: u64, bytes: &[u8]) -> Result<()> {
        self.memory.append(part, offset, bytes)
    }

    fn complete(&mut self, part: &PartKey) -> Result<Arc<dyn HintSource>> {
        let source = self.memory.complete(part)?;
        if let Some(name) = file_name(part) {
            let mut shared = self.shared.lock();
            shared.named.push(name.clone());
            shared.changes.push(Change::Keep(name, Arc::clone(&source)));
        }
        Ok(source)
    }

    fn discard(&mut self, part: &PartKey) -> Result<()> {
        self.memory.discard(part)?;
        if let Some(name) = file_name(part) {
            self.shared.lock().changes.push(Change::Remove(name));
        }
        Ok(())
    }

    fn open_hints(&mut self, key: &HintsKey, to_follow: bool) -> Result<HintsOpened> {
        self.memory.open_hints(key, to_follow)
    }

    fn pins(&mut self, server: &str) -> Result<Vec<(String, Pin)>> {
        self.memory.pins(server)
    }

    fn pins_elsewhere(&mut self, servers: &[&str]) -> Result<Vec<PinElsewhere>> {
        self.memory.pins_elsewhere(servers)
    }

    fn pin_successor(&mut self, server: &str, name: &str, pin: &Pin, left: &[Left]) -> Result<()> {
        self.memory.pin_successor(server, name, pin, left)?;
        let all = self.memory.pins_elsewhere(&[])?;
        let named: Vec<_> = all.iter().flat_map(|known| names(&known.pin)).collect();
        let shared = &mut *self.shared.lock();
        let of = shared.servers.iter_mut().find(|known| known.url == server);
        let of =
            of.ok_or_else(|| Error::api_misuse("a server that is not asked has no new pins"))?;
        let mut all_left = left.to_vec();
        if let Some(at) = of.made.iter().position(|(known, ..)| known == name) {
            let (name, pin, left) = of.made.remove(at);
            all_left.extend(left);
            of.known.push((name, pin));
        }
        of.made.push((name.to_owned(), *pin, all_left));
        // Until the pins are kept, the earlier ones name what is removed after them.
        shared.changes.push(Change::Pin(of.file.clone()));
        let mut superseded = mem::replace(&mut shared.named, named);
        superseded.retain(|name| !shared.named.contains(name));
        shared.changes.extend(superseded.into_iter().map(Change::Remove));
        Ok(())
    }

    fn tables_left(&mut self) -> Result<Vec<(String, Left)>> {
        self.memory.tables_left()
    }
}
