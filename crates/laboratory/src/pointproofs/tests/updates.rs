//! After an update, everything is the same as if it were computed from the new table.

use super::{Openings, Parties, bytes, known_string, verdict};
use crate::pointproofs::PointproofsVerifier;
use privet_core::commit::{Changed, Prover as _, Vectors, Verifier as _};
use privet_core::{Blame, SecretRng, TableShape};

/// Changes some records and adds others; returns what the server announced.
fn update(
    parties: &mut Parties,
    edited: &[u64],
    records_after: u64,
) -> privet_core::Result<Vec<u8>> {
    let record_len = parties.vectors.record_len();
    let shape = TableShape::new(records_after, record_len as u64).unwrap();
    let after = Vectors::new(shape, parties.vectors.vector_len(), 1).unwrap();
    let before = parties.table.clone();
    let mut table = before.clone();
    table.resize(after.padded_bytes() as usize, 0);
    let added = parties.vectors.shape().bytes() as usize..shape.bytes() as usize;
    let new_records = bytes("new records", added.len());
    table[added].copy_from_slice(&new_records);
    let changed = edited.iter().map(|record| *record as usize * record_len);
    for place in changed {
        table[place] ^= 0x55;
    }
    let mut changed: Vec<u64> = edited.to_vec();
    changed.extend(parties.vectors.shape().records()..records_after);
    // Repetitions, and records that stay as they are.
    changed.extend_from_slice(edited);
    changed.push(0);
    let zeros = vec![0; record_len];
    let changed: Vec<Changed<'_>> = changed
        .iter()
        .map(|index| {
            let before =
                before.get(*index as usize * record_len..).and_then(|rest| rest.get(..record_len));
            Changed { index: *index, before: before.unwrap_or(&zeros) }
        })
        .collect();
    let message = parties.prover.update(after, &table, &changed)?;
    parties.table = table;
    parties.vectors = after;
    Ok(message)
}

fn encoded(verifier: &PointproofsVerifier) -> Vec<u8> {
    let mut out = Vec::new();
    verifier.encode(&mut out);
    out
}

#[test]
fn an_update_is_as_good_as_a_new_beginning() {
    let mut rng = SecretRng::from_os().unwrap();
    for openings in [Openings::OnDemand, Openings::Precomputed] {
        // One record; several records of one vector, enough to compute its openings again; new
        // records in the last vector; new vectors.
        for (edited, records_after) in [
            (vec![4], 8),
            (vec![1, 7], 8),
            (vec![0, 1, 2, 3, 4, 5], 8),
            (vec![], 9),
            (vec![2], 23),
            (vec![], 8),
        ] {
            let mut parties = Parties::new(7, 6, 8, 3, openings);
            let message = update(&mut parties, &edited, records_after).unwrap();
            parties.verifier.update(parties.vectors, &message).unwrap();
            let new =
                Parties::of(parties.vectors, parties.table.clone(), known_string(7), openings);
            assert_eq!(parties.prover.announcement(), new.prover.announcement());
            assert_eq!(encoded(&parties.verifier), encoded(&new.verifier));
            let answers = parties.answers(&mut rng);
            for (role, answer) in answers.iter().enumerate() {
                assert_eq!(new.answer(role as u8, &answer.offsets).proof, answer.proof);
            }
            assert_eq!(verdict(&parties.verifier, answers.each_ref()), [false; 2]);
            assert_eq!(message.is_empty(), edited.is_empty() && records_after == 8);
        }
    }
}

#[test]
fn the_message_has_changed_commitments_in_order() {
    let mut parties = Parties::new(2, 2, 7, 3, Openings::OnDemand);
    let message = update(&mut parties, &[5, 1], 11).unwrap();
    let numbers: Vec<u8> = message.chunks_exact(52).map(|entry| entry[0]).collect();
    // Records 1 and 5, the last vector with its new record, and the vectors after it.
    assert_eq!(numbers, [0, 2, 3, 4, 5]);
    assert_eq!(message.len(), 5 * 52);
}

#[test]
fn an_answer_from_before_an_update_is_rejected_after_it() {
    let mut parties = Parties::new(3, 3, 6, 2, Openings::OnDemand);
    let stale = [parties.answer(0, &[0, 0]), parties.answer(1, &[1, 2])];
    let message = update(&mut parties, &[5], 6).unwrap();
    parties.verifier.update(parties.vectors, &message).unwrap();
    // Even if the answer does not concern the changed record.
    assert_eq!(verdict(&parties.verifier, stale.each_ref()), [true, true]);
}

#[test]
fn a_wrong_message_changes_nothing() {
    let mut parties = Parties::new(3, 3, 7, 2, Openings::OnDemand);
    let before = (parties.vectors, encoded(&parties.verifier));
    let good = update(&mut parties, &[0, 4], 13).unwrap();
    let numbers: Vec<u8> = good.chunks_exact(52).map(|entry| entry[0]).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4]);
    let with = |place: usize, byte: u8| {
        let mut message = good.clone();
        message[place] = byte;
        message
    };
    let mut outside = good.clone();
    outside[4..52].fill(0);
    (outside[4], outside[51]) = (0x80, 4);
    let wrong = [
        vec![],
        good[1..].to_vec(),
        good[..good.len() - 1].to_vec(),
        // A new vector is missing, one is named twice, one is out of order, one is beyond the end.
        good[..4 * 52].to_vec(),
        with(52, 0),
        with(0, 2),
        with(4 * 52, 5),
        with(4 * 52 + 3, 1),
        [&good[..], &good[..52]].concat(),
        outside,
    ];
    for message in wrong {
        let error = parties.verifier.update(parties.vectors, &message).unwrap_err();
        assert_eq!(error.blame(), Blame::PeerMisbehaved);
        assert_eq!(encoded(&parties.verifier), before.1);
    }
    // A table that has shrunk is not a valid update.
    let shape = TableShape::new(6, 2).unwrap();
    let shrunk = Vectors::new(shape, 3, 1).unwrap();
    let error = parties.verifier.update(shrunk, &good).unwrap_err();
    assert_eq!(error.blame(), Blame::ApiMisuse);
    parties.verifier.update(parties.vectors, &good).unwrap();
    assert_ne!(encoded(&parties.verifier), before.1);
}

#[test]
fn an_edit_beyond_the_end_is_refused() {
    let mut parties = Parties::new(3, 3, 7, 2, Openings::OnDemand);
    let announcement = parties.prover.announcement();
    let table = parties.table.clone();
    let changed = [Changed { index: 7, before: &[0, 0] }];
    let error = parties.prover.update(parties.vectors, &table, &changed).unwrap_err();
    assert_eq!(error.blame(), Blame::ApiMisuse);
    let error = parties.prover.update(parties.vectors, &table[1..], &[]).unwrap_err();
    assert_eq!(error.blame(), Blame::ApiMisuse);
    assert_eq!(parties.prover.announcement(), announcement);
}
