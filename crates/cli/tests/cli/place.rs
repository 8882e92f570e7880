//! A directory to run the command in, and the result of a run.

use insta::Settings;
use insta::internals::SettingsBindDropGuard;
use std::fmt;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A phone book of three entries.
pub(crate) const PHONES: &str = "name,phone,floor\nada,555-1,3\nbob,555-2,4\neve,\"5,5\",\n";

/// A temporary directory that commands run in and keep their state in. It is deleted at the end.
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

    /// A place that holds the phone book as `phones.csv`.
    pub(crate) fn with_rows() -> Self {
        let place = Self::new();
        place.write("phones.csv", PHONES);
        place
    }

    /// The same with its table by name as `phones.privet`.
    /// The table has 3 records of 38 bytes, as with almost every random seed. About one seed in 300
    /// spreads the keys so badly that they need more room. Then the table is built again.
    pub(crate) fn with_phones() -> Self {
        let place = Self::with_rows();
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

    /// The same for a secret, which only its owner may read.
    pub(crate) fn write_secret(&self, name: &str, secret: impl AsRef<[u8]>) {
        self.write(name, secret);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let alone = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(self.path(name), alone).unwrap();
        }
    }

    /// Flips a bit of one byte of a file, in place. Readers of its other bytes notice nothing.
    pub(crate) fn flip(&self, name: &str, at: usize) {
        let mut file = File::options().read(true).write(true).open(self.path(name)).unwrap();
        let mut byte = [0];
        file.seek(SeekFrom::Start(at as u64)).unwrap();
        file.read_exact(&mut byte).unwrap();
        file.seek(SeekFrom::Start(at as u64)).unwrap();
        file.write_all(&[byte[0] ^ 1]).unwrap();
    }

    /// The names of all files here, sorted.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.directory.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The command with these arguments, separated by spaces, set to run here.
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
            "http_proxy",
            "https_proxy",
            "all_proxy",
            "no_proxy",
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "ALL_PROXY",
            "NO_PROXY",
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
        // The write fails if the command refuses its arguments and reads nothing.
        let _ = child.stdin.take().unwrap().write_all(input);
        Run(child.wait_with_output().unwrap())
    }

    /// The log of the server that runs here, once `is_so` of it. A server does not wait for its
    /// log.
    pub(crate) fn server_log(&self, is_so: impl Fn(&str) -> bool) -> String {
        let began = std::time::Instant::now();
        loop {
            let log = std::fs::read_to_string(self.path("server.log")).unwrap();
            if is_so(&log) {
                return log;
            }
            assert!(began.elapsed().as_secs() < 60, "{log}");
            std::thread::yield_now();
        }
    }

    /// Makes `publisher.key`, with which the updates of `table` are signed from now on. The table
    /// was built without it.
    pub(crate) fn begin_history(&self, table: &str) {
        self.run("keygen -o publisher.key");
        let begun = format!("update {table} --publisher-key publisher.key --begin-history");
        self.run(&begun).succeeds();
    }

    /// Builds a table, which must succeed.
    pub(crate) fn build(&self, arguments: &str) -> Run {
        self.run(&format!("build {arguments}")).succeeds()
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

    /// The exit code and the error, without preceding log lines of a server.
    pub(crate) fn refusal(&self) -> String {
        assert_eq!(self.stdout(), "", "{self}");
        let log_len = self.stderr().find("privet: ").unwrap();
        format!("[exit {}]\n{}", self.code(), &self.stderr()[log_len..])
    }

    /// Asserts the exit code, and that standard error has these words.
    pub(crate) fn says(self, code: i32, words: &str) -> Self {
        assert_eq!(self.code(), code, "{self}");
        assert!(self.stderr().contains(words), "no {words}: {self}");
        self
    }

    /// Asserts that the exit code is 0.
    pub(crate) fn succeeds(self) -> Self {
        self.says(0, "")
    }

    /// Standard error of a run that ended with exit code 2, and printed nothing else.
    pub(crate) fn mistake(&self) -> String {
        assert_eq!((self.code(), self.stdout()), (2, ""), "{self}");
        self.stderr().to_owned()
    }

    /// Standard output of a run that succeeded, and printed no errors.
    pub(crate) fn printed(&self) -> String {
        assert_eq!((self.code(), self.stderr()), (0, ""), "{self}");
        self.stdout().to_owned()
    }

    /// The same as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.printed()).unwrap()
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

/// Makes snapshots on this thread show placeholders for digests, table ids, ports, times and other
/// things that differ between runs, until the guard is dropped.
fn placeholders(directory: &Path) -> SettingsBindDropGuard {
    let mut settings = Settings::clone_current();
    // The layout of help texts may fill lines up with spaces.
    settings.add_filter("(?m) +$", "");
    settings.add_filter(&directory.to_str().unwrap().replace('.', r"\."), "[DIRECTORY]");
    settings.add_filter(r"\.privet-\w+\.partial", "[TEMPORARY]");
    settings.add_filter("[0-9a-f]{64}", "[DIGEST]");
    settings.add_filter("[0-9a-f]{32}", "[ID]");
    // Ports that the system chooses have five digits. Those in help texts have four.
    settings.add_filter(r"127\.0\.0\.1:\d{5}", "127.0.0.1:[PORT]");
    settings.add_filter(r"\b\d+(\.\d+)? (ms|µs|ns|s)\b", "[TIME]");
    settings.add_filter(r#""seconds":[0-9.e-]+"#, r#""seconds":[TIME]"#);
    settings.add_filter(&env!("CARGO_PKG_VERSION").replace('.', r"\."), "[VERSION]");
    // How a connection breaks depends on which side is faster.
    settings.add_filter(r"\((transport error|connection error)[^)]*\)", "([HOW IT BROKE OFF])");
    settings.bind_to_scope()
}
