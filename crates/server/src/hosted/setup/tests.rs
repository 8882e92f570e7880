use super::*;
use privet_core::{Blame, Epoch, TableDigest, TableId, TableShape, TableSource};
use privet_kernels::Kernels;
use privet_kernels::memory::HugeBuffer;
use privet_schemes::SchemeId;
use privet_schemes::contract::Role;
use privet_schemes::offline::PublicWords;
use privet_schemes::registry::{self, SchemePlan, ServerOptions};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

fn identity(records: u64, record_len: u64) -> TableIdentity {
    TableIdentity {
        id: TableId([3; 16]),
        epoch: Epoch(1),
        digest: TableDigest([4; 32]),
        shape: TableShape::new(records, record_len).unwrap(),
    }
}

fn simplepir(identity: TableIdentity) -> Box<dyn ErasedSetup> {
    let records: Vec<u8> = (0..identity.shape.bytes()).map(|number| (number * 31) as u8).collect();
    let options = ServerOptions { kernels: Kernels::detect(), threads: 1 };
    registry::setup(
        SchemeId::SimplePir,
        TableSource::new(identity, &records).unwrap(),
        &registry::Tuning::default(),
        options,
    )
    .unwrap()
}

/// A setup whose results are given. Its server answers every query with the data that it was
/// finished with.
struct Given {
    plan: SchemePlan,
    hint: Vec<u32>,
    kept: Vec<u32>,
    /// What the server lends to clients from its memory.
    streamed: Option<Vec<u8>>,
    computed: Arc<AtomicU32>,
}

struct GivenServer {
    plan: SchemePlan,
    kept: Vec<u8>,
    streamed: Option<Vec<u8>>,
}

fn words(words: &[u32]) -> PublicWords {
    let mut buffer = HugeBuffer::new_zeroed(words.len()).unwrap();
    buffer.copy_from_slice(words);
    PublicWords::new(buffer)
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

impl ErasedSetup for Given {
    fn plan(&self) -> &SchemePlan {
        &self.plan
    }

    fn kept_len(&self) -> u64 {
        4 * self.kept.len() as u64
    }

    fn precompute(&self, progress: &(dyn Fn(f64) + Sync)) -> Result<Precomputed> {
        self.computed.fetch_add(1, Ordering::SeqCst);
        progress(1.0);
        Ok(Precomputed { hint: words(&self.hint), kept: words(&self.kept) })
    }

    fn finish(
        self: Box<Self>,
        kept: &[u8],
        _progress: &(dyn Fn(f64) + Sync),
    ) -> Result<Box<dyn ErasedServer>> {
        Ok(Box::new(GivenServer { plan: self.plan, kept: kept.to_vec(), streamed: self.streamed }))
    }
}

impl ErasedServer for GivenServer {
    fn plan(&self) -> &SchemePlan {
        &self.plan
    }

    fn answer(&self, _role: Role, queries: &[&[u8]]) -> Vec<Result<Vec<u8>>> {
        queries.iter().map(|_| Ok(self.kept.clone())).collect()
    }

    fn prepare(&self, _role: Role, _request: &[u8]) -> Result<Vec<u8>> {
        Err(Error::invalid_message("there is nothing to prepare here"))
    }

    fn streamed(&self) -> Option<&[u8]> {
        self.streamed.as_deref()
    }

    fn shares_passes(&self) -> bool {
        true
    }

    fn resident_bytes(&self) -> u64 {
        self.kept.len() as u64
    }

    fn huge_page_bytes(&self) -> Option<u64> {
        None
    }

    fn held(&self) -> Vec<&[u8]> {
        vec![&self.kept]
    }

    fn check_held(&self) -> Result<()> {
        Ok(())
    }
}

/// Setups of one scheme, one for each life of its server.
struct Lives {
    plan: SchemePlan,
    hint: Vec<u32>,
    kept: Vec<u32>,
    identity: TableIdentity,
}

impl Lives {
    /// A scheme with a hint and a part that the server keeps, of `hint` and `kept` words.
    fn new(hint: u32, kept: u32) -> Self {
        let identity = identity(40, 3);
        let plan = simplepir(identity).plan().clone();
        let offline = match hint {
            0 => OfflinePhase::Nothing,
            _ => OfflinePhase::Download { len: 4 * u64::from(hint) },
        };
        let plan = SchemePlan { offline, ..plan };
        let numbers = |count: u32, factor: u32| (1..=count).map(|word| word * factor).collect();
        Self { plan, hint: numbers(hint, 0x0101_0007), kept: numbers(kept, 0x0700_0b01), identity }
    }

    /// Starts once. Checks that the server has its part and clients find their hint. Returns where
    /// the hint came from and how often it was computed.
    fn start(&self, cache: Option<&HintCache>) -> (HintOrigin, u32) {
        let computed = Arc::new(AtomicU32::new(0));
        let setup = Given {
            plan: self.plan.clone(),
            hint: self.hint.clone(),
            kept: self.kept.clone(),
            streamed: None,
            computed: Arc::clone(&computed),
        };
        let heard = AtomicU32::new(0);
        let progress = |_| {
            heard.fetch_add(1, Ordering::SeqCst);
        };
        let finished =
            finish("test", Box::new(setup), &self.identity, cache, Former::None, &progress)
                .unwrap();
        let computed = computed.load(Ordering::SeqCst);
        assert_eq!(heard.load(Ordering::SeqCst), computed, "progress is that of computing");
        let found = finished.server.answer(Role(0), &[&[]]).remove(0).unwrap();
        assert_eq!(found, bytes(&self.kept));
        assert_eq!(finished.hint.is_some(), !self.hint.is_empty());
        if let Some(hint) = finished.hint {
            assert_eq!(hint.part.copy(0, usize::MAX).unwrap(), bytes(&self.hint));
            assert_eq!(hint.digest, *blake3::hash(&bytes(&self.hint)).as_bytes());
            // It is held in memory only while no file has it.
            let on_disk = matches!(hint.part, Part::Cached(_));
            assert_eq!(hint.part.memory(), if on_disk { 0 } else { hint.part.len() });
            assert!(on_disk || computed == 1);
        }
        (finished.origin, computed)
    }

    fn entry(&self, cache: &HintCache) -> PathBuf {
        cache.path(&CacheKey::new(&self.plan, &self.identity))
    }
}

fn entries(dir: &Path) -> usize {
    fs::read_dir(dir).unwrap().count()
}

#[test]
fn a_scheme_that_precomputes_nothing_has_no_entry_and_hears_of_no_progress() {
    let dir = tempfile::tempdir().unwrap();
    let cache = HintCache::open(dir.path()).unwrap();
    for cache in [None, Some(&cache)] {
        assert_eq!(Lives::new(0, 0).start(cache), (HintOrigin::None, 0));
    }
    assert_eq!(entries(dir.path()), 0);
}

#[test]
fn whatever_is_precomputed_is_computed_once_and_again_only_when_its_entry_is_damaged() {
    for (hint, kept) in [(50, 0), (50, 30), (0, 30)] {
        let dir = tempfile::tempdir().unwrap();
        let cache = HintCache::open(dir.path()).unwrap();
        let lives = Lives::new(hint, kept);
        assert_eq!(lives.start(None), (HintOrigin::Computed, 1));
        assert_eq!(entries(dir.path()), 0);
        assert_eq!(lives.start(Some(&cache)), (HintOrigin::Computed, 1));
        assert_eq!(lives.start(Some(&cache)), (HintOrigin::Cached, 0));
        assert_eq!(entries(dir.path()), 1);

        let path = lives.entry(&cache);
        let good = fs::read(&path).unwrap();
        // The first byte of every field and of both parts, and the last of all.
        let hint_end = 4096 + 4 * hint as usize;
        let fields = [0, 8, 12, 16, 48, 56, 88, 96, 128, 160, 4096];
        for boundary in fields.into_iter().chain([hint_end.min(good.len() - 1), good.len() - 1]) {
            let mut flipped = good.clone();
            flipped[boundary] ^= 1;
            for damaged in [&flipped[..], &good[..boundary]] {
                fs::write(&path, damaged).unwrap();
                assert_eq!(lives.start(Some(&cache)), (HintOrigin::Rebuilt, 1), "{boundary}");
                // The damaged entry was replaced by a whole one.
                assert!(fs::read(&path).unwrap() == good);
                assert_eq!(lives.start(Some(&cache)), (HintOrigin::Cached, 0));
            }
        }
    }
}

#[test]
fn a_table_whose_contents_changed_does_not_find_the_old_hint() {
    let dir = tempfile::tempdir().unwrap();
    let cache = HintCache::open(dir.path()).unwrap();
    let lives = Lives::new(50, 30);
    lives.start(Some(&cache));
    let identity = lives.identity;
    for other in [
        TableIdentity { digest: TableDigest([5; 32]), ..identity },
        TableIdentity { epoch: Epoch(2), ..identity },
        TableIdentity { id: TableId([9; 16]), ..identity },
    ] {
        let (origin, _) = Lives { identity: other, ..Lives::new(50, 30) }.start(Some(&cache));
        assert_eq!(origin, HintOrigin::Computed);
    }
    assert_eq!(lives.start(Some(&cache)), (HintOrigin::Cached, 0));
}

#[test]
fn a_cache_that_cannot_be_written_costs_nothing_but_memory_and_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let gone = dir.path().join("gone");
    let cache = HintCache::open(&gone).unwrap();
    fs::remove_dir(&gone).unwrap();
    assert_eq!(Lives::new(50, 30).start(Some(&cache)), (HintOrigin::Computed, 1));
    assert_eq!(Lives::new(50, 30).start(Some(&cache)), (HintOrigin::Computed, 1));
}

#[test]
fn results_of_other_lengths_than_the_plans_are_not_served() {
    let computed = Arc::new(AtomicU32::new(0));
    let lives = Lives::new(50, 30);
    for hint in [49, 51] {
        let setup = Given {
            plan: lives.plan.clone(),
            hint: vec![1; hint],
            kept: lives.kept.clone(),
            streamed: None,
            computed: Arc::clone(&computed),
        };
        let refusal = finish("test", Box::new(setup), &lives.identity, None, Former::None, &|_| {});
        let refusal = refusal.err().expect("the hint has another length");
        assert_eq!(refusal.blame(), Blame::Internal, "{refusal}");
    }
}

#[test]
fn the_hint_of_a_real_scheme_is_the_same_from_memory_and_from_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let cache = HintCache::open(dir.path()).unwrap();
    let identity = identity(40, 3);
    let obtain = |cache| {
        let finished =
            finish("test", simplepir(identity), &identity, cache, Former::None, &|_| {}).unwrap();
        let hint = finished.hint.unwrap();
        (hint.part.copy(0, usize::MAX).unwrap(), hint.digest, finished.origin)
    };
    let (in_memory, digest, _) = obtain(None);
    assert!(in_memory.iter().any(|byte| *byte != 0));
    for origin in [HintOrigin::Computed, HintOrigin::Cached] {
        assert_eq!(obtain(Some(&cache)), (in_memory.clone(), digest, origin));
    }
}

#[test]
fn a_table_in_an_order_of_the_schemes_own_is_lent_and_announced_and_never_cached() {
    let dir = tempfile::tempdir().unwrap();
    let cache = HintCache::open(dir.path()).unwrap();
    let identity = identity(40, 3);
    let setup = |kept: Vec<u32>, streamed: Option<Vec<u8>>| {
        let offline = OfflinePhase::StreamArranged { len: 120 };
        let plan = SchemePlan { offline, ..simplepir(identity).plan().clone() };
        Box::new(Given { plan, hint: Vec::new(), kept, streamed, computed: Arc::default() })
    };
    let shuffled: Vec<u8> = (0..120).rev().collect();
    // If the server keeps no part, nothing is cached; if it does, the table is still not cached
    // with it.
    for (kept, origins) in
        [(vec![], [HintOrigin::None; 2]), (vec![7; 5], [HintOrigin::Computed, HintOrigin::Cached])]
    {
        for origin in origins {
            let setup = setup(kept.clone(), Some(shuffled.clone()));
            let finished =
                finish("test", setup, &identity, Some(&cache), Former::None, &|_| {}).unwrap();
            assert_eq!(finished.origin, origin);
            let hint = finished.hint.unwrap();
            assert_eq!(hint.digest, *blake3::hash(&shuffled).as_bytes());
            assert_eq!((hint.part.len(), hint.part.memory()), (120, 0));
            assert_eq!(hint.part.copy(100, usize::MAX).unwrap(), &shuffled[100..]);
            // It is the server's own memory.
            let lent = finished.server.streamed().unwrap().as_ptr();
            let Part::Streamed(server) = &hint.part else { panic!("it is lent") };
            assert_eq!(server.streamed().unwrap().as_ptr(), lent);
        }
        assert_eq!(entries(dir.path()), usize::from(!kept.is_empty()));
    }
    let entry = fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap();
    assert_eq!(entry.metadata().unwrap().len(), 4096 + 20, "a head, and five words that are kept");

    for streamed in [None, Some(vec![]), Some(vec![1; 119]), Some(vec![1; 121])] {
        let refusal =
            finish("test", setup(vec![], streamed), &identity, None, Former::None, &|_| {});
        let refusal = refusal.err().expect("that is not the table");
        assert_eq!(refusal.blame(), Blame::Internal, "{refusal}");
    }
}
