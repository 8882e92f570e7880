//! Which of several schemes a client uses: its own order decides, not the order of servers' offers,
//! and not what a lying server has left out.

use super::world::*;
use crate::session::*;
use privet_core::Reason;
use privet_schemes::SchemeId;

use short::*;

/// Short names for the lists below.
#[allow(non_upper_case_globals)]
mod short {
    use super::SchemeId;

    pub(super) const ApirDpf: SchemeId = SchemeId::ApirDpf;
    pub(super) const ApirMatrix: SchemeId = SchemeId::ApirMatrix;
    pub(super) const Download: SchemeId = SchemeId::Download;
    pub(super) const Dpf: SchemeId = SchemeId::Dpf;
    pub(super) const SimplePir: SchemeId = SchemeId::SimplePir;
}

/// A server of one and the same table by these schemes, in this order.
fn offering(schemes: &[SchemeId]) -> Peer {
    let mut peers: Vec<_> =
        schemes.iter().map(|scheme| Peer::indexed_by(*scheme, 20, 4, 1)).collect();
    let schemes = peers.iter().map(|peer| peer.scheme().clone()).collect();
    peers.swap_remove(0).describing(|mut table| {
        table.schemes = schemes;
        table
    })
}

/// All orders of all schemes in `of`; unless `whole`, those of its subsets as well.
fn orders(of: &[SchemeId], whole: bool) -> Vec<Vec<SchemeId>> {
    let mut found = vec![Vec::new()];
    let mut at = 0;
    while at < found.len() {
        let begun: Vec<SchemeId> = found[at].clone();
        let more = of.iter().filter(|scheme| !begun.contains(scheme));
        found.extend(more.map(|scheme| [&begun[..], &[*scheme]].concat()));
        at += 1;
    }
    found.retain(|order| !order.is_empty() && (!whole || order.len() == of.len()));
    found
}

/// A session with these servers and options.
fn meets(servers: &[&[SchemeId]], change: impl FnOnce(&mut SessionOptions)) -> World {
    let mut options = options(servers.len());
    change(&mut options);
    let peers = servers.iter().map(|schemes| offering(schemes)).collect();
    let mut world = World::with_options(peers, options);
    world.run();
    world
}

fn chosen(world: &World) -> Option<SchemeId> {
    world.session.table().map(|table| table.scheme.plan.scheme)
}

/// The message of a refusal before which nothing was asked.
fn refusal(world: &World) -> &str {
    assert_eq!((world.failed_with(), chosen(world)), (Blame::ApiMisuse, None));
    assert!(world.asked_nothing(), "{:?}", world.trace());
    world.failure.as_ref().unwrap().message()
}

fn as_ever(_: &mut SessionOptions) {}

const THREE: [SchemeId; 3] = [Dpf, ApirMatrix, ApirDpf];

#[test]
fn no_order_of_any_server_decides() {
    for first in orders(&THREE, true) {
        for second in orders(&THREE, true) {
            let world = meets(&[&first, &second], as_ever);
            assert_eq!(chosen(&world), Some(ApirDpf), "{first:?} {second:?}");
            let wanted = meets(&[&first, &second], |options| options.schemes = vec![Dpf, ApirDpf]);
            assert_eq!(chosen(&wanted), Some(Dpf), "{first:?} {second:?}");
        }
    }
    for order in orders(&[SimplePir, Download], true) {
        assert_eq!(chosen(&meets(&[&order], as_ever)), Some(SimplePir));
        let wanted = meets(&[&order], |options| options.schemes = vec![Download]);
        assert_eq!(chosen(&wanted), Some(Download));
    }
}

/// Whatever a liar offers, in any order: the scheme is the same as without the liar, or there is
/// none.
#[test]
fn a_liar_that_leaves_schemes_out_downgrades_nobody() {
    for honest in orders(&THREE, true) {
        for lie in orders(&THREE, false) {
            for pair in [[&honest[..], &lie], [&lie, &honest]] {
                let world = meets(&pair, as_ever);
                if lie.contains(&ApirDpf) {
                    assert_eq!(chosen(&world), Some(ApirDpf), "{pair:?}");
                    continue;
                }
                let message = refusal(&world);
                let what = "does not serve table table by apir-dpf, as the ";
                assert!(message.contains(what), "{pair:?}: {message}");
                assert!(message.contains("table table is served at the first server by"));
                // Nor is the client talked into the scheme that the liar left.
                assert_eq!(world.reason(), Some(Reason::ServersDisagree), "{message}");
                assert!(message.contains("do not use a scheme that verifies none"), "{message}");
                // A caller who wants verified answers is not given another scheme either.
                let verified = meets(&pair, |options| options.verified = true);
                assert_ne!(chosen(&verified), Some(Dpf), "{pair:?}");
            }
        }
    }
}

#[test]
fn of_the_schemes_that_are_listed_the_first_that_all_offer_is_taken_and_no_other() {
    let listed = |servers: &[&[SchemeId]], schemes: &[SchemeId]| {
        meets(servers, |options| options.schemes = schemes.to_vec())
    };
    for honest in orders(&THREE, true) {
        for lie in orders(&THREE, false) {
            let wanted = [ApirMatrix, Dpf];
            let world = listed(&[&honest, &lie], &wanted);
            let expected = wanted.into_iter().find(|scheme| lie.contains(scheme));
            assert_eq!(chosen(&world), expected, "{lie:?}");
            if expected.is_none() {
                assert!(refusal(&world).contains("at the second server by apir-dpf"));
            }
        }
    }
    let world = listed(&[&[Dpf], &[Dpf]], &[ApirMatrix, ApirDpf]);
    assert_eq!(
        refusal(&world),
        "table table is served by dpf, and apir-matrix-mt, apir-dpf was to be used; name one that all servers offer"
    );
    assert_eq!(world.reason(), Some(Reason::SchemeNotOffered));
}

#[test]
fn who_wants_answers_verified_gets_no_other_scheme() {
    let verified = |options: &mut SessionOptions| options.verified = true;
    for order in orders(&THREE, true) {
        let world = meets(&[&order, &order], verified);
        assert_eq!(chosen(&world), Some(ApirDpf));
        let world = meets(&[&order, &order], |options| {
            options.verified = true;
            options.schemes = vec![Dpf, ApirMatrix];
        });
        assert_eq!(chosen(&world), Some(ApirMatrix));
    }
    let world = meets(&[&[Dpf], &[Dpf]], verified);
    let message = refusal(&world);
    assert!(message.starts_with("table table is served by dpf, and only schemes that verify"));
    assert!(message.contains("apir-dpf, apir-matrix-mt, tapir-mt, tapir-pp"), "{message}");
    let world = meets(&[&[SimplePir, Download]], verified);
    assert!(refusal(&world).contains("allow the others"));
    assert_eq!(world.reason(), Some(Reason::NoSchemeVerifies));
}

/// The scheme that the table was used with before stays, whatever else is offered now.
#[test]
fn the_scheme_that_was_pinned_stays() {
    let pinned = |scheme: SchemeId| {
        let mut world = meets(&[&[scheme], &[scheme]], as_ever);
        let mut options = options(2);
        know_pins(&mut options, &mut *world.keeper.state);
        assert_eq!(options.pins.len(), 2);
        options.pins
    };
    for scheme in THREE {
        let pins = pinned(scheme);
        let with_pins = |servers: &[&[SchemeId]], schemes: &[SchemeId], verified: bool| {
            meets(servers, |options| {
                options.pins.clone_from(&pins);
                options.schemes = schemes.to_vec();
                options.verified = verified;
            })
        };
        for first in orders(&THREE, true) {
            for second in orders(&THREE, true) {
                let servers = [&first[..], &second];
                assert_eq!(chosen(&with_pins(&servers, &[], false)), Some(scheme));
                assert_eq!(chosen(&with_pins(&servers, &THREE, false)), Some(scheme));
                if scheme == Dpf {
                    let refused = with_pins(&servers, &[], true);
                    assert_eq!(refused.failed_with(), Blame::Integrity);
                    let message = refused.failure.as_ref().unwrap().message();
                    assert!(message.contains("another scheme"), "{message}");
                    assert!(message.ends_with("in a place of its own"), "{message}");
                    assert_eq!(refused.reason(), Some(Reason::SchemeReplaced));
                }
            }
        }
        let others: Vec<_> = THREE.into_iter().filter(|other| *other != scheme).collect();
        for servers in [[&others[..], &others], [&THREE[..], &others], [&others, &THREE[..]]] {
            let refused = with_pins(&servers, &[], false);
            assert!(refused.failure.is_some() && refused.queries().is_empty());
            assert_eq!(refused.trace().len(), 2, "{servers:?}");
        }
    }
}
