//! What lies between a client and its server: proxies that the environment names, and web servers
//! that have a path for each service.

use crate::place::{Place, Run};
use crate::served::Served;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A proxy that leads any host to one server, and writes down which hosts it was asked for.
struct Proxy {
    at: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start(to: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let (asked, to) = (Arc::new(Mutex::new(Vec::new())), to.to_owned());
        let record = Arc::clone(&asked);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let mut client = client.unwrap();
                let mut head = BufReader::new(client.try_clone().unwrap());
                let mut first = String::new();
                let _ = head.read_line(&mut first);
                let mut line = String::new();
                while head.read_line(&mut line).is_ok_and(|len| len > 2) {
                    line.clear();
                }
                let host = first.split(' ').nth(1).unwrap_or_default();
                record.lock().unwrap().push(host.to_owned());
                let server = TcpStream::connect(&to).unwrap();
                client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
                for (from, to) in
                    [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)]
                {
                    std::thread::spawn(move || pass(from, to));
                }
            }
        });
        Self { at, asked }
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 1 << 14];
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..len]).is_err() {
            return;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

fn get(place: &Place, url: &str, arguments: &str, environment: &[(&str, &str)]) -> Run {
    let mut command = place.command(&format!("get {url} -k ada {arguments}"));
    Run(command.envs(environment.iter().copied()).output().unwrap())
}

#[test]
fn a_proxy_of_the_environment_is_used_or_named() {
    let place = Place::with_phones();
    let served = Served::start(&place, "phones.privet --scheme download --no-cache");
    let proxy = Proxy::start(served.address());
    let (url, near) = ("http://phones.invalid:7700", served.url.as_str());
    let to_proxy = format!("http://{}", proxy.at);
    let found = |url: &str, arguments: &str, environment: &[(&str, &str)]| {
        let run = get(&place, url, arguments, environment);
        assert_eq!(
            (run.code(), run.stdout()),
            (0, "{\"phone\":\"555-1\",\"floor\":\"3\"}\n"),
            "{run}"
        );
        proxy.asked()
    };
    let through = ["phones.invalid:7700".to_owned()];
    assert_eq!(found(url, "", &[("HTTP_PROXY", &to_proxy)]), through);
    assert_eq!(found(url, "", &[("all_proxy", &to_proxy)]), through);
    assert_eq!(
        found(url, "", &[("ALL_PROXY", "nonsense://x"), ("http_proxy", &to_proxy)]),
        through
    );
    assert_eq!(
        found(url, &format!("--proxy {to_proxy}"), &[("ALL_PROXY", "nonsense://x")]),
        through
    );
    // This machine is no exception.
    assert_eq!(found(near, "", &[("ALL_PROXY", &to_proxy)]), [served.address()]);
    // What is listed, or said, goes directly.
    let none: [String; 0] = [];
    let listed = [("ALL_PROXY", to_proxy.as_str()), ("NO_PROXY", "example.org,127.0.0.1")];
    assert_eq!(found(near, "", &listed), none);
    assert_eq!(found(near, "--proxy none", &[("ALL_PROXY", &to_proxy)]), none);
    assert_eq!(found(near, "", &[("HTTPS_PROXY", &to_proxy)]), none);

    // A proxy that does not work, though the server would be reached without it.
    let dead = "socks5h://127.0.0.1:9";
    let set = [("ALL_PROXY", dead), ("HTTPS_PROXY", "http://127.0.0.1:9")];
    for (url, variable) in [(near, "ALL_PROXY"), ("https://one.example.org", "HTTPS_PROXY")] {
        let refused =
            get(&place, url, "", &set).says(3, &format!("({variable}) cannot be reached"));
        assert!(refused.stderr().contains("(--proxy)"), "{refused}");
    }
    let unknown = get(&place, near, "", &[("HTTP_PROXY", "tor://me:secret@a:1")]);
    assert_eq!(unknown.code(), 2, "{unknown}");
    assert!(unknown.stderr().contains("HTTP_PROXY cannot be used as a proxy, so nothing was sent"));
    assert!(!unknown.stderr().contains("secret"), "{unknown}");
    let many = get(&place, near, "--proxy none --proxy none", &[]);
    assert_eq!(many.code(), 2, "{many}");
}

/// A web server in front, of the recipe in the documents.
struct Front {
    process: Child,
    port: u16,
}

impl Drop for Front {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn program(name: &str) -> Option<PathBuf> {
    // Where servers are on Debian, and users' paths do not lead.
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&paths).chain([PathBuf::from("/usr/sbin")]);
    places.map(|place| place.join(name)).find(|program| program.is_file())
}

/// The recipe in docs/operating.md for this web server.
fn recipe(kind: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operating.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once(&format!("```{kind}\n")).expect("a recipe");
    rest.split_once("```").unwrap().0.to_owned()
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Front {
    /// Starts the web server of that name in front of `served`, as the document says, but for the
    /// ports and the places of files. `None`, with a word, if this machine does not have it.
    fn start(place: &Place, kind: &str, served: &Served) -> Option<Self> {
        let Some(program) = program(kind) else {
            // A test's own output is shown only when it fails.
            let _ =
                writeln!(std::io::stderr(), "NOT TESTED: the recipe for {kind}, which is missing");
            return None;
        };
        let (directory, port) = (place.path(""), free_port());
        let here = |file: &str| directory.join(file).to_str().unwrap().to_owned();
        let recipe = recipe(kind)
            .replace("127.0.0.1:7700", served.address())
            .replace(&format!("/etc/{kind}/"), directory.to_str().unwrap());
        let mut command = Command::new(program);
        match kind {
            "nginx" => {
                let recipe = recipe.replace("listen 443", &format!("listen 127.0.0.1:{port}"));
                let kept = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
                    .map(|what| format!("{what}_temp_path {};", here("temporary")));
                place.write(
                    "nginx.conf",
                    format!(
                        "daemon off; master_process off; pid {}; error_log stderr;\nevents {{}}\nhttp {{ {}\n{recipe} }}",
                        here("nginx.pid"),
                        kept.join(" ")
                    ),
                );
                command.args(["-p", directory.to_str().unwrap(), "-c", &here("nginx.conf")]);
            }
            _ => {
                let recipe =
                    recipe.replace("example.org {", &format!("https://localhost:{port} {{"));
                let global = "{\n    admin off\n    auto_https disable_redirects\n}\n";
                place.write("Caddyfile", format!("{global}{recipe}"));
                command.args(["run", "--adapter", "caddyfile", "--config", &here("Caddyfile")]);
            }
        }
        let log = std::fs::File::create(place.path(&format!("{kind}.log"))).unwrap();
        command.env("HOME", &directory).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let front = Self { process: command.current_dir(&directory).spawn().unwrap(), port };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let log = std::fs::read_to_string(place.path(&format!("{kind}.log"))).unwrap();
            assert!(began.elapsed().as_secs() < 60, "{kind} does not listen: {log}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(front)
    }
}

/// The recipes, and what a client says if the server behind them is gone.
#[test]
fn web_servers_lead_to_a_server_behind_a_path() {
    for kind in ["nginx", "caddy"] {
        let place = Place::with_phones();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        place.write("cert.pem", made.cert.pem());
        place.write_secret("key.pem", made.signing_key.serialize_pem());
        // A hint of some kilobytes, queries, and a table that is streamed.
        for scheme in ["simplepir", "dummy-subsets"] {
            let served =
                Served::start(&place, &format!("phones.privet --scheme {scheme} --no-cache"));
            let Some(front) = Front::start(&place, kind, &served) else { break };
            let get = |path: &str| {
                let url = format!("https://localhost:{}{path}", front.port);
                place.run(&format!("get {url} -k ada --ca-file cert.pem --state {scheme}"))
            };
            let got = get("/privet");
            assert_eq!(got.stdout(), "{\"phone\":\"555-1\",\"floor\":\"3\"}\n", "{kind}: {got}");
            // Without the path, or by another, it is not Privet that answers.
            let lost = get("/elsewhere");
            assert_eq!(lost.code(), 3, "{kind}: {lost}");
            assert!(lost.stderr().contains("not as a Privet server does (HTTP status "), "{lost}");
            drop(served);
            let gone = get("/privet");
            assert_eq!(gone.code(), 3, "{kind}: {gone}");
            assert!(gone.stderr().contains("HTTP status 502 Bad Gateway"), "{kind}: {gone}");
        }
    }
}

#[test]
fn a_path_that_nobody_takes_away_is_named_as_the_cause() {
    let place = Place::with_phones();
    let served = Served::start(&place, "phones.privet --scheme download --no-cache");
    let lost = place
        .run(&format!("get {}/privet -k ada", served.url))
        .says(3, "/privet answers, but not as a Privet server does");
    assert!(lost.stderr().contains("check the address, its port and its path"), "{lost}");
}
