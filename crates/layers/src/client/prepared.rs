//! One layer at a client: what must be fetched before it can be queried, its hints, and the next
//! generation of them.

use super::{Due, HintStore, Logged};
use crate::Span;
use crate::announcement::LayerDescription;
use privet_core::{Error, RecordIndex, Result, SecretRng, TableId, TableIdentity};
use privet_kernels::Kernels;
use privet_schemes::SchemeId;
use privet_schemes::contract::{ReservationId, Supply};
use privet_schemes::offline::{Download, OfflinePhase, StreamConsumer};
use privet_schemes::registry::{self, ErasedClient, ErasedHints, ErasedPreparation, SchemePlan};
use privet_schemes::reservation::{
    Journal, JournalEntry, JournalReader, Lookup, Prepared, Sendable, StoredRecord,
};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The most that is fetched at once.
const STRIDE: u64 = 1 << 20;

/// A layer at a client.
pub(super) struct PreparedLayer {
    pub(super) description: Arc<LayerDescription>,
    identity: TableIdentity,
    plan: SchemePlan,
    kernels: Kernels,
    /// The number of changes when it was announced, and when it takes over.
    announced_at: u64,
    takes_over_at: u64,
    /// The generation that makes queries.
    current: Option<u64>,
    /// By number: the current one, earlier ones that lookups still use, and the next once it is
    /// prepared. A scheme without hints has one.
    generations: BTreeMap<u64, Box<dyn ErasedClient>>,
    preparing: Option<Fetching>,
    next_generation: u64,
}

/// What is being fetched.
enum Fetching {
    Download(Box<Download>, Vec<u8>),
    Hints(Box<dyn ErasedPreparation>),
}

impl Fetching {
    fn consumer(&mut self) -> &mut dyn StreamConsumer {
        match self {
            Self::Download(download, _) => &mut **download,
            Self::Hints(preparation) => &mut **preparation,
        }
    }
}

/// The query to one layer, or its answer if no query is needed.
pub(super) enum Asked {
    Sent(u64, Lookup),
    Known(privet_schemes::contract::Record),
}

impl PreparedLayer {
    pub(super) fn new(
        table: TableId,
        scheme: SchemeId,
        description: &Arc<LayerDescription>,
        (announced_at, takes_over_at): (u64, u64),
        kernels: Kernels,
    ) -> Result<Self> {
        let identity = description.identity(table);
        let plan = SchemePlan::from_announcement(scheme, &identity, &description.parameters)?;
        let mut layer = Self {
            description: description.clone(),
            identity,
            plan,
            kernels,
            announced_at,
            takes_over_at,
            current: None,
            generations: BTreeMap::new(),
            preparing: None,
            next_generation: 0,
        };
        if layer.plan.offline.is_empty() {
            layer.load(|layer| {
                let nothing = Arc::new(Vec::new());
                registry::client(layer.plan.clone(), &layer.identity, nothing, layer.kernels)
            })?;
        }
        Ok(layer)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.current.is_some()
    }

    pub(super) fn servers(&self) -> usize {
        self.plan.servers
    }

    /// The next piece that is due after `changes` changes, if any. That depends on the number of
    /// changes, the number of lookups, and public sizes.
    pub(super) fn due(&mut self, changes: u64) -> Result<Option<Due>> {
        let share = match self.current {
            None => self.share_by_changes(changes),
            Some(current) => self.share_by_lookups(current),
        };
        let Some((done, of)) = share else { return Ok(None) };
        let total = self.plan.offline.len();
        // Both factors are bounded: a table has at most 2^48 bytes, and `done` is at most all of
        // it.
        let due = (u128::from(total) * u128::from(done)).div_ceil(u128::from(of.max(1))) as u64;
        let layer = self.description.span;
        let at = match &mut self.preparing {
            Some(preparing) => preparing.consumer().next_offset(),
            None => 0,
        };
        if at >= due.min(total) {
            return Ok(None);
        }
        if self.preparing.is_none() {
            self.preparing = Some(self.begin()?);
        }
        if let Some(Fetching::Hints(preparation)) = &mut self.preparing
            && let OfflinePhase::Ask { role, .. } = self.plan.offline
        {
            let request = preparation
                .request()
                .ok_or_else(|| Error::api_misuse("there is nothing more to ask the server for"))?;
            return Ok(Some(Due::Ask { layer, role, request }));
        }
        Ok(Some(Due::Fetch { layer, offset: at, len: (due - at).min(STRIDE) }))
    }

    /// A first generation is due in equal parts, one with each change before the layer takes over.
    fn share_by_changes(&self, changes: u64) -> Option<(u64, u64)> {
        let span = self.takes_over_at.saturating_sub(self.announced_at);
        let done = changes.saturating_sub(self.announced_at).saturating_add(1);
        Some(if changes >= self.takes_over_at { (1, 1) } else { (done.min(span), span) })
    }

    /// The next generation is due while the second and third quarter of the present one are used.
    fn share_by_lookups(&mut self, current: u64) -> Option<(u64, u64)> {
        if self.generations.keys().any(|number| *number > current) {
            return None;
        }
        let hints = self.generations.get_mut(&current)?.hints()?;
        if hints.is_endless() {
            return None;
        }
        let Supply { used, total } = hints.supply();
        let (begin, end) = (total / 4, total - total / 4);
        match used {
            _ if used < begin => None,
            _ if used >= end => Some((1, 1)),
            _ => Some((used - begin + 1, end - begin)),
        }
    }

    fn begin(&self) -> Result<Fetching> {
        let fetched = self.description.fetched;
        Ok(match self.plan.offline {
            OfflinePhase::Download { len } | OfflinePhase::KeepTable { len } => {
                Fetching::Download(Box::new(Download::new(len, fetched)), Vec::new())
            }
            _ => Fetching::Hints(registry::preparation(
                &self.plan,
                &self.identity,
                fetched,
                None,
                self.kernels,
            )?),
        })
    }

    /// Takes the due piece. After its last piece, a layer is ready, or has its next generation.
    pub(super) fn absorb(&mut self, bytes: &[u8], store: &mut impl HintStore) -> Result<()> {
        let absorbed = self.absorb_piece(bytes, store);
        if absorbed.is_err() {
            // The fetched bytes may be wrong, and it is unknown which of them.
            self.preparing = None;
        }
        absorbed
    }

    fn absorb_piece(&mut self, bytes: &[u8], store: &mut impl HintStore) -> Result<()> {
        let total = self.plan.offline.len();
        let Some(preparing) = &mut self.preparing else {
            return Err(Error::api_misuse("nothing was due for this layer"));
        };
        let offset = preparing.consumer().next_offset();
        preparing.consumer().absorb(offset, bytes)?;
        if let Fetching::Download(_, kept) = preparing {
            kept.extend_from_slice(bytes);
        }
        if preparing.consumer().next_offset() < total {
            return Ok(());
        }
        preparing.consumer().finish()?;
        match self.preparing.take() {
            Some(Fetching::Download(_, kept)) => self.load(|layer| {
                let kept = Arc::new(kept);
                registry::client(layer.plan.clone(), &layer.identity, kept, layer.kernels)
            }),
            Some(Fetching::Hints(preparation)) => {
                self.use_generation(preparation.generation()?, store)
            }
            None => Ok(()),
        }
    }

    /// Keeps a generation before it is used, so that its reservations can be found again.
    fn use_generation(
        &mut self,
        generation: Zeroizing<Vec<u8>>,
        store: &mut impl HintStore,
    ) -> Result<()> {
        store.generation(self.description.span, self.next_generation, &generation)?;
        self.load(|layer| layer.client_with(generation))
    }

    fn client_with(&self, generation: Zeroizing<Vec<u8>>) -> Result<Box<dyn ErasedClient>> {
        registry::hinted_client(self.plan.clone(), &self.identity, generation, self.kernels)
    }

    fn load(&mut self, client: impl FnOnce(&Self) -> Result<Box<dyn ErasedClient>>) -> Result<()> {
        let client = client(self)?;
        let number = self.next_generation;
        self.next_generation += 1;
        self.generations.insert(number, client);
        self.current.get_or_insert(number);
        Ok(())
    }

    /// Loads a stored generation and its log. Returns the queries without an answer.
    pub(super) fn restore(
        &mut self,
        number: u64,
        generation: Zeroizing<Vec<u8>>,
        store: &mut impl HintStore,
    ) -> Result<Vec<(ReservationId, Sendable)>> {
        if number < self.next_generation {
            return Err(Error::api_misuse(
                "generations of hints are loaded in their order, and before others are prepared",
            ));
        }
        let log = store.log(self.description.span, number)?;
        let mut stored = StoredRecord::read_all(&mut ReservedOf(&log))?.into_iter();
        let mut client = self.client_with(generation)?;
        let hints = client.hints().ok_or_else(no_hints)?;
        let mut sent = Vec::new();
        for logged in &log {
            match logged {
                Logged::Reserved(_) => {
                    let Some(record) = stored.next() else { break };
                    let before = hints.open();
                    hints.apply(record.change())?;
                    // Each record opens one reservation.
                    sent.extend(
                        hints
                            .open()
                            .into_iter()
                            .find(|id| !before.contains(id))
                            .map(|id| (id, record.into_sendable())),
                    );
                }
                Logged::Settled(change) => hints.apply(change)?,
            }
        }
        let open = hints.open();
        sent.retain(|(id, _)| open.contains(id));
        self.next_generation = number;
        self.load(|_| Ok(client))?;
        self.preparing = None;
        Ok(sent)
    }

    /// Checks that one more lookup can be made, before any part of it is. Switches to the next
    /// generation if it is time.
    pub(super) fn make_ready(&mut self, store: &mut impl HintStore) -> Result<()> {
        let Some(current) = self.current else {
            return Err(Error::unavailable(
                "a layer cannot be asked yet; fetch what is due for it first",
            ));
        };
        let needed = self.description.key_map.candidates_per_key() as u64;
        let Some(hints) = self.hints_of(current) else { return Ok(()) };
        if let Some(ended) = hints.ended() {
            return Err(ended);
        }
        let open = hints.open();
        if hints.verifies() && !open.is_empty() {
            return Err(Error::unavailable(
                "lookups of this scheme go one after the other; settle the one before first",
            ));
        }
        if hints.supply().left() >= needed {
            return Ok(());
        }
        let later = (Bound::Excluded(current), Bound::Unbounded);
        if self.generations.range(later).next().is_none() {
            // This generation is used up, and no next one has been stored, so no hint of it can be
            // used twice.
            let Some(hints) = self.hints_of(current).filter(|hints| hints.is_endless()) else {
                return Err(Error::unavailable(
                    "a layer's hints are used up; fetch what is due for its next generation first",
                ));
            };
            if !open.is_empty() {
                return Err(Error::unavailable(
                    "a layer's hints are due to be written down anew; settle the lookups under way first",
                ));
            }
            let generation = hints.condense()?;
            self.use_generation(generation, store)?;
        }
        self.current = self.generations.range(later).next().map(|(number, _)| *number);
        Ok(())
    }

    /// The queries for the record in which `key` would be.
    pub(super) fn ask(
        &mut self,
        key: &[u8],
        rng: &mut SecretRng,
        store: &mut impl HintStore,
    ) -> Result<Vec<Asked>> {
        let layer = self.description.span;
        let generation = self.current.unwrap_or_default();
        let mut asked = Vec::new();
        for candidate in self.description.key_map.candidates(key) {
            let index = RecordIndex::new(candidate, self.identity.shape)?;
            let client = self.generations.get_mut(&generation).ok_or_else(no_hints)?;
            asked.push(match client.prepare(&index, rng)? {
                Prepared::Ready(lookup) => Asked::Sent(generation, lookup),
                Prepared::Reserved(reservation) => {
                    let mut journal = LayerJournal { store: &mut *store, layer, generation };
                    Asked::Sent(generation, reservation.commit(&mut journal)?)
                }
                Prepared::Known(record) => Asked::Known(record),
            });
        }
        Ok(asked)
    }

    pub(super) fn client(&mut self, generation: u64) -> Result<&mut dyn ErasedClient> {
        match self.generations.get_mut(&generation) {
            Some(client) => Ok(&mut **client),
            None => Err(no_hints()),
        }
    }

    pub(super) fn hints_of(&mut self, generation: u64) -> Option<&mut dyn ErasedHints> {
        self.generations.get_mut(&generation)?.hints()
    }

    /// Drops used-up generations that no lookup waits for.
    pub(super) fn forget_used(&mut self, in_use: impl Fn(u64) -> bool, store: &mut impl HintStore) {
        let Some(current) = self.current else { return };
        let layer = self.description.span;
        self.generations.retain(|number, client| {
            let keep = *number >= current
                || in_use(*number)
                || client.hints().is_some_and(|hints| !hints.open().is_empty());
            if !keep {
                store.forget(layer, *number);
            }
            keep
        });
    }

    /// Drops all generations.
    pub(super) fn forget(mut self, store: &mut impl HintStore) {
        for (number, client) in &mut self.generations {
            if client.hints().is_some() {
                store.forget(self.description.span, *number);
            }
        }
    }
}

/// The journal of one generation, in a store of many.
struct LayerJournal<'a, S> {
    store: &'a mut S,
    layer: Span,
    generation: u64,
}

impl<S: HintStore> Journal for LayerJournal<'_, S> {
    fn append_and_sync(&mut self, entries: &[JournalEntry<'_>]) -> Result<()> {
        let mut records = entries.iter().map(|entry| entry.record);
        records.try_for_each(|record| self.store.reserved(self.layer, self.generation, record))
    }
}

/// The reservations in a store's log.
struct ReservedOf<'a>(&'a [Logged]);

impl JournalReader for ReservedOf<'_> {
    fn records(&mut self) -> Result<Vec<Zeroizing<Vec<u8>>>> {
        let reserved = self.0.iter().filter_map(|logged| match logged {
            Logged::Reserved(record) => Some(record.clone()),
            Logged::Settled(_) => None,
        });
        Ok(reserved.collect())
    }
}

fn no_hints() -> Error {
    Error::api_misuse("the layer has no hints of this generation")
}
