//! The scheme's entry in the registry.

use super::{Harmony, HarmonyClient, HarmonyParameters, HarmonyPreparation, HarmonyServer};
use crate::registry::factors::harmony as fitted;
use crate::registry::room::*;

/// The size of segments.
pub static SEGMENT_RECORDS: SchemeOption = SchemeOption::new(
    "segment-records",
    OptionKind::Amount { value_name: "T" },
    "Records in each answer, a power of two: twice as many mean half the state and half the lookups \
     between two streams of the table; default: by the table's shape",
);

impl Registered for Harmony {
    const ABOUT: About = About {
        options: &[&SEGMENT_RECORDS],
        ..About::new("One server that reads a few records, secret single-use hints", 125)
    };
    const HINTS: Option<Hints<Self::Parameters>> =
        Some(Hints::of::<HarmonyClient, HarmonyPreparation>());

    fn parameters(identity: &TableIdentity, tuning: &Tuning) -> Result<Self::Parameters> {
        match tuning.number(&SEGMENT_RECORDS) {
            Some(records) => HarmonyParameters::with_segment_records(identity.shape, records),
            None => HarmonyParameters::new(identity.shape),
        }
    }

    fn setup(start: ServerStart<'_>, parameters: Self::Parameters) -> NewServer {
        let server = HarmonyServer::new(parameters, start.table, start.kernels)?;
        start.ready(server)
    }

    fn hints_len(parameters: &Self::Parameters) -> u64 {
        parameters.state_bytes()
    }

    fn supply(parameters: &Self::Parameters) -> Option<u64> {
        Some(parameters.lookups().into())
    }

    fn words(parameters: &Self::Parameters) -> Option<String> {
        Some(format!(
            "{} segments of {} cells, half of which hold records; {} queries, {} in memory",
            count(parameters.segments().into()),
            count(parameters.segment_records().into()),
            count(parameters.lookups().into()),
            bytes(parameters.state_bytes())
        ))
    }

    /// The blocks of a query with fresh hints: half of the cells are empty, and walks have one
    /// step. The last queries of a generation take up to 8/3 times as many.
    fn work(parameters: &Self::Parameters) -> Work {
        let records = u64::from(parameters.segment_records());
        Work::Records { records, aes_blocks: 3 * records / 2 * parameters.blocks_per_value() }
    }

    fn queries_say(parameters: &Self::Parameters, _role: Role) -> Option<String> {
        Some(format!(
            "Each query names {} places: different records, drawn at random, or none. The wanted record is among them no more often than any other. The client has the sum of the wanted record and the others.",
            count(parameters.segment_records().into())
        ))
    }

    /// Values below twice the number of records have unused bits, and empties come often.
    fn queries_look_random(_role: Role) -> bool {
        false
    }

    fn costs(parameters: &Self::Parameters) -> Costs {
        let (shape, records) = (parameters.shape(), u64::from(parameters.segment_records()));
        let value = aes_blocks(parameters.blocks_per_value());
        let reads = |count| random_reads(count, shape.record_len(), shape.bytes());
        let of = |[fixed, each]: [f64; 2]| fixed * steps(1) + each * steps(records);
        let [each, further, fixed, step] = fitted::ANSWER;
        let read = each * reads(records) + further * reads(1) + of([fixed, step]);
        let ([digested, summed, permuted], [values, begun]) = (fitted::PREPARE, fitted::QUERY);
        let [copies, digests] = fitted::SETUP;
        Costs {
            prepare: digested * hashed(shape.bytes())
                + summed * xored(shape.bytes())
                + permuted * (shape.records() as f64 * value),
            setup: copies * copied(shape.bytes()) + digests * hashed(shape.bytes()),
            query: values * (records as f64 * value) + begun * steps(1),
            answer: read,
            answer_of_eight: read,
            recover: of(fitted::RECOVER),
            ..Costs::default()
        }
    }
}
