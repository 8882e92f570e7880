//! The client's computations with secrets before it sends a query.

use super::{Case, mark_key, secret, secret_coins, send};
use privet_core::permutation::Permutation;
use privet_core::{
    Epoch, PublicSeed, RecordIndex, TableDigest, TableId, TableIdentity, TableShape, TableView,
};
use privet_kernels::{Arm, Kernels, taint};
use privet_laboratory::combinations::FixedWeight;
use privet_schemes::SchemeId;
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::{self, SchemePlan, ServerOptions, Tuning};
use privet_schemes::reservation::{Journal, JournalEntry, Prepared, Receipt};
use privet_schemes::simplepir_packed::MASKS_ON_DEMAND;
use privet_table::key_map::{KeyMapKind, PackOptions, pack_with};
use std::sync::Arc;
use zeroize::Zeroizing;

pub(crate) const CASES: &[Case] = &[
    Case::clean("query of simplepir: LWE", || queries(SchemeId::SimplePir)),
    Case::clean("query of simplepir-packed: ring LWE", || queries(SchemeId::SimplePirPacked)),
    Case::clean("query of simplepir-packed: masks on demand", || {
        queries_tuned(
            SchemeId::SimplePirPacked,
            &Tuning::default().with_flag(&MASKS_ON_DEMAND, true),
        );
    }),
    Case::clean("query of doublepir: LWE, twice", || queries(SchemeId::DoublePir)),
    Case::clean("query of dpf: DPF keys", || queries(SchemeId::Dpf)),
    Case::clean("query of apir-dpf: DPF keys with a payload", || queries(SchemeId::ApirDpf)),
    Case::clean("query of apir-matrix: a hidden row", || queries(SchemeId::ApirMatrix)),
    Case::clean("query of finite-differences", || queries(privet_laboratory::FINITE_DIFFERENCES)),
    Case::clean("query of finite-differences-many", || {
        queries(privet_laboratory::FINITE_DIFFERENCES_MANY);
    }),
    Case::clean("reservations of dummy-subsets: search, exchange", || {
        reservations(SchemeId::DummySubsets);
    }),
    Case::clean("reservations of dummy-subsets-two: search, exchange", || {
        reservations(SchemeId::DummySubsetsTwo);
    }),
    Case::clean("reservations of harmony: draw, replacement", || {
        reservations(SchemeId::Harmony);
    }),
    Case::clean("reservations of piano: shuffle, search, exchange", || {
        reservations(SchemeId::Piano);
    }),
    Case::clean("reservations of piano-all-parities: the same", || {
        reservations(SchemeId::PianoAllParities);
    }),
    Case::clean("from an index to its place in a shuffled table", permutation),
    Case::clean("from an index to its word of fixed weight", word_of_fixed_weight),
    Case::clean("from a key to its records: buckets", || keys(KeyMapKind::Buckets, 1)),
    Case::clean("from a key to its records: cuckoo", || keys(KeyMapKind::Cuckoo, 1)),
    Case::clean("from a key to its records: cuckoo, 4 parts", || keys(KeyMapKind::Cuckoo, 4)),
];

/// Not a power of two, nor a multiple of a large one: no easy case.
const RECORDS: u64 = 3001;

fn kernels() -> Kernels {
    Kernels::with_arm(Arm::Avx2).expect("valgrind shows a processor with AVX2")
}

fn shape(record_len: u64) -> TableShape {
    TableShape::new(RECORDS, record_len).unwrap()
}

fn identity(shape: TableShape) -> TableIdentity {
    TableIdentity { id: TableId([7; 16]), epoch: Epoch(1), digest: TableDigest([8; 32]), shape }
}

fn secret_index(shape: TableShape, index: u64) -> RecordIndex {
    RecordIndex::new(secret(index), shape).unwrap()
}

/// Queries of a scheme without state, up to their bytes.
fn queries(scheme: SchemeId) {
    privet_laboratory::register();
    queries_tuned(scheme, &Tuning::default());
}

/// The same with choices.
fn queries_tuned(scheme: SchemeId, tuning: &Tuning) {
    let shape = shape(16);
    queries_as(scheme, tuning, |index| secret_index(shape, index));
}

/// The same for indices as `index_of` makes them of numbers.
pub(crate) fn queries_for(scheme: SchemeId, index_of: impl Fn(u64) -> RecordIndex) {
    queries_as(scheme, &Tuning::default(), index_of);
}

fn queries_as(scheme: SchemeId, tuning: &Tuning, index_of: impl Fn(u64) -> RecordIndex) {
    let identity = identity(shape(16));
    let plan = registry::plan(scheme, &identity, tuning).unwrap();
    let hint = Arc::new(vec![5u8; plan.offline.len() as usize]);
    let mut client = registry::client(plan, &identity, hint, kernels()).unwrap();
    let mut coins = secret_coins();
    for index in [0, 1234, RECORDS - 1] {
        let index = index_of(index);
        let Prepared::Ready(lookup) = client.prepare(&index, &mut coins).unwrap() else {
            unreachable!("a scheme without state");
        };
        // One of two servers may get only coins.
        let queries: Vec<&[u8]> =
            lookup.sendable.queries().iter().map(|query| &query[..]).collect();
        send(&queries.concat());
    }
}

/// Reservations of a scheme with single-use hints, up to their journal records: the search for a
/// hint, the query through it, and the exchange for another. Some ask for the same record again.
fn reservations(scheme: SchemeId) {
    let identity = identity(shape(16));
    let plan = registry::plan(scheme, &identity, &Tuning::default()).unwrap();
    let mut generation = generation(&plan, &identity);
    // The key of the pseudorandom function or of the permutation, behind the version. (With two
    // servers the first one is told it, and the cutoffs of coming hints, whose addresses do follow
    // from it, are computed every few lookups, whatever these are for.)
    match scheme {
        SchemeId::DummySubsetsTwo => {}
        SchemeId::Harmony => mark_key(&mut generation[4..36]),
        _ => mark_key(&mut generation[4..20]),
    }
    let mut client = registry::hinted_client(plan, &identity, generation, kernels()).unwrap();
    let mut coins = secret_coins();
    for index in [1234, 77, 1234, 1234, 0, RECORDS - 1, 77, 1234, 5, 6, 7, 1234] {
        let index = secret_index(identity.shape, index);
        let Prepared::Reserved(reservation) = client.prepare(&index, &mut coins).unwrap() else {
            unreachable!("a scheme with single-use hints");
        };
        Receipt::append(&mut Sent, reservation.record()).unwrap();
    }
}

/// A journal whose records count as sent.
struct Sent;

impl Journal for Sent {
    fn append_and_sync(&mut self, entries: &[JournalEntry<'_>]) -> privet_core::Result<()> {
        entries.iter().for_each(|entry| send(entry.record));
        Ok(())
    }
}

/// Hints, made before anything is secret.
fn generation(plan: &SchemePlan, identity: &TableIdentity) -> Zeroizing<Vec<u8>> {
    let table = vec![5u8; identity.shape.bytes() as usize];
    if let OfflinePhase::Ask { role, .. } = plan.offline {
        let view = TableView::new(*identity, &table).unwrap();
        let options = ServerOptions { kernels: kernels(), threads: 1 };
        let setup = registry::setup_as(plan.clone(), view, &Tuning::default(), options).unwrap();
        let server = setup.finish(&[], &|_| ()).unwrap();
        let mut hints = registry::preparation(plan, identity, [0; 32], None, kernels()).unwrap();
        while let Some(request) = hints.request() {
            let reply = server.prepare(role, &request).unwrap();
            hints.absorb(hints.next_offset(), &reply).unwrap();
        }
        hints.finish().unwrap();
        return hints.generation().unwrap();
    }
    let stream = vec![5u8; plan.offline.len() as usize];
    let digest = *blake3::hash(&stream).as_bytes();
    let mut hints = registry::preparation(plan, identity, digest, None, kernels()).unwrap();
    hints.absorb(0, &stream).unwrap();
    hints.finish().unwrap();
    hints.generation().unwrap()
}

fn permutation() {
    for domain in [RECORDS, 1 << 20] {
        let permutation = Permutation::new(domain, &PublicSeed::from_bytes([3; 32]));
        let index = secret_index(TableShape::new(domain, 1).unwrap(), 1234);
        send(&permutation.position(&index).to_le_bytes());
    }
}

fn word_of_fixed_weight() {
    let words = FixedWeight::new(20, 7).unwrap();
    let shape = TableShape::new(words.count(), 1).unwrap();
    for index in [0, 1234, words.count() - 1] {
        send(&words.secret_word(&secret_index(shape, index)).to_le_bytes());
    }
}

/// The candidates of keys that are there and of one that is not, in tables with an odd and with an
/// even number of records.
fn keys(kind: KeyMapKind, parts: u8) {
    for pairs in [900, 1000, 1100, 1200] {
        let pairs: Vec<(String, Vec<u8>)> =
            (0..pairs).map(|number| (format!("key {number}"), vec![1; 40])).collect();
        let options = PackOptions { kind, parts: Some(parts), ..PackOptions::default() };
        let packed =
            pack_with(&options, pairs.as_slice(), PublicSeed::from_bytes([3; 32])).unwrap();
        let key_map = packed.key_map();
        for key in ["key 0", "key 77", "another key, which is longer and is not in the table"] {
            let mut key = key.as_bytes().to_vec();
            taint::mark_secret(key.as_mut_slice());
            for candidate in key_map.candidates(&key) {
                let index = RecordIndex::new(candidate, key_map.shape()).unwrap();
                send(&index.expose().to_le_bytes());
            }
        }
    }
}
