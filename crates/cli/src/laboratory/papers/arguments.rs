//! What can be typed after `privet papers`.

use crate::laboratory::examples;
use crate::laboratory::papers::Name;
use clap::Args;
use privet_measure::load::parse_time;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args)]
#[command(after_long_help = examples::PAPERS)]
pub(crate) struct Papers {
    /// The papers whose figures are measured; default: all, and how cost grows
    #[arg(value_enum, value_name = "PAPER")]
    pub(crate) names: Vec<Name>,
    /// Small tables only, in some minutes instead of hours
    #[arg(long)]
    pub(crate) quick: bool,
    /// Leave out runs that would take longer, and extrapolate them; default: 600s, or 2s with
    /// --quick
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) longest: Option<Duration>,
    /// Judge by this machine's yardsticks what takes too long, instead of measuring this machine.
    ///
    /// `privet plan --save-machine` writes such a file.
    #[arg(long, value_name = "FILE")]
    pub(crate) machine: Option<PathBuf>,
    /// The folder for the page, its plots and the results.
    ///
    /// What was measured into it before, on the same machine, is not measured again.
    #[arg(short, long, value_name = "FOLDER", default_value = "papers")]
    pub(crate) output: PathBuf,
}
