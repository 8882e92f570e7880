//! Two processes and one directory of single-use hints: the second is told to wait, and takes over
//! when the first is killed. What the first had acknowledged is there.
//!
//! This program is both: started with `PRIVET_HINTS_STATE` it is the process that gets killed.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use privet_client::state::{HintStore, HintsKey, HintsOpened, State as _};
use privet_client::store::Store;
use privet_core::{Epoch, TableDigest, TableId, TableIdentity, TableShape};
use privet_schemes::SchemeId;
use privet_schemes::contract::{ReservationId, Reserved};
use privet_schemes::reservation::{JournalRecord, Reservation};
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn main() {
    match std::env::var_os("PRIVET_HINTS_STATE") {
        Some(state) => reserve_until_killed(state.as_ref()),
        None => kill_again_and_again(),
    }
}

fn key() -> HintsKey {
    let shape = TableShape::new(3, 5).unwrap();
    let (id, epoch) = (TableId([1; 16]), Epoch(4));
    let table = TableIdentity { id, epoch, digest: TableDigest([9; 32]), shape };
    HintsKey { table, scheme: SchemeId::DummySubsets, parameter_digest: [5; 32], servers: [0; 32] }
}

/// A change and a query, in a journal record.
fn record(id: u64) -> JournalRecord {
    let (change, query) = (id.to_le_bytes().to_vec(), vec![id as u8; 700]);
    Reservation::new(Reserved::new(ReservationId(id), change.into(), vec![query])).record().clone()
}

fn open(state: &Path) -> Option<Box<dyn HintStore>> {
    match Store::open(state).unwrap().open_hints(&key(), false).unwrap() {
        HintsOpened::Have { hints, notice } => {
            assert_eq!(notice, None);
            Some(hints)
        }
        HintsOpened::Busy => None,
    }
}

/// Reserves one after the other, and reports each that is acknowledged.
fn reserve_until_killed(state: &Path) {
    let mut hints = open(state).unwrap();
    let saved = hints.load().unwrap();
    let first = saved.changes.len() as u64;
    println!("open");
    for id in first.. {
        hints.reserve_one(ReservationId(id), &record(id)).unwrap();
        println!("{id}");
        std::io::stdout().flush().unwrap();
    }
}

fn start(state: &Path) -> (Child, impl Iterator<Item = String>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .env("PRIVET_HINTS_STATE", state)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines.map(Result::unwrap))
}

fn kill_again_and_again() {
    let state = tempfile::tempdir().unwrap();
    let mut hints = open(state.path()).unwrap();
    hints.preparation().unwrap().save_generation(b"generation").unwrap();
    hints.switch().unwrap();
    drop(hints);
    let mut acknowledged = 0;
    for round in 0..40 {
        let (mut child, mut lines) = start(state.path());
        assert_eq!(lines.next().unwrap(), "open");
        assert!(open(state.path()).is_none(), "another process has them");
        for _ in 0..round % 7 {
            lines.next().unwrap();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // What it managed to report before the kill counts too; half a line does not.
        let said = lines.filter_map(|line| line.parse::<u64>().ok()).count();
        acknowledged += round % 7 + said as u64;
        let saved = open(state.path()).unwrap().load().unwrap();
        let found = saved.changes.len() as u64;
        assert!(
            (acknowledged..=acknowledged + 1).contains(&found),
            "{acknowledged} were acknowledged, {found} are there"
        );
        for (id, (change, (unfinished, stored))) in
            (0..).zip(saved.changes.iter().zip(&saved.unfinished))
        {
            assert_eq!(change.to_vec(), u64::to_le_bytes(id));
            assert_eq!((unfinished.0, stored.change()), (id, &change[..]));
            assert_eq!(stored.sendable().queries(), [vec![id as u8; 700]]);
        }
        acknowledged = found;
    }
    println!("killed 40 times; {acknowledged} reservations, none lost");
}
