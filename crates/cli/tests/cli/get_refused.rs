//! `privet get` where there is no server to talk to.

use crate::place::Place;
use crate::served::Served;
use insta::assert_snapshot;
use std::net::TcpListener;

#[test]
fn an_address_that_is_none_is_refused() {
    let place = Place::new();
    assert_snapshot!(place.run("get example.org -k ada"), @"");
    assert_snapshot!(place.run("get ftp://example.org -k ada"), @"");
    assert_snapshot!(place.run("get http:// -k ada"), @"");
    assert_snapshot!(place.run("get http://127.0.0.1:port -k ada"), @"");
}

#[test]
fn nobody_listens() {
    let place = Place::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_snapshot!(place.run(&format!("get http://{free} -k ada")), @"");
}

#[test]
fn somebody_else_listens() {
    let place = Place::with_phones();
    let served = Served::start(&place, "phones.privet --no-cache --metrics-listen 127.0.0.1:0");
    assert_snapshot!(place.run(&format!("get http://{} -k ada", served.metrics_address())), @"");
    assert_snapshot!(place.run(&format!("get https://{} -k ada", served.address())), @"");
}

#[test]
fn a_listener_that_hangs_up_is_no_server() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Ends with the process of the test.
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let run = place.run(&format!("get http://{address} -k ada"));
    assert_eq!(run.code(), 3, "{run}");
    assert!(run.stderr().contains(&address.to_string()), "{run}");
}
