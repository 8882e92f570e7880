//! What a scheme's parameters come to on a table: in words, and in the work of one query.

use crate::display;
use privet_core::TableIdentity;
use privet_schemes::SchemeId;
use privet_schemes::contract::Parameters as _;
use privet_schemes::doublepir::DoublePirParameters;
use privet_schemes::dummy_subsets::DummySubsetsParameters;
use privet_schemes::registry::SchemePlan;

/// What a person may want to know of a scheme's parameters beyond its name, if there is anything.
pub(crate) fn words(plan: &SchemePlan, identity: &TableIdentity) -> Option<String> {
    match plan.scheme {
        SchemeId::DummySubsets => dummy_subsets(plan, identity).map(|parameters| {
            format!(
                "{} partitions of {} records; {} hints and {} pairs of backup hints, one pair for each query, {} in memory",
                display::count(parameters.partitions().into()),
                display::count(parameters.partition_records().into()),
                display::count(parameters.singles().into()),
                display::count(parameters.pairs().into()),
                display::bytes(parameters.state_bytes())
            )
        }),
        SchemeId::DoublePir => {
            let parameters = DoublePirParameters::decode(identity, &plan.parameters).ok()?;
            Some(format!(
                "{} columns of {} records, second matrix {}",
                display::count(parameters.columns()),
                display::count(parameters.records_per_column()),
                display::bytes(parameters.kept_bytes())
            ))
        }
        _ => None,
    }
}

/// The parameters, if the scheme is dummy subsets.
pub(crate) fn dummy_subsets(
    plan: &SchemePlan,
    identity: &TableIdentity,
) -> Option<DummySubsetsParameters> {
    match plan.scheme {
        SchemeId::DummySubsets => DummySubsetsParameters::decode(identity, &plan.parameters).ok(),
        _ => None,
    }
}

/// What bounds a query from below, whoever implements the scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Every server reads its whole table, from the beginning to the end.
    WholeTable,
    /// The client has the table, and reads the record itself.
    Nothing,
    /// The server reads single records, and the client may compute a pseudorandom function in AES blocks.
    Records {
        /// Records that the server reads: one for each partition.
        records: u64,
        /// Blocks that the client computes, at most: one for eight hints while it looks for those that contain the record, and two for each partition when it
        /// takes one of them apart. 0 for a client that computes none.
        aes_blocks: u64,
    },
}

impl Work {
    /// The work of a query under `plan`.
    pub(crate) fn of(plan: &SchemePlan, identity: &TableIdentity) -> Self {
        if plan.scheme == SchemeId::Download {
            return Work::Nothing;
        }
        let Some(parameters) = dummy_subsets(plan, identity) else { return Work::WholeTable };
        let partitions = u64::from(parameters.partitions());
        let hints = u64::from(parameters.singles()) + u64::from(parameters.pairs());
        Work::Records { records: partitions, aes_blocks: hints / 8 + 2 * partitions }
    }
}
