//! Parts and pins on a disk that is cut off at every operation, and what is found there afterwards.
//!
//! Each check returns what is wrong instead of panicking, so that tests can show that it notices a
//! disk that does not do what it is told.

use super::*;
use crate::disk::simulated::{Dice, Disk, Neglect, SURVIVALS, Survival};

/// Seeds for each way of surviving that involves a choice.
const SEEDS: u64 = 8;

const SERVER: &str = "http://a";

/// Lengths of chunks: a few bytes, and some sectors, of which any may be torn off.
const CHUNK_LENS: [u32; 2] = [CHUNK_LEN, 1200];

type Found = std::result::Result<(), String>;

/// A life of a process; it notes what it was told is done.
type Life<'a> = &'a dyn Fn(&Disk, &mut u64) -> Result<()>;

/// What must hold after a crash, for what was noted.
type Check<'a> = &'a dyn Fn(&Disk, Survival, u64) -> Found;

/// Runs a life, cut off at every operation, and checks what each way of surviving leaves. Returns
/// the first fault. `neglect` says what the disk skips.
fn crash_everywhere(neglect: Neglect, live: Life<'_>, check: Check<'_>) -> Found {
    let whole = Disk::default().neglecting(neglect);
    live(&whole, &mut 0).map_err(|error| format!("not cut off: {error}"))?;
    let operations = whole.operations();
    assert!(operations >= 20, "{operations} operations are a short life");
    // And once after all of them.
    for operation in 0..=operations {
        let (disk, mut noted) = (Disk::default().neglecting(neglect).stopping_at(operation), 0);
        assert_eq!(live(&disk, &mut noted).is_ok(), operation == operations);
        for survival in SURVIVALS {
            let seeds = if let Survival::Prefix | Survival::Subset = survival { SEEDS } else { 1 };
            for seed in 0..seeds {
                let survivor = disk.after(survival, &mut Dice::new(seed + 1000 * operation as u64));
                check(&survivor, survival, noted).map_err(|why| {
                    format!("operation {operation} of {operations}, {survival:?}, {seed}: {why}")
                })?;
            }
        }
    }
    Ok(())
}

fn on(disk: &Disk, chunk_len: u32) -> Result<Store> {
    Ok(Store::on(disk)?.with_chunk_len(chunk_len))
}

/// The stored part. A crash damages none, so there is no notice.
fn kept(store: &mut Store, part: &PartKey) -> std::result::Result<PartState, String> {
    match store.open(part).map_err(|error| error.to_string())? {
        Opened::Have { part, notice: None } => Ok(part),
        Opened::Have { notice, .. } => Err(format!("a crash is no damage: {notice:?}")),
        Opened::Busy { .. } => Err("busy".to_owned()),
    }
}

/// Downloads the missing bytes of a part in pieces, and completes it. Notes how many bytes were
/// appended.
fn download(store: &mut Store, part: &PartKey, bytes: &[u8], noted: &mut u64) -> Result<()> {
    let Opened::Have { part: PartState::Partial(mut download), .. } = store.open(part)? else {
        return Ok(());
    };
    let from = download.next_offset() as usize;
    for (k, piece) in bytes[from..].chunks(part_piece(bytes)).enumerate() {
        let offset = (from + k * part_piece(bytes)) as u64;
        download.absorb(offset, piece)?;
        store.append(part, offset, piece)?;
        *noted = offset + piece.len() as u64;
    }
    download.finish()?;
    store.complete(part)?;
    *noted = bytes.len() as u64 + 1;
    Ok(())
}

/// Pieces whose ends are neither ends of chunks nor of sectors.
fn part_piece(bytes: &[u8]) -> usize {
    bytes.len() / 13 + 1
}

/// After a crash there is a whole part, or a correct prefix of it that can be completed. A part
/// that was reported complete is complete.
fn check_part(
    disk: &Disk,
    chunk_len: u32,
    survival: Survival,
    part: &PartKey,
    bytes: &[u8],
    noted: u64,
) -> Found {
    let error = |error: Error| error.to_string();
    let mut store = on(disk, chunk_len).map_err(error)?;
    match kept(&mut store, part)? {
        PartState::Complete(source) => {
            let same = contents(&*source).map_err(error)? == bytes;
            return same.then_some(()).ok_or_else(|| "it serves other bytes".to_owned());
        }
        PartState::Partial(_) if noted > part.len => {
            return Err("it was complete, and is not any more".to_owned());
        }
        PartState::Partial(download) => {
            let spared = matches!(survival, Survival::Killed | Survival::Everything);
            let whole = noted / u64::from(chunk_len) * u64::from(chunk_len);
            if spared && download.next_offset() < whole {
                return Err(format!("of {noted} bytes {} are left", download.next_offset()));
            }
        }
    }
    download(&mut store, part, bytes, &mut 0).map_err(error)?;
    match kept(&mut store, part)? {
        PartState::Complete(source) if contents(&*source).map_err(error)? == bytes => Ok(()),
        _ => Err("it did not go on to the whole".to_owned()),
    }
}

fn crash_parts(neglect: Neglect) -> Found {
    for chunk_len in CHUNK_LENS {
        let bytes = bytes(10 * chunk_len as usize + 5);
        let part = part_of(&bytes, PartKind::Hint);
        let live = |disk: &Disk, noted: &mut u64| {
            download(&mut on(disk, chunk_len)?, &part, &bytes, noted)
        };
        let check = |disk: &Disk, survival, noted| {
            check_part(disk, chunk_len, survival, &part, &bytes, noted)
        };
        crash_everywhere(neglect, &live, &check)?;
    }
    Ok(())
}

#[test]
fn a_crash_at_any_operation_leaves_a_right_beginning_of_a_part_or_all_of_it() {
    crash_parts(Neglect::Nothing).unwrap();
}

#[test]
fn a_crash_while_a_part_goes_on_after_a_crash_is_no_worse() {
    let chunk_len = CHUNK_LENS[1];
    let bytes = bytes(4 * chunk_len as usize + 5);
    let part = part_of(&bytes, PartKind::Table);
    let mut went_on = 0;
    for operation in 0..20 {
        for first in SURVIVALS {
            let disk = Disk::default().stopping_at(operation);
            let cut_off = on(&disk, chunk_len)
                .and_then(|mut store| download(&mut store, &part, &bytes, &mut 0));
            let mut dice = Dice::new(operation as u64);
            let survivor = disk.after(first, &mut dice);
            for within in 0.. {
                let again = survivor.after(Survival::Killed, &mut dice).stopping_at(within);
                let mut noted = 0;
                let ended = on(&again, chunk_len)
                    .and_then(|mut store| download(&mut store, &part, &bytes, &mut noted));
                for second in SURVIVALS {
                    let left = again.after(second, &mut dice);
                    check_part(&left, chunk_len, Survival::Nothing, &part, &bytes, noted)
                        .unwrap_or_else(|why| {
                            panic!("{operation}, {first:?}, {within}, {second:?}: {why}")
                        });
                }
                if ended.is_ok() {
                    break;
                }
                went_on += usize::from(cut_off.is_err() && within > 0);
            }
        }
    }
    assert!(went_on > 100, "{went_on} recoveries were cut off");
}

/// The pins in the order in which they are stored, and the part that each names.
fn steps() -> Vec<(&'static str, Pin, Option<Vec<u8>>)> {
    let named = |version: u8| {
        let bytes: Vec<u8> = bytes(100).into_iter().map(|byte| byte ^ version).collect();
        let part = part_of(&bytes, PartKind::Hint);
        let hint = Some(PartDescription { len: part.len, digest: part.digest });
        ("one", Pin { hint, ..pin(1, version.into()) }, Some(bytes))
    };
    let unnamed = |name, table, epoch| (name, pin(table, epoch), None);
    vec![
        named(0),
        unnamed("two", 2, 0),
        unnamed("three", 3, 0),
        unnamed("four", 4, 0),
        named(1),
        unnamed("two", 2, 5),
        named(2),
    ]
}

/// The pins after `count` steps.
fn pins_after(count: usize) -> Pins {
    let mut pins = Pins::new();
    for (name, pin, _) in steps().into_iter().take(count) {
        pins.retain(|(known, _)| known != name);
        pins.push((name.to_owned(), pin));
    }
    pins
}

fn live_with_pins(disk: &Disk, noted: &mut u64) -> Result<()> {
    let mut store = on(disk, CHUNK_LEN)?;
    for (name, pin, bytes) in steps() {
        if let Some(bytes) = bytes {
            download(&mut store, &part_of(&bytes, PartKind::Hint), &bytes, &mut 0)?;
        }
        store.pins(SERVER)?;
        store.pin(SERVER, name, &pin)?;
        *noted += 1;
    }
    Ok(())
}

/// After a crash there are the pins that were stored last, or those that were being written, whole.
/// The parts that they name are there, and the process can go on.
fn check_pins(disk: &Disk, noted: u64) -> Found {
    let error = |error: Error| error.to_string();
    let mut store = on(disk, CHUNK_LEN).map_err(error)?;
    let mut pins = store.pins(SERVER).map_err(error)?;
    let noted = noted as usize;
    if pins != pins_after(noted) && pins != pins_after(noted + 1) {
        return Err(format!("after {noted} steps there were {pins:?}"));
    }
    for (_, pin, bytes) in steps() {
        let Some(bytes) = bytes.filter(|_| pins.iter().any(|(_, known)| *known == pin)) else {
            continue;
        };
        match kept(&mut store, &part_of(&bytes, PartKind::Hint))? {
            PartState::Complete(source) if contents(&*source).map_err(error)? == bytes => {}
            _ => return Err(format!("the part of epoch {} is gone", pin.table.epoch.0)),
        }
    }
    store.pin(SERVER, "five", &pin(5, 0)).map_err(error)?;
    pins.push(("five".to_owned(), pin(5, 0)));
    let found = on(disk, CHUNK_LEN).and_then(|mut store| store.pins(SERVER)).map_err(error)?;
    (found == pins).then_some(()).ok_or_else(|| format!("it went on to {found:?}"))
}

fn crash_pins(neglect: Neglect) -> Found {
    crash_everywhere(neglect, &live_with_pins, &|disk, _, noted| check_pins(disk, noted))
}

#[test]
fn a_crash_at_any_operation_leaves_the_old_pins_or_the_new_ones_and_what_they_name() {
    crash_pins(Neglect::Nothing).unwrap();
}

/// The pins are found under the earlier spelling or under the present one, never under neither.
fn crash_adoption(neglect: Neglect) -> Found {
    const EARLIER: &str = "HTTP://A:80";
    let live = |disk: &Disk, noted: &mut u64| {
        let mut store = on(disk, CHUNK_LEN)?;
        for (name, pin, _) in steps() {
            store.pin(EARLIER, name, &pin)?;
            *noted += 1;
        }
        store.adopt_pins(EARLIER, SERVER)
    };
    let check = |disk: &Disk, _: Survival, noted: u64| {
        let error = |error: Error| error.to_string();
        let mut store = on(disk, CHUNK_LEN).map_err(error)?;
        store.adopt_pins(EARLIER, SERVER).map_err(error)?;
        let pins = store.pins(SERVER).map_err(error)?;
        let noted = noted as usize;
        if pins != pins_after(noted) && pins != pins_after(noted + 1) {
            return Err(format!("after {noted} steps there were {pins:?}"));
        }
        match store.pins(EARLIER).map_err(error)?.len() {
            0 => Ok(()),
            left => Err(format!("{left} stayed under the earlier spelling")),
        }
    };
    crash_everywhere(neglect, &live, &check)
}

#[test]
fn a_crash_while_pins_are_taken_over_loses_none() {
    crash_adoption(Neglect::Nothing).unwrap();
}

/// The checks can fail: they notice a disk that skips what it was told to do.
#[test]
fn a_sync_that_is_not_done_is_noticed() {
    for neglect in [Neglect::Contents, Neglect::Names] {
        for (what, outcome) in [
            ("parts", crash_parts(neglect)),
            ("pins", crash_pins(neglect)),
            ("taking pins over", crash_adoption(neglect)),
        ] {
            assert!(outcome.is_err(), "{what}: {neglect:?} was not noticed");
        }
    }
}
