//! Tables that are updated while `privet serve` serves them.

use crate::place::Place;
use crate::served::Served;

const EPOCH: &str = "privet_table_epoch{table=\"phones\"}";
const VERSIONS: &str = "privet_table_versions{table=\"phones\"}";
const FAILED: &str = "privet_updates_failed_total{table=\"phones\"}";

fn with_key() -> Place {
    let place = Place::with_phones();
    place.begin_history("phones.privet");
    place
}

fn update(place: &Place, arguments: &str) {
    place
        .run(&format!("update phones.privet --publisher-key publisher.key {arguments}"))
        .succeeds();
}

/// An update that gives `ada` this phone number.
fn set(number: u32) -> String {
    format!(r#"--set ada={{"phone":"555-{number}","floor":"{number}"}}"#)
}

fn serve(place: &Place, arguments: &str) -> Served {
    let arguments = format!("phones.privet --no-cache --metrics-listen 127.0.0.1:0 {arguments}");
    Served::start(place, &arguments)
}

/// What a client without state finds under `ada`.
fn found(place: &Place, served: &Served) -> String {
    let state = tempfile::tempdir().unwrap();
    let state = state.path().to_str().unwrap();
    let run = place.run(&format!("get {} --state {state} -k ada", served.url)).succeeds();
    run.stdout().to_owned()
}

fn number(number: u32) -> String {
    format!("{{\"phone\":\"555-{number}\",\"floor\":\"{number}\"}}\n")
}

#[test]
fn a_running_server_follows_updates_and_compactions() {
    for scheme in ["simplepir", "dummy-subsets", "download"] {
        let place = with_key();
        let served = serve(&place, &format!("--watch 1 --scheme {scheme}"));
        served.until_metric(VERSIONS, 1);
        // The log grows. Then a compaction folds it and a new epoch into the table
        // file, and it grows again.
        for (epoch, more) in [(1, ""), (2, ""), (3, " --compact"), (4, "")] {
            update(&place, &format!("{}{more}", set(epoch)));
            served.until_metric(EPOCH, epoch.into());
            assert_eq!(found(&place, &served), number(epoch), "{scheme}");
        }
        served.until_metric(VERSIONS, 4);
        served.until_metric(FAILED, 0);
        let log = place.server_log(|log| log.matches("table updated").count() == 4);
        assert!(!log.contains("555-"), "{log}");
    }
}

#[cfg(unix)]
#[test]
fn a_signal_has_the_server_look_and_nothing_is_kept_without_grace() {
    let place = with_key();
    let served = serve(&place, "--watch 0 --grace 0 --scheme simplepir");
    for epoch in 1..=3 {
        update(&place, &set(epoch));
        served.hang_up();
        served.until_metric(EPOCH, epoch.into());
        served.until_metric(VERSIONS, 1);
        assert_eq!(found(&place, &served), number(epoch));
    }
    assert_eq!(served.terminate(), Some(0));
}

#[cfg(unix)]
#[test]
fn a_damaged_log_changes_nothing_until_it_is_whole() {
    let place = with_key();
    update(&place, &set(1));
    let served = serve(&place, "--watch 0 --scheme simplepir");
    served.until_metric(EPOCH, 1);
    update(&place, &set(2));
    let end = std::fs::metadata(place.path("phones.privet.updates")).unwrap().len() as usize - 1;
    place.flip("phones.privet.updates", end);
    served.hang_up();
    served.until_metric(FAILED, 1);
    assert_eq!(found(&place, &served), number(1));
    place.server_log(|log| log.contains("damaged") && log.contains("phones.privet.updates"));
    place.flip("phones.privet.updates", end);
    served.hang_up();
    served.until_metric(EPOCH, 2);
    assert_eq!(found(&place, &served), number(2));
}

/// Flips one bit in the first byte of `part`, in place.
fn flip(place: &Place, name: &str, part: &[u8]) {
    let bytes = std::fs::read(place.path(name)).unwrap();
    let at = bytes.windows(part.len()).position(|window| window == part).unwrap();
    place.flip(name, at);
}

/// The table file is damaged when an update is to be applied to it. A server that answers from
/// memory goes on with the previous version, undamaged. A server started on these files serves
/// nothing.
#[cfg(unix)]
#[test]
fn an_update_onto_a_damaged_table_file_is_not_served() {
    let place = with_key();
    update(&place, &set(1));
    let served = serve(&place, "--watch 0 --scheme simplepir");
    served.until_metric(EPOCH, 1);
    update(&place, &set(2));
    let whole = std::fs::read(place.path("phones.privet")).unwrap();
    // The update does not change these bytes.
    flip(&place, "phones.privet", b"555-2");
    served.hang_up();
    served.until_metric(FAILED, 1);
    served.until_metric(EPOCH, 1);
    assert_eq!(found(&place, &served), number(1));
    let is_told = |log: &str| log.contains("damaged") || log.contains("was written to");
    place.server_log(|log| is_told(log) && log.contains("phones.privet"));
    place.run("serve phones.privet --no-cache --listen 127.0.0.1:0").says(4, "phones.privet");
    // Once the file is restored, the server follows the update.
    place.write("whole", whole);
    std::fs::rename(place.path("whole"), place.path("phones.privet")).unwrap();
    served.hang_up();
    served.until_metric(EPOCH, 2);
    assert_eq!(found(&place, &served), number(2));
}

/// The served log is damaged. Only the server can tell its operator.
#[cfg(unix)]
#[test]
fn a_log_that_is_damaged_while_it_is_served_ends_the_service_of_its_table() {
    use crate::served::http_get;
    let place = with_key();
    place.build("phones.csv --key name -o other.privet");
    update(&place, &set(1));
    // Scrubbing is slow enough that the first pass reaches the log only after some seconds.
    let served = serve(&place, "other.privet --watch 0 --scheme simplepir --scrub-rate 60000");
    served.until_metric("privet_table_damaged{table=\"phones\"}", 0);
    flip(&place, "phones.privet.updates", b"555-1");
    served.until_metric("privet_table_damaged{table=\"phones\"}", 1);
    let (status, body) = http_get(served.metrics_address(), "/healthz");
    assert!(status.contains("503") && body.trim_end() == "damaged: phones", "{status}: {body}");
    place.run(&format!("get {} --table other -k ada", served.url)).succeeds();
    let phones = place.run(&format!("get {} --table phones -k ada --timeout 1", served.url));
    assert_eq!((phones.code(), phones.stdout()), (3, ""), "{phones}");
    let log = place.server_log(|log| log.contains("is damaged"));
    let line = log.lines().find(|line| line.contains("ERROR") && line.contains("is damaged"));
    assert!(line.is_some_and(|line| line.contains("phones.privet.updates")), "{log}");
}

#[cfg(unix)]
#[test]
fn points_in_memory_follow_and_points_in_a_file_do_not() {
    let place = with_key();
    let points =
        "setup points phones.privet --scheme finite-differences --variables 8 --degree 3 -o points";
    assert_eq!(place.run(points).code(), 0);
    let in_memory = [(); 2].map(|()| serve(&place, "--watch 0 --points points"));
    update(&place, &set(1));
    for server in &in_memory {
        server.hang_up();
        server.until_metric(EPOCH, 1);
    }
    let [first, second] = &in_memory;
    let run = place.run(&format!("get {} {} -k ada", first.url, second.url));
    assert_eq!(run.stdout(), number(1), "{run}");
    drop(in_memory);

    // The points are those of the table file. The server follows later updates in the log when it
    // starts.
    let again = serve(&place, "--watch 0 --points points");
    again.until_metric(EPOCH, 1);
    assert_eq!(again.terminate(), Some(0));

    let refused =
        place.run("serve phones.privet --no-cache --listen 127.0.0.1:0 --points points --mapped");
    assert_eq!(refused.code(), 2, "{refused}");
    update(&place, "--compact 0");
    place.run(&format!("{points} --force")).succeeds();
    let mapped = serve(&place, "--watch 0 --points points --mapped");
    update(&place, &set(2));
    mapped.hang_up();
    mapped.until_metric(FAILED, 1);
    mapped.until_metric(EPOCH, 1);
    place.server_log(|log| log.contains("(`privet setup points`)"));
}

/// When rows are added, parameters that depend on the number of records stay the same. This also
/// holds after a compaction, and for a server that starts on the compacted table.
#[test]
fn a_table_that_has_grown_is_served_as_before_after_a_restart() {
    for scheme in ["simplepir", "dummy-subsets"] {
        let place = Place::new();
        assert_eq!(place.run("keygen -o publisher.key").code(), 0);
        let rows = |range: std::ops::Range<u32>| {
            range.fold("value\n".to_owned(), |rows, row| rows + &format!("{row:05}\n"))
        };
        place.write("rows.csv", rows(0..1000));
        place.build("rows.csv --raw-value value --publisher-key publisher.key -o phones.privet");
        place.write("more.csv", rows(1000..1400));
        let get = |served: &Served, row: u32| {
            let run = place.run(&format!("get {} --state state -i {row}", served.url));
            assert_eq!((run.code(), run.stdout()), (0, &*format!("{row:05}\n")), "{scheme}: {run}");
        };
        let arguments = format!("--watch 0 --scheme {scheme}");
        let served = serve(&place, &arguments);
        get(&served, 77);
        update(&place, "--from more.csv --compact");
        served.hang_up();
        served.until_metric(EPOCH, 1);
        get(&served, 1234);
        let address = served.address().to_owned();
        drop(served);
        let arguments =
            format!("phones.privet --no-cache --metrics-listen 127.0.0.1:0 {arguments}");
        let again = Served::start_at(&place, &address, &arguments);
        get(&again, 1399);
        update(&place, "--set 7=other");
        again.hang_up();
        again.until_metric(EPOCH, 2);
        get(&again, 78);
    }
}

/// A table that has grown is served by the scheme of its first shape, and `inspect` says so.
#[test]
fn a_grown_table_is_inspected_as_it_is_served() {
    for compact in ["", "--compact"] {
        let place = Place::new();
        assert_eq!(place.run("keygen -o publisher.key").code(), 0);
        let rows = |range: std::ops::Range<u32>| {
            range.fold("value\n".to_owned(), |rows, row| rows + &format!("{row:0500}\n"))
        };
        place.write("rows.csv", rows(0..10));
        place.build("rows.csv --raw-value value --publisher-key publisher.key -o phones.privet");
        place.write("more.csv", rows(10..20_000));
        update(&place, &format!("--from more.csv {compact}"));
        place.write("all.csv", rows(0..20_000));
        place.build("all.csv --raw-value value -o all.privet");
        let scheme = |file: &str| {
            let inspected = place.run(&format!("inspect {file} --json"));
            let report: serde_json::Value = serde_json::from_str(inspected.stdout()).unwrap();
            report["serving"]["scheme"].as_str().unwrap().to_owned()
        };
        let (grown, new) = (scheme("phones.privet"), scheme("all.privet"));
        assert_ne!(grown, new, "{compact}");
        let announcement = serve(&place, "").announcement.clone();
        assert!(announcement.contains(&format!(", {grown}, ")), "{compact}: {announcement}");
    }
}

/// Where a server says that its hint comes from.
#[cfg(unix)]
fn origin(served: &Served) -> &str {
    let (_, rest) = served.announcement.split_once(", hint of ").unwrap();
    rest.split_once(',').unwrap().0.rsplit_once(' ').unwrap().1
}

/// A restart after updates reads the hint, and computes none. A server that is killed leaves what
/// it had kept before, and the next start makes the hint of that or computes it.
#[cfg(unix)]
#[test]
fn the_hint_of_the_last_update_is_cached_when_a_server_stops() {
    for (scheme, after_a_kill) in [("simplepir", "patched"), ("simplepir-packed", "computed")] {
        let place = with_key();
        let start = || {
            let cached = "--cache cache --metrics-listen 127.0.0.1:0";
            Served::start(&place, &format!("phones.privet --scheme {scheme} {cached}"))
        };
        let entries = || -> Vec<_> {
            let entries = std::fs::read_dir(place.path("cache")).unwrap();
            entries.map(|entry| entry.unwrap().file_name()).collect()
        };
        let served = start();
        assert_eq!(origin(&served), "computed", "{scheme}");
        let first = entries();
        for epoch in 1..=3 {
            update(&place, &set(epoch));
            served.until_metric(EPOCH, epoch.into());
        }
        assert_eq!(entries(), first, "{scheme}: it is not written with every update");
        assert_eq!(served.terminate(), Some(0));
        assert_eq!(entries().len(), 2, "{scheme}");

        let served = start();
        assert_eq!(origin(&served), "cached", "{scheme}");
        assert_eq!(found(&place, &served), number(3), "{scheme}");
        assert!(entries().len() == 1 && entries() != first, "{scheme}: {:?}", entries());
        update(&place, &set(4));
        served.until_metric(EPOCH, 4);
        let before = entries();
        // This kills it.
        drop(served);
        assert_eq!(entries(), before, "{scheme}");

        let served = start();
        assert_eq!(origin(&served), after_a_kill, "{scheme}");
        assert_eq!(found(&place, &served), number(4), "{scheme}");
        assert_eq!(served.terminate(), Some(0));
        let served = start();
        assert_eq!(origin(&served), "cached", "{scheme}");
        assert_eq!(found(&place, &served), number(4), "{scheme}");
        assert_eq!(entries().len(), 1, "{scheme}");
    }
}
