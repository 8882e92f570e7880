//! A process that is cloned, as a virtual machine that is saved and started twice, and a system
//! that gives no fresh bytes.

use super::world::*;
use crate::session::*;
use privet_core::{Error, Result, SecretRng};
use privet_schemes::SchemeId;
use privet_schemes::offline::OfflinePhase;

/// The same index again and again: then queries differ by their coins alone.
const WANTED: [u64; 4] = [11; 4];

/// Where a generator gets fresh bytes from; `None`: from the system.
type Source = Option<fn(&mut [u8; 32]) -> Result<()>>;

fn world(scheme: SchemeId, from: Source) -> World {
    let peer = Peer::indexed_by(scheme, 16, 1, 1);
    let servers = peer.scheme().plan.servers;
    let rng = SecretRng::from_os().unwrap();
    let rng = match from {
        Some(from) => rng.asking(from),
        None => rng,
    };
    World::with_parts(vec![peer; servers], options(servers), Parts { rng, ..parts() })
}

fn no_entropy(_: &mut [u8; 32]) -> Result<()> {
    Err(Error::unavailable("there is no entropy"))
}

#[test]
fn without_fresh_bytes_of_the_system_nothing_is_asked() {
    for scheme in [SchemeId::SimplePir, SchemeId::Dpf, SchemeId::DummySubsets] {
        let mut world = world(scheme, Some(no_entropy));
        world.run();
        for index in WANTED {
            let error = world.get(Target::index(index)).unwrap_err();
            assert_eq!(error.blame(), Blame::Unavailable, "{scheme}: {error}");
            assert!(error.message().contains("there is no entropy"), "{scheme}: {error}");
        }
        assert!(world.queries().is_empty() && world.journal.is_empty(), "{scheme}");
        assert!(world.failure.is_none(), "{scheme}: the session goes on");
    }
}

/// They are in the journal, so nothing is drawn for them.
#[test]
fn queries_of_an_earlier_process_are_sent_again_without_coins() {
    let mut first = world(SchemeId::DummySubsets, None);
    first.run();
    first.fate = Box::new(|_, _| Fate::Lost);
    first.look_up(WANTED);
    first.carry_out_all();
    let sent = first.queries();
    assert_eq!(sent.len(), WANTED.len());
    let mut second = world(SchemeId::DummySubsets, Some(no_entropy));
    drop((first.keeper.hints, first.session));
    second.keeper.state = first.keeper.state;
    second.run();
    assert_eq!(second.queries(), sent);
}

#[cfg(unix)]
mod forked {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::process::Command;

    /// Set for the process that forks: it has one thread.
    const FORKS: &str = "PRIVET_TEST_FORKS";
    const THIS_TEST: &str = "session::tests::clones::forked::clones_send_different_queries";

    /// Schemes whose clients hold no secret hints. A clone of a process that does has them as well,
    /// and no coins can help.
    fn is_stateless(scheme: SchemeId) -> bool {
        // This one needs a reference string.
        if scheme == privet_laboratory::TAPIR_PP {
            return false;
        }
        let offline = Peer::indexed_by(scheme, 16, 1, 1).scheme().plan.offline;
        matches!(offline, OfflinePhase::Nothing | OfflinePhase::Download { .. })
    }

    /// The queries to all servers, one after the other.
    fn queries_of(worlds: &mut [World]) -> Vec<Vec<u8>> {
        let of = |world: &mut World| {
            let before = world.queries().len();
            // So often that even queries of a few coins differ.
            for index in WANTED.repeat(16) {
                world.found(Target::index(index));
            }
            world.queries()[before..].concat()
        };
        worlds.iter_mut().map(of).collect()
    }

    /// What each of two clones sends. They are cloned amid a session, after some lookups.
    fn of_two_clones(mut worlds: Vec<World>) -> [Vec<Vec<u8>>; 2] {
        queries_of(&mut worlds);
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        match fork::fork().unwrap() {
            fork::Fork::Child => {
                for queries in queries_of(&mut worlds) {
                    writer.write_all(&(queries.len() as u64).to_le_bytes()).unwrap();
                    writer.write_all(&queries).unwrap();
                }
                std::process::exit(0);
            }
            fork::Fork::Parent(child) => {
                drop(writer);
                let own = queries_of(&mut worlds);
                let sizes = own.iter().map(Vec::len);
                let of_the_child = sizes.map(|size| {
                    let mut queries = vec![0; 8 + size];
                    reader.read_exact(&mut queries).unwrap();
                    assert_eq!(queries[..8], (size as u64).to_le_bytes());
                    queries.split_off(8)
                });
                let of_the_child = of_the_child.collect();
                fork::waitpid(child).unwrap();
                [own, of_the_child]
            }
        }
    }

    #[test]
    fn clones_send_different_queries() {
        if std::env::var_os(FORKS).is_none() {
            let mut alone = Command::new(std::env::current_exe().unwrap());
            alone.args(["--exact", THIS_TEST, "--nocapture", "--test-threads=1"]);
            let output = alone.env(FORKS, "1").output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(said.contains("1 passed"), "{said}");
            return;
        }
        let schemes: Vec<_> = privet_laboratory::all().filter(|id| is_stateless(*id)).collect();
        assert!(schemes.contains(&SchemeId::SimplePir) && schemes.len() >= 8, "{schemes:?}");
        let worlds = |from: Source| -> Vec<World> {
            schemes.iter().map(|scheme| world(*scheme, from)).collect()
        };
        let [one, other] = of_two_clones(worlds(None));
        for ((scheme, one), other) in schemes.iter().zip(one).zip(other) {
            assert!(!one.is_empty() && one != other, "{scheme}: clones send the same queries");
        }
        // The planted leak: a generator that takes nothing from the system.
        let [one, other] = of_two_clones(worlds(Some(|_| Ok(()))));
        for ((scheme, one), other) in schemes.iter().zip(one).zip(other) {
            assert_eq!(one, other, "{scheme}: the leak is not found");
        }
    }
}
