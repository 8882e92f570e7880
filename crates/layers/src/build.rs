//! Building a layer: long work that can run on any thread, at any time.

use super::announcement::LayerDescription;
use super::entries::Entries;
use super::{LayeredParameters, Span};
use privet_core::{Error, PublicSeed, Result, TableId, TableIdentity, TableShape, TableView};
use privet_schemes::contract::Role;
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::{self, ErasedServer, ServerOptions, Tuning};
use privet_table::key_map::{Pairs, pack};
use std::sync::Arc;

/// The settings with which all layers of a table are made.
pub(super) struct Recipe {
    pub(super) table: TableId,
    pub(super) parameters: LayeredParameters,
    pub(super) options: ServerOptions,
}

/// A layer that is to be built. It holds all its inputs, so it can be built anywhere, at any time,
/// and again after an interruption. The result is always the same, also at another server that has
/// the same changes.
#[derive(Clone)]
pub struct Build {
    pub(super) recipe: Arc<Recipe>,
    pub(super) span: Span,
    pub(super) newer: Arc<Entries>,
    /// `None` if the layer is made from the list alone.
    pub(super) older: Option<Arc<Entries>>,
    /// Whether no older layer is behind it, so that tombstones are no longer needed.
    pub(super) oldest: bool,
}

impl Build {
    /// The changes that the layer will hold.
    pub fn span(&self) -> Span {
        self.span
    }

    /// How many entries go into it: the layer has at most as many.
    pub fn entries(&self) -> u64 {
        (self.newer.len() + self.older.as_ref().map_or(0, |older| older.len())) as u64
    }

    /// Merges, packs the entries into records, and starts the scheme's server on them, with all its
    /// precomputation. Takes as long as starting that scheme on a table of this size.
    ///
    /// # Errors
    /// If the scheme does not suit a table of this shape, or there is not enough memory.
    pub fn run(&self) -> Result<Built> {
        let mut entries = self.older.as_ref().map(|older| Entries::merged(&self.newer, older));
        if self.oldest {
            entries = Some(entries.as_ref().unwrap_or(&self.newer).without_tombstones());
        }
        let entries = entries.map_or_else(|| self.newer.clone(), Arc::new);
        Layer::new(&self.recipe, self.span, entries).map(|layer| Built(Arc::new(layer)))
    }
}

impl std::fmt::Debug for Build {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Build").field("span", &self.span).finish_non_exhaustive()
    }
}

/// A layer that was built, for [`LayeredServer::install`](super::LayeredServer::install).
pub struct Built(pub(super) Arc<Layer>);

/// One layer at a server: a static table and everything that clients need of it. It does not
/// change, and threads share it.
pub struct Layer {
    description: Arc<LayerDescription>,
    identity: TableIdentity,
    entries: Arc<Entries>,
    server: Box<dyn ErasedServer>,
    fetched: Fetched,
}

/// What clients fetch before they can query a layer.
enum Fetched {
    Nothing,
    /// A hint, or the records.
    Bytes(Vec<u8>),
    /// Data that the scheme's server holds anyway.
    OfServer,
}

impl Layer {
    fn new(recipe: &Recipe, span: Span, entries: Arc<Entries>) -> Result<Self> {
        let packed = pack(&*entries, seed(recipe.table, span, &entries))?;
        let shape = packed.key_map().shape();
        let mut records = Vec::new();
        let bytes = usize::try_from(shape.bytes()).ok();
        bytes.and_then(|bytes| records.try_reserve_exact(bytes).ok()).ok_or_else(no_memory)?;
        let mut record = Vec::new();
        for bucket in 0..shape.records() {
            packed.write_record(&*entries, bucket, &mut record);
            records.extend_from_slice(&record);
        }
        let digest = *blake3::hash(&records).as_bytes();
        let key_map = packed.key_map().clone();
        drop(packed);
        let mut description = LayerDescription::new(span, digest, [0; 32], Vec::new(), key_map);
        let identity = description.identity(recipe.table);

        let scheme = recipe.parameters.scheme;
        let view = TableView::new(identity, &records)?;
        let setup = registry::setup(scheme, view, &Tuning::default(), recipe.options)?;
        let precomputed = setup.precompute(&|_| {})?;
        let server = setup.finish(&precomputed.kept.as_bytes(), &|_| {})?;
        let fetched = match server.plan().offline {
            OfflinePhase::Nothing | OfflinePhase::Ask { .. } => Fetched::Nothing,
            OfflinePhase::Download { .. } => Fetched::Bytes(precomputed.hint.as_bytes().to_vec()),
            OfflinePhase::StreamTable { .. } | OfflinePhase::KeepTable { .. } => {
                Fetched::Bytes(records)
            }
            OfflinePhase::StreamArranged { .. } => Fetched::OfServer,
            _ => return Err(Error::api_misuse(format!("layers cannot be made of {scheme}"))),
        };
        description.parameters = server.plan().parameters.clone();
        let mut layer =
            Self { description: Arc::new(description), identity, entries, server, fetched };
        if !layer.fetched().is_empty() {
            let digest = *blake3::hash(layer.fetched()).as_bytes();
            if let Some(description) = Arc::get_mut(&mut layer.description) {
                description.fetched = digest;
            }
        }
        Ok(layer)
    }

    /// The layer's public description.
    pub fn description(&self) -> &Arc<LayerDescription> {
        &self.description
    }

    /// The layer's table.
    pub fn identity(&self) -> TableIdentity {
        self.identity
    }

    /// How many entries it holds, with tombstones.
    pub fn entries(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Number and width of its records.
    pub fn shape(&self) -> TableShape {
        self.identity.shape
    }

    /// What clients fetch before they can query it.
    pub fn fetched(&self) -> &[u8] {
        match &self.fetched {
            Fetched::Nothing => &[],
            Fetched::Bytes(bytes) => bytes,
            Fetched::OfServer => self.server.streamed().unwrap_or(&[]),
        }
    }

    /// The scheme's server: it answers queries, and requests for hints if clients make such.
    pub fn server(&self) -> &dyn ErasedServer {
        &*self.server
    }

    /// Answers one query to the server of role `role`.
    ///
    /// # Errors
    /// [`Blame::InvalidMessage`](privet_core::Blame::InvalidMessage) if it does not parse.
    pub fn answer(&self, role: Role, query: &[u8]) -> Result<Vec<u8>> {
        let answer = self.server.answer(role, &[query]).pop();
        answer.ok_or_else(|| Error::unavailable("the query was not answered; send it again"))?
    }

    pub(super) fn held(&self) -> &Arc<Entries> {
        &self.entries
    }
}

impl std::fmt::Debug for Layer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Layer").field(&self.description.span).finish()
    }
}

/// The seed under which a layer's keys are hashed. It follows from the keys, so that nobody can
/// choose keys after it. It follows from nothing else, so that all servers of a table build the
/// same layer.
fn seed(table: TableId, span: Span, entries: &Entries) -> PublicSeed {
    let mut material = span.table(table).0.to_vec();
    material.extend(entries.digest());
    PublicSeed::derive("privet layered table v1, seed of a layer's key map", &material)
}

fn no_memory() -> Error {
    Error::unavailable("no memory for the records of a layer")
}
