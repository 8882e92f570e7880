//! Servers, a client, its store, and a map with the right values.

use crate::{
    Announcement, Build, Due, HintStore, KeyChange, Layer, LayeredClient, LayeredParameters,
    LayeredServer, Logged, LookupNumber, Queries, Span,
};
use privet_core::{Error, Result, SecretRng, TableId};
use privet_kernels::Kernels;
use privet_schemes::SchemeId;
use privet_schemes::contract::Role;
use privet_schemes::registry::ServerOptions;
use std::collections::BTreeMap;
use std::sync::Arc;
use zeroize::Zeroizing;

pub(super) const TABLE: TableId = TableId([3; 16]);

/// A store in memory, which can be made to fail.
#[derive(Default)]
pub(super) struct Store {
    pub(super) kept: BTreeMap<(Span, u64), Kept>,
    /// How many more records it takes before it fails; `None`: it never fails.
    pub(super) records_left: Option<u64>,
}

#[derive(Default)]
pub(super) struct Kept {
    pub(super) generation: Vec<u8>,
    /// Whether it is a reservation, and the bytes.
    pub(super) log: Vec<(bool, Vec<u8>)>,
}

impl HintStore for Store {
    fn generation(&mut self, layer: Span, number: u64, bytes: &[u8]) -> Result<()> {
        let kept = Kept { generation: bytes.to_vec(), log: Vec::new() };
        assert!(self.kept.insert((layer, number), kept).is_none(), "a generation is kept once");
        Ok(())
    }

    fn reserved(&mut self, layer: Span, generation: u64, record: &[u8]) -> Result<()> {
        if let Some(left) = &mut self.records_left {
            *left = left.checked_sub(1).ok_or_else(|| Error::unavailable("the disk is full"))?;
        }
        let kept = self.kept.get_mut(&(layer, generation)).unwrap();
        kept.log.push((true, record.to_vec()));
        Ok(())
    }

    fn settled(&mut self, layer: Span, generation: u64, change: &[u8]) -> Result<()> {
        let kept = self.kept.get_mut(&(layer, generation)).unwrap();
        kept.log.push((false, change.to_vec()));
        Ok(())
    }

    fn log(&mut self, layer: Span, generation: u64) -> Result<Vec<Logged>> {
        let log = self.kept[&(layer, generation)].log.iter().map(|(reserved, bytes)| {
            let bytes = Zeroizing::new(bytes.clone());
            match reserved {
                true => Logged::Reserved(bytes),
                false => Logged::Settled(bytes),
            }
        });
        Ok(log.collect())
    }

    fn forget(&mut self, layer: Span, generation: u64) {
        self.kept.remove(&(layer, generation));
    }
}

/// When the servers run builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Builds {
    AtOnce,
    /// Never before it is due.
    OnTheSpot,
    /// Sometimes; and sometimes a build is begun and dropped.
    Sometimes,
}

/// What servers see of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Fetched { layer: Span, offset: u64, len: u64 },
    Asked { layer: Span, role: Role, len: usize },
    Query { layer: Span, role: Role, len: usize },
}

pub(super) struct World {
    pub(super) servers: Vec<LayeredServer>,
    pub(super) parameters: LayeredParameters,
    pub(super) client: LayeredClient,
    pub(super) store: Store,
    pub(super) oracle: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(super) seen: Vec<Seen>,
    pub(super) fetched_bytes: u64,
    pub(super) rng: SecretRng,
    pub(super) builds: Builds,
}

pub(super) fn key(number: u64) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

pub(super) fn servers_of(scheme: SchemeId) -> usize {
    match scheme {
        SchemeId::Dpf
        | SchemeId::SinglePass
        | SchemeId::TapirMerkle
        | SchemeId::DummySubsetsTwo => 2,
        _ => 1,
    }
}

impl World {
    pub(super) fn new(scheme: SchemeId, list: u32, first: u64, builds: Builds) -> Self {
        let parameters = LayeredParameters::new(scheme, list).unwrap();
        let oracle: BTreeMap<_, _> = (0..first).map(|of| (key(of), vec![7; 5])).collect();
        let options = ServerOptions { kernels: Kernels::detect(), threads: 1 };
        let server = || LayeredServer::new(TABLE, parameters.clone(), options, oracle.clone());
        let servers = (0..servers_of(scheme)).map(|_| server().unwrap()).collect();
        let client = LayeredClient::new(TABLE, parameters.clone(), Kernels::detect());
        let mut world = Self {
            servers,
            parameters,
            client,
            store: Store::default(),
            oracle,
            seen: Vec::new(),
            fetched_bytes: 0,
            rng: SecretRng::from_os().unwrap(),
            builds,
        };
        world.catch_up();
        world
    }

    /// Follows the state, as a client that is new or has been away.
    pub(super) fn catch_up(&mut self) {
        let state = self.servers[0].state();
        self.follow(&state);
        self.fetch_due();
    }

    /// Takes everything through its encoding.
    pub(super) fn follow(&mut self, announcement: &Announcement) {
        let read = Announcement::decode(&announcement.encode()).unwrap();
        assert_eq!(&read, announcement);
        self.client.follow(&read, &mut self.store).unwrap();
    }

    /// Changes keys at all servers, and has the client follow the first.
    pub(super) fn update(&mut self, changes: Vec<KeyChange>) {
        for announcement in self.update_servers(changes) {
            self.follow(&announcement);
        }
        self.fetch_due();
    }

    pub(super) fn update_servers(&mut self, changes: Vec<KeyChange>) -> Vec<Announcement> {
        for KeyChange { key, value } in &changes {
            match value {
                Some(value) => self.oracle.insert(key.clone(), value.clone()),
                None => self.oracle.remove(key),
            };
        }
        let (builds, rng) = (self.builds, &mut self.rng);
        let mut announcements = Vec::new();
        for server in &mut self.servers {
            let mut all = vec![server.update(changes.clone()).unwrap()];
            for build in server.builds() {
                match builds {
                    Builds::AtOnce => all.push(server.install(build.run().unwrap())),
                    Builds::Sometimes if rng.below(3) == 0 => drop(build.run().unwrap()),
                    Builds::Sometimes if rng.below(3) == 0 => {
                        all.push(server.install(build.run().unwrap()));
                    }
                    _ => {}
                }
            }
            announcements.push(all);
        }
        announcements.swap_remove(0)
    }

    pub(super) fn layer(&self, server: usize, span: Span) -> Arc<Layer> {
        // This server may be slower than the other: then the layer is built here.
        self.servers[server].layer(span).unwrap_or_else(|| {
            let build = self.servers[server].builds().into_iter().find(|of| of.span() == span);
            build.as_ref().map(Build::run).unwrap().unwrap().0
        })
    }

    pub(super) fn fetch_due(&mut self) {
        while let Some(due) = self.client.due().unwrap() {
            let (layer, bytes) = match &due {
                Due::Fetch { layer, offset, len } => {
                    let (layer, offset, len) = (*layer, *offset, *len);
                    self.seen.push(Seen::Fetched { layer, offset, len });
                    let held = self.layer(0, layer);
                    (layer, held.fetched()[offset as usize..][..len as usize].to_vec())
                }
                Due::Ask { layer, role, request } => {
                    let (layer, role) = (*layer, *role);
                    self.seen.push(Seen::Asked { layer, role, len: request.len() });
                    let held = self.layer(role.0.into(), layer);
                    (layer, held.server().prepare(role, request).unwrap())
                }
            };
            assert!(!bytes.is_empty());
            self.fetched_bytes += bytes.len() as u64;
            self.client.absorb(layer, &bytes, &mut self.store).unwrap();
        }
    }

    pub(super) fn send(&mut self, key: &[u8]) -> Queries {
        assert!(self.servers.iter().all(|server| server.version() == self.client.version()));
        let queries = self.client.lookup(key, &mut self.rng, &mut self.store).unwrap();
        for query in queries.iter() {
            let (layer, role, len) = (query.layer, query.role, query.bytes.len());
            self.seen.push(Seen::Query { layer, role, len });
        }
        queries
    }

    pub(super) fn answers(&self, queries: &Queries) -> Vec<Vec<u8>> {
        let answer = |query: crate::LayerQuery<'_>| {
            let layer = self.layer(query.role.0.into(), query.layer);
            layer.answer(query.role, query.bytes).unwrap()
        };
        queries.iter().map(answer).collect()
    }

    pub(super) fn settle(&mut self, lookup: LookupNumber, answers: &[Vec<u8>]) {
        let answers: Vec<&[u8]> = answers.iter().map(Vec::as_slice).collect();
        if !answers.is_empty() {
            self.client.settle(lookup, &answers, &mut self.store).unwrap();
        }
    }

    pub(super) fn take(&mut self, lookup: LookupNumber) -> Option<Vec<u8>> {
        self.client.take(lookup).unwrap().unwrap().map(|value| value.to_vec())
    }

    pub(super) fn look_up(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        let queries = self.send(key);
        let answers = self.answers(&queries);
        self.settle(queries.lookup, &answers);
        let value = self.take(queries.lookup);
        self.fetch_due();
        value
    }

    pub(super) fn check(&mut self, key: &[u8]) {
        let value = self.look_up(key);
        assert_eq!(value.as_ref(), self.oracle.get(key), "{}", String::from_utf8_lossy(key));
    }
}

pub(super) fn set(number: u64, value: &[u8]) -> KeyChange {
    KeyChange { key: key(number), value: Some(value.to_vec()) }
}

pub(super) fn delete(number: u64) -> KeyChange {
    KeyChange { key: key(number), value: None }
}
