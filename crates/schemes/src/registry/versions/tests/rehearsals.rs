//! Rehearsals, and the work that they do.

use super::*;

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
