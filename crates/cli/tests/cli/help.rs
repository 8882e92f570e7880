//! Help, version, and mistakes in what is typed.

use crate::place::Place;
use insta::assert_snapshot;

#[test]
fn the_command_explains_itself() {
    let place = Place::new();
    assert_snapshot!(place.run("--help"), @"");
    assert_snapshot!(place.run("--version"), @"");
}

#[test]
fn build_explains_itself() {
    assert_snapshot!(Place::new().run("build --help"), @"");
}

#[test]
fn inspect_explains_itself() {
    assert_snapshot!(Place::new().run("inspect --help"), @"");
}

#[test]
fn serve_explains_itself() {
    assert_snapshot!(Place::new().run("serve --help"), @"");
}

#[test]
fn get_explains_itself() {
    assert_snapshot!(Place::new().run("get --help"), @"");
}

#[test]
fn demo_explains_itself() {
    assert_snapshot!(Place::new().run("demo --help"), @"");
}

#[test]
fn bench_explains_itself() {
    assert_snapshot!(Place::new().run("bench --help"), @"");
}

#[test]
fn doctor_explains_itself() {
    assert_snapshot!(Place::new().run("doctor --help"), @"");
}

#[test]
fn mistakes_end_with_2_and_say_what_would_be_right() {
    let place = Place::new();
    assert_eq!(place.run("").code(), 2);
    assert_snapshot!(place.run("gte"), @"");
    assert_snapshot!(place.run("inspect --verfy x"), @"");
    assert_snapshot!(place.run("get http://127.0.0.1:7700"), @"");
    assert_snapshot!(place.run("serve"), @"");
    assert_snapshot!(place.run("serve x --tls-cert cert.pem"), @"");
    assert_snapshot!(place.run("serve x --scheme onion"), @"");
    assert_snapshot!(place.run("serve x --listen localhost"), @"");
    assert_snapshot!(place.run("serve x --batch-window 5000"), @"");
    assert_snapshot!(place.run("build x -o y --value a --raw-value b"), @"");
    assert_snapshot!(place.run("build x -o y --max-value 2^64"), @"");
    assert_eq!(place.files(), Vec::<String>::new());
}
