//! `privet completions` and `privet man`.

use crate::place::Place;

#[test]
fn every_shell_is_told_of_all_commands() {
    let place = Place::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = place.run(&format!("completions {shell}"));
        assert_eq!((script.code(), script.stderr()), (0, ""), "{script}");
        for word in ["keys-from", "metrics-listen", "tradeoff", "pointproofs"] {
            assert!(script.stdout().contains(word), "{shell} is not told of {word}");
        }
    }
    assert_eq!(place.run("completions tcl").code(), 2);
}

#[test]
fn the_manual_has_a_page_for_each_command() {
    let place = Place::new();
    let page = place.run("man");
    assert_eq!((page.code(), page.stderr()), (0, ""), "{page}");
    assert!(page.stdout().contains(".TH privet 1") && page.stdout().contains("privet\\-get(1)"));
    assert_eq!(place.run("man pages/man1").code(), 0);
    for name in ["privet", "privet-get", "privet-state-reset", "privet-setup-points"] {
        let page = std::fs::read_to_string(place.path(&format!("pages/man1/{name}.1"))).unwrap();
        assert!(page.contains(&format!(".TH {name} 1")), "{page}");
        assert!(page.contains("Examples:"), "{page}");
    }
    place.write("file", "");
    place.run("man file").says(2, "another directory");
}
