//! Edits, growth, interruptions, and bytes that are not an update.

use super::*;
use crate::Blame;
use crate::commit::Changed;

/// Edits some records, in any order and with repeats, lets the table grow to `records`, and returns
/// what clients are told.
fn update(world: &mut World, records: u64, edits: &[u64]) -> (Vectors, Vec<u8>) {
    let before = world.merkle.vectors;
    let len = before.record_len();
    let shape = TableShape::new(records, len as u64).unwrap();
    let after = Vectors::new(shape, before.vector_len(), before.count()).unwrap();
    let mut table = world.table.clone();
    table.resize(after.padded_bytes() as usize, 0);
    let appended = before.shape().records()..records;
    let indices: Vec<u64> = edits.iter().copied().chain(appended).collect();
    for (k, &index) in indices.iter().enumerate() {
        let record = &mut table[index as usize * len..][..len];
        blake3::Hasher::new().update(&[k as u8]).finalize_xof().fill(record);
    }
    let old = |index: u64| world.table.get(index as usize * len..index as usize * len + len);
    let zeros = vec![0; len];
    let changed: Vec<Changed<'_>> = indices
        .iter()
        .map(|&index| Changed { index, before: old(index).unwrap_or(&zeros) })
        .collect();
    let told = world.prover.update(after, &table, &changed).unwrap();
    world.table = table;
    world.merkle = world.merkle.grown(after).unwrap();
    (after, told)
}

fn check_rebuilt(world: &World, kernels: Kernels) {
    let rebuilt = world.merkle.prover(&world.table, &[], kernels).unwrap();
    assert!(*world.prover.nodes == *rebuilt.nodes, "{:?}", world.merkle);
    let fresh = gathered(&world.merkle, &world.table, kernels);
    assert!(world.verifier.cap == fresh.cap, "{:?}", world.merkle);
    let answer = world.answer(world.offsets(9));
    assert_eq!(world.verify([&answer, &answer]), Ok(()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn an_updated_tree_is_a_rebuilt_one(
        records in 1u64..300, vector_len in 1u32..40, caps in 0u8..7, at_least in 0u32..4,
        edits in proptest::collection::vec(any::<u64>(), 0..200), growth in prop_oneof![Just(0), 0u64..200],
    ) {
        let cap_levels = caps % (depth(vector_len.into()) as u8 + 1);
        for kernels in all_kernels() {
            let mut world = World::new(cut(records, 6, vector_len, at_least, cap_levels), kernels);
            let edits: Vec<u64> = edits.iter().map(|edit| edit % records).collect();
            let (after, told) = update(&mut world, records + growth, &edits);
            let before = encoded(&world.verifier);
            world.verifier.update(after, &told).unwrap();
            check_rebuilt(&world, kernels);
            // Clients are told no more than needed: nothing without edits and growth.
            assert_eq!(told.is_empty(), edits.is_empty() && growth == 0);
            assert!(!told.is_empty() || before == encoded(&world.verifier));
        }
    }
}

/// Edits of the same records in another order, with repetitions, give the same announcement.
#[test]
fn what_clients_are_told_is_canonical() {
    let kernels = Kernels::detect();
    let merkle = cut(100, 4, 9, 0, 1);
    let table = table(&merkle, "another table");
    let told = [&[80, 3, 99, 44][..], &[3, 44, 80, 99], &[99, 99, 3, 80, 44, 3]].map(|edits| {
        let mut prover = World::new(merkle, kernels).prover;
        let changed: Vec<Changed<'_>> =
            edits.iter().map(|&index| Changed { index, before: &[0; 4] }).collect();
        prover.update(merkle.vectors, &table, &changed).unwrap()
    });
    assert_eq!(told[0].len(), 4 * 40);
    assert!(told.iter().all(|other| *other == told[0]));
}

#[test]
fn hostile_updates_change_nothing() {
    for cap_levels in 0..=3 {
        let kernels = Kernels::detect();
        let mut world = World::new(cut(40, 6, 8, 0, cap_levels), kernels);
        let stale = encoded(&world.verifier);
        let (after, told) = update(&mut world, 53, &[1, 17, 30]);
        let swapped = |a: usize, b: usize| {
            let mut bytes = told.clone();
            let (left, right) = bytes.split_at_mut(b * 40);
            left[a * 40..][..40].swap_with_slice(&mut right[..40]);
            bytes
        };
        let with = |at: usize, byte: u8| {
            let mut bytes = told.clone();
            bytes[at] = byte;
            bytes
        };
        let last = told.len() - 40;
        let hostile = [
            told[..told.len() - 1].to_vec(),
            told[..told.len() - 40].to_vec(),
            [&told[..], &[0]].concat(),
            [&told[..], &told[..40]].concat(),
            [&told[..40], &told[..]].concat(),
            [&told[..last], &told[last - 40..last]].concat(),
            swapped(0, 1),
            swapped(0, last / 40),
            with(last, after.count() as u8),
            with(last + 3, 1),
            with(last + 4, world.merkle.cap_width() as u8),
            with(last + 7, 1),
            Vec::new(),
        ];
        for bytes in hostile {
            let error = world.verifier.update(after, &bytes).unwrap_err();
            assert_eq!(error.blame(), Blame::PeerMisbehaved);
            assert_eq!(encoded(&world.verifier), stale);
        }
        // Every other byte belongs to a hash, or names another old node. If it is changed, the next
        // answers are rejected.
        world.verifier.update(after, &with(told.len() - 1, !told[told.len() - 1])).unwrap();
        let offsets = vec![7; after.count() as usize];
        let answer = world.answer(offsets);
        assert_eq!(world.verify([&answer, &answer]), Err([true, true]));
        world.verifier.update(after, &told[..0]).unwrap();
    }
}

#[test]
fn tables_change_in_the_number_of_records_alone() {
    let kernels = Kernels::detect();
    let mut world = World::new(cut(40, 6, 8, 0, 1), kernels);
    let others = [cut(39, 6, 8, 0, 1), cut(40, 5, 8, 0, 1), cut(40, 6, 7, 0, 1)];
    let vectors = others.map(|other| other.vectors);
    for after in vectors {
        let blames = [
            world.merkle.grown(after).unwrap_err().blame(),
            world.verifier.update(after, &[]).unwrap_err().blame(),
            world.prover.update(after, &world.table, &[]).unwrap_err().blame(),
        ];
        assert_eq!(blames, [Blame::ApiMisuse; 3]);
    }
    let same = world.merkle.vectors;
    let beyond = [Changed { index: 40, before: &[0; 6] }];
    assert_eq!(
        world.prover.update(same, &world.table, &beyond).unwrap_err().blame(),
        Blame::ApiMisuse
    );
    assert_eq!(
        world.prover.update(same, &world.table[1..], &[]).unwrap_err().blame(),
        Blame::ApiMisuse
    );
    check_rebuilt(&world, kernels);
}

#[test]
fn a_cap_in_the_making_goes_on_after_every_vector() {
    for (merkle, kernels) in [cut(50, 6, 8, 0, 0), cut(50, 6, 7, 9, 2), cut(50, 6, 8, 0, 3)]
        .into_iter()
        .flat_map(|merkle| all_kernels().map(move |kernels| (merkle, kernels)))
    {
        let world = World::new(merkle, kernels);
        let mut gathering = merkle.gathering(kernels).unwrap();
        for number in 0..=merkle.vectors.count() {
            let mut state = Vec::new();
            gathering.encode(&mut state);
            gathering = merkle.resume_gathering(&state, kernels).unwrap();
            let damaged = [
                state[..state.len() - 1].to_vec(),
                [&state[..], &[0]].concat(),
                [&[255; 4], &state[4..]].concat(),
                [&[state[0] + 1], &state[1..]].concat(),
            ];
            for bytes in &damaged {
                let error = merkle.resume_gathering(bytes, kernels).err().unwrap();
                assert_eq!(error.blame(), Blame::Corrupted);
            }
            if number < merkle.vectors.count() {
                let unfinished = merkle.resume_gathering(&state, kernels).unwrap();
                assert_eq!(unfinished.finish(&[]).err().unwrap().blame(), Blame::ApiMisuse);
                gathering.absorb(number, merkle.records(&world.table, number));
            }
        }
        assert_eq!(encoded(&gathering.finish(&[]).unwrap()), encoded(&world.verifier));
    }
}

#[test]
fn what_is_not_prescribed_is_refused() {
    let (merkle, kernels) = (cut(50, 6, 8, 0, 1), Kernels::detect());
    let world = World::new(merkle, kernels);
    let bytes = encoded(&world.verifier);
    for bytes in [&bytes[1..], &[&bytes[..], &[0]].concat(), &[]] {
        assert_eq!(merkle.read_verifier(bytes, kernels).err().unwrap().blame(), Blame::Corrupted);
    }
    assert_eq!(merkle.prover(&world.table, &[0], kernels).err().unwrap().blame(), Blame::Corrupted);
    assert_eq!(
        merkle.prover(&world.table[1..], &[], kernels).err().unwrap().blame(),
        Blame::ApiMisuse
    );
    assert!(merkle.precompute(&world.table, kernels, &|_| {}).unwrap().is_empty());
    let mut gathering = merkle.gathering(kernels).unwrap();
    for number in 0..merkle.vectors.count() {
        gathering.absorb(number, merkle.records(&world.table, number));
    }
    assert_eq!(gathering.finish(&[0]).err().unwrap().blame(), Blame::PeerMisbehaved);
}
