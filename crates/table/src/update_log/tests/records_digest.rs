use super::*;

/// The bytes of a group, from which inner values are kept.
const GROUP: usize = 16 << 10;

fn bytes(len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    blake3::Hasher::new().finalize_xof().fill(&mut out);
    out
}

/// A chunk and a group less one, exactly, and one more; then trees of one to nine groups, so that
/// odd last subtrees occur on every level.
#[test]
fn the_digest_is_that_of_blake3_at_every_edge() {
    let groups =
        (1..10).flat_map(|groups| [-1, 0, 1].map(|by| (groups * GROUP as i64 + by) as usize));
    for len in [1, 2, 1023, 1024, 1025].into_iter().chain(groups) {
        let bytes = bytes(len);
        let digest = RecordsDigest::of(&bytes[..]);
        assert_eq!(digest.get(), *blake3::hash(&bytes).as_bytes(), "{len} bytes");
    }
}

/// Whole groups stay as they are when others follow, and yet get new parents: of more levels, and
/// in other pairs.
#[test]
fn whole_groups_are_joined_by_others() {
    let all = bytes(9 * GROUP);
    for before in 1..9 {
        for after in before + 1..=9 {
            let mut digest = RecordsDigest::of(&all[..before * GROUP]);
            let now = &all[..after * GROUP];
            digest.update(now, []);
            assert_eq!(digest.get(), *blake3::hash(now).as_bytes(), "{before} to {after} groups");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_digest_follows_every_change(
        len in 1..9 * GROUP,
        steps in prop::collection::vec(
            (prop::collection::vec((any::<prop::sample::Index>(), 1..GROUP), 0..4), 0..5 * GROUP),
            1..6,
        ),
    ) {
        let mut now = bytes(len);
        let mut digest = RecordsDigest::of(&now[..]);
        for (step, (changes, grows_by)) in (1..).zip(steps) {
            let mut changed = Vec::new();
            for (at, len) in changes {
                let start = at.index(now.len());
                let end = now.len().min(start + len);
                now[start..end].fill(step);
                changed.push(start as u64..end as u64);
            }
            now.extend(std::iter::repeat_n(step, grows_by));
            digest.update(&now[..], changed);
            prop_assert_eq!(digest.get(), *blake3::hash(&now).as_bytes());
        }
    }
}

#[test]
#[should_panic(expected = "never loses records")]
fn a_table_that_shrinks_is_refused() {
    let bytes = bytes(100);
    RecordsDigest::of(&bytes[..]).update(&bytes[..99], []);
}
