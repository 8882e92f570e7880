//! A directory to run the command in, and what a run left behind.

use insta::Settings;
use insta::internals::SettingsBindDropGuard;
use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A phone book of three entries.
pub(crate) const PHONES: &str = "name,phone,floor\nada,555-1,3\nbob,555-2,4\neve,\"5,5\",\n";

/// A temporary directory: where commands run, where they keep what they keep, and gone at the end.
/// While it exists, snapshots show placeholders for what differs between runs.
pub(crate) struct Place {
    directory: tempfile::TempDir,
    _placeholders: SettingsBindDropGuard,
}

impl Place {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let _placeholders = placeholders(directory.path());
        Self { directory, _placeholders }
    }

    /// A place that holds the phone book as `phones.csv`, and its table by name as `phones.privet`:
    /// of 3 records of 38 bytes, as almost every seed has it. The seed is drawn at random, and
    /// about one in 300 scatters the keys so badly that more room is needed. Then another is drawn.
    pub(crate) fn with_phones() -> Self {
        let place = Self::new();
        place.write("phones.csv", PHONES);
        for _ in 0..20 {
            let report = place.build("phones.csv --key name -o phones.privet --json").json();
            if (&report["records"], &report["record_len"]) == (&3.into(), &38.into()) {
                return place;
            }
        }
        panic!("no seed makes the usual table of the phone book");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), contents).unwrap();
    }

    /// The names of all files here, in order.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.directory.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The command, to be run here with these arguments, separated by spaces.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_privet"));
        command.args(arguments.split(' ').filter(|argument| !argument.is_empty()));
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        command.env("HOME", self.directory.path()).env("COLUMNS", "100");
        for inherited in [
            "XDG_CACHE_HOME",
            "XDG_STATE_HOME",
            "RUST_LOG",
            "RUST_BACKTRACE",
            "TMPDIR",
            "PRIVET_URL",
            "PRIVET_STATE",
            "PRIVET_CACHE",
        ] {
            command.env_remove(inherited);
        }
        command
    }

    pub(crate) fn run(&self, arguments: &str) -> Run {
        Run(self.command(arguments).output().unwrap())
    }

    /// Runs with `input` on standard input.
    pub(crate) fn run_with_input(&self, arguments: &str, input: &[u8]) -> Run {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A command that refuses its arguments need not read.
        let _ = child.stdin.take().unwrap().write_all(input);
        Run(child.wait_with_output().unwrap())
    }

    /// Builds a table, which must succeed.
    pub(crate) fn build(&self, arguments: &str) -> Run {
        let run = self.run(&format!("build {arguments}"));
        assert_eq!(run.code(), 0, "{run}");
        run
    }
}

/// What a run printed and how it ended.
pub(crate) struct Run(pub(crate) Output);

impl Run {
    pub(crate) fn code(&self) -> i32 {
        self.0.status.code().unwrap()
    }

    pub(crate) fn stdout(&self) -> &str {
        std::str::from_utf8(&self.0.stdout).unwrap()
    }

    pub(crate) fn stderr(&self) -> &str {
        std::str::from_utf8(&self.0.stderr).unwrap()
    }

    /// The exit code and the error, without what a server logged before.
    pub(crate) fn refusal(&self) -> String {
        assert_eq!(self.stdout(), "", "{self}");
        let log_len = self.stderr().find("privet: ").unwrap();
        format!("[exit {}]\n{}", self.code(), &self.stderr()[log_len..])
    }

    /// Standard output, which must be JSON, of a run that succeeded and said nothing else.
    pub(crate) fn json(&self) -> serde_json::Value {
        assert_eq!((self.code(), self.stderr()), (0, ""), "{self}");
        serde_json::from_str(self.stdout()).unwrap()
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |name: &str, text: &str| {
            if text.is_empty() { String::new() } else { format!("[{name}]\n{text}") }
        };
        write!(
            f,
            "[exit {}]\n{}{}",
            self.code(),
            part("stdout", self.stdout()),
            part("stderr", self.stderr())
        )
    }
}

/// Until the guard is dropped, snapshots taken on this thread show placeholders for digests, table
/// ids, ports, times and other things that differ between runs.
fn placeholders(directory: &Path) -> SettingsBindDropGuard {
    let mut settings = Settings::clone_current();
    // Lines are filled up with spaces by whoever lays out the help texts.
    settings.add_filter("(?m) +$", "");
    settings.add_filter(&directory.to_str().unwrap().replace('.', r"\."), "[DIRECTORY]");
    settings.add_filter(r"\.privet-\w+\.partial", "[TEMPORARY]");
    settings.add_filter("[0-9a-f]{64}", "[DIGEST]");
    settings.add_filter("[0-9a-f]{32}", "[ID]");
    // The system's choice of a port has five digits; those in help texts have four.
    settings.add_filter(r"127\.0\.0\.1:\d{5}", "127.0.0.1:[PORT]");
    settings.add_filter(r"\b\d+(\.\d+)? (ms|µs|s)\b", "[TIME]");
    settings.add_filter(r#""seconds":[0-9.e-]+"#, r#""seconds":[TIME]"#);
    settings.add_filter(&env!("CARGO_PKG_VERSION").replace('.', r"\."), "[VERSION]");
    // How a connection breaks off depends on which side is faster.
    settings.add_filter(r"\((transport error|connection error)[^)]*\)", "([HOW IT BROKE OFF])");
    settings.bind_to_scope()
}
