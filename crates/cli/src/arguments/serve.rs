//! What can be typed after `privet serve`.

use super::{
    SchemeChoice, SchemeOptions, advice, examples, options, parse_address, parse_arm,
    parse_bytes_or_none, parse_known, parse_milliseconds, parse_scheme, served_schemes,
};
use clap::Args;
use privet_kernels::dispatch::Arm;
use privet_server::{Limits, WebOrigin};
use privet_table::update_log::PublisherId;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Headings of groups of options.
const SCHEME: &str = "Table and scheme";
const NETWORK: &str = "Network";
const CHANGES: &str = "Tables that change";
const SPEED: &str = "Speed and memory";

#[derive(Args)]
#[command(after_long_help = examples::SERVE)]
pub(crate) struct Serve {
    /// Table files, each as FILE or NAME=FILE.
    ///
    /// A table is named after its file, without the extension; NAME=FILE chooses another name.
    #[arg(required = true, value_name = "[NAME=]FILE")]
    pub(crate) tables: Vec<String>,

    #[arg(long, default_value = "auto", value_parser = parse_scheme, help_heading = SCHEME)]
    #[arg(help = "Scheme to answer with, such as simplepir or dpf; `auto` chooses")]
    #[arg(long_help = served_schemes())]
    pub(crate) scheme: SchemeChoice,
    /// Answer from points that `privet setup points` computed.
    ///
    /// For finite-differences and finite-differences-many, and for one table, from which the points
    /// were computed. They are read into memory. The scheme and what was chosen for it are those of
    /// the file.
    #[arg(long, value_name = "FILE", conflicts_with_all = options::names())]
    #[arg(help_heading = SCHEME, hide_short_help = true)]
    pub(crate) points: Option<PathBuf>,
    /// With --points: leave the points in the file.
    ///
    /// The system keeps in memory what there is room for. The file is still read once at the start,
    /// to check it.
    #[arg(long, requires = "points", help_heading = SCHEME, hide_short_help = true)]
    pub(crate) mapped: bool,
    /// Serve tables without verifying their records.
    ///
    /// A start is shorter by the time in which a table is read once, but hints are computed anew.
    /// From a damaged table clients then get wrong records, and nobody notices.
    #[arg(long, help_heading = SCHEME, hide_short_help = true)]
    pub(crate) skip_verification: bool,

    /// Address to listen on; a port alone is of this machine
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7700", value_parser = parse_address)]
    #[arg(help_heading = NETWORK)]
    pub(crate) listen: SocketAddr,
    /// Certificate chain in PEM; with --tls-key
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = NETWORK)]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key in PEM; with --tls-cert.
    ///
    /// Without a passphrase. A key that anybody on this machine can read is refused.
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = NETWORK)]
    pub(crate) tls_key: Option<PathBuf>,
    /// Allow plaintext on an address that is not loopback
    #[arg(long, help_heading = NETWORK)]
    pub(crate) insecure: bool,
    /// Serve pages in browsers as well, by gRPC-Web on the same port.
    ///
    /// Pages of which origins, --web-origin says. Pages that a proxy shows under the server's own
    /// origin need none.
    #[arg(long, help_heading = NETWORK)]
    pub(crate) web: bool,
    /// Origin whose pages may look up, such as https://example.org; may be repeated.
    ///
    /// Scheme, host and port, as the browser shows them. Whoever serves a page can read what is
    /// looked up there, so there is no word for all origins.
    #[arg(long = "web-origin", value_name = "URL", requires = "web", help_heading = NETWORK)]
    #[arg(value_parser = parse_origin)]
    pub(crate) web_origins: Vec<WebOrigin>,
    /// Second address, for /metrics (Prometheus) and /healthz.
    ///
    /// Without TLS, and for anybody who reaches it: it shows the names of the tables, and when and
    /// how much is looked up.
    #[arg(long, value_name = "ADDR", value_parser = parse_address, help_heading = NETWORK)]
    pub(crate) metrics_listen: Option<SocketAddr>,
    /// Another limit on what clients may hold, such as connections=1000; may be repeated
    #[arg(long = "limit", value_name = "NAME=VALUE", value_parser = parse_limit)]
    #[arg(long_help = limits(), help_heading = NETWORK, hide_short_help = true)]
    pub(crate) limits: Vec<(String, String)>,

    /// Seconds between two looks for new updates.
    ///
    /// If a table file or its update log has changed, the table is served with the new updates. 0:
    /// only when told to by SIGHUP.
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=86400))]
    #[arg(help_heading = CHANGES)]
    pub(crate) watch: u32,
    /// Seconds for which the previous version is served after an update.
    ///
    /// It stands beside the new one, for clients that are in the middle of something. Each version
    /// takes memory of its own; at most 3 earlier ones are kept.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u32).range(0..=86400))]
    #[arg(help_heading = CHANGES)]
    pub(crate) grace: u32,
    /// Memory that versions beside the newest may hold; default: as much as that.
    ///
    /// In bytes, of all tables together. The version that is being made counts as well, and can
    /// always be made. Earlier versions that find no room give way before --grace ends, the
    /// earliest of the table first, and their clients move on at once. Versions of other tables do
    /// not give way to it: allow for one version of the largest table besides. 0: keep none. By
    /// default, a table's other versions hold at most a tenth more than its newest one, so two of
    /// them are in memory at most; versions of small tables may hold 16 MiB.
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes_or_none, help_heading = CHANGES)]
    #[arg(hide_short_help = true)]
    pub(crate) max_version_memory: Option<u64>,
    /// Who has to sign the updates of these tables, as `privet keygen` printed it.
    ///
    /// An update log of anybody else is refused. Without it, it is whoever a table's log names when
    /// it is opened first.
    #[arg(long, value_name = "HEX", value_parser = parse_known::<PublisherId>)]
    #[arg(help_heading = CHANGES)]
    pub(crate) publisher: Option<PublisherId>,

    /// Where precomputed hints are kept between starts.
    ///
    /// Default: the user's cache directory.
    #[arg(long, value_name = "DIR", env = "PRIVET_CACHE", hide_env_values = true)]
    #[arg(help_heading = SPEED)]
    pub(crate) cache: Option<PathBuf>,
    /// Keep precomputed hints in memory only, whatever --cache says
    #[arg(long, help_heading = SPEED)]
    pub(crate) no_cache: bool,
    /// Threads that compute answers; default: all cores.
    ///
    /// They share each pass over a table. Answers that read only a part of it are computed side by
    /// side.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    #[arg(help_heading = SPEED)]
    pub(crate) threads: Option<u16>,
    /// Collect queries for at most this long before a pass.
    ///
    /// In milliseconds. Queries that come while a pass runs are answered together by the next one
    /// in any case. A window makes batches larger where many clients ask, and every lookup slower.
    #[arg(long, value_name = "MS", default_value_t = 0.0, value_parser = parse_milliseconds)]
    #[arg(help_heading = SPEED)]
    pub(crate) batch_window: f64,
    /// Most queries answered in one pass
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    #[arg(help_heading = SPEED)]
    pub(crate) max_batch: u16,
    /// Bytes to read again each second, to find damage.
    ///
    /// What is answered from is read, in memory and in files. A table in which damage is found is
    /// not served any more. 0: read nothing again.
    #[arg(long, value_name = "BYTES", default_value = "32MiB", value_parser = parse_bytes_or_none)]
    #[arg(help_heading = SPEED)]
    pub(crate) scrub_rate: u64,
    /// Instruction set to compute with: portable, avx2 or avx512; default: the best there is
    #[arg(long, value_parser = parse_arm, help_heading = SPEED, hide_short_help = true)]
    pub(crate) kernel: Option<Arm>,

    /// Log as JSON lines
    #[arg(long)]
    pub(crate) log_json: bool,
    /// Say nothing but warnings and errors
    #[arg(short, long)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) options: SchemeOptions,
}

/// All limits, with what they are unless something else is said.
fn limits() -> String {
    let mut text = "Another limit on what clients may hold. May be repeated.\n\n\
         One address may hold a quarter of each unless NAME-per-peer says otherwise; an IPv6 \
         address counts with all that begin with the same 64 bits. docs/operating.md says what to \
         set behind a proxy.\n\n"
        .to_owned();
    for (name, meaning) in Limits::NAMES {
        let value = Limits::default().value(name).unwrap_or_default();
        text.push_str(&format!("{name}={value}: {meaning}\n"));
    }
    text
}

fn parse_origin(text: &str) -> Result<WebOrigin, String> {
    text.parse().map_err(|error| advice::told_anywhere(&error))
}

/// NAME=VALUE, for an existing limit.
fn parse_limit(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("{text:?} is not NAME=VALUE, such as connections=1000"))?;
    let set = Limits::default().set(name, value);
    set.map_err(|error| advice::told_anywhere(&error))?;
    Ok((name.to_owned(), value.to_owned()))
}
