//! What the program prints to a terminal. The tests use a pseudoterminal, which is real to the
//! program.

use crate::place::Place;
use crate::served::Served;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Command, Stdio};

/// Ends a line, writes to the clipboard (OSC 52), clears the screen, sounds the bell, moves up and
/// overwrites printed text, and changes the direction of writing.
const HOSTILE: &str = "555\u{1b}]52;c;cm0gLXJmIC8=\u{7}\u{1b}[2J\u{1b}[1A\rprivet: verified\
                       \u{8}\u{9b}31m\u{202e}gpj.exe\u{2066}";

/// What the command prints on a terminal that is its standard output. The command must succeed.
fn on_a_terminal(place: &Place, arguments: &str) -> Vec<u8> {
    shown_to(place, arguments, |command, terminal| {
        command.stdout(terminal).stderr(Stdio::piped());
    })
}

/// What the command prints on a terminal that is its standard error. Its standard output is a pipe.
fn said_on_a_terminal(place: &Place, arguments: &str) -> String {
    let said = shown_to(place, arguments, |command, terminal| {
        command.stderr(terminal).stdout(Stdio::piped());
    });
    String::from_utf8(said).unwrap()
}

fn shown_to(place: &Place, arguments: &str, give: impl Fn(&mut Command, File)) -> Vec<u8> {
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&screen).unwrap();
    unlockpt(&screen).unwrap();
    let name = ptsname(&screen, Vec::new()).unwrap();
    // Opened so that it does not become the controlling terminal of this process.
    let terminal = File::options()
        .read(true)
        .write(true)
        .custom_flags(OpenptFlags::NOCTTY.bits() as i32)
        .open(OsStr::from_bytes(name.as_bytes()));
    let mut command = place.command(arguments);
    give(&mut command, terminal.unwrap());
    let child = command.spawn().unwrap();
    // The command still holds the terminal open. Until it is dropped, reading would never end.
    drop(command);
    let mut printed = Vec::new();
    let mut screen = File::from(screen);
    let mut buffer = [0; 4096];
    // Some systems report an error once nobody has the terminal open.
    while let Ok(read @ 1..) = screen.read(&mut buffer) {
        printed.extend_from_slice(&buffer[..read]);
    }
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    printed
}

/// A place with a table whose values are [`HOSTILE`].
fn with_hostile_values() -> (Place, Served) {
    let place = Place::new();
    let row = serde_json::json!({ "k": "ada", "v": HOSTILE });
    place.write("hostile.jsonl", format!("{row}\n"));
    place.build("hostile.jsonl --key k --raw-value v -o hostile.privet");
    let served = Served::start(&place, "hostile.privet --no-cache --scheme simplepir");
    (place, served)
}

#[test]
fn a_value_cannot_command_a_real_terminal() {
    let (place, served) = with_hostile_values();
    let get = format!("get {} -k ada", served.url);
    let escaped = "555\\u{1b}]52;c;cm0gLXJmIC8=\\u{7}\\u{1b}[2J\\u{1b}[1A\\rprivet: verified\
                   \\u{8}\\u{9b}31m\\u{202e}gpj.exe\\u{2066}";
    // A terminal turns the line break into both characters.
    let shown = on_a_terminal(&place, &get);
    assert_eq!(String::from_utf8(shown).unwrap(), format!("{escaped}\r\n"));

    let shown = String::from_utf8(on_a_terminal(&place, &format!("{get} --json"))).unwrap();
    let line = shown.strip_suffix("\r\n").unwrap();
    assert!(line.chars().all(|character| (' '..='~').contains(&character)), "{line}");
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["text"], HOSTILE);
}

#[test]
fn bytes_reach_a_terminal_if_that_is_asked_for_and_a_pipe_always() {
    let (place, served) = with_hostile_values();
    let get = format!("get {} -k ada", served.url);
    let shown = on_a_terminal(&place, &format!("{get} --raw"));
    assert_eq!(String::from_utf8(shown).unwrap(), format!("{HOSTILE}\r\n"));
    for more in ["", " --raw"] {
        let run = place.run(&format!("{get}{more}"));
        assert_eq!((run.code(), run.stdout()), (0, &*format!("{HOSTILE}\n")), "{run}");
    }
}

#[test]
fn a_long_list_of_lookups_is_counted_where_there_is_room() {
    let (place, served) = Served::phones();
    place.write("keys", "ada\n".repeat(150));
    let get = format!("get {} --keys-from keys", served.url);
    let said = said_on_a_terminal(&place, &get);
    assert!(said.contains("looking up [") && said.contains("/150"), "{said}");
    // However busy the machine is, the first lookup is counted as soon as the bar is there.
    assert!(!said.contains("] 1/150 at "), "no speed of so little: {said}");
    assert_eq!(said_on_a_terminal(&place, &format!("{get} --quiet")), "");
    place.write("keys", "ada\n".repeat(100));
    assert!(!said_on_a_terminal(&place, &get).contains("looking up"));
}
