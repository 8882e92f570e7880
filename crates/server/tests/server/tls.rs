//! TLS: a round trip, and clear errors for files that cannot be used.

use crate::common::*;
use privet_core::Blame;
use privet_server::{Server, ServerConfig, TlsFiles};
use std::fs;
use std::path::Path;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tonic::transport::{Certificate, Channel, ClientTlsConfig};

/// Writes a fresh certificate for `localhost` and its key; returns the files and the certificate.
fn certificate(dir: &Path, name: &str) -> (TlsFiles, String) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let files =
        TlsFiles { cert: dir.join(format!("{name}.crt")), key: dir.join(format!("{name}.key")) };
    fs::write(&files.cert, made.cert.pem()).unwrap();
    write_secret(&files.key, made.signing_key.serialize_pem());
    (files, made.cert.pem())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lookup_over_tls() {
    let dir = tempfile::tempdir().unwrap();
    let (files, trusted) = certificate(dir.path(), "a");
    let (_, untrusted) = certificate(dir.path(), "b");
    let mut config = config();
    config.tls = Some(files);
    config.limits.handshake_limit = Duration::from_millis(500);
    let server = start(config, vec![table("t", 60, 5, 1)]).await;
    let address = server.local_addr();
    let connect = |root: &str| {
        let tls = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(root))
            .domain_name("localhost");
        Channel::from_shared(format!("https://{address}")).unwrap().tls_config(tls).unwrap()
    };

    // Clients that speak no TLS, say nothing, or do not trust the certificate, get nothing, and
    // disturb no other client.
    let plain = stub_on(endpoint(address).connect_lazy())
        .describe(privet_wire::proto::DescribeRequest::default())
        .await;
    assert!(plain.is_err());
    assert!(connect(&untrusted).connect().await.is_err());
    let mut silent = TcpStream::connect(address).await.unwrap();
    let closed =
        tokio::time::timeout(Duration::from_secs(20), silent.read_to_end(&mut Vec::new())).await;
    assert!(closed.is_ok(), "a silent connection is still open after 20 s");

    let mut stub = stub_on(connect(&trusted).connect().await.unwrap());
    let mut client = TableClient::new(&mut stub, "t").await;
    for index in 0..60 {
        client.check(&mut stub, index).await;
    }
    server.shutdown();
    server.wait().await.unwrap();
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let (a, _) = certificate(dir.path(), "a");
    let (b, _) = certificate(dir.path(), "b");
    let junk = dir.path().join("junk");
    fs::write(&junk, "no PEM at all").unwrap();
    let damaged = dir.path().join("damaged");
    fs::write(&damaged, "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n").unwrap();
    let missing = dir.path().join("missing");
    let cases = [
        ("cannot be read", &missing, TlsFiles { cert: missing.clone(), key: a.key.clone() }),
        ("cannot be read", &missing, TlsFiles { cert: a.cert.clone(), key: missing.clone() }),
        ("no certificate", &junk, TlsFiles { cert: junk.clone(), key: a.key.clone() }),
        ("no private key", &junk, TlsFiles { cert: a.cert.clone(), key: junk.clone() }),
        ("damaged", &damaged, TlsFiles { cert: damaged.clone(), key: a.key.clone() }),
        ("no certificate", &a.key, TlsFiles { cert: a.key.clone(), key: a.key.clone() }),
        ("no private key", &a.cert, TlsFiles { cert: a.cert.clone(), key: a.cert.clone() }),
        (
            "is not that of the certificate",
            &b.key,
            TlsFiles { cert: a.cert.clone(), key: b.key.clone() },
        ),
    ];
    for (sentence, file, files) in cases {
        let config = ServerConfig { tls: Some(files), ..config() };
        let error = Server::start(config, vec![table("t", 2, 2, 1)])
            .await
            .err()
            .expect("the files are refused");
        assert_eq!(error.blame(), Blame::ApiMisuse);
        assert!(error.to_string().contains(sentence), "{sentence:?} is not in: {error}");
        assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
    }
}

/// A service manager hands a key over by the group or by an access list, which shows as permissions
/// of the group.
#[cfg(unix)]
#[tokio::test]
async fn a_key_that_anybody_can_read_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (files, _) = certificate(dir.path(), "a");
    for (mode, is_served) in [(0o600, true), (0o440, true), (0o644, false), (0o604, false)] {
        allow(&files.key, mode);
        let config = ServerConfig { tls: Some(files.clone()), ..config() };
        let started = Server::start(config, vec![table("t", 2, 2, 1)]).await;
        assert_eq!(started.is_ok(), is_served, "{mode:o}");
        if let Err(error) = started {
            assert_eq!(error.blame(), Blame::ApiMisuse);
            assert!(error.message().contains("anybody on this machine can read"), "{error}");
        }
    }
}
