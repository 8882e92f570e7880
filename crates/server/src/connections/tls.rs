//! Certificate and key for TLS: reading them, and what is wrong with them.
//!
//! A server whose certificate no client believes would be ready and of no use. What can be seen of
//! that here is an error, or a warning if it may mend itself with time.

use crate::TlsFiles;
use crate::grpc::PROTOCOLS;
use privet_core::{Error, Result};
use privet_table::pem;
use privet_table::secret_file::{Others, is_open_to};
use rustls::InconsistentKeys;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio_rustls::TlsAcceptor;
use webpki::EndEntityCert;
use zeroize::Zeroizing;

/// Is agreed on beside what the server speaks, so that strays get an answer.
pub(super) const HTTP_1: &[u8] = b"http/1.1";

/// A warning comes when a certificate has no more time than this.
const SOON: Duration = Duration::from_secs(14 * 24 * 3600);

/// What a server needs for TLS.
pub(crate) struct Tls {
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) certificates: Certificates,
}

/// What is to be known of a server's certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Certificates {
    /// When the first of them ends.
    pub(crate) end: SystemTime,
    /// When the last of them begins.
    begin: SystemTime,
    names_somebody: bool,
}

impl Tls {
    /// TLS 1.2 and 1.3 with the certificate and key in `files`.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), naming the file, if a file cannot be
    /// read or holds nothing usable, if anybody can read the key, or if it does not belong to the
    /// certificate.
    pub(crate) fn new(files: &TlsFiles) -> Result<Self> {
        let chain = certificates(&files.cert)?;
        let key = private_key(&files.key)?;
        let certificates = Certificates::of(&chain, &files.cert)?;
        let too_short = is_rsa_too_short(&key);
        let unusable = |error: rustls::Error| {
            let (key, cert) = (files.key.display(), files.cert.display());
            let words = match &error {
                rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => format!(
                    "the key in {key} is not that of the certificate in {cert}: they belong to two \
                     certificates"
                ),
                rustls::Error::InvalidCertificate(_) => {
                    format!("the certificate in {cert} cannot be used: {error}")
                }
                _ if too_short => format!(
                    "the RSA key in {key} is too short, and nobody would trust it: make one of 2048 \
                     bits or more, with its certificate"
                ),
                _ => format!(
                    "the key in {key} cannot be used: keys are RSA of 2048 bits or more, ECDSA on \
                     P-256 or P-384, or Ed25519 ({error})"
                ),
            };
            Error::api_misuse(words).caused_by(error)
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(unusable)?;
        let protocols = PROTOCOLS.iter().copied().chain([HTTP_1]);
        config.alpn_protocols = protocols.map(<[u8]>::to_vec).collect();
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), certificates })
    }
}

fn is_rsa_too_short(key: &PrivateKeyDer<'_>) -> bool {
    let read = rustls::crypto::ring::sign::RsaSigningKey::new(key);
    read.is_err_and(|error| error.to_string().contains("TooSmall"))
}

impl Certificates {
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if a certificate cannot be read, or no
    /// client takes it.
    fn of(chain: &[CertificateDer<'_>], path: &Path) -> Result<Self> {
        let refused = |error: webpki::Error| {
            let path = path.display();
            let words = match error {
                webpki::Error::UnsupportedCertVersion => format!(
                    "the certificate in {path} is of version 1 of X.509, and clients take version 3: \
                     make another, with the names that clients type as its subjectAltName"
                ),
                _ => format!("the certificate in {path} cannot be read: {error}"),
            };
            Error::api_misuse(words).caused_by(error)
        };
        let (mut begin, mut end) = (SystemTime::UNIX_EPOCH, None);
        let mut names_somebody = false;
        for (number, der) in chain.iter().enumerate() {
            let certificate = match EndEntityCert::try_from(der) {
                Ok(certificate) => certificate,
                Err(error) if number == 0 => return Err(refused(error)),
                // Such as the root at the end of a chain, which clients do not read.
                Err(_) => continue,
            };
            // Who is no authority's is asked for its dates first: too late, and too early.
            let at = |time| verdict(&certificate, UnixTime::since_unix_epoch(time));
            if let webpki::Error::CertExpired { not_after, .. } = at(AFTER_ALL) {
                let not_after = SystemTime::UNIX_EPOCH + Duration::from_secs(not_after.as_secs());
                end = Some(end.map_or(not_after, |end: SystemTime| end.min(not_after)));
            }
            if let webpki::Error::CertNotValidYet { not_before, .. } = at(Duration::ZERO) {
                begin =
                    begin.max(SystemTime::UNIX_EPOCH + Duration::from_secs(not_before.as_secs()));
            }
            names_somebody |= number == 0 && has_names(&certificate);
        }
        let end = end.unwrap_or(SystemTime::UNIX_EPOCH + AFTER_ALL);
        Ok(Self { begin, end, names_somebody })
    }

    /// What clients will not like about them at `now`.
    pub(crate) fn warning(&self, now: SystemTime) -> Option<String> {
        let date = httpdate::fmt_http_date;
        let left = self.end.duration_since(now).unwrap_or_default();
        if left.is_zero() {
            let end = date(self.end);
            Some(format!("the TLS certificate has expired ({end}): no client trusts it; renew it"))
        } else if self.begin > now {
            let begin = date(self.begin);
            Some(format!(
                "the TLS certificate is not valid before {begin}: no client trusts it; look at the \
                 clock of this machine"
            ))
        } else if !self.names_somebody {
            Some(
                "the TLS certificate has no names (subjectAltName): no client trusts it; make \
                 another with the names that clients type"
                    .to_owned(),
            )
        } else if left < SOON {
            let end = date(self.end);
            Some(format!("the TLS certificate ends soon ({end}): renew it, and start again"))
        } else {
            None
        }
    }
}

/// The end of 9999, after which no certificate can be valid.
const AFTER_ALL: Duration = Duration::from_secs(253_402_300_799);

/// Why a client that knows no authority would not trust a certificate at `now`. Its dates are the
/// first thing that is looked at.
fn verdict(certificate: &EndEntityCert<'_>, now: UnixTime) -> webpki::Error {
    let verified = certificate.verify_for_usage(
        rustls::crypto::ring::default_provider().signature_verification_algorithms.all,
        &[],
        &[],
        now,
        webpki::KeyUsage::server_auth(),
        None,
        None,
    );
    verified.err().unwrap_or(webpki::Error::UnknownIssuer)
}

/// Whether a certificate is for any name or address.
fn has_names(certificate: &EndEntityCert<'_>) -> bool {
    let Ok(nobody) = ServerName::try_from("nobody.invalid") else { return true };
    match certificate.verify_is_valid_for_subject_name(&nobody) {
        Err(webpki::Error::CertNotValidForName(context)) => !context.presented.is_empty(),
        _ => true,
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let read = std::fs::read(path).map_err(|error| cannot_read(path, "certificate", error))?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(pem::without_mark(&read))
        .collect::<Result<_, _>>()
        .map_err(|_| {
            // The reader's own words may have bytes of the file in them, and that may hold a key.
            let path = path.display();
            let found = pem::found_in(&read, "CERTIFICATE");
            Error::api_misuse(format!("the certificate file {path} is damaged: {found}"))
        })?;
    match chain.is_empty() {
        false => Ok(chain),
        true => Err(Error::api_misuse(format!(
            "{} holds no certificate in PEM form: {}",
            path.display(),
            pem::found_in(&read, "CERTIFICATE")
        ))),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    let cannot = |error| cannot_read(path, "private key", error);
    let mut file = File::open(path).map_err(cannot)?;
    let mut read = Zeroizing::new(Vec::new());
    file.read_to_end(&mut read).map_err(cannot)?;
    // The reader's own error may have bytes of the key in it.
    let key = PrivateKeyDer::from_pem_slice(pem::without_mark(&read)).map_err(|_| {
        Error::api_misuse(format!(
            "{} holds no private key in PEM form that can be used: {}",
            path.display(),
            pem::found_in(&read, "PRIVATE KEY")
        ))
    })?;
    match is_open_to(&file, Others::OutsideGroup).map_err(cannot)? {
        false => Ok(key),
        true => Err(Error::api_misuse(format!(
            "{}: anybody on this machine can read this private key; if nobody has, let only its \
             owner read it (chmod 600); otherwise make another, with its certificate",
            path.display()
        ))),
    }
}

fn cannot_read(path: &Path, what: &str, error: io::Error) -> Error {
    Error::api_misuse(format!("the {what} file {} cannot be read: {error}", path.display()))
}
