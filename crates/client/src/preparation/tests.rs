//! The steps of a preparation, over a store in memory.

use super::*;
use crate::state::{HintsKey, HintsOpened, MemoryState, NextGeneration, State};
use privet_core::{Epoch, TableDigest, TableId, TableShape};
use privet_schemes::SchemeId;
use privet_wire::{PartDescription, SchemeDescription};

const RECORDS: u64 = 1 << 14;
const RECORD_LEN: u64 = 32;
/// Groups of partitions are shorter, so that checkpoints lie within the table.
const STRETCH: usize = 1 << 18;

fn table(records: &[u8]) -> ChosenTable {
    let shape = TableShape::new(RECORDS, RECORD_LEN).unwrap();
    let digest = TableDigest([1; 32]);
    let identity = TableIdentity { id: TableId([1; 16]), epoch: Epoch(0), digest, shape };
    let records = PartDescription::new(records.len() as u64, *blake3::hash(records).as_bytes());
    let parameters = 64_u64.to_le_bytes();
    let plan = SchemePlan::from_announcement(SchemeId::DummySubsets, &identity, &parameters);
    let scheme = SchemeDescription::new(plan.unwrap(), &identity, Some(records)).unwrap();
    let layout = PartDescription::new(0, [0; 32]);
    ChosenTable {
        software: String::new(),
        name: "table".to_owned(),
        identity,
        layout,
        layout_bytes: None,
        scheme,
        updates: None,
    }
}

fn records() -> Vec<u8> {
    (0..RECORDS * RECORD_LEN).map(|k| (k * 7 + k / 255) as u8).collect()
}

fn open(state: &mut MemoryState, table: &ChosenTable) -> Box<dyn crate::state::HintStore> {
    let key = HintsKey {
        table: table.identity,
        scheme: SchemeId::DummySubsets,
        parameter_digest: table.scheme.parameter_digest,
        servers: [0; 32],
    };
    match state.open_hints(&key, false).unwrap() {
        HintsOpened::Have { hints, .. } => hints,
        HintsOpened::Busy => panic!("nobody else has them"),
    }
}

fn preparer(hints: &mut dyn crate::state::HintStore, table: &ChosenTable) -> Preparer {
    Preparer::new(table, hints.preparation().unwrap(), Kernels::detect())
}

fn resumed_at(preparer: &mut Preparer) -> usize {
    match preparer.step(Prepare::Begin) {
        Some(PreparationEvent::Resumed { offset }) => offset as usize,
        _ => panic!("it did not begin"),
    }
}

fn absorb(preparer: &mut Preparer, records: &[u8], from: usize, to: usize) {
    for offset in (from..to).step_by(10_000) {
        let bytes = &records[offset..(offset + 10_000).min(to)];
        let expected = (offset + bytes.len()) as u64;
        let event =
            preparer.step(Prepare::Absorb { offset: offset as u64, bytes: bytes.to_vec().into() });
        assert!(matches!(event, Some(PreparationEvent::Absorbed { offset }) if offset == expected));
    }
}

#[test]
fn a_generation_is_prepared_over_several_processes() {
    let (records, mut state) = (records(), MemoryState::default());
    let table = table(&records);
    let mut begun_at = Vec::new();
    for end in [STRETCH, 2 * STRETCH - 1000, records.len()] {
        let mut hints = open(&mut state, &table);
        let mut preparer = preparer(&mut *hints, &table);
        let begin = resumed_at(&mut preparer);
        begun_at.push(begin);
        absorb(&mut preparer, &records, begin, end);
        if end < records.len() {
            let saved = preparer.step(Prepare::Checkpoint);
            assert!(
                matches!(saved, Some(PreparationEvent::Saved { offset }) if offset as usize <= end)
            );
        } else {
            assert!(matches!(preparer.step(Prepare::Finish), Some(PreparationEvent::Complete)));
            assert!(preparer.step(Prepare::Checkpoint).is_none(), "nothing comes after");
            assert_eq!(hints.load().unwrap().next, NextGeneration::Ready);
            hints.switch().unwrap();
            let generation = hints.load().unwrap().generation.unwrap();
            let plan = table.scheme.plan.clone();
            let kernels = Kernels::detect();
            registry::hinted_client(plan, &table.identity, generation, kernels).unwrap();
        }
    }
    assert_eq!(begun_at[0], 0);
    assert!(begun_at[1] > 0 && begun_at[2] > begun_at[1], "{begun_at:?}");
}

#[test]
fn a_damaged_checkpoint_costs_the_preparation_and_nothing_else() {
    let (records, mut state) = (records(), MemoryState::default());
    let table = table(&records);
    let mut hints = open(&mut state, &table);
    hints.preparation().unwrap().save_checkpoint(STRETCH as u64, b"no checkpoint").unwrap();
    let mut preparer = preparer(&mut *hints, &table);
    assert_eq!(resumed_at(&mut preparer), 0);
}

#[test]
fn the_wrong_bytes_leave_no_checkpoint() {
    let (mut records, mut state) = (records(), MemoryState::default());
    let table = table(&records);
    records[5] ^= 1;
    let mut hints = open(&mut state, &table);
    let mut preparer = preparer(&mut *hints, &table);
    assert_eq!(resumed_at(&mut preparer), 0);
    absorb(&mut preparer, &records, 0, records.len());
    assert!(matches!(preparer.step(Prepare::Checkpoint), Some(PreparationEvent::Saved { .. })));
    assert!(matches!(hints.load().unwrap().next, NextGeneration::Partial { .. }));
    let Some(PreparationEvent::Failed(error)) = preparer.step(Prepare::Finish) else {
        panic!("it was accepted")
    };
    assert_eq!(error.blame(), Blame::Integrity);
    assert_eq!(hints.load().unwrap().next, NextGeneration::None);
}

#[test]
fn steps_out_of_order_are_errors() {
    let records = records();
    let table = table(&records);
    let misuse = |steps: Vec<Prepare>| {
        let mut state = MemoryState::default();
        let mut hints = open(&mut state, &table);
        let mut preparer = preparer(&mut *hints, &table);
        let last = steps.into_iter().map(|step| preparer.step(step)).last();
        matches!(last, Some(Some(PreparationEvent::Failed(_))))
    };
    assert!(misuse(vec![Prepare::Checkpoint]));
    assert!(misuse(vec![Prepare::Begin, Prepare::Begin]));
    assert!(misuse(vec![Prepare::Begin, Prepare::Finish]), "bytes are missing");
    assert!(misuse(vec![Prepare::Begin, Prepare::Ask]), "it is streamed");
    assert!(misuse(vec![Prepare::Ask]));
    let gap = Prepare::Absorb { offset: 1, bytes: vec![0].into() };
    assert!(misuse(vec![Prepare::Begin, gap]));
}

/// Moving the hints to another version of the table needs the files that the worker had.
#[test]
fn a_worker_that_was_stopped_has_left_its_store_to_others() {
    let (records, mut state) = (records(), MemoryState::default());
    let table = table(&records);
    let mut hints = open(&mut state, &table);
    let (report, events) = std::sync::mpsc::channel();
    let worker = Worker::start(preparer(&mut *hints, &table), move |event| {
        let _ = report.send(event);
    });
    let worker = worker.unwrap();
    worker.step(Prepare::Begin);
    for offset in (0..STRETCH).step_by(10_000) {
        let bytes = records[offset..offset + 10_000].to_vec().into();
        worker.step(Prepare::Absorb { offset: offset as u64, bytes });
    }
    assert!(matches!(events.recv().unwrap(), PreparationEvent::Resumed { offset: 0 }));
    worker.stop();
    hints.preparation().unwrap().discard().unwrap();
    assert!(events.iter().all(|event| matches!(event, PreparationEvent::Absorbed { .. })));
}
