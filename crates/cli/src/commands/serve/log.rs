//! The server's log, with the way out of each error beside its reason.

mod libraries;

use crate::advice;
use crate::arguments::Arguments;
use crate::display::voice::{self, LogLine};
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

/// Logs to standard error at the levels that `RUST_LOG` chooses. Without `RUST_LOG`, `quiet` limits
/// the log to warnings and errors.
pub(super) fn start(json: bool, quiet: bool) {
    let usual = if quiet { LevelFilter::WARN } else { LevelFilter::INFO };
    let typed = std::env::var("RUST_LOG").ok();
    let filter: Targets = typed
        .and_then(|typed| typed.parse().ok())
        .unwrap_or_else(|| Targets::new().with_default(usual));
    voice::tell_losses_by(|words| tracing::warn!("{words}"));
    let builder = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_writer(|| LogLine)
        // They would go to standard error, wait for its reader, and panic if it has gone.
        .log_internal_errors(false);
    let bound = libraries::Bound::default();
    // A process takes only one subscriber. A second is refused, and the first stays.
    let _ = match json {
        true => builder.json().finish().with(filter).with(bound).try_init(),
        false => builder.fmt_fields(Advised::new()).finish().with(filter).with(bound).try_init(),
    };
}

/// Formats lines for people. Programs that read JSON get the reason, and need no advice on flags.
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
        let mut found = ReasonVisitor(None);
        fields.record(&mut found);
        match found.0.and_then(|reason| advice::way_out(reason, &self.command)) {
            Some(words) => write!(writer, " ({words})"),
            None => Ok(()),
        }
    }
}

/// The reason, if a line has one among its fields.
struct ReasonVisitor(Option<Reason>);

impl Visit for ReasonVisitor {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "reason" {
            self.0 = Reason::ALL.iter().copied().find(|reason| reason.name() == value);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}
