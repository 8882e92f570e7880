//! What an operator relies on: health, metrics, clear refusals at start, and a stop that drops no
//! request.

use crate::common::*;
use privet_core::{Blame, Epoch, Reason, TableIdentity};
use privet_server::{ServedTable, Server, ServerConfig};
use privet_wire::{PartKind, proto};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

/// An address that nobody listens on.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_goes_from_starting_to_ready_to_draining() {
    let (listen, metrics_listen) = (free_address(), free_address());
    let (computing, begun) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(Some(released));
    let config = ServerConfig {
        listen,
        metrics_listen: Some(metrics_listen),
        batch_window: Duration::from_secs(2),
        // The first report of progress holds up the start until the test has looked around.
        progress: Some(Arc::new(move |_| {
            if let Some(released) = released.lock().unwrap().take() {
                computing.send(()).unwrap();
                released.recv().unwrap();
            }
        })),
        ..config()
    };
    let starting = tokio::spawn(start(config, vec![table("t", 60, 5, 1)]));
    tokio::task::spawn_blocking(move || begun.recv().unwrap()).await.unwrap();
    assert_eq!(http(metrics_listen, "GET", "/healthz").await, (503, "starting\n".to_owned()));
    assert!(TcpStream::connect(listen).await.is_err(), "clients are not let in yet");
    release.send(()).unwrap();
    let server = starting.await.unwrap();
    assert_eq!(server.local_addr(), listen);
    assert_eq!(http(metrics_listen, "GET", "/healthz").await, (200, "ready\n".to_owned()));

    // A query that waits for its batch keeps the server draining.
    let mut stub = stub(&server).await;
    let mut client = TableClient::new(&mut stub, "t").await;
    let (request, pending) = client.prepare(42);
    let answer = tokio::spawn(async move { ask(&mut stub, request).await });
    until_metric(&server, "privet_queue_depth", 1.0).await;
    server.shutdown();
    while http(metrics_listen, "GET", "/healthz").await != (503, "draining\n".to_owned()) {
        tokio::task::yield_now().await;
    }
    let response = answer.await.unwrap().unwrap();
    assert_eq!(client.recover(pending, &response), client.expected(42));
    server.wait().await.unwrap();
    assert!(TcpStream::connect(listen).await.is_err());
    assert!(TcpStream::connect(metrics_listen).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_say_what_happened_and_nothing_of_what_was_asked() {
    let server = start(config(), vec![table("first", 60, 5, 1), table("second", 7, 2, 2)]).await;
    let mut stub = stub(&server).await;
    let mut client = TableClient::new(&mut stub, "first").await;
    for index in [0, 59, 59] {
        client.check(&mut stub, index).await;
    }
    let (mut bad, _) = client.prepare(0);
    bad.epoch = Epoch(99);
    ask(&mut stub, bad).await.unwrap_err();
    for (name, value) in [
        ("privet_requests_total{method=\"Answer\",status=\"OK\"}", 3.0),
        ("privet_requests_total{method=\"Answer\",status=\"FAILED_PRECONDITION\"}", 1.0),
        ("privet_requests_total{method=\"Fetch\",status=\"OK\"}", 1.0),
        ("privet_requests_total{method=\"Describe\",status=\"OK\"}", 1.0),
        ("privet_queries_answered_total{table=\"first\"}", 3.0),
        ("privet_queries_answered_total{table=\"second\"}", 0.0),
        ("privet_batch_size_sum", 3.0),
        ("privet_batch_size_bucket{le=\"1.0\"}", 3.0),
        ("privet_answer_seconds_count", 3.0),
        ("privet_request_seconds_count{method=\"Answer\"}", 4.0),
        ("privet_connections", 1.0),
        ("privet_queue_depth", 0.0),
        ("privet_table_records{table=\"first\"}", 60.0),
        ("privet_table_record_len{table=\"second\"}", 2.0),
        ("privet_table_epoch{table=\"first\"}", 5.0),
        (
            "privet_table{table=\"second\",id=\"02020202020202020202020202020202\",scheme=\"simplepir\"}",
            1.0,
        ),
        ("privet_hints_total{origin=\"computed\"}", 2.0),
    ] {
        // A request is counted when its response has been sent to the end, just after the client
        // has it.
        until_metric(&server, name, value).await;
    }
    let hint = client.description.schemes[0].hint.unwrap().len as f64;
    assert!(metric(&server, "privet_response_bytes_total{method=\"Fetch\"}").await > hint);
    // All queries are equally long, whatever they ask for.
    let sent = metric(&server, "privet_request_bytes_total{method=\"Answer\"}").await;
    assert_eq!(sent % 4.0, 0.0);

    let address = server.metrics_addr().unwrap();
    assert_eq!(http(address, "GET", "/").await.0, 404);
    assert_eq!(http(address, "POST", "/metrics").await.0, 405);
    let (status, body) = http(address, "HEAD", "/healthz").await;
    assert_eq!((status, body.as_str()), (200, ""));
}

/// More of them than there are places, each of which would keep its place for half a minute.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_never_end_keep_nobody_from_the_health_of_a_server() {
    let server = start(config(), vec![table("t", 60, 5, 1)]).await;
    let address = server.metrics_addr().unwrap();
    let mut halves = Vec::new();
    for _ in 0..100 {
        let mut half = TcpStream::connect(address).await.unwrap();
        half.write_all(b"GET /healthz HTTP/1.1\r\nHost: ").await.unwrap();
        halves.push(half);
    }
    let asked = tokio::time::timeout(Duration::from_secs(15), http(address, "GET", "/healthz"));
    assert_eq!(asked.await.unwrap(), (200, "ready\n".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_in_one_process_count_apart() {
    let first = start(config(), vec![table("t", 60, 5, 1)]).await;
    let second = start(config(), vec![table("t", 60, 5, 1)]).await;
    describe(&mut stub(&first).await).await;
    until_metric(&first, "privet_requests_total{method=\"Describe\",status=\"OK\"}", 1.0).await;
    assert_eq!(
        metric(&second, "privet_requests_total{method=\"Describe\",status=\"OK\"}").await,
        0.0
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_does_not_wait_for_ever() {
    let mut config = config();
    config.drain_limit = Duration::from_millis(200);
    let server = start(config, vec![table("t", 4096, 4096, 1)]).await;
    let endpoint = endpoint(server.local_addr()).initial_stream_window_size(1 << 16);
    let mut stub = stub_on(endpoint.connect().await.unwrap());
    let description = describe(&mut stub).await.tables[0].clone();
    let request = fetch_request(&description, PartKind::Table, 0);
    let mut stream = stub.fetch(proto::FetchRequest::from(request)).await.unwrap().into_inner();
    stream.message().await.unwrap().unwrap();
    server.shutdown();
    let started = Instant::now();
    let error = server.wait().await.unwrap_err();
    assert_eq!(error.blame(), Blame::Unavailable);
    assert!(error.to_string().contains("cut off"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(20));
    // The client sees that its stream was cut off.
    let end = loop {
        match stream.message().await {
            Ok(Some(_)) => {}
            end => break end,
        }
    };
    assert!(end.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_client_does_not_hold_up_a_stop_and_an_abort_does_not_drain() {
    let server = start(config(), vec![table("t", 60, 5, 1)]).await;
    let mut idle = stub(&server).await;
    describe(&mut idle).await;
    server.shutdown();
    server.wait().await.unwrap();

    let mut config = config();
    config.batch_window = Duration::from_secs(10);
    let server = start(config, vec![table("t", 60, 5, 1)]).await;
    let mut stub = stub(&server).await;
    let (request, _) = TableClient::new(&mut stub, "t").await.prepare(0);
    let answer = tokio::spawn(async move { ask(&mut stub, request).await });
    until_metric(&server, "privet_queue_depth", 1.0).await;
    server.shutdown_handle().abort();
    assert!(answer.await.unwrap().is_err());
    server.wait().await.unwrap();
}

#[tokio::test]
async fn starts_that_are_refused_say_why() {
    async fn refusal(config: ServerConfig, tables: Vec<ServedTable>) -> privet_core::Error {
        Server::start(config, tables).await.err().expect("the start is refused")
    }
    let good = || table("t", 4, 2, 1);

    let reachable = ServerConfig { listen: "0.0.0.0:0".parse().unwrap(), ..config() };
    let plaintext = refusal(reachable.clone(), vec![good()]).await;
    assert_eq!(plaintext.blame(), Blame::ApiMisuse);
    assert_eq!(plaintext.reason(), Some(Reason::NotEncrypted), "{plaintext}");
    start(ServerConfig { insecure: true, ..reachable }, vec![good()]).await;

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap();
    for config in [
        ServerConfig { listen, ..config() },
        ServerConfig { metrics_listen: Some(listen), ..config() },
    ] {
        let in_use = refusal(config, vec![good()]).await;
        assert_eq!(in_use.blame(), Blame::Unavailable);
        assert!(in_use.to_string().contains("another program listens there"), "{in_use}");
    }

    let misnamed = ServedTable { name: "no/name".into(), ..good() };
    let short = ServedTable { records: Box::new(vec![0; 7]), ..good() };
    let same_name = ServedTable {
        identity: TableIdentity { id: privet_core::TableId([8; 16]), ..identity(4, 2, 1) },
        ..good()
    };
    let same_id = ServedTable { name: "other".into(), ..good() };
    for (sentence, tables) in [
        ("no table to serve", vec![]),
        ("cannot be a name", vec![misnamed]),
        ("table t: a table of 4 records of 2 bytes has 8 bytes, not 7", vec![short]),
        ("two tables are named t", vec![good(), same_name]),
        ("are the same table", vec![good(), same_id]),
    ] {
        let error = refusal(config(), tables).await;
        assert_eq!(error.blame(), Blame::ApiMisuse, "{error}");
        assert!(error.to_string().contains(sentence), "{sentence:?} is not in: {error}");
    }
}
