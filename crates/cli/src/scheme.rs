//! What a scheme's parameters come to on a table: in words, and in the work of one query.

use crate::display;
use privet_core::{TableIdentity, TableShape};
use privet_schemes::SchemeId;
use privet_schemes::apir_dpf::ApirDpfParameters;
use privet_schemes::apir_matrix::ApirMatrixParameters;
use privet_schemes::contract::Parameters;
use privet_schemes::doublepir::DoublePirParameters;
use privet_schemes::dummy_subsets::DummySubsetsParameters;
use privet_schemes::finite_differences::FiniteDifferencesParameters;
use privet_schemes::finite_differences::many_servers::ManyServersParameters;
use privet_schemes::piano::{AllParities, PianoParameters, SingleParity};
use privet_schemes::registry::SchemePlan;
use privet_schemes::singlepass::SinglePassParameters;
use privet_schemes::tapir::{MerkleForm, PointproofsForm, TapirParameters};

/// What a person may want to know of a scheme's parameters beyond its name, if there is anything.
pub(crate) fn words(plan: &SchemePlan, identity: &TableIdentity) -> Option<String> {
    match Cut::of(plan, identity) {
        Some(Cut::Subsets(parameters)) => {
            let cut = format!(
                "{} partitions of {} records",
                display::count(parameters.partitions().into()),
                display::count(parameters.partition_records().into()),
            );
            let singles = display::count(parameters.singles().into());
            Some(match plan.scheme {
                SchemeId::DummySubsetsTwo => {
                    format!("{cut}; {singles} hints, replaced as they are used")
                }
                _ => format!(
                    "{cut}; {singles} hints and {} pairs of backup hints, one pair for each query, {} in memory",
                    display::count(parameters.pairs().into()),
                    display::bytes(parameters.state_bytes())
                ),
            })
        }
        Some(Cut::Chunks(parameters)) => Some(format!(
            "{} chunks of {} records; {} hints and {} spare ones for each chunk, for a window of {} queries, {} in memory",
            display::count(parameters.chunks().into()),
            display::count(parameters.chunk_records().into()),
            display::count(parameters.primaries().into()),
            display::count(parameters.spares().into()),
            display::count(parameters.window()),
            display::bytes(match plan.scheme {
                SchemeId::PianoAllParities => parameters.state_bytes::<AllParities>(),
                _ => parameters.state_bytes::<SingleParity>(),
            })
        )),
        Some(Cut::Permutations(parameters)) => Some(permutations(&parameters)),
        Some(Cut::MerkleTrees(parameters)) => Some(format!(
            "{}; answers are verified, for which the root of each partition's Merkle tree and {} levels below it are kept, {} in all",
            permutations(parameters.pass()),
            parameters.commitment().cap_levels(),
            display::bytes(parameters.state_bytes())
        )),
        Some(Cut::Pointproofs(parameters)) => Some(format!(
            "{}; answers are verified, {} in all; the reference string is for partitions of up to {} records, its digest {}",
            permutations(parameters.pass()),
            display::bytes(parameters.state_bytes()),
            display::count(parameters.commitment().size().into()),
            display::hexadecimal(&parameters.commitment().reference_digest())
        )),
        None => without_partitions(plan, identity),
    }
}

fn permutations(parameters: &SinglePassParameters) -> String {
    format!(
        "{} partitions of {} records, a secret permutation for each; {} hints, replaced as they are used, {} in memory",
        display::count(parameters.partitions().into()),
        display::count(parameters.partition_records().into()),
        display::count(parameters.partition_records().into()),
        display::bytes(parameters.state_bytes())
    )
}

fn without_partitions(plan: &SchemePlan, identity: &TableIdentity) -> Option<String> {
    Some(match plan.scheme {
        SchemeId::DoublePir => {
            let parameters: DoublePirParameters = decoded(plan, identity)?;
            format!(
                "{} columns of {} records, second matrix {}",
                display::count(parameters.columns()),
                display::count(parameters.records_per_column()),
                display::bytes(parameters.kept_bytes())
            )
        }
        SchemeId::ApirDpf => {
            let parameters: ApirDpfParameters = decoded(plan, identity)?;
            format!(
                "answers are verified by a tag for each of {} parts of a record",
                parameters.elements()
            )
        }
        SchemeId::ApirMatrix => {
            let parameters: ApirMatrixParameters = decoded(plan, identity)?;
            format!(
                "{} rows of {} records and {} hashes, by which answers are verified",
                display::count(parameters.rows()),
                display::count(parameters.row_records()),
                parameters.path_nodes()
            )
        }
        SchemeId::FiniteDifferences => {
            let parameters: FiniteDifferencesParameters = decoded(plan, identity)?;
            format!(
                "a polynomial of degree {} in {} variables, {} of its values on each server, of which {} are sent for a lookup",
                parameters.degree(),
                parameters.variables(),
                display::bytes(parameters.points_bytes()),
                display::count(parameters.ball().count())
            )
        }
        SchemeId::FiniteDifferencesMany => {
            let parameters: ManyServersParameters = decoded(plan, identity)?;
            format!(
                "a polynomial of degree {} in {} variables over {} elements, {} of its values on each of {} servers, of which each sends {} for a lookup",
                parameters.degree(),
                parameters.variables(),
                parameters.field(),
                display::bytes(parameters.points_bytes()),
                parameters.servers(),
                display::count(parameters.ball().count())
            )
        }
        _ => return None,
    })
}

/// Whether a scheme's servers follow edits of the table where they are, and its clients with them.
pub(crate) fn is_updated_in_place(scheme: SchemeId) -> bool {
    matches!(scheme, SchemeId::TapirMerkle | SchemeId::TapirPointproofs)
}

/// What a scheme promises less than others of its kind, if it does, in one sentence.
pub(crate) fn weaker_promise(scheme: SchemeId) -> Option<&'static str> {
    is_piano(scheme).then_some(
        "lookups of records chosen by somebody who knows the table's public shuffle may use up one chunk's spare hints; such a lookup fails with an error, and the query that was sent looks like any other",
    )
}

/// What to warn of if lookups by key are weak by a scheme: what can happen, and what to use instead.
pub(crate) fn weaker_by_key(scheme: SchemeId) -> Option<String> {
    is_piano(scheme).then(|| {
        format!(
            "by {scheme}, whoever built the table (often who runs the server) chose where keys lie, and can make lookups of a class of keys fail; for lookups by key, dummy-subsets is the better scheme"
        )
    })
}

fn is_piano(scheme: SchemeId) -> bool {
    matches!(scheme, SchemeId::Piano | SchemeId::PianoAllParities)
}

/// How a scheme cuts the table, if it reads single records of it.
pub(crate) enum Cut {
    /// Dummy subsets, with one server or two: partitions, of which a hint has one half.
    Subsets(DummySubsetsParameters),
    /// Piano: chunks of the shuffled table.
    Chunks(Box<PianoParameters>),
    /// SinglePass: partitions with a permutation for each.
    Permutations(SinglePassParameters),
    /// TAPIR-MT: the same, with a Merkle tree for each.
    MerkleTrees(Box<TapirParameters<MerkleForm>>),
    /// TAPIR-PP: the same, with a Pointproofs commitment to each.
    Pointproofs(Box<TapirParameters<PointproofsForm>>),
}

impl Cut {
    /// The cut that `plan` describes.
    pub(crate) fn of(plan: &SchemePlan, identity: &TableIdentity) -> Option<Self> {
        match plan.scheme {
            SchemeId::DummySubsets | SchemeId::DummySubsetsTwo => {
                decoded(plan, identity).map(Self::Subsets)
            }
            SchemeId::Piano | SchemeId::PianoAllParities => {
                decoded(plan, identity).map(Box::new).map(Self::Chunks)
            }
            SchemeId::SinglePass => decoded(plan, identity).map(Self::Permutations),
            SchemeId::TapirMerkle => decoded(plan, identity).map(Box::new).map(Self::MerkleTrees),
            SchemeId::TapirPointproofs => {
                decoded(plan, identity).map(Box::new).map(Self::Pointproofs)
            }
            _ => None,
        }
    }
}

fn decoded<P: Parameters>(plan: &SchemePlan, identity: &TableIdentity) -> Option<P> {
    P::decode(identity, &plan.parameters).ok()
}

/// What bounds a query from below, whoever implements the scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Every server reads its whole table, from the beginning to the end.
    WholeTable,
    /// The client has the table, and reads the record itself.
    Nothing,
    /// Servers read single records, but most of their time and the client's goes into points of a curve, for which there is no yardstick here.
    Points,
    /// Servers read cache lines of 64 bytes, from all over what they made of the table.
    Lines {
        /// Lines that each server reads.
        lines: u64,
        /// Bytes that they are read from.
        from_bytes: u64,
    },
    /// Servers read single records, and the client may compute a pseudorandom function in AES blocks.
    Records {
        /// Records that each server reads.
        records: u64,
        /// Blocks that the client computes, at most: one for eight hints while it looks for those that contain the record, and some for each partition when it
        /// takes one of them apart. 0 for a client that computes none.
        aes_blocks: u64,
    },
}

impl Work {
    /// The work of a query under `plan`.
    pub(crate) fn of(plan: &SchemePlan, identity: &TableIdentity) -> Self {
        match plan.scheme {
            SchemeId::Download => return Work::Nothing,
            SchemeId::FiniteDifferences => {
                if let Some(parameters) = decoded::<FiniteDifferencesParameters>(plan, identity) {
                    let (lines, from_bytes) = (parameters.cache_lines(), parameters.points_bytes());
                    return Work::Lines { lines, from_bytes };
                }
            }
            SchemeId::FiniteDifferencesMany => {
                if let Some(parameters) = decoded::<ManyServersParameters>(plan, identity) {
                    let (lines, from_bytes) = (parameters.cache_lines(), parameters.points_bytes());
                    return Work::Lines { lines, from_bytes };
                }
            }
            _ => {}
        }
        match Cut::of(plan, identity) {
            None => Work::WholeTable,
            // Of every partition one record, for either half; to replace a hint, the same.
            Some(Cut::Subsets(parameters)) => {
                let partitions = u64::from(parameters.partitions());
                let hints = match plan.scheme {
                    SchemeId::DummySubsetsTwo => u64::from(parameters.singles()),
                    _ => u64::from(parameters.singles()) + u64::from(parameters.pairs()),
                };
                Work::Records { records: partitions, aes_blocks: hints / 8 + 2 * partitions }
            }
            Some(Cut::Chunks(parameters)) => {
                let chunks = u64::from(parameters.chunks());
                // Without the wanted record's chunk, the offsets may belong to either of two chunks in each place.
                let records = match plan.scheme {
                    SchemeId::PianoAllParities => 2 * chunks,
                    _ => chunks,
                };
                let hints = u64::from(parameters.primaries()) + parameters.window();
                Work::Records { records, aes_blocks: hints / 8 + 3 * chunks }
            }
            Some(Cut::Permutations(parameters)) => of_each_partition(&parameters),
            Some(Cut::MerkleTrees(parameters)) => of_each_partition(parameters.pass()),
            Some(Cut::Pointproofs(_)) => Work::Points,
        }
    }

    /// What single reads are of, and from how much: the records of a table of that shape, or cache lines of what was made of it. The yardstick of random reads has the same shape.
    pub(crate) fn reads(self, table: TableShape) -> TableShape {
        match self {
            Work::Lines { from_bytes, .. } => {
                TableShape::new(from_bytes.div_ceil(64), 64).unwrap_or(table)
            }
            _ => table,
        }
    }
}

/// One record of each partition.
fn of_each_partition(parameters: &SinglePassParameters) -> Work {
    Work::Records { records: parameters.partitions().into(), aes_blocks: 0 }
}
