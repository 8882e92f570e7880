//! Which way leads to a server: directly, or through a proxy.
//!
//! Whoever has set a proxy may have done so to hide where lookups come from. So nothing goes around
//! one: a proxy that cannot be used is an error, before anything is sent to anybody. And no name of
//! a server is looked up here if the way to it leads through a proxy.
//!
//! `https_proxy` is for `https://`, `http_proxy` for `http://`, and `all_proxy` for what these do
//! not name; the spelling in lower case counts first; what `no_proxy` lists is reached directly.
//! This machine is no exception: `no_proxy` has to list it. All of this is as with curl, except
//! that curl never reads `HTTP_PROXY` in capitals. Here it counts, but not in a program that a web
//! server runs: there a stranger can set it.

use crate::addresses::Address;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use privet_core::randomness::SecretRng;
use privet_core::{Error, Reason, Result};
use std::ffi::OsString;
use std::fmt;
use tonic::codegen::http::{HeaderValue, Uri};

/// The word for no proxy.
const NONE: &str = "none";

/// The port where SOCKS proxies usually listen. HTTP proxies have none that all programs agree on.
const SOCKS_PORT: u16 = 1080;

/// A proxy through which one server is reached.
#[derive(Clone)]
pub(crate) struct Proxy {
    /// `http://host:port`: where to connect to.
    pub(crate) uri: Uri,
    pub(crate) speech: Speech,
    /// What it is called in messages: its address and who named it, without its password.
    name: String,
}

/// What a proxy is spoken to in.
#[derive(Clone)]
pub(crate) enum Speech {
    /// HTTP, whose method CONNECT opens a tunnel, with the value of `Proxy-Authorization`.
    Http(Option<HeaderValue>),
    /// SOCKS 5.
    Socks { user: String, password: String },
}

impl fmt::Display for Proxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

/// The way to each of the servers at `addresses`: through one of the proxies `named`, if there are
/// any, and otherwise as the environment says, whose variables `variable` reads. `None`: directly.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if a proxy that a server would be reached
/// through cannot be used, or there are neither one proxy nor as many as servers.
pub(crate) fn ways(
    addresses: &[Address],
    named: &[String],
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Vec<Option<Proxy>>> {
    const NAMED: &str = "the proxy that was named";
    let parse = |text: &String| match text.eq_ignore_ascii_case(NONE) {
        true => Ok(None),
        false => Proxy::parse(text, NAMED).map(Some),
    };
    match named {
        [] => addresses.iter().map(|address| from_environment(address, variable)).collect(),
        // For each server anew: no two servers share what is drawn for a proxy.
        [one] => addresses.iter().map(|_| parse(one)).collect(),
        each if each.len() == addresses.len() => each.iter().map(parse).collect(),
        _ => Err(Error::api_misuse(format!(
            "{} proxies are named for {} addresses: name one for all, or one for each, in the same order ({NONE}: directly)",
            named.len(),
            addresses.len()
        ))),
    }
}

fn from_environment(
    address: &Address,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Option<Proxy>> {
    let names = match address.is_secure() {
        true => ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"],
        false => ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"],
    };
    // A web server hands a client's header `Proxy` to its programs under this name.
    let is_a_header = |name: &str| name == "HTTP_PROXY" && variable("REQUEST_METHOD").is_some();
    let first = |names: &[&'static str]| {
        let set = names.iter().filter(|name| !is_a_header(name));
        set.filter_map(|name| Some((*name, variable(name)?))).find(|(_, value)| !value.is_empty())
    };
    let Some((name, value)) = first(&names) else { return Ok(None) };
    if let Some((name, list)) = first(&["no_proxy", "NO_PROXY"]) {
        let list = list.to_str().ok_or_else(|| {
            Error::api_misuse(format!("{name} is no text")).because(Reason::ProxyUnusable)
        })?;
        let any = Matcher::builder().all("http://proxy").no(list).build();
        if any.intercept(address.uri()).is_none() {
            return Ok(None);
        }
    }
    match value.to_str() {
        Some(value) => Proxy::parse(value, name).map(Some),
        None => Err(unusable(name, "it is no text")),
    }
}

/// The error does not repeat what was named: it may hold a password.
fn unusable(named_by: &str, why: &str) -> Error {
    Error::api_misuse(format!(
        "{named_by} cannot be used as a proxy, so nothing was sent: {why}; it looks like http://host:port or socks5h://host:port"
    ))
    .because(Reason::ProxyUnusable)
}

impl Proxy {
    fn parse(text: &str, named_by: &str) -> Result<Self> {
        let refused = |why: &str| unusable(named_by, why);
        let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        let is_socks = match scheme.as_deref() {
            None | Some("http") => false,
            Some("socks5" | "socks5h") => true,
            Some("https") => {
                return Err(refused(
                    "proxies that are spoken to over TLS (https://) are not known",
                ));
            }
            Some("socks4" | "socks4a") => {
                return Err(refused("of SOCKS proxies only version 5 is known (socks5h://)"));
            }
            Some(_) => return Err(refused("its scheme is not known")),
        };
        // The parser knows schemes in lower case.
        let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
        let text = format!("{}://{rest}", if is_socks { "socks5h" } else { "http" });
        let intercept = Matcher::builder()
            .all(text)
            .build()
            .intercept(&Uri::from_static("https://server"))
            .ok_or_else(|| refused("it is no address"))?;
        let (host, port) = place(&intercept).ok_or_else(|| refused("it is no address"))?;
        let port = match (port, is_socks) {
            (Some(0), _) => return Err(refused("a port is from 1 to 65535")),
            (Some(port), _) => port,
            (None, true) => SOCKS_PORT,
            (None, false) => {
                return Err(refused("it names no port, and programs differ in which they take"));
            }
        };
        let uri = format!("http://{host}:{port}").parse();
        let uri = uri.map_err(|error| refused("it is no address").caused_by(error))?;
        let speech = match is_socks {
            false => Speech::Http(intercept.basic_auth().cloned()),
            true => socks(intercept.raw_auth())?.ok_or_else(|| {
                refused("a SOCKS proxy takes a name and a password of 1 to 255 bytes each")
            })?,
        };
        let scheme = if is_socks { "socks5h" } else { "http" };
        Ok(Self { uri, speech, name: format!("{scheme}://{host}:{port} ({named_by})") })
    }
}

/// Host and port, if they can be found.
fn place(intercept: &Intercept) -> Option<(&str, Option<u16>)> {
    let authority = intercept.uri().authority()?;
    let (host, port) = (authority.host(), authority.port_u16());
    // The parser takes a port that is no number for none.
    let behind = authority.as_str().strip_prefix(host)?;
    (!host.is_empty() && (port.is_some() || behind.is_empty())).then_some((host, port))
}

/// With the name and password that were given; or with some of this server's own, drawn at random.
/// Tor takes circuits of their own for names and passwords of their own, so two servers do not see
/// lookups come from one place. A proxy that wants no name and password says so, and gets none.
fn socks(given: Option<(&str, &str)>) -> Result<Option<Speech>> {
    let (user, password) = match given {
        Some((user, password)) => (user.to_owned(), password.to_owned()),
        None => {
            let mut rng = SecretRng::from_os()?;
            let mut word = || format!("{:016x}{:016x}", rng.next_u64(), rng.next_u64());
            (word(), word())
        }
    };
    let fits = |word: &String| (1..=255).contains(&word.len());
    Ok((fits(&user) && fits(&password)).then_some(Speech::Socks { user, password }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_core::Blame;

    /// The way to `url` by these variables: its name, `directly`, or what is wrong.
    fn way(url: &str, variables: &[(&str, &str)]) -> String {
        let variable = |name: &str| {
            let found = variables.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| (*value).into())
        };
        match ways(&[Address::parse(url).unwrap()], &[], &variable) {
            Ok(ways) => ways[0].as_ref().map_or("directly".to_owned(), ToString::to_string),
            Err(error) => {
                assert_eq!(error.blame(), Blame::ApiMisuse);
                assert_eq!(error.reason(), Some(Reason::ProxyUnusable));
                error.message().to_owned()
            }
        }
    }

    #[test]
    fn the_environment_names_a_proxy_for_each_kind_of_address() {
        let (a, b, c) = ("http://a:1", "http://b:2", "socks5h://c:3");
        let all = [("HTTPS_PROXY", a), ("HTTP_PROXY", b), ("ALL_PROXY", c)];
        assert_eq!(way("https://x", &all), "http://a:1 (HTTPS_PROXY)");
        assert_eq!(way("http://x", &all), "http://b:2 (HTTP_PROXY)");
        assert_eq!(way("http://x", &all[2..]), "socks5h://c:3 (ALL_PROXY)");
        assert_eq!(way("http://127.0.0.1:7700", &all), "http://b:2 (HTTP_PROXY)");
        assert_eq!(way("https://x", &[("http_proxy", a)]), "directly");
        assert_eq!(way("https://x", &[]), "directly");
        let both = [("HTTPS_PROXY", a), ("https_proxy", b)];
        assert_eq!(way("https://x", &both), "http://b:2 (https_proxy)");
        // An empty variable is none.
        let empty = [("https_proxy", ""), ("ALL_PROXY", "c")];
        assert!(way("https://x", &empty).starts_with("ALL_PROXY cannot be used"));
        let in_a_web_server = [("HTTP_PROXY", b), ("REQUEST_METHOD", "GET")];
        assert_eq!(way("http://x", &in_a_web_server), "directly");
    }

    #[test]
    fn what_no_proxy_lists_is_reached_directly() {
        for (list, urls, direct) in [
            ("example.org", &["https://example.org", "https://a.example.org:7700"][..], true),
            ("example.org", &["https://example.com", "https://anexample.org"], false),
            ("a, 127.0.0.1 ,localhost", &["https://127.0.0.1:1", "https://LOCALHOST/p"], true),
            ("10.0.0.0/8,::1", &["https://10.9.8.7", "https://[0::1]:7700"], true),
            ("10.0.0.0/8", &["https://11.9.8.7", "https://localhost"], false),
            ("*", &["https://example.org"], true),
        ] {
            for url in urls {
                let found = way(url, &[("ALL_PROXY", "http://a:1"), ("NO_PROXY", list)]);
                assert_eq!(found == "directly", direct, "{list} {url}: {found}");
                // Nor is a proxy looked at that is not used.
                let unused = way(url, &[("ALL_PROXY", "nonsense://a"), ("no_proxy", list)]);
                assert_eq!(unused == "directly", direct, "{list} {url}: {unused}");
            }
        }
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_an_error_that_names_the_variable_and_no_password() {
        for (value, why) in [
            ("https://u:secret@a:1", "over TLS"),
            ("socks4://a:1", "version 5"),
            ("socks4a://a:1", "version 5"),
            ("ftp://u:secret@a:1", "scheme is not known"),
            ("tor://a", "scheme is not known"),
            ("http://u:secret@a", "names no port"),
            ("proxy", "names no port"),
            ("http://a:0", "from 1 to 65535"),
            ("socks5h://a:port", "no address"),
            ("http://a:99999", "no address"),
            ("http://", "no address"),
            ("http://u:secret@a b:1", "no address"),
            ("socks5h://:secret@a:1", "1 to 255"),
            ("socks5h://name@a:1", "1 to 255"),
        ] {
            let said = way("https://x", &[("ALL_PROXY", value)]);
            assert!(said.starts_with("ALL_PROXY cannot be used as a proxy, so nothing"), "{said}");
            assert!(said.contains(why) && !said.contains("secret"), "{value}: {said}");
        }
        assert_eq!(way("https://x", &[("ALL_PROXY", "a:3128")]), "http://a:3128 (ALL_PROXY)");
        let said = way("https://x", &[("ALL_PROXY", "HTTP://u:secret@a:3128/")]);
        assert_eq!(said, "http://a:3128 (ALL_PROXY)");
    }

    /// Name and password for the way to each of two servers.
    fn credentials(named: &[&str]) -> Vec<Option<(String, String)>> {
        let addresses = ["https://a", "https://b"].map(|url| Address::parse(url).unwrap());
        let named: Vec<String> = named.iter().map(|text| (*text).to_owned()).collect();
        let ways = ways(&addresses, &named, &|_| panic!("what is named comes first")).unwrap();
        let said = ways.into_iter().map(|way| match way?.speech {
            Speech::Socks { user, password } => Some((user, password)),
            Speech::Http(_) => None,
        });
        said.collect()
    }

    #[test]
    fn two_servers_through_one_socks_proxy_have_names_of_their_own_there() {
        for named in [&["socks5h://c"][..], &["socks5://c", "socks5h://c:1080"]] {
            let [Some(one), Some(other)] = &credentials(named)[..] else { panic!("{named:?}") };
            assert!(one.0 != other.0 && one.1 != other.1, "{named:?}");
            assert_ne!(credentials(named)[0].as_ref(), Some(one), "another client's");
        }
        let given = Some(("me".to_owned(), "a:b".to_owned()));
        let named = credentials(&["socks5h://me:a%3Ab@c", "none"]);
        assert_eq!(named, [given, None]);
    }

    #[test]
    fn proxies_are_named_for_all_servers_or_for_each() {
        let addresses = ["https://a", "https://b"].map(|url| Address::parse(url).unwrap());
        let named = ["http://c:1".to_owned(), "None".to_owned()];
        let way = ways(&addresses, &named, &|_| None).unwrap();
        assert_eq!(way[0].as_ref().unwrap().to_string(), "http://c:1 (the proxy that was named)");
        assert!(way[1].is_none());
        let error = ways(&addresses[..1], &named, &|_| None).err().unwrap();
        assert!(error.message().contains("2 proxies are named for 1 addresses"), "{error}");
    }
}
