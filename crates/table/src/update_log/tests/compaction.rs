use super::files::{Room, write_snapshot};
use super::*;
use crate::snapshot::Snapshot;
use crate::update_log::writer::CompactionTarget;
use privet_core::Blame;
use std::fs;

/// A table with three epochs in its log.
fn room() -> (Room, Model) {
    let mut model = Model::new(5);
    let room = Room::new(&model);
    room.append(&mut model, &[edit(1, 1), add(2)]);
    let mut update = model.update(&[edit(5, 6)]);
    update.layout = Some(layout(2));
    model.next(&[edit(5, 6)], Some(layout(2)));
    room.writer().append(&key(1), &update).expect("valid");
    room.append(&mut model, &[add(3)]);
    (room, model)
}

/// After each step both files are opened again, as after a crash. The table is the same, the next
/// epoch continues its history, and a second compaction completes the first.
#[test]
fn a_compaction_can_stop_after_every_step() {
    for steps in 0..=2 {
        let (room, mut model) = room();
        let path = room.snapshot.path().to_owned();
        let writer = room.writer();
        let target = CompactionTarget::of(&writer, &path).expect("in place");
        if steps >= 1 {
            writer.write_snapshot(&path).expect("whole");
        }
        if steps >= 2 {
            writer.write_new_log(&target, 0).expect("whole");
        }
        drop(writer);
        let room = Room { snapshot: Snapshot::open(&path).expect("whole"), ..room };
        let expected_epoch = if steps == 0 { 3 } else { model.epoch };
        assert_eq!(room.snapshot.identity().epoch, Epoch(expected_epoch));
        room.assert_is(&model);

        // A client that has followed all epochs, and one that is further behind.
        let (mut current, mut old) = (model.chain(), Model::new(5).chain());
        room.append(&mut model, &[edit(0, 9)]);
        room.assert_is(&model);
        let log = room.log();
        let follow = |chain: &mut Chain| {
            let epochs = log.epochs_from(chain.identity().epoch)?;
            epochs.map(|epoch| chain.follow(&epoch?)).collect::<Result<Vec<_>, _>>()
        };
        follow(&mut current).expect("kept");
        assert_eq!(current, model.chain());
        if steps < 2 {
            follow(&mut old).expect("still there");
            assert_eq!(old, model.chain());
        } else {
            let error = follow(&mut old).expect_err("gone");
            assert!(error.message().contains("no longer kept"), "{error}");
        }

        let compacted = room.writer().compact(&path, 0).expect("whole");
        assert_eq!(compacted.identity(), model.identity());
        let room = Room { snapshot: compacted, ..room };
        assert_eq!((room.log().base(), room.log().epoch_bytes()), (Epoch(model.epoch), 0));
        room.assert_is(&model);
    }
}

/// Between the two steps, a second compaction only has to replace the log.
#[test]
fn a_compaction_is_completed_by_the_next() {
    let (room, model) = room();
    let path = room.snapshot.path().to_owned();
    room.writer().write_snapshot(&path).expect("whole");
    let written = fs::metadata(&path).expect("there").modified().expect("known");
    let room = Room { snapshot: Snapshot::open(&path).expect("whole"), ..room };
    let completed = room.writer().compact(&path, 0).expect("whole");
    assert_eq!(fs::metadata(&path).expect("there").modified().expect("known"), written);
    let room = Room { snapshot: completed, ..room };
    assert_eq!(room.log().base(), Epoch(model.epoch));
    room.assert_is(&model);
}

/// A reader that opened the snapshot before the compaction and the log after it gets the advice to
/// open both again.
#[test]
fn an_older_snapshot_does_not_go_with_a_compacted_log() {
    let (room, model) = room();
    room.writer().compact(room.snapshot.path(), 0).expect("whole");
    let error = UpdateLog::open(&room.log_path(), &room.snapshot).expect_err("too old");
    assert_eq!(error.blame(), Blame::Unavailable);
    assert!(error.message().contains("open both again"), "{error}");
    let room = Room { snapshot: Snapshot::open(room.snapshot.path()).expect("whole"), ..room };
    room.assert_is(&model);
}

#[test]
fn a_compaction_elsewhere_overwrites_nothing() {
    let (room, mut model) = room();
    let elsewhere = room.directory.path().join("elsewhere.privet");
    let log_before = fs::read(room.log_path()).expect("readable");
    for taken in [elsewhere.clone(), log_path(&elsewhere)] {
        fs::write(&taken, b"mine").expect("writable");
        let error = room.writer().compact(&elsewhere, 0).expect_err("taken");
        assert_eq!(error.blame(), Blame::ApiMisuse);
        assert_eq!(fs::read(&taken).expect("readable"), b"mine");
        fs::remove_file(&taken).expect("removable");
    }
    let compacted = room.writer().compact(&elsewhere, 0).expect("nothing is there");
    assert_eq!(compacted.identity(), model.identity());
    assert_eq!(fs::read(room.log_path()).expect("readable"), log_before);
    room.assert_is(&model);
    let there = Room { snapshot: compacted, directory: room.directory };
    there.append(&mut model, &[add(1)]);
    there.assert_is(&model);
    let built = write_snapshot(&model, &there.directory.path().join("built.privet"));
    assert_eq!(built.identity(), model.identity());
}

/// However many epochs are kept: clients at one of them can follow, clients further behind cannot,
/// and the history goes on from there.
#[test]
fn the_last_epochs_are_kept_as_far_as_they_fit() {
    let (probe, _) = room();
    let lengths: Vec<u64> = (probe.log().epochs_from(Epoch(3)).expect("all of them"))
        .map(|epoch| 8 + epoch.expect("whole").len() as u64)
        .collect();
    for kept in 0..=lengths.len() {
        let limit: u64 = lengths[lengths.len() - kept..].iter().sum();
        // With one byte less, one epoch less is kept.
        for (limit, kept) in [(limit, kept), (limit.saturating_sub(1), kept.saturating_sub(1))] {
            let (room, mut model) = room();
            let path = room.snapshot.path().to_owned();
            let snapshot = room.writer().compact(&path, limit).expect("whole");
            let room = Room { snapshot, ..room };
            room.assert_is(&model);
            let log = room.log();
            assert_eq!(log.base(), Epoch(model.epoch - kept as u64));
            assert_eq!(log.unfolded_bytes(), 0);
            assert_eq!(log.epoch_bytes(), lengths[lengths.len() - kept..].iter().sum::<u64>());
            assert!(log.epochs_from(Epoch(log.base().0 - 1)).is_err());
            let base = log.base();
            drop(log);

            room.append(&mut model, &[edit(0, 9), add(4)]);
            room.assert_is(&model);
            let log = room.log();
            assert_eq!(log.base(), base);
            let mut chain = model.chain();
            let epochs: Vec<_> = log.epochs_from(base).expect("kept").collect();
            assert_eq!(epochs.len(), kept + 1);
            assert_eq!(
                log.unfolded_bytes(),
                8 + epochs[kept].as_ref().expect("whole").len() as u64
            );
            // The last of them is the one that the history ends with.
            assert!(
                chain.follow(epochs[kept].as_ref().expect("whole")).is_err(),
                "followed already"
            );
        }
    }
}
