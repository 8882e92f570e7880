//! Servers behind proxies: what a proxy learns, what passes it, and that nothing goes around it.

use crate::common::{
    any_port, check, config, connect, listener, options_of, refusal, serve, table, table_by,
    write_certificate,
};
use privet_client::ClientOptions;
use privet_core::{Blame, Reason};
use privet_schemes::SchemeId;
use privet_server::Server;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};

/// What a proxy was asked, and the first byte that passed it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Asked {
    /// `host:port` as it came. By SOCKS, names only: an address would have been resolved before.
    server: String,
    credentials: String,
    first: Option<u8>,
}

/// How a proxy behaves.
#[derive(Clone, Copy)]
enum Manner {
    /// An HTTP proxy that answers CONNECT with this.
    Http(&'static str),
    /// A SOCKS proxy that answers with this, and wants names and passwords or none.
    Socks { answers: u8, wants_password: bool },
}

/// A proxy on loopback that leads to `servers` by their names.
struct Proxy {
    at: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

const OPEN: Manner = Manner::Http("200 Connection established");
const SOCKS: Manner = Manner::Socks { answers: 0, wants_password: true };

impl Proxy {
    async fn start(manner: Manner, servers: &[(&str, SocketAddr)]) -> Self {
        let listener = TcpListener::bind(any_port()).await.unwrap();
        let at = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let servers: Vec<(String, SocketAddr)> =
            servers.iter().map(|(name, at)| ((*name).to_owned(), *at)).collect();
        let record = Arc::clone(&asked);
        tokio::spawn(async move {
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                let (servers, record) = (servers.clone(), Arc::clone(&record));
                tokio::spawn(async move {
                    let question = match manner {
                        Manner::Http(answer) => http(&mut client, answer).await,
                        Manner::Socks { answers, wants_password } => {
                            socks(&mut client, answers, wants_password).await
                        }
                    };
                    let Some(mut asked) = question else { return };
                    let known = servers.iter().find(|(name, _)| *name == asked.server);
                    let mut first = [0; 1];
                    let passes = client.read(&mut first).await.is_ok_and(|len| len == 1);
                    asked.first = passes.then_some(first[0]);
                    record.lock().unwrap().push(asked);
                    let Some((_, server)) = known else { return };
                    let mut server = TcpStream::connect(server).await.unwrap();
                    server.write_all(&first).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
        Self { at, asked }
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

/// The proxy's side of CONNECT.
async fn http(client: &mut TcpStream, answer: &str) -> Option<Asked> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.ok()?);
    }
    client.write_all(format!("HTTP/1.1 {answer}\r\n\r\n").as_bytes()).await.ok()?;
    let head = String::from_utf8(head).unwrap();
    let server = head.strip_prefix("CONNECT ").unwrap().split(' ').next().unwrap().to_owned();
    let mut lines = head.lines();
    let credentials = lines.find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("proxy-authorization").then(|| value.to_owned())
    });
    Some(Asked { server, credentials: credentials.unwrap_or_default(), first: None })
}

/// The proxy's side of SOCKS 5 (RFC 1928 and 1929).
async fn socks(client: &mut TcpStream, answers: u8, wants_password: bool) -> Option<Asked> {
    async fn bytes(client: &mut TcpStream, len: u8) -> Vec<u8> {
        let mut bytes = vec![0; len.into()];
        client.read_exact(&mut bytes).await.unwrap();
        bytes
    }
    let text = |bytes| String::from_utf8(bytes).unwrap();
    assert_eq!(client.read_u8().await.ok()?, 5);
    let methods = client.read_u8().await.unwrap();
    let methods = bytes(client, methods).await;
    let method = if wants_password { 2 } else { 0 };
    assert!(methods.contains(&method));
    client.write_all(&[5, method]).await.unwrap();
    let mut credentials = String::new();
    if wants_password {
        assert_eq!(client.read_u8().await.unwrap(), 1);
        let len = client.read_u8().await.unwrap();
        let user = text(bytes(client, len).await);
        let len = client.read_u8().await.unwrap();
        let password = text(bytes(client, len).await);
        credentials = format!("{user}:{password}");
        // 255 refuses every password.
        client.write_all(&[1, u8::from(answers == 255)]).await.unwrap();
        if answers == 255 {
            return None;
        }
    }
    let kind = bytes(client, 4).await;
    assert_eq!(kind, [5, 1, 0, 3], "a connection to a name");
    let len = client.read_u8().await.unwrap();
    let name = text(bytes(client, len).await);
    let port = client.read_u16().await.unwrap();
    client.write_all(&[5, answers, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
    Some(Asked { server: format!("{name}:{port}"), credentials, first: None })
}

fn through(urls: &[&str], proxies: &[String]) -> ClientOptions {
    ClientOptions { proxies: proxies.to_vec(), ..options_of(urls) }
}

/// No test's machine knows the name, so it can only have been looked up by the proxy.
#[tokio::test]
async fn tls_goes_from_end_to_end_and_the_name_to_the_proxy() {
    let directory = tempfile::tempdir().unwrap();
    write_certificate(directory.path(), "one.invalid");
    let config = config(any_port(), Some(directory.path()));
    let server = Server::start(config, vec![table("packages", 1, 0)]).await.unwrap();
    for (manner, scheme) in [(OPEN, "http"), (SOCKS, "socks5h"), (SOCKS, "socks5")] {
        for (url, name) in [
            ("https://one.invalid", "one.invalid:443"),
            ("https://one.invalid:7700", "one.invalid:7700"),
        ] {
            let proxy = Proxy::start(manner, &[(name, server.local_addr())]).await;
            let mut options = through(&[url], &[format!("{scheme}://me:s%3Acret@{}", proxy.at)]);
            options.ca_file = Some(directory.path().join("cert.pem"));
            check(&connect(options).await, 1, 0).await;
            let credentials = match manner {
                Manner::Http(_) => "Basic bWU6czpjcmV0",
                Manner::Socks { .. } => "me:s:cret",
            };
            let (server, credentials) = (name.to_owned(), credentials.to_owned());
            // The first byte is that of a TLS handshake.
            assert_eq!(proxy.asked(), [Asked { server, credentials, first: Some(0x16) }]);
        }
    }
}

#[tokio::test]
async fn two_servers_are_reached_by_a_proxy_each_or_apart_through_one() {
    let packages = || vec![table_by(SchemeId::Dpf, "packages", 1, 0)];
    let (one, _) = serve(packages()).await;
    let (other, _) = serve(packages()).await;
    let servers = [("one.invalid:80", one.local_addr()), ("two.invalid:81", other.local_addr())];
    let urls = ["http://one.invalid", "http://two.invalid:81"];
    let look_up = async |proxies: &[String]| {
        let options = ClientOptions { insecure: true, ..through(&urls, proxies) };
        check(&connect(options).await, 1, 0).await;
    };
    let names = |proxy: &Proxy| {
        let mut names: Vec<_> = proxy.asked().into_iter().map(|asked| asked.server).collect();
        names.sort();
        names
    };

    let each = [Proxy::start(OPEN, &servers).await, Proxy::start(SOCKS, &servers).await];
    look_up(&[format!("http://{}", each[0].at), format!("socks5h://{}", each[1].at)]).await;
    assert_eq!(
        (names(&each[0]), names(&each[1])),
        (vec![servers[0].0.into()], vec![servers[1].0.into()])
    );

    // Tor takes another circuit for another name and password.
    let both = Proxy::start(SOCKS, &servers).await;
    look_up(&[format!("socks5h://{}", both.at)]).await;
    assert_eq!(names(&both), servers.map(|(name, _)| name));
    let asked = both.asked();
    assert!(asked.iter().all(|asked| asked.credentials.len() > 32), "{asked:?}");
    assert_ne!(asked[0].credentials, asked[1].credentials);

    // Others, such as ssh, know no passwords.
    let plain = Manner::Socks { answers: 0, wants_password: false };
    let plain = Proxy::start(plain, &servers).await;
    look_up(&[format!("socks5h://{}", plain.at)]).await;
    assert_eq!(names(&plain), servers.map(|(name, _)| name));

    // Two addresses of the proxy's own machine are no addresses of this one.
    let near = ["http://127.0.0.1:1", "http://127.0.0.1:2"];
    let error = refusal(through(&near, &[format!("socks5h://{}", plain.at)])).await;
    assert_eq!(error.reason(), Some(Reason::NotEncrypted), "{error}");
}

#[tokio::test]
async fn a_proxy_that_does_not_lead_to_the_server_is_named_and_nothing_is_sent() {
    // A server that would be reached without a proxy.
    let (server, url) = listener().await;
    let dead = TcpListener::bind(any_port()).await.unwrap();
    let dead_at = dead.local_addr().unwrap();
    drop(dead);
    let mut cases = vec![
        (format!("http://{dead_at}"), "cannot be reached", Blame::Unavailable),
        (format!("socks5h://{dead_at}"), "cannot be reached", Blame::Unavailable),
        ("ftp://proxy:1".to_owned(), "scheme is not known", Blame::ApiMisuse),
    ];
    for (manner, why, blame) in [
        (Manner::Http("403 Forbidden"), "(it answers 403 Forbidden)", Blame::Unavailable),
        (Manner::Http("502 Bad Gateway"), "(it answers 502 Bad Gateway)", Blame::Unavailable),
        (Manner::Http("407 Who are you"), "wants a name and a password", Blame::ApiMisuse),
        (Manner::Socks { answers: 2, wants_password: true }, "not allowed", Blame::Unavailable),
        (Manner::Socks { answers: 4, wants_password: true }, "unreachable", Blame::Unavailable),
        (Manner::Socks { answers: 255, wants_password: true }, "wants a name", Blame::ApiMisuse),
    ] {
        let proxy = Proxy::start(manner, &[]).await;
        let scheme = if let Manner::Http(_) = manner { "http" } else { "socks5h" };
        cases.push((format!("{scheme}://{}", proxy.at), why, blame));
    }
    for (proxy, why, blame) in &cases {
        let asked =
            if proxy.contains(&dead_at.to_string()) { &url } else { "http://server.invalid:7700" };
        let error = refusal(through(&[asked], std::slice::from_ref(proxy))).await;
        assert_eq!(error.blame(), *blame, "{proxy}: {error}");
        assert_eq!(error.reason(), Some(Reason::ProxyUnusable), "{proxy}: {error}");
        assert!(error.message().contains(why), "{proxy}: {error}");
        assert!(*blame == Blame::ApiMisuse || error.message().contains(proxy), "{error}");
    }
    let nobody = tokio::time::timeout(Duration::from_millis(1), server.accept()).await;
    assert!(nobody.is_err(), "something went around the proxy");
    // What is no proxy at all is told from one that is dead.
    let echo = TcpListener::bind(any_port()).await.unwrap();
    let at = echo.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = echo.accept().await {
            let (mut from, mut to) = stream.split();
            let _ = copy(&mut from, &mut to).await;
        }
    });
    for (scheme, what) in [("http", "an HTTP proxy"), ("socks5h", "a SOCKS proxy")] {
        let error = refusal(through(&[&url], &[format!("{scheme}://{at}")])).await;
        let said = format!("{scheme}://{at} (the proxy that was named) does not answer as {what}");
        assert!(error.message().contains(&said), "{error}");
    }
}
