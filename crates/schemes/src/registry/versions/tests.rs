//! Every scheme goes through versions of a table. In each version, servers, downloads and hints are
//! the same as after a fresh start with it.

mod rehearsals;

use super::*;
use crate::SchemeId;
use crate::contract::{Record, Role};
use crate::offline::OfflinePhase;
use crate::registry::{
    ErasedClient, ErasedServer, PARTITION_RECORDS, Recovered, ServerOptions, client, hinted_client,
    plan, preparation, setup, setup_as,
};
use crate::reservation::{Journal, JournalEntry, Lookup, Prepared};
use crate::simplepir_packed::MASKS_ON_DEMAND;
use crate::tapir::tests::reference_string;
use crate::tapir::{PRECOMPUTE_OPENINGS, REFERENCE_STRING};
use crate::test_tables::{changed, identity, public_bytes};
use privet_core::{
    Blame, Epoch, RecordIndex, SecretRng, TableDelta, TableDigest, TableId, TableShape, TableView,
};
use proptest::prelude::*;
use std::sync::Arc;
use zeroize::Zeroizing;

fn options() -> ServerOptions {
    ServerOptions { kernels: Kernels::detect(), threads: 2 }
}

/// A table in one version, with its server.
struct Version {
    identity: TableIdentity,
    records: Vec<u8>,
    plan: SchemePlan,
    server: Box<dyn ErasedServer>,
    /// What clients download: a hint, or the table.
    part: Vec<u8>,
}

impl Version {
    fn first(scheme: SchemeId, records: u64, record_len: u64, tuning: &Tuning) -> Self {
        let identity = identity(records, record_len);
        let plan = plan(scheme, &identity, tuning).unwrap();
        let bytes = public_bytes("a table", identity.shape.bytes() as usize);
        Self::started(plan, identity, bytes, tuning)
    }

    /// From the table.
    fn started(
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
    fn changed(
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

    fn view(&self) -> TableView<'_> {
        TableView::new(self.identity, &self.records).unwrap()
    }

    fn record(&self, index: u64) -> &[u8] {
        self.view().record(index).unwrap()
    }

    fn ends(&self) -> (&SchemePlan, &TableIdentity) {
        (&self.plan, &self.identity)
    }

    fn answers(&self, server: &dyn ErasedServer, queries: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let roles = (0..).map(Role).zip(queries);
        roles.map(|(role, query)| server.answer(role, &[query]).remove(0).unwrap()).collect()
    }

    fn generation(&self) -> Zeroizing<Vec<u8>> {
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
struct Client {
    client: Box<dyn ErasedClient>,
    begun: Option<(SchemePlan, TableIdentity, Zeroizing<Vec<u8>>)>,
    journal: Vec<Zeroizing<Vec<u8>>>,
    rng: SecretRng,
}

impl Client {
    fn of(version: &Version) -> Self {
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

    fn loaded(
        (plan, identity, generation): &(SchemePlan, TableIdentity, Zeroizing<Vec<u8>>),
    ) -> Box<dyn ErasedClient> {
        hinted_client(plan.clone(), identity, generation.clone(), Kernels::detect()).unwrap()
    }

    /// After a crash.
    fn replay(&mut self) {
        let Some(begun) = &self.begun else { return };
        self.client = Self::loaded(begun);
        let hints = self.client.hints().unwrap();
        self.journal.iter().for_each(|change| hints.apply(change).unwrap());
    }

    /// A lookup: the record, and the queries and answers of each server.
    fn look_up(
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

    fn check(&mut self, version: &Version, servers: &[&dyn ErasedServer], index: u64) {
        let (record, ..) = self.look_up(version, servers, index);
        assert_eq!(*record, version.record(index), "record {index}");
    }

    /// Moves on to `after`, with the data of its server. Returns whether the hints followed.
    fn follow(
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

/// Whether a scheme's servers make successors, and so must do so here.
fn has_successors(scheme: SchemeId) -> bool {
    matches!(
        scheme,
        SchemeId::TapirMerkle
            | SchemeId::TapirPointproofs
            | SchemeId::FiniteDifferences
            | SchemeId::FiniteDifferencesMany
            | SchemeId::Download
            | SchemeId::SimplePirPacked
    )
}

fn tuning(scheme: SchemeId, partition_records: Option<u64>) -> Tuning {
    let needs_one = scheme == SchemeId::TapirPointproofs;
    let reference_string = needs_one.then(|| Arc::clone(reference_string()));
    let tuning = Tuning::default().with_some(&REFERENCE_STRING, reference_string);
    tuning.with_some(&PARTITION_RECORDS, partition_records)
}

/// A history of a table: how many records are edited in each version, and how many added.
fn through_versions(
    scheme: SchemeId,
    (records, record_len): (u64, u64),
    tuning: &Tuning,
    history: &[(u64, u64)],
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
        assert_eq!(successor.is_some(), has_successors(scheme) && same, "{scheme}");
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn every_scheme_goes_through_versions(
        records in 1u64..150,
        record_len in 1u64..9,
        cut in any::<bool>(),
        history in prop::collection::vec((0u64..9, 0u64..12), 1..4),
    ) {
        for scheme in SchemeId::ALL {
            if *scheme != SchemeId::TapirPointproofs {
                let cuts = plan(*scheme, &identity(records, record_len), &tuning(*scheme, Some(8)));
                let tuning = tuning(*scheme, (cut && cuts.is_ok()).then_some(8));
                through_versions(*scheme, (records, record_len), &tuning, &history);
            }
        }
    }

    /// Long records lie in several pieces.
    #[test]
    fn what_was_downloaded_is_patched_across_pieces(
        records in 1u64..12,
        record_len in 200u64..900,
        history in prop::collection::vec((0u64..4, 0u64..3), 1..4),
    ) {
        let tuning = Tuning::default();
        through_versions(SchemeId::SimplePir, (records, record_len), &tuning, &history);
        through_versions(SchemeId::Download, (records, 1000 * record_len), &tuning, &history);
    }
}

#[test]
fn the_coins_of_a_lookup_cannot_be_computed_afterwards() {
    for scheme in SchemeId::ALL {
        let tuning = tuning(*scheme, None);
        let version = Version::first(*scheme, 60, 3, &tuning);
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
        assert!(computes(rng().keeping_its_key()), "{scheme}: the planted leak is found");
    }
}

/// With edits, and with enough more records for another column.
#[test]
fn masks_on_demand_go_through_versions() {
    let scheme = SchemeId::SimplePirPacked;
    let tuning = tuning(scheme, None).with_flag(&MASKS_ON_DEMAND, true);
    through_versions(scheme, (60, 9), &tuning, &[(3, 0), (1, 70)]);
    // And no other scheme has them.
    for other in SchemeId::ALL.iter().filter(|other| **other != scheme) {
        let refused = plan(*other, &identity(60, 9), &tuning).err().unwrap();
        assert_eq!(refused.blame(), Blame::ApiMisuse, "{other}");
        assert!(refused.message().contains("masks-on-demand"), "{refused}");
    }
}

#[test]
fn pointproofs_go_through_versions() {
    for precompute_openings in [false, true] {
        let tuning = tuning(SchemeId::TapirPointproofs, Some(4));
        let tuning = tuning.with_flag(&PRECOMPUTE_OPENINGS, precompute_openings);
        let history = [(2, 0), (1, 2), (0, 9)];
        through_versions(SchemeId::TapirPointproofs, (13, 5), &tuning, &history);
    }
}

/// Schemes whose partitions have room for more records: a table of 61 in partitions of 8.
const WITH_ROOM: [SchemeId; 3] =
    [SchemeId::DummySubsets, SchemeId::DummySubsetsTwo, SchemeId::SinglePass];

#[test]
fn hints_follow_growth_that_the_last_partition_has_room_for() {
    for scheme in WITH_ROOM {
        let tuning = tuning(scheme, Some(8));
        let mut rng = SecretRng::from_fixed_seed([8; 32]);
        let version = Version::first(scheme, 61, 3, &tuning);
        for (more, follows) in [(0, true), (3, true), (4, false)] {
            let (next, changes) = version.changed(5, more, &tuning, &mut rng);
            let mut client = Client::of(&version);
            assert_eq!(client.follow(&version, &next, &changes, Vec::new()), follows, "{scheme}");
            for index in 0..next.identity.shape.records() {
                client.check(&next, &[&*next.server], index);
            }
        }
    }
    for (scheme, partition) in [
        (SchemeId::Piano, Some(8)),
        (SchemeId::PianoAllParities, Some(8)),
        (SchemeId::Harmony, None),
    ] {
        let tuning = tuning(scheme, partition);
        let mut rng = SecretRng::from_fixed_seed([8; 32]);
        let version = Version::first(scheme, 61, 3, &tuning);
        let (next, changes) = version.changed(0, 1, &tuning, &mut rng);
        let mut client = Client::of(&version);
        assert!(!client.follow(&version, &next, &changes, Vec::new()), "{scheme}");
    }
}

#[test]
fn edits_in_the_journal_follow_each_other() {
    for scheme in WITH_ROOM {
        let tuning = tuning(scheme, Some(8));
        let mut rng = SecretRng::from_fixed_seed([9; 32]);
        let first = Version::first(scheme, 60, 3, &tuning);
        let (second, changes) = first.changed(3, 1, &tuning, &mut rng);
        let (third, more_changes) = second.changed(3, 1, &tuning, &mut rng);
        let mut client = Client::of(&first);
        client.follow(&first, &second, &changes, Vec::new());
        client.follow(&second, &third, &more_changes, Vec::new());
        let [one, two] = &client.journal[..] else { panic!("two steps were taken") };

        let mut again = Client::loaded(client.begun.as_ref().unwrap());
        let hints = again.hints().unwrap();
        let refused =
            |result: Result<()>| assert_eq!(result.unwrap_err().blame(), Blame::Corrupted);
        refused(hints.apply(two));
        hints.apply(one).unwrap();
        refused(hints.apply(one));
        assert_eq!(hints.table(), second.identity);
        for cut in 1..two.len() {
            refused(hints.apply(&two[..cut]));
        }
        // Where it begins.
        for at in 1..41 {
            let mut other = two.clone();
            other[at] ^= 0x80;
            refused(hints.apply(&other));
        }
        hints.apply(two).unwrap();
        assert_eq!(hints.table(), third.identity);
    }
}

#[test]
fn edits_that_do_not_begin_where_hints_stand_are_refused() {
    let tuning = tuning(SchemeId::DummySubsets, Some(8));
    let mut rng = SecretRng::from_fixed_seed([9; 32]);
    let version = Version::first(SchemeId::DummySubsets, 60, 3, &tuning);
    let (next, changes) = version.changed(3, 1, &tuning, &mut rng);
    let mut client = Client::of(&version);
    let hints = client.client.hints().unwrap();
    let deltas = [changes.delta()];
    let (before, after) = (version.identity, next.identity);
    let mut others = Vec::new();
    for wrong in [
        TableIdentity { epoch: Epoch(1), ..before },
        TableIdentity { digest: after.digest, ..before },
        TableIdentity { id: TableId([1; 16]), ..before },
        TableIdentity { shape: after.shape, ..before },
    ] {
        others.push((wrong, after, &deltas));
    }
    let of_other_shape = [TableDelta::new(before.shape, Vec::new()).unwrap()];
    for wrong in [
        TableIdentity { epoch: before.epoch, ..after },
        TableIdentity { id: TableId([1; 16]), ..after },
    ] {
        others.push((before, wrong, &deltas));
    }
    others.push((before, after, &of_other_shape));
    for (before, after, deltas) in others {
        let refused = hints.apply_deltas(&before, &after, deltas).err().unwrap();
        assert_eq!(refused.blame(), Blame::ApiMisuse);
        assert_eq!(hints.table(), version.identity);
    }
    hints.apply_deltas(&before, &after, &deltas).unwrap();
}

#[test]
fn parts_that_cannot_be_patched_are_refused() {
    let nothing = TableChanges::none(identity(1000, 4).shape);
    let refusal = |before: (&SchemePlan, &TableIdentity),
                   after: (&SchemePlan, &TableIdentity),
                   part: Vec<u8>| {
        let mut sink = |_: &[u8]| Ok(());
        patch_downloaded(before, after, &nothing, &part, &mut sink, Kernels::detect())
            .unwrap_err()
            .blame()
    };
    let identity = identity(1000, 4);
    let planned = |scheme| plan(scheme, &identity, &Tuning::default()).unwrap();
    for scheme in [SchemeId::DoublePir, SchemeId::ApirMatrix, SchemeId::Dpf, SchemeId::Piano] {
        let plan = planned(scheme);
        let ends = (&plan, &identity);
        assert!(!patches_downloads(ends, ends));
        assert_eq!(refusal(ends, ends, Vec::new()), Blame::ApiMisuse, "{scheme}");
    }
    // Another cut.
    let before = planned(SchemeId::SimplePir);
    let fewer =
        SchemePlan::from_announcement(SchemeId::SimplePir, &identity, &1u64.to_le_bytes()).unwrap();
    let (ends, others) = ((&before, &identity), (&fewer, &identity));
    assert!(patches_downloads(ends, ends) && !patches_downloads(ends, others));
    assert_eq!(refusal(ends, others, Vec::new()), Blame::ApiMisuse);
    // Another length, and another table.
    assert_eq!(refusal(ends, ends, vec![0; 4096]), Blame::Corrupted);
    let other = TableIdentity { id: TableId([1; 16]), ..identity };
    assert!(!patches_downloads(ends, (&before, &other)));
    let download = planned(SchemeId::Download);
    assert_eq!(
        refusal((&download, &identity), (&download, &identity), vec![0; 3]),
        Blame::Corrupted
    );
}

#[test]
fn a_plan_stays_as_long_as_it_suits() {
    let (small, large) = (identity(1000, 4), identity(1_000_000, 4));
    for scheme in SchemeId::ALL {
        let tuning = tuning(*scheme, (*scheme == SchemeId::TapirPointproofs).then_some(16));
        let before = plan(*scheme, &small, &tuning).unwrap();
        let grown = identity(1001, 4);
        let next = plan_next(&before, &grown, &tuning).unwrap();
        assert_eq!(next.parameters, before.parameters, "{scheme}");
    }
    // Of 1000 records a polynomial has too few variables for a million.
    let tuning = Tuning::default();
    let before = plan(SchemeId::FiniteDifferences, &small, &tuning).unwrap();
    let next = plan_next(&before, &large, &tuning).unwrap();
    assert_eq!(next, plan(SchemeId::FiniteDifferences, &large, &tuning).unwrap());
    // A server that starts with it has the same.
    let before = plan(SchemeId::SimplePir, &small, &tuning).unwrap();
    let other = identity(2000, 4);
    let next = plan_next(&before, &other, &tuning).unwrap();
    assert_ne!(next, plan(SchemeId::SimplePir, &other, &tuning).unwrap());
    let records = vec![0; 8000];
    let view = TableView::new(other, &records).unwrap();
    let started = setup_as(next.clone(), view, &tuning, options()).unwrap();
    assert_eq!(started.plan(), &next);
    assert_ne!(setup(SchemeId::SimplePir, view, &tuning, options()).unwrap().plan(), &next);
}

#[test]
fn a_successor_is_of_the_same_scheme_and_of_the_changed_table() {
    let tuning = Tuning::default();
    let mut rng = SecretRng::from_fixed_seed([9; 32]);
    for scheme in [SchemeId::TapirMerkle, SchemeId::FiniteDifferences, SchemeId::Dpf] {
        let version = Version::first(scheme, 60, 3, &tuning);
        let (next, changes) = version.changed(3, 1, &tuning, &mut rng);
        let refusal = |plan: &SchemePlan, table: TableView<'_>, changes: &TableChanges| {
            let refused = version.server.successor(plan, table.into(), changes, options());
            assert_eq!(refused.err().unwrap().blame(), Blame::ApiMisuse, "{scheme}");
        };
        let other = plan(SchemeId::ApirDpf, &next.identity, &tuning).unwrap();
        refusal(&other, next.view(), &changes);
        refusal(&next.plan, version.view(), &changes);
        if has_successors(scheme) {
            // From another table.
            refusal(&next.plan, next.view(), &TableChanges::none(next.identity.shape));
        }
    }
}
