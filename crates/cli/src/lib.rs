//! The command `privet`: build a table, serve it, look records up without the server learning
//! which.
//!
//! A library, so that the package for Python has the command too.
//!
//! | module | what it holds |
//! |---|---|
//! | `arguments` | what can be typed, and the help that explains it |
//! | `commands` | one module for each command |
//! | `laboratory` | commands about schemes for study, and what the others need of these schemes |
//! | `tuning` | what a user chooses about a scheme beyond its name |
//! | `advice` | which flag or command solves an error |
//! | `display` | bytes, durations and progress for people |
//! | `printable` | text from others, made harmless for a terminal |
//! | `exit` | what each exit code means |

mod advice;
mod arguments;
mod commands;
mod display;
mod exit;
mod key_form;
mod key_list;
mod laboratory;
mod printable;
mod room;
mod tuning;

pub use printable::{printable, printable_lines};

use arguments::{Arguments, Command};
use exit::Outcome;
use privet_core::{Error, Result};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

// Test builds can plant mistakes on purpose. No release binary may contain that.
const _: () = assert!(
    cfg!(debug_assertions) || !privet_core::planted::PLANTED_LEAKS,
    "`planted-leaks` is for tests, and on in a release build"
);

/// How to start the command as a process of its own, if the program that runs is not it.
static PROGRAM: OnceLock<Vec<OsString>> = OnceLock::new();

/// Says how to start the command as a process of its own, in words to which more are added. The
/// first call counts. Without any, it is this process' program.
pub fn set_program(words: Vec<OsString>) {
    PROGRAM.get_or_init(|| words);
}

/// The command as a process of its own, to which arguments are added.
fn program() -> std::io::Result<std::process::Command> {
    let words = match PROGRAM.get() {
        Some(words) => words.clone(),
        None => vec![std::env::current_exe()?.into()],
    };
    let mut words = words.into_iter();
    let program = words.next().ok_or_else(|| std::io::Error::other("no program was named"))?;
    let mut command = std::process::Command::new(program);
    command.args(words);
    Ok(command)
}

/// Runs the command as it was `typed`, the program's name first. It prints what it has to say, and
/// returns the exit code. Some commands end the process themselves.
pub fn run(typed: Vec<OsString>) -> u8 {
    // Standard error may be stuck, and a panic would wait for it.
    std::panic::set_hook(Box::new(|panic| {
        let mut text = panic.to_string();
        let trace = std::backtrace::Backtrace::capture();
        if trace.status() == std::backtrace::BacktraceStatus::Captured {
            text.push_str(&format!("\n{trace}"));
        }
        // Not through a progress bar, which may be where the panic is.
        let text = format!("privet: {}\n", printable_lines(&text));
        display::voice::on_error().say(text.into_bytes(), 1);
    }));
    let _farewell = Farewell;
    let (arguments, command) = match Arguments::typed(typed) {
        Ok(typed) => typed,
        Err(error) => return exit::from_usage(&error),
    };
    let done = match arguments.command {
        Command::Get(get) => return exit::from_outcome(commands::get::run(&get), &command),
        Command::Load(load) => return exit::from_outcome(commands::load::run(&load), &command),
        Command::Build(build) => commands::build::run(&build),
        Command::Inspect(inspect) => commands::inspect::run(&inspect),
        Command::Setup(setup) => laboratory::setup::run(&setup),
        Command::Keygen(keygen) => commands::keygen::run(&keygen),
        Command::Update(update) => commands::update::run(&update),
        Command::Serve(serve) => commands::serve::run(&serve),
        Command::State(state) => commands::state::run(&state),
        Command::Demo(demo) => commands::demo::run(&demo),
        Command::Papers(papers) => laboratory::papers::run(&papers),
        Command::Plan(plan) => commands::plan::run(&plan),
        Command::Bench(bench) => commands::bench::run(&bench),
        Command::Tradeoff(tradeoff) => laboratory::tradeoff::run(&tradeoff),
        Command::Completions(completions) => commands::manual::completions(&completions),
        Command::Man(man) => commands::manual::pages(&man),
        Command::Doctor(doctor) => commands::doctor::run(&doctor),
    };
    exit::from_outcome(done.map(|()| Outcome::Done), &command)
}

/// Writes what still waits to be written when the command ends, also by a panic.
struct Farewell;

impl Drop for Farewell {
    fn drop(&mut self) {
        display::voice::farewell();
    }
}

/// What `privet inspect --json` prints of the table at `path`, with each byte checked if `verify`
/// is true.
///
/// # Errors
/// Those of the command.
pub fn inspected(path: PathBuf, verify: bool) -> Result<String> {
    display::be_quiet(true);
    let arguments = arguments::Inspect { file: path, verify, head: None, json: true };
    serde_json::to_string(&commands::inspect::Inspected::of(&arguments)?.shown())
        .map_err(|error| Error::internal("a report is no JSON").caused_by(error))
}
