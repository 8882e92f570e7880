//! Every scheme goes through versions of a table.

mod rehearsals;

use super::*;
use crate::SchemeId;
use crate::conformance::versions::{
    Client, Version, a_scheme_that_asks_is_rehearsed,
    no_coins_of_a_lookup_can_be_computed_afterwards, options,
    successors_are_of_the_same_scheme_and_of_the_changed_table, through_versions,
};
use crate::registry::{PARTITION_RECORDS, setup, setup_as};
use crate::simplepir_packed::MASKS_ON_DEMAND;
use crate::test_tables::identity;
use privet_core::{Blame, Epoch, SecretRng, TableDelta, TableId, TableView};
use proptest::prelude::*;

/// Whether a scheme's servers make successors, and so must do so here.
fn has_successors(scheme: SchemeId) -> bool {
    matches!(scheme, SchemeId::TapirMerkle | SchemeId::Download | SchemeId::SimplePirPacked)
}

fn tuning(partition_records: Option<u64>) -> Tuning {
    Tuning::default().with_some(&PARTITION_RECORDS, partition_records)
}

fn through(scheme: SchemeId, shape: (u64, u64), tuning: &Tuning, history: &[(u64, u64)]) {
    through_versions(scheme, shape, tuning, history, has_successors(scheme));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn every_scheme_goes_through_versions(
        records in 1u64..150,
        record_len in 1u64..9,
        cut in any::<bool>(),
        history in prop::collection::vec((0u64..9, 0u64..12), 1..4),
    ) {
        for scheme in SchemeId::all() {
            let cuts = plan(scheme, &identity(records, record_len), &tuning(Some(8)));
            let tuning = tuning((cut && cuts.is_ok()).then_some(8));
            through(scheme, (records, record_len), &tuning, &history);
        }
    }

    /// Long records lie in several pieces.
    #[test]
    fn what_was_downloaded_is_patched_across_pieces(
        records in 1u64..12,
        record_len in 200u64..900,
        history in prop::collection::vec((0u64..4, 0u64..3), 1..4),
    ) {
        let tuning = Tuning::default();
        through(SchemeId::SimplePir, (records, record_len), &tuning, &history);
        through(SchemeId::Download, (records, 1000 * record_len), &tuning, &history);
    }
}

#[test]
fn the_coins_of_a_lookup_cannot_be_computed_afterwards() {
    for scheme in SchemeId::all() {
        no_coins_of_a_lookup_can_be_computed_afterwards(scheme, &tuning(None));
    }
}

/// With edits, and with enough more records for another column.
#[test]
fn masks_on_demand_go_through_versions() {
    let scheme = SchemeId::SimplePirPacked;
    let tuning = tuning(None).with_flag(&MASKS_ON_DEMAND, true);
    through(scheme, (60, 9), &tuning, &[(3, 0), (1, 70)]);
    // And no other scheme has them.
    for other in SchemeId::all().filter(|other| *other != scheme) {
        let refused = plan(other, &identity(60, 9), &tuning).err().unwrap();
        assert_eq!(refused.blame(), Blame::ApiMisuse, "{other}");
        assert!(refused.message().contains("masks-on-demand"), "{refused}");
    }
}

/// Schemes whose partitions have room for more records: a table of 61 in partitions of 8.
const WITH_ROOM: [SchemeId; 3] =
    [SchemeId::DummySubsets, SchemeId::DummySubsetsTwo, SchemeId::SinglePass];

#[test]
fn hints_follow_growth_that_the_last_partition_has_room_for() {
    for scheme in WITH_ROOM {
        let tuning = tuning(Some(8));
        let mut rng = SecretRng::from_fixed_seed([8; 32]);
        let version = Version::first(scheme, 61, 3, &tuning);
        for (more, follows) in [(0, true), (3, true), (4, false)] {
            let (next, changes) = version.changed(5, more, &tuning, &mut rng);
            let mut client = Client::of(&version);
            assert_eq!(client.follow(&version, &next, &changes, Vec::new()), follows, "{scheme}");
            for index in 0..next.identity.shape.records() {
                client.check(&next, &[&*next.server], index);
            }
        }
    }
    for (scheme, partition) in [
        (SchemeId::Piano, Some(8)),
        (SchemeId::PianoAllParities, Some(8)),
        (SchemeId::Harmony, None),
    ] {
        let tuning = tuning(partition);
        let mut rng = SecretRng::from_fixed_seed([8; 32]);
        let version = Version::first(scheme, 61, 3, &tuning);
        let (next, changes) = version.changed(0, 1, &tuning, &mut rng);
        let mut client = Client::of(&version);
        assert!(!client.follow(&version, &next, &changes, Vec::new()), "{scheme}");
    }
}

#[test]
fn edits_in_the_journal_follow_each_other() {
    for scheme in WITH_ROOM {
        let tuning = tuning(Some(8));
        let mut rng = SecretRng::from_fixed_seed([9; 32]);
        let first = Version::first(scheme, 60, 3, &tuning);
        let (second, changes) = first.changed(3, 1, &tuning, &mut rng);
        let (third, more_changes) = second.changed(3, 1, &tuning, &mut rng);
        let mut client = Client::of(&first);
        client.follow(&first, &second, &changes, Vec::new());
        client.follow(&second, &third, &more_changes, Vec::new());
        let [one, two] = &client.journal[..] else { panic!("two steps were taken") };

        let mut again = Client::loaded(client.begun.as_ref().unwrap());
        let hints = again.hints().unwrap();
        let refused =
            |result: Result<()>| assert_eq!(result.unwrap_err().blame(), Blame::Corrupted);
        refused(hints.apply(two));
        hints.apply(one).unwrap();
        refused(hints.apply(one));
        assert_eq!(hints.table(), second.identity);
        for cut in 1..two.len() {
            refused(hints.apply(&two[..cut]));
        }
        // Where it begins.
        for at in 1..41 {
            let mut other = two.clone();
            other[at] ^= 0x80;
            refused(hints.apply(&other));
        }
        hints.apply(two).unwrap();
        assert_eq!(hints.table(), third.identity);
    }
}

#[test]
fn edits_that_do_not_begin_where_hints_stand_are_refused() {
    let tuning = tuning(Some(8));
    let mut rng = SecretRng::from_fixed_seed([9; 32]);
    let version = Version::first(SchemeId::DummySubsets, 60, 3, &tuning);
    let (next, changes) = version.changed(3, 1, &tuning, &mut rng);
    let mut client = Client::of(&version);
    let hints = client.client.hints().unwrap();
    let deltas = [changes.delta()];
    let (before, after) = (version.identity, next.identity);
    let mut others = Vec::new();
    for wrong in [
        TableIdentity { epoch: Epoch(1), ..before },
        TableIdentity { digest: after.digest, ..before },
        TableIdentity { id: TableId([1; 16]), ..before },
        TableIdentity { shape: after.shape, ..before },
    ] {
        others.push((wrong, after, &deltas));
    }
    let of_other_shape = [TableDelta::new(before.shape, Vec::new()).unwrap()];
    for wrong in [
        TableIdentity { epoch: before.epoch, ..after },
        TableIdentity { id: TableId([1; 16]), ..after },
    ] {
        others.push((before, wrong, &deltas));
    }
    others.push((before, after, &of_other_shape));
    for (before, after, deltas) in others {
        let refused = hints.apply_deltas(&before, &after, deltas).err().unwrap();
        assert_eq!(refused.blame(), Blame::ApiMisuse);
        assert_eq!(hints.table(), version.identity);
    }
    hints.apply_deltas(&before, &after, &deltas).unwrap();
}

#[test]
fn parts_that_cannot_be_patched_are_refused() {
    let nothing = TableChanges::none(identity(1000, 4).shape);
    let refusal = |before: (&SchemePlan, &TableIdentity),
                   after: (&SchemePlan, &TableIdentity),
                   part: Vec<u8>| {
        let mut sink = |_: &[u8]| Ok(());
        patch_downloaded(before, after, &nothing, &part, &mut sink, Kernels::detect())
            .unwrap_err()
            .blame()
    };
    let identity = identity(1000, 4);
    let planned = |scheme| plan(scheme, &identity, &Tuning::default()).unwrap();
    for scheme in [SchemeId::DoublePir, SchemeId::ApirMatrix, SchemeId::Dpf, SchemeId::Piano] {
        let plan = planned(scheme);
        let ends = (&plan, &identity);
        assert!(!patches_downloads(ends, ends));
        assert_eq!(refusal(ends, ends, Vec::new()), Blame::ApiMisuse, "{scheme}");
    }
    // Another cut.
    let before = planned(SchemeId::SimplePir);
    let fewer =
        SchemePlan::from_announcement(SchemeId::SimplePir, &identity, &1u64.to_le_bytes()).unwrap();
    let (ends, others) = ((&before, &identity), (&fewer, &identity));
    assert!(patches_downloads(ends, ends) && !patches_downloads(ends, others));
    assert_eq!(refusal(ends, others, Vec::new()), Blame::ApiMisuse);
    // Another length, and another table.
    assert_eq!(refusal(ends, ends, vec![0; 4096]), Blame::Corrupted);
    let other = TableIdentity { id: TableId([1; 16]), ..identity };
    assert!(!patches_downloads(ends, (&before, &other)));
    let download = planned(SchemeId::Download);
    assert_eq!(
        refusal((&download, &identity), (&download, &identity), vec![0; 3]),
        Blame::Corrupted
    );
}

#[test]
fn a_plan_stays_as_long_as_it_suits() {
    let small = identity(1000, 4);
    for scheme in SchemeId::all() {
        let tuning = Tuning::default();
        let before = plan(scheme, &small, &tuning).unwrap();
        let grown = identity(1001, 4);
        let next = plan_next(&before, &grown, &tuning).unwrap();
        assert_eq!(next.parameters, before.parameters, "{scheme}");
    }
    let tuning = Tuning::default();
    // A server that starts with it has the same.
    let before = plan(SchemeId::SimplePir, &small, &tuning).unwrap();
    let other = identity(2000, 4);
    let next = plan_next(&before, &other, &tuning).unwrap();
    assert_ne!(next, plan(SchemeId::SimplePir, &other, &tuning).unwrap());
    let records = vec![0; 8000];
    let view = TableView::new(other, &records).unwrap();
    let started = setup_as(next.clone(), view, &tuning, options()).unwrap();
    assert_eq!(started.plan(), &next);
    assert_ne!(setup(SchemeId::SimplePir, view, &tuning, options()).unwrap().plan(), &next);
}

#[test]
fn a_successor_is_of_the_same_scheme_and_of_the_changed_table() {
    for scheme in [SchemeId::TapirMerkle, SchemeId::Dpf] {
        successors_are_of_the_same_scheme_and_of_the_changed_table(scheme, has_successors(scheme));
    }
}
