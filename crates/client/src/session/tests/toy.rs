//! A scheme with single-use hints that hides nothing, but has the shape of one that does, with its
//! difficulties: a generation that needs the whole streamed table, hints that must not serve twice,
//! records that depend on the answers to earlier queries.
//!
//! ```text
//! query:   nonce of the generation (16) ‖ reservation (8) ‖ hint (8) ‖ index under a mask of nonce and hint (8) ‖ role (1) ‖ 3 × role zeros
//! answer:  reservation (8) ‖ record under a pad of nonce, hint and the whole table; from all servers but the first, the pad alone
//! ```
//!
//! A record is told only when no older reservation for the same index is open. For a chained toy,
//! no older reservation at all may be open.
//!
//! There are toys for each way in which the table can come: as it is; in another order, backwards;
//! and in replies of the last server, each under a pad made from a secret in the request:
//!
//! ```text
//! request: secret (16) ‖ number of the reply (8)
//! ```
//!
//! A toy that verifies has a tag at the end of each answer, which depends on every bit of the
//! answer. The first wrong tag ends it. Its queries go one after the other.
//!
//! Toys follow edits of their table while it has no more than [`MOST_RECORDS`] records: [`fold`],
//! which is what they know of the table, is linear.
//!
//! An endless toy goes on numbering its hints through all its generations, which share one nonce.

mod client;

pub(super) use client::{Nowhere, fix_coins, parts};

use super::world::{Peer, World, options};
use crate::session::*;
use privet_core::{Epoch, TableDigest, TableId, TableIdentity, TableShape};
use privet_schemes::SchemeId;
use privet_schemes::contract::Role;
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::SchemePlan;

const NONCE_LEN: usize = 16;
pub(super) const QUERY_LEN: usize = NONCE_LEN + 8 + 8 + 8 + 1;
/// Bytes of an incomplete group are not in a checkpoint.
const GROUP_LEN: u64 = 48;
const SECRET_LEN: usize = 16;
const REQUEST_LEN: usize = SECRET_LEN + 8;
pub(super) const REPLY_LEN: usize = 56;
const TAG_LEN: usize = 16;
/// The largest table for which hints are valid.
pub(super) const MOST_RECORDS: u64 = 26;
/// The end of a toy's parameters.
const MARK: &[u8] = b"a toy";

/// A flaw that a test gives a toy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Flaw {
    #[default]
    None,
    /// Every third reservation uses the hint of the one before it.
    ReusesHints,
    /// Does not wait for its journal record to be durable.
    SendsAtOnce,
    /// Looks up nothing for index 0.
    LeaksZero,
    /// Condenses into a generation that begins with the last hint of the old one.
    CondensesTooMuch,
    /// Does not say that its answers are verified, so that queries leave together.
    HidesThatItVerifies,
    /// Goes on after a wrong answer.
    GoesOnAfterItsEnd,
    /// Notes that it has followed edits, but ignores them.
    OverlooksEdits,
}

const FLAWS: [Flaw; 8] = [
    Flaw::None,
    Flaw::ReusesHints,
    Flaw::SendsAtOnce,
    Flaw::LeaksZero,
    Flaw::CondensesTooMuch,
    Flaw::HidesThatItVerifies,
    Flaw::GoesOnAfterItsEnd,
    Flaw::OverlooksEdits,
];

/// How the table comes to a toy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Flow {
    #[default]
    Streamed,
    Backwards,
    Asked,
}

/// What kind of toy it is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kind {
    pub(super) flow: Flow,
    pub(super) endless: bool,
    /// Whether each record depends on the answers to all earlier queries.
    pub(super) chained: bool,
    pub(super) verifies: bool,
    pub(super) flaw: Flaw,
}

/// A plan for toys: `total` queries in a generation.
pub(super) fn plan(
    table_len: u64,
    record_len: u64,
    servers: usize,
    total: u64,
    kind: Kind,
) -> SchemePlan {
    let mut parameters = total.to_le_bytes().to_vec();
    parameters.extend([
        kind.flaw as u8,
        kind.flow as u8,
        u8::from(kind.endless),
        u8::from(kind.chained),
        u8::from(kind.verifies),
        servers as u8,
    ]);
    parameters.extend(MARK);
    SchemePlan {
        scheme: SchemeId::DummySubsets,
        parameters,
        servers,
        query_lens: (0..servers).map(|role| QUERY_LEN + 3 * role).collect(),
        answer_len: 8 + record_len as usize + if kind.verifies { TAG_LEN } else { 0 },
        offline: match kind.flow {
            Flow::Streamed => OfflinePhase::StreamTable { len: table_len },
            Flow::Backwards => OfflinePhase::StreamArranged { len: table_len },
            Flow::Asked => OfflinePhase::Ask {
                role: Role(servers as u8 - 1),
                requests: table_len.div_ceil(REPLY_LEN as u64),
                request_len: REQUEST_LEN,
                reply_len: REPLY_LEN,
            },
        },
    }
}

/// The plan of the same toy for another version of its table; `None` if it is not a toy.
fn plan_in(plan: &SchemePlan, table: &TableIdentity) -> Option<SchemePlan> {
    let parameters = plan.parameters.strip_suffix(MARK)?;
    let kind = Kind {
        flow: flow_of(plan),
        endless: parameters[10] == 1,
        chained: parameters[11] == 1,
        verifies: parameters[12] == 1,
        flaw: FLAWS[usize::from(parameters[8])],
    };
    let (shape, servers) = (table.shape, usize::from(parameters[13]));
    let total = number(&parameters[..8]);
    Some(self::plan(shape.bytes(), shape.record_len(), servers, total, kind))
}

/// A server of toys.
pub(super) fn peer(records: u64, record_len: u64, servers: usize, total: u64, kind: Kind) -> Peer {
    serve(Peer::indexed(records, record_len, 1), servers, total, kind)
}

/// A client of as many such servers as it takes.
pub(super) fn world(peer: &Peer) -> World {
    let servers = peer.scheme().plan.servers;
    World::with_parts(vec![peer.clone(); servers], options(servers), parts(1))
}

/// The same of another peer's table.
pub(super) fn serve(peer: Peer, servers: usize, total: u64, kind: Kind) -> Peer {
    let record_len = peer.identity().shape.record_len();
    let table = peer.records.clone();
    let plan = plan(table.len() as u64, record_len, servers, total, kind);
    let backwards = table.iter().rev().copied().collect();
    let (asked, whole) = (plan.offline, table.clone());
    let replies = move |role, request: &[u8]| match asked {
        OfflinePhase::Ask { role: due, .. } if due == role && request.len() == REQUEST_LEN => {
            Ok(reply(&whole, request))
        }
        _ => Err(Error::invalid_message("no such request")),
    };
    let (lens, folded) = (plan.query_lens.clone(), fold(&table, record_len as usize));
    peer.served_by(plan, backwards, replies, move |query| {
        assert_eq!(query.len(), lens[usize::from(query[QUERY_LEN - 1])]);
        let mut answer = answer(&table, &folded, record_len as usize, query);
        if kind.verifies {
            let (nonce, hint) = hint_of(query);
            let tag = tag(&nonce, hint, query[QUERY_LEN - 1], &folded, &answer);
            answer.extend(tag);
        }
        Ok(answer)
    })
}

fn reply(table: &[u8], request: &[u8]) -> Vec<u8> {
    let (secret, number) = (&request[..SECRET_LEN], number(&request[SECRET_LEN..]));
    let mut reply = vec![0; REPLY_LEN];
    let part = &table[number as usize * REPLY_LEN..];
    let part = &part[..part.len().min(REPLY_LEN)];
    reply[..part.len()].copy_from_slice(part);
    xor(&mut reply, &reply_pad(secret, number));
    reply
}

fn reply_pad(secret: &[u8], number: u64) -> Vec<u8> {
    pad_from(secret, number, 0, &[0; 32], REPLY_LEN)
}

fn answer(table: &[u8], folded: &[u8], record_len: usize, query: &[u8]) -> Vec<u8> {
    let (nonce, rest) = query.split_at(NONCE_LEN);
    let hint = number(&rest[8..16]);
    let index = index_of(query) % (table.len() / record_len) as u64;
    let mut answer = pad_from(nonce, hint, rest[24], folded, record_len);
    if rest[24] == 0 {
        let record = &table[index as usize * record_len..][..record_len];
        xor(&mut answer, record);
        // To read the record, all other servers' pads must be known.
    }
    [&rest[..8], &answer].concat()
}

/// The index that a query is for.
pub(super) fn index_of(query: &[u8]) -> u64 {
    let (nonce, rest) = query.split_at(NONCE_LEN);
    number(&rest[16..24]) ^ mask(nonce, number(&rest[8..16]))
}

/// The hint that a query uses, and its generation: no two different queries may share both.
pub(super) fn hint_of(query: &[u8]) -> (Vec<u8>, u64) {
    (query[..NONCE_LEN].to_vec(), number(&query[NONCE_LEN + 8..NONCE_LEN + 16]))
}

/// The number of the reservation that a query belongs to.
pub(super) fn reservation_of(query: &[u8]) -> Vec<u8> {
    query[NONCE_LEN..NONCE_LEN + 8].to_vec()
}

/// The number of the reply that a request asks for.
pub(super) fn reply_number_of(request: &[u8]) -> Vec<u8> {
    request[SECRET_LEN..].to_vec()
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

fn mask(nonce: &[u8], hint: u64) -> u64 {
    let hash = blake3::hash(&[nonce, &hint.to_le_bytes()].concat());
    number(&hash.as_bytes()[..8])
}

/// A value that depends on every bit of a table: the XOR of values that each depend on one record.
fn fold(table: &[u8], record_len: usize) -> [u8; 32] {
    let mut folded = [0; 32];
    for (index, record) in (0..).zip(table.chunks(record_len)) {
        fold_in(&mut folded, index, record);
    }
    folded
}

fn fold_in(folded: &mut [u8], index: u64, record: &[u8]) {
    for (at, byte) in record.iter().enumerate() {
        folded[(7 * index as usize + at) % 32] ^= byte.rotate_left(index as u32 % 8);
    }
}

fn pad_from(nonce: &[u8], hint: u64, role: u8, table: &[u8], len: usize) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(nonce).update(&hint.to_le_bytes()).update(&[role]).update(table);
    let mut pad = vec![0; len];
    hasher.finalize_xof().fill(&mut pad);
    pad
}

/// The tag of an answer: it ties the answer to this query of this generation, and to this server.
fn tag(nonce: &[u8], hint: u64, role: u8, table: &[u8], answer: &[u8]) -> Vec<u8> {
    pad_from(&[nonce, answer].concat(), hint, role, table, TAG_LEN)
}

fn lied(role: u8) -> Error {
    Error::integrity(format!(
        "the answer of server {role} is not from the table that was agreed on"
    ))
}

fn xor(into: &mut [u8], bytes: &[u8]) {
    into.iter_mut().zip(bytes).for_each(|(into, byte)| *into ^= byte);
}

fn flow_of(plan: &SchemePlan) -> Flow {
    [Flow::Streamed, Flow::Backwards, Flow::Asked][plan.parameters[9] as usize]
}
