//! The entries of both forms of Piano in the registry.

use super::{AnswerForm, PianoClient, PianoParameters, PianoPreparation, PianoScheme, PianoServer};
use crate::registry::factors::{piano as fitted, piano_all_parities as of_all_parities};
use crate::registry::room::*;

impl<F: AnswerForm> Registered for PianoScheme<F> {
    const ABOUT: About = About {
        options: &[&PARTITION_RECORDS],
        weaker_promise: Some(
            "lookups of records chosen by somebody who knows the table's public shuffle may use up one chunk's spare hints; such a lookup fails with an error, and the query that was sent looks like any other",
        ),
        weaker_by_key: Some(
            "the maker of the table (often the operator of the server) chose where keys lie, and can make lookups of a class of keys fail; for lookups by key, dummy-subsets is the better scheme",
        ),
        ..match F::REPLACES_THE_WANTED {
            true => {
                About::new("One server that reads about √n/2 records, secret single-use hints", 150)
            }
            false => {
                About::new("Piano as first published: an answer has a record for each chunk", 140)
            }
        }
    };
    const HINTS: Option<Hints<Self::Parameters>> =
        Some(Hints::of::<PianoClient<F>, PianoPreparation<F>>());

    fn parameters(identity: &TableIdentity, tuning: &Tuning) -> Result<Self::Parameters> {
        match tuning.number(&PARTITION_RECORDS) {
            Some(records) => PianoParameters::with_chunk_records(identity, records),
            None => PianoParameters::new(identity),
        }
    }

    fn setup(start: ServerStart<'_>, parameters: PianoParameters) -> NewServer {
        let server = PianoServer::<F>::new(parameters, start.table, start.kernels)?;
        start.ready(server)
    }

    fn hints_len(parameters: &Self::Parameters) -> u64 {
        parameters.state_bytes::<F>()
    }

    fn supply(parameters: &Self::Parameters) -> Option<u64> {
        Some(parameters.window())
    }

    fn words(parameters: &Self::Parameters) -> Option<String> {
        Some(format!(
            "{} chunks of {} records; {} hints and {} spare ones for each chunk, for a window of {} queries, {} in memory",
            count(parameters.chunks().into()),
            count(parameters.chunk_records().into()),
            count(parameters.primaries().into()),
            count(parameters.spares().into()),
            count(parameters.window()),
            bytes(parameters.state_bytes::<F>())
        ))
    }

    fn work(parameters: &Self::Parameters) -> Work {
        let chunks = u64::from(parameters.chunks());
        let records = match F::REPLACES_THE_WANTED {
            true => chunks,
            // As the wanted record's chunk is left out, each offset may belong to either of two
            // chunks.
            false => 2 * chunks,
        };
        let hints = u64::from(parameters.primaries()) + parameters.window();
        Work::Records { records, aes_blocks: hints / 8 + 3 * chunks }
    }

    fn queries_say(parameters: &Self::Parameters, _role: Role) -> Option<String> {
        let chunks = count(parameters.chunks().into());
        Some(match F::REPLACES_THE_WANTED {
            true => format!(
                "Each query names one record in each of {chunks} chunks, and gets their sum back. In the wanted record's chunk it names another record, which the client knows. The query does not show which chunk that is."
            ),
            false => format!(
                "Each query names a place in all but one of {chunks} chunks, and does not say which chunk it leaves out. The answer has a sum for each chunk that this may be. The client's hint tells which sum has its record."
            ),
        })
    }

    fn costs(parameters: &Self::Parameters) -> Costs {
        let (shape, chunks) = (parameters.shape(), u64::from(parameters.chunks()));
        let hints = u64::from(parameters.primaries()) + parameters.window();
        let sums = chunks * (u64::from(parameters.primaries()) + parameters.backups());
        let summed = random_reads(sums, shape.record_len(), parameters.state_bytes::<F>());
        let reads = |count| random_reads(count, shape.record_len(), shape.bytes());
        let answer = match F::REPLACES_THE_WANTED {
            true => {
                let [each, fixed, step] = fitted::ANSWER;
                each * reads(chunks) + fixed * steps(1) + step * steps(chunks)
            }
            false => {
                let [each, fixed, step, summed] = of_all_parities::ANSWER;
                each * reads(2 * chunks)
                    + fixed * steps(1)
                    + step * steps(chunks)
                    + summed * xored(2 * chunks * shape.record_len())
            }
        };
        // What exceeds a cache line takes longer to fetch and to write back.
        let line = shape.record_len().min(64);
        let [digested, drawn, chosen, in_line, beyond, fetched] = fitted::PREPARE;
        let ([placed, moved], [searched, asked]) = (fitted::SETUP, fitted::QUERY);
        let [told, parity] = fitted::RECOVER;
        let parities = if F::REPLACES_THE_WANTED { 1 } else { chunks };
        Costs {
            setup: placed * steps(shape.records()) + moved * xored(shape.bytes()),
            prepare: digested * hashed(shape.bytes())
                + drawn * aes_blocks(sums)
                + chosen * steps(sums)
                + in_line * xored(sums * line)
                + beyond * xored(sums * (shape.record_len() - line))
                + fetched * summed,
            query: searched * aes_blocks(hints / 8 + 3 * chunks) + asked * steps(1),
            answer,
            answer_of_eight: answer,
            recover: told * steps(1) + parity * xored(parities * shape.record_len()),
            ..Costs::default()
        }
    }
}
