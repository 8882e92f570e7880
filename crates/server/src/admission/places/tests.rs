use super::*;
use tokio_util::sync::CancellationToken;

/// A client on a connection of its own.
struct Client {
    handle: ConnectionHandle,
    closed: CancellationToken,
}

impl Client {
    fn new(peer: u32, connection: u64) -> Self {
        let closed = CancellationToken::new();
        Self { handle: ConnectionHandle::new(connection, Peer::V4(peer), closed.clone()), closed }
    }

    fn begin(&self, places: &Arc<Places>, pool: Pool) -> Result<Request, Refusal> {
        let (told, ousted) = oneshot::channel();
        Ok(Request { place: places.request(pool, &self.handle, told)?, ousted })
    }

    /// A request that has arrived.
    fn ask(&self, places: &Arc<Places>, pool: Pool) -> Result<Request, Refusal> {
        let request = self.begin(places, pool)?;
        request.place.advance(pool)?;
        Ok(request)
    }
}

struct Request {
    place: AdmissionPlace,
    ousted: oneshot::Receiver<Ousted>,
}

impl Request {
    fn ousted(&mut self) -> Option<Ousted> {
        self.ousted.try_recv().ok()
    }
}

fn places(limits: Limits) -> (Arc<Places>, Arc<Metrics>) {
    let metrics = Arc::new(Metrics::new());
    (Places::new(limits, Arc::clone(&metrics)), metrics)
}

fn fetches(total: usize, per_peer: usize, per_connection: usize) -> Limits {
    let cap = Cap { total, per_peer: Some(per_peer), per_connection: Some(per_connection) };
    Limits { fetches: cap, ..Limits::default() }
}

fn answer_bytes(total: usize, per_peer: usize) -> Limits {
    let cap = Cap { total, per_peer: Some(per_peer), per_connection: None };
    Limits { answer_bytes: cap, ..Limits::default() }
}

fn shed(metrics: &Metrics, what: &str, why: &str) -> u64 {
    let line = format!("privet_shed_total{{what=\"{what}\",why=\"{why}\"}} ");
    let text = metrics.render();
    text.lines().find_map(|shown| shown.strip_prefix(&line)?.parse().ok()).unwrap_or(0)
}

fn is_empty(places: &Places) -> bool {
    let state = places.lock();
    state.holders.is_empty()
        && state.total == Counts::default()
        && state.by_peer.is_empty()
        && state.by_connection.is_empty()
        && state.body_bytes == 0
}

const LATER: Duration = Duration::from_secs(3600);

#[test]
fn a_connection_and_a_peer_have_caps_of_their_own_and_places_come_free_again() {
    let (places, metrics) = places(fetches(10, 3, 2));
    let (first, second) = (Client::new(1, 1), Client::new(1, 2));
    let refused = |client: &Client| client.ask(&places, Pool::Fetches).err().map(|it| it.reached);
    let held = [first.ask(&places, Pool::Fetches), first.ask(&places, Pool::Fetches)];
    assert_eq!(refused(&first), Some(Reached::Connection));
    let other = second.ask(&places, Pool::Fetches);
    assert_eq!(refused(&second), Some(Reached::Peer));
    assert_eq!(refused(&Client::new(2, 3)), None);
    assert_eq!(shed(&metrics, "fetches", "connection"), 1);
    assert_eq!(shed(&metrics, "fetches", "peer"), 1);
    // Other pools are not concerned.
    assert!(first.ask(&places, Pool::Answers).is_ok());
    drop(held);
    assert_eq!(refused(&first), None);
    drop(other);
    assert!(is_empty(&places));
}

#[test]
fn when_all_places_are_taken_the_slowest_of_the_largest_holder_leaves() {
    let (places, metrics) = places(fetches(4, 4, 4));
    let (large, small) = (Client::new(1, 1), Client::new(2, 2));
    let mut held: Vec<_> = (0..4).map(|_| large.ask(&places, Pool::Fetches).unwrap()).collect();
    for (request, bytes) in held.iter().zip([300_000, 100_000, 400_000, 200_000]) {
        request.place.responds();
        request.place.sent(bytes);
    }
    let newcomers = [small.ask(&places, Pool::Fetches), small.ask(&places, Pool::Fetches)];
    assert!(newcomers.iter().all(Result::is_ok));
    let ousted: Vec<_> = held.iter_mut().map(Request::ousted).collect();
    assert_eq!(ousted, [None, Some(Ousted::Crowded), None, Some(Ousted::Crowded)]);
    assert_eq!(shed(&metrics, "fetches", "evicted"), 2);
    // Both have two: the next one of either would make it the largest.
    for client in [&large, &small] {
        let refused = client.ask(&places, Pool::Fetches).err().unwrap();
        assert_eq!((refused.reached, refused.limit), (Reached::Total, 4));
    }
    // Those who were told to leave hold nothing, whenever they go.
    drop((held, newcomers));
    assert!(is_empty(&places));
}

#[test]
fn what_waits_for_the_server_leaves_after_what_waits_for_its_client() {
    let (places, _) = places(fetches(2, 2, 2));
    let large = Client::new(1, 1);
    let mut computing = large.ask(&places, Pool::Fetches).unwrap();
    let mut unread = large.ask(&places, Pool::Fetches).unwrap();
    unread.place.responds();
    unread.place.sent(1 << 20);
    let _newcomer = Client::new(2, 2).ask(&places, Pool::Fetches).unwrap();
    assert_eq!(computing.ousted(), None);
    assert_eq!(unread.ousted(), Some(Ousted::Crowded));
}

#[test]
fn if_nobody_holds_more_than_others_the_idle_leave_and_nobody_else() {
    let (places, metrics) = places(fetches(3, 2, 2));
    let [mut unread, mut read, mut computing] = [1, 2, 3].map(|peer| {
        let client = Client::new(peer, u64::from(peer));
        client.ask(&places, Pool::Fetches).unwrap()
    });
    unread.place.responds();
    read.place.responds();
    let newcomer = || Client::new(9, 9).ask(&places, Pool::Fetches);
    let now = Instant::now();
    places.sweep(now);
    read.place.sent(1 << 20);
    // Nobody is idle yet.
    assert_eq!(newcomer().err().unwrap().reached, Reached::Total);
    places.sweep(now + IDLE);
    let held = newcomer().unwrap();
    assert_eq!(unread.ousted(), Some(Ousted::Crowded));
    assert_eq!(shed(&metrics, "fetches", "evicted"), 1);
    assert_eq!(newcomer().err().unwrap().reached, Reached::Total);
    assert_eq!((read.ousted(), computing.ousted()), (None, None));
    // Whoever reads again is not idle any more.
    places.sweep(now + 2 * IDLE);
    read.place.sent(1 << 20);
    places.sweep(now + 3 * IDLE);
    assert_eq!(newcomer().err().unwrap().reached, Reached::Total);
    drop((unread, read, computing, held));
    assert!(is_empty(&places));
}

#[test]
fn if_all_connections_are_taken_by_different_peers_one_leaves_on_which_nothing_is_asked() {
    let cap = Cap { total: 3, per_peer: Some(2), per_connection: None };
    let (places, _) = places(Limits { connections: cap, ..Limits::default() });
    let clients = [1, 2, 3].map(|peer| Client::new(peer, u64::from(peer)));
    let held = clients.each_ref().map(|client| places.connection(&client.handle).unwrap());
    let asked = clients[0].begin(&places, Pool::Answers).unwrap();
    held[1].heard(1000);
    let newcomer = places.connection(&Client::new(4, 4).handle).unwrap();
    let closed = || clients.each_ref().map(|client| client.closed.is_cancelled());
    assert_eq!(closed(), [false, false, true]);
    // Nobody loses the only one to somebody who would then have two.
    let second = places.connection(&Client::new(4, 5).handle).err().unwrap();
    assert_eq!((second.reached, closed()), (Reached::Total, [false, false, true]));
    drop((held, asked, newcomer));
    assert!(is_empty(&places));
}

#[test]
fn one_who_can_no_longer_be_told_loses_its_connection() {
    let (places, _) = places(fetches(2, 2, 2));
    let large = Client::new(1, 1);
    let held = [0, 1].map(|_| large.ask(&places, Pool::Fetches).unwrap());
    // Their responses have begun.
    let _held = held.map(|Request { place, .. }| place);
    let _newcomer = Client::new(2, 2).ask(&places, Pool::Fetches).unwrap();
    assert!(large.closed.is_cancelled());

    let cap = Cap { total: 2, per_peer: Some(2), per_connection: None };
    let (places, _) = self::places(Limits { connections: cap, ..Limits::default() });
    let (quiet, busy) = (Client::new(1, 1), Client::new(1, 2));
    let held = [&quiet, &busy].map(|client| places.connection(&client.handle).unwrap());
    held[1].heard(1000);
    let _newcomer = places.connection(&Client::new(2, 3).handle).unwrap();
    assert!(quiet.closed.is_cancelled() && !busy.closed.is_cancelled());
}

#[test]
fn a_request_takes_no_place_of_its_method_before_it_has_arrived() {
    let (places, _) = places(fetches(1, 1, 1));
    let client = Client::new(1, 1);
    let begun: Vec<_> = (0..5).map(|_| client.begin(&places, Pool::Fetches).unwrap()).collect();
    let arrived = Client::new(2, 2).ask(&places, Pool::Fetches).unwrap();
    // Now they would find no place when they arrive, so none is even read.
    assert_eq!(client.begin(&places, Pool::Fetches).err().unwrap().pool, Pool::Fetches);
    assert_eq!(begun[0].place.advance(Pool::Fetches).unwrap_err().reached, Reached::Total);
    drop(arrived);
    begun[1].place.advance(Pool::Fetches).unwrap();
    // It is one place, however often it is said.
    begun[1].place.advance(Pool::Fetches).unwrap();
    assert_eq!(places.lock().total[Pool::Fetches as usize], 1);
    drop(begun);
    assert!(is_empty(&places));
}

#[test]
fn bodies_have_a_budget_of_bytes_and_the_largest_holder_of_bytes_pays() {
    let limits = Limits { body_bytes: 1000, ..Limits::default() };
    let (places, metrics) = places(limits);
    let (large, small) = (Client::new(1, 1), Client::new(2, 2));
    let mut held: Vec<_> = (0..3).map(|_| large.begin(&places, Pool::Answers).unwrap()).collect();
    for (request, len) in held.iter().zip([400, 100, 300]) {
        request.place.received(len);
    }
    let mut honest = small.begin(&places, Pool::Answers).unwrap();
    honest.place.received(200);
    assert!(held.iter_mut().all(|request| request.ousted().is_none()));
    honest.place.received(1);
    let ousted: Vec<_> = held.iter_mut().map(Request::ousted).collect();
    assert_eq!(ousted, [None, Some(Ousted::Crowded), None]);
    assert_eq!(honest.ousted(), None);
    assert_eq!(shed(&metrics, "bodies", "evicted"), 1);
    assert_eq!(places.lock().body_bytes, 901);
    // What has arrived is not counted any more, and what was told to leave counts for nothing.
    honest.place.advance(Pool::Answers).unwrap();
    held[1].place.received(5000);
    assert_eq!(places.lock().body_bytes, 700);
    drop((held, honest));
    assert!(is_empty(&places));
}

#[test]
fn a_sweep_ends_what_takes_too_long_and_says_who_was_slow() {
    let second = Duration::from_secs(1);
    let limits = Limits {
        body_deadline: second,
        request_deadline: 10 * second,
        preparation_deadline: 100 * second,
        ..Limits::default()
    };
    let (places, metrics) = places(limits);
    let client = Client::new(1, 1);
    let connection = places.connection(&client.handle).unwrap();
    let mut body = client.begin(&places, Pool::Answers).unwrap();
    let mut answer = client.ask(&places, Pool::Answers).unwrap();
    let mut preparation = client.ask(&places, Pool::Preparations).unwrap();
    let now = Instant::now();
    places.sweep(now);
    assert_eq!(body.ousted(), None);
    places.sweep(now + 2 * second);
    assert_eq!((body.ousted(), answer.ousted()), (Some(Ousted::SlowBody), None));
    assert_eq!(shed(&metrics, "bodies", "slow"), 1);
    places.sweep(now + 11 * second);
    assert_eq!((answer.ousted(), preparation.ousted()), (Some(Ousted::Late), None));
    places.sweep(now + 101 * second);
    assert_eq!(preparation.ousted(), Some(Ousted::Late));
    places.sweep(now + LATER);
    assert!(!client.closed.is_cancelled());
    drop((connection, body, answer, preparation));
    assert!(is_empty(&places));
}

#[test]
fn a_response_has_to_be_read_at_the_least_rate_while_it_is_its_clients_turn() {
    let second = Duration::from_secs(1);
    let limits = Limits { stall_limit: 10 * second, least_rate: 100, ..Limits::default() };
    let (places, _) = places(limits);
    let client = Client::new(1, 1);
    let mut request = client.ask(&places, Pool::Fetches).unwrap();
    request.place.responds();
    let mut now = Instant::now();
    let mut passes = |place: &AdmissionPlace, bytes: usize| {
        place.sent(bytes);
        now += 10 * second;
        places.sweep(now);
    };
    passes(&request.place, 0);
    // Just enough.
    passes(&request.place, 1000);
    assert_eq!(request.ousted(), None);
    // It waits for the server, however long that takes.
    request.place.waits_for_client(false);
    (0..50).for_each(|_| passes(&request.place, 0));
    assert_eq!(request.ousted(), None);
    request.place.waits_for_client(true);
    passes(&request.place, 0);
    assert_eq!(request.ousted(), None, "its time has only begun");
    passes(&request.place, 999);
    assert_eq!(request.ousted(), Some(Ousted::SlowReader));
}

#[test]
fn bytes_of_answers_have_caps_and_come_free_with_their_requests() {
    let (places, metrics) = places(answer_bytes(1000, 400));
    let [one, two, three] = [1, 2, 3].map(|peer| Client::new(peer, u64::from(peer)));
    let ask = |client: &Client, bytes: usize| {
        let request = client.ask(&places, Pool::Answers)?;
        request.place.hold_answers(bytes)?;
        Ok::<_, Refusal>(request)
    };
    let refused = |client: &Client, bytes| ask(client, bytes).err().map(|it| (it.pool, it.reached));
    let held = [ask(&one, 300).unwrap(), ask(&one, 100).unwrap()];
    assert_eq!(refused(&one, 1), Some((Pool::AnswerBytes, Reached::Peer)));
    // A first request may be larger than an address's share: otherwise nobody could ask it.
    let large = ask(&two, 500).unwrap();
    assert_eq!(refused(&two, 1), Some((Pool::AnswerBytes, Reached::Peer)));
    assert_eq!(shed(&metrics, "answer-bytes", "peer"), 2);
    // Now 900 of 1000 are taken, and the largest holder makes room for a smaller one.
    let mut large = large;
    let newcomer = ask(&three, 200).unwrap();
    assert_eq!(large.ousted(), Some(Ousted::Crowded));
    assert_eq!(places.lock().total[Pool::AnswerBytes as usize], 600);
    assert_eq!(refused(&three, 500), Some((Pool::AnswerBytes, Reached::Total)));
    drop((held, large, newcomer));
    assert!(is_empty(&places));
}
