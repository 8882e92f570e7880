//! What leaves the command's connection does not depend on the reader of its output, and the tests
//! would notice if it did. (The whole program is tested in `crates/cli/tests/cli/pace.rs`.)

use super::planted::{ENDS_WITH_THE_READER, IS_GONE, WAITS_FOR_THE_READER};
use crate::arguments::{Arguments, Command};
use privet_host::TableFile;
use privet_schemes::SchemeId;
use privet_server::{RunningServer, Server, ServerConfig};
use privet_table::build::{BuildOptions, build_table};
use privet_table::import::Source;
use privet_testing::{Margins, Reading, Record, Relay, differences, read};
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Many more than are handed over at once, with values that together fill a pipe.
const LOOKUPS: usize = 160;

fn typed(words: &str) -> Vec<std::ffi::OsString> {
    ["privet"].into_iter().chain(words.split(' ')).map(Into::into).collect()
}

/// Makes a table of some long values in `place`, and a list of their keys.
fn make_table(place: &Path) {
    let rows = (0..8).map(|row| format!("k{row},{}\n", "v".repeat(500)));
    std::fs::write(place.join("rows.csv"), format!("k,v\n{}", rows.collect::<String>())).unwrap();
    let keys = (0..LOOKUPS).map(|number| format!("k{}\n", number % 8));
    std::fs::write(place.join("keys"), keys.collect::<String>()).unwrap();
    let (key, raw_value) = (Some("k".into()), Some("v".into()));
    let options = BuildOptions { key, raw_value, ..BuildOptions::default() };
    let rows = Source::path(place.join("rows.csv"));
    build_table(&options, rows, &place.join("rows.privet"), &mut |_| Ok(())).unwrap();
}

async fn serve(place: &Path) -> RunningServer {
    let file = TableFile::new("rows", place.join("rows.privet"));
    let file = TableFile { scheme: Some(SchemeId::SimplePir), ..file };
    let config = ServerConfig::new(([127, 0, 0, 1], 0).into());
    Server::start(config, vec![file.open().unwrap().0]).await.unwrap()
}

/// What the command sends if its output, a pipe, is read in this way; and whether it waited for
/// nobody.
fn sent(place: &Path, server: &RunningServer, reading: Reading) -> (Record, bool) {
    let relay = Relay::start(server.local_addr()).unwrap();
    let pipe = place.join("pipe");
    let _ = std::fs::remove_file(&pipe);
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (url, shown) = (relay.url(), place.display());
    let get = format!("get {url} --quiet --keys-from {shown}/keys --state {shown}/state -o");
    let Ok((Arguments { command: Command::Get(get), .. }, _)) =
        Arguments::typed(typed(&format!("{get} {shown}/pipe")))
    else {
        panic!("this is no get")
    };
    let command = std::thread::spawn(move || super::run(&get));
    // Opening a pipe waits for its reader. Servers must not see that.
    let early = relay.wait_until(Duration::from_millis(300), |seen| !seen.connections.is_empty());
    assert!(!early, "it connects before its output has a reader");
    let (_, waited_for_nobody) = read(File::open(&pipe).unwrap(), &relay, reading).unwrap();
    command.join().unwrap().unwrap();
    relay.wait_until(Duration::from_secs(10), Record::is_closed);
    (relay.record(), waited_for_nobody)
}

#[test]
fn planted_mistakes_show_on_the_connection() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    make_table(place);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(serve(place));
    let last = |seconds| Reading::Last(Duration::from_secs(seconds));
    let planted = |flaw: &AtomicBool, reading| {
        flaw.store(true, Ordering::Relaxed);
        IS_GONE.store(false, Ordering::Relaxed);
        let seen = sent(place, &server, reading);
        flaw.store(false, Ordering::Relaxed);
        seen
    };
    let margins = Margins { time: Duration::from_secs(60), ..Margins::default() };

    // The first call receives the hint, which the others find.
    sent(place, &server, Reading::All);
    let (honest, _) = sent(place, &server, Reading::All);
    assert!(honest.messages().len() > LOOKUPS, "{}", honest.messages().len());
    for reading in [Reading::FirstLine, last(60)] {
        let (record, waited_for_nobody) = sent(place, &server, reading);
        assert_eq!(differences(&honest, &record, &margins), [""; 0], "{reading:?}");
        assert!(waited_for_nobody, "{reading:?}");
    }
    // With this as well, printing is never so far behind that the reader goes away too late.
    WAITS_FOR_THE_READER.store(true, Ordering::Relaxed);
    let (record, _) = planted(&ENDS_WITH_THE_READER, Reading::FirstLine);
    assert!(!differences(&honest, &record, &margins).is_empty());
    let (_, waited_for_nobody) = planted(&WAITS_FOR_THE_READER, last(3));
    assert!(!waited_for_nobody);
    runtime.block_on(async {
        server.shutdown();
        server.wait().await.unwrap();
    });
}
