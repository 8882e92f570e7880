//! Preparations: interrupted, damaged, and the same on every arm.

use super::*;

/// Two preparations from the same random numbers: one is killed from time to time, and goes on from
/// a checkpoint.
pub fn a_preparation_goes_on_from_a_checkpoint_to_the_same_hints<S: Hinted>() {
    for (records, record_len, cut) in S::checkpointed() {
        let shape = TableShape::new(records, record_len).unwrap();
        let mut world = World::<S>::with(S::parameters(shape, cut));
        let kernels = Kernels::detect();
        let whole = world.prepared(&mut world.preparation_with([9; 32], kernels), usize::MAX / 2);
        let mut broken = world.preparation_with([9; 32], kernels);
        let len = world.offline_len();
        assert_eq!(broken.generation().unwrap_err().blame(), Blame::ApiMisuse);
        while broken.next_offset() < len {
            if broken.checkpoint_offset() == broken.next_offset() || world.rng.below(3) == 0 {
                // Killed: everything since the last complete group is lost.
                let due = broken.checkpoint_offset();
                assert!(due <= broken.next_offset());
                broken = world.resume(&broken.checkpoint()).unwrap();
                assert_eq!((broken.next_offset(), broken.checkpoint_offset()), (due, due));
            }
            // Each piece goes a little further than the last.
            let piece = len as usize / 13 + 1;
            (0..1 + world.rng.below(4)).for_each(|_| {
                if broken.next_offset() < len {
                    world.feed(&mut broken, piece);
                }
            });
        }
        let again = world
            .resume(&broken.checkpoint())
            .map(|mut again| world.prepared(&mut again, piece_of(len)));
        assert!(again.unwrap() == whole, "resumed at the end");
        assert!(world.prepared(&mut broken, 1) == whole);
        let mut client = world.load(&whole);
        let record = world.get(&mut client, records - 1);
        world.assert_right(record, records - 1);
    }
}

pub fn preparations_differ<S: Hinted>() {
    let mut world = World::<S>::new(300, 7);
    assert!(world.generation() != world.generation());
}

pub fn what_arrives_out_of_order_too_long_too_short_or_damaged_is_noticed<S: Hinted>() {
    let mut world = World::<S>::new(3_000, 5);
    let mut preparation = world.preparation();
    let (stream, right) = match S::stream(&world) {
        Some(stream) => (true, stream),
        None => (false, S::reply(&world, &mut preparation)),
    };
    let blame = |result: Result<()>| result.unwrap_err().blame();
    assert_eq!(blame(preparation.finish()), Blame::PeerMisbehaved);
    assert_eq!(blame(preparation.absorb(1, &right[1..])), Blame::PeerMisbehaved);
    let longer = [&right[..], &[0]].concat();
    assert_eq!(blame(preparation.absorb(0, &longer)), Blame::PeerMisbehaved);
    if !stream {
        for wrong in [&right[1..], &[]] {
            assert_eq!(blame(preparation.absorb(0, wrong)), Blame::PeerMisbehaved);
        }
    }
    assert_eq!(preparation.generation().unwrap_err().blame(), Blame::ApiMisuse);
    preparation.absorb(0, &right).unwrap();
    for (offset, more) in [(0, &right[..]), (right.len(), &right), (right.len(), &[0])] {
        assert_eq!(blame(preparation.absorb(offset as u64, more)), Blame::PeerMisbehaved);
    }
    preparation.finish().unwrap();
    if !stream {
        return;
    }
    let mut short = world.preparation();
    short.absorb(0, &right[1..]).unwrap();
    assert_eq!(blame(short.finish()), Blame::PeerMisbehaved);
    assert_eq!(short.generation().unwrap_err().blame(), Blame::ApiMisuse);
    for at in [0, 1, 7_499, right.len() - 1] {
        let mut damaged = right.clone();
        damaged[at] ^= 1;
        let mut preparation = world.preparation();
        preparation.absorb(0, &damaged).unwrap();
        assert_eq!(blame(preparation.finish()), Blame::Integrity, "byte {at}");
        assert!(preparation.generation().is_err());
    }
}

pub fn damaged_hints_and_checkpoints_are_refused_at_every_length<S: Hinted>() {
    let mut world = World::<S>::new(60, 3);
    let mut preparation = world.preparation();
    let begun = preparation.checkpoint();
    world.feed(&mut preparation, 100);
    let amid = preparation.checkpoint();
    while preparation.next_offset() < world.offline_len() {
        world.feed(&mut preparation, 50);
    }
    let complete = preparation.checkpoint();
    let generation = world.prepared(&mut preparation, 50);
    let load = |bytes: &[u8]| world.try_load(bytes).map(|_| ());
    let resume = |bytes: &[u8]| world.resume(bytes).map(|_| ());
    for (bytes, read) in [
        (&generation, &load as &dyn Fn(&[u8]) -> Result<()>),
        (&begun, &resume),
        (&amid, &resume),
        (&complete, &resume),
    ] {
        read(bytes).unwrap();
        let corrupted = |bytes: &[u8], what: &str| {
            assert_eq!(read(bytes).expect_err(what).blame(), Blame::Corrupted, "{what}");
        };
        // The beginning of a checkpoint may be an earlier, valid checkpoint.
        for len in (0..bytes.len()).filter(|len| bytes[..*len] != begun[..]) {
            corrupted(&bytes[..len], &format!("the first {len} of {} bytes", bytes.len()));
        }
        corrupted(&[&bytes[..], &[0]].concat(), "a byte more");
    }
    let mut other_version = generation.to_vec();
    other_version[0] += 1;
    assert_eq!(load(&other_version).unwrap_err().blame(), Blame::Corrupted);
}

pub fn every_arm_prepares_the_same_hints<S: Hinted>() {
    let world = World::<S>::new(3_000, 17);
    let prepared = Arm::available().into_iter().map(|arm| {
        let kernels = Kernels::with_arm(arm).unwrap();
        world.prepared(&mut world.preparation_with([5; 32], kernels), 1 << 20)
    });
    let prepared: Vec<_> = prepared.collect();
    assert!(prepared.windows(2).all(|pair| pair[0] == pair[1]));
}

fn piece_of(len: u64) -> usize {
    len as usize / 13 + 1
}
