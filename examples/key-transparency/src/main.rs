//! Key transparency: what a messenger does to find out the public keys of its users' friends.
//!
//! The publisher and the operators of the two servers need the command `privet` alone. This program
//! has the parts beside it: the messenger's, an attacker's, and the measurement. `run.sh` puts all
//! of them together, and README.md says what for.
//!
//! | module | what it holds |
//! |---|---|
//! | [`people`] | who the users are, and their public keys |
//! | [`directory`] | looks keys up, privately and verified, and follows the epochs |
//! | [`monitor`] | an owner's eye on the own key: what raises an alarm |
//! | [`liar`] | a server that gives false answers |
//! | [`measure`] | the sizes of the TAPIR paper, beside its figures |
//!
//! Exit codes are those of `privet get`: 0 found, 1 not found (or an alarm), 2 usage, 3 server or
//! network, 4 do not try again.

mod directory;
mod liar;
mod measure;
mod monitor;
mod people;

use clap::{Args, Parser, Subcommand};
use directory::{Directory, Preparation};
use monitor::{Account, Verdict};
use privet_client::PublisherId;
use privet_core::{Blame, Error, Result};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "Key transparency on Privet: the messenger's side, an attacker, a measurement")]
enum Command {
    /// Print the directory of COUNT users, as CSV with the columns user and key
    People { count: u32 },
    /// Print the key that a user has after some rotations
    Key {
        user: String,
        #[arg(long, default_value_t = 0)]
        rotations: u32,
    },
    /// Look up the keys of these users
    LookUp {
        #[command(flatten)]
        servers: Servers,
        #[arg(required = true)]
        users: Vec<String>,
    },
    /// Watch the own key
    #[command(subcommand)]
    Own(Own),
    /// Stand before an honest server, and change a bit of every answer
    Lie { url: String },
    /// Run `privet bench` at the paper's sizes, and print a Markdown table
    Measure(measure::Arguments),
}

#[derive(Subcommand)]
enum Own {
    /// Note that the owner has asked the publisher to publish this key
    AskFor { account: PathBuf, user: String, key: String },
    /// Look the own key up, and raise an alarm if it is not what its owner asked for
    Check {
        #[command(flatten)]
        servers: Servers,
        account: PathBuf,
    },
}

/// Whom to ask, and what is known of them beforehand.
#[derive(Args)]
struct Servers {
    /// The addresses of the two servers, always in the same order
    #[arg(long = "server", value_name = "URL", required = true)]
    urls: Vec<String>,
    /// Who signs the directory, as the publisher says, and not a server
    #[arg(long, value_name = "HEX")]
    publisher: PublisherId,
    /// Where this client keeps its secret hints and its pins
    #[arg(long, value_name = "DIR")]
    state: PathBuf,
}

fn main() -> ExitCode {
    let outcome = match Command::parse() {
        Command::People { count } => print(&people::csv(count)),
        Command::Key { user, rotations } => print(&format!("{}\n", people::key(&user, rotations))),
        Command::LookUp { servers, users } => look_up(&servers, &users),
        Command::Own(Own::AskFor { account, user, key }) => ask_for(&account, user, key),
        Command::Own(Own::Check { servers, account }) => check(&servers, &account),
        Command::Lie { url } => liar::lie(url).map(|()| ExitCode::SUCCESS),
        Command::Measure(arguments) => measure::run(&arguments).and_then(|table| print(&table)),
    };
    outcome.unwrap_or_else(|error| {
        let mut told = format!("key-transparency: {error}");
        let mut cause = std::error::Error::source(&error);
        while let Some(next) = cause {
            told.push_str(&format!("\n  because: {next}"));
            cause = next.source();
        }
        // Nothing is left to do if not even this can be written.
        let _ = writeln!(io::stderr(), "{told}");
        ExitCode::from(match error.blame() {
            Blame::ApiMisuse => 2,
            Blame::Integrity | Blame::Corrupted | Blame::Selective => 4,
            _ => 3,
        })
    })
}

/// Prints a line for each user, with key and epoch, and on standard error what was received.
fn look_up(servers: &Servers, users: &[String]) -> Result<ExitCode> {
    let directory = Directory::open(servers)?;
    let mut code = ExitCode::SUCCESS;
    for user in users {
        let seen = directory.look_up(user)?;
        let key = seen.key.unwrap_or_else(|| {
            code = ExitCode::from(1);
            "not found".to_owned()
        });
        print(&format!("{user}\t{key}\tepoch {}\n", seen.epochs.end()))?;
    }
    let traffic = directory.close()?;
    let prepared = match traffic.preparation {
        Preparation::Anew => "prepared anew".to_owned(),
        Preparation::Kept => "nothing to prepare".to_owned(),
        Preparation::Followed { from, to, records } => {
            format!("followed from epoch {from} to {to}, {records} records changed")
        }
    };
    let first = format!("{prepared}, {} bytes received first", traffic.first);
    let each = format!(
        "{} bytes sent and {} received for each lookup",
        traffic.sent / users.len() as u64,
        traffic.received / users.len() as u64
    );
    let _ = writeln!(io::stderr(), "({first}; {each})");
    Ok(code)
}

fn ask_for(path: &Path, user: String, key: String) -> Result<ExitCode> {
    let mut account = if path.exists() { Account::read(path)? } else { Account::new(user) };
    account.ask_for(key);
    account.write(path)?;
    Ok(ExitCode::SUCCESS)
}

fn check(servers: &Servers, path: &Path) -> Result<ExitCode> {
    let mut account = Account::read(path)?;
    let directory = Directory::open(servers)?;
    let seen = directory.look_up(&account.user)?;
    directory.close()?;
    let verdict = account.judge(&seen);
    account.write(path)?;
    print(&format!("{}\n", verdict.told(&account, &seen)))?;
    Ok(ExitCode::from(u8::from(matches!(verdict, Verdict::Alarm(_)))))
}

fn print(text: &str) -> Result<ExitCode> {
    io::stdout()
        .write_all(text.as_bytes())
        .map(|()| ExitCode::SUCCESS)
        .map_err(|error| Error::unavailable("cannot write the output").caused_by(error))
}
