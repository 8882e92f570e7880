//! `privet setup`: what a scheme needs beside a table, and who must be trusted for it.

pub(crate) mod arguments;
pub(crate) mod points;

use crate::display::{self, Page};
use crate::laboratory::reference_string;
use arguments::{Setup, SetupAction, SetupPointproofs};
use privet_core::Result;
use privet_table::new_file::{NewFile, cannot};
use privet_table::publish::output;
use serde::Serialize;
use std::io::Write as _;
use std::time::Instant;

/// Makes what was asked for.
pub(crate) fn run(arguments: &Setup) -> Result<()> {
    match &arguments.action {
        SetupAction::Pointproofs(arguments) => pointproofs(arguments),
        SetupAction::Points(arguments) => points::run(arguments),
    }
}

/// Makes a reference string and writes it. An existing file is kept unless it may be replaced,
/// because tables served with it depend on it, and so does what their clients keep.
fn pointproofs(arguments: &SetupPointproofs) -> Result<()> {
    let output = &arguments.output;
    let needed = "servers and clients that use it could not go on without it";
    let existing = output::for_own_kind(output, arguments.force, needed, reference_string::is_one)?;
    let start = Instant::now();
    let mut file = NewFile::create(output, existing)?;
    // The secret number exists only inside this call, which erases it before it returns.
    let string = reference_string::make(arguments.size)?;
    let bytes = string.encode();
    file.write_all(&bytes).map_err(|error| cannot("write", output, error))?;
    file.publish()?;
    let report = SetupReport {
        file: output.display().to_string(),
        size: string.size(),
        digest: display::hexadecimal(&string.digest()),
        file_bytes: bytes.len() as u64,
        seconds: start.elapsed().as_secs_f64(),
    };
    display::report(arguments.json, &report, || report.page())
}

#[derive(Serialize)]
struct SetupReport {
    file: String,
    size: u32,
    digest: String,
    file_bytes: u64,
    seconds: f64,
}

impl SetupReport {
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
