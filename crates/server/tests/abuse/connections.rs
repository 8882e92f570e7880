//! Connections, and nothing on them.

use crate::attack::{Attacker, Strength, defaults};
use crate::frames::{HEADERS, connect, frame, head};
use crate::process::Attacked;
use privet_server::{ServedTable, ServerConfig, TlsFiles};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tonic::transport::{Certificate, Channel, ClientTlsConfig};

/// More than a server accepts that [`few`] is the configuration of.
const MORE_THAN_A_FEW: usize = 200;

fn few(folder: &Path) -> (ServerConfig, Vec<ServedTable>) {
    let (mut config, tables) = defaults(folder);
    config.limits.set("connections", "128").unwrap();
    (config, tables)
}

pub(crate) async fn silence(attacker: Attacker) -> io::Result<()> {
    let mut silent = connect(attacker.aim.address, attacker.from).await?;
    attacker.in_place();
    silent.read_to_end(&mut Vec::new()).await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_without_a_byte() {
    let attacked = Attacked::start("connections::connections_without_a_byte", few).await;
    for addresses in [1, 20, 100] {
        let what = format!("{MORE_THAN_A_FEW} silent connections from {addresses} addresses");
        let strength = Strength { connections: MORE_THAN_A_FEW, addresses };
        attacked.withstands(&what, strength, async |attacker| silence(attacker).await).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_without_a_request() {
    let attacked = Attacked::start("connections::connections_without_a_request", few).await;
    attacked
        .withstands(
            "connections without a request",
            Strength::from_one_address(MORE_THAN_A_FEW),
            async |attacker: Attacker| {
                let mut raw = attacker.open(None).await?;
                attacker.in_place();
                raw.until_closed().await;
                Ok(())
            },
        )
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_that_never_end() {
    let attacked = Attacked::start("connections::headers_that_never_end", few).await;
    let strength = Strength::from_one_address(MORE_THAN_A_FEW);
    attacked
        .withstands("headers that never end", strength, async |attacker: Attacker| {
            let mut raw = attacker.open(None).await?;
            let (block, stream) = (head("Answer"), raw.stream());
            raw.send(&frame(HEADERS, 0, stream, &block[..block.len() / 2])).await?;
            attacker.in_place();
            raw.until_closed().await;
            Ok(())
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_come_and_go() {
    let attacked = Attacked::start("connections::connections_that_come_and_go", few).await;
    attacked
        .withstands(
            "connections that come and go",
            Strength::from_one_address(8),
            async |attacker: Attacker| loop {
                connect(attacker.aim.address, attacker.from).await?.write_all(b"PRI").await?;
                attacker.in_place();
            },
        )
        .await;
}

fn with_tls(folder: &Path) -> (ServerConfig, Vec<ServedTable>) {
    let (config, tables) = few(folder);
    let tls = TlsFiles { cert: folder.join("certificate"), key: folder.join("key") };
    (ServerConfig { tls: Some(tls), ..config }, tables)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handshakes_that_never_end() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let certificate = made.cert.pem();
    let attacked = Attacked::start_with(
        "connections::handshakes_that_never_end",
        |folder| {
            std::fs::write(folder.join("certificate"), &certificate).unwrap();
            let key = folder.join("key");
            std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
            std::fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
        },
        with_tls,
    )
    .await;
    let tls = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(&certificate))
        .domain_name("localhost");
    let honest = Channel::from_shared(format!("https://{}", attacked.address))
        .unwrap()
        .tls_config(tls)
        .unwrap();
    attacked
        .withstands_before(
            &honest,
            "TLS handshakes that never end",
            Strength::from_one_address(MORE_THAN_A_FEW),
            async |attacker: Attacker| {
                let mut begun = connect(attacker.aim.address, attacker.from).await?;
                // The head of a client's first message, which announces 512 bytes.
                begun.write_all(b"\x16\x03\x01\x02\x00").await?;
                attacker.in_place();
                begun.read_to_end(&mut Vec::new()).await.map(drop)
            },
        )
        .await;
}
