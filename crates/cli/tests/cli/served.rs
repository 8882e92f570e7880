//! A server in its own process.

use crate::place::Place;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// A running `privet serve` on a loopback port of the system's choice. Killed when dropped.
pub(crate) struct Served {
    child: Child,
    /// The output up to the line that says where the server listens.
    pub(crate) announcement: String,
    /// The address where it listens.
    pub(crate) url: String,
}

impl Served {
    /// The phone book, served by SimplePIR.
    pub(crate) fn phones() -> (Place, Self) {
        let place = Place::with_phones();
        let served = Self::start(&place, "phones.privet --scheme simplepir --no-cache");
        (place, served)
    }

    /// Serves, and returns once the server has said where it listens. Its log goes to `server.log`.
    pub(crate) fn start(place: &Place, arguments: &str) -> Self {
        Self::start_at(place, "127.0.0.1:0", arguments)
    }

    pub(crate) fn start_at(place: &Place, listen: &str, arguments: &str) -> Self {
        let log = std::fs::File::create(place.path("server.log")).unwrap();
        let mut command = place.command(&format!("serve --listen {listen} {arguments}"));
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut announcement = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut served = Self { child, announcement: String::new(), url: String::new() };
        while served.url.is_empty() {
            let line_start = announcement.len();
            let read = lines.read_line(&mut announcement).unwrap();
            assert!(
                read > 0,
                "the server ended: {}",
                std::fs::read_to_string(place.path("server.log")).unwrap()
            );
            if let Some(url) = announcement[line_start..].strip_prefix("listening at ") {
                served.url = url.trim_end().to_owned();
            }
        }
        served.announcement = announcement;
        served
    }

    /// `HOST:PORT` of the server.
    pub(crate) fn address(&self) -> &str {
        self.url.split_once("://").unwrap().1
    }

    /// `HOST:PORT` of the second port, for metrics and health.
    pub(crate) fn metrics_address(&self) -> &str {
        let (_, rest) = self.announcement.split_once("metrics at http://").unwrap();
        rest.split_once('/').unwrap().0
    }

    /// Makes it look for changes to its files.
    pub(crate) fn hang_up(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &id]).status().unwrap().success());
    }

    /// Suspends the process, with its connections open.
    pub(crate) fn freeze(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-STOP", &id]).status().unwrap().success());
    }

    /// A figure of the process' memory, such as VmHWM for the most it had, in bytes.
    #[cfg(target_os = "linux")]
    pub(crate) fn memory(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kib = line.unwrap().split_whitespace().next().unwrap();
        kib.parse::<u64>().unwrap() << 10
    }

    /// What the second port says at `/metrics`.
    pub(crate) fn metrics(&self) -> String {
        http_get(self.metrics_address(), "/metrics").1
    }

    /// Waits until the metric has the value.
    pub(crate) fn until_metric(&self, name: &str, value: u64) {
        let line = format!("{name} {value}");
        let began = std::time::Instant::now();
        loop {
            let metrics = self.metrics();
            if metrics.lines().any(|other| other == line) {
                return;
            }
            assert!(began.elapsed().as_secs() < 60, "no {line} in\n{metrics}");
            std::thread::yield_now();
        }
    }

    /// Stops it as a service manager does. Returns the exit code.
    pub(crate) fn terminate(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The status line and the body of the response to `GET path`.
pub(crate) fn http_get(address: &str, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}
