//! Certificates and keys in every form that people have: those that can be used are, and for the
//! others the server says what is wrong and what to do.

use crate::place::{Place, Run};
use crate::served::Served;
use insta::assert_snapshot;
use std::process::Command;

/// Runs a script in the place, whose shell stops at the first failure.
fn shell(place: &Place, script: &str) {
    let mut command = Command::new("sh");
    let done = command.args(["-ec", script]).current_dir(place.path("")).output().unwrap();
    assert!(done.status.success(), "{script}\n{}", String::from_utf8_lossy(&done.stderr));
}

const NAMED: &str = "-days 30 -subj /CN=localhost -addext subjectAltName=DNS:localhost";

/// A place with a certificate of each kind of key, as `openssl` makes them.
fn with_certificates() -> Place {
    let place = Place::with_phones();
    shell(
        &place,
        &format!(
            "umask 077
            make() {{ name=$1; shift; openssl req -x509 \"$@\" -nodes -keyout $name.key \
                -out $name.pem {NAMED}; }}
            make rsa -newkey rsa:2048
            make p256 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1
            make p384 -newkey ec -pkeyopt ec_paramgen_curve:secp384r1
            make ed25519 -newkey ed25519"
        ),
    );
    place
}

fn serve(cert: &str, key: &str) -> String {
    format!("phones.privet --scheme download --no-cache --tls-cert {cert} --tls-key {key}")
}

#[test]
fn keys_of_all_common_forms_are_served() {
    let place = with_certificates();
    shell(
        &place,
        "umask 077
        openssl rsa -in rsa.key -traditional -out rsa-pkcs1.key
        grep -q 'BEGIN RSA PRIVATE KEY' rsa-pkcs1.key
        openssl ec -in p256.key -out p256-ec.key
        openssl ecparam -name prime256v1 -out p256-sec1.key
        cat p256-ec.key >> p256-sec1.key
        grep -q 'BEGIN EC PARAMETERS' p256-sec1.key
        printf '\\357\\273\\277' > p256-marked.key
        cat p256.key >> p256-marked.key
        cat p256.pem > p256-both.key
        cat p256.key >> p256-both.key",
    );
    for (cert, keys) in [
        ("rsa", &["rsa", "rsa-pkcs1"][..]),
        ("p256", &["p256", "p256-ec", "p256-sec1", "p256-marked", "p256-both"]),
        ("p384", &["p384"]),
        ("ed25519", &["ed25519"]),
    ] {
        for key in keys {
            let served =
                Served::start(&place, &serve(&format!("{cert}.pem"), &format!("{key}.key")));
            let url = served.url.replace("127.0.0.1", "localhost");
            let got = place.run(&format!("get {url} -k ada --ca-file {cert}.pem -q"));
            assert_eq!(got.code(), 0, "{key}: {got}");
        }
    }
}

#[test]
fn what_is_wrong_with_a_certificate_or_its_key_is_said() {
    let place = with_certificates();
    shell(
        &place,
        &format!(
            "umask 077
            openssl req -new -key rsa.key -out request.pem -subj /CN=localhost
            openssl x509 -req -in request.pem -signkey rsa.key -days 30 -out v1.pem
            openssl pkcs8 -topk8 -in p256.key -passout pass:x -out encrypted.key
            openssl rsa -in rsa.key -traditional -aes128 -passout pass:x -out encrypted-pkcs1.key
            openssl req -x509 -newkey rsa:1024 -nodes -keyout short.key -out short.pem {NAMED}
            openssl x509 -in p256.pem -outform DER -out der.pem
            openssl pkey -in p256.key -outform DER -out der.key
            openssl pkcs12 -export -in p256.pem -inkey p256.key -passout pass: -out both.p12
            openssl pkey -in p256.key -pubout -out public.key
            openssl ecparam -genkey -name secp256k1 -noout -out other-curve.key
            head -3 p256.key > cut.key
            : > empty.key"
        ),
    );
    let shown = Command::new("openssl")
        .args(["x509", "-noout", "-text", "-in", "v1.pem"])
        .current_dir(place.path(""))
        .output()
        .unwrap();
    let is_of_version_1 = String::from_utf8_lossy(&shown.stdout).contains("Version: 1 ");
    let mut cases = vec![
        ("p256.pem", "encrypted.key", "encrypted with a passphrase"),
        ("rsa.pem", "encrypted-pkcs1.key", "encrypted with a passphrase"),
        ("short.pem", "short.key", "the RSA key in short.key is too short"),
        ("p256.pem", "p384.key", "is not that of the certificate in p256.pem"),
        ("p256.pem", "rsa.key", "is not that of the certificate in p256.pem"),
        ("der.pem", "p256.key", "der.pem holds no certificate in PEM form: it is in DER"),
        ("p256.pem", "der.key", "it is in DER or PKCS#12 form"),
        ("both.p12", "p256.key", "openssl pkcs12"),
        ("p256.pem", "public.key", "it holds a public key"),
        ("p256.pem", "p256.pem", "it holds a certificate"),
        ("p256.key", "p256.key", "it holds a private key"),
        ("request.pem", "rsa.key", "a request for a certificate"),
        ("p256.pem", "empty.key", "it is empty"),
        ("p256.pem", "cut.key", "it is damaged"),
        ("p256.pem", "other-curve.key", "ECDSA on P-256 or P-384"),
    ];
    if is_of_version_1 {
        // Later releases of openssl make version 3 by the same command.
        cases.push(("v1.pem", "rsa.key", "is of version 1 of X.509, and clients take version 3"));
    }
    for (cert, key, words) in cases {
        let refused = place.run(&format!("serve --listen 127.0.0.1:0 {}", serve(cert, key)));
        assert_eq!(refused.code(), 2, "{cert} {key}: {refused}");
        assert!(refused.refusal().contains(words), "{cert} {key}: {refused}");
    }
    // The same at a client.
    for (file, words) in [
        ("der.pem", "it is in DER"),
        ("p256.key", "it holds a private key"),
        ("request.pem", "a request for a certificate"),
        ("empty.key", "it is empty"),
    ] {
        let refused = place.run(&format!("get https://localhost:1 -k ada --ca-file {file}"));
        assert_eq!(refused.code(), 2, "{refused}");
        assert!(refused.stderr().contains(words), "{file}: {refused}");
    }
}

/// The server starts, and whoever runs it sees why nobody comes.
#[test]
fn a_certificate_out_of_date_is_warned_of_and_shown() {
    let place = Place::with_phones();
    let write = |name: &str, params: rcgen::CertificateParams| {
        let key = rcgen::KeyPair::generate().unwrap();
        place.write(&format!("{name}.pem"), params.self_signed(&key).unwrap().pem());
        place.write_secret(&format!("{name}.key"), key.serialize_pem());
    };
    let mut expired = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    expired.not_after = rcgen::date_time_ymd(2020, 1, 1);
    write("expired", expired);
    let mut early = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    early.not_before = rcgen::date_time_ymd(2999, 1, 1);
    write("early", early);
    write("nameless", rcgen::CertificateParams::default());
    for (name, warning) in [
        ("expired", "the TLS certificate has expired (Wed, 01 Jan 2020 00:00:00 GMT)"),
        ("early", "is not valid before Tue, 01 Jan 2999 00:00:00 GMT"),
        ("nameless", "the TLS certificate has no names (subjectAltName)"),
    ] {
        let arguments = serve(&format!("{name}.pem"), &format!("{name}.key"));
        let served = Served::start(&place, &format!("{arguments} --metrics-listen 127.0.0.1:0"));
        let log = place.server_log(|log| log.contains("TLS certificate"));
        assert!(log.contains(warning), "{log}");
        let url = served.url.replace("127.0.0.1", "localhost");
        let refused: Run = place.run(&format!("get {url} -k ada --ca-file {name}.pem"));
        assert_eq!(refused.code(), 3, "{refused}");
        if name == "expired" {
            served.until_metric("privet_tls_certificate_end_seconds", 1_577_836_800);
            assert!(refused.stderr().contains("has expired"), "{refused}");
        }
    }
}

/// `privet get` for `ada`, with more arguments.
fn get(place: &Place, served: &Served, arguments: &str) -> Run {
    place.run(&format!("get {} -k ada {arguments}", served.url))
}

#[test]
fn a_certificate_may_be_trusted_by_file() {
    let place = Place::with_phones();
    // A certificate as `openssl req -x509` makes it, which calls itself an authority.
    let mut params = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    place.write("cert.pem", params.self_signed(&key).unwrap().pem());
    place.write_secret("key.pem", key.serialize_pem());
    let served = Served::start(
        &place,
        "phones.privet --scheme simplepir --no-cache --tls-cert cert.pem --tls-key key.pem",
    );
    assert_snapshot!(served.announcement, @r#"
    table phones: 3 records of 38 B, simplepir, hint of 152.00 KiB computed, ready in [TIME], digest [DIGEST]
    listening at https://127.0.0.1:[PORT]
    "#);
    assert_snapshot!(get(&place, &served, "--ca-file cert.pem").printed(), @r#"
    {"phone":"555-1","floor":"3"}
    "#);
    assert_snapshot!(get(&place, &served, ""), @r#"
    [exit 3]
    [stderr]
    privet: the certificate of https://127.0.0.1:[PORT] is not to be trusted (it is signed by itself, or by nobody who is trusted here); if the server uses a certificate of its own, get that certificate or its authority's from whoever runs the server, and name the file (--ca-file)
    "#);
    let by_name = served.url.replace("127.0.0.1", "localhost");
    place.run(&format!("get {by_name} -k ada --ca-file cert.pem")).says(3, "is for another name (");
    assert_snapshot!(get(&place, &served, "--ca-file key.pem").mistake(), @r#"
    privet: key.pem holds no certificate in PEM form: it holds a private key
    "#);
    assert_snapshot!(get(&place, &served, "--ca-file missing.pem").mistake(), @r#"
    privet: cannot read missing.pem: No such file or directory (os error 2)
    "#);
    let plain = format!("get http://{} -k ada", served.address());
    assert_snapshot!(place.run(&plain), @r#"
    [exit 3]
    [stderr]
    privet: http://127.0.0.1:[PORT] does not speak gRPC ([HOW IT BROKE OFF]); check that the address and port are those of a Privet server, and whether it is http:// or https:// there; a server at its limit of connections looks the same
    "#);
}

/// A stranger's authority among the system's must not count for who names a file.
#[test]
fn a_named_file_is_trusted_instead_of_the_system_and_not_besides() {
    let place = Place::with_phones();
    for name in ["system", "other"] {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        place.write(&format!("{name}.pem"), made.cert.pem());
        place.write_secret(&format!("{name}.key"), made.signing_key.serialize_pem());
    }
    let read = |name: &str| std::fs::read(place.path(name)).unwrap();
    place.write("both.pem", [read("other.pem"), read("system.pem")].concat());
    let served = Served::start(
        &place,
        "phones.privet --no-cache --tls-cert system.pem --tls-key system.key",
    );
    let get = |ca_file: &str| {
        let mut command = place.command(&format!("get {} -k ada {ca_file}", served.url));
        command.env("SSL_CERT_FILE", place.path("system.pem"));
        Run(command.output().unwrap())
    };
    assert_eq!(get("").code(), 0);
    get("--ca-file other.pem").says(3, "is not to be trusted");
    assert_eq!(get("--ca-file both.pem").code(), 0);
}
