//! More valid requests than the server can answer.

use crate::attack::{Attacker, Strength, defaults, withstands};
use crate::common::*;
use crate::process::Attacked;
use privet_schemes::SchemeId;
use privet_server::{ServedTable, ServerConfig};
use privet_wire::{PartKind, proto};
use std::future::Future;
use std::io;
use std::path::Path;
use tokio::task::JoinSet;
use tonic::{Code, Status};

const LARGE: &str = "large";

/// One more table, of which a pass takes milliseconds.
fn with_a_large_table(folder: &Path) -> (ServerConfig, Vec<ServedTable>) {
    let (config, mut tables) = defaults(folder);
    tables.push(served_by(SchemeId::Dpf, table(LARGE, 1 << 18, 128, 3)));
    (config, tables)
}

/// Asks as a proper client does, but whatever is refused at once again, and with as many requests
/// at once as it likes. Ends with the connection, or with an error of another kind.
async fn ask_without_end<Asked>(
    at_once: usize,
    ask: impl Fn() -> Asked + Clone + Send + 'static,
) -> io::Result<()>
where
    Asked: Future<Output = Result<(), Status>> + Send,
{
    let mut asking = JoinSet::new();
    for _ in 0..at_once {
        let ask = ask.clone();
        asking.spawn(async move {
            let busy = |status: Status| status.code() == Code::ResourceExhausted;
            while ask().await.map_or_else(busy, |()| true) {}
        });
    }
    while asking.join_next().await.is_some() {}
    Ok(())
}

pub(crate) async fn stub_of(attacker: &Attacker) -> io::Result<Stub> {
    let endpoint = endpoint(attacker.aim.address).local_address(Some(attacker.from.into()));
    Ok(unlimited(&stub_on(endpoint.connect().await.map_err(io::Error::other)?)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_peer_asks_more_than_the_server_can_answer() {
    let attacked =
        Attacked::start("load::one_peer_asks_more_than_the_server_can_answer", with_a_large_table)
            .await;
    attacked
        .withstands(
            "8 x 128 queries at once from one address",
            Strength::from_one_address(8),
            async |attacker: Attacker| {
                let stub = stub_of(&attacker).await?;
                let mut client = TableClient::new(&mut stub.clone(), LARGE).await;
                let query = proto::AnswerRequest::from(client.prepare_all(0).0.remove(0));
                attacker.in_place();
                ask_without_end(128, move || {
                    let (mut stub, query) = (stub.clone(), query.clone());
                    async move { stub.answer(query).await.map(drop) }
                })
                .await
            },
        )
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_peer_asks_for_more_hints_than_the_server_can_compute() {
    withstands(
        "load::one_peer_asks_for_more_hints_than_the_server_can_compute",
        async |attacker: Attacker| {
            let stub = stub_of(&attacker).await?;
            let request = attacker.aim.prepare_request.clone();
            attacker.in_place();
            ask_without_end(16, move || {
                let (mut stub, request) = (stub.clone(), request.clone());
                async move { stub.prepare(request).await.map(drop) }
            })
            .await
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_peer_downloads_again_and_again() {
    let attacked =
        Attacked::start("load::one_peer_downloads_again_and_again", with_a_large_table).await;
    attacked
        .withstands(
            "8 x 8 downloads at once from one address",
            Strength::from_one_address(8),
            async |attacker: Attacker| {
                let stub = stub_of(&attacker).await?;
                let table = describe(&mut stub.clone()).await.table(LARGE).unwrap().clone();
                let request = fetch_request(&table, PartKind::Table, 0);
                attacker.in_place();
                ask_without_end(8, move || {
                    let (mut stub, request) = (stub.clone(), request);
                    async move { fetch(&mut stub, request).await.map(drop) }
                })
                .await
            },
        )
        .await;
}
