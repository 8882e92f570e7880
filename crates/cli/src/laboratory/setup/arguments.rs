//! What can be typed after `privet setup`.

use crate::arguments::{SchemeOptions, parse_arm, parse_scheme_name, parse_size};
use crate::laboratory::examples;
use clap::{Args, Subcommand};
use privet_core::quantities::parse_bytes;
use privet_kernels::dispatch::Arm;
use privet_schemes::SchemeId;
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct Setup {
    #[command(subcommand)]
    pub(crate) action: SetupAction,
}

#[derive(Subcommand)]
pub(crate) enum SetupAction {
    /// Make a reference string for tapir-pp.
    ///
    /// Whoever makes it must be trusted by all clients: who knows the secret number it is made from
    /// can prove any record. The number is erased when the command ends.
    #[command(after_long_help = examples::SETUP_POINTPROOFS)]
    Pointproofs(SetupPointproofs),
    /// Compute what servers of finite differences answer from, into a file.
    ///
    /// For finite-differences and finite-differences-many: `serve --points` takes the file. It
    /// belongs to this one version of the table, and may be larger than the memory.
    #[command(after_long_help = examples::SETUP_POINTS)]
    Points(SetupPoints),
}

#[derive(Args)]
pub(crate) struct SetupPointproofs {
    /// Records in a partition of the table, at most 65536.
    ///
    /// About twice the square root of the number of records is a good choice. Tables of any size
    /// can be served with it, in partitions of up to so many records.
    #[arg(long, value_name = "M", value_parser = parse_size)]
    pub(crate) size: u32,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Replace the file if there is one.
    ///
    /// Servers and clients that use it cannot go on without it.
    #[arg(long)]
    pub(crate) force: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct SetupPoints {
    /// The table file
    #[arg(value_name = "TABLE")]
    pub(crate) table: PathBuf,
    /// The scheme that will answer: finite-differences or finite-differences-many
    #[arg(long, value_parser = parse_scheme_name)]
    pub(crate) scheme: SchemeId,
    /// The file to write, on a disk with room for all points
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Memory to compute with, beside the table.
    ///
    /// Default: half of what is available. With less than the points take, they are read from the
    /// disk and written again.
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub(crate) memory: Option<u64>,
    /// Threads to compute with; default: all cores
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Instruction set to compute with: portable, avx2 or avx512; default: the best there is
    #[arg(long, value_parser = parse_arm)]
    pub(crate) kernel: Option<Arm>,
    /// Replace the file if there is one
    #[arg(long)]
    pub(crate) force: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) options: SchemeOptions<true>,
}
