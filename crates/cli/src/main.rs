//! `privet`: build a table, serve it, look records up without the server learning which.
//!
//! | module | what it holds |
//! |---|---|
//! | [`arguments`] | what can be typed, and the help that explains it |
//! | [`commands`] | one module for each command |
//! | [`bench`](mod@bench) | `privet bench`: one scheme measured on one shape, with the machine's limits taken in the same run |
//! | [`mod@load`] | `privet load`: a running server under lookups that come at a fixed rate |
//! | [`traffic`] | bytes that cross the wire |
//! | [`machine`] | how fast a machine does what schemes count |
//! | [`tuning`] | what a user chooses about a scheme beyond its name |
//! | [`advice`] | which flag or command solves an error |
//! | [`display`] | bytes, durations and progress for people |
//! | [`output_file`] | what a command may write over |
//! | [`plot`](mod@plot) | curves in an SVG file |
//! | [`printable`] | text from others, made harmless for a terminal |
//! | [`yardsticks`] | the limits of one core of this machine |
//! | [`exit`] | what each exit code means |

mod advice;
mod arguments;
mod bench;
mod commands;
mod display;
mod exit;
mod key_form;
mod load;
mod machine;
mod output_file;
mod plot;
mod printable;
mod traffic;
mod tuning;
mod yardsticks;

use arguments::{Arguments, Command};
use std::process::ExitCode;

// Test builds can plant mistakes on purpose. No release binary may contain that.
const _: () = assert!(
    cfg!(debug_assertions) || !privet_core::hints::PLANTED_LEAKS,
    "`planted-leaks` is for tests, and on in a release build"
);

fn main() -> ExitCode {
    let (arguments, command) = match Arguments::typed() {
        Ok(typed) => typed,
        Err(error) => return exit::from_usage(&error),
    };
    let outcome = match arguments.command {
        Command::Build(build) => commands::build::run(&build),
        Command::Inspect(inspect) => commands::inspect::run(&inspect),
        Command::Setup(setup) => commands::setup::run(&setup),
        Command::Keygen(keygen) => commands::keygen::run(&keygen),
        Command::Update(update) => commands::update::run(&update),
        Command::Serve(serve) => commands::serve::run(&serve),
        Command::Get(get) => commands::get::run(&get),
        Command::State(state) => commands::state::run(&state),
        Command::Demo(demo) => commands::demo::run(&demo),
        Command::Papers(papers) => commands::papers::run(&papers),
        Command::Plan(plan) => commands::plan::run(&plan),
        Command::Bench(bench) => bench::run(&bench),
        Command::Load(load) => load::run(&load),
        Command::Tradeoff(tradeoff) => commands::tradeoff::run(&tradeoff),
        Command::Completions(completions) => commands::manual::completions(&completions),
        Command::Man(man) => commands::manual::pages(&man),
        Command::Doctor(doctor) => commands::doctor::run(&doctor),
    };
    exit::from_outcome(outcome, &command)
}
