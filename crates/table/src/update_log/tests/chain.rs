use super::*;
use privet_core::{Blame, TableChanges};

fn refused(chain: &Chain, bytes: &[u8]) -> (Blame, String) {
    let mut tried = chain.clone();
    let error = tried.follow(bytes).expect_err("what does not follow is refused");
    assert_eq!(&tried, chain, "it stays where it was");
    (error.blame(), error.message().to_owned())
}

fn assert_refused(chain: &Chain, bytes: &[u8], how: &str) {
    let (blame, message) = refused(chain, bytes);
    assert_eq!(blame, Blame::Integrity, "{message}");
    assert!(message.contains(how), "{message}");
}

proptest! {
    /// Records, differences and operations all give the same as the plain vector, and the chain
    /// ends at its identity.
    #[test]
    fn every_history_is_followed(records in 1..20u64, batches in batches(6)) {
        let mut model = Model::new(records);
        let mut chain = model.chain();
        let first = model.clone();
        let mut changes = TableChanges::none(first.shape());
        let mut by_digest =
            Chain::knowing_digest(chain.identity(), chain.layout_digest(), chain.publisher(), chain.previous());
        for batch in batches {
            let before = model.clone();
            let operations = batch.operations(model.shape().records());
            let other = batch.layout.map(layout).filter(|layout| *layout != model.layout);
            let layout_changes = other.is_some();
            let bytes = model.next(&operations, other);
            if model.records == before.records && !layout_changes {
                prop_assert_eq!(refused(&chain, &bytes).0, Blame::InvalidMessage);
                model = before;
                continue;
            }
            let update = chain.follow(&bytes).expect("the next epoch");
            let changed = &update.changes;
            changes.then(changed.clone()).expect("it fits");
            by_digest.follow(&bytes).expect("the same without the layout");
            prop_assert_eq!(by_digest.identity(), chain.identity());
            prop_assert_eq!(by_digest.layout_digest(), chain.layout_digest());
            prop_assert_eq!(update.after, model.identity());
            prop_assert_eq!(chain.identity(), model.identity());
            prop_assert_eq!(chain.layout(), Some(&model.layout));
            prop_assert_eq!(update.layout.is_some(), layout_changes);
            prop_assert_eq!(update.hash, model.previous);

            let mut records = before.records.clone();
            apply(&update, &mut records);
            prop_assert_eq!(&records, &model.records);

            let delta = changed.delta();
            prop_assert_eq!((delta.shape(), delta.shape_after()), (before.shape(), model.shape()));
            let mut records = before.records.clone();
            records.resize(model.records.len(), 0);
            for (index, difference) in delta.edits() {
                let start = (index * RECORD_LEN) as usize;
                records[start..].iter_mut().zip(difference).for_each(|(byte, by)| *byte ^= by);
            }
            prop_assert_eq!(&records, &model.records);

            prop_assert_eq!((changed.shape(), changed.shape_after()), (before.shape(), model.shape()));
            let written: Vec<_> = changed.records().map(|(index, _, new)| (index, new.to_vec())).collect();
            let update = before.update(&operations);
            let mut others = update.written().clone();
            others.retain(|index, new| {
                let start = (index * RECORD_LEN) as usize;
                before.records.get(start..start + RECORD_LEN as usize) != Some(new)
            });
            prop_assert_eq!(written, others.into_iter().collect::<Vec<_>>());
            for (index, old, new) in changed.records() {
                let start = (index * RECORD_LEN) as usize;
                let known = before.records.get(start..start + RECORD_LEN as usize);
                prop_assert_eq!(known.unwrap_or(&[0; RECORD_LEN as usize]), old);
                prop_assert!(known != Some(new));
            }
        }
        let mut records = first.records;
        records.resize(model.records.len(), 0);
        for (index, old, new) in changes.records() {
            let start = (index * RECORD_LEN) as usize;
            prop_assert_eq!(&records[start..start + RECORD_LEN as usize], old);
            records[start..start + RECORD_LEN as usize].copy_from_slice(new);
        }
        prop_assert_eq!(records, model.records);
    }
}

#[test]
fn what_does_not_follow_is_refused_by_its_name() {
    let start = Model::new(5);
    let mut model = start.clone();
    let first = model.next(&[edit(2, 0xaa), add(1)], None);
    let at_first = model.clone();
    let second = model.next(&[edit(0, 0xbb)], None);
    let third = model.next(&[edit(0, 0xcc)], None);

    assert_refused(&start.chain(), &second, "(a gap)");
    assert_refused(&start.chain(), &third, "(a gap)");
    let mut chain = start.chain();
    chain.follow(&first).expect("next");
    assert_refused(&chain, &first, "(a rollback)");
    chain.follow(&second).expect("next");
    assert_refused(&chain, &first, "(a rollback)");
    chain.follow(&third).expect("next");

    let other_table = Model { id: TableId([8; 16]), ..start.clone() };
    assert_refused(&other_table.chain(), &first, "serves another table");

    let mut other_publisher = Model { publisher: 2, ..start.clone() };
    let signed_by_another = other_publisher.next(&[edit(2, 0xaa), add(1)], None);
    assert_refused(&start.chain(), &signed_by_another, "the signature of epoch 4");
    // One byte of the signature is changed; everything else is what the publisher signed.
    let mut wrong_signature = first.clone();
    *wrong_signature.last_mut().unwrap() ^= 1;
    assert_refused(&start.chain(), &wrong_signature, "the signature of epoch 4");

    // The publisher itself continues from epoch 4 in two ways. The hash of the previous epoch
    // reveals that, or its digest, or both.
    let mut fork = start.clone();
    fork.next(&[edit(2, 0xaa), add(2)], None);
    let forked = fork.next(&[edit(0, 0xbb)], None);
    assert_refused(&at_first.chain(), &forked, "(a fork)");
    let mut same_digest = Model { previous: EpochHash([9; 32]), ..at_first.clone() };
    assert_refused(&at_first.chain(), &same_digest.next(&[edit(0, 1)], None), "(a fork)");
    let mut same_hash = Model { previous: at_first.previous, ..fork };
    same_hash.epoch = at_first.epoch;
    assert_refused(&at_first.chain(), &same_hash.next(&[edit(0, 1)], None), "(a fork)");
}

#[test]
fn who_does_not_know_the_hash_of_the_last_epoch_can_begin_anywhere() {
    let mut model = Model::new(5);
    model.next(&[edit(2, 0xaa)], None);
    let publisher = key(1).id();
    let begin = |model: &Model| {
        Chain::new(model.identity(), model.layout.clone(), publisher, None).expect("valid")
    };
    let mut chain = begin(&model);
    assert_eq!(chain.previous(), None);
    let mut other = model.clone();
    other.records[0] ^= 1;
    let (next, other_next) = (model.next(&[edit(0, 1)], None), other.next(&[edit(0, 1)], None));
    // The digest before is enough to find it.
    assert_refused(&chain, &other_next, "(a fork)");
    chain.follow(&next).expect("next");
    assert_eq!(chain.previous(), Some(model.previous));
    assert_eq!(chain, model.chain());
}

#[test]
fn every_altered_byte_is_refused() {
    let start = Model::new(300);
    let operations = [edit(2, 0xaa), edit(200, 0xbb), add(1)];
    let bytes = start.clone().next(&operations, Some(layout(1)));
    start.chain().follow(&bytes).expect("unaltered");
    for position in 0..bytes.len() {
        for by in [1, 0x80, 0xff] {
            let mut altered = bytes.clone();
            altered[position] ^= by;
            refused(&start.chain(), &altered);
        }
        refused(&start.chain(), &bytes[..position]);
    }
    refused(&start.chain(), &[&bytes[..], &[0]].concat());
}

#[test]
fn a_layout_has_to_be_another_one_that_fits() {
    let start = Model::new(5);
    let same = start.clone().next(&[edit(0, 1)], Some(layout(0)));
    let (blame, message) = refused(&start.chain(), &same);
    assert_eq!(blame, Blame::InvalidMessage);
    assert!(message.contains("stays the same"), "{message}");

    // Records of 6 bytes with paths of 96 bytes: none.
    let authentication = crate::authentication::Authentication([1; 32]);
    let within = layout(0).records().clone();
    let authenticated = TableLayout::authenticated(authentication, within);
    let too_narrow = start.clone().next(&[], Some(authenticated));
    let (blame, message) = refused(&start.chain(), &too_narrow);
    assert_eq!(blame, Blame::InvalidMessage);
    assert!(message.contains("no room for a path"), "{message}");
}

#[test]
fn a_thousand_edits_of_32_bytes_take_less_than_80_kilobytes() {
    let records = 1u64 << 24;
    let shape = TableShape::new(records, 32).expect("a shape");
    let before = TableIdentity { shape, ..Model::new(1).identity() };
    let edits = (0..1000).map(|number| (number * 16_777, vec![1; 32], vec![2; 32]));
    let bytes = Draft {
        before,
        previous: EpochHash::NONE,
        epoch: Epoch(4),
        records_digest: [0; 32],
        layout: None,
        changes: &TableChanges::new(shape, shape, edits).expect("fitting"),
    }
    .sign(&key(1));
    assert!(bytes.len() < 68_000, "{} bytes", bytes.len());
}
