//! A state that lives as long as the process.

mod hints;

use super::{
    HintsKey, HintsOpened, Opened, PartKey, PartName, PartState, Pin, PinElsewhere, State,
    incomplete, out_of_order,
};
use hints::{Kept, MemoryHints};
use privet_core::{Error, Result, TableId};
use privet_schemes::SchemeId;
use privet_schemes::offline::{Download, HintSource, StreamConsumer};
use privet_table::update_log::Left;
use std::collections::HashMap;
use std::sync::Arc;

/// The longest part that is kept in memory; servers decide how long parts are.
const MEMORY_LIMIT: u64 = 1 << 30;

/// A state that lives as long as the process. It takes no parts longer than 1 GiB.
#[derive(Default)]
pub struct MemoryState {
    parts: HashMap<PartName, Vec<u8>>,
    complete: HashMap<PartName, Arc<dyn HintSource>>,
    hints: HashMap<(TableId, SchemeId), Kept>,
    /// In the order in which they were pinned.
    pins: Vec<PinElsewhere>,
    /// The tables that were left, with the server at which that was.
    left: Vec<(String, Left)>,
}

impl MemoryState {
    /// Notes tables that were left at `server` before.
    pub(crate) fn note_left(&mut self, server: &str, left: &[Left]) {
        self.left.extend(left.iter().map(|left| (server.to_owned(), *left)));
    }
}

impl State for MemoryState {
    fn open(&mut self, part: &PartKey) -> Result<Opened> {
        if let Some(source) = self.complete.get(&part.name()) {
            return Ok(Opened::Have {
                part: PartState::Complete(Arc::clone(source)),
                notice: None,
            });
        }
        if part.len > MEMORY_LIMIT {
            return Err(Error::api_misuse(format!(
                "the {} of this table has {} bytes, more than the {} that are kept in memory at most; name a state directory to keep it in files",
                part.kind, part.len, MEMORY_LIMIT
            )));
        }
        let mut download = Download::new(part.len, part.digest);
        download.absorb(0, self.parts.entry(part.name()).or_default())?;
        Ok(Opened::Have { part: PartState::Partial(Box::new(download)), notice: None })
    }

    fn append(&mut self, part: &PartKey, offset: u64, bytes: &[u8]) -> Result<()> {
        let kept = self.parts.entry(part.name()).or_default();
        if kept.len() as u64 != offset {
            return Err(out_of_order(offset, kept.len() as u64));
        }
        kept.try_reserve(bytes.len()).map_err(|error| {
            Error::unavailable(format!("no memory for the {}", part.kind)).caused_by(error)
        })?;
        kept.extend_from_slice(bytes);
        Ok(())
    }

    fn complete(&mut self, part: &PartKey) -> Result<Arc<dyn HintSource>> {
        let kept = self.parts.remove(&part.name()).unwrap_or_default();
        if kept.len() as u64 != part.len {
            return Err(incomplete(kept.len() as u64, part.len));
        }
        let source: Arc<dyn HintSource> = Arc::new(kept);
        self.complete.insert(part.name(), Arc::clone(&source));
        Ok(source)
    }

    fn discard(&mut self, part: &PartKey) -> Result<()> {
        self.parts.remove(&part.name());
        self.complete.remove(&part.name());
        Ok(())
    }

    fn open_hints(&mut self, key: &HintsKey, to_follow: bool) -> Result<HintsOpened> {
        let kept = self.hints.entry((key.table.id, key.scheme)).or_default();
        Ok(match MemoryHints::open(kept, key, to_follow) {
            Some(hints) => HintsOpened::Have { hints: Box::new(hints), notice: None },
            None => HintsOpened::Busy,
        })
    }

    fn pins(&mut self, server: &str) -> Result<Vec<(String, Pin)>> {
        let of_server = self.pins.iter().filter(|known| known.server == server);
        Ok(of_server.map(|known| (known.name.clone(), known.pin)).collect())
    }

    fn pins_elsewhere(&mut self, servers: &[&str]) -> Result<Vec<PinElsewhere>> {
        let elsewhere = |known: &&PinElsewhere| !servers.contains(&known.server.as_str());
        Ok(self.pins.iter().filter(elsewhere).cloned().collect())
    }

    fn tables_left(&mut self) -> Result<Vec<(String, Left)>> {
        Ok(self.left.clone())
    }

    fn pin_successor(&mut self, server: &str, name: &str, pin: &Pin, left: &[Left]) -> Result<()> {
        // Whoever accepts a table that was left comes back to it.
        self.left.retain(|(there, left)| there != server || left.id != pin.table.id);
        self.left.extend(left.iter().map(|left| (server.to_owned(), *left)));
        let known = self.pins.iter().position(|known| known.server == server && known.name == name);
        let replaced = known.map(|at| self.pins.remove(at).pin);
        let (server, name) = (server.to_owned(), name.to_owned());
        self.pins.push(PinElsewhere { server, name, pin: *pin });
        let Some(old) = replaced.filter(|old| !old.agrees_with(pin)) else { return Ok(()) };
        let table = old.table.id;
        let pins: Vec<_> =
            self.pins.iter().map(|known| known.pin).filter(|pin| pin.table.id == table).collect();
        let superfluous =
            |part: &PartName| part.table == table && !pins.iter().any(|pin| pin.names(part));
        self.parts.retain(|part, _| !superfluous(part));
        self.complete.retain(|part, _| !superfluous(part));
        if !pin.follows(&old) {
            self.hints.retain(|(of, _), kept| *of != table || hints::are_wanted(kept, &pins));
        }
        Ok(())
    }
}
