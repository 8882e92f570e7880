//! `privet get` when the server ends or stands still in the middle, or the time is up.

use crate::place::{Place, Run};
use crate::served::Served;

/// Starts looking up 20,000 keys, and calls `stop` once the first is found. Returns how many were
/// found, and how the command ended.
fn interrupted(place: &Place, url: &str, arguments: &str, stop: impl FnOnce()) -> (usize, Run) {
    use std::io::{BufRead as _, BufReader, Read as _};
    place.write("keys", "ada\nbob\n".repeat(10_000));
    let mut command = place.command(&format!("get {url} --keys-from keys {arguments}"));
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The command waits for no reader. But the lookups take longer than it takes to read this.
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut printed = String::new();
    out.read_line(&mut printed).unwrap();
    stop();
    out.read_to_string(&mut printed).unwrap();
    let expected = [
        "ada\t{\"phone\":\"555-1\",\"floor\":\"3\"}",
        "bob\t{\"phone\":\"555-2\",\"floor\":\"4\"}",
    ];
    for line in printed.lines() {
        assert!(expected.contains(&line), "not whole: {line}");
    }
    let run = Run(child.wait_with_output().unwrap());
    // Two lines for one key say that the lookup between them was under way and failed. The server
    // may have sent the answer to a later one before that.
    let lines: Vec<_> = printed.lines().collect();
    let gaps = lines.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert!(gaps == 0 || run.stderr().contains("lookups failed"), "{gaps} gaps: {run}");
    (lines.len(), run)
}

#[test]
fn a_server_that_ends_in_the_middle_ends_the_command_with_what_was_found() {
    for (scheme, servers) in [("simplepir", 1), ("dpf", 2), ("singlepass", 2)] {
        let place = Place::with_phones();
        let serve = format!("phones.privet --scheme {scheme} --no-cache");
        let mut all: Vec<_> = (0..servers).map(|_| Served::start(&place, &serve)).collect();
        let urls: Vec<_> = all.iter().map(|served| served.url.clone()).collect();
        let last = all.pop().unwrap();
        let began = std::time::Instant::now();
        let (found, run) = interrupted(&place, &urls.join(" "), "--timeout 4", || drop(last));
        assert_eq!(run.code(), 3, "{scheme}: {run}");
        assert!((1..20_000).contains(&found), "{scheme}: {found}");
        assert!(run.stderr().contains("were not begun"), "{scheme}: {run}");
        let told = run.stderr().matches("trying again").count();
        assert!((1..=3).contains(&told), "{scheme}: {run}");
        assert!(began.elapsed().as_secs() < 60, "{scheme}: {:?}", began.elapsed());
    }
}

#[test]
fn a_server_that_stands_still_is_not_waited_for_for_ever_nor_in_silence() {
    let (place, served) = Served::phones();
    let url = served.url.clone();
    let (found, run) = interrupted(&place, &url, "--timeout 4", || served.freeze());
    assert_eq!(run.code(), 3, "{run}");
    assert!((1..20_000).contains(&found), "{found}");
    assert!(run.stderr().contains("nothing has come from http://"), "{run}");
    assert!(run.stderr().contains(" within 2 s; allow more time (--timeout)"), "{run}");
}

#[test]
fn the_whole_command_may_be_given_a_time() {
    let (place, served) = Served::phones();
    let url = served.url.clone();
    let (found, run) = interrupted(&place, &url, "--max-time 2", || served.freeze());
    assert_eq!(run.code(), 3, "{run}");
    assert!((1..20_000).contains(&found), "{found}");
    assert!(run.stderr().contains("(--max-time)"), "{run}");
    // The limit also applies before the first lookup.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    place.run(&format!("get http://{address} -k ada --max-time 1")).says(3, "(--max-time)");
}
