use super::*;
use bytes::Bytes;
use privet_core::{Blame, Epoch, TableDigest, TableId, TableIdentity, TableShape};
use privet_schemes::SchemeId;
use privet_schemes::registry::SchemePlan;
use std::sync::mpsc;
use std::thread::ThreadId;

/// A scheme whose answer is the query backwards. It refuses queries that begin with 255 and panics
/// on those that begin with 254.
struct Mirror {
    plan: SchemePlan,
    /// The batches that it received, with their role.
    seen: Mutex<Vec<(u8, Vec<Vec<u8>>)>>,
    /// The threads on which they were computed.
    threads: Mutex<Vec<ThreadId>>,
    shares_passes: bool,
    /// The gate reports that a pass begins, and makes the pass wait. `None`: no gate.
    gate: Option<(mpsc::Sender<()>, Mutex<mpsc::Receiver<()>>)>,
}

/// The test's end of a gate.
struct Gate {
    began: mpsc::Receiver<()>,
    open: mpsc::Sender<()>,
}

impl Mirror {
    fn new(gated: bool) -> (Arc<Self>, Gate) {
        let shape = TableShape::new(4, 1).unwrap();
        let identity = TableIdentity {
            id: TableId([0; 16]),
            epoch: Epoch(0),
            digest: TableDigest([0; 32]),
            shape,
        };
        let plan =
            SchemePlan::from_announcement(SchemeId::SimplePir, &identity, &2u64.to_le_bytes())
                .unwrap();
        let (begin, began) = mpsc::channel();
        let (open, opened) = mpsc::channel();
        let gate = gated.then(|| (begin, Mutex::new(opened)));
        (
            Arc::new(Self {
                plan,
                seen: Mutex::default(),
                threads: Mutex::default(),
                shares_passes: true,
                gate,
            }),
            Gate { began, open },
        )
    }

    fn sizes(&self) -> Vec<usize> {
        self.seen.lock().unwrap().iter().map(|(_, queries)| queries.len()).collect()
    }
}

impl ErasedServer for Mirror {
    fn plan(&self) -> &SchemePlan {
        &self.plan
    }

    fn answer(&self, role: Role, queries: &[&[u8]]) -> Vec<Result<Vec<u8>>> {
        self.seen
            .lock()
            .unwrap()
            .push((role.0, queries.iter().map(|query| query.to_vec()).collect()));
        self.threads.lock().unwrap().push(std::thread::current().id());
        if let Some((begin, opened)) = &self.gate {
            begin.send(()).unwrap();
            opened.lock().unwrap().recv().unwrap();
        }
        assert!(queries.iter().all(|query| query.first() != Some(&254)), "planted");
        let answer = |query: &&[u8]| match query.first() {
            Some(255) => Err(Error::invalid_message("planted")),
            _ => Ok(query.iter().rev().copied().collect()),
        };
        queries.iter().map(answer).collect()
    }

    fn resident_bytes(&self) -> u64 {
        0
    }

    fn prepare(&self, _role: Role, _request: &[u8]) -> Result<Vec<u8>> {
        Err(Error::invalid_message("there is nothing to prepare here"))
    }

    fn streamed(&self) -> Option<&[u8]> {
        None
    }

    fn shares_passes(&self) -> bool {
        self.shares_passes
    }

    fn huge_page_bytes(&self) -> Option<u64> {
        None
    }

    fn held(&self) -> Vec<&[u8]> {
        Vec::new()
    }

    fn check_held(&self) -> Result<()> {
        Ok(())
    }
}

const NO_WINDOW: BatchSettings = BatchSettings {
    threads: 2,
    window: Duration::ZERO,
    max_batch: 4,
    queries: Cap { total: 100, per_peer: Some(100), per_connection: None },
};

const PEER: Peer = Peer::V4(1);

/// So many, which one client may have all.
fn all_for_one(total: usize) -> Cap {
    Cap { total, per_peer: Some(total), per_connection: None }
}

/// The queue, and a lane for each role of the scheme.
struct Queued {
    batcher: Batcher,
    lanes: Vec<Arc<Lane>>,
}

fn batcher(mirror: &Arc<Mirror>, roles: u8, settings: BatchSettings) -> Queued {
    let batcher = Batcher::start(settings, Arc::new(Metrics::new()), &Vital::default()).unwrap();
    Queued { batcher, lanes: (0..roles).map(|role| lane(mirror, role)).collect() }
}

fn lane(mirror: &Arc<Mirror>, role: u8) -> Arc<Lane> {
    let condition = Arc::new(Condition::new("mirror"));
    Arc::new(Lane::new(condition, Arc::clone(mirror) as _, Role(role), 2))
}

/// Queues a query at once; the caller waits for its answer.
fn ask(queued: &Queued, lane: usize, query: &[u8]) -> Waiting {
    ask_as(PEER, queued, lane, query).unwrap()
}

fn ask_as(peer: Peer, queued: &Queued, lane: usize, query: &[u8]) -> Result<Waiting> {
    let query = SecretBytes::new(Bytes::copy_from_slice(query));
    queued.batcher.shared.enqueue(&queued.lanes[lane], peer, query)
}

/// The parts of a request.
type Waiting = Vec<oneshot::Receiver<Result<Vec<u8>>>>;

fn answer(waiting: Waiting) -> Result<Vec<u8>> {
    let parts: Result<Vec<_>> =
        waiting.into_iter().map(|part| part.blocking_recv().unwrap()).collect();
    Ok(parts?.concat())
}

#[test]
fn queries_that_come_during_a_pass_are_answered_by_the_next_one_up_to_a_batch() {
    let (mirror, gate) = Mirror::new(true);
    let batcher = batcher(&mirror, 1, NO_WINDOW);
    let first = ask(&batcher, 0, &[0, 1]);
    gate.began.recv().unwrap();
    let others: Vec<_> = (1..=10).map(|number| ask(&batcher, 0, &[number, 7])).collect();
    for _ in 0..4 {
        gate.open.send(()).unwrap();
    }
    assert_eq!(answer(first).unwrap(), [1, 0]);
    for (number, other) in (1..=10).zip(others) {
        assert_eq!(answer(other).unwrap(), [7, number]);
    }
    assert_eq!(mirror.sizes(), [1, 4, 4, 2]);
}

#[test]
fn the_first_query_waits_a_window_for_others() {
    let (mirror, _gate) = Mirror::new(false);
    let window = Duration::from_millis(200);
    let batcher = batcher(&mirror, 1, BatchSettings { window, ..NO_WINDOW });
    let started = Instant::now();
    let both = [ask(&batcher, 0, &[1]), ask(&batcher, 0, &[2])];
    both.into_iter().for_each(|one| drop(answer(one).unwrap()));
    assert!(started.elapsed() >= window);
    assert_eq!(mirror.sizes(), [2]);
}

#[test]
fn a_full_batch_does_not_wait() {
    let (mirror, _gate) = Mirror::new(false);
    let window = Duration::from_secs(3600);
    let batcher = batcher(&mirror, 1, BatchSettings { window, ..NO_WINDOW });
    let full: Vec<_> = (0..4).map(|number| ask(&batcher, 0, &[number])).collect();
    // Waiting for the window would take an hour.
    full.into_iter().for_each(|one| drop(answer(one).unwrap()));
    assert_eq!(mirror.sizes(), [4]);
}

#[test]
fn a_query_that_shares_nothing_does_not_wait_for_others() {
    let (mut mirror, _gate) = Mirror::new(false);
    Arc::get_mut(&mut mirror).unwrap().shares_passes = false;
    let window = Duration::from_secs(3600);
    let batcher = batcher(&mirror, 1, BatchSettings { window, ..NO_WINDOW });
    // Waiting for the window would take an hour.
    assert_eq!(answer(ask(&batcher, 0, &[1, 2])).unwrap(), [2, 1]);
}

#[test]
fn a_query_whose_caller_has_gone_is_not_computed() {
    let (mirror, gate) = Mirror::new(true);
    let batcher = batcher(&mirror, 1, NO_WINDOW);
    let first = ask(&batcher, 0, &[0]);
    gate.began.recv().unwrap();
    let gone: Vec<_> = (1..=6).map(|number| ask(&batcher, 0, &[number])).collect();
    let stays = ask(&batcher, 0, &[9]);
    drop(gone);
    gate.open.send(()).unwrap();
    gate.open.send(()).unwrap();
    answer(first).unwrap();
    assert_eq!(answer(stays).unwrap(), [9]);
    let seen = mirror.seen.lock().unwrap();
    assert_eq!(*seen, [(0, vec![vec![0]]), (0, vec![vec![9]])]);
}

#[test]
fn a_query_that_does_not_parse_fails_alone() {
    let (mirror, gate) = Mirror::new(true);
    let batcher = batcher(&mirror, 1, NO_WINDOW);
    let first = ask(&batcher, 0, &[0]);
    gate.began.recv().unwrap();
    let before = ask(&batcher, 0, &[1, 2]);
    let bad = ask(&batcher, 0, &[255]);
    let after = ask(&batcher, 0, &[3, 4]);
    gate.open.send(()).unwrap();
    gate.open.send(()).unwrap();
    answer(first).unwrap();
    assert_eq!(answer(before).unwrap(), [2, 1]);
    assert_eq!(answer(bad).unwrap_err().blame(), Blame::InvalidMessage);
    assert_eq!(answer(after).unwrap(), [4, 3]);
    assert_eq!(mirror.sizes(), [1, 3]);
}

#[test]
fn a_panic_costs_its_batch_and_nothing_else() {
    let (mirror, _gate) = Mirror::new(false);
    let batcher = batcher(&mirror, 1, NO_WINDOW);
    assert_eq!(answer(ask(&batcher, 0, &[254])).unwrap_err().blame(), Blame::Internal);
    assert_eq!(answer(ask(&batcher, 0, &[1, 2])).unwrap(), [2, 1]);
}

#[test]
fn queries_in_different_roles_never_share_a_pass_and_take_turns() {
    let (mirror, gate) = Mirror::new(true);
    let batcher = batcher(&mirror, 2, NO_WINDOW);
    let first = ask(&batcher, 0, &[0]);
    gate.began.recv().unwrap();
    let rest: Vec<_> = [(1, 1), (0, 2), (1, 3), (0, 4)]
        .map(|(lane, number)| ask(&batcher, lane, &[number]))
        .into();
    (0..3).for_each(|_| gate.open.send(()).unwrap());
    answer(first).unwrap();
    rest.into_iter().for_each(|one| drop(answer(one).unwrap()));
    let seen = mirror.seen.lock().unwrap();
    assert_eq!(
        *seen,
        [(0, vec![vec![0]]), (1, vec![vec![1], vec![3]]), (0, vec![vec![2], vec![4]])]
    );
}

#[test]
fn a_full_queue_refuses_and_recovers() {
    let (mirror, gate) = Mirror::new(true);
    let batcher = batcher(&mirror, 1, BatchSettings { queries: all_for_one(3), ..NO_WINDOW });
    let first = ask(&batcher, 0, &[0]);
    gate.began.recv().unwrap();
    let waiting: Vec<_> = (1..=3).map(|number| ask(&batcher, 0, &[number])).collect();
    let refused = ask_as(PEER, &batcher, 0, &[4]).unwrap_err();
    assert_eq!(refused.blame(), Blame::Exhausted);
    assert_eq!(batcher.batcher.shared.metrics.queue_depth.get(), 3);
    (0..3).for_each(|_| gate.open.send(()).unwrap());
    answer(first).unwrap();
    waiting.into_iter().for_each(|one| drop(answer(one).unwrap()));
    assert_eq!(batcher.batcher.shared.metrics.queue_depth.get(), 0);
    assert_eq!(answer(ask(&batcher, 0, &[5, 6])).unwrap(), [6, 5]);
}

#[tokio::test]
async fn stopping_ends_those_who_wait_and_those_who_come_later() {
    let (mirror, _gate) = Mirror::new(false);
    let window = Duration::from_secs(3600);
    let Queued { batcher, lanes } = batcher(&mirror, 1, BatchSettings { window, ..NO_WINDOW });
    let batcher = Arc::new(batcher);
    let query = || SecretBytes::new(Bytes::from_static(&[1]));
    let waiting = {
        let (batcher, lane) = (Arc::clone(&batcher), Arc::clone(&lanes[0]));
        tokio::spawn(async move { batcher.answer(&lane, PEER, query()).await })
    };
    while batcher.shared.metrics.queue_depth.get() == 0 {
        tokio::task::yield_now().await;
    }
    batcher.stop();
    assert_eq!(waiting.await.unwrap().unwrap_err().blame(), Blame::Unavailable);
    let late = batcher.answer(&lanes[0], PEER, query()).await;
    assert_eq!(late.unwrap_err().blame(), Blame::Unavailable);
    assert!(mirror.sizes().is_empty());
}

#[test]
fn lanes_come_and_go_while_it_runs_and_are_freed_with_their_last_query() {
    let (first, gate) = Mirror::new(true);
    let mut queued = batcher(&first, 1, NO_WINDOW);
    let under_way = ask(&queued, 0, &[0, 1]);
    gate.began.recv().unwrap();
    let waits = ask(&queued, 0, &[0, 2]);
    let freed = Arc::downgrade(&first);
    drop(first);
    // Another lane takes its place. Queries that were queued before are still answered.
    let (second, _) = Mirror::new(false);
    queued.lanes = vec![lane(&second, 0)];
    let later = ask(&queued, 0, &[0, 3]);
    (0..2).for_each(|_| gate.open.send(()).unwrap());
    assert_eq!(answer(under_way).unwrap(), [1, 0]);
    assert_eq!(answer(waits).unwrap(), [2, 0]);
    assert_eq!(answer(later).unwrap(), [3, 0]);
    assert_eq!(answer(ask(&queued, 0, &[0, 4])).unwrap(), [4, 0]);
    // A compute thread drops a lane after it has answered its last query. It may have to wait for
    // the processor in between, while another thread answers the next ones.
    let end = Instant::now() + Duration::from_secs(60);
    while freed.upgrade().is_some() {
        assert!(Instant::now() < end, "the first lane is never freed");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(second.sizes(), [1, 1]);
}

#[test]
fn answers_that_share_nothing_are_computed_side_by_side_and_beside_a_pass() {
    let (mut single, single_gate) = Mirror::new(true);
    Arc::get_mut(&mut single).unwrap().shares_passes = false;
    let (shared, shared_gate) = Mirror::new(true);
    let mut queued = batcher(&single, 1, BatchSettings { threads: 3, ..NO_WINDOW });
    queued.lanes.push(lane(&shared, 0));
    let pass = ask(&queued, 1, &[0, 9]);
    shared_gate.began.recv().unwrap();
    // Neither waits for the other, nor for the pass: all three have begun before any is let go.
    let one = ask(&queued, 0, &[0, 1]);
    let two = ask(&queued, 0, &[0, 2]);
    (0..2).for_each(|_| single_gate.began.recv().unwrap());
    // A second pass waits for the first.
    let next = ask(&queued, 1, &[0, 8]);
    (0..2).for_each(|_| single_gate.open.send(()).unwrap());
    assert_eq!(answer(one).unwrap(), [1, 0]);
    assert_eq!(answer(two).unwrap(), [2, 0]);
    assert_eq!(shared.sizes(), [1]);
    (0..2).for_each(|_| shared_gate.open.send(()).unwrap());
    assert_eq!(answer(pass).unwrap(), [9, 0]);
    assert_eq!(answer(next).unwrap(), [8, 0]);
    assert_eq!(single.sizes(), [1, 1]);
    assert_eq!(shared.sizes(), [1, 1]);
}

#[test]
fn the_queries_of_a_request_are_answered_in_order_and_count_one_by_one() {
    let (mirror, gate) = Mirror::new(true);
    let batcher = batcher(&mirror, 1, BatchSettings { queries: all_for_one(12), ..NO_WINDOW });
    let first = ask(&batcher, 0, &[0, 1, 0, 2]);
    gate.began.recv().unwrap();
    // A request of three fits beside one of one, and not beside another of three. One of five
    // waits in two parts, of four and one.
    let three = ask(&batcher, 0, &[1, 1, 1, 2, 1, 3]);
    let one = ask(&batcher, 0, &[2, 1]);
    let bad = ask(&batcher, 0, &[3, 1, 255, 2, 3, 3]);
    let five = ask(&batcher, 0, &[4, 1, 4, 2, 4, 3, 4, 4, 4, 5]);
    assert_eq!(batcher.batcher.shared.metrics.queue_depth.get(), 12);
    let refused = ask_as(PEER, &batcher, 0, &[5, 1]).unwrap_err();
    assert_eq!(refused.blame(), Blame::Exhausted);
    (0..5).for_each(|_| gate.open.send(()).unwrap());
    assert_eq!(answer(first).unwrap(), [1, 0, 2, 0]);
    assert_eq!(answer(three).unwrap(), [1, 1, 2, 1, 3, 1]);
    assert_eq!(answer(one).unwrap(), [1, 2]);
    assert_eq!(answer(bad).unwrap_err().blame(), Blame::InvalidMessage);
    assert_eq!(answer(five).unwrap(), [1, 4, 2, 4, 3, 4, 4, 4, 5, 4]);
    assert_eq!(mirror.sizes(), [2, 4, 3, 4, 1]);
    assert_eq!(batcher.batcher.shared.metrics.queue_depth.get(), 0);
}

#[tokio::test]
async fn short_answers_are_computed_where_the_query_arrived() {
    for shares_passes in [false, true] {
        let (mut mirror, _gate) = Mirror::new(false);
        Arc::get_mut(&mut mirror).unwrap().shares_passes = shares_passes;
        let Queued { batcher, lanes } = batcher(&mirror, 1, NO_WINDOW);
        let query = |number| SecretBytes::new(Bytes::copy_from_slice(&[0, number]));
        let threads = || mirror.threads.lock().unwrap().clone();
        // Nothing is known of the lane yet.
        assert_eq!(batcher.answer(&lanes[0], PEER, query(1)).await.unwrap(), [1, 0]);
        assert_ne!(threads(), [std::thread::current().id()]);
        lanes[0].pace.0.store(1000, Ordering::Relaxed);
        assert_eq!(batcher.answer(&lanes[0], PEER, query(2)).await.unwrap(), [2, 0]);
        assert_eq!(threads()[1], std::thread::current().id());
        // An answer that fails or panics changes nothing for the next.
        let planted = |byte| SecretBytes::new(Bytes::copy_from_slice(&[byte]));
        for (byte, blame) in [(255, Blame::InvalidMessage), (254, Blame::Internal)] {
            lanes[0].pace.0.store(1000, Ordering::Relaxed);
            let error = batcher.answer(&lanes[0], PEER, planted(byte)).await.unwrap_err();
            assert_eq!(error.blame(), blame);
        }
        lanes[0].pace.0.store(1000, Ordering::Relaxed);
        assert_eq!(batcher.answer(&lanes[0], PEER, query(3)).await.unwrap(), [3, 0]);
        assert_eq!(threads()[4], std::thread::current().id());
    }
}

#[test]
fn a_short_pass_begins_at_once_only_if_nothing_runs_or_waits() {
    let (mirror, gate) = Mirror::new(true);
    let queued = batcher(&mirror, 1, NO_WINDOW);
    let (shared, lane) = (&queued.batcher.shared, &queued.lanes[0]);
    assert!(shared.begins_at_once(lane, PEER));
    assert!(!shared.begins_at_once(lane, PEER), "a pass runs");
    let waits = ask(&queued, 0, &[0, 1]);
    shared.ends(lane);
    gate.began.recv().unwrap();
    assert!(!shared.begins_at_once(lane, PEER), "a pass runs on a compute thread");
    gate.open.send(()).unwrap();
    assert_eq!(answer(waits).unwrap(), [1, 0]);
}

#[test]
fn peers_take_turns_however_many_queries_one_of_them_asks() {
    let (mirror, gate) = Mirror::new(true);
    let batcher = batcher(&mirror, 1, NO_WINDOW);
    let first = ask(&batcher, 0, &[0]);
    gate.began.recv().unwrap();
    let many: Vec<_> = (1..=9).map(|number| ask(&batcher, 0, &[number])).collect();
    let other = |peer, number| ask_as(Peer::V6(peer), &batcher, 0, &[number]).unwrap();
    let others = [other(1, 101), other(2, 102), other(1, 103)];
    (0..4).for_each(|_| gate.open.send(()).unwrap());
    answer(first).unwrap();
    many.into_iter().chain(others).for_each(|one| drop(answer(one).unwrap()));
    let seen = mirror.seen.lock().unwrap();
    let numbers: Vec<Vec<u8>> =
        seen.iter().map(|(_, batch)| batch.iter().map(|query| query[0]).collect()).collect();
    let expected: [&[u8]; 4] = [&[0], &[1, 101, 102, 2], &[103, 3, 4, 5], &[6, 7, 8, 9]];
    assert_eq!(numbers, expected);
}

#[test]
fn a_request_of_many_batches_lets_another_peers_query_pass_between_them() {
    let (mirror, gate) = Mirror::new(true);
    let batcher = batcher(&mirror, 1, NO_WINDOW);
    let first = ask(&batcher, 0, &[0, 0]);
    gate.began.recv().unwrap();
    let long: Vec<u8> = (1..=9).flat_map(|number| [number, 0]).collect();
    let long = ask(&batcher, 0, &long);
    let short = ask_as(Peer::V6(1), &batcher, 0, &[77, 0]).unwrap();
    (0..5).for_each(|_| gate.open.send(()).unwrap());
    answer(first).unwrap();
    assert_eq!(answer(short).unwrap(), [0, 77]);
    let expected: Vec<u8> = (1..=9).flat_map(|number| [0, number]).collect();
    assert_eq!(answer(long).unwrap(), expected);
    // The short one is not behind all of the long one.
    let seen = mirror.seen.lock().unwrap();
    let place = seen.iter().position(|(_, batch)| batch.contains(&vec![77, 0]));
    assert_eq!(place, Some(2), "{seen:?}");
}

#[test]
fn a_full_queue_takes_from_the_peer_that_has_most_and_a_peer_has_its_own_limit() {
    let (mirror, gate) = Mirror::new(true);
    let queries = Cap { total: 6, per_peer: Some(5), per_connection: None };
    let batcher = batcher(&mirror, 1, BatchSettings { queries, ..NO_WINDOW });
    let first = ask(&batcher, 0, &[0]);
    gate.began.recv().unwrap();
    let mut many: Vec<_> = (1..=5).map(|number| ask(&batcher, 0, &[number])).collect();
    let refused = ask_as(PEER, &batcher, 0, &[6]).unwrap_err();
    assert_eq!(refused.blame(), Blame::Exhausted);
    assert!(refused.message().contains("5 queries of this address"), "{refused}");
    // One place is left. The next two cost the first peer its youngest.
    let other = |number| ask_as(Peer::V6(1), &batcher, 0, &[number]);
    let others = [other(101).unwrap(), other(102).unwrap(), other(103).unwrap()];
    for _ in 0..2 {
        let evicted = answer(many.pop().unwrap()).unwrap_err();
        assert_eq!(evicted.blame(), Blame::Exhausted);
        assert!(evicted.message().contains("another client"), "{evicted}");
    }
    // Now both have three, and the other would have most.
    assert!(other(104).unwrap_err().message().contains("6 queries are waiting"));
    assert_eq!(batcher.batcher.shared.metrics.queue_depth.get(), 6);
    (0..4).for_each(|_| gate.open.send(()).unwrap());
    answer(first).unwrap();
    many.into_iter().chain(others).for_each(|one| drop(answer(one).unwrap()));
    assert_eq!(batcher.batcher.shared.metrics.queue_depth.get(), 0);
    let state = batcher.batcher.shared.lock();
    assert!(state.by_peer.is_empty() && state.queues.is_empty());
}

#[test]
fn one_of_several_peers_gets_its_share_of_a_batch_and_a_lone_one_all_of_it() {
    let (mirror, gate) = Mirror::new(true);
    let queries = Cap { total: 100, per_peer: Some(50), per_connection: None };
    let batcher = batcher(&mirror, 1, BatchSettings { queries, ..NO_WINDOW });
    let first = ask(&batcher, 0, &[0, 0]);
    gate.began.recv().unwrap();
    // A request of six waits in parts of two.
    let six: Vec<u8> = (1..=6).flat_map(|number| [number, 0]).collect();
    let six = ask(&batcher, 0, &six);
    gate.open.send(()).unwrap();
    gate.began.recv().unwrap();
    let other = ask_as(Peer::V6(1), &batcher, 0, &[77, 0]).unwrap();
    let four: Vec<u8> = (11..=14).flat_map(|number| [number, 0]).collect();
    let four = ask(&batcher, 0, &four);
    (0..4).for_each(|_| gate.open.send(()).unwrap());
    for waiting in [first, six, other, four] {
        answer(waiting).unwrap();
    }
    // Alone it filled a batch of four. Since somebody else asks, it has two in each.
    assert_eq!(mirror.sizes(), [1, 4, 3, 2, 2]);
}

#[test]
fn a_lane_in_which_much_waits_does_not_hold_up_the_others() {
    let (mirror, gate) = Mirror::new(true);
    let batcher = batcher(&mirror, 3, NO_WINDOW);
    let first = ask(&batcher, 0, &[0]);
    gate.began.recv().unwrap();
    let mut waiting: Vec<_> = (1..=12).map(|number| ask(&batcher, 0, &[number])).collect();
    // These come later than all of the first lane's, and one of them while the other waits.
    waiting.push(ask(&batcher, 1, &[101]));
    gate.open.send(()).unwrap();
    gate.began.recv().unwrap();
    waiting.push(ask(&batcher, 2, &[102]));
    waiting.push(ask(&batcher, 1, &[103]));
    (0..6).for_each(|_| gate.open.send(()).unwrap());
    answer(first).unwrap();
    waiting.into_iter().for_each(|one| drop(answer(one).unwrap()));
    let roles: Vec<u8> = mirror.seen.lock().unwrap().iter().map(|(role, _)| *role).collect();
    assert_eq!(roles, [0, 0, 1, 2, 0, 0]);
}
