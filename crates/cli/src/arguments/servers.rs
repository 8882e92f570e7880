//! What every command that looks records up takes: whom to ask, what to trust, how long to wait.

use super::{parse_bytes, parse_known, parse_scheme_name, verifying_schemes};
use clap::Args;
use privet_client::{ClientOptions, Patience};
use privet_core::{Epoch, TableDigest};
use privet_schemes::SchemeId;
use privet_table::TableRoot;
use privet_table::update_log::PublisherId;
use std::path::PathBuf;
use std::time::Duration;

/// Headings of groups of options.
pub(super) const TRUST: &str = "Whom and what to trust";
pub(super) const LIMITS: &str = "Limits";

#[derive(Args)]
pub(crate) struct Addresses {
    /// Address of the server, such as http://127.0.0.1:7700; or of all servers.
    ///
    /// A path may follow, as in https://example.org/privet, if the server lies behind one. For
    /// schemes that take several servers, name all, in the same order every time: for those
    /// that keep hints (dummy-subsets-two, singlepass, tapir-mt, tapir-pp) it decides who learns
    /// what. The first server of dummy-subsets-two and singlepass computes the hints and learns
    /// their key, which the second must never learn. By tapir-mt, tapir-pp, apir-dpf and
    /// apir-matrix-mt answers are verified: a wrong one ends the command with exit code 4. In
    /// PRIVET_URL, addresses have spaces or commas between.
    #[arg(required = true, value_name = "URL", value_parser = parse_urls)]
    #[arg(env = "PRIVET_URL", hide_env_values = true)]
    urls: Vec<Urls>,
}

#[derive(Args)]
pub(crate) struct Trust {
    /// Use only these schemes, the most wanted first.
    ///
    /// Names with commas between, or the option repeated. Without it, what was used before with the
    /// table stays; otherwise those that verify answers come first, and no server's order of offers
    /// decides.
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = parse_scheme_name)]
    #[arg(help_heading = TRUST)]
    pub(crate) scheme: Vec<SchemeId>,
    #[arg(long, help = "Use only schemes that verify answers", long_help = verifying_schemes())]
    #[arg(help_heading = TRUST)]
    pub(crate) verified: bool,
    /// Certificates to trust for https instead of the system's, in PEM.
    ///
    /// Those of authorities, or a server's own. Nobody else is trusted then. A file may have
    /// several; one that has the system's as well trusts both.
    #[arg(long, value_name = "FILE", help_heading = TRUST)]
    pub(crate) ca_file: Option<PathBuf>,
    /// Reach the servers through this proxy; `none`: through no proxy.
    ///
    /// http://HOST:PORT or socks5h://HOST:PORT, with NAME:PASSWORD@ before the host if it wants
    /// that. Once for all servers, or once for each in their order. Without it, HTTPS_PROXY,
    /// HTTP_PROXY, ALL_PROXY and NO_PROXY say which. A proxy that cannot be used is an error:
    /// nothing goes around it. By Tor (socks5h://127.0.0.1:9050), each server is asked on a circuit
    /// of its own. What is typed here, other users of this machine can read; a password is better
    /// set in the environment.
    #[arg(long, value_name = "URL", help_heading = TRUST, hide_short_help = true)]
    proxy: Vec<String>,
    /// Allow plaintext to several servers that are not on this machine.
    ///
    /// Whoever listens nearby then sees the queries to all of them, and can tell what is looked up.
    #[arg(long, help_heading = TRUST)]
    pub(crate) insecure: bool,
    /// The table's root, from whoever built it with --authenticate.
    ///
    /// Any other table is refused before anything is asked, and any record that does not belong to
    /// it. Without --root, records of such a table are verified against the root that the server
    /// announced at first use, which is pinned with the table: that finds damage, not a server that
    /// lied from the beginning.
    #[arg(long, value_name = "HEX", value_parser = parse_known::<TableRoot>, help_heading = TRUST)]
    pub(crate) root: Option<TableRoot>,
    /// Who publishes the table, as `privet keygen` printed it.
    ///
    /// A table with updates by anybody else, or by nobody, is refused before anything is asked.
    /// Without --publisher, it is whoever the server named at first use.
    #[arg(long, value_name = "HEX", value_parser = parse_known::<PublisherId>)]
    #[arg(help_heading = TRUST)]
    pub(crate) publisher: Option<PublisherId>,
    /// The digest of the version to use, as `privet inspect` prints it.
    ///
    /// Nothing is asked of servers that say that they serve another version, and nothing more once
    /// they stop serving this one. By most schemes, a server that lies about its digest is not
    /// found out by this: name the publisher or the root as well.
    #[arg(long, value_name = "HEX", value_parser = parse_known::<TableDigest>)]
    #[arg(help_heading = TRUST)]
    pub(crate) digest: Option<TableDigest>,
    /// The earliest version to use: its epoch.
    ///
    /// Nothing is asked of servers that are behind. The command ends with exit code 3 then, because
    /// they may catch up.
    #[arg(long, value_name = "N", help_heading = TRUST)]
    pub(crate) at_least_epoch: Option<u64>,
}

#[derive(Args)]
pub(crate) struct Limits {
    /// Refuse to receive more than this before the first lookup.
    ///
    /// In bytes, such as 100MB or 4GiB. It counts the record layout, the hint, the table or stream,
    /// and updates; hints that take more are not kept either.
    #[arg(long, value_name = "BYTES", default_value = "4GiB", value_parser = parse_bytes)]
    #[arg(help_heading = LIMITS)]
    pub(crate) max_download: u64,
    /// Wait so long for a server that does not answer [default: 120].
    ///
    /// A lookup fails, with exit code 3, once a server has left it waiting for about so long: half
    /// of it for an answer, half of it in new attempts. While a server computes hints, the default
    /// is 600.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86400))]
    #[arg(help_heading = LIMITS)]
    timeout: Option<u32>,
    /// Give up a download slower than this, in bytes a second [default: 8192]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = LIMITS)]
    pub(crate) min_rate: Option<u64>,
}

impl Addresses {
    /// The addresses of the servers.
    pub(crate) fn urls(&self) -> Vec<&str> {
        self.urls.iter().flat_map(|urls| &urls.0).map(String::as_str).collect()
    }
}

impl Trust {
    /// Has a client trust what was typed.
    pub(crate) fn apply_to(&self, options: &mut ClientOptions) {
        options.session.schemes.clone_from(&self.scheme);
        options.session.verified = self.verified;
        options.ca_file.clone_from(&self.ca_file);
        options.proxies.clone_from(&self.proxy);
        options.insecure = self.insecure;
        options.session.root = self.root;
        options.session.publisher = self.publisher;
        options.session.digest = self.digest;
        options.session.at_least_epoch = self.at_least_epoch.map(Epoch);
    }
}

impl Limits {
    /// How long a server may leave the command waiting, if that was said.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout.map(|seconds| Duration::from_secs(seconds.into()))
    }

    /// Has a client keep to these limits.
    pub(crate) fn apply_to(&self, options: &mut ClientOptions) {
        options.session.max_download = self.max_download;
        if let Some(limit) = self.timeout() {
            options.session.patience = Patience::within(limit);
        }
        if let Some(rate) = self.min_rate {
            options.session.patience = options.session.patience.at_rate(rate);
        }
    }
}

/// Addresses, with spaces or commas between.
#[derive(Clone)]
struct Urls(Vec<String>);

fn parse_urls(text: &str) -> Result<Urls, String> {
    let urls = text.split([' ', ',']).filter(|url| !url.is_empty());
    let urls: Vec<String> = urls.map(str::to_owned).collect();
    if urls.is_empty() { Err("an address is expected".to_owned()) } else { Ok(Urls(urls)) }
}
