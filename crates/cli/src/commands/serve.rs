//! `privet serve`: serves tables on the network until told to stop.

mod log;

use crate::arguments::{SchemeChoice, Serve};
use crate::display::{self, Page};
use crate::laboratory::points::{self, PointsIn, with_points};
use privet_core::{Error, Result};
use privet_host::watch::{Hangups, Watching};
use privet_host::{FollowedTable, TableFile};
use privet_kernels::Kernels;
use privet_kernels::dispatch::Arm;
use privet_kernels::memory::give_back_freed_memory;
use privet_measure::plan::cheaper;
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::{LOOKUPS_PER_DAY, Tuning};
use privet_server::{
    HintOrigin, ReadyTable, RunningServer, ServedTable, Server, ServerConfig, TlsFiles,
};
use privet_table::{RecordLayout, TableLayout};
use privet_wire::TableDescription;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Opens the tables, starts the server, prints where it listens, and runs until SIGTERM or SIGINT.
pub(crate) fn run(arguments: &Serve) -> Result<()> {
    give_back_freed_memory();
    display::be_quiet(arguments.quiet);
    log::start(arguments.log_json, arguments.quiet);
    let (tables, followed): (Vec<_>, Vec<_>) = tables(arguments)?.into_iter().unzip();
    warn_of_weak_lookups_by_key(&tables);
    let config = config(arguments)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|error| {
            Error::unavailable("the system gives no threads to serve with").caused_by(error)
        })?;
    let ended = runtime.block_on(async {
        // This comes first, because a start can take hours and an unhandled SIGHUP ends the
        // process.
        let hangups = Hangups::heard()?;
        let server = Server::start(config, tables).await?;
        server.shutdown_on_signals()?;
        let interval = Duration::from_secs(arguments.watch.into());
        let _watching = Watching::start(followed, server.table_updates(), interval, hangups);
        if !arguments.quiet {
            announce(arguments, &server);
        }
        server.wait().await
    });
    // Abandons a version that is still being made, since nothing waits for it any more.
    runtime.shutdown_background();
    ended
}

/// Opens the named tables. Returns what is served first, and what is followed afterwards.
fn tables(arguments: &Serve) -> Result<Vec<(ServedTable, FollowedTable)>> {
    if let Some(file) = &arguments.points {
        let [named] = &arguments.tables[..] else {
            return Err(Error::api_misuse(format!(
                "{} holds the points of one table: name that one alone, and serve others by another `privet serve`",
                file.display()
            )));
        };
        let (table, followed) = open(&table_file(named, arguments)?)?;
        let lies_in = if arguments.mapped { PointsIn::File } else { PointsIn::Memory };
        let table = with_points(table, file, lies_in)?;
        if let Some(asked) = arguments.scheme.named().filter(|asked| *asked != table.scheme) {
            return Err(Error::api_misuse(format!(
                "{} holds points for {}, and --scheme says {asked}: leave out --scheme, or \
                 compute points for {asked} with `privet setup points`",
                file.display(),
                table.scheme
            )));
        }
        return Ok(vec![(table, followed)]);
    }
    let (scheme, tuning) = (arguments.scheme.named(), tuning(arguments)?);
    let chosen = |file: TableFile| open(&TableFile { scheme, tuning: tuning.clone(), ..file });
    let tables = arguments.tables.iter();
    tables.map(|named| table_file(named, arguments).and_then(chosen)).collect()
}

/// Warns of tables whose scheme gives weaker privacy to lookups by key.
fn warn_of_weak_lookups_by_key(tables: &[ServedTable]) {
    for table in tables {
        let layout = TableLayout::decode(&table.layout);
        let keyed = layout.is_ok_and(|layout| matches!(layout.records(), RecordLayout::Keyed(_)));
        if let Some(warning) = table.scheme.about().weaker_by_key.filter(|_| keyed) {
            tracing::warn!(table = table.name, "by {}, {warning}", table.scheme);
        }
    }
}

fn tuning(arguments: &Serve) -> Result<Tuning> {
    arguments.options.read_all(arguments.scheme.named())
}

fn config(arguments: &Serve) -> Result<ServerConfig> {
    let mut config = ServerConfig::new(arguments.listen);
    config.metrics_listen = arguments.metrics_listen;
    config.insecure = arguments.insecure;
    config.web = arguments.web.then(|| arguments.web_origins.clone());
    if let (Some(cert), Some(key)) = (&arguments.tls_cert, &arguments.tls_key) {
        config.tls = Some(TlsFiles { cert: cert.clone(), key: key.clone() });
    }
    if let Some(threads) = arguments.threads {
        config.threads = usize::from(threads);
    }
    config.kernels = kernels(arguments.kernel)?;
    config.batch_window = Duration::from_secs_f64(arguments.batch_window / 1e3);
    config.max_batch = usize::from(arguments.max_batch);
    for (name, value) in &arguments.limits {
        config.limits.set(name, value)?;
    }
    config.cache_dir = match (&arguments.cache, arguments.no_cache) {
        (_, true) => None,
        (Some(directory), false) => Some(directory.clone()),
        (None, false) => default_cache(),
    };
    config.verify_records = !arguments.skip_verification;
    config.scrub_rate = arguments.scrub_rate;
    config.grace = Duration::from_secs(arguments.grace.into());
    config.max_version_memory = arguments.max_version_memory;
    config.progress = Some(progress(what_takes_long(arguments)));
    config.log_lines_lost = Some(display::voice::lost());
    config.check()?;
    Ok(config)
}

/// The kernels that were chosen, or the fastest ones here.
pub(crate) fn kernels(chosen: Option<Arm>) -> Result<Kernels> {
    let Some(arm) = chosen else { return Ok(Kernels::detect()) };
    Kernels::with_arm(arm).map_err(|error| Error::api_misuse(error.to_string()))
}

/// `$XDG_CACHE_HOME/privet`, or `~/.cache/privet`. `None` for a user without a home directory.
fn default_cache() -> Option<PathBuf> {
    let set =
        |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))?;
    Some(base.join("privet"))
}

/// What a start spends most of its time on if it takes long.
fn what_takes_long(arguments: &Serve) -> &'static str {
    match arguments.scheme {
        _ if arguments.points.is_some() => "checking the points of",
        SchemeChoice::Named(scheme) if points::are_made_for(scheme) => "computing the points of",
        _ => "computing the hint of",
    }
}

/// A bar for each table, on a terminal.
fn progress(what: &'static str) -> privet_server::ProgressListener {
    let shown = Mutex::new(None);
    Arc::new(move |progress: privet_server::Progress<'_>| {
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.as_ref().is_none_or(|(table, _)| table != progress.table) {
            let bar = display::share_progress(&format!("{what} {}", progress.table));
            *shown = Some((progress.table.to_owned(), bar));
        }
        if let Some((_, bar)) = shown.as_ref() {
            bar.set_position((progress.share * 1000.0) as u64);
            if progress.share >= 1.0 {
                bar.finish_and_clear();
            }
        }
    })
}

/// The table file that `FILE` or `NAME=FILE` names.
fn table_file(named: &str, arguments: &Serve) -> Result<TableFile> {
    let (name, path) = match named.split_once('=') {
        Some((name, path)) if !name.is_empty() && !name.contains('/') => {
            (Some(name), Path::new(path))
        }
        _ => (None, Path::new(named)),
    };
    let Some(name) = name.or_else(|| TableFile::default_name(path)) else {
        return Err(Error::api_misuse(format!(
            "{} gives the table no name; write NAME={}",
            path.display(),
            path.display()
        )));
    };
    Ok(TableFile { publisher: arguments.publisher, ..TableFile::new(name, path) })
}

/// Opens the file, and shows a spinner while its updates are read.
fn open(file: &TableFile) -> Result<(ServedTable, FollowedTable)> {
    if !file.has_log() {
        return file.open();
    }
    let _applying = display::working(&format!("applying the updates of {}", file.name));
    file.open()
}

fn announce(arguments: &Serve, server: &RunningServer) {
    let mut page = Page::default();
    for table in server.tables() {
        page.line(summary(table, arguments.points.as_deref()));
        if arguments.scheme == SchemeChoice::Auto && arguments.points.is_none() {
            page.line(assumed());
        }
        let TableDescription { identity, schemes, .. } = &table.description;
        let others = schemes.iter().filter_map(|served| cheaper(&served.plan, identity));
        page_advice(table).iter().for_each(|advice| {
            page.line(advice);
        });
        others.for_each(|sentence| {
            page.line(format!("  {sentence}: see `privet plan`"));
        });
    }
    if let Some(address) = server.metrics_addr() {
        page.line(format!(
            "metrics at http://{address}/metrics, health at http://{address}/healthz"
        ));
    }
    let scheme = if arguments.tls_cert.is_some() { "https" } else { "http" };
    page.line(format!("listening at {scheme}://{}", server.local_addr()));
    page.announce();
}

/// What a server without a named scheme assumed.
fn assumed() -> String {
    format!(
        "  the scheme is chosen for one operator, clients that keep no secrets, and {LOOKUPS_PER_DAY} lookups of each in a day; `privet plan` can know better"
    )
}

/// Advice for large tables and points outside huge pages, which are read noticeably more slowly.
/// Only a setting of the machine helps, and none of the program.
fn page_advice(table: &ReadyTable) -> Option<String> {
    const WORTH_IT: u64 = 64 << 20;
    let bytes = table.setup_bytes.unwrap_or(table.description.identity.shape.bytes());
    let huge = table.huge_page_bytes?;
    (bytes >= WORTH_IT && huge < bytes / 2).then(|| {
        format!(
            "  only {} of {} lie in huge pages, so answers are slower than they could be; `privet doctor` says what to do",
            display::bytes(huge),
            display::bytes(bytes)
        )
    })
}

fn summary(table: &ReadyTable, points: Option<&Path>) -> String {
    let description = &table.description;
    let shape = description.identity.shape;
    let schemes: Vec<String> =
        description.schemes.iter().map(|scheme| scheme.plan.scheme.to_string()).collect();
    format!(
        "table {}: {} of {}, {}, {}, ready in {:.1} s, digest {}",
        description.name,
        display::some(shape.records(), "record", "records"),
        display::bytes(shape.record_len()),
        schemes.join(", "),
        hint_words(table, points),
        table.seconds,
        description.identity.digest
    )
}

/// What the server or its clients need beside the table, and its origin. `points` is the file of
/// points, if there is one.
fn hint_words(table: &ReadyTable, points: Option<&Path>) -> String {
    if let Some(bytes) = table.setup_bytes {
        let from = match (table.hint_origin, points) {
            (HintOrigin::File, Some(file)) => format!("read from {}", file.display()),
            (HintOrigin::Mapped, Some(file)) => format!("mapped from {}", file.display()),
            _ => "computed".to_owned(),
        };
        return format!("points of {} {from}", display::bytes(bytes));
    }
    let plan = table.description.schemes.first().map(|scheme| &scheme.plan);
    match (table.hint_origin, plan.map(|plan| plan.offline)) {
        (HintOrigin::None, _) | (_, None) => "no hint to compute".to_owned(),
        (origin, Some(OfflinePhase::Download { len })) => {
            format!("hint of {} {}", display::bytes(len), origin.name())
        }
        (origin, Some(_)) => format!("commitments {}", origin.name()),
    }
}
