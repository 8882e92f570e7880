//! Random histories for the state directory and for memory: after any steps in any order, both
//! report and keep the same.

use super::history::{key_at, record, unfinished};
use crate::disk::simulated::Dice;
use crate::state::{HintStore, HintsKey, HintsOpened, MemoryState, NextGeneration, State};
use crate::store::Store;
use privet_core::{Blame, Result, TableIdentity};
use privet_schemes::contract::ReservationId;
use std::time::{Duration, Instant};

/// A step of a history.
#[derive(Clone, Debug)]
enum Step {
    /// As if the process had ended; the next one asks for hints in this version, strictly or to
    /// follow.
    Reopen(u64, bool),
    Checkpoint(u64),
    Prepare(u8),
    Discard,
    Switch,
    Condense(u8),
    Reserve(u64),
    Settle(u64),
    End(u64),
    Follow(u64),
    Restart(u64),
}

/// Everything that is visible of hints.
#[derive(Debug, PartialEq)]
struct Kept {
    generation: Option<Vec<u8>>,
    changes: Vec<Vec<u8>>,
    unfinished: Vec<(u64, Vec<u8>)>,
    next: NextGeneration,
    checkpoint: Option<(u64, Vec<u8>)>,
    prepared_for: Option<TableIdentity>,
    stands_at: Option<HintsKey>,
}

fn kept(hints: &mut dyn HintStore) -> Kept {
    let saved = hints.load().unwrap();
    let checkpoint = hints.preparation().unwrap().checkpoint().unwrap();
    let unfinished = unfinished(&saved);
    Kept {
        generation: saved.generation.map(|bytes| bytes.to_vec()),
        changes: saved.changes.iter().map(|bytes| bytes.to_vec()).collect(),
        unfinished,
        next: saved.next,
        checkpoint: checkpoint.map(|(offset, bytes)| (offset, bytes.to_vec())),
        prepared_for: saved.prepared_for,
        stands_at: saved.stands_at,
    }
}

fn open(state: &mut dyn State, epoch: u64, to_follow: bool) -> Box<dyn HintStore> {
    // As clients do: a system that is busy may release the lock of a closed file a moment later.
    let patience = Instant::now() + Duration::from_secs(10);
    let hints = loop {
        match state.open_hints(&key_at(epoch), to_follow).unwrap() {
            HintsOpened::Have { hints, .. } => break hints,
            HintsOpened::Busy => assert!(Instant::now() < patience, "busy"),
        }
    };
    assert!(matches!(state.open_hints(&key_at(epoch), false).unwrap(), HintsOpened::Busy));
    hints
}

fn apply(hints: &mut dyn HintStore, step: &Step) -> Result<()> {
    match *step {
        Step::Reopen(..) => Ok(()),
        Step::Checkpoint(offset) => {
            hints.preparation()?.save_checkpoint(offset, &[offset as u8; 30])
        }
        Step::Prepare(number) => hints.preparation()?.save_generation(&[number; 50]),
        Step::Discard => hints.preparation()?.discard(),
        Step::Switch => hints.switch(),
        Step::Condense(number) => hints.switch_to(&[number; 60]),
        Step::Reserve(id) => {
            hints.reserve_one(ReservationId(id), &record(&[id as u8; 9], b"query")).map(drop)
        }
        Step::Settle(id) => hints.settle(ReservationId(id), &[id as u8; 7]),
        Step::End(id) => hints.end(Some(ReservationId(id)), b"the end", "a wrong answer"),
        Step::Follow(epoch) => hints.follow(&[epoch as u8; 11], &key_at(epoch)),
        Step::Restart(epoch) => hints.restart(&key_at(epoch)),
    }
}

/// Steps that mostly make sense: numbers near those that are due, versions near the present one.
fn history(dice: &mut Dice) -> Vec<Step> {
    let (mut reserved, mut epoch) = (0u64, 4);
    let mut steps = vec![Step::Prepare(1), Step::Switch];
    for number in 0..40 {
        let near = |number: u64, dice: &mut Dice| (number + 1).saturating_sub(dice.below(3) as u64);
        let step = match dice.below(40) {
            0..4 => Step::Reopen(near(epoch, dice), dice.below(3) > 0),
            4..8 => Step::Checkpoint(number),
            8..11 => Step::Prepare(number as u8),
            11 => Step::Discard,
            12..15 => Step::Switch,
            15 => Step::Condense(number as u8),
            16..25 => Step::Reserve(reserved),
            25..34 => Step::Settle(near(reserved, dice).saturating_sub(2)),
            34 if dice.below(4) == 0 => Step::End(reserved.saturating_sub(1)),
            34..38 => Step::Follow(near(epoch, dice)),
            38 => Step::Restart(near(epoch, dice)),
            _ => Step::Reserve(near(reserved, dice)),
        };
        match step {
            Step::Reserve(id) => reserved = id + 1,
            Step::Follow(to) => epoch = epoch.max(to),
            Step::Switch | Step::Condense(_) | Step::Restart(_) => reserved = 0,
            _ => {}
        }
        steps.push(step);
    }
    steps
}

type Said = (Option<Blame>, Kept);

/// What a state reports after every step, and what it keeps then.
fn live(state: &mut dyn State, steps: &[Step]) -> Vec<Said> {
    let mut hints = open(state, 4, true);
    let mut said = Vec::new();
    for step in steps {
        if let Step::Reopen(epoch, to_follow) = *step {
            drop(hints);
            hints = open(state, epoch, to_follow);
        }
        let blame = apply(&mut *hints, step).err().map(|error| error.blame());
        said.push((blame, kept(&mut *hints)));
    }
    said
}

#[test]
fn memory_and_directory_agree_on_any_history() {
    let (mut followed, mut restarted, mut refused, mut moved) = (0, 0, 0, 0);
    for seed in 0..16 {
        let steps = history(&mut Dice::new(seed));
        let place = tempfile::tempdir().unwrap();
        // Memory never needs the user's consent to replace pins.
        let mut store = Store::open(place.path()).unwrap().replacing_damaged_pins(true);
        let on_disk = live(&mut store, &steps);
        let in_memory = live(&mut MemoryState::default(), &steps);
        for (number, step) in steps.iter().enumerate() {
            let (disk, memory) = (&on_disk[number], &in_memory[number]);
            assert_eq!(disk, memory, "seed {seed}, step {number}: {step:?} of {steps:?}");
            let done = disk.0.is_none();
            followed += u32::from(done && matches!(step, Step::Follow(_)));
            restarted += u32::from(done && matches!(step, Step::Restart(_)));
            refused += u32::from(!done);
            moved += u32::from(disk.1.stands_at.is_some());
        }
    }
    assert!(followed > 5 && restarted > 5 && refused > 50 && moved > 20);
}
