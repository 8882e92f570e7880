//! `privet get` where there is no server to talk to.

use crate::place::Place;
use crate::served::Served;
use insta::assert_snapshot;
use std::net::TcpListener;

#[test]
fn an_address_that_is_none_is_refused() {
    let place = Place::new();
    assert_snapshot!(place.run("get example.org -k ada").mistake(), @r#"
    privet: an address begins with http:// or https://, this one does not: example.org
    "#);
    assert_snapshot!(place.run("get ftp://example.org -k ada").mistake(), @r#"
    privet: an address begins with http:// or https://, this one does not: ftp://example.org
    "#);
    assert_snapshot!(place.run("get http:// -k ada").mistake(), @r#"
    privet: this is no address of a server: http://; it looks like http://host:port or http://host:port/path, with a port from 1 to 65535
    "#);
    for port in ["port", "0x50", "70000", ""] {
        let refused = place.run(&format!("get http://127.0.0.1:{port} -k ada"));
        assert!(refused.to_string().starts_with("[exit 2]"), "{port:?}: {refused}");
    }
}

#[test]
fn nobody_listens() {
    let place = Place::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_snapshot!(place.run(&format!("get http://{free} -k ada")), @r#"
    [exit 3]
    [stderr]
    privet: nothing listens at http://127.0.0.1:[PORT]; check the address and the port, and that the server is running
    "#);
}

#[test]
fn somebody_else_listens() {
    let place = Place::with_phones();
    let served = Served::start(&place, "phones.privet --no-cache --metrics-listen 127.0.0.1:0");
    assert_snapshot!(place.run(&format!("get http://{} -k ada", served.metrics_address())), @r#"
    [exit 3]
    [stderr]
    privet: http://127.0.0.1:[PORT] does not speak gRPC ([HOW IT BROKE OFF]); check that the address and port are those of a Privet server, and whether it is http:// or https:// there; a server at its limit of connections looks the same
    "#);
    assert_snapshot!(place.run(&format!("get https://{} -k ada", served.address())), @r#"
    [exit 3]
    [stderr]
    privet: https://127.0.0.1:[PORT] does not speak TLS as expected (received corrupt message of type InvalidContentType); if the server is started without a certificate, write http:// instead of https://
    "#);
}

#[test]
fn a_listener_that_hangs_up_is_no_server() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // The thread ends with the test process.
    std::thread::spawn(move || listener.incoming().for_each(drop));
    place.run(&format!("get http://{address} -k ada")).says(3, &address.to_string());
}
