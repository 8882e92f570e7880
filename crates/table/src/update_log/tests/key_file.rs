use super::*;
use privet_core::{Blame, Reason};
use std::fs;
use tempfile::TempDir;

#[test]
fn a_key_comes_back_from_its_file() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("publisher.key");
    let made = PublisherKey::generate().expect("entropy");
    made.create_file(&path).expect("nothing is there");
    let read = PublisherKey::from_file(&path).expect("whole");
    assert_eq!(read.id(), made.id());
    assert_eq!(read.sign(b"message"), made.sign(b"message"));
    let text = fs::read_to_string(&path).expect("text");
    let digits = text
        .strip_prefix("privet-publisher-secret-key-1 ")
        .and_then(|rest| rest.strip_suffix('\n'));
    assert_eq!(digits.expect("one line").len(), 64);

    let error = PublisherKey::generate().expect("entropy").create_file(&path).expect_err("taken");
    assert_eq!(error.blame(), Blame::ApiMisuse);
    assert_eq!(fs::read_to_string(&path).expect("text"), text);
    assert_ne!(PublisherKey::generate().expect("entropy").id(), made.id());
}

#[test]
fn what_is_no_key_is_refused() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("publisher.key");
    let error = PublisherKey::from_file(&path).err().expect("not there");
    assert_eq!(error.reason(), Some(Reason::NoPublisherKey), "{error}");
    key(1).create_file(&path).expect("nothing is there");
    let whole = fs::read(&path).expect("readable");
    let shorter = (0..whole.len()).map(|len| whole[..len].to_vec());
    let longer = [[&whole[..], b"\n"].concat(), [&whole[..], &whole].concat()];
    let mut no_digit = whole.clone();
    no_digit[40] = b'g';
    let mut not_text = whole.clone();
    not_text[40] = 0xff;
    for bytes in shorter.chain(longer).chain([no_digit, not_text]) {
        fs::write(&path, &bytes).expect("writable");
        let error = PublisherKey::from_file(&path).err().expect("no key");
        assert_eq!(error.blame(), Blame::ApiMisuse);
        assert!(!error.message().contains("0101"), "a secret is never told: {error}");
    }
    fs::write(&path, &whole).expect("writable");
    assert_eq!(PublisherKey::from_file(&path).expect("whole").id(), key(1).id());
}

#[cfg(unix)]
#[test]
fn a_key_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("publisher.key");
    key(1).create_file(&path).expect("nothing is there");
    let mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("ours");
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    for too_open in [0o640, 0o604, 0o620, 0o666] {
        mode(too_open);
        let error = PublisherKey::from_file(&path).err().expect("others can read it");
        assert!(error.message().contains("chmod 600"), "{error}");
    }
    mode(0o400);
    PublisherKey::from_file(&path).expect("its owner alone can read it");
}

#[test]
fn a_publisher_is_read_as_it_is_printed() {
    let id = key(1).id();
    assert_eq!(id.to_string().parse::<PublisherId>().expect("as printed"), id);
    for wrong in
        ["", "00", &id.to_string()[1..], &format!("{id}0"), &id.to_string().replace('8', "x")]
    {
        let error = wrong.parse::<PublisherId>().expect_err("no publisher");
        assert_eq!(error.blame(), Blame::ApiMisuse);
    }
}
