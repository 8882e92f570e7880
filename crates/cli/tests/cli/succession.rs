//! Tables that succeed others, and keys that change: from `keygen --next` to clients that follow.

use crate::place::{Place, Run};
use crate::served::Served;
use privet_table::publish::{self, Built, NewTable};
use std::fs;

const OLD: &str = "country,capital\nKenya,Nairobi\nPeru,Lima\n";
const NEW: &str = "country,capital,population\nKenya,Nairobi,4397000\nBhutan,Thimphu,114600\n";

/// A place with a publisher's key, a next key, and a table that names both; and the digest of the
/// next key.
fn owner() -> (Place, String) {
    let place = Place::new();
    assert_eq!(place.run("keygen -o p.key").code(), 0);
    let next = place.run("keygen --next -o next.key --json").json();
    let digest = next["next_key"].as_str().unwrap().to_owned();
    place.write("old.csv", OLD);
    place.write("new.csv", NEW);
    place.build(&format!(
        "old.csv --key country --publisher-key p.key --next-key {digest} -o t.privet"
    ));
    (place, digest)
}

const SCHEME: &str = "t.privet --scheme dummy-subsets";

/// Moves a table with its log into the place of another, which is kept under `kept`.
fn move_into_place(place: &Place, new: &str, old: &str, kept: &str) {
    for end in ["", ".updates"] {
        let path = |name: &str| place.path(&format!("{name}{end}"));
        fs::rename(path(old), path(kept)).unwrap();
        fs::rename(path(new), path(old)).unwrap();
    }
}

/// Copies a table with its log.
fn copy(place: &Place, from: &str, to: &str) {
    for end in ["", ".updates"] {
        let path = |name: &str| place.path(&format!("{name}{end}"));
        fs::copy(path(from), path(to)).unwrap();
    }
}

/// Serves the table that is now at `t.privet`, where the one before was served.
fn serve_again(place: &Place, before: Served) -> Served {
    let address = before.address().to_owned();
    before.terminate();
    Served::start_at(place, &address, SCHEME)
}

fn get(place: &Place, server: &Served, key: &str) -> Run {
    place.run(&format!("get http://{} --key {key}", server.address()))
}

fn inspect(place: &Place, table: &str) -> serde_json::Value {
    place.run(&format!("inspect {table} --json")).json()
}

#[test]
fn clients_follow_to_a_successor_without_a_question_and_never_back() {
    let (place, digest) = owner();
    let server = Served::start(&place, SCHEME);
    assert_eq!(get(&place, &server, "Kenya").stdout(), "{\"capital\":\"Nairobi\"}\n");

    // Without the next key, nothing is signed, and the old table goes on.
    let build = "build new.csv --key country --succeeds t.privet --publisher-key p.key";
    let refused = place.run(&format!("{build} -o new.privet")).refusal();
    assert!(refused.contains(&format!("{digest} (--hand-over-to)")), "{refused}");
    let built = place.run(&format!("{build} --hand-over-to next.key -o new.privet"));
    assert_eq!(built.code(), 0, "{}", built.stderr());
    assert!(built.stdout().contains("succeeds"), "{}", built.stdout());
    // Again, as after a crash between the two logs: the same table is the successor.
    let log = fs::read(place.path("new.privet.updates")).unwrap();
    fs::remove_file(place.path("new.privet.updates")).unwrap();
    let again = place.run(&format!("{build} --hand-over-to next.key -o new.privet"));
    assert_eq!(again.code(), 0, "{}", again.stderr());
    assert_eq!(fs::read(place.path("new.privet.updates")).unwrap(), log);
    // So too for a program that calls the library.
    fs::remove_file(place.path("new.privet.updates")).unwrap();
    let (output, succeeds) = (place.path("new.privet"), Some(place.path("t.privet")));
    let wanted = NewTable { output, succeeds, ..NewTable::default() };
    let Built::Completed(told) = publish::build(&wanted, vec![], &mut |_| Ok(())).unwrap() else {
        panic!("the table was built again")
    };
    assert!(told.contains("its log is there now, and nothing was built"), "{told}");
    assert_eq!(fs::read(place.path("new.privet.updates")).unwrap(), log);
    let ended = place.run("update t.privet --publisher-key p.key --delete Peru").refusal();
    assert!(ended.contains("succeeds it"), "{ended}");
    let (old, new) = (inspect(&place, "t.privet"), inspect(&place, "new.privet"));
    assert_eq!(old["updates"]["succeeded_by"], new["table_id"]);
    assert_eq!(new["updates"]["succeeds"][0], old["table_id"]);
    assert_eq!(old["updates"]["next_key"], digest);

    move_into_place(&place, "new.privet", "t.privet", "before.privet");
    let server = serve_again(&place, server);
    let found = get(&place, &server, "Kenya");
    assert_eq!(found.stdout(), "{\"capital\":\"Nairobi\",\"population\":\"4397000\"}\n");
    assert_eq!(get(&place, &server, "Peru").code(), 1);
    let state = place.run("state show --json").json();
    assert_eq!(state["left"][0]["table_id"], old["table_id"]);

    // The next key is the publisher's now.
    let updated = place.run("update t.privet --publisher-key next.key --delete Kenya");
    assert_eq!(updated.code(), 0, "{}", updated.stderr());
    let server = serve_again(&place, server);
    assert_eq!(get(&place, &server, "Kenya").code(), 1);

    move_into_place(&place, "before.privet", "t.privet", "after.privet");
    let server = serve_again(&place, server);
    let back = get(&place, &server, "Peru");
    assert_eq!(back.code(), 4);
    assert!(back.stderr().contains("left before for its successor"), "{}", back.stderr());
}

#[test]
fn a_list_that_has_outgrown_its_table_goes_on_in_a_successor_of_the_same_publisher() {
    let place = Place::new();
    let publisher = place.run("keygen -o p.key --json").json()["publisher"].clone();
    let publisher = publisher.as_str().unwrap();
    place.write("old.csv", OLD);
    place.build("old.csv --key country --publisher-key p.key -o t.privet");
    let rows: String = (0..50).map(|row| format!("place-{row},capital {row}\n")).collect();
    place.write("long.csv", format!("country,capital\n{rows}"));
    let server = Served::start(&place, SCHEME);
    let get = |server: &Served, key: &str| {
        place.run(&format!("get http://{} --publisher {publisher} --key {key}", server.address()))
    };
    for state in ["", "--state late"] {
        assert_eq!(get(&server, &format!("Peru {state}")).code(), 0);
    }

    let update = place.run("update t.privet --publisher-key p.key --replace-with long.csv");
    assert!(update.refusal().contains("(`privet build --succeeds`)"), "{}", update.stderr());
    let build = "long.csv --key country --authenticate --publisher-key p.key";
    place.build(&format!("{build} --succeeds t.privet -o new.privet"));
    move_into_place(&place, "new.privet", "t.privet", "before.privet");
    let server = serve_again(&place, server);
    assert_eq!(get(&server, "place-7").stdout(), "{\"capital\":\"capital 7\"}\n");

    // Tables that are verified record by record take no updates, and go on in the same way.
    let update = place.run("update t.privet --publisher-key p.key --delete place-1");
    assert!(update.refusal().contains("(`privet build --succeeds`)"), "{}", update.stderr());
    place.build("old.csv --key country --publisher-key p.key --succeeds t.privet -o new.privet");
    move_into_place(&place, "new.privet", "t.privet", "before.privet");
    let server = serve_again(&place, server);
    for state in ["", "--state late"] {
        let found = get(&server, &format!("Peru {state}"));
        assert_eq!(found.code(), 0, "{state}: {}", found.stderr());
    }
}

#[test]
fn a_thief_of_the_publishers_key_signs_updates_until_they_are_revoked_and_no_successor() {
    let (place, _) = owner();
    copy(&place, "t.privet", "good.privet");
    let server = Served::start(&place, SCHEME);
    assert_eq!(get(&place, &server, "Kenya").code(), 0);

    // The thief's history of the same table names no next key, so it is signed as he likes.
    fs::copy(place.path("t.privet"), place.path("evil.privet")).unwrap();
    let begun = place.run("update evil.privet --publisher-key p.key --begin-history");
    assert_eq!(begun.code(), 0, "{}", begun.stderr());
    assert_eq!(inspect(&place, "evil.privet")["table_id"], inspect(&place, "t.privet")["table_id"]);
    place.build("new.csv --key country --publisher-key p.key --succeeds evil.privet -o his.privet");
    move_into_place(&place, "his.privet", "t.privet", "before.privet");
    let server = serve_again(&place, server);
    let refused = get(&place, &server, "Kenya");
    assert_eq!(refused.code(), 4);
    assert!(refused.stderr().contains("stolen the publisher's key"), "{}", refused.stderr());

    // His updates are believed, until the next key says that they are void.
    move_into_place(&place, "before.privet", "t.privet", "his.privet");
    let update = place.run("update t.privet --publisher-key p.key --delete Kenya");
    assert_eq!(update.code(), 0, "{}", update.stderr());
    let server = serve_again(&place, server);
    assert_eq!(get(&place, &server, "Kenya").code(), 1);
    place.build(
        "new.csv --key country --succeeds good.privet --hand-over-to next.key -o new.privet",
    );
    move_into_place(&place, "new.privet", "t.privet", "before.privet");
    let server = serve_again(&place, server);
    assert_eq!(get(&place, &server, "Bhutan").code(), 0);
}

#[test]
fn keys_change_under_a_server_and_its_clients() {
    let (place, _) = owner();
    let server = Served::start(&place, "t.privet --scheme simplepir --metrics-listen 127.0.0.1:0");
    assert_eq!(get(&place, &server, "Peru").code(), 0);
    let later = place.run("keygen --next -o later.key --json").json();
    let later = later["next_key"].as_str().unwrap();
    let rotate = "update t.privet --publisher-key p.key";
    assert_eq!(place.run(&format!("{rotate} --hand-over-to later.key")).code(), 2);
    let rotate_and = format!("{rotate} --hand-over-to next.key --next-key {later}");
    assert_eq!(place.run(&format!("{rotate_and} --delete Peru")).code(), 2);
    // Nothing is tried out with keys: what is signed counts for good.
    let log = fs::read(place.path("t.privet.updates")).unwrap();
    for keys in [&rotate_and, &format!("{rotate} --next-key {later}")] {
        assert_eq!(place.run(&format!("{keys} --dry-run")).code(), 2);
    }
    assert_eq!(fs::read(place.path("t.privet.updates")).unwrap(), log);
    let done = place.run(&rotate_and);
    assert_eq!(done.code(), 0, "{}", done.stderr());
    let told = "is at epoch 1, in which its keys change";
    assert!(done.stdout().contains(told), "{}", done.stdout());
    assert_eq!(place.run(&format!("{rotate} --delete Peru")).code(), 2, "the old key");
    let delete = place.run("update t.privet --publisher-key next.key --delete Peru");
    assert_eq!(delete.code(), 0, "{}", delete.stderr());
    server.until_metric("privet_table_epoch{table=\"t\"}", 2);
    let gone = get(&place, &server, "Peru");
    assert_eq!(gone.code(), 1, "{}", gone.stderr());
}
