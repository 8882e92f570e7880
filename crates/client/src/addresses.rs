//! Servers' addresses: one spelling for each host and port, and whether two are two servers.
//!
//! A scheme of two servers hides nothing from a party that sees both queries of a lookup. So a
//! client refuses to name one server twice, and warns if two addresses are on one host. It also
//! refuses to ask two servers over lines that are not encrypted: an attacker who listens near the
//! client sees both queries. A client cannot tell whether two names lead to one machine, or two
//! machines to one operator.

use http::Uri;
use privet_core::{Error, Reason, Result};
use std::net::IpAddr;

/// A server's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    url: String,
    uri: Uri,
    /// In lower case, or an IP address in its usual form, so that equal hosts compare equal.
    host: String,
    port: u16,
    /// Whether what is sent there is encrypted.
    secure: bool,
    /// Whether it is an address of the machine of a proxy, whichever that is.
    is_behind_a_proxy: bool,
}

impl Address {
    /// Reads `http://host:port` or `https://host:port`, perhaps with a path: a server can lie
    /// behind a path of a proxy in front of it.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `url` is not such an address.
    pub fn parse(url: &str) -> Result<Self> {
        let (secure, rest) = match url.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            _ => {
                return Err(Error::api_misuse(format!(
                    "an address begins with http:// or https://, this one does not: {url}"
                )));
            }
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            // It is not repeated: it may be a password.
            return Err(Error::api_misuse(
                "an address of a server has no user name and no password: nobody would look at them",
            ));
        }
        if authority.starts_with('[') && authority.contains('%') {
            return Err(Error::api_misuse(format!(
                "an address that says by which interface (%) cannot be used: {url}; use one that does without, or a name"
            )));
        }
        let parsed = url.trim_end_matches('/').parse().ok().filter(|_| !url.contains('#'));
        parsed.and_then(|uri| Self::of(secure, &uri)).ok_or_else(|| {
            Error::api_misuse(format!(
                "this is no address of a server: {url}; it looks like http://host:port or http://host:port/path, with a port from 1 to 65535"
            ))
        })
    }

    fn of(secure: bool, uri: &Uri) -> Option<Self> {
        let (authority, rest) = (uri.authority()?, uri.path_and_query()?);
        let (written, port) = (authority.host(), authority.port_u16());
        // The parser would replace a port that is not a number by the default one.
        let behind = authority.as_str().strip_prefix(written)?;
        let is_port = port.is_some_and(|port| port > 0) || behind.is_empty();
        // What would lead elsewhere, or be merged on the way, is no path. All else stays as it is
        // written: with letters as escapes (%61), it counts as another path.
        let path = rest.path().trim_end_matches('/');
        let leads_on = |part: &str| {
            !["", ".", ".."].contains(&part.to_ascii_lowercase().replace("%2e", ".").as_str())
        };
        let is_path = path.split('/').skip(1).all(leads_on);
        if written.is_empty() || !is_port || !is_path || rest.query().is_some() {
            return None;
        }
        let host = one_spelling(written);
        let (scheme, default_port) = if secure { ("https", 443) } else { ("http", 80) };
        let number = port.unwrap_or(default_port);
        let port = port.filter(|port| *port != default_port);
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        let brackets = host.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6());
        let url = match brackets {
            true => format!("{scheme}://[{host}]{port}{path}"),
            false => format!("{scheme}://{host}{port}{path}"),
        };
        let uri = url.parse().ok()?;
        Some(Self { url, uri, host, port: number, secure, is_behind_a_proxy: false })
    }

    /// The same address, seen from the machine of a proxy.
    pub fn behind_a_proxy(self) -> Self {
        Self { is_behind_a_proxy: true, ..self }
    }

    /// The address in its normal spelling: scheme and host in lower case, the usual port left out,
    /// no slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The same, taken apart.
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Whether what is sent there is encrypted.
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// Whether the address leads back to this machine, as in a trial.
    fn is_this_machine(&self) -> bool {
        self.is_loopback() && !self.is_behind_a_proxy
    }

    /// Whether the address leads back to the machine where it is looked up.
    fn is_loopback(&self) -> bool {
        match self.host.parse::<IpAddr>() {
            // A connection to the unspecified address is one to this machine.
            Ok(address) => address.is_loopback() || address.is_unspecified(),
            Err(_) => self.host == "localhost" || self.host.ends_with(".localhost"),
        }
    }

    /// Whether both addresses lead to one server, as far as the client can see: they name the same
    /// port of the same host, whatever the protocol and the path: who listens there sees all that
    /// comes. All names of this machine count as one host.
    fn is_same_server(&self, other: &Self) -> bool {
        let one_host = self.host == other.host || (self.is_loopback() && other.is_loopback());
        one_host && self.port == other.port
    }
}

fn one_spelling(host: &str) -> String {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match bare.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().to_string(),
        // A fully qualified name may end with a dot.
        Err(_) => bare.trim_end_matches('.').to_ascii_lowercase(),
    }
}

/// Checks that no server is named twice.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if one is.
pub fn check_distinct(addresses: &[Address]) -> Result<()> {
    for (place, address) in addresses.iter().enumerate() {
        let same = addresses[..place].iter().find(|other| other.is_same_server(address));
        let Some(other) = same else { continue };
        let what = match other.url == address.url {
            true => format!("{} is named twice", address.url),
            false => format!("{} and {} are one server, named twice", other.url, address.url),
        };
        return Err(Error::api_misuse(format!(
            "{what}: it would see both queries of each lookup, and could tell from them what is looked up; name servers that are run by parties that do not collude"
        )));
    }
    Ok(())
}

/// Checks that nobody who listens on the client's line sees the queries to two servers.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if more than one server on another machine
/// is asked without encryption.
pub fn check_encrypted(addresses: &[Address]) -> Result<()> {
    let mut plain =
        addresses.iter().filter(|address| !address.secure && !address.is_this_machine());
    let (Some(one), Some(other)) = (plain.next(), plain.next()) else { return Ok(()) };
    Err(Error::api_misuse(format!(
        "what is sent to {} and to {} is not encrypted: anybody who listens on the line sees both queries of each lookup, and could tell from them what is looked up; use https:// for at least one of them, better for both, or allow it on a line that nobody else can listen on",
        one.url, other.url
    ))
    .because(Reason::NotEncrypted))
}

/// A digest of the servers' addresses, in their order:
/// [`addresses_digest`](crate::session::SessionOptions::addresses_digest).
pub fn digest(addresses: &[Address]) -> [u8; 32] {
    let mut digest = blake3::Hasher::new();
    for address in addresses {
        digest.update(address.url().as_bytes()).update(&[0]);
    }
    *digest.finalize().as_bytes()
}

/// A warning if several servers are on one host, unless that host is this machine.
pub fn one_host_notice(addresses: &[Address]) -> Option<String> {
    let pairs = addresses.iter().enumerate();
    let mut pairs =
        pairs.flat_map(|(place, one)| addresses[..place].iter().map(move |other| (other, one)));
    let (one, other) =
        pairs.find(|(one, other)| one.host == other.host && !one.is_this_machine())?;
    Some(format!(
        "{} and {} are on one host: its operator may see both queries of each lookup, and could tell from them what is looked up; better name servers that are run by parties that do not collude",
        one.url, other.url
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_core::Blame;

    fn address(url: &str) -> Address {
        Address::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    #[test]
    fn an_address_has_one_spelling() {
        for (written, url) in [
            ("http://127.0.0.1:7700", "http://127.0.0.1:7700"),
            ("HTTPS://Privet.Example.ORG:443///", "https://privet.example.org"),
            ("http://privet.example.org.:80", "http://privet.example.org"),
            ("https://privet.example.org:80", "https://privet.example.org:80"),
            ("http://[0:0::1]:7700", "http://[::1]:7700"),
            ("http://[::ffff:10.0.0.1]", "http://10.0.0.1"),
            ("https://Example.org:443/Privet/", "https://example.org/Privet"),
            ("http://example.org:7700/a/b%20c", "http://example.org:7700/a/b%20c"),
        ] {
            assert_eq!(address(written).url(), url);
            assert_eq!(address(url).url(), url);
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for url in [
            "127.0.0.1:7700",
            "ftp://example.org",
            "http://",
            "http:///path",
            "http://a b",
            "http://example.org:",
            "http://example.org:port",
            "http://example.org:65536",
            "http://someone@example.org",
            "https://someone:secret@example.org:7700",
            "http://example.org:0",
            "http://[fe80::1%25eth0]:7700",
            "http://[fe80::1%eth0]:7700/path",
            "http://example.org//tables",
            "http://example.org/a/../b",
            "http://example.org/./a",
            "http://example.org/a/%2E./b",
            "http://example.org/a b",
            "http://example.org/#privet",
            "http://example.org:7700/?table=one",
            "http://example.org:7700/path?table=one",
        ] {
            let error = Address::parse(url).unwrap_err();
            assert_eq!(error.blame(), Blame::ApiMisuse, "{url}");
            assert!(!error.message().contains("secret"), "{error}");
        }
    }

    #[test]
    fn one_server_cannot_be_named_twice_however_it_is_spelt() {
        let twice = |one: &str, other: &str| check_distinct(&[address(one), address(other)]);
        for (one, other) in [
            ("http://a:7700", "http://a:7700"),
            ("http://a:7700", "http://a:7700/"),
            ("http://a:7700", "HTTP://A:7700"),
            ("http://a", "http://a:80"),
            ("https://a:443/", "https://A."),
            ("http://[::1]:1", "http://[0:0:0:0:0:0:0:1]:1"),
            ("http://a:7700", "https://a:7700"),
            ("http://localhost:7700", "http://127.0.0.1:7700"),
            ("http://127.0.0.1:7700", "http://127.3.2.1:7700"),
            ("http://[::1]:7700", "http://0.0.0.0:7700"),
            ("http://[::]:7700", "http://[::ffff:127.0.0.1]:7700"),
            ("http://localhost", "http://LOCALHOST.:80"),
            ("https://localhost:7700", "http://[::1]:7700"),
            ("https://a/one", "https://a/other"),
        ] {
            let error = twice(one, other).unwrap_err();
            assert_eq!(error.blame(), Blame::ApiMisuse, "{one} {other}");
            let (one, other) = (address(one), address(other));
            let said = match one.url() == other.url() {
                true => format!("{} is named twice: ", one.url()),
                false => format!("{} and {} are one server, named twice: ", one.url(), other.url()),
            };
            assert!(error.message().starts_with(&said), "{error}");
        }
        for (one, other) in [
            ("http://a:7700", "http://b:7700"),
            ("http://a:7700", "http://a:7701"),
            ("http://a", "https://a"),
            ("http://localhost:7700", "http://127.0.0.1:7701"),
            ("http://localhost:7700", "http://10.0.0.1:7700"),
            ("http://0.0.0.0", "https://[::]"),
        ] {
            twice(one, other).unwrap();
        }
        let thrice = ["http://a:1", "http://localhost:1", "http://127.0.0.1:1"].map(address);
        assert!(check_distinct(&thrice).is_err(), "any two");
    }

    #[test]
    fn two_servers_are_not_asked_in_plain_text_unless_they_are_on_this_machine() {
        let check = |urls: &[&str]| {
            check_encrypted(&urls.iter().map(|url| address(url)).collect::<Vec<_>>())
        };
        for urls in [
            &["http://a", "http://b"][..],
            &["http://10.0.0.1:7700", "http://[2001:db8::1]:7700"],
            &["http://a", "https://b", "http://c"],
            &["http://localhost.example.org", "http://b"],
        ] {
            let error = check(urls).unwrap_err();
            assert_eq!(error.blame(), Blame::ApiMisuse, "{urls:?}");
            let said = format!("what is sent to {} and to {} ", urls[0], urls[urls.len() - 1]);
            assert!(error.message().starts_with(&said), "{error}");
            assert!(error.message().contains("https://"), "{error}");
            assert_eq!(error.reason(), Some(Reason::NotEncrypted), "{error}");
        }
        for urls in [
            &["http://a"][..],
            &["http://a", "https://b"],
            &["https://a", "https://b"],
            &["http://localhost:1", "http://127.0.0.1:2"],
            &["http://0.0.0.0:1", "http://[::1]:2"],
            &["http://a", "http://localhost:7700"],
        ] {
            check(urls).unwrap();
        }
        // What is this machine to a proxy is another.
        let far = ["http://localhost:1", "http://127.0.0.1:2"].map(address);
        let far = far.map(Address::behind_a_proxy);
        assert_eq!(check_encrypted(&far).unwrap_err().reason(), Some(Reason::NotEncrypted));
        assert!(one_host_notice(&far).is_none(), "they are spelt differently");
    }

    #[test]
    fn two_servers_on_one_host_are_worth_a_word_unless_it_is_this_machine() {
        let notice = |urls: &[&str]| {
            one_host_notice(&urls.iter().map(|url| address(url)).collect::<Vec<_>>())
        };
        for urls in [
            ["http://10.0.0.1:1", "http://10.0.0.1:2"],
            ["http://a", "https://A:7700"],
            ["http://a.localhost.example.org", "https://a.localhost.example.org"],
        ] {
            let notice = notice(&urls).unwrap();
            assert!(notice.contains("on one host"), "{notice}");
        }
        for urls in [
            &["http://a"][..],
            &["http://a", "http://b"],
            &["http://127.0.0.1:1", "http://127.0.0.1:2"],
            &["http://127.0.0.2:1", "http://127.0.0.2:2"],
            &["http://[::1]:1", "http://[::1]:2"],
            &["http://localhost:1", "http://LOCALHOST:2"],
            &["http://0.0.0.0:1", "http://0.0.0.0:2"],
        ] {
            assert_eq!(notice(urls), None);
        }
        assert!(notice(&["http://a:1", "http://b", "http://a:2"]).is_some(), "any two");
    }
}
