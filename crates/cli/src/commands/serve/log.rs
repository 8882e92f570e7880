//! What a server logs, with the way out of errors beside their reasons.

use crate::advice;
use crate::arguments::Arguments;
use clap::CommandFactory as _;
use privet_core::Reason;
use std::fmt;
use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultFields, Writer};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Logs to standard error; `RUST_LOG` chooses what. `quiet`: without it, no more than warnings.
pub(super) fn start(json: bool, quiet: bool) {
    let usual = if quiet { LevelFilter::WARN } else { LevelFilter::INFO };
    let typed = std::env::var("RUST_LOG").ok();
    let filter: Targets = typed
        .and_then(|typed| typed.parse().ok())
        .unwrap_or_else(|| Targets::new().with_default(usual));
    let builder =
        tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE).with_writer(std::io::stderr);
    // A second subscriber in one process is refused; the first then stays.
    let _ = match json {
        true => builder.json().finish().with(filter).try_init(),
        false => builder.fmt_fields(Advised::new()).finish().with(filter).try_init(),
    };
}

/// Lines for people. What reads JSON has the reason, and needs no flags.
struct Advised {
    usual: DefaultFields,
    command: clap::Command,
}

impl Advised {
    fn new() -> Self {
        let command = Arguments::command().find_subcommand("serve").cloned().unwrap_or_default();
        Self { usual: DefaultFields::new(), command }
    }
}

impl<'writer> FormatFields<'writer> for Advised {
    fn format_fields<R: RecordFields>(
        &self,
        mut writer: Writer<'writer>,
        fields: R,
    ) -> fmt::Result {
        self.usual.format_fields(writer.by_ref(), &fields)?;
        let mut found = Found(None);
        fields.record(&mut found);
        match found.0.and_then(|reason| advice::way_out(reason, &self.command)) {
            Some(words) => write!(writer, " ({words})"),
            None => Ok(()),
        }
    }
}

/// The reason among the fields of a line.
struct Found(Option<Reason>);

impl Visit for Found {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "reason" {
            self.0 = Reason::ALL.iter().copied().find(|reason| reason.name() == value);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}
