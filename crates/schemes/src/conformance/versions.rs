//! A scheme goes through versions of a table. In each version, servers, downloads and hints are the
//! same as after a fresh start with it.

use crate::SchemeId;
use crate::contract::{Record, Role};
use crate::offline::OfflinePhase;
use crate::registry::{
    ErasedClient, ErasedServer, Recovered, SchemePlan, ServerOptions, Tuning, client,
    hinted_client, patch_downloaded, patches_downloads, plan, plan_next, preparation, setup_as,
};
use crate::reservation::{Journal, JournalEntry, Lookup, Prepared};
use crate::test_tables::{changed, identity, public_bytes};
use privet_core::planted::{Flaw, plant};
use privet_core::{
    Blame, Epoch, RecordIndex, Result, SecretRng, TableChanges, TableDigest, TableIdentity,
    TableShape, TableView,
};
use privet_kernels::Kernels;
use std::sync::Arc;
use zeroize::Zeroizing;

pub fn options() -> ServerOptions {
    ServerOptions { kernels: Kernels::detect(), threads: 2 }
}

/// A table in one version, with its server.
pub struct Version {
    pub identity: TableIdentity,
    pub records: Vec<u8>,
    pub plan: SchemePlan,
    pub server: Box<dyn ErasedServer>,
    /// What clients download: a hint, or the table.
    pub part: Vec<u8>,
}

impl Version {
    pub fn first(scheme: SchemeId, records: u64, record_len: u64, tuning: &Tuning) -> Self {
        let identity = identity(records, record_len);
        let plan = plan(scheme, &identity, tuning).unwrap();
        let bytes = public_bytes("a table", identity.shape.bytes() as usize);
        Self::started(plan, identity, bytes, tuning)
    }

    /// From the table.
    pub fn started(
        plan: SchemePlan,
        identity: TableIdentity,
        records: Vec<u8>,
        tuning: &Tuning,
    ) -> Self {
        let view = TableView::new(identity, &records).unwrap();
        let setup = setup_as(plan.clone(), view, tuning, options()).unwrap();
        let precomputed = setup.precompute(&|_| {}).unwrap();
        let server = setup.finish(&precomputed.kept.as_bytes(), &|_| {}).unwrap();
        let part = match plan.offline {
            OfflinePhase::KeepTable { .. } => records.clone(),
            _ => precomputed.hint.as_bytes().into_owned(),
        };
        Self { identity, records, plan, server, part }
    }

    /// The next version, from the table, and the changes to it: `edits` records somewhere, and
    /// `more` records at the end.
    pub fn changed(
        &self,
        edits: u64,
        more: u64,
        tuning: &Tuning,
        rng: &mut SecretRng,
    ) -> (Self, TableChanges) {
        let (before, epoch) = (self.identity.shape, Epoch(self.identity.epoch.0 + 1));
        let shape = TableShape::new(before.records() + more, before.record_len()).unwrap();
        let identity = TableIdentity {
            epoch,
            digest: TableDigest([epoch.0 as u8; 32]),
            shape,
            ..self.identity
        };
        let (records, changes) = changed(&self.records, before, shape, edits, rng);
        let plan = plan_next(&self.plan, &identity, tuning).unwrap();
        (Self::started(plan, identity, records, tuning), changes)
    }

    pub fn view(&self) -> TableView<'_> {
        TableView::new(self.identity, &self.records).unwrap()
    }

    pub fn record(&self, index: u64) -> &[u8] {
        self.view().record(index).unwrap()
    }

    pub fn ends(&self) -> (&SchemePlan, &TableIdentity) {
        (&self.plan, &self.identity)
    }

    pub fn answers(&self, server: &dyn ErasedServer, queries: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let roles = (0..).map(Role).zip(queries);
        roles.map(|(role, query)| server.answer(role, &[query]).remove(0).unwrap()).collect()
    }

    pub fn generation(&self) -> Zeroizing<Vec<u8>> {
        let streamed = self.server.streamed().unwrap_or(&self.records);
        let digest = *blake3::hash(streamed).as_bytes();
        let mut preparation =
            preparation(&self.plan, &self.identity, digest, None, Kernels::detect()).unwrap();
        match self.plan.offline {
            OfflinePhase::Ask { role, .. } => {
                while let Some(request) = preparation.request() {
                    let reply = self.server.prepare(role, &request).unwrap();
                    preparation.absorb(preparation.next_offset(), &reply).unwrap();
                }
            }
            _ => preparation.absorb(0, streamed).unwrap(),
        }
        preparation.finish().unwrap();
        preparation.generation().unwrap()
    }
}

/// The changes alone: no query is sent again here.
impl Journal for Vec<Zeroizing<Vec<u8>>> {
    fn append_and_sync(&mut self, entries: &[JournalEntry<'_>]) -> Result<()> {
        self.extend(entries.iter().map(|entry| Zeroizing::new(entry.change.to_vec())));
        Ok(())
    }
}

/// A client of any kind, with its first state and all changes since then.
pub struct Client {
    pub client: Box<dyn ErasedClient>,
    pub begun: Option<(SchemePlan, TableIdentity, Zeroizing<Vec<u8>>)>,
    pub journal: Vec<Zeroizing<Vec<u8>>>,
    pub rng: SecretRng,
}

impl Client {
    pub fn of(version: &Version) -> Self {
        let (plan, identity) = (version.plan.clone(), version.identity);
        let (client, begun) = match plan.offline {
            OfflinePhase::StreamTable { .. }
            | OfflinePhase::StreamArranged { .. }
            | OfflinePhase::Ask { .. } => {
                let begun = (plan, identity, version.generation());
                (Self::loaded(&begun), Some(begun))
            }
            _ => {
                let part = Arc::new(version.part.clone());
                (client(plan, &identity, part, Kernels::detect()).unwrap(), None)
            }
        };
        let rng = SecretRng::from_fixed_seed([6; 32]);
        Self { client, begun, journal: Vec::new(), rng }
    }

    pub fn loaded(
        (plan, identity, generation): &(SchemePlan, TableIdentity, Zeroizing<Vec<u8>>),
    ) -> Box<dyn ErasedClient> {
        hinted_client(plan.clone(), identity, generation.clone(), Kernels::detect()).unwrap()
    }

    /// After a crash.
    pub fn replay(&mut self) {
        let Some(begun) = &self.begun else { return };
        self.client = Self::loaded(begun);
        let hints = self.client.hints().unwrap();
        self.journal.iter().for_each(|change| hints.apply(change).unwrap());
    }

    /// A lookup: the record, and the queries and answers of each server.
    pub fn look_up(
        &mut self,
        version: &Version,
        servers: &[&dyn ErasedServer],
        index: u64,
    ) -> (Record, Vec<Vec<u8>>, Vec<Vec<u8>>) {
        if self.client.hints().is_some_and(|hints| hints.supply().left() == 0) {
            *self = Self::of(version);
        }
        let index = RecordIndex::new(index, version.identity.shape).unwrap();
        let Lookup { sendable, pending } = match self.client.prepare(&index, &mut self.rng).unwrap()
        {
            Prepared::Known(record) => return (record, Vec::new(), Vec::new()),
            Prepared::Ready(lookup) => lookup,
            Prepared::Reserved(reservation) => reservation.commit(&mut self.journal).unwrap(),
        };
        let queries = sendable.queries().to_vec();
        let answers = version.answers(servers[0], &queries);
        for server in &servers[1..] {
            assert!(version.answers(*server, &queries) == answers, "servers of one version differ");
        }
        let bytes: Vec<&[u8]> = answers.iter().map(Vec::as_slice).collect();
        let record = match self.client.recover(pending, &bytes).unwrap() {
            Recovered::Record(record) => record,
            Recovered::Settled { change, record, .. } => {
                self.journal.push(change);
                record.unwrap().unwrap()
            }
        };
        (record, queries, answers)
    }

    pub fn check(&mut self, version: &Version, servers: &[&dyn ErasedServer], index: u64) {
        let (record, ..) = self.look_up(version, servers, index);
        assert_eq!(*record, version.record(index), "record {index}");
    }

    /// Moves on to `after`, with the data of its server. Returns whether the hints followed.
    pub fn follow(
        &mut self,
        before: &Version,
        after: &Version,
        changes: &TableChanges,
        commitments: Vec<u8>,
    ) -> bool {
        let Some(hints) = self.client.hints() else {
            // The download exists, patched or not.
            *self = Self::of(after);
            return true;
        };
        let delta = changes.delta().with_commitments(commitments);
        let deltas = vec![delta; before.plan.servers];
        if !hints.follows(after.identity.shape) {
            let refused = hints.apply_deltas(&before.identity, &after.identity, &deltas);
            assert_eq!(refused.err().unwrap().blame(), Blame::ApiMisuse);
            assert_eq!(hints.table(), before.identity);
            *self = Self::of(after);
            return false;
        }
        self.journal.push(hints.apply_deltas(&before.identity, &after.identity, &deltas).unwrap());
        assert_eq!(hints.table(), after.identity);
        let twice = hints.apply_deltas(&before.identity, &after.identity, &deltas);
        assert_eq!(twice.err().unwrap().blame(), Blame::ApiMisuse);
        true
    }
}

/// A history of a table: how many records are edited in each version, and how many added.
pub fn through_versions(
    scheme: SchemeId,
    (records, record_len): (u64, u64),
    tuning: &Tuning,
    history: &[(u64, u64)],
    has_successors: bool,
) {
    let mut rng = SecretRng::from_fixed_seed([7; 32]);
    let mut version = Version::first(scheme, records, record_len, tuning);
    let mut client = Client::of(&version);
    for (edits, more) in history {
        let (index, server) = (rng.below(version.identity.shape.records()), &*version.server);
        let (_, queries, answers) = client.look_up(&version, &[server], index);
        let (mut next, changes) = version.changed(*edits, *more, tuning, &mut rng);

        let successor =
            version.server.successor(&next.plan, next.view().into(), &changes, options()).unwrap();
        // Packed SimplePIR packs a table anew that has more columns: its queries are longer then.
        let same = next.plan.parameters == version.plan.parameters
            && (scheme != SchemeId::SimplePirPacked
                || next.plan.query_lens == version.plan.query_lens);
        assert_eq!(successor.is_some(), has_successors && same, "{scheme}");
        // The server before answers as before.
        assert!(version.answers(&*version.server, &queries) == answers);
        client.check(&version, &[&*version.server], index);

        if patches_downloads(version.ends(), next.ends()) {
            let (mut patched, mut longest) = (Vec::new(), 0);
            let mut sink = |piece: &[u8]| {
                longest = longest.max(piece.len());
                patched.extend_from_slice(piece);
                Ok(())
            };
            let part = &version.part;
            let kernels = Kernels::detect();
            patch_downloaded(version.ends(), next.ends(), &changes, part, &mut sink, kernels)
                .unwrap();
            assert!(longest <= 1 << 20);
            assert!(patched == next.part, "{scheme}: another part than a fresh one");
            next.part = patched;
        }

        let (successor, commitments) =
            successor.map_or((None, Vec::new()), |made| (Some(made.server), made.commitments));
        if let Some(successor) = &successor {
            assert_eq!(successor.plan(), &next.plan);
            assert_eq!(successor.streamed(), next.server.streamed());
            assert_eq!(successor.announced(), next.server.announced());
            // Whoever makes a successor has its clients' download from it.
            if let OfflinePhase::Download { .. } = next.plan.offline {
                assert!(successor.announced() == Some(&next.part[..]));
            }
        }
        if client.follow(&version, &next, &changes, commitments) {
            assert_eq!(client.client.plan(), &next.plan);
        }
        let mut servers = vec![&*next.server];
        servers.extend(successor.as_deref());
        let changed = changes.records().map(|(index, ..)| index).take(2).collect::<Vec<_>>();
        for index in changed.into_iter().chain([0, next.identity.shape.records() - 1]) {
            client.check(&next, &servers, index);
        }
        client.replay();
        assert_eq!(client.client.plan(), &next.plan);
        client.check(&next, &servers, rng.below(next.identity.shape.records()));
        // It goes on from the server that was made.
        if let Some(successor) = successor {
            next.server = successor;
        }
        version = next;
    }
}

pub fn no_coins_of_a_lookup_can_be_computed_afterwards(scheme: SchemeId, tuning: &Tuning) {
    let version = Version::first(scheme, 60, 3, tuning);
    let words = |rng: &SecretRng, count| {
        let mut words = vec![0; count];
        rng.wound_to(0).fill_words(&mut words);
        words
    };
    let computes = |rng: SecretRng| {
        // They are drawn under a new key, which is output of the old one and of nobody else.
        let mut key = [0; 32];
        rng.wound_to(0).fill(&mut key);
        let coins = [words(&rng, 200), words(&SecretRng::from_fixed_seed(key), 200)].concat();
        let mut client = Client::of(&version);
        client.rng = rng;
        client.check(&version, &[&*version.server], 7);
        let computed = words(&client.rng, 5000);
        computed.windows(4).any(|some| coins.windows(4).any(|coins| coins == some))
    };
    let rng = || SecretRng::from_fixed_seed([8; 32]);
    // A client that holds the table draws no random numbers.
    let draws = !matches!(version.plan.offline, OfflinePhase::KeepTable { .. });
    assert_eq!(computes(rng()), !draws, "{scheme}");
    let _planted = plant(Flaw::KeyStays);
    assert!(computes(rng()), "{scheme}: the planted leak is found");
}

/// With answers of zeros, which are wrong for all of these tables. A scheme that asks nobody has no
/// rehearsal.
pub fn a_scheme_that_asks_is_rehearsed(scheme: SchemeId, records: u64, tuning: &Tuning) {
    let version = Version::first(scheme, records, 3, tuning);
    let Some(mut rehearsal) = Client::of(&version).client.into_rehearsal() else {
        assert_eq!(scheme, SchemeId::Download);
        return;
    };
    let mut rng = SecretRng::from_fixed_seed([3; 32]);
    let zeros = vec![0; version.plan.answer_len];
    let answers = vec![&zeros[..]; version.plan.servers];
    for lookup in 0..40u64 {
        let index = RecordIndex::new(lookup % records, version.identity.shape).unwrap();
        match rehearsal.prepare(&index, &mut rng) {
            Err(error) if lookup > 0 && error.blame() == Blame::Exhausted => break,
            prepared => prepared.unwrap(),
        }
        // A scheme that verifies goes on all the same.
        if let Err(error) = rehearsal.recover(&answers) {
            assert_eq!(error.blame(), Blame::Integrity, "{scheme}: {error}");
        }
        // Answers can be read only once.
        assert!(rehearsal.recover(&answers).is_err(), "{scheme}");
    }
}

pub fn successors_are_of_the_same_scheme_and_of_the_changed_table(
    scheme: SchemeId,
    has_successors: bool,
) {
    let tuning = Tuning::default();
    let mut rng = SecretRng::from_fixed_seed([9; 32]);
    let version = Version::first(scheme, 60, 3, &tuning);
    let (next, changes) = version.changed(3, 1, &tuning, &mut rng);
    let refusal = |plan: &SchemePlan, table: TableView<'_>, changes: &TableChanges| {
        let refused = version.server.successor(plan, table.into(), changes, options());
        assert_eq!(refused.err().unwrap().blame(), Blame::ApiMisuse, "{scheme}");
    };
    let other = plan(SchemeId::ApirDpf, &next.identity, &tuning).unwrap();
    refusal(&other, next.view(), &changes);
    refusal(&next.plan, version.view(), &changes);
    if has_successors {
        // From another table.
        refusal(&next.plan, next.view(), &TableChanges::none(next.identity.shape));
    }
}
