//! The entry of dummy subsets with one server in the registry, and the parts that both forms share.

use super::{
    DummySubsets, DummySubsetsClient, DummySubsetsParameters, DummySubsetsPreparation,
    DummySubsetsServer,
};
use crate::registry::factors::dummy_subsets as fitted;
use crate::registry::room::*;

impl Registered for DummySubsets {
    const ABOUT: About = About {
        options: &[&PARTITION_RECORDS],
        ..About::new("One server that reads about √n records, secret single-use hints", 120)
    };
    const HINTS: Option<Hints<Self::Parameters>> =
        Some(Hints::of::<DummySubsetsClient, DummySubsetsPreparation>());

    fn parameters(identity: &TableIdentity, tuning: &Tuning) -> Result<Self::Parameters> {
        cut(identity, tuning)
    }

    fn setup(start: ServerStart<'_>, parameters: Self::Parameters) -> NewServer {
        let server = DummySubsetsServer::new(parameters, start.table, start.kernels)?;
        start.ready(server)
    }

    fn hints_len(parameters: &Self::Parameters) -> u64 {
        parameters.state_bytes()
    }

    fn supply(parameters: &Self::Parameters) -> Option<u64> {
        Some(parameters.pairs().into())
    }

    fn words(parameters: &Self::Parameters) -> Option<String> {
        Some(format!(
            "{}; {} hints and {} pairs of backup hints, one pair for each query, {} in memory",
            cut_in_words(parameters),
            count(parameters.singles().into()),
            count(parameters.pairs().into()),
            bytes(parameters.state_bytes())
        ))
    }

    fn work(parameters: &Self::Parameters) -> Work {
        work(parameters, u64::from(parameters.singles()) + u64::from(parameters.pairs()))
    }

    fn queries_say(parameters: &Self::Parameters, _role: Role) -> Option<String> {
        Some(halves(parameters))
    }

    fn costs(parameters: &Self::Parameters) -> Costs {
        let hints = u64::from(parameters.singles()) + 2 * u64::from(parameters.pairs());
        let (sums, record_len) = (parameters.summed(hints), parameters.shape().record_len());
        let ([copies, digests], bytes) = (fitted::SETUP, parameters.shape().bytes());
        let [digested, drawn, chosen, added] = fitted::PREPARE;
        Costs {
            setup: copies * copied(bytes) + digests * hashed(bytes),
            prepare: digested * hashed(bytes)
                + drawn * aes_blocks(sums)
                + chosen * steps(sums)
                + added * xored(record_len * sums),
            query: search(parameters, u64::from(parameters.singles() + parameters.pairs())),
            answer: read(parameters),
            answer_of_eight: read(parameters),
            recover: fitted::RECOVER * steps(1),
            ..Costs::default()
        }
    }
}

/// The cut that the operator chose, or the one that suits the table.
pub(super) fn cut(identity: &TableIdentity, tuning: &Tuning) -> Result<DummySubsetsParameters> {
    match tuning.number(&PARTITION_RECORDS) {
        Some(records) => DummySubsetsParameters::with_partition_records(identity.shape, records),
        None => DummySubsetsParameters::new(identity.shape),
    }
}

pub(super) fn cut_in_words(parameters: &DummySubsetsParameters) -> String {
    format!(
        "{} partitions of {} records",
        count(parameters.partitions().into()),
        count(parameters.partition_records().into()),
    )
}

/// One record of every partition, for both halves together. Replacing a hint takes the same.
pub(super) fn work(parameters: &DummySubsetsParameters, hints: u64) -> Work {
    let partitions = u64::from(parameters.partitions());
    Work::Records { records: partitions, aes_blocks: hints / 8 + 2 * partitions }
}

/// Finding a hint among `hints`, and rebuilding it.
pub(super) fn search(parameters: &DummySubsetsParameters, hints: u64) -> Operations {
    let [drawn, fixed] = fitted::QUERY;
    drawn * aes_blocks(hints / 8 + 2 * u64::from(parameters.partitions())) + fixed * steps(1)
}

/// A record of every partition.
pub(super) fn read(parameters: &DummySubsetsParameters) -> Operations {
    let (shape, records) = (parameters.shape(), u64::from(parameters.partitions()));
    let reads = |count| random_reads(count, shape.record_len(), shape.bytes());
    let [each, further, fixed, step] = fitted::ANSWER;
    each * reads(records) + further * reads(1) + fixed * steps(1) + step * steps(records)
}

/// What the server that answers a query sees of it.
pub(super) fn halves(parameters: &DummySubsetsParameters) -> String {
    format!(
        "Each query names one record in each of {} partitions, in two halves. The answer is the sum of each half. With its hint the client gets its record from one of the sums. The query does not show which sum, nor which record.",
        count(parameters.partitions().into())
    )
}
