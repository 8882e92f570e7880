//! Files that are damaged before they are served, or changed in place while they are served.

use crate::place::Place;
use crate::served::{Served, http_get};
use std::fs::{self, File};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const FOUND: &str = "{\"phone\":\"555-1\",\"floor\":\"3\"}\n";
const METRICS: &str = "--no-cache --metrics-listen 127.0.0.1:0";

/// What can happen to a file in place.
#[derive(Clone, Copy, Debug)]
enum Change {
    Truncated,
    /// Another file of the same length is copied over it, as `cp` does: the file is emptied, then
    /// written.
    Overwritten,
}

impl Change {
    const ALL: [Change; 2] = [Change::Truncated, Change::Overwritten];

    fn make(self, place: &Place, name: &str) {
        let path = place.path(name);
        let good = fs::read(&path).unwrap();
        match self {
            Change::Truncated => {
                File::options().write(true).open(path).unwrap().set_len(0).unwrap()
            }
            Change::Overwritten => {
                place.write("other", good.iter().map(|byte| byte ^ 0x11).collect::<Vec<u8>>());
                fs::copy(place.path("other"), path).unwrap();
            }
        }
    }
}

/// Has a client find its record, however long that takes on a busy machine. Returns how long others
/// get: long before they give up, but late enough for all that they may have found.
fn first_get(place: &Place, urls: &str) -> Duration {
    let began = Instant::now();
    assert_eq!(get_anew(place, urls, 0, Duration::from_secs(60)), Some(0), "{urls}");
    (5 * began.elapsed()).max(Duration::from_secs(2))
}

/// How a client ends that knows nothing yet, if it ends in time. Whatever it prints is not wrong.
fn get_anew(place: &Place, urls: &str, number: usize, limit: Duration) -> Option<i32> {
    let home = place.path(&format!("home-{number}"));
    fs::create_dir(&home).unwrap();
    let mut command = place.command(&format!("get {urls} -k ada"));
    let output = File::create(place.path("output")).unwrap();
    let child = command.env("HOME", home).stdout(output).stderr(Stdio::null()).spawn().unwrap();
    let ended = within(child, limit);
    let output = fs::read_to_string(place.path("output")).unwrap();
    assert!(output.is_empty() || output == FOUND, "wrong: {output:?}");
    assert!(ended != Some(1), "a false \"not found\"");
    ended.filter(|code| *code != 0 || !output.is_empty())
}

/// The exit code, of a process that ends in time; killed if it does not.
fn within(mut child: Child, limit: Duration) -> Option<i32> {
    let began = Instant::now();
    while began.elapsed() < limit {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

/// Checks that the server runs, reports its table as damaged, and has logged the damaged file.
fn lives_and_says_so(place: &Place, served: &Served, file: &str) {
    served.until_metric("privet_table_damaged{table=\"phones\"}", 1);
    let (status, body) = http_get(served.metrics_address(), "/healthz");
    assert!(status.contains("503"), "{status}");
    assert_eq!(body.trim_end(), "damaged: phones");
    let log = place.server_log(|log| log.contains("is damaged"));
    let line = log.lines().find(|line| line.contains("ERROR") && line.contains("is damaged"));
    let line = line.unwrap_or_else(|| panic!("no such line in:\n{log}"));
    assert!(line.contains(file) && line.contains("phones"), "{line}");
}

#[test]
fn a_table_file_that_is_changed_in_place_does_not_end_its_server() {
    for scheme in ["download", "dummy-subsets"] {
        for change in Change::ALL {
            let place = Place::with_phones();
            let serve = format!("phones.privet --scheme {scheme} {METRICS}");
            let served = Served::start(&place, &serve);
            let limit = first_get(&place, &served.url);
            change.make(&place, "phones.privet");
            // At once, before the server has checked the file again.
            assert_ne!(get_anew(&place, &served.url, 1, limit), Some(0), "{scheme} {change:?}");
            lives_and_says_so(&place, &served, "phones.privet");
            assert_ne!(get_anew(&place, &served.url, 2, limit), Some(0), "{scheme} {change:?}");
            assert_eq!(served.terminate(), Some(0), "{scheme} {change:?}");
        }
    }
}

#[test]
fn a_file_of_mapped_points_that_is_changed_in_place_does_not_end_its_server() {
    for change in Change::ALL {
        let place = Place::with_phones();
        place.run("setup points phones.privet --scheme finite-differences -o points").succeeds();
        fs::copy(place.path("points"), place.path("mapped")).unwrap();
        let whole = Served::start(&place, "phones.privet --points points");
        let served =
            Served::start(&place, &format!("phones.privet --points mapped --mapped {METRICS}"));
        let urls = format!("{} {}", whole.url, served.url);
        let limit = first_get(&place, &urls);
        change.make(&place, "mapped");
        assert_ne!(get_anew(&place, &urls, 1, limit), Some(0), "{change:?}");
        lives_and_says_so(&place, &served, "mapped");
        assert_eq!(served.terminate(), Some(0), "{change:?}");
    }
}

/// This server answers from memory. The file may change meanwhile, and the next start refuses it.
#[test]
fn a_table_that_is_answered_from_memory_is_not_touched_by_what_happens_to_its_file() {
    let place = Place::with_phones();
    let serve = format!("phones.privet --scheme simplepir {METRICS}");
    let served = Served::start(&place, &serve);
    Change::Overwritten.make(&place, "phones.privet");
    first_get(&place, &served.url);
    assert_eq!(served.terminate(), Some(0));
    let refused = place.run(&format!("serve {serve} --listen 127.0.0.1:0"));
    assert_eq!(refused.code(), 2, "{refused}");
}

#[test]
fn a_scrub_says_that_a_table_is_whole_and_can_be_switched_off() {
    let place = Place::with_phones();
    let passes = "privet_scrub_passes_total{table=\"phones\"}";
    let served = Served::start(&place, &format!("phones.privet --scheme simplepir {METRICS}"));
    served.until_metric(passes, 1);
    place.server_log(|log| log.contains("table checked: it is whole"));
    drop(served);
    let off = format!("phones.privet --scheme simplepir {METRICS} --scrub-rate 0");
    let served = Served::start(&place, &off);
    std::thread::sleep(Duration::from_millis(300));
    served.until_metric(passes, 0);
}

#[test]
fn skipping_the_verification_is_said_aloud_and_serves_what_is_damaged() {
    let place = Place::with_phones();
    let mut bytes = fs::read(place.path("phones.privet")).unwrap();
    let record = bytes.windows(5).position(|window| window == b"555-1").unwrap();
    bytes[record] ^= 1;
    fs::write(place.path("phones.privet"), bytes).unwrap();
    let serve = "phones.privet --scheme simplepir --no-cache";
    place.run(&format!("serve {serve} --listen 127.0.0.1:0")).says(4, "phones.privet: damaged");
    // Without the check the server starts, so the check caused the refusal.
    let served = Served::start(&place, &format!("{serve} --skip-verification"));
    let warned = "record verification is off";
    place.server_log(|log| log.contains("WARN") && log.contains(warned));
    assert_eq!(served.terminate(), Some(0));
}
