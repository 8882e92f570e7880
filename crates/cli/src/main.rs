//! The program: [`privet_cli`] as a process of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(privet_cli::run(std::env::args_os().collect()))
}
