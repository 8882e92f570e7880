#![allow(clippy::unwrap_used)]

mod hostile;
mod known_answers;
mod limits;
mod round_trips;

use crate::{PartDescription, SchemeDescription, ServerDescription, TableDescription, proto};
use privet_core::{Epoch, TableDigest, TableId, TableIdentity, TableShape};
use privet_schemes::SchemeId;
use privet_schemes::offline::OfflinePhase;
use privet_schemes::registry::SchemePlan;

fn identity(records: u64, record_len: u64) -> TableIdentity {
    TableIdentity {
        id: TableId([7; 16]),
        epoch: Epoch(3),
        digest: TableDigest([8; 32]),
        shape: TableShape::new(records, record_len).unwrap(),
    }
}

/// SimplePIR's plan with as many records in a column as asked for: the encoding of its parameters is that number.
fn plan(identity: &TableIdentity, records_per_column: u64) -> SchemePlan {
    SchemePlan::from_announcement(SchemeId::SimplePir, identity, &records_per_column.to_le_bytes())
        .unwrap()
}

fn scheme(identity: &TableIdentity, records_per_column: u64) -> SchemeDescription {
    let plan = plan(identity, records_per_column);
    let OfflinePhase::Download { len } = plan.offline else {
        panic!("SimplePIR has a hint to download")
    };
    SchemeDescription::new(plan, identity, Some(PartDescription::new(len, [9; 32]))).unwrap()
}

/// Dummy subsets with 16 records in a partition, whose clients stream the table.
fn streaming_scheme(identity: &TableIdentity) -> SchemeDescription {
    let plan =
        SchemePlan::from_announcement(SchemeId::DummySubsets, identity, &16u64.to_le_bytes())
            .unwrap();
    let OfflinePhase::StreamTable { len } = plan.offline else {
        panic!("clients of dummy subsets stream the table")
    };
    assert_eq!(len, identity.shape.bytes());
    SchemeDescription::new(plan, identity, Some(PartDescription::new(len, [11; 32]))).unwrap()
}

fn table(name: &str, identity: TableIdentity, records_per_column: u64) -> TableDescription {
    let schemes = vec![scheme(&identity, records_per_column)];
    TableDescription::new(name, identity, PartDescription::new(100, [10; 32]), schemes).unwrap()
}

fn description() -> ServerDescription {
    ServerDescription::new("privet 0.1.0", vec![table("packages", identity(1000, 20), 7)]).unwrap()
}

fn described() -> proto::DescribeResponse {
    description().into()
}
