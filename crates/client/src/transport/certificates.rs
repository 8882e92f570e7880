//! Which certificates a client believes.
//!
//! Those that lead up to an authority, as rustls checks them: one of the system's or, if a file is
//! named, one of that file, and then none of the system's. And, if it is itself in the file, the
//! very certificate that the server shows: a self-signed one as
//! `openssl req -x509` makes it says of itself that it is an authority, and rustls lets no
//! authority's certificate be a server's own. Who names its file means just that certificate. Its
//! dates, its names, and the server's signature of the handshake are still checked.

use privet_core::{Error, Reason, Result};
use privet_table::pem;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};
use rustls_native_certs::CertificateResult;
use std::path::Path;
use std::sync::Arc;

/// Believes the system's authorities; or, with a PEM file `ca_file`, what is in that file and
/// nothing else.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the file cannot be read or holds no
/// certificate, or there is nothing to believe.
pub(super) fn verifier(ca_file: Option<&Path>) -> Result<Arc<dyn ServerCertVerifier>> {
    let (named, system) = match ca_file {
        Some(file) => (read(file)?, CertificateResult::default()),
        None => (Vec::new(), rustls_native_certs::load_native_certs()),
    };
    let mut roots = RootCertStore::empty();
    // Some systems have certificates among theirs that rustls cannot read.
    roots.add_parsable_certificates(system.certs.into_iter().chain(named.iter().cloned()));
    let provider = CryptoProvider::get_default().cloned();
    let provider = provider.unwrap_or_else(|| Arc::new(ring::default_provider()));
    let webpki = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let webpki = webpki.map_err(|error| {
        let found = system.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
        Error::api_misuse(format!(
            "no certificate authorities can be used ({error}{found}); install the system's (the package is often called ca-certificates), or name a file with them"
        ))
        .because(Reason::CertificateNotTrusted)
        .caused_by(error)
    })?;
    Ok(Arc::new(Verifier { webpki, named }))
}

/// The certificates in a PEM file, of which there must be one that can be read. An empty list would
/// show later, as a server not to be trusted.
fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let file = std::fs::read(path).map_err(|error| {
        Error::api_misuse(format!("cannot read {}: {error}", path.display())).caused_by(error)
    })?;
    let none = |what: &str| {
        Error::api_misuse(format!("{} holds no certificate in PEM form: {what}", path.display()))
    };
    let found: std::result::Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(pem::without_mark(&file)).collect();
    let found = found.map_err(|error| none("it is damaged").caused_by(error))?;
    if found.is_empty() {
        return Err(none(pem::found_in(&file, "CERTIFICATE")));
    }
    // Of many authorities, some may be of a form that is not known.
    let unknown = match &found[..] {
        [one] => webpki::anchor_from_trusted_cert(one).err(),
        _ => None,
    };
    match unknown {
        None => Ok(found),
        Some(error) => {
            let path = path.display();
            let what = format!("the certificate in {path} cannot be used: {error}");
            Err(Error::api_misuse(what).caused_by(error))
        }
    }
}

#[derive(Debug)]
struct Verifier {
    webpki: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

fn is_of_version_1(other: &OtherError) -> bool {
    matches!(other.0.downcast_ref(), Some(webpki::Error::UnsupportedCertVersion))
}

/// Whether a certificate was refused because of who issued it, and for nothing before: rustls looks
/// at its dates first. (`an_expired_certificate_is_refused_even_if_it_is_named` holds it to that.)
fn is_about_the_issuer(why: &CertificateError) -> bool {
    match why {
        CertificateError::UnknownIssuer => true,
        CertificateError::Other(other) => {
            matches!(other.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
        }
        _ => false,
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        let verified = self.webpki.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        let is_named = || self.named.iter().any(|named| named == end_entity);
        match verified {
            Err(rustls::Error::InvalidCertificate(why))
                if is_about_the_issuer(&why) && is_named() =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        self.webpki.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        self.webpki.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.webpki.supported_verify_schemes()
    }
}

/// What it means that the certificate of the server at `url` was refused, and what to do.
pub(super) fn refused(url: &str, why: &CertificateError) -> Error {
    let message = match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => format!(
            "the certificate of {url} has expired ({why}): whoever runs the server has to renew it; check the clock of this machine, too"
        ),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => format!(
            "the certificate of {url} is not valid yet ({why}): check the clock of this machine, and ask whoever runs the server"
        ),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!(
                "the certificate of {url} is for another name ({why}): write the address by a name that it is for, or have one made for this name (as its SubjectAltName)"
            )
        }
        CertificateError::Other(other) if is_of_version_1(other) => format!(
            "the certificate of {url} is of version 1 of X.509, which TLS does not take any more: whoever runs the server has to make one of version 3, with the names that clients type as its SubjectAltName"
        ),
        _ => {
            let why = match is_about_the_issuer(why) {
                true => "it is signed by itself, or by nobody who is trusted here".to_owned(),
                false => why.to_string(),
            };
            return Error::peer_misbehaved(format!(
                "the certificate of {url} is not to be trusted ({why}); if the server uses a certificate of its own, get that certificate or its authority's from whoever runs the server, and name the file"
            ))
            .because(Reason::CertificateNotTrusted);
        }
    };
    Error::peer_misbehaved(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};
    use std::time::Duration;

    /// 2030 in seconds since 1970, when all certificates here are valid that ever are.
    const IN_2030: u64 = 1_900_000_000;

    fn params(name: &str) -> CertificateParams {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2040, 1, 1);
        params
    }

    /// Self-signed, and an authority by its own account, as `openssl req -x509` makes them.
    fn as_openssl_makes_it(name: &str) -> CertificateParams {
        let mut params = params(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
    }

    fn signed_by_itself(params: &CertificateParams) -> rcgen::Certificate {
        params.self_signed(&KeyPair::generate().unwrap()).unwrap()
    }

    /// Whether `shown` is believed for `localhost` in 2030 by a client that was given `named`.
    fn verify(
        named: &[&rcgen::Certificate],
        shown: &rcgen::Certificate,
    ) -> std::result::Result<(), CertificateError> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("named.pem");
        let pems: Vec<String> = named.iter().map(|certificate| certificate.pem()).collect();
        std::fs::write(&file, pems.concat()).unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(IN_2030));
        let verified =
            verifier(Some(&file)).unwrap().verify_server_cert(shown.der(), &[], &name, &[], now);
        match verified {
            Ok(_) => Ok(()),
            Err(rustls::Error::InvalidCertificate(why)) => Err(why),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_certificate_that_is_named_is_believed() {
        let own = signed_by_itself(&as_openssl_makes_it("localhost"));
        let other = signed_by_itself(&as_openssl_makes_it("localhost"));
        assert_eq!(verify(&[&own], &own), Ok(()));
        assert_eq!(verify(&[&other, &own], &own), Ok(()));
        assert!(verify(&[&signed_by_itself(&params("localhost"))], &own).is_err());
        // The same name, the same words, and another key.
        assert!(verify(&[&other], &own).is_err());

        let no_authority = signed_by_itself(&params("localhost"));
        assert_eq!(verify(&[&no_authority], &no_authority), Ok(()));
    }

    #[test]
    fn what_an_authority_signed_is_believed_with_the_authority_or_itself_named() {
        let key = KeyPair::generate().unwrap();
        let mut authority = as_openssl_makes_it("authority");
        authority.distinguished_name.push(rcgen::DnType::CommonName, "authority");
        let signed = authority.self_signed(&key).unwrap();
        let issuer = rcgen::Issuer::new(authority, key);
        let leaf = params("localhost").signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap();
        assert_eq!(verify(&[&signed], &leaf), Ok(()));
        assert_eq!(verify(&[&leaf], &leaf), Ok(()));
        let stranger = signed_by_itself(&as_openssl_makes_it("localhost"));
        assert_eq!(verify(&[&stranger], &leaf), Err(CertificateError::UnknownIssuer));
    }

    #[test]
    fn an_expired_certificate_is_refused_even_if_it_is_named() {
        for kind in [params, as_openssl_makes_it] {
            let mut params = kind("localhost");
            params.not_after = date_time_ymd(2029, 1, 1);
            let expired = signed_by_itself(&params);
            let why = verify(&[&expired], &expired).unwrap_err();
            assert!(matches!(why, CertificateError::ExpiredContext { .. }), "{why}");
            assert!(refused("https://a", &why).message().contains("has expired"));

            params.not_before = date_time_ymd(2035, 1, 1);
            params.not_after = date_time_ymd(2036, 1, 1);
            let early = signed_by_itself(&params);
            let why = verify(&[&early], &early).unwrap_err();
            assert!(matches!(why, CertificateError::NotValidYetContext { .. }), "{why}");
            assert!(refused("https://a", &why).message().contains("not valid yet"));
        }
    }

    #[test]
    fn a_certificate_for_another_name_is_refused_even_if_it_is_named() {
        for kind in [params, as_openssl_makes_it] {
            let other = signed_by_itself(&kind("example.org"));
            let why = verify(&[&other], &other).unwrap_err();
            assert!(matches!(why, CertificateError::NotValidForNameContext { .. }), "{why}");
            assert!(refused("https://a", &why).message().contains("another name"));
        }
    }
}
