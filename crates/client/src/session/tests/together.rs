//! Queries that go to a server in one message.

use super::peer::Peer;
use super::world::*;
use crate::session::*;
use privet_schemes::SchemeId;

/// The queries of three lookups to each of two servers, in the order in which they left.
pub(crate) fn queries(peer: impl Fn() -> Peer) -> Vec<Query> {
    let mut world = World::of(&peer());
    (0..3).for_each(|index| drop(world.found(Target::index(index))));
    let sent = world.sent.into_iter().map(|(_, request)| request);
    sent.filter_map(|request| if let Request::Answer(query) = request { Some(query) } else { None })
        .collect()
}

#[test]
fn queries_go_together_if_they_are_for_the_same_server_and_table_and_of_one_length() {
    let peer = || Peer::indexed_by(SchemeId::Dpf, 200, 12, 1);
    let all = queries(peer);
    assert_eq!(all.len(), 6);
    let (first, second): (Vec<_>, Vec<_>) = all.into_iter().partition(|query| query.role.0 == 0);
    for of_one_server in [&first, &second] {
        for count in 1..=3 {
            let together = Query::together(&of_one_server[..count]).unwrap();
            let bytes: Vec<u8> =
                of_one_server[..count].iter().flat_map(|query| query.query.to_vec()).collect();
            assert_eq!(together.query, bytes);
            assert_eq!((together.role, together.table), (of_one_server[0].role, first[0].table));
        }
    }
    let other_version = || peer().with_identity(|identity| identity.epoch.0 += 1);
    let longer = || Peer::indexed_by(SchemeId::Dpf, 70_000, 12, 1);
    let strangers = [&second[0], &queries(other_version)[0], &queries(longer)[0]];
    assert_ne!(strangers[2].query.len(), first[0].query.len());
    for stranger in strangers {
        assert!(Query::together(&[first[0].clone(), stranger.clone()]).is_none());
        assert!(Query::together(&[first[0].clone(), first[1].clone(), stranger.clone()]).is_none());
    }
    assert!(Query::together(&[]).is_none());
}
