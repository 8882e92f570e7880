//! Typing mistakes.

use crate::place::Place;
use insta::assert_snapshot;

#[test]
fn mistakes_end_with_2_and_say_what_would_be_right() {
    let place = Place::new();
    assert_eq!(place.run("").code(), 2);
    assert_snapshot!(place.run("gte").mistake(), @r#"
    error: unrecognized subcommand 'gte'

    Usage: privet <COMMAND>

    For more information, try '--help'.
    "#);
    assert_snapshot!(place.run("inspect --verfy x").mistake(), @r#"
    error: unexpected argument '--verfy' found

      tip: a similar argument exists: '--verify'

    Usage: privet inspect --verify <FILE>

    For more information, try '--help'.
    "#);
    assert_snapshot!(place.run("get http://127.0.0.1:7700").mistake(), @r#"
    error: the following required arguments were not provided:
      <--key <KEY>|--index <N>|--keys-from <FILE>>

    Usage: privet get <--key <KEY>|--index <N>|--keys-from <FILE>> <URL>...

    For more information, try '--help'.
    "#);
    assert_snapshot!(place.run("serve").mistake(), @r#"
    error: the following required arguments were not provided:
      <[NAME=]FILE>...

    Usage: privet serve <[NAME=]FILE>...

    For more information, try '--help'.
    "#);
    assert_snapshot!(place.run("serve x --tls-cert cert.pem").mistake(), @r#"
    error: the following required arguments were not provided:
      --tls-key <FILE>

    Usage: privet serve --tls-cert <FILE> --tls-key <FILE> <[NAME=]FILE>...

    For more information, try '--help'.
    "#);
    assert_snapshot!(place.run("serve x --scheme onion").mistake(), @r#"
    error: invalid value 'onion' for '--scheme <SCHEME>': there is no scheme "onion" here; known are: simplepir, simplepir-packed, doublepir, dpf, dummy-subsets, dummy-subsets-two, harmony, piano, piano-all-parities, singlepass, tapir-mt, apir-dpf, apir-matrix-mt, download, tapir-pp, finite-differences, finite-differences-many

    For more information, try '--help'.
    "#);
    assert_snapshot!(place.run("serve x --scheme simplpir").mistake(), @r#"
    error: invalid value 'simplpir' for '--scheme <SCHEME>': there is no scheme "simplpir" here; known are: simplepir, simplepir-packed, doublepir, dpf, dummy-subsets, dummy-subsets-two, harmony, piano, piano-all-parities, singlepass, tapir-mt, apir-dpf, apir-matrix-mt, download, tapir-pp, finite-differences, finite-differences-many; did you mean simplepir?

    For more information, try '--help'.
    "#);
    assert_snapshot!(place.run("serve x --scheme plain").mistake(), @r#"
    error: invalid value 'plain' for '--scheme <SCHEME>': plain lookups are not private, so they are not served; `privet bench` measures them for comparison

    For more information, try '--help'.
    "#);
    assert_snapshot!(place.run("serve x --listen localhost").mistake(), @r#"
    error: invalid value 'localhost' for '--listen <ADDR>': an IP address and a port are expected, such as 127.0.0.1:7700 or [::]:7700, or a port of this machine, such as 7700

    For more information, try '--help'.
    "#);
    assert_snapshot!(place.run("serve x --batch-window 5000").mistake(), @r#"
    error: invalid value '5000' for '--batch-window <MS>': a number of milliseconds from 0 to 1000 is expected

    For more information, try '--help'.
    "#);
    assert_snapshot!(place.run("build x -o y --value a --raw-value b").mistake(), @r"
    error: the argument '--value <COLUMN,…>' cannot be used with '--raw-value <COLUMN>'

    Usage: privet build --output <FILE> --value <COLUMN,…> <INPUT>...

    For more information, try '--help'.
    ");
    assert_snapshot!(place.run("build x -o y --max-value 2^64").mistake(), @r#"
    error: invalid value '2^64' for '--max-value <BYTES>': "2^64" is no number of bytes such as 100, 2^20, 64k or 1GiB

    For more information, try '--help'.
    "#);
    assert_eq!(place.files(), Vec::<String>::new());
}
