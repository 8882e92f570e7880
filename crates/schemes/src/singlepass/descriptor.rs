//! The entry of SinglePass in the registry, and the parts that TAPIR shares.

use super::{
    SinglePass, SinglePassClient, SinglePassParameters, SinglePassPreparation, SinglePassServer,
};
use crate::registry::factors::singlepass as fitted;
use crate::registry::room::*;

impl Registered for SinglePass {
    const ABOUT: About = About {
        servers: 2..=2,
        options: &[&PARTITION_RECORDS],
        ..About::new("Two servers, secret hints from one pass over the table never run out", 100)
    };
    const HINTS: Option<Hints<Self::Parameters>> =
        Some(Hints::of::<SinglePassClient, SinglePassPreparation>());

    fn parameters(identity: &TableIdentity, tuning: &Tuning) -> Result<Self::Parameters> {
        cut(identity, tuning)
    }

    fn setup(start: ServerStart<'_>, parameters: Self::Parameters) -> NewServer {
        let server = SinglePassServer::new(parameters, start.table, start.kernels)?;
        start.ready(server)
    }

    fn hints_len(parameters: &Self::Parameters) -> u64 {
        parameters.state_bytes()
    }

    fn words(parameters: &Self::Parameters) -> Option<String> {
        Some(permutations(parameters))
    }

    fn work(parameters: &Self::Parameters) -> Work {
        work(parameters)
    }

    fn queries_say(parameters: &Self::Parameters, _role: Role) -> Option<String> {
        Some(one_of_each(parameters, "them"))
    }

    fn queries_look_random(_role: Role) -> bool {
        false
    }

    fn costs(parameters: &Self::Parameters) -> Costs {
        costs(parameters)
    }
}

/// The cut that the operator chose, or the one that suits the table.
pub(crate) fn cut(identity: &TableIdentity, tuning: &Tuning) -> Result<SinglePassParameters> {
    match tuning.number(&PARTITION_RECORDS) {
        Some(records) => SinglePassParameters::with_partition_records(identity.shape, records),
        None => SinglePassParameters::new(identity.shape),
    }
}

pub(crate) fn permutations(parameters: &SinglePassParameters) -> String {
    let records = count(parameters.partition_records().into());
    format!(
        "{} partitions of {records} records, a secret permutation for each; {records} hints, replaced as they are used, {} in memory",
        count(parameters.partitions().into()),
        bytes(parameters.state_bytes())
    )
}

/// What each step costs, in counted operations. Schemes that wrap SinglePass add to it.
pub fn costs(parameters: &SinglePassParameters) -> Costs {
    let (shape, partitions) = (parameters.shape(), u64::from(parameters.partitions()));
    let (records, record_len) = (shape.records(), shape.record_len());
    let reads = |count| random_reads(count, record_len, shape.bytes());
    let of = |fixed: f64, each: f64| fixed * steps(1) + each * steps(partitions);
    let ([each, further], [shuffled, summed]) = (fitted::ANSWER, fitted::HINTS);
    let ([unpacked, kept], [moved, asked, step]) = (fitted::PREPARE, fitted::QUERY);
    let (read, [told, value, combined]) =
        (each * reads(partitions) + further * reads(1), fitted::RECOVER);
    Costs {
        setup: fitted::SETUP * copied(shape.bytes()),
        hints: shuffled * steps(records) + summed * xored(shape.bytes()),
        prepare: unpacked * steps(records) + kept * xored(parameters.hint_bytes()),
        query: moved * xored(2 * u64::from(parameters.partition_records())) + of(asked, step),
        answer: read,
        answer_of_eight: read,
        recover: of(told, value) + combined * xored(partitions * record_len),
        ..Costs::default()
    }
}

/// One record of each partition.
pub(crate) fn work(parameters: &SinglePassParameters) -> Work {
    Work::Records { records: parameters.partitions().into(), aes_blocks: 0 }
}

/// What each server sees of a query; it sends back `what`.
pub(crate) fn one_of_each(parameters: &SinglePassParameters, what: &str) -> String {
    format!(
        "Each query names one record in each of {} partitions, and gets {what} back. In the wanted record's partition it names a random one. The query does not show which partition that is.",
        count(parameters.partitions().into())
    )
}
