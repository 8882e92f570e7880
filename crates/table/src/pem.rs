//! What a file holds that should be in PEM form, for errors that name it and the way out.

/// The bytes behind the mark that some editors put at the beginning of text.
pub fn without_mark(file: &[u8]) -> &[u8] {
    file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file)
}

/// In words, what is in a file in which no `wanted`, such as "CERTIFICATE" or "PRIVATE KEY", could
/// be read. Never any of it itself: it may be a secret.
pub fn found_in(file: &[u8], wanted: &str) -> &'static str {
    let has = |words: &[u8]| file.windows(words.len()).any(|window| window == words);
    let holds = |label: &str| has(format!("-----BEGIN {label}-----").as_bytes());
    let encrypted = "its key is encrypted with a passphrase, for which nobody could be asked when \
                     the server starts; decrypt it (openssl pkey -in FILE -out key.pem) and let \
                     only its owner read it";
    if file.is_empty() {
        "it is empty"
    } else if holds("ENCRYPTED PRIVATE KEY") || has(b"Proc-Type: 4,ENCRYPTED") {
        encrypted
    } else if holds("OPENSSH PRIVATE KEY") {
        "it is a key of OpenSSH, which is no key for TLS"
    } else if holds("DSA PRIVATE KEY") {
        "it is a DSA key, which TLS does not use any more"
    } else if has(b"-----BEGIN ") && has(format!("{wanted}-----").as_bytes()) {
        "it is damaged"
    } else if ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"].into_iter().any(holds) {
        "it holds a private key"
    } else if holds("CERTIFICATE REQUEST") || holds("NEW CERTIFICATE REQUEST") {
        "it holds a request for a certificate, which an authority answers with one"
    } else if holds("CERTIFICATE") || holds("TRUSTED CERTIFICATE") || holds("X509 CERTIFICATE") {
        "it holds a certificate"
    } else if holds("PUBLIC KEY") || holds("RSA PUBLIC KEY") {
        "it holds a public key"
    } else if has(b"-----BEGIN ") {
        "it holds something else in that form"
    } else if file.starts_with(&[0xff, 0xfe]) || file.starts_with(&[0xfe, 0xff]) {
        "it is text in UTF-16; save it as UTF-8"
    } else if file[0] == 0x30 {
        // How every structure of ASN.1 begins.
        "it is in DER or PKCS#12 form; for a certificate, openssl x509 -in FILE -inform DER writes \
         PEM, for a key, openssl pkey -in FILE -inform DER, and for both, openssl pkcs12 -in FILE \
         -nodes"
    } else {
        "nothing in it begins with -----BEGIN"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_holds_is_named() {
        for (file, words) in [
            ("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMII", "encrypted with a passphrase"),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES\n\nMII",
                "encrypted with a passphrase",
            ),
            ("-----BEGIN OPENSSH PRIVATE KEY-----", "OpenSSH"),
            ("-----BEGIN DSA PRIVATE KEY-----", "DSA"),
            ("-----BEGIN EC PRIVATE KEY-----", "it holds a private key"),
            ("-----BEGIN CERTIFICATE-----", "it holds a certificate"),
            ("-----BEGIN CERTIFICATE REQUEST-----", "a request for a certificate"),
            ("-----BEGIN PUBLIC KEY-----", "public key"),
            ("-----BEGIN PGP MESSAGE-----", "something else"),
            ("0\u{1}", "DER or PKCS#12"),
            ("hello", "nothing in it begins"),
            ("", "empty"),
        ] {
            let found = found_in(file.as_bytes(), "NOTHING");
            assert!(found.contains(words), "{file}: {found}");
        }
        let key = b"-----BEGIN EC PRIVATE KEY-----\n!!";
        assert_eq!(found_in(key, "PRIVATE KEY"), "it is damaged");
        assert_eq!(found_in(key, "CERTIFICATE"), "it holds a private key");
        assert!(found_in(&[0xff, 0xfe, b'-', 0], "NOTHING").contains("UTF-16"));
        assert_eq!(without_mark(b"\xef\xbb\xbf-----"), b"-----");
    }
}
