//! Wrong announcements, pieces and answers.

use super::world::{Builds, TABLE, World, key, set};
use crate::{
    Announcement, Due, Event, KeyChange, LayerDescription, LayeredClient, LayeredParameters,
    MAX_LIST, MAX_VALUE_LEN, Span,
};
use privet_core::{Blame, TableId};
use privet_kernels::Kernels;
use privet_schemes::SchemeId;
use std::sync::Arc;

fn world() -> World {
    let mut world = World::new(SchemeId::Download, 3, 12, Builds::AtOnce);
    for number in 0..7 {
        world.update(vec![set(number, b"value")]);
    }
    world
}

/// The error for an announcement; nothing of it may be taken in.
fn refused(world: &mut World, events: Vec<Event>) -> Blame {
    let before = world.client.version();
    let announcement = Announcement { table: TABLE, events };
    let error = world.client.follow(&announcement, &mut world.store).unwrap_err();
    assert_eq!(world.client.version(), before);
    world.check(&key(3));
    error.blame()
}

fn changed(number: u64) -> Event {
    Event::Changed { number, change: set(0, b"x") }
}

#[test]
fn announcements_that_do_not_follow_are_refused() {
    let mut world = world();
    let next = world.client.changes() + 1;
    let known = world.client.layers().next().unwrap().clone();
    let other = Arc::new(LayerDescription::new(
        known.span,
        [1; 32],
        known.fetched,
        known.parameters.clone(),
        known.key_map.clone(),
    ));
    let built =
        |layer: &Arc<LayerDescription>| Event::Built { layer: layer.clone(), takes_over_at: next };
    let moved = |span| {
        let LayerDescription { records, fetched, parameters, key_map, .. } = &*known;
        Arc::new(LayerDescription::new(
            span,
            *records,
            *fetched,
            parameters.clone(),
            key_map.clone(),
        ))
    };
    let beyond = Span { first: next, last: next + 3 };
    let unknown = Span { first: 0, last: 2 };
    let cases = [
        (vec![changed(next + 1)], Blame::PeerMisbehaved),
        (vec![built(&other)], Blame::Integrity),
        (vec![Event::TakesOver(unknown)], Blame::PeerMisbehaved),
        (
            vec![built(&moved(beyond)), changed(next), Event::TakesOver(beyond), changed(next)],
            Blame::PeerMisbehaved,
        ),
        // It omits the entries of the layers in between.
        (vec![built(&moved(unknown)), Event::TakesOver(unknown)], Blame::PeerMisbehaved),
        ((0..7).map(|more| changed(next + more)).collect(), Blame::PeerMisbehaved),
    ];
    for (number, (events, blame)) in cases.into_iter().enumerate() {
        let refusal = std::panic::AssertUnwindSafe(|| refused(&mut world, events));
        assert_eq!(refusal(), blame, "case {number}");
    }
    let elsewhere = Announcement { table: TableId([9; 16]), events: Vec::new() };
    let error = world.client.follow(&elsewhere, &mut world.store).unwrap_err();
    assert_eq!(error.blame(), Blame::PeerMisbehaved);
    // The next one that follows is taken in normally.
    world.update(vec![set(5, b"after")]);
    world.check(&key(5));
}

#[test]
fn no_announcement_that_was_changed_is_read_wrongly() {
    let world = world();
    let bytes = world.servers[0].state().encode();
    for len in 0..bytes.len() {
        let error = Announcement::decode(&bytes[..len]).unwrap_err();
        assert_eq!(error.blame(), Blame::InvalidMessage);
    }
    for position in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[position] ^= 1 << bit;
            // There is one encoding of everything.
            if let Ok(read) = Announcement::decode(&changed) {
                assert_eq!(read.encode(), changed, "byte {position}");
            }
        }
    }
}

#[test]
fn pieces_that_are_not_what_was_announced_are_refused_and_fetched_again() {
    for scheme in [SchemeId::Download, SchemeId::SimplePir, SchemeId::DummySubsets] {
        let mut world = World::new(scheme, 3, 12, Builds::AtOnce);
        let state = world.servers[0].state();
        world.client = LayeredClient::new(TABLE, world.parameters.clone(), Kernels::detect());
        world.store = super::world::Store::default();
        world.follow(&state);
        let Some(Due::Fetch { layer, offset: 0, len }) = world.client.due().unwrap() else {
            panic!("something has to be fetched")
        };
        let mut wrong = world.layer(0, layer).fetched()[..len as usize].to_vec();
        wrong[0] ^= 1;
        let mut refusal = world.client.absorb(layer, &wrong, &mut world.store);
        while refusal.is_ok() {
            let Some(Due::Fetch { offset, len, .. }) = world.client.due().unwrap() else {
                panic!("{scheme}: a wrong byte was taken")
            };
            let bytes = world.layer(0, layer).fetched()[offset as usize..][..len as usize].to_vec();
            refusal = world.client.absorb(layer, &bytes, &mut world.store);
        }
        assert_eq!(refusal.unwrap_err().blame(), Blame::Integrity);
        assert!(!world.client.is_ready());
        world.fetch_due();
        world.check(&key(3));
    }
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_taken() {
    let mut world = world();
    let long = KeyChange { key: key(1), value: Some(vec![0; MAX_VALUE_LEN + 1]) };
    let before = world.servers[0].version();
    let error = world.servers[0].update(vec![set(1, b"good"), long]).unwrap_err();
    assert_eq!(error.blame(), Blame::ApiMisuse);
    assert_eq!(world.servers[0].version(), before);
    for list in [0, MAX_LIST + 1] {
        let error = LayeredParameters::new(SchemeId::Dpf, list).unwrap_err();
        assert_eq!(error.blame(), Blame::ApiMisuse);
    }
    let lookup = world.send(&key(1));
    assert!(world.client.settle(lookup.lookup, &[b"one"], &mut world.store).is_err());
    assert!(world.client.absorb(Span { first: 5, last: 9 }, b"", &mut world.store).is_err());
}
