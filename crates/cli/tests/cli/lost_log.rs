//! A table's log of updates that is lost, older than its table, or under another name; and tables
//! that are signed for the first time.

use crate::place::{Place, Run};
use crate::served::Served;
use insta::assert_snapshot;
use std::fs;

const LOG: &str = "phones.privet.updates";

/// A phone book that was signed from the start, and has had two epochs. `early` is its log after
/// the first of them.
fn place() -> Place {
    let place = Place::with_phones();
    assert_eq!(place.run("keygen -o publisher.key").code(), 0);
    place.build("phones.csv --key name --publisher-key publisher.key -o phones.privet");
    update(&place, 1);
    fs::copy(place.path(LOG), place.path("early")).unwrap();
    update(&place, 2);
    place
}

fn update(place: &Place, number: u32) -> Run {
    let set = format!(r#"--set ada={{"phone":"555-{number}","floor":"{number}"}}"#);
    place.run(&format!("update phones.privet --publisher-key publisher.key {set}")).succeeds()
}

/// Every command that reads a table file.
const READERS: [&str; 6] = [
    "serve phones.privet --no-cache --listen 127.0.0.1:0",
    "inspect phones.privet",
    "inspect phones.privet --verify --head 1",
    "update phones.privet --publisher-key publisher.key --delete ada",
    "plan phones.privet",
    "setup points phones.privet --scheme finite-differences -o points",
];

/// Checks that every command refuses the table, and leaves both files as they are.
fn refused(place: &Place, code: i32, message: &str) {
    let files = || ["phones.privet", LOG].map(|name| fs::read(place.path(name)).ok());
    let before = files();
    for reader in READERS {
        let run = place.run(reader);
        assert_eq!(run.code(), code, "{reader}: {run}");
        assert!(run.stderr().contains(message), "{reader}: {run}");
        assert!(files() == before, "{reader}");
    }
}

/// Checks that the table is whole and at this epoch, and that it is served and goes on.
fn whole(place: &Place, epoch: u32) {
    let shown = place.run("inspect phones.privet --verify --json").json();
    assert_eq!(shown["updates"]["epoch"], epoch);
    let served = Served::start(place, "phones.privet --no-cache");
    let state = tempfile::tempdir().unwrap();
    let state = state.path().to_str().unwrap();
    let run = place.run(&format!("get {} --state {state} -k ada", served.url));
    assert!(run.stdout().contains(&format!("555-{epoch}")), "{run}");
    update(place, epoch + 1);
}

#[test]
fn a_table_without_its_log_is_refused_by_every_command() {
    let place = place();
    fs::rename(place.path(LOG), place.path("kept")).unwrap();
    refused(&place, 3, "which has reached epoch 2, and phones.privet.updates is not there");
    assert_snapshot!(place.run("serve phones.privet --listen 127.0.0.1:0").refusal(), @"
    [exit 3]
    privet: phones.privet has a log of updates, which has reached epoch 2, and phones.privet.updates is not there: bring it back from a backup, or copy it from another operator of the table (`privet update --begin-history`, if no copy is left)
    ");
    // A table in whose file all epochs are needs it as well: the next epoch names the last.
    fs::rename(place.path("kept"), place.path(LOG)).unwrap();
    let compact = "update phones.privet --publisher-key publisher.key --compact";
    assert_eq!(place.run(compact).code(), 0);
    fs::rename(place.path(LOG), place.path("kept")).unwrap();
    refused(&place, 3, "which has reached epoch 2, and phones.privet.updates is not there");
    fs::rename(place.path("kept"), place.path(LOG)).unwrap();
    whole(&place, 2);
}

#[test]
fn a_log_that_is_older_than_its_table_is_refused() {
    let place = place();
    let kept = fs::read(place.path(LOG)).unwrap();
    let early = fs::read(place.path("early")).unwrap();
    place.write(LOG, &early);
    refused(&place, 3, "it ends with epoch 1, and phones.privet has had epoch 2");
    // Cut where an epoch ends, the log itself says that it had more.
    place.write(LOG, &kept[..early.len()]);
    refused(&place, 4, "the update log is damaged");
    // What an interrupted writer leaves at the end counts as before: nobody has seen it.
    place.write(LOG, [&kept[..], b"unfinished"].concat());
    whole(&place, 2);
}

/// Servers go on with what they have.
#[cfg(unix)]
#[test]
fn a_running_server_goes_on_without_the_log_and_with_an_older_one() {
    let place = place();
    let epoch = "privet_table_epoch{table=\"phones\"}";
    let failed = "privet_updates_failed_total{table=\"phones\"}";
    let served =
        Served::start(&place, "phones.privet --no-cache --watch 0 --metrics-listen 127.0.0.1:0");
    served.until_metric(epoch, 2);
    fs::rename(place.path(LOG), place.path("kept")).unwrap();
    served.hang_up();
    served.until_metric(failed, 1);
    fs::rename(place.path("early"), place.path(LOG)).unwrap();
    served.hang_up();
    served.until_metric(failed, 2);
    let run = place.run(&format!("get {} -k ada", served.url));
    assert!(run.stdout().contains("555-2"), "{run}");
    place.server_log(|log| log.contains("is not there") && log.contains("it ends with epoch 1"));
    fs::rename(place.path("kept"), place.path(LOG)).unwrap();
    update(&place, 3);
    served.hang_up();
    served.until_metric(epoch, 3);
}

/// The mark is written into the file that a server has open.
#[cfg(unix)]
#[test]
fn updates_do_not_make_a_served_table_seem_changed() {
    let place = place();
    let served = Served::start(
        &place,
        "phones.privet --no-cache --watch 0 --scrub-rate 10000000 --metrics-listen 127.0.0.1:0",
    );
    for number in 3..8 {
        update(&place, number);
        served.hang_up();
        served.until_metric("privet_table_epoch{table=\"phones\"}", number.into());
    }
    served.until_metric("privet_updates_failed_total{table=\"phones\"}", 0);
    served.until_metric("privet_table_damaged{table=\"phones\"}", 0);
    let log = fs::read_to_string(place.path("server.log")).unwrap();
    assert!(!log.contains("written to") && !log.contains("damaged"), "{log}");
}

#[test]
fn a_log_under_its_earlier_name_is_served_and_goes_on() {
    let place = place();
    fs::rename(place.path(LOG), place.path("phones.privet.log")).unwrap();
    whole(&place, 2);
    assert!(!place.path(LOG).exists());
    fs::copy(place.path("phones.privet.log"), place.path(LOG)).unwrap();
    refused(&place, 2, "phones.privet.updates and phones.privet.log are both there");
    fs::remove_file(place.path("phones.privet.log")).unwrap();
    whole(&place, 3);
}

#[test]
fn the_first_signature_shuts_out_clients_so_it_is_asked_for() {
    let place = Place::with_phones();
    assert_eq!(place.run("keygen -o publisher.key").code(), 0);
    let unsigned = fs::read(place.path("phones.privet")).unwrap();
    let served = Served::start(&place, "phones.privet --no-cache");
    assert_eq!(place.run(&format!("get {} -k ada", served.url)).code(), 0);
    let address = served.address().to_owned();
    drop(served);

    let delete = "update phones.privet --publisher-key publisher.key --delete bob";
    assert_snapshot!(place.run(delete).mistake(), @"
    privet: phones.privet was built without a publisher, and this would be its first signature: clients that know the table refuse it from then on, with exit code 4, until their users accept it as a new table. If clients know it, build a table with the publisher's key under another name instead, and let them change to that. If none does, or that is wanted, begin its history (--begin-history)
    ");
    assert!(!place.path(LOG).exists());
    assert!(fs::read(place.path("phones.privet")).unwrap() == unsigned);
    place.run(&format!("{delete} --begin-history")).succeeds();
    // The flag is not left in a script by mistake.
    place.run(&format!("{delete} --begin-history")).says(2, "has its history already");

    let served = Served::start_at(&place, &address, "phones.privet --no-cache");
    let get = format!("get {} -k ada", served.url);
    let shut_out = place.run(&get);
    assert_eq!(shut_out.code(), 4, "{shut_out}");
    assert_eq!(place.run(&format!("{get} --accept-new-table")).code(), 0);
    assert_eq!(place.run(&get).code(), 0);
}

/// A history that is begun again does not contradict the one that clients have followed: it is
/// another table's.
#[test]
fn a_log_that_is_lost_for_good_ends_its_table() {
    let place = place();
    let served = Served::start(&place, "phones.privet --no-cache");
    assert_eq!(place.run(&format!("get {} -k ada", served.url)).code(), 0);
    let address = served.address().to_owned();
    drop(served);
    let before = place.run("inspect phones.privet --json").json();
    fs::remove_file(place.path(LOG)).unwrap();
    let begun = "update phones.privet --publisher-key publisher.key --begin-history --json";
    let begun = place.run(begun).json();
    assert_eq!((&begun["epoch"], &begun["digest"]), (&0.into(), &before["digest"]));
    let after = place.run("inspect phones.privet --json").json();
    assert_ne!(after["table_id"], before["table_id"]);
    for number in 1..4 {
        update(&place, number);
    }
    let served = Served::start_at(&place, &address, "phones.privet --no-cache");
    let get = format!("get {} -k ada", served.url);
    let refused = place.run(&get);
    assert_eq!(refused.code(), 4, "{refused}");
    let accepted = place.run(&format!("{get} --accept-new-table"));
    assert!(accepted.stdout().contains("555-3"), "{accepted}");
}
