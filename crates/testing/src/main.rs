//! Records what a client sends under several readers of its output, and says how it differs.

#![allow(clippy::print_stdout)]

use clap::Parser;
use privet_testing::{Margins, Observed, Reading, Record, Relay, differences, observe};
use std::io;
use std::net::SocketAddr;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// Run a client through a relay, and record what it sends.
///
/// Prints a JSON object for each reading: how many messages left, their lengths and moments, and
/// how the client ended. Exits with code 1 if what was sent differs.
#[derive(Parser)]
struct Arguments {
    /// Where the server listens, without encryption
    #[arg(long, value_name = "HOST:PORT")]
    server: SocketAddr,
    /// How to read the client's output: all, first-line, last:SECONDS or slowly:BYTES_PER_SECOND.
    ///
    /// May be repeated. All records are compared with the first.
    #[arg(long, default_value = "all")]
    reading: Vec<Reading>,
    /// By how many seconds pauses may differ
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    margin: u64,
    /// The client. {url} stands for the address of the relay
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

fn main() -> io::Result<ExitCode> {
    let arguments = Arguments::parse();
    let margins = Margins { time: Duration::from_secs(arguments.margin), ..Margins::default() };
    let mut first: Option<Record> = None;
    let mut is_same = true;
    for reading in &arguments.reading {
        let relay = Relay::start(arguments.server)?;
        let mut words = arguments.command.iter().map(|word| word.replace("{url}", &relay.url()));
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        let observed = observe(command, &relay, *reading)?;
        let found = first.as_ref().map(|first| differences(first, &observed.record, &margins));
        let found = found.unwrap_or_default();
        is_same &= found.is_empty() && observed.waited_for_nobody;
        println!("{}", report(*reading, &observed, &found));
        first.get_or_insert(observed.record);
    }
    Ok(if is_same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn report(reading: Reading, observed: &Observed, differences: &[String]) -> serde_json::Value {
    let record = &observed.record;
    let (pause, before) = record.longest_pause();
    let messages = record.messages();
    serde_json::json!({
        "reading": format!("{reading:?}"),
        "bytes": record.bytes(),
        "connections": record.connections.len(),
        "messages": messages.len(),
        "seconds": record.duration().as_secs_f64(),
        "longest_pause": { "seconds": pause.as_secs_f64(), "before_message": before },
        "waited_for_nobody": observed.waited_for_nobody,
        "code": observed.code,
        "differences": differences,
        "sent": messages.iter().map(|message| (message.at, message.len)).collect::<Vec<_>>(),
    })
}
