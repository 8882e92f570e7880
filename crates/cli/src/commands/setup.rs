//! `privet setup`: what a scheme needs beside a table, and who must be trusted for it.

use crate::arguments::{Setup, SetupAction, SetupPointproofs};
use crate::display::{self, Page};
use crate::exit::Outcome;
use crate::tuning;
use privet_core::{Error, Result};
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Instant;

/// Makes what was asked for.
pub(crate) fn run(arguments: &Setup) -> Result<Outcome> {
    match &arguments.action {
        SetupAction::Pointproofs(arguments) => pointproofs(arguments),
    }
}

/// Makes a reference string and writes it. A file that is there already is left as it is, unless it may be replaced: tables served with it, and what clients keep of them, depend on it.
fn pointproofs(arguments: &SetupPointproofs) -> Result<Outcome> {
    let output = &arguments.output;
    if !arguments.force && output.exists() {
        return Err(already_there(output));
    }
    let start = Instant::now();
    // The secret number lives in there, and is erased before this returns.
    let string = tuning::make_reference_string(arguments.size)?;
    let bytes = string.encode();
    write(output, &bytes, arguments.force)?;
    let report = Report {
        file: output.display().to_string(),
        size: string.size(),
        digest: display::hexadecimal(&string.digest()),
        file_bytes: bytes.len() as u64,
        seconds: start.elapsed().as_secs_f64(),
    };
    display::report(arguments.json, &report, || report.page())?;
    Ok(Outcome::Done)
}

#[derive(Serialize)]
struct Report {
    file: String,
    size: u32,
    digest: String,
    file_bytes: u64,
    seconds: f64,
}

impl Report {
    fn page(&self) -> Page {
        let mut page = Page::default();
        page.line(format!("{} made in {:.1} s", self.file, self.seconds));
        page.entry(
            "for",
            format!("tapir-pp, partitions of up to {} records", display::count(self.size.into())),
        );
        page.entry("file size", display::bytes(self.file_bytes));
        page.entry("digest", &self.digest);
        page.line(
            "Whoever made this file must be trusted by everybody who looks records up with it. It was made from a secret number, and who knows that number can prove any record to any\n\
             client. The number was drawn in this process, was written nowhere, and has been erased from its memory; nobody else can check that. So the party that makes the file must be one that\n\
             all clients trust, and not a server that may lie. All servers of a table take the same file; it is no secret. `privet get -v` shows the digest.",
        );
        page
    }
}

/// Writes under a temporary name, syncs, and gives the file its name.
fn write(output: &Path, bytes: &[u8], replace: bool) -> Result<()> {
    let cannot = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Error::api_misuse(format!(
            "cannot write {}: its directory does not exist",
            output.display()
        )),
        _ => Error::unavailable(format!("cannot write {}: {error}", output.display())),
    };
    let directory = match output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut temporary = public_temporary(directory).map_err(cannot)?;
    temporary.write_all(bytes).map_err(cannot)?;
    temporary.as_file().sync_all().map_err(cannot)?;
    let persisted = match replace {
        true => temporary.persist(output),
        false => temporary.persist_noclobber(output),
    };
    persisted.map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => already_there(output),
        _ => cannot(error.error),
    })?;
    #[cfg(unix)]
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(cannot)?;
    Ok(())
}

fn public_temporary(directory: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".privet-").suffix(".partial");
    #[cfg(unix)]
    {
        // The file is there to be handed on: what the user's mask grants, rather than what temporary files have.
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(directory)
}

fn already_there(output: &Path) -> Error {
    Error::api_misuse(format!(
        "{} is there already; servers and clients that use it could not go on without it: choose another name, or replace it with --force",
        output.display()
    ))
}
