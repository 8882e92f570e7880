#![allow(clippy::unwrap_used)]

// Privet for browsers leaves out the laboratory. What needs it is not compiled for WebAssembly.
mod frames;
#[cfg(not(target_family = "wasm"))]
mod hostile;
mod known_answers;
#[cfg(not(target_family = "wasm"))]
mod limits;
#[cfg(not(target_family = "wasm"))]
mod round_trips;
mod versions;

use crate::{PartDescription, SchemeDescription, ServerDescription, TableDescription, proto};
use privet_core::{Epoch, TableDigest, TableId, TableIdentity, TableShape};
use privet_schemes::SchemeId;
use privet_schemes::contract::Role;
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

/// SimplePIR's plan with as many records in a column as asked for: the encoding of its parameters
/// is that number.
fn plan(identity: &TableIdentity, records_per_column: u64) -> SchemePlan {
    SchemePlan::from_announcement(SchemeId::SimplePir, identity, &records_per_column.to_le_bytes())
        .unwrap()
}

/// SimplePIR.
fn scheme(identity: &TableIdentity, records_per_column: u64) -> SchemeDescription {
    described_as(SchemeId::SimplePir, identity, records_per_column)
}

/// Dummy subsets with 16 records in a partition, whose clients stream the table.
fn streaming_scheme(identity: &TableIdentity) -> SchemeDescription {
    described_as(SchemeId::DummySubsets, identity, 16)
}

/// A scheme whose parameters, if it has any, are `parameter`: the number of records in a column,
/// partition or chunk.
fn described_as(id: SchemeId, identity: &TableIdentity, parameter: u64) -> SchemeDescription {
    #[cfg(not(target_family = "wasm"))]
    privet_laboratory::register();
    let number = parameter.to_le_bytes();
    let parameters = match id {
        SchemeId::Dpf | SchemeId::ApirDpf | SchemeId::ApirMatrix | SchemeId::Download => Vec::new(),
        // Sixteen variables, degree seven, whole bytes: up to 11 440 records.
        #[cfg(not(target_family = "wasm"))]
        privet_laboratory::FINITE_DIFFERENCES => vec![16, 7, 0],
        // Three servers, three elements, seventeen variables, degree eight: up to 24 310 records.
        #[cfg(not(target_family = "wasm"))]
        privet_laboratory::FINITE_DIFFERENCES_MANY => vec![3, 3, 17, 8],
        // The roots of trees are kept, and no more.
        SchemeId::TapirMerkle => [&number[..], &[0]].concat(),
        // A reference string for `number` records, of some digest.
        #[cfg(not(target_family = "wasm"))]
        privet_laboratory::TAPIR_PP => [&number[..], &number[..4], &[8; 32]].concat(),
        _ => number.to_vec(),
    };
    described(SchemePlan::from_announcement(id, identity, &parameters).unwrap(), identity)
}

/// A scheme with what its plan has clients receive first, of some digest.
fn described(plan: SchemePlan, identity: &TableIdentity) -> SchemeDescription {
    let digest = match plan.offline {
        OfflinePhase::Download { .. } | OfflinePhase::StreamArranged { .. } => Some([9; 32]),
        OfflinePhase::StreamTable { .. } | OfflinePhase::KeepTable { .. } => Some([11; 32]),
        _ => None,
    };
    let hint = digest.map(|digest| PartDescription::new(plan.offline.len(), digest));
    SchemeDescription::new(plan, identity, hint).unwrap()
}

/// A plan whose clients send ten requests of `request_len` bytes for hints, each for a reply of
/// `reply_len` bytes. Its queries have 28 bytes.
fn asking_plan(identity: &TableIdentity, request_len: usize, reply_len: usize) -> SchemePlan {
    let offline = OfflinePhase::Ask { role: Role(0), requests: 10, request_len, reply_len };
    SchemePlan { offline, ..plan(identity, 7) }
}

fn table(name: &str, identity: TableIdentity, records_per_column: u64) -> TableDescription {
    let schemes = vec![scheme(&identity, records_per_column)];
    TableDescription::new(name, identity, PartDescription::new(100, [10; 32]), schemes).unwrap()
}

fn description() -> ServerDescription {
    ServerDescription::new("privet 0.1.0", vec![table("packages", identity(1000, 20), 7)]).unwrap()
}

fn announced() -> proto::DescribeResponse {
    description().into()
}

/// Whoever changes the definition or the generator, or the generated code by hand, is told to run
/// the generator.
#[test]
fn the_generated_code_is_that_of_the_definition() {
    let generated = include_str!("proto/privet.v1.rs");
    let mut lines = generated.splitn(3, '\n');
    let hash = |bytes: &[u8]| blake3::hash(bytes).to_hex().to_string();
    let definition = include_bytes!("../proto/privet/v1/privet.proto");
    let generator = include_bytes!("../generate/src/main.rs");
    let source = [&definition[..], generator, include_bytes!("../generate/Cargo.lock")].concat();
    let told = "run scripts/generate-protocol.sh";
    assert_eq!(
        lines.next(),
        Some(&*format!("// definition and generator {}", hash(&source))),
        "{told}"
    );
    let (head, code) = (lines.next(), lines.next().unwrap_or_default());
    assert_eq!(head, Some(&*format!("// code below {}", hash(code.as_bytes()))), "{told}");
}
