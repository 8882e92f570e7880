//! What a file of points says about itself.

use crate::arguments::Inspect;
use crate::display::{self, Page};
use crate::laboratory::points_file::{PointsFile, PointsHeader};
use crate::laboratory::setup::points::threads;
use privet_core::{Error, Result};
use privet_laboratory::stored_setup::setup_bytes;
use privet_measure::watch::Amount;
use privet_schemes::SchemeId;
use privet_schemes::registry::SchemePlan;
use serde::Serialize;

pub(crate) fn run(arguments: &Inspect) -> Result<()> {
    let file = PointsFile::open(&arguments.file)?;
    check_len(&file)?;
    if arguments.verify {
        let watch = display::watch("verifying", Amount::Bytes(file.header().points_len));
        file.verify(threads(None), |done, _| watch(done))?;
    }
    let report = PointsFileReport::of(&file, arguments.verify);
    display::report(arguments.json, &report, || report.page())
}

/// Refuses a number of points other than the scheme makes, if this program knows the scheme.
fn check_len(file: &PointsFile) -> Result<()> {
    let (header, found) = (file.header(), file.header().points_len);
    let Some(plan) = plan(header) else { return Ok(()) };
    match setup_bytes(&plan, &header.identity)? {
        expected if expected == found => Ok(()),
        expected => Err(Error::corrupted(format!(
            "it has {found} bytes of points, and {} makes {expected} of that table; compute it again",
            plan.scheme
        ))
        .within(file.path().display())),
    }
}

/// The plan of the scheme. `None` if this program does not know the scheme. The report then leaves
/// the parameters out.
fn plan(header: &PointsHeader) -> Option<SchemePlan> {
    let scheme: SchemeId = header.scheme.parse().ok()?;
    SchemePlan::from_announcement(scheme, &header.identity, &header.parameters).ok()
}

#[derive(Serialize)]
struct PointsFileReport {
    file: String,
    file_bytes: u64,
    points_bytes: u64,
    scheme: String,
    servers: Option<usize>,
    parameters: Option<String>,
    table_id: String,
    epoch: u64,
    records: u64,
    record_len: u64,
    digest: String,
    created_by: String,
    verified: bool,
}

impl PointsFileReport {
    fn of(file: &PointsFile, verified: bool) -> Self {
        let header = file.header();
        let identity = header.identity;
        let plan = plan(header);
        Self {
            file: file.path().display().to_string(),
            file_bytes: file.file_bytes(),
            points_bytes: header.points_len,
            scheme: header.scheme.clone(),
            servers: plan.as_ref().map(|plan| plan.servers),
            parameters: plan.as_ref().and_then(|plan| plan.words(&identity)),
            table_id: identity.id.to_string(),
            epoch: identity.epoch.0,
            records: identity.shape.records(),
            record_len: identity.shape.record_len(),
            digest: identity.digest.to_string(),
            created_by: header.created_by.clone(),
            verified,
        }
    }

    fn page(&self) -> Page {
        let mut page = Page::default();
        page.line(format!("{}: the points of a table", self.file));
        let servers = self.servers.map(|servers| format!(", {servers} servers"));
        page.entry("for", format!("{}{}", self.scheme, servers.unwrap_or_default()));
        page.entry("parameters", self.parameters.as_deref().unwrap_or("unknown to this program"));
        page.entry("of table", format!("{}, epoch {}", self.table_id, self.epoch));
        page.entry("its records", display::records(self.records, self.record_len, None));
        page.entry("its digest", &self.digest);
        page.entry("file size", display::bytes(self.file_bytes));
        page.entry("created by", &self.created_by);
        page.entry(
            "verified",
            if self.verified {
                "yes, every byte"
            } else {
                "header only; --verify reads everything"
            },
        );
        page
    }
}
