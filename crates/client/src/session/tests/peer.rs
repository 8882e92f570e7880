//! Servers in memory that answer truly, of one table in one version or in several, with the epochs
//! in between.

use crate::session::*;
use privet_core::{Epoch, PublicSeed, TableId, TableIdentity, TableShape, TableView};
use privet_kernels::Kernels;
use privet_schemes::SchemeId;
use privet_schemes::contract::Role;
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::{self, ErasedServer, SchemePlan, ServerOptions};
use privet_table::digest::{DigestParts, layout_digest};
use privet_table::key_map::{KeyMapKind, Pairs, pack_as};
use privet_table::update_log::{NextKeyDigest, PublisherId};
use privet_table::{IndexLayout, RecordLayout};
use privet_wire::{
    AnswerRequest, AnswerResponse, FetchChunk, PartDescription, PartKind, PrepareResponse,
    SchemeDescription, TableDescription, UpdatesDescription,
};
use std::sync::Arc;

/// Chunks so short that the small hints of these tests come in several.
const CHUNK_LEN: usize = 5000;

/// Maps a query in some role to its answer.
type Answers = dyn Fn(Role, &[u8]) -> Result<Vec<u8>> + Send + Sync;

/// Maps a request for hints in some role to its reply.
type Replies = Answers;

/// An epoch: the version that it leads to, its signed bytes, and its commitments.
pub(super) type SignedEpoch = (u64, Vec<u8>, Vec<u8>);

/// A server of one table.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) description: ServerDescription,
    pub(super) layout: Vec<u8>,
    pub(super) hint: Vec<u8>,
    pub(super) records: Vec<u8>,
    /// Earlier versions that are served as well, the latest first.
    pub(super) earlier: Vec<Peer>,
    /// The available epochs, each with the version that it leads to and its commitments.
    pub(super) epochs: Vec<SignedEpoch>,
    /// The successions that lead to the table.
    pub(super) lineage: Vec<u8>,
    /// The server, if the registry knows it.
    pub(super) server: Option<Arc<dyn ErasedServer>>,
    answers: Arc<Answers>,
    replies: Arc<Replies>,
}

/// Key number `k` and its value; values differ in length, and one is so long that it goes to the
/// stash.
pub(crate) fn pair(k: usize) -> (Vec<u8>, Vec<u8>) {
    let len = if k == 3 { 700 } else { 3 + k % 5 };
    (format!("key-{k}").into_bytes(), (0..len).map(|i| (k * 31 + i) as u8).collect())
}

struct Keyed(Vec<(Vec<u8>, Vec<u8>)>);

impl Pairs for Keyed {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn key(&self, pair: usize) -> &[u8] {
        &self.0[pair].0
    }
    fn value(&self, pair: usize) -> &[u8] {
        &self.0[pair].1
    }
}

impl Peer {
    /// A table of the first `keys` pairs, one of them in the stash.
    pub(super) fn keyed(keys: usize) -> Self {
        Self::keyed_by(SchemeId::SimplePir, keys)
    }

    /// The same, served by another scheme.
    pub(crate) fn keyed_by(scheme: SchemeId, keys: usize) -> Self {
        Self::keyed_as(KeyMapKind::Buckets, scheme, keys)
    }

    /// The same by another kind of key map.
    pub(super) fn keyed_as(kind: KeyMapKind, scheme: SchemeId, keys: usize) -> Self {
        let pairs = Keyed((0..keys).map(pair).collect());
        let packed = pack_as(kind, &pairs, PublicSeed::derive("privet test", b"seed")).unwrap();
        let map = packed.key_map();
        assert_eq!(map.stash_entries() > 0, keys > 3, "the long value is in the stash");
        let mut records = Vec::new();
        let mut record = Vec::new();
        for bucket in 0..map.buckets() {
            packed.write_record(&pairs, bucket, &mut record);
            records.extend(&record);
        }
        let layout = RecordLayout::Keyed(map.clone()).encode();
        Self::new(scheme, layout, &records, map.shape(), 1)
    }

    /// A table of `records` records of `len` bytes, by index.
    pub(super) fn indexed(records: u64, len: u64, id: u8) -> Self {
        Self::indexed_by(SchemeId::SimplePir, records, len, id)
    }

    /// The same, served by another scheme.
    pub(crate) fn indexed_by(scheme: SchemeId, records: u64, len: u64, id: u8) -> Self {
        let layout = RecordLayout::Index(IndexLayout::for_lengths(len, len)).encode();
        let bytes: Vec<u8> =
            (0..records * len).map(|i| (i * 13 + i / 251 + u64::from(id)) as u8).collect();
        Self::new(scheme, layout, &bytes, TableShape::new(records, len).unwrap(), id)
    }

    /// Any table by any scheme.
    pub(super) fn new(
        scheme: SchemeId,
        layout: Vec<u8>,
        records: &[u8],
        shape: TableShape,
        id: u8,
    ) -> Self {
        let parts = DigestParts {
            layout: layout_digest(&layout),
            records: *blake3::hash(records).as_bytes(),
        };
        let digest = parts.combine(shape);
        let identity = TableIdentity { id: TableId([id; 16]), epoch: Epoch(1), digest, shape };
        Self::of(scheme, identity, layout, records)
    }

    /// The table `identity`.
    pub(super) fn of(
        scheme: SchemeId,
        identity: TableIdentity,
        layout: Vec<u8>,
        records: &[u8],
    ) -> Self {
        let table = TableView::new(identity, records).unwrap();
        let options = ServerOptions { kernels: Kernels::detect(), threads: 1 };
        let setup = registry::setup(scheme, table, &registry::Tuning::default(), options).unwrap();
        let precomputed = setup.precompute(&|_| {}).unwrap();
        let server = setup.finish(&precomputed.kept.as_bytes(), &|_| {}).unwrap();
        let hint = precomputed.hint.as_bytes().into_owned();
        Self::with_server(Arc::from(server), identity, layout, records, hint)
    }

    /// The table `identity` at a finished server, with what clients download of it.
    pub(super) fn with_server(
        server: Arc<dyn ErasedServer>,
        identity: TableIdentity,
        layout: Vec<u8>,
        records: &[u8],
        hint: Vec<u8>,
    ) -> Self {
        let hint = match server.streamed() {
            Some(streamed) => streamed.to_vec(),
            None => hint,
        };
        let received = match server.plan().offline {
            OfflinePhase::Nothing | OfflinePhase::Ask { .. } => None,
            OfflinePhase::Download { .. } | OfflinePhase::StreamArranged { .. } => {
                Some(described(&hint))
            }
            _ => Some(described(records)),
        };
        let scheme = SchemeDescription::new(server.plan().clone(), &identity, received).unwrap();
        let description = describe(&[("table", identity, described(&layout), scheme)]);
        let (asked, kept) = (Arc::clone(&server), Arc::clone(&server));
        let replies = Arc::new(move |role, request: &[u8]| asked.prepare(role, request));
        let answers = Arc::new(move |role, query: &[u8]| answer(&*server, role, query));
        Self {
            description,
            layout,
            hint,
            records: records.to_vec(),
            earlier: Vec::new(),
            epochs: Vec::new(),
            lineage: Vec::new(),
            server: Some(kept),
            answers,
            replies,
        }
    }

    /// The same table, served by a server that the registry does not know. `hint` replaces the
    /// table in a stream.
    pub(super) fn served_by(
        mut self,
        plan: SchemePlan,
        hint: Vec<u8>,
        replies: impl Fn(Role, &[u8]) -> Result<Vec<u8>> + Send + Sync + 'static,
        answers: impl Fn(&[u8]) -> Result<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        self.hint = hint;
        self.replies = Arc::new(replies);
        let streamed = match plan.offline {
            OfflinePhase::StreamTable { .. } => Some(described(&self.records)),
            OfflinePhase::StreamArranged { .. } => Some(described(&self.hint)),
            _ => None,
        };
        let scheme = SchemeDescription::new(plan, &self.identity(), streamed).unwrap();
        self.description = describe(&[("table", self.identity(), described(&self.layout), scheme)]);
        self.answers = Arc::new(move |_, query: &[u8]| answers(query));
        self
    }

    /// The same with `earlier` versions beside it, and those `epochs`, signed by `publisher`, that
    /// lead on from version `first`.
    pub(super) fn with_history(
        mut self,
        earlier: Vec<Peer>,
        epochs: &[SignedEpoch],
        publisher: PublisherId,
        first: u64,
    ) -> Self {
        let described = |peer: &Peer| -> TableDescription { peer.description.tables[0].clone() };
        self.epochs = epochs.iter().filter(|(epoch, ..)| *epoch > first).cloned().collect();
        let updates = UpdatesDescription {
            publisher: publisher.0,
            first_epoch: Epoch(first),
            next_key: None,
            lineage: None,
        };
        let table = described(&self);
        let table = table.with_versions(Some(updates), earlier.iter().map(described).collect());
        self.description =
            ServerDescription::new("a peer in memory", vec![table.unwrap()]).unwrap();
        self.earlier = earlier;
        self
    }

    /// The same with a next key, and with a lineage that leads here.
    pub(super) fn with_lineage(mut self, next: Option<NextKeyDigest>, lineage: Vec<u8>) -> Self {
        let table = self.description.tables.remove(0);
        let updates = UpdatesDescription {
            next_key: next.map(|next| next.0),
            lineage: Some(described(&lineage)).filter(|_| !lineage.is_empty()),
            ..table.updates.unwrap()
        };
        let earlier = table.earlier.clone();
        let table = table.with_versions(Some(updates), earlier).unwrap();
        self.description = ServerDescription::new("a peer in memory", vec![table]).unwrap();
        self.lineage = lineage;
        self
    }

    /// The same, while the table `before`, which it succeeds, is still served beside it.
    pub(super) fn beside(mut self, before: Peer) -> Self {
        let table = self.description.tables.remove(0);
        let updates = table.updates;
        let old = before.description.tables[0].clone();
        let earlier = table.earlier.iter().cloned().chain([old]).collect();
        let table = table.with_versions(updates, earlier).unwrap();
        self.description = ServerDescription::new("a peer in memory", vec![table]).unwrap();
        self.earlier.push(before);
        self
    }

    pub(super) fn identity(&self) -> TableIdentity {
        self.description.tables[0].identity
    }

    pub(crate) fn scheme(&self) -> &SchemeDescription {
        &self.description.tables[0].schemes[0]
    }

    /// Announces another identity, and otherwise does as before.
    pub(super) fn with_identity(mut self, change: impl Fn(&mut TableIdentity)) -> Self {
        let mut identity = self.identity();
        change(&mut identity);
        let scheme = self.scheme().clone();
        let scheme = SchemeDescription::new(scheme.plan, &identity, scheme.hint).unwrap();
        self.description = describe(&[("table", identity, described(&self.layout), scheme)]);
        self
    }

    /// Serves another layout, and describes it truly.
    pub(super) fn with_layout(mut self, layout: Vec<u8>) -> Self {
        let scheme = self.scheme().clone();
        self.description = describe(&[("table", self.identity(), described(&layout), scheme)]);
        self.layout = layout;
        self
    }

    /// The version that a request is about, if it is served.
    fn version(&self, request: &Request) -> Result<&Self> {
        let (epoch, digest) = match request {
            Request::Describe(_) => return Ok(self),
            // The version that the epochs lead to.
            Request::Fetch(request) if request.part == PartKind::Updates => {
                let named = self.named_by(request.parameter_digest)?;
                let is_own = named.identity().id == self.identity().id;
                return Ok(if is_own { self } else { named });
            }
            Request::Fetch(request) => (request.epoch, request.parameter_digest),
            Request::Prepare(request) => (request.epoch, request.parameter_digest),
            Request::Answer(request) => (request.epoch, request.parameter_digest),
        };
        let versions = std::iter::once(self).chain(&self.earlier);
        let mut named = versions.filter(|version| {
            (version.identity().epoch, version.scheme().parameter_digest) == (epoch, digest)
        });
        named.next().ok_or_else(|| Error::peer_misbehaved("that version is not served here"))
    }

    fn named_by(&self, parameter_digest: [u8; 32]) -> Result<&Self> {
        let mut versions = std::iter::once(self).chain(&self.earlier);
        let named = versions.find(|version| version.scheme().parameter_digest == parameter_digest);
        named.ok_or_else(|| Error::peer_misbehaved("that version is not served here"))
    }

    /// The epochs from the version `request` names to the one that its parameter digest does.
    fn updates(&self, request: &privet_wire::FetchRequest) -> Vec<u8> {
        let to = self.named_by(request.parameter_digest).expect("a version that is served");
        let to = to.identity().epoch.0;
        let mut bytes = Vec::new();
        for (epoch, signed, commitments) in &self.epochs {
            if *epoch > request.epoch.0 && *epoch <= to {
                privet_wire::updates::encode(signed, commitments, &mut bytes).unwrap();
            }
        }
        bytes
    }

    /// The true responses to `request`.
    pub(crate) fn respond(&self, request: &Request) -> Vec<Result<Response>> {
        // A peer of one version gets only requests about that version, unless a test wants to see
        // what happens otherwise.
        match self.version(request) {
            Ok(version) => version.respond_as_it_is(request),
            Err(_) if self.epochs.is_empty() => self.respond_as_it_is(request),
            Err(error) => vec![Err(error)],
        }
    }

    fn respond_as_it_is(&self, request: &Request) -> Vec<Result<Response>> {
        match request {
            Request::Describe(_) => vec![Ok(Response::Described(self.description.clone()))],
            Request::Fetch(request) => {
                let updates;
                let part = match request.part {
                    PartKind::Layout => &self.layout,
                    PartKind::Hint => &self.hint,
                    PartKind::Lineage => &self.lineage,
                    PartKind::Updates => {
                        updates = self.updates(request);
                        &updates
                    }
                    _ => &self.records,
                };
                let start = request.offset as usize;
                let len = if request.len == 0 { part.len() } else { request.len as usize };
                let end = part.len().min(start + len);
                let chunks = part[start..end].chunks(CHUNK_LEN).enumerate().map(|(k, data)| {
                    let offset = (start + k * CHUNK_LEN) as u64;
                    Ok(Response::Chunk(FetchChunk { offset, data: data.to_vec().into() }))
                });
                chunks.chain([Ok(Response::End)]).collect()
            }
            Request::Prepare(request) => {
                vec![(self.replies)(request.role, &request.request).map(|reply| {
                    let (table, epoch, parameter_digest) =
                        (request.table, request.epoch, request.parameter_digest);
                    let reply = reply.into();
                    Response::Prepared(PrepareResponse { table, epoch, parameter_digest, reply })
                })]
            }
            Request::Answer(request) => vec![self.answered(request).map(Response::Answered)],
        }
    }

    /// The answers to all queries of a request.
    pub(crate) fn answered(&self, request: &AnswerRequest) -> Result<AnswerResponse> {
        let (table, epoch, parameter_digest) =
            (request.table, request.epoch, request.parameter_digest);
        let query_len = self.scheme().plan.query_lens[usize::from(request.role.0)];
        let queries = match request.query.len().is_multiple_of(query_len) {
            true => request.query.chunks(query_len).collect(),
            false => vec![&request.query[..]],
        };
        let answers = queries.into_iter().map(|query| (self.answers)(request.role, query));
        let answer = answers.collect::<Result<Vec<_>>>()?.concat().into();
        Ok(AnswerResponse { table, epoch, parameter_digest, answer })
    }
}

fn answer(server: &dyn ErasedServer, role: Role, query: &[u8]) -> Result<Vec<u8>> {
    server.answer(role, &[query]).remove(0)
}

pub(super) fn described(part: &[u8]) -> PartDescription {
    PartDescription::new(part.len() as u64, *blake3::hash(part).as_bytes())
}

pub(super) fn describe(
    tables: &[(&str, TableIdentity, PartDescription, SchemeDescription)],
) -> ServerDescription {
    let tables = tables.iter().map(|(name, identity, layout, scheme)| {
        TableDescription::new(name, *identity, *layout, vec![scheme.clone()]).unwrap()
    });
    ServerDescription::new("a peer in memory", tables.collect()).unwrap()
}
