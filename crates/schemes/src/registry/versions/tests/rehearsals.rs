//! Rehearsals, and the work that they do.

use super::*;

/// With answers of zeros, which are wrong for all of these tables.
#[test]
fn every_scheme_that_asks_is_rehearsed() {
    for scheme in SchemeId::ALL {
        let pointproofs = *scheme == SchemeId::TapirPointproofs;
        let tuning = tuning(*scheme, pointproofs.then_some(4));
        let records = if pointproofs { 13 } else { 60 };
        let version = Version::first(*scheme, records, 3, &tuning);
        let Some(mut rehearsal) = Client::of(&version).client.into_rehearsal() else {
            assert_eq!(*scheme, SchemeId::Download);
            continue;
        };
        let mut rng = SecretRng::from_fixed_seed([3; 32]);
        let zeros = vec![0; version.plan.answer_len];
        let answers = vec![&zeros[..]; version.plan.servers];
        for lookup in 0..40u64 {
            let index = RecordIndex::new(lookup % records, version.identity.shape).unwrap();
            match rehearsal.prepare(&index, &mut rng) {
                Err(error) if lookup > 0 && error.blame() == Blame::Exhausted => break,
                prepared => prepared.unwrap(),
            }
            // A scheme that verifies goes on all the same.
            if let Err(error) = rehearsal.recover(&answers) {
                assert_eq!(error.blame(), Blame::Integrity, "{scheme}: {error}");
            }
            // Answers can be read only once.
            assert!(rehearsal.recover(&answers).is_err(), "{scheme}");
        }
    }
}

#[test]
fn what_is_searched_grows_with_the_lookups_that_were_made() {
    for scheme in
        [SchemeId::DummySubsets, SchemeId::DummySubsetsTwo, SchemeId::Harmony, SchemeId::Piano]
    {
        let tuning = tuning(scheme, None);
        let version = Version::first(scheme, 140, 3, &tuning);
        let search_lens: Vec<Vec<u64>> = [0u64, 7]
            .into_iter()
            .map(|step| {
                let mut client = Client::of(&version);
                (0..16)
                    .map(|lookup| {
                        client.look_up(&version, &[&*version.server], lookup * step % 140);
                        client.client.hints().unwrap().search_len()
                    })
                    .collect()
            })
            .collect();
        // It is public: the same for every lookup.
        assert_eq!(search_lens[0], search_lens[1], "{scheme}");
        assert!(search_lens[0].is_sorted(), "{scheme}");
        assert!(search_lens[0][15] > search_lens[0][0], "{scheme}");
    }
}
