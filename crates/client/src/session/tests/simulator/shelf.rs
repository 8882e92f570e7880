//! A simulated client's storage: parts and pins in memory or in files, and hints on a [`Disk`]. All
//! of it outlives the process, and sometimes other processes hold some of it.

use super::disk::Disk;
use super::slow::Passing;
use crate::state::{HintsKey, HintsOpened, MemoryState, Opened, PartKey, Pin, PinElsewhere, State};
use privet_core::{Error, Result};
use privet_schemes::offline::HintSource;
use privet_table::update_log::Left;
use privet_wire::PartKind;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

#[derive(Clone)]
pub(super) struct Shelf {
    held: Arc<Mutex<Held>>,
    disk: Disk,
    passing: Passing,
}

pub(super) struct Held {
    pub(super) state: Box<dyn State>,
    /// Parts that are stored to the end.
    pub(super) complete: HashSet<PartKind>,
    /// Until when another process is downloading parts, …
    pub(super) parts_busy_until: Duration,
    /// … and until when one has the hints.
    pub(super) hints_busy_until: Duration,
    /// How often something was asked for that another process held.
    pub(super) waited: u64,
}

impl Shelf {
    pub(super) fn new(disk: Disk, passing: Passing) -> Self {
        let held = Held {
            state: Box::new(MemoryState::default()),
            complete: HashSet::new(),
            parts_busy_until: Duration::ZERO,
            hints_busy_until: Duration::ZERO,
            waited: 0,
        };
        Self { held: Arc::new(Mutex::new(held)), disk, passing }
    }

    pub(super) fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap()
    }

    /// The stored state, while the process lives.
    fn alive(&self) -> Result<MutexGuard<'_, Held>> {
        match self.disk.kept().is_cut_off {
            true => Err(Error::unavailable("the power is gone")),
            false => Ok(self.held()),
        }
    }
}

impl State for Shelf {
    fn open(&mut self, part: &PartKey) -> Result<Opened> {
        let mut held = self.alive()?;
        if self.passing.now() < held.parts_busy_until {
            held.waited += 1;
            // The other process makes progress.
            return Ok(Opened::Busy { done: self.passing.now().as_millis() as u64 / 200 });
        }
        held.state.open(part)
    }

    fn append(&mut self, part: &PartKey, offset: u64, bytes: &[u8]) -> Result<()> {
        self.alive()?.state.append(part, offset, bytes)
    }

    fn complete(&mut self, part: &PartKey) -> Result<Arc<dyn HintSource>> {
        let mut held = self.alive()?;
        held.complete.insert(part.kind);
        held.state.complete(part)
    }

    fn discard(&mut self, part: &PartKey) -> Result<()> {
        self.alive()?.state.discard(part)
    }

    fn open_hints(&mut self, key: &HintsKey, to_follow: bool) -> Result<HintsOpened> {
        let mut held = self.alive()?;
        if self.passing.now() < held.hints_busy_until {
            held.waited += 1;
            return Ok(HintsOpened::Busy);
        }
        self.disk.open(key, to_follow);
        Ok(HintsOpened::Have { hints: Box::new(self.disk.clone()), notice: None })
    }

    fn pins(&mut self, server: &str) -> Result<Vec<(String, Pin)>> {
        self.alive()?.state.pins(server)
    }

    fn pins_elsewhere(&mut self, servers: &[&str]) -> Result<Vec<PinElsewhere>> {
        self.alive()?.state.pins_elsewhere(servers)
    }

    fn pin_successor(&mut self, server: &str, name: &str, pin: &Pin, left: &[Left]) -> Result<()> {
        self.alive()?.state.pin_successor(server, name, pin, left)
    }

    fn tables_left(&mut self) -> Result<Vec<(String, Left)>> {
        self.alive()?.state.tables_left()
    }
}
