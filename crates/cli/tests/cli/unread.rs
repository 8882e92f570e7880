//! Standard error and standard output that are closed, full, or that nobody reads.

use crate::place::Place;
use crate::served::http_get;
use rustix::io::ioctl_fionbio;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead as _, BufReader, PipeReader, PipeWriter, Read as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Waits until `is_so`. The machine may be busy, so this is long; a failure never ends by itself.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "never: {what}");
        sleep(Duration::from_millis(20));
    }
}

/// Writes until nothing more fits, so that whoever writes next has to wait.
fn fill(stream: &mut (impl AsFd + std::io::Write)) {
    ioctl_fionbio(&mut *stream, true).unwrap();
    // A terminal passes on what it was given a little later, and then has room again.
    let mut refused = 0;
    while refused < 10 {
        match stream.write_all(b"x") {
            Ok(()) => refused = 0,
            Err(_) => {
                refused += 1;
                sleep(Duration::from_millis(10));
            }
        }
    }
    ioctl_fionbio(&mut *stream, false).unwrap();
}

/// A pipe that is full.
fn stuck_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    fill(&mut writer);
    (reader, writer)
}

/// A pipe that nobody can read any more.
fn closed_pipe() -> PipeWriter {
    std::io::pipe().unwrap().1
}

fn full_device() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

/// A terminal that shows no more, as after Ctrl-S. Both ends have to be kept.
fn stopped_terminal() -> (File, File) {
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&screen).unwrap();
    unlockpt(&screen).unwrap();
    let name = ptsname(&screen, Vec::new()).unwrap();
    let mut terminal = File::options()
        .read(true)
        .write(true)
        .custom_flags(OpenptFlags::NOCTTY.bits() as i32)
        .open(OsStr::from_bytes(name.as_bytes()))
        .unwrap();
    fill(&mut terminal);
    (File::from(screen), terminal)
}

/// A place with a table that can be updated.
fn with_key() -> Place {
    let place = Place::with_phones();
    place.begin_history("phones.privet");
    place
}

/// A server whose output nobody may be able to read, so its addresses are chosen before.
struct Server {
    child: Child,
    listen: String,
    metrics: String,
}

impl Server {
    fn start(mut command: Command) -> Self {
        let free = || TcpListener::bind("127.0.0.1:0").unwrap();
        let [listen, metrics] = [free(), free()].map(|free| free.local_addr().unwrap().to_string());
        command.args(["--listen", &listen, "--metrics-listen", &metrics]);
        let server = Self { child: command.spawn().unwrap(), listen, metrics };
        until("the server is ready", || {
            TcpStream::connect(&server.metrics).is_ok() && server.is_well()
        });
        server
    }

    fn is_well(&self) -> bool {
        http_get(&self.metrics, "/healthz") == ("HTTP/1.1 200 OK".to_owned(), "ready\n".to_owned())
    }

    fn metric(&self, name: &str) -> u64 {
        let (_, metrics) = http_get(&self.metrics, "/metrics");
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in\n{metrics}")).parse().unwrap()
    }

    fn lost(&self) -> u64 {
        self.metric("privet_log_lines_lost_total")
    }

    /// Updates the table, and checks that the server notices and says so.
    fn follows(&self, place: &Place, epoch: u64) {
        let set = format!(r#"--set ada={{"phone":"555-{epoch}","floor":"{epoch}"}}"#);
        let update = format!("update phones.privet --publisher-key publisher.key {set}");
        assert_eq!(place.run(&update).code(), 0);
        until("the update is served", || {
            self.metric("privet_table_epoch{table=\"phones\"}") == epoch
        });
        let get = format!("get http://{} --state state-{epoch} -k ada", self.listen);
        let found = format!("{{\"phone\":\"555-{epoch}\",\"floor\":\"{epoch}\"}}\n");
        assert_eq!(place.run(&get).stdout(), found);
        assert!(self.is_well());
    }

    fn signal(&self, signal: &str) {
        let kill = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(kill.unwrap().success());
    }

    /// Has it end by a signal, and returns the exit code.
    fn end_by(mut self, signal: &str) -> Option<i32> {
        self.signal(signal);
        let mut ended = None;
        until("the server ends", || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        ended.unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const SERVE: &str = "serve phones.privet --no-cache --scheme download";

/// What a server has to do whatever becomes of what it writes.
fn does_its_work(place: &Place, more: &str, stdout: impl Into<Stdio>, stderr: impl Into<Stdio>) {
    let mut command = place.command(&format!("{SERVE} {more}"));
    command.stdout(stdout).stderr(stderr);
    let server = Server::start(command);
    server.follows(place, 1);
    server.signal("-HUP");
    server.follows(place, 2);
    assert!(server.lost() > 0, "{more}");
    assert_eq!(server.end_by("-TERM"), Some(0));
}

#[test]
fn a_server_does_its_work_when_the_reader_of_its_log_has_gone() {
    for more in ["", "--log-json"] {
        let place = with_key();
        does_its_work(&place, more, Stdio::null(), closed_pipe());
    }
}

#[test]
fn a_server_does_its_work_when_there_is_no_room_for_its_log() {
    let place = with_key();
    does_its_work(&place, "", Stdio::null(), full_device());
}

#[test]
fn a_server_does_its_work_when_nobody_reads_what_it_announces() {
    for (stdout, kind) in [(Stdio::from(closed_pipe()), "closed"), (full_device().into(), "full")] {
        let place = with_key();
        let log = File::create(place.path("server.log")).unwrap();
        does_its_work(&place, "", stdout, log);
        let log = std::fs::read_to_string(place.path("server.log")).unwrap();
        let told = "3 lines of the log were lost: standard output did not take them";
        assert!(log.contains(told), "{kind}: {log}");
        assert!(log.contains("stopped"), "{kind}: {log}");
    }
}

#[test]
fn a_server_does_its_work_when_both_its_streams_are_stuck() {
    let place = with_key();
    let (_unread, stdout) = stuck_pipe();
    let (_stopped, stderr) = stopped_terminal();
    let mut command = place.command(SERVE);
    command.stdout(stdout).stderr(stderr);
    let server = Server::start(command);
    server.follows(&place, 1);
    server.signal("-HUP");
    server.follows(&place, 2);
    assert_eq!(server.end_by("-INT"), Some(0));
}

/// The numbers of lines that a log says were lost.
fn told(log: &str) -> Vec<u64> {
    let told = log.lines().filter_map(|line| line.split_once(" of the log w"));
    told.map(|(before, _)| {
        let words = before.strip_suffix(" lines").or_else(|| before.strip_suffix(" line")).unwrap();
        let number = words.rsplit(|c: char| !c.is_ascii_digit() && c != ',').next().unwrap();
        number.replace(',', "").parse().unwrap()
    })
    .collect()
}

#[test]
fn lines_that_nobody_reads_are_counted_and_told_when_somebody_reads_again() {
    let place = with_key();
    let (reader, stderr) = stuck_pipe();
    let mut command = place.command(SERVE);
    // Each connection is several lines.
    command.env("RUST_LOG", "trace").stdout(Stdio::null()).stderr(stderr);
    let server = Server::start(command);
    until("lines are lost", || {
        for _ in 0..200 {
            drop(TcpStream::connect(&server.listen).unwrap());
        }
        server.lost() > 0
    });
    server.follows(&place, 1);
    let reading = std::thread::spawn(move || {
        let mut log = String::new();
        BufReader::new(reader).read_to_string(&mut log).unwrap();
        log
    });
    // What waits is written, and from then on nothing is lost.
    let mut lost = 0;
    until("the log is read", || {
        sleep(Duration::from_millis(500));
        std::mem::replace(&mut lost, server.lost()) == lost
    });
    server.follows(&place, 2);
    assert_eq!(server.end_by("-TERM"), Some(0));
    let log = reading.join().unwrap();
    assert_eq!(told(&log).iter().sum::<u64>(), lost, "{:?}", told(&log));
    assert_eq!(log.lines().last().map(|line| line.ends_with("stopped")), Some(true));
}

#[test]
fn a_reader_that_comes_back_is_told_what_it_has_missed() {
    let place = with_key();
    let made = Command::new("mkfifo").arg(place.path("log")).status().unwrap();
    assert!(made.success());
    let path = place.path("log");
    let opened = std::thread::spawn(move || File::open(path).unwrap());
    let stderr = File::options().write(true).open(place.path("log")).unwrap();
    let mut command = place.command(SERVE);
    command.stdout(Stdio::null()).stderr(stderr);
    let first = opened.join().unwrap();
    let server = Server::start(command);
    drop(first);
    server.follows(&place, 1);
    let lost = server.lost();
    assert!(lost > 0);
    let mut again = BufReader::new(File::open(place.path("log")).unwrap());
    server.follows(&place, 2);
    let mut log = String::new();
    while told(&log).is_empty() || !log.contains("table updated") {
        assert!(again.read_line(&mut log).unwrap() > 0, "{log}");
    }
    assert_eq!(told(&log), [lost]);
    assert_eq!(server.end_by("-TERM"), Some(0));
}

/// A file that is opened later must not become the log.
#[cfg(target_os = "linux")]
#[test]
fn streams_that_were_closed_before_the_start_are_nobodys_later() {
    let place = with_key();
    let privet = place.command("");
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" \"$@\" >&- 2>&-", env!("CARGO_BIN_EXE_privet")]);
    command.args(SERVE.split(' ')).current_dir(privet.get_current_dir().unwrap());
    let server = Server::start(command);
    server.follows(&place, 1);
    for stream in [1, 2] {
        let link = format!("/proc/{}/fd/{stream}", server.child.id());
        assert_eq!(std::fs::read_link(link).unwrap().to_str(), Some("/dev/null"));
    }
    assert_eq!(server.end_by("-TERM"), Some(0));
}

/// The exit code of a client that has something to say on standard error.
fn says_and_ends(mut command: Command, stderr: impl Into<Stdio>) -> (Option<i32>, String) {
    let child = command.stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
    let id = child.id().to_string();
    let (ended, is_over) = std::sync::mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        if is_over.recv_timeout(Duration::from_secs(60))
            == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
        {
            let _ = Command::new("kill").args(["-KILL", &id]).status();
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(ended);
    watch.join().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_client_does_its_work_whoever_reads_what_it_says() {
    let place = Place::with_phones();
    let served = crate::served::Served::start(&place, "phones.privet --no-cache --scheme dpf");
    let again = crate::served::Served::start(&place, "phones.privet --no-cache --scheme dpf");
    // So many that there is a bar on a terminal.
    let keys: String = (0..150).map(|number| format!("nobody-{number}\n")).collect();
    place.write("keys", format!("{keys}ada\n"));
    let get = format!("get {} {} --keys-from keys", served.url, again.url);
    let found = (Some(1), "ada\t{\"phone\":\"555-1\",\"floor\":\"3\"}\n".to_owned());
    let (_unread, stuck) = stuck_pipe();
    let (_stopped, terminal) = stopped_terminal();
    let streams: [(&str, Stdio); 4] = [
        ("closed", closed_pipe().into()),
        ("full", full_device().into()),
        ("stuck", stuck.into()),
        ("stopped", terminal.into()),
    ];
    for (kind, stderr) in streams {
        assert_eq!(says_and_ends(place.command(&get), stderr), found, "{kind}");
    }
    // An error is the last that a command says.
    let (_unread, stuck) = stuck_pipe();
    let wrong = says_and_ends(place.command("inspect missing.privet"), stuck);
    assert_eq!(wrong, (Some(2), String::new()));
}
