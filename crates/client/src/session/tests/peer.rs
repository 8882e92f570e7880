//! Servers in memory that answer truly, of one table in one version or in several, with the epochs
//! in between.

use crate::session::*;
use privet_core::{Epoch, PublicSeed, TableId, TableIdentity, TableShape, TableView};
use privet_kernels::Kernels;
use privet_schemes::SchemeId;
use privet_schemes::contract::Role;
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::{self, ErasedServer, SchemePlan, ServerOptions, Tuning};
use privet_table::digest::{DigestParts, layout_digest};
use privet_table::key_map::{KeyMapKind, Packed, pack_as};
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
    /// What it sends of a part at a time.
    pub(super) chunk_len: usize,
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

/// The records of a packed table.
pub(super) fn records_of(packed: &Packed, pairs: &[(Vec<u8>, Vec<u8>)]) -> Vec<Vec<u8>> {
    let record = |bucket| {
        let mut record = Vec::new();
        packed.write_record(pairs, bucket, &mut record);
        record
    };
    (0..packed.key_map().buckets()).map(record).collect()
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
        let pairs: Vec<_> = (0..keys).map(pair).collect();
        let seed = PublicSeed::derive("privet test", b"seed");
        let packed = pack_as(kind, &pairs[..], seed).unwrap();
        let map = packed.key_map();
        assert_eq!(map.stash_entries() > 0, keys > 3, "the long value is in the stash");
        let layout = RecordLayout::Keyed(map.clone()).encode();
        Self::new(scheme, layout, &records_of(&packed, &pairs).concat(), map.shape(), 1)
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
        let identity = identity_of(&layout, records, shape, id);
        Self::of(scheme, identity, layout, records)
    }

    /// The table `identity`.
    pub(super) fn of(
        scheme: SchemeId,
        identity: TableIdentity,
        layout: Vec<u8>,
        records: &[u8],
    ) -> Self {
        Self::tuned(scheme, &Tuning::default(), identity, layout, records)
    }

    /// The same by a scheme with other parameters than it would choose.
    pub(super) fn tuned(
        scheme: SchemeId,
        tuning: &Tuning,
        identity: TableIdentity,
        layout: Vec<u8>,
        records: &[u8],
    ) -> Self {
        let table = TableView::new(identity, records).unwrap();
        let options = ServerOptions { kernels: Kernels::detect(), threads: 1 };
        let setup = registry::setup(scheme, table, tuning, options).unwrap();
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
        let table = TableDescription::new("table", identity, described(&layout), vec![scheme]);
        let description = ServerDescription::new("a peer in memory", vec![table.unwrap()]).unwrap();
        let (asked, kept) = (Arc::clone(&server), Arc::clone(&server));
        let replies = Arc::new(move |role, request: &[u8]| asked.prepare(role, request));
        let answers = Arc::new(move |role, query: &[u8]| answer(&*server, role, query));
        Self {
            description,
            layout,
            hint,
            records: records.to_vec(),
            chunk_len: CHUNK_LEN,
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
        self.answers = Arc::new(move |_, query: &[u8]| answers(query));
        let identity = self.identity();
        let scheme = SchemeDescription::new(plan, &identity, streamed).unwrap();
        self.announcing(identity, scheme)
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
        self.epochs = epochs.iter().filter(|(epoch, ..)| *epoch > first).cloned().collect();
        let updates = UpdatesDescription {
            publisher: publisher.0,
            first_epoch: Epoch(first),
            next_key: None,
            lineage: None,
        };
        let described = earlier.iter().map(|peer| peer.description.tables[0].clone()).collect();
        self.earlier = earlier;
        self.describing(|table| table.with_versions(Some(updates), described).unwrap())
    }

    /// The same with another description of its table.
    pub(super) fn describing(
        mut self,
        change: impl FnOnce(TableDescription) -> TableDescription,
    ) -> Self {
        let table = change(self.description.tables.remove(0));
        self.description = ServerDescription::new("a peer in memory", vec![table]).unwrap();
        self
    }

    /// The same with another description of its updates, or none.
    pub(super) fn telling(
        self,
        change: impl FnOnce(Option<UpdatesDescription>) -> Option<UpdatesDescription>,
    ) -> Self {
        self.describing(|table| {
            let (updates, earlier) = (change(table.updates), table.earlier.clone());
            table.with_versions(updates, earlier).unwrap()
        })
    }

    /// Announces this identity and this scheme.
    pub(super) fn announcing(self, identity: TableIdentity, scheme: SchemeDescription) -> Self {
        let layout = described(&self.layout);
        self.describing(|table| {
            TableDescription::new(&table.name, identity, layout, vec![scheme]).unwrap()
        })
    }

    /// The same with a next key, and with a lineage that leads here.
    pub(super) fn with_lineage(mut self, next: Option<NextKeyDigest>, lineage: Vec<u8>) -> Self {
        let (next_key, part) = (next.map(|next| next.0), described(&lineage));
        let part = Some(part).filter(|_| !lineage.is_empty());
        self.lineage = lineage;
        self.telling(|updates| {
            Some(UpdatesDescription { next_key, lineage: part, ..updates.unwrap() })
        })
    }

    /// The same, while the table `before`, which it succeeds, is still served beside it.
    pub(super) fn beside(mut self, before: Peer) -> Self {
        let old = before.description.tables[0].clone();
        self.earlier.push(before);
        self.describing(|table| {
            let earlier = table.earlier.iter().cloned().chain([old]).collect();
            let updates = table.updates;
            table.with_versions(updates, earlier).unwrap()
        })
    }

    pub(super) fn identity(&self) -> TableIdentity {
        self.description.tables[0].identity
    }

    pub(crate) fn scheme(&self) -> &SchemeDescription {
        &self.description.tables[0].schemes[0]
    }

    /// Announces another identity, and otherwise does as before.
    pub(super) fn with_identity(self, change: impl Fn(&mut TableIdentity)) -> Self {
        let mut identity = self.identity();
        change(&mut identity);
        let scheme = self.scheme().clone();
        let scheme = SchemeDescription::new(scheme.plan, &identity, scheme.hint).unwrap();
        self.announcing(identity, scheme)
    }

    /// Announces another digest of what clients receive.
    pub(super) fn with_hint_digest(self, digest: [u8; 32]) -> Self {
        let SchemeDescription { plan, hint, .. } = self.scheme().clone();
        let hint = hint.map(|hint| PartDescription::new(hint.len, digest));
        let identity = self.identity();
        let scheme = SchemeDescription::new(plan, &identity, hint).unwrap();
        self.announcing(identity, scheme)
    }

    /// Serves another layout, and describes it truly.
    pub(super) fn with_layout(mut self, layout: Vec<u8>) -> Self {
        self.layout = layout;
        let (identity, scheme) = (self.identity(), self.scheme().clone());
        self.announcing(identity, scheme)
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
                let chunks =
                    part[start..end].chunks(self.chunk_len).enumerate().map(|(k, data)| {
                        let offset = (start + k * self.chunk_len) as u64;
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

/// A table of these parts in its first version.
pub(super) fn identity_of(
    layout: &[u8],
    records: &[u8],
    shape: TableShape,
    id: u8,
) -> TableIdentity {
    let records = *blake3::hash(records).as_bytes();
    let digest = DigestParts { layout: layout_digest(layout), records }.combine(shape);
    TableIdentity { id: TableId([id; 16]), epoch: Epoch(1), digest, shape }
}

fn answer(server: &dyn ErasedServer, role: Role, query: &[u8]) -> Result<Vec<u8>> {
    server.answer(role, &[query]).remove(0)
}

pub(super) fn described(part: &[u8]) -> PartDescription {
    PartDescription::new(part.len() as u64, *blake3::hash(part).as_bytes())
}
