//! The tours in the documents. A shell runs every command behind a `$` as it stands, and the test
//! compares its output with what the document shows.
//!
//! Servers run in the background, on ports that the system chooses. Digests, ids and times differ
//! between runs. Where the document has a digest or an id, the run may have another, but always the
//! same one.

use crate::place::Place;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The time limit for a command whose output must be right "a second later".
const A_SECOND_LATER: Duration = Duration::from_secs(60);

/// How often a table is rebuilt until its random seed gives the shape that the document shows.
const MOST_SEEDS: usize = 30;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A command in a document, and the output that the document shows.
struct Step {
    line: usize,
    typed: String,
    shown: String,
}

/// The commands in the code blocks of a document, in order. Each stands behind a `$`.
fn steps(document: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let (mut in_block, mut in_step) = (false, false);
    for (number, line) in (1..).zip(document.lines()) {
        if line.starts_with("```") {
            (in_block, in_step) = (!in_block, false);
        } else if let (true, Some(typed)) = (in_block, line.strip_prefix("$ ")) {
            steps.push(Step { line: number, typed: typed.to_owned(), shown: String::new() });
            in_step = true;
        } else if in_step {
            let step = steps.last_mut().unwrap();
            if let Some(typed) = step.typed.strip_suffix('\\') {
                step.typed = format!("{typed}{}", line.trim_start());
            } else {
                step.shown.push_str(line);
                step.shown.push('\n');
            }
        }
    }
    for step in &mut steps {
        step.shown = step.shown.trim_end().to_owned();
    }
    steps
}

/// The state of a tour while it runs.
struct Tour {
    place: Place,
    servers: Vec<Child>,
    /// Digests, ids and ports of the document, each with the one of this run.
    instead: HashMap<String, String>,
    report: String,
}

impl Drop for Tour {
    fn drop(&mut self) {
        for server in &mut self.servers {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

impl Tour {
    fn new() -> Self {
        let (servers, instead) = (Vec::new(), HashMap::new());
        Self { place: Place::new(), servers, instead, report: String::new() }
    }

    fn go(&mut self, step: &Step) {
        if let Some(file) = step.typed.strip_prefix("cat ") {
            self.place.write(file, format!("{}\n", step.shown));
        } else if step.typed.starts_with("privet serve ") {
            self.serve(step);
        } else if step.typed.contains("# a second later") {
            let start = Instant::now();
            while !self.run(step).is_empty() && start.elapsed() < A_SECOND_LATER {
                std::thread::sleep(Duration::from_millis(200));
            }
            let complaint = self.run(step);
            self.report.push_str(&complaint);
        } else {
            let seeds = if step.typed.contains("privet build ") { MOST_SEEDS } else { 1 };
            let mut complaint = self.run(step);
            for _ in 1..seeds {
                if complaint.is_empty() {
                    break;
                }
                complaint = self.run(step);
            }
            self.report.push_str(&complaint);
        }
    }

    fn shell(&self, typed: &str) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_privet"));
        let mut command = self.place.command("");
        let environment: Vec<_> = command
            .get_envs()
            .map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned)))
            .collect();
        let directory = command.get_current_dir().unwrap().to_owned();
        command = Command::new("sh");
        command.args(["-c", typed]).current_dir(directory).stdin(Stdio::null());
        for (name, value) in environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let mut path = program.parent().unwrap().as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        command.env("PATH", path);
        command
    }

    /// The command with this run's ports and digests.
    fn as_here(&self, typed: &str) -> String {
        self.instead
            .iter()
            .fold(typed.to_owned(), |typed, (there, here)| typed.replace(there, here))
    }

    /// Starts a server and waits until it listens.
    fn serve(&mut self, step: &Step) {
        let (typed, there) = match step.typed.split_once("--listen ") {
            Some((before, rest)) => {
                let (address, after) = rest.split_once(' ').unwrap_or((rest, ""));
                (format!("{before}{after}"), address.to_owned())
            }
            None => (step.typed.clone(), "127.0.0.1:7700".to_owned()),
        };
        // Documents do not show the log on standard error.
        let typed = format!("exec {} --listen 127.0.0.1:0 2>/dev/null", self.as_here(&typed));
        let mut server = self.shell(&typed).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
        let mut printed = String::new();
        while let Some(Ok(line)) = lines.next() {
            let address = line.rsplit_once("://").map(|(_, address)| address.to_owned());
            let _ = writeln!(printed, "{line}");
            if let (true, Some(here)) = (line.starts_with("listening at "), address) {
                let port = |address: &str| address.rsplit_once(':').unwrap().1.to_owned();
                let of_port = |address: &str| format!(":{}", port(address));
                self.instead.insert(of_port(&there), of_port(&here));
                break;
            }
        }
        // Keeps reading, so that the server can go on printing.
        std::thread::spawn(move || lines.for_each(drop));
        self.servers.push(server);
        if !step.shown.is_empty() {
            let complaint = self.compare(step, printed.trim_end());
            self.report.push_str(&complaint);
        }
    }

    /// Runs a command. Returns a message if it differs from the document, and an empty string
    /// otherwise.
    fn run(&mut self, step: &Step) -> String {
        // The line may end with a comment, so the parenthesis stands on the next.
        let typed = format!("({}\n) 2>&1", self.as_here(&step.typed));
        let output = self.shell(&typed).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
        if step.shown.is_empty() {
            // The document does not show the output.
            return match output.status.success() {
                true => String::new(),
                false => format!("line {}: $ {}\n{printed}\n", step.line, step.typed),
            };
        }
        self.compare(step, &printed)
    }

    /// Compares line by line. Where both have a digest, an id or a time, these may differ.
    fn compare(&mut self, step: &Step, printed: &str) -> String {
        let ports = self.instead.iter().filter(|(there, _)| there.starts_with(':'));
        let printed =
            ports.fold(printed.to_owned(), |printed, (there, here)| printed.replace(here, there));
        let mut learnt = HashMap::new();
        let is_same = step.shown.lines().count() == printed.lines().count()
            && step.shown.lines().zip(printed.lines()).all(|(there, here)| {
                let (there, here) = (words(there), words(here));
                there.len() == here.len()
                    && there.iter().zip(&here).all(|(there, here)| {
                        let both = |is: fn(&str) -> bool| is(there) && is(here);
                        if both(is_digest) {
                            let before = self.instead.get(there.as_str());
                            let before = before.or_else(|| learnt.get(there.as_str()));
                            let agrees = before.is_none_or(|before| before == here);
                            learnt.insert(there.clone(), here.clone());
                            return agrees;
                        }
                        there == here || both(is_number_of_seconds)
                    })
            });
        if is_same {
            self.instead.extend(learnt);
            return String::new();
        }
        let Step { line, typed, shown } = step;
        format!(
            "line {line}: $ {typed}\nthe document shows\n{shown}\nand this is printed:\n{printed}\n\n"
        )
    }
}

/// Splits a line into words of letters, digits and dots. Every other character stands by itself.
fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut in_word = false;
    for char in line.chars() {
        let is_of_word = char.is_alphanumeric() || char == '.';
        match words.last_mut() {
            Some(word) if is_of_word && in_word => word.push(char),
            _ => words.push(char.to_string()),
        }
        in_word = is_of_word;
    }
    words
}

fn is_digest(word: &str) -> bool {
    matches!(word.len(), 32 | 64) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A time of less than one second, with one decimal. Besides times, only loads look like this.
fn is_number_of_seconds(word: &str) -> bool {
    matches!(word.split_once('.'), Some((whole, tenth)) if tenth.len() == 1 && whole == "0")
}

/// Runs every document that has commands behind a `$`.
#[test]
fn every_tour_runs_as_it_is_printed() {
    let mut report = String::new();
    let mut toured = Vec::new();
    for document in
        ["README.md", "docs/operating.md", "docs/laboratory/tradeoff.md", "docs/schemes.md"]
    {
        let text = std::fs::read_to_string(root().join(document)).unwrap();
        let steps = steps(&text);
        if steps.is_empty() {
            continue;
        }
        toured.push((document, steps.len()));
        let mut tour = Tour::new();
        if document != "README.md" {
            // The other documents continue after the README's first minute.
            let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
            self::steps(&readme).iter().take(2).for_each(|step| tour.go(step));
        }
        steps.iter().for_each(|step| tour.go(step));
        if !tour.report.is_empty() {
            let _ = write!(report, "{document}\n{}", tour.report);
        }
    }
    assert!(report.is_empty(), "{report}");
    assert!(toured.iter().any(|&(name, steps)| name == "README.md" && steps > 20), "{toured:?}");
}

#[test]
fn a_tour_that_prints_something_else_is_noticed() {
    let mut tour = Tour::new();
    let step =
        |typed: &str, shown: &str| Step { line: 1, typed: typed.into(), shown: shown.into() };
    let digest = |digit: &str| digit.repeat(64);
    // Each digest of the document stands for one digest of the run.
    tour.go(&step(&format!("echo {} 0.3 s", digest("a")), &format!("{} 0.0 s", digest("b"))));
    assert_eq!(tour.report, "");
    tour.go(&step(&format!("echo {}", digest("b")), &digest("b")));
    assert_eq!(tour.report, "");
    tour.go(&step(&format!("echo {}", digest("c")), &digest("b")));
    assert!(tour.report.contains("and this is printed:"));
    for (typed, shown) in
        [("echo 1", "2"), ("echo 1; echo 2", "1"), ("false", ""), ("echo 1.3", "1.4")]
    {
        tour.report.clear();
        tour.go(&step(typed, shown));
        assert_ne!(tour.report, "", "{typed}");
    }
}
