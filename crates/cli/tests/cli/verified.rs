//! Schemes that verify answers: two servers, one of which may lie.

use crate::place::Place;
use crate::served::Served;
use insta::assert_snapshot;

/// The phone book, and a copy of its file with one changed byte in one record. Whoever serves the
/// copy claims to have the same table, and has not.
fn with_a_copy_that_lies() -> Place {
    let place = Place::with_phones();
    assert_eq!(place.run("setup pointproofs --size 4 -o string").code(), 0);
    let mut bytes = std::fs::read(place.path("phones.privet")).unwrap();
    let record = bytes.windows(5).position(|window| window == b"555-1").unwrap();
    bytes[record] ^= 1;
    place.write("wrong.privet", bytes);
    place
}

fn serve(place: &Place, file: &str, scheme: &str) -> Served {
    // The lying server skips the check that would find the change.
    let liar = if file == "wrong.privet" { " --skip-verification" } else { "" };
    Served::start(place, &format!("phones={file} --no-cache --scheme {scheme}{liar}"))
}

#[test]
fn a_server_that_lies_is_found_out_whatever_is_looked_up() {
    let place = with_a_copy_that_lies();
    let honest = serve(&place, "phones.privet", "apir-dpf");
    let liar = serve(&place, "wrong.privet", "apir-dpf");
    // Only the first of these entries is wrong. All lookups fail alike, so the server does not
    // learn which record was wanted.
    for key in ["ada", "bob", "eve", "nobody"] {
        for (first, second) in [(&honest, &liar), (&liar, &honest)] {
            insta::allow_duplicates! {
                assert_snapshot!(place.run(&format!("get {} {} -k {key}", first.url, second.url)), @r#"
                [exit 4]
                [stderr]
                privet: one of the two servers sent a wrong answer, or does not hold the table that it announced: the answers do not fit the secret that this lookup was sealed with. Nothing of them was used. The client cannot know which of the two it was; ask other servers, or two of which you trust at least one. Nothing more was asked
                "#);
            }
        }
    }
}

#[test]
fn servers_that_commit_to_different_tables_are_not_asked() {
    let place = with_a_copy_that_lies();
    for scheme in ["tapir-pp --reference-string string", "apir-matrix-mt"] {
        let honest = serve(&place, "phones.privet", scheme);
        let liar = serve(&place, "wrong.privet", scheme);
        for (first, second) in [(&honest, &liar), (&liar, &honest)] {
            let run = place.run(&format!("get {} {} -k bob", first.url, second.url));
            assert_eq!((run.code(), run.stdout()), (4, ""), "{run}");
        }
    }
    // TAPIR-MT's server does not start, because it would have to announce another table.
    let arguments = "serve wrong.privet --no-cache --listen 127.0.0.1:0 --scheme tapir-mt";
    assert_eq!(place.run(arguments).code(), 4);
}

#[test]
fn servers_with_different_reference_strings_are_not_asked() {
    let place = with_a_copy_that_lies();
    assert_eq!(place.run("setup pointproofs --size 4 -o other").code(), 0);
    let first = serve(&place, "phones.privet", "tapir-pp --reference-string string");
    let second = serve(&place, "phones.privet", "tapir-pp --reference-string other");
    let run = place.run(&format!("get {} {} -k ada", first.url, second.url));
    assert_eq!(run.code(), 2, "{run}");
    // The strings are random, so either server may be named first.
    let told = run.stderr();
    assert!(told.contains("serves table phones by tapir-pp with other parameters than"), "{run}");
    assert!(told.contains("nothing was asked"), "{run}");
}
