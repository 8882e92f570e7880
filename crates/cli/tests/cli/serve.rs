//! `privet serve`: its announcement, its second port, its cache, and how it stops.

use crate::place::{Place, Run};
use crate::served::{Served, http_get};
use insta::assert_snapshot;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn a_server_announces_its_tables_and_stops_when_asked_to() {
    let place = Place::with_phones();
    place.build("phones.csv -o numbered.privet");
    let served = Served::start(
        &place,
        "phones.privet second=numbered.privet --scheme simplepir --no-cache --threads 1",
    );
    assert_snapshot!(served.announcement, @r#"
    table phones: 3 records of 38 B, simplepir, hint of 152.00 KiB computed, ready in [TIME], digest [DIGEST]
    table second: 3 records of 43 B, simplepir, hint of 172.00 KiB computed, ready in [TIME], digest [DIGEST]
    listening at http://127.0.0.1:[PORT]
    "#);
    assert_eq!(served.terminate(), Some(0));
    assert!(!place.path(".cache").exists());
}

#[test]
fn a_scheme_without_a_hint_says_so() {
    let place = Place::with_phones();
    let served = Served::start(&place, "phones.privet --no-cache --scheme dummy-subsets");
    assert_snapshot!(served.announcement, @r#"
    table phones: 3 records of 38 B, dummy-subsets, no hint to compute, ready in [TIME], digest [DIGEST]
    listening at http://127.0.0.1:[PORT]
    "#);
    assert_eq!(served.terminate(), Some(0));
}

#[test]
fn a_damaged_file_is_not_served() {
    let place = Place::with_phones();
    let mut bytes = std::fs::read(place.path("phones.privet")).unwrap();
    let record = bytes.windows(5).position(|window| window == b"555-1").unwrap();
    bytes[record] ^= 1;
    std::fs::write(place.path("phones.privet"), bytes).unwrap();
    let arguments = "serve phones.privet --no-cache --listen 127.0.0.1:0 --scheme";
    for scheme in ["dummy-subsets", "download", "simplepir", "dpf"] {
        insta::allow_duplicates! {
            assert_snapshot!(place.run(&format!("{arguments} {scheme}")).refusal(), @r#"
    [exit 4]
    privet: table phones: phones.privet: damaged: the records do not have the digest that was noted when the table was built; copy the file again from where it is whole, or build it again
    "#);
        }
    }
}

#[test]
fn a_restart_takes_the_hint_from_the_cache_and_a_damaged_entry_is_made_again() {
    let place = Place::with_phones();
    let origin = || {
        let served = Served::start(&place, "phones.privet --scheme simplepir --cache cache");
        let (_, rest) = served.announcement.split_once(", hint ").unwrap();
        let origin = rest.split_once(',').unwrap().0.rsplit_once(' ').unwrap().1.to_owned();
        assert_eq!(served.terminate(), Some(0));
        origin
    };
    assert_eq!(origin(), "computed");
    assert_eq!(origin(), "cached");
    for entry in std::fs::read_dir(place.path("cache")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        if let Some(last) = bytes.last_mut() {
            *last ^= 1;
        }
        std::fs::write(&path, bytes).unwrap();
    }
    assert_eq!(origin(), "rebuilt");
    assert_eq!(origin(), "cached");
}

#[test]
fn health_and_metrics_are_on_the_second_port() {
    let place = Place::with_phones();
    let served = Served::start(
        &place,
        "phones.privet --scheme simplepir --no-cache --metrics-listen 127.0.0.1:0",
    );
    assert_snapshot!(served.announcement, @r#"
    table phones: 3 records of 38 B, simplepir, hint of 152.00 KiB computed, ready in [TIME], digest [DIGEST]
    metrics at http://127.0.0.1:[PORT]/metrics, health at http://127.0.0.1:[PORT]/healthz
    listening at http://127.0.0.1:[PORT]
    "#);
    assert_snapshot!(http_get(served.metrics_address(), "/healthz").0, @"HTTP/1.1 200 OK");
    let looked_up = place.run(&format!("get {} -k bob -k nobody", served.url));
    assert_eq!(looked_up.code(), 1, "{looked_up}");
    let (status, metrics) = http_get(served.metrics_address(), "/metrics");
    assert_snapshot!(status, @"HTTP/1.1 200 OK");
    assert_snapshot!(http_get(served.metrics_address(), "/elsewhere").0, @"HTTP/1.1 404 Not Found");
    let mut names: Vec<&str> =
        metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    names.sort_unstable();
    assert_snapshot!(names.join("\n"), @r#"
    privet_answer_seconds histogram
    privet_batch_size histogram
    privet_build info
    privet_connections gauge
    privet_hints counter
    privet_log_lines_lost counter
    privet_preparation_seconds histogram
    privet_preparations counter
    privet_preparations_running gauge
    privet_preparations_waiting gauge
    privet_queries_answered counter
    privet_queue_depth gauge
    privet_request_bytes counter
    privet_request_seconds histogram
    privet_requests counter
    privet_response_bytes counter
    privet_scrub_bytes counter
    privet_scrub_failures counter
    privet_scrub_passes counter
    privet_table gauge
    privet_table_damaged gauge
    privet_table_epoch gauge
    privet_table_extra_bytes gauge
    privet_table_key_map_fullness gauge
    privet_table_record_len gauge
    privet_table_records gauge
    privet_table_versions gauge
    privet_updates counter
    privet_updates_failed counter
    "#);
    let log = std::fs::read_to_string(place.path("server.log")).unwrap();
    for secret in ["bob", "nobody", "555-2"] {
        assert!(!metrics.contains(secret) && !log.contains(secret), "{secret}:\n{metrics}\n{log}");
    }
}

#[test]
fn logs_may_be_json() {
    let place = Place::with_phones();
    let served = Served::start(&place, "phones.privet --no-cache --log-json");
    assert_eq!(served.terminate(), Some(0));
    let log = std::fs::read_to_string(place.path("server.log")).unwrap();
    assert!(!log.is_empty());
    for line in log.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(line["level"].is_string(), "{line}");
    }
}

#[test]
fn what_cannot_be_served_is_refused() {
    let place = Place::with_phones();
    assert_snapshot!(place.run("serve missing.privet").refusal(), @r#"
    [exit 2]
    privet: cannot open missing.privet: No such file or directory (os error 2); build it (`privet build`)
    "#);
    assert_snapshot!(place.run("serve phones.csv").refusal(), @r#"
    [exit 2]
    privet: phones.csv: this is no Privet table file; build one (`privet build`)
    "#);
    assert_snapshot!(place.run("serve phones.privet phones.privet --no-cache --listen 127.0.0.1:0").refusal(), @r#"
    [exit 2]
    privet: two tables are named phones; give one of them another name (NAME=FILE)
    "#);
    assert_snapshot!(place.run("serve phones.privet --no-cache --listen 127.0.0.1:0 --tls-cert no.pem --tls-key no.pem").refusal(), @r#"
    [exit 2]
    privet: the certificate file no.pem cannot be read: No such file or directory (os error 2)
    "#);
    place.write("no.pem", "no certificate\n");
    assert_snapshot!(place.run("serve phones.privet --no-cache --listen 127.0.0.1:0 --tls-cert no.pem --tls-key no.pem").refusal(), @r#"
    [exit 2]
    privet: no.pem holds no certificate in PEM form: nothing in it begins with -----BEGIN
    "#);
}

#[test]
fn plaintext_is_refused_off_loopback() {
    let place = Place::with_phones();
    assert_snapshot!(place.run("serve phones.privet --no-cache --listen 0.0.0.0:0").refusal(), @r#"
    [exit 2]
    privet: 0.0.0.0:0 can be reached from other machines, and without TLS anybody on the network path sees which table is asked and can change answers: give a certificate and key, listen on 127.0.0.1, or accept plaintext (--tls-cert and --tls-key, --listen, or --insecure)
    "#);
}

#[test]
fn pages_are_served_if_that_is_asked_for_and_those_of_named_origins_get_words() {
    let place = Place::with_phones();
    let words = |served: &Served| {
        let mut stream = TcpStream::connect(served.address()).unwrap();
        let origin = "Host: a\r\nOrigin: http://localhost:8080\r\nConnection: close";
        write!(stream, "GET / HTTP/1.1\r\n{origin}\r\n\r\n").unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        let allowed = "access-control-allow-origin: http://localhost:8080\r\n";
        (said[..12].to_owned(), said.to_lowercase().contains(allowed))
    };
    for (web, status, allowed) in [
        ("", "HTTP/1.1 505", false),
        ("--web", "HTTP/1.1 405", false),
        (
            "--web --web-origin https://a.example --web-origin http://localhost:8080",
            "HTTP/1.1 405",
            true,
        ),
    ] {
        let served = Served::start(&place, &format!("phones.privet --no-cache {web}"));
        assert_eq!(words(&served), (status.to_owned(), allowed), "{web}");
        assert_eq!(served.terminate(), Some(0));
    }
    for (web, why) in [
        ("--web --web-origin *", "name the origins one by one"),
        ("--web --web-origin http://a.example", "is not encrypted"),
        ("--web-origin https://a.example", "--web"),
    ] {
        let refused = place.run(&format!("serve phones.privet --no-cache {web}"));
        assert_eq!(refused.code(), 2);
        assert!(refused.stderr().contains(why), "{refused}");
    }
}

#[test]
fn metrics_off_loopback_are_warned_of() {
    let place = Place::with_phones();
    let served = Served::start(&place, "phones.privet --no-cache --metrics-listen 0.0.0.0:0");
    let warned = "can be reached from other machines";
    place.server_log(|log| log.contains("WARN") && log.contains(warned));
    assert_eq!(served.terminate(), Some(0));
}

#[test]
fn limits_are_set_by_name_and_wrong_ones_are_refused() {
    let place = Place::with_phones();
    let run = |limit: &str| place.run(&format!("serve phones.privet --no-cache --limit {limit}"));
    assert_snapshot!(run("connections=0").mistake(), @r#"
    error: invalid value 'connections=0' for '--limit <NAME=VALUE>': connections must be more than 0: with 0 nobody could be served

    For more information, try '--help'.
    "#);
    assert_snapshot!(run("connections").mistake(), @r#"
    error: invalid value 'connections' for '--limit <NAME=VALUE>': "connections" is not NAME=VALUE, such as connections=1000

    For more information, try '--help'.
    "#);
    let named =
        "there is no limit named \"connection\"; there are connections, connections-per-peer";
    run("connection=10").says(2, named);
}

/// More connections than a process may have open files, on any system.
#[test]
fn more_connections_than_open_files_are_refused_at_the_start() {
    let place = Place::with_phones();
    let run = place.run("serve phones.privet --no-cache --listen 0 --limit connections=4000000000");
    let refusal = run.refusal();
    assert!(refusal.starts_with("[exit 2]"), "{refusal}");
    assert!(refusal.contains("4000000000 connections need 4000000136 open files"), "{refusal}");
    assert!(refusal.contains("ulimit -n 4000000136"), "{refusal}");
}

#[test]
fn an_address_in_use_is_named() {
    let place = Place::with_phones();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let run = place
        .run(&format!("serve phones.privet --no-cache --listen {}", taken.local_addr().unwrap()));
    assert_snapshot!(run.refusal(), @r#"
    [exit 3]
    privet: cannot listen on 127.0.0.1:[PORT]: Address already in use (os error 98); another program listens there: stop it or choose another port
    "#);
}

/// An address may be only a port, and the cache directory may come from the environment.
#[test]
fn a_quiet_server_says_nothing_while_all_is_well() {
    let place = Place::with_phones();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let serve = format!("serve phones.privet --scheme simplepir --quiet --listen {port}");
    let mut command = place.command(&serve);
    command.env("PRIVET_CACHE", "hints").stdout(Stdio::piped()).stderr(Stdio::piped());
    let server = command.spawn().unwrap();
    let listens = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    let found = place.run(&format!("get http://localhost:{port} -k ada"));
    let stop = Command::new("kill").args(["-TERM", &server.id().to_string()]).status();
    let run = Run(server.wait_with_output().unwrap());
    assert!(listens && stop.unwrap().success());
    assert_eq!(found.code(), 0, "{found}");
    assert_eq!((run.code(), run.stdout(), run.stderr()), (0, "", ""), "{run}");
    assert!(place.path("hints").exists());
}
