//! Servers of one scheme must agree, with each other and with what they said before. Otherwise
//! nothing is asked, and the error says what differs.

use super::toy::{self, Kind};
use super::two_servers::{KEYS, peer, world};
use super::world::*;
use crate::session::*;
use privet_schemes::SchemeId;

/// How a session ends if its second server is `other`: who is to blame, and the message.
fn refusal(one: &Peer, other: &Peer) -> (Blame, String) {
    for accept_new_table in [true, false] {
        let mut world = World::with_options(
            vec![one.clone(), other.clone()],
            SessionOptions { accept_new_table, ..options(2) },
        );
        world.run();
        assert_eq!(world.kinds(), ["describe"; 2]);
        assert!(world.keeper.state.pins("server 0").unwrap().is_empty(), "nothing is pinned");
        if !accept_new_table {
            return (world.failed_with(), world.failure.unwrap().message().to_owned());
        }
    }
    unreachable!("the second round returns")
}

#[test]
fn servers_that_do_not_agree_are_refused_and_it_is_said_on_what() {
    let one = peer();
    let toys = |total| toy::peer(24, 20, 2, total, Kind::default());
    let (toy, other_hint) = (toys(5), toys(5).with_hint_digest([9; 32]));
    let mut another_name = one.clone();
    another_name.description.tables[0].name = "packages".to_owned();
    let mut another_layout = one.layout.clone();
    another_layout.push(0);

    let same_table = "They have to serve the same table";
    let ask = "One of them has another file or does not tell the truth: ask those who run them";
    let cases = [
        (
            &one,
            another_name,
            format!("the second server has no table called table, which the first server has; it has: packages; nothing was asked. {same_table} under the same name"),
        ),
        (
            &one,
            one.clone().with_identity(|identity| identity.id.0 = [2; 16]),
            format!(
                "the second server has another table under the name table than the first server (id {}, not {}); nothing was asked. {same_table}",
                "02".repeat(16),
                "01".repeat(16)
            ),
        ),
        (
            &one,
            one.clone().with_identity(|identity| identity.epoch.0 = 2),
            "the second server has version 2 of table table, the first server has version 1; nothing was asked. If the table is being updated, try again when they have the same version".to_owned(),
        ),
        (
            &one,
            one.clone().with_identity(|identity| identity.digest.0[31] ^= 1),
            format!("the second server has other contents of table table than the first server under the same version, 1; nothing was asked. {ask}"),
        ),
        (
            &one,
            one.clone().with_layout(another_layout),
            format!("the second server describes another record layout for table table than the first server; nothing was asked. {ask}"),
        ),
        (
            &one,
            Peer::keyed(KEYS),
            "the second server does not serve table table by dpf, as the first server does: table table is served at the first server by dpf, at the second server by simplepir; nothing was asked. They have to be started with the same scheme; or name one that all of them offer".to_owned(),
        ),
        (
            &toy,
            toys(6),
            "the second server serves table table by dummy-subsets with other parameters than the first server; nothing was asked. They have to be started with the same parameters".to_owned(),
        ),
        (
            &toy,
            other_hint,
            format!("the second server describes another dummy-subsets hint for table table than the first server; nothing was asked. {ask}"),
        ),
    ];
    for (one, other, message) in cases {
        let (blame, said) = refusal(one, &other);
        assert_eq!(said, message);
        // A user or an operator made a mistake in these cases; all others may be lies.
        let mistaken = ["has no table", "does not serve", "other parameters"];
        let mistaken = mistaken.iter().any(|what| said.contains(what));
        let due = if mistaken { Blame::ApiMisuse } else { Blame::Integrity };
        assert_eq!(blame, due, "{said}");
    }
}

#[test]
fn a_server_that_goes_on_to_another_version_gets_no_further_query_and_neither_does_the_other() {
    for (changed, name) in [(0, "the first server"), (1, "the second server")] {
        let mut world = world();
        world.found(Target::key(pair(0).0));
        world.peers[changed] = peer().with_identity(|identity| identity.epoch.0 += 1);
        // The connection breaks under the next query.
        world.fates[changed] = Fate::Breaks;
        let lookup = world.session.lookup(Target::key(pair(1).0));
        while world.queries_to(changed).len() < 2 {
            assert!(world.step());
        }
        world.fates[changed] = Fate::Arrives;
        let before = world.sent.len();
        world.run();
        let after: Vec<_> = world.trace()[before..].iter().map(|sent| (sent.0, sent.1)).collect();
        assert_eq!(after, [(changed, "describe")]);
        assert_eq!(world.failed_with(), Blame::Integrity);
        let error = world.outcomes[&lookup].as_ref().unwrap_err();
        assert!(
            error.message().starts_with(&format!("{name} went from version 1 to version 2")),
            "{error}"
        );
        assert_eq!(world.get(Target::key(pair(2).0)).unwrap_err().blame(), Blame::Integrity);
        assert_eq!(world.sent.len(), before + 1, "the session is over");
    }
}

/// Not even if new tables are accepted.
#[test]
fn while_one_server_is_ahead_of_what_is_pinned_nothing_is_asked_and_no_pin_moves() {
    let (old, new) = (peer(), peer().with_identity(|identity| identity.epoch.0 = 2));
    for after in [[&old, &new], [&new, &old]] {
        for accept_new_table in [false, true] {
            let mut before = world();
            before.run();
            let again = SessionOptions { accept_new_table, ..options(2) };
            let mut refused = World::after(before, after.map(Peer::clone).to_vec(), again);
            refused.run();
            assert_eq!(refused.failed_with(), Blame::Integrity);
            assert!(refused.queries().is_empty());
            for server in ["server 0", "server 1"] {
                assert_eq!(refused.state_pins(server)[0].1.table.epoch.0, 1);
            }
        }
    }
}

#[test]
fn the_wrong_number_of_servers_is_explained() {
    let refused = |peer: &Peer, servers: usize, scheme: Option<SchemeId>| {
        let choice = SessionOptions { schemes: scheme.into_iter().collect(), ..options(servers) };
        let mut world = World::with_options(vec![peer.clone(); servers], choice);
        world.run();
        assert_eq!(world.failed_with(), Blame::ApiMisuse);
        assert!(world.queries().is_empty());
        world.failure.unwrap().message().to_owned()
    };
    let (dpf, download) = (peer(), Peer::keyed_by(SchemeId::Download, KEYS));
    let both = download.clone().describing(|mut table| {
        table.schemes.insert(0, dpf.scheme().clone());
        table
    });
    let of_both = "takes two servers, run by parties that do not collude, and";
    let name = "named: name the addresses of both";
    let other = "by download, and dpf was to be used; name one that all servers offer";
    for (peer, servers, scheme, said) in [
        (&dpf, 1, None, format!("by dpf, which {of_both} one was {name}")),
        (&dpf, 1, Some(SchemeId::Dpf), format!("by dpf; dpf {of_both} one was {name}")),
        (&dpf, 3, None, format!("by dpf, which {of_both} 3 were {name}")),
        (
            &download,
            2,
            None,
            "by download, which takes one server, and two were named: name one address".to_owned(),
        ),
        (&download, 2, Some(SchemeId::Dpf), other.to_owned()),
        (&download, 1, Some(SchemeId::Dpf), other.to_owned()),
        (
            &both,
            3,
            None,
            "by dpf (two servers), download (one server), and 3 were named; name as many as one of \
             them takes"
                .to_owned(),
        ),
    ] {
        assert_eq!(refused(peer, servers, scheme), format!("table table is served {said}"));
    }
    for (servers, scheme) in [(1, SchemeId::Download), (2, SchemeId::Dpf)] {
        let mut world = World::with_options(vec![both.clone(); servers], options(servers));
        world.run();
        assert_eq!(world.session.table().unwrap().scheme.plan.scheme, scheme);
    }
}
