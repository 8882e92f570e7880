//! Rehearsals, and the work that they do.

use super::*;
use privet_core::RecordIndex;

#[test]
fn every_scheme_that_asks_is_rehearsed() {
    for scheme in SchemeId::all() {
        a_scheme_that_asks_is_rehearsed(scheme, 60, &Tuning::default());
    }
}

#[test]
fn what_is_searched_grows_with_the_lookups_that_were_made() {
    for scheme in
        [SchemeId::DummySubsets, SchemeId::DummySubsetsTwo, SchemeId::Harmony, SchemeId::Piano]
    {
        let tuning = Tuning::default();
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

/// Making a blank takes long. A rehearsal makes one, however many lookups it makes of it, and their
/// queries differ only by the index.
#[test]
fn a_rehearsal_makes_one_blank() {
    for scheme in [SchemeId::SimplePir, SchemeId::SimplePirPacked, SchemeId::DoublePir] {
        let version = Version::first(scheme, 60, 3, &Tuning::default());
        let client = Client::of(&version).client;
        let made = client.blanks().expect("queries are made ahead");
        let mut rng = SecretRng::from_fixed_seed([4; 32]);
        let mut rehearsal = client.into_rehearsal().unwrap();
        let mut drawn_after = |rehearsals: usize| {
            for index in 0..rehearsals {
                rehearsal.make_blank(&mut rng).unwrap();
                let index = RecordIndex::new(index as u64, version.identity.shape).unwrap();
                rehearsal.prepare(&index, &mut rng).unwrap();
            }
            rng.next_u64()
        };
        let coins = [drawn_after(1), drawn_after(3)];
        let mut rng = SecretRng::from_fixed_seed([4; 32]);
        made(&mut rng).unwrap();
        assert_eq!(
            coins,
            [rng.next_u64(), rng.next_u64()],
            "{scheme}: rehearsals draw the coins of one blank"
        );
    }
}
