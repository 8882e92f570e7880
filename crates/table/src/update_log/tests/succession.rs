//! Successions and lineages: who has to sign, what may follow, and what a thief can do.

use super::*;
use crate::update_log::lineage::MAX_RECORDS;
use crate::update_log::succession::SuccessionDraft;
use privet_core::{Blame, Result};

fn next_key(number: u8) -> NextKeyDigest {
    key(number).id().as_next_key()
}

fn keys(publisher: u8, next: impl Into<Option<u8>>) -> TableKeys {
    TableKeys { publisher: key(publisher).id(), next: next.into().map(next_key) }
}

/// The position of a model's table under these keys.
fn at(model: &Model, keys: TableKeys) -> Chain {
    model.chain_under(keys)
}

/// Another table, with the id of these bytes, at its begin.
fn other(id: u8) -> Model {
    let mut model = Model { id: TableId([id; 16]), epoch: 0, ..Model::new(3) };
    model.records[0] = id;
    model
}

fn parts(model: &Model) -> DigestParts {
    DigestParts {
        layout: layout_digest(&model.layout.encode()),
        records: *blake3::hash(&model.records).as_bytes(),
    }
}

/// The succession of the table at `end` by `new`, under `keys`, signed by these.
fn signed(
    end: &Chain,
    new: &Model,
    keys: TableKeys,
    (publisher, next): (Option<u8>, Option<u8>),
) -> Succession {
    let draft = SuccessionDraft { end, id: new.id, shape: new.shape(), parts: parts(new), keys };
    let (publisher, next) = (publisher.map(key), next.map(key));
    draft.sign(publisher.as_ref(), next.as_ref()).expect("there is such a record")
}

fn lineage(records: impl IntoIterator<Item = Succession>) -> Result<Lineage> {
    let mut lineage = Lineage::default();
    for record in records {
        lineage.push(record)?;
    }
    assert_eq!(Lineage::decode(&lineage.encode()).expect("what was written is read"), lineage);
    Ok(lineage)
}

fn walk(record: &Succession, from: &Chain) -> Result<Walk> {
    let walk = lineage([record.clone()])?.walk(from, &[])?;
    Ok(walk.expect("it is of this table"))
}

fn refused(record: &Succession, from: &Chain, how: &str) {
    let error = walk(record, from).expect_err(how);
    assert_eq!(error.blame(), Blame::Integrity, "{error}");
    assert!(error.message().contains(how), "{how}: {error}");
}

/// A table at version 5, its positions at versions 3 to 5, and its successor.
fn history(keys: TableKeys) -> ([Chain; 3], Model) {
    let mut model = Model::new(5);
    let first = at(&model, keys);
    model.next(&[edit(0, 1)], None);
    let second = at(&model, keys);
    model.next(&[edit(1, 1)], None);
    ([first, second, at(&model, keys)], other(8))
}

#[test]
fn whoever_has_an_earlier_pin_is_led_to_the_successor() {
    for (before, after, signers) in [
        (keys(1, None), keys(1, None), (Some(1), None)),
        (keys(1, None), keys(2, 3), (Some(1), None)),
        (keys(1, 2), keys(2, None), (Some(1), Some(2))),
        (keys(1, 2), keys(2, 3), (Some(1), Some(2))),
    ] {
        let (positions, new) = history(before);
        let record = signed(&positions[2], &new, after, signers);
        assert!(record.as_bytes().len() <= MAX_SUCCESSION_LEN);
        for from in &positions {
            let walk = walk(&record, from).expect("it is signed as it has to be");
            assert_eq!(walk.end.identity(), new.identity());
            assert_eq!(walk.end.keys(), after);
            assert_eq!(walk.end.layout_digest(), parts(&new).layout);
            assert_eq!(walk.left, [Left { id: TableId([7; 16]), by: record.hash() }]);
        }
        // It goes on from there.
        let mut next =
            Model { publisher: if after == keys(1, None) { 1 } else { 2 }, ..new.clone() };
        let epoch = next.next(&[edit(0, 1)], None);
        walk(&record, &positions[0])
            .expect("as before")
            .end
            .follow(&epoch)
            .expect("the first epoch");
    }
}

#[test]
fn a_thief_of_the_publishers_key_moves_nobody_who_knows_of_a_next_key() {
    let ([from, ..], new) = history(keys(1, 2));
    let thiefs = keys(6, None);
    refused(
        &signed(&from, &new, thiefs, (Some(1), None)),
        &from,
        "not signed by the publisher's next",
    );
    // He knows the next key's public half, and names it without its signature.
    let unsigned = signed(&from, &new, keys(2, None), (Some(1), None));
    refused(&unsigned, &from, "not signed by the publisher's next");
    // He signs with a key of his own as if that were the next one.
    refused(
        &signed(&from, &new, thiefs, (Some(1), Some(6))),
        &from,
        "not signed by the publisher's next",
    );
    refused(&signed(&from, &new, keys(2, None), (Some(1), Some(6))), &from, "is wrong");
    refused(
        &signed(&from, &new, thiefs, (None, Some(6))),
        &from,
        "not signed by the publisher's next",
    );
    // The next key alone, without the publisher's, can only revoke.
    refused(&signed(&from, &new, keys(2, None), (Some(6), Some(2))), &from, "is wrong");
}

#[test]
fn without_a_next_key_a_thief_of_the_publishers_key_moves_every_client() {
    let ([from, ..], new) = history(keys(1, None));
    let record = signed(&from, &new, keys(6, None), (Some(1), None));
    assert_eq!(walk(&record, &from).expect("as documented").end.keys(), keys(6, None));
    // Nobody else does.
    refused(&signed(&from, &new, keys(6, None), (Some(6), None)), &from, "is wrong");
    refused(&signed(&from, &new, keys(6, None), (None, Some(6))), &from, "somebody revokes");
}

#[test]
fn a_succession_that_leaves_out_epochs_that_are_known_is_a_rollback() {
    let ([first, second, third], new) = history(keys(1, 2));
    let by_both = |end: &Chain| signed(end, &new, keys(2, None), (Some(1), Some(2)));
    refused(&by_both(&first), &second, "(a rollback)");
    refused(&by_both(&first), &third, "(a rollback)");
    walk(&by_both(&second), &second).expect("the last version is known");
}

#[test]
fn a_revocation_leads_back_from_void_epochs() {
    let ([first, second, third], new) = history(keys(1, 2));
    let record = signed(&first, &new, keys(2, 3), (None, Some(2)));
    assert!(record.revokes());
    for from in [&first, &second, &third] {
        assert_eq!(walk(&record, from).expect("it may").end.identity(), new.identity());
    }
    // A thief cannot revoke what he has not signed.
    refused(&signed(&first, &new, keys(6, None), (None, Some(6))), &third, "next key");
}

#[test]
fn a_succession_of_another_last_version_is_a_fork() {
    let ([_, _, last], new) = history(keys(1, 2));
    let mut fork = Model::new(5);
    fork.next(&[edit(0, 1)], None);
    fork.next(&[edit(1, 9)], None);
    let record = signed(&at(&fork, keys(1, 2)), &new, keys(2, None), (Some(1), Some(2)));
    refused(&record, &last, "(a fork)");
    // A thief may have signed the version that is known: who revokes leads back from that, too.
    let record = signed(&at(&fork, keys(1, 2)), &new, keys(2, None), (None, Some(2)));
    assert_eq!(walk(&record, &last).expect("it may").end.identity(), new.identity());
    // The hash alone differs.
    let mut by_hash = Model::new(5);
    by_hash.next(&[edit(0, 1)], None);
    by_hash.next(&[edit(1, 1)], None);
    by_hash.previous.0[0] ^= 1;
    let record = signed(&at(&by_hash, keys(1, 2)), &new, keys(2, None), (Some(1), Some(2)));
    refused(&record, &last, "(a fork)");
}

#[test]
fn every_altered_byte_of_a_succession_is_refused() {
    let (positions, new) = history(keys(1, 2));
    let record = signed(&positions[2], &new, keys(2, 3), (Some(1), Some(2)));
    let bytes = record.as_bytes();
    let tried = |bytes: &[u8]| {
        let record = Succession::decode(bytes)?;
        let lineage = lineage([record])?;
        Ok::<_, privet_core::Error>(lineage.walk(&positions[1], &[])?.is_some())
    };
    assert!(tried(bytes).expect("unaltered"));
    for position in 0..bytes.len() {
        for by in [1, 2, 4, 0x80, 0xff] {
            let mut altered = bytes.to_vec();
            altered[position] ^= by;
            // A succession of another table leads nowhere.
            assert!(!tried(&altered).unwrap_or(false), "byte {position} by {by}");
        }
        assert!(Succession::decode(&bytes[..position]).is_err());
    }
    assert!(Succession::decode(&[bytes, &[0]].concat()).is_err());
}

#[test]
fn what_cannot_be_signed_is_refused_by_its_name() {
    let ([from, ..], new) = history(keys(1, 2));
    let model = Model::new(5);
    let attempt = |id: TableId, parts: DigestParts, keys, signers: (Option<u8>, Option<u8>)| {
        let shape = if id == model.id { model.shape() } else { new.shape() };
        let draft = SuccessionDraft { end: &from, id, shape, parts, keys };
        let (publisher, next) = (signers.0.map(key), signers.1.map(key));
        let error = draft.sign(publisher.as_ref(), next.as_ref()).expect_err("impossible");
        assert_eq!(error.blame(), Blame::InvalidMessage);
        error.message().to_owned()
    };
    let cases = [
        (attempt(new.id, parts(&new), keys(2, None), (None, None)), "nobody can sign"),
        (attempt(new.id, parts(&new), keys(2, 2), (Some(1), Some(2))), "its own next key"),
        (attempt(model.id, parts(&model), keys(2, None), (None, Some(2))), "under the same id"),
        (attempt(model.id, parts(&new), keys(2, None), (Some(1), Some(2))), "the contents under"),
    ];
    for (message, how) in cases {
        assert!(message.contains(how), "{how}: {message}");
    }
}

#[test]
fn after_a_rotation_the_new_publisher_signs_and_the_old_one_no_longer() {
    let mut model = Model::new(5);
    let mut chain = at(&model, keys(1, 2));
    let rotation = signed(&chain, &model, keys(2, 3), (Some(1), Some(2)));
    assert!(rotation.is_rotation());
    let from = chain.clone();
    let update = chain.follow(rotation.as_bytes()).expect("the next epoch");
    assert!(update.changes.is_empty());
    // It is a version with the same contents.
    model.epoch += 1;
    model.previous = update.hash;
    assert_eq!(chain, at(&model, keys(2, 3)));

    let by_old = model.clone().next(&[edit(0, 1)], None);
    let error = chain.clone().follow(&by_old).expect_err("nothing may follow it");
    assert!(error.message().contains("the signature of epoch 5"), "{error}");
    let after = Model { publisher: 2, ..model.clone() }.next(&[edit(0, 1)], None);
    chain.follow(&after).expect("the next epoch");

    // Who is behind or has not followed it is refused nothing else than before.
    let error = from.clone().follow(&after).expect_err("a gap");
    assert!(error.message().contains("(a gap)"), "{error}");
    let error = chain.follow(rotation.as_bytes()).expect_err("it was followed");
    assert!(error.message().contains("(a rollback)"), "{error}");
}

#[test]
fn a_rotation_changes_keys() {
    let model = Model::new(5);
    let chain = at(&model, keys(1, None));
    let none = signed(&chain, &model, keys(1, None), (Some(1), None));
    let error = chain.clone().follow(none.as_bytes()).expect_err("nothing changes");
    assert!(error.message().contains("it changes no keys"), "{error}");
    // A next key can be named later.
    let names = signed(&chain, &model, keys(1, 2), (Some(1), None));
    let mut named = chain.clone();
    named.follow(names.as_bytes()).expect("the next epoch");
    assert_eq!(named.keys(), keys(1, 2));
    // A thief of the publisher's key names none once one is named.
    let mut after = model.clone();
    (after.epoch, after.previous) = (named.identity().epoch.0, names.hash());
    let forgets = signed(&named, &after, keys(1, None), (Some(1), None));
    let error = named.follow(forgets.as_bytes()).expect_err("the next key did not sign");
    assert!(error.message().contains("next key"), "{error}");
}

#[test]
fn no_epoch_follows_a_successor() {
    let ([.., last], new) = history(keys(1, None));
    let record = signed(&last, &new, keys(1, None), (Some(1), None));
    let mut chain = last.clone();
    let error = chain.follow(record.as_bytes()).expect_err("another table");
    assert_eq!(error.blame(), Blame::Integrity);
    assert!(error.message().contains("it has a successor"), "{error}");
    assert_eq!(chain, last);
    // In a lineage, nothing of the old table follows either.
    let mut later = Model::new(5);
    (later.epoch, later.previous) = (last.identity().epoch.0 + 1, record.hash());
    let stray = signed(&at(&later, keys(1, None)), &other(9), keys(1, None), (Some(1), None));
    let error = lineage([record, stray]).expect_err("a stray record");
    assert!(error.message().contains("serves another table"), "{error}");
}

/// Tables 7, 8 and 9, one after the other, with a rotation in the second; and their records.
fn line() -> (Chain, Model, Vec<Succession>) {
    let ([from, .., last], mut second) = history(keys(1, 2));
    let first = signed(&last, &second, keys(2, 3), (Some(1), Some(2)));
    second.publisher = 2;
    second.next(&[edit(0, 1)], None);
    let rotation = signed(&at(&second, keys(2, 3)), &second, keys(3, None), (Some(2), Some(3)));
    (second.epoch, second.previous, second.publisher) = (second.epoch + 1, rotation.hash(), 3);
    second.next(&[edit(0, 2)], None);
    let third = other(9);
    let end = signed(&at(&second, keys(3, None)), &third, keys(4, None), (Some(3), None));
    (from, third, vec![first, rotation, end])
}

#[test]
fn a_lineage_is_followed_from_any_of_its_tables() {
    let (from, third, records) = line();
    let all = lineage(records.clone()).expect("it continues");
    let walked = all.walk(&from, &[]).expect("signed").expect("of this table");
    assert_eq!((walked.end.identity(), walked.end.keys()), (third.identity(), keys(4, None)));
    let ids: Vec<_> = walked.left.iter().map(|left| left.id.0[0]).collect();
    assert_eq!(ids, [7, 8]);
    assert_eq!(all.end(), Some((third.identity(), keys(4, None))));

    let second = records[0].begin();
    let walked = all.walk(&second, &[]).expect("signed").expect("of this table");
    assert_eq!(walked.left.len(), 1);
    assert_eq!(walked.end.identity(), third.identity());
    // Who has followed the rotation passes it.
    let rotated = records[1].begin();
    assert_eq!(all.walk(&rotated, &[]).expect("signed"), Some(walked));
    // Who is at the end, or elsewhere, is led nowhere.
    assert_eq!(all.walk(&records[2].begin(), &[]).expect("nothing"), None);
    assert_eq!(all.walk(&at(&other(77), keys(1, None)), &[]).expect("nothing"), None);

    // Without the rotation, the last record is signed by somebody whom nobody named.
    let error = lineage([records[0].clone(), records[2].clone()]).expect_err("a link is missing");
    assert_eq!(error.blame(), Blame::Integrity);
    // A lineage may begin anywhere.
    let tail = lineage(records[1..].to_vec()).expect("it continues");
    assert_eq!(
        tail.walk(&second, &[]).expect("signed").expect("of it").end,
        walked_end(&all, &second)
    );
    assert_eq!(tail.walk(&from, &[]).expect("nothing of this table"), None);
}

fn walked_end(lineage: &Lineage, from: &Chain) -> Chain {
    lineage.walk(from, &[]).expect("signed").expect("of this table").end
}

#[test]
fn a_tombstone_is_refused_for_ever_and_shows_a_second_successor() {
    let (from, _, records) = line();
    let all = lineage(records.clone()).expect("it continues");
    let left = all.walk(&from, &[]).expect("signed").expect("of this table").left;
    // Nobody leads back, in a lineage or by the client's memory.
    let first = Model { epoch: 0, ..Model::new(5) };
    let back = signed(&records[2].begin(), &first, keys(4, None), (Some(4), None));
    let and_back = [records.clone(), vec![back.clone()]].concat();
    let error = lineage(and_back).expect_err("it leads back");
    assert!(error.message().contains("leads back"), "{error}");
    let error = lineage([back])
        .expect("alone it may")
        .walk(&records[2].begin(), &left)
        .expect_err("the client was there");
    assert!(error.message().contains("left before"), "{error}");

    // The publisher signs a second successor of the first table, for other clients.
    let ([.., last], _) = history(keys(1, 2));
    let second = signed(&last, &other(66), keys(2, 3), (Some(1), Some(2)));
    let error = lineage([second]).expect("it is signed").check_against(&left).expect_err("a fork");
    assert!(error.message().contains("(a fork)"), "{error}");
    all.check_against(&left).expect("it is the way that was taken");
}

#[test]
fn a_long_lineage_loses_its_oldest_records() {
    let mut all = Lineage::default();
    let mut begin = None;
    let id = |number: usize| {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&(number as u64).to_le_bytes());
        TableId(id)
    };
    let mut end = at(&Model { id: id(0), ..other(0) }, keys(1, None));
    for number in 1..=MAX_RECORDS + 1 {
        let new = Model { id: id(number), ..other(0) };
        let record = signed(&end, &new, keys(1, None), (Some(1), None));
        end = record.begin();
        begin.get_or_insert(end.clone());
        all.push(record).expect("it continues");
    }
    assert_eq!(all.records().len(), MAX_RECORDS);
    let bytes = all.encode();
    assert!(bytes.len() <= MAX_LINEAGE_LEN);
    let read = Lineage::decode(&bytes).expect("as many as there may be");
    let walked = read.walk(&begin.expect("one"), &[]).expect("signed").expect("the second");
    assert_eq!((walked.end, walked.left.len()), (end, MAX_RECORDS));
    // One more is refused from outside.
    let more = [&bytes[..], &bytes].concat();
    assert_eq!(Lineage::decode(&more).expect_err("too many").blame(), Blame::InvalidMessage);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A lineage of any length and with rotations anywhere is walked from each of its positions,
    /// and by nobody whose keys are others.
    #[test]
    fn every_lineage_is_walked(steps in prop::collection::vec((any::<bool>(), any::<bool>()), 1..8)) {
        let mut table = other(50);
        let mut held = (1u8, Some(2u8));
        let mut end = at(&table, keys(held.0, held.1));
        let (mut positions, mut records) = (vec![end.clone()], Vec::new());
        for (number, (rotates, names_next)) in steps.into_iter().enumerate() {
            let publisher = held.1.unwrap_or(100 + number as u8);
            let after = (publisher, names_next.then_some(10 + number as u8));
            let signers = (Some(held.0), held.1);
            let new = if rotates { table.clone() } else { other(51 + number as u8) };
            let record = signed(&end, &new, keys(after.0, after.1), signers);
            end = record.begin();
            table = new;
            (table.epoch, held) = (end.identity().epoch.0, after);
            positions.push(end.clone());
            records.push(record);
        }
        let all = lineage(records).expect("it continues");
        for from in &positions[..positions.len() - 1] {
            let walk = all.walk(from, &[]).expect("signed").expect("of it");
            prop_assert_eq!(walk.end.identity(), end.identity());
            prop_assert_eq!(walk.end.keys(), end.keys());
            let stranger = Chain::knowing_digest(
                from.identity(),
                from.layout_digest(),
                keys(200, 201),
                from.previous(),
            );
            prop_assert!(all.walk(&stranger, &[]).is_err());
        }
    }

    #[test]
    fn noise_is_no_succession(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(Succession::decode(&bytes).is_err());
        prop_assert!(bytes.is_empty() || Lineage::decode(&bytes).is_err());
    }
}
