//! DoublePIR end to end without a network: any shape, both forms of the answer, known answers, the noise of the second level, malformed messages, what crosses the wire.

use super::*;
use crate::contract::{Answerer, Message, Parameters, Role, Setup, StatelessClient};
use crate::test_tables::{identity, look_up, public_bytes};
use privet_core::lwe::{
    DecryptionKey, LEAST_SECURITY_BITS, LEVEL_FAILURE_LOG2, MAX_COLUMNS, PublicMatrix,
    SECRET_DIMENSION,
};
use privet_core::{Blame, RecordIndex, SecretRng, TableIdentity, TableView};
use privet_kernels::Kernels;
use privet_kernels::dispatch::Arm;
use proptest::prelude::*;
use std::sync::Arc;

struct Pair {
    identity: TableIdentity,
    table: Vec<u8>,
    hint: Vec<u8>,
    /// The second matrix's columns, one after the other.
    first_hint: Vec<u8>,
    server: DoublePirServer,
    client: DoublePirClient,
}

fn pair_on(table: Vec<u8>, identity: TableIdentity, parameters: DoublePirParameters) -> Pair {
    let kernels = Kernels::detect();
    let view = TableView::new(identity, &table).unwrap();
    let setup = DoublePirSetup::new(parameters.clone(), view, kernels, 1).unwrap();
    let precomputed = setup.precompute(&|_| ()).unwrap();
    let hint = precomputed.hint.as_bytes().into_owned();
    let first_hint = precomputed.kept.as_bytes().into_owned();
    assert_eq!(hint.len() as u64, parameters.hint_bytes());
    assert_eq!(first_hint.len() as u64, setup.kept_len());
    let server = setup.finish(&first_hint).unwrap();
    let client = DoublePirClient::new(parameters, Arc::new(hint.clone()), kernels).unwrap();
    Pair { identity, table, hint, first_hint, server, client }
}

fn pair(identity: TableIdentity, parameters: DoublePirParameters) -> Pair {
    pair_on(public_bytes("a table", identity.shape.bytes() as usize), identity, parameters)
}

fn default_pair(records: u64, record_len: u64) -> Pair {
    let identity = identity(records, record_len);
    pair(identity, DoublePirParameters::new(&identity).unwrap())
}

impl Pair {
    fn index(&self, of: u64) -> RecordIndex {
        RecordIndex::new(of, self.identity.shape).unwrap()
    }

    fn check(&self, wanted: &[u64]) {
        let table = TableView::new(self.identity, &self.table).unwrap();
        look_up(&self.client, &[&self.server], table, wanted);
    }
}

proptest! {
    // A hint has 16 MiB for each byte of a record, so cases are few and records short.
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn any_layout_of_any_shape_returns_the_record_asked_for(
        records in 1u64..=3_000,
        record_len in 1u64..=5,
        layout in any::<u64>(),
        picks in prop::collection::vec(any::<u64>(), 1..4),
    ) {
        let identity = identity(records, record_len);
        let parameters = DoublePirParameters::with_records_per_column(&identity, 1 + layout % records).unwrap();
        let mut wanted: Vec<u64> = picks.iter().map(|pick| pick % records).collect();
        wanted.extend([0, records - 1]);
        pair(identity, parameters).check(&wanted);
    }
}

proptest! {
    #[test]
    fn bytes_that_are_no_parameters_are_refused_or_valid(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
        let identity = identity(1_000, 10);
        match DoublePirParameters::decode(&identity, &bytes) {
            Ok(parameters) => prop_assert_eq!(parameters.encode(), bytes),
            Err(error) => prop_assert!(matches!(error.blame(), Blame::InvalidMessage | Blame::PeerMisbehaved)),
        }
    }

    #[test]
    fn the_default_layout_keeps_its_rule(bits in 0u32..46, fraction in any::<u64>(), record_len in 1u64..=64) {
        let records = (1u64 << bits).saturating_add(fraction % (1 << bits)) / record_len + 1;
        let identity = identity(records, record_len);
        // The widest matrices that the encryption allows hold 2^36 records.
        let Ok(parameters) = DoublePirParameters::new(&identity) else {
            prop_assert!(records > 1 << 36);
            return Ok(());
        };
        let (columns, per_column) = (parameters.columns(), parameters.records_per_column());
        prop_assert!(columns * per_column >= records && (columns - 1) * per_column < records);
        // Unless the limit for columns asks for more records in each.
        let least = records.div_ceil(MAX_COLUMNS);
        prop_assert!(parameters.kept_bytes() <= (records * record_len / 16).max(1 << 24) || per_column == least);
        let failure = parameters.failure_bound_log2();
        let of_byte = failure - (record_len as f64).log2();
        prop_assert!(failure.is_finite() && of_byte <= LEVEL_FAILURE_LOG2 + 1.0, "2^{}", failure);
        for level in parameters.encryption() {
            prop_assert!(level.error().security_bits() >= LEAST_SECURITY_BITS);
        }
        // No layout within the rule has shorter messages: neither neighbours nor halves and doubles.
        let len = |parameters: &DoublePirParameters| DoublePirQuery::encoded_len(parameters) + DoublePirAnswer::encoded_len(parameters);
        for other in [per_column / 2, per_column - per_column / 16, per_column + per_column / 16 + 1, per_column * 2, 4_100] {
            if let Ok(other) = DoublePirParameters::with_records_per_column(&identity, other)
                && other.kept_bytes() <= (records * record_len / 16).max(1 << 24)
            {
                // Columns are whole, so the rule may be off by a few words.
                prop_assert!(len(&parameters) <= len(&other) + 64, "{} instead of {}", per_column, other.records_per_column());
            }
        }
    }
}

#[test]
fn every_record_of_small_tables_comes_back() {
    for (records, record_len) in [(1, 1), (2, 1), (3, 7), (65, 3)] {
        default_pair(records, record_len).check(&(0..records).collect::<Vec<_>>());
    }
}

#[test]
fn both_forms_of_the_answer_return_the_record() {
    for (records, record_len, per_column) in
        [(9_001, 2, 4_100), (9_001, 2, 4_101), (13_000, 3, 13_000)]
    {
        let identity = identity(records, record_len);
        let parameters =
            DoublePirParameters::with_records_per_column(&identity, per_column).unwrap();
        assert_eq!(parameters.folds_first_product(), per_column > 4_100);
        assert!(parameters.first_words() <= parameters.rows());
        pair(identity, parameters).check(&[0, 4_099, 4_100, 8_999, records - 1]);
    }
}

#[test]
fn the_extreme_tables_come_back_too() {
    let identity = identity(10_000, 1);
    for per_column in [100, 5_000] {
        for byte in [0u8, 255] {
            let parameters =
                DoublePirParameters::with_records_per_column(&identity, per_column).unwrap();
            pair_on(vec![byte; 10_000], identity, parameters).check(&[0, 4_999, 9_999]);
        }
    }
}

#[test]
fn every_arm_and_any_number_of_threads_gives_the_same_hint_and_answer() {
    let identity = identity(12_001, 1);
    let table = public_bytes("a table", 12_001);
    for per_column in [70, 6_000] {
        let parameters =
            DoublePirParameters::with_records_per_column(&identity, per_column).unwrap();
        let words = 4 * (parameters.columns() + parameters.records_per_column()) as usize;
        let query = DoublePirQuery::decode(&parameters, &public_bytes("a query", words)).unwrap();
        let run = |arm: Arm, threads: usize| {
            let view = TableView::new(identity, &table).unwrap();
            let kernels = Kernels::with_arm(arm).unwrap();
            let setup = DoublePirSetup::new(parameters.clone(), view, kernels, threads).unwrap();
            let precomputed = setup.precompute(&|_| ()).unwrap();
            let server = setup.finish(&precomputed.kept.as_bytes()).unwrap();
            let answer = server.answer(Role(0), std::slice::from_ref(&query)).remove(0).encode();
            (blake3::hash(&precomputed.hint.as_bytes()), answer)
        };
        let expected = run(Arm::Portable, 1);
        for (arm, threads) in Arm::available().into_iter().zip([3, 1, 2]) {
            assert!(run(arm, threads) == expected, "{arm} with {threads} threads differs");
        }
    }
}

/// `vectors/doublepir.json`: whoever implements DoublePIR again must get the same hints, query, answer and record.
#[test]
fn known_answers() {
    let file = include_str!("../../../../vectors/doublepir.json");
    let vectors: serde_json::Value = serde_json::from_str(file).unwrap();
    for vector in vectors["cases"].as_array().unwrap() {
        let number = |name: &str| vector[name].as_u64().unwrap();
        let text = |name: &str| vector[name].as_str().unwrap().to_owned();
        let digest = |bytes: &[u8]| blake3::hash(bytes).to_hex().to_string();
        let identity = identity(number("records"), number("record_len"));
        let parameters =
            DoublePirParameters::with_records_per_column(&identity, number("records_per_column"))
                .unwrap();
        let pair = pair(identity, parameters);
        assert_eq!(digest(&pair.table), text("table_blake3"));
        assert_eq!(digest(&pair.first_hint), text("first_hint_blake3"));
        assert_eq!(digest(&pair.hint), text("hint_blake3"));

        let mut rng = SecretRng::from_fixed_seed([number("rng_seed") as u8; 32]);
        let (queries, pending) = pair.client.query(&pair.index(number("index")), &mut rng).unwrap();
        assert_eq!(digest(&queries[0].encode()), text("query_blake3"));
        let answers = pair.server.answer(Role(0), &queries);
        assert_eq!(digest(&answers[0].encode()), text("answer_blake3"));
        let record = pair.client.recover(pending, &answers).unwrap();
        let hex: String = record.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, text("record"));
    }
}

#[test]
fn a_message_of_any_other_length_is_refused() {
    let identity = identity(500, 3);
    let parameters = DoublePirParameters::new(&identity).unwrap();
    let query = DoublePirQuery::encoded_len(&parameters);
    let answer = DoublePirAnswer::encoded_len(&parameters);
    for wrong in [0, 1, 4, query - 4, query - 1, query + 1, query + 4, answer - 4, answer + 4] {
        if wrong != query {
            let refusal = DoublePirQuery::decode(&parameters, &vec![0; wrong]).err().unwrap();
            assert_eq!(refusal.blame(), Blame::InvalidMessage, "query of {wrong} bytes");
        }
        if wrong != answer {
            let refusal = DoublePirAnswer::decode(&parameters, &vec![0; wrong]).err().unwrap();
            assert_eq!(refusal.blame(), Blame::InvalidMessage, "answer of {wrong} bytes");
        }
    }
}

#[test]
fn hints_of_another_size_and_the_wrong_number_of_answers_are_refused() {
    let pair = default_pair(50, 1);
    let parameters = Answerer::parameters(&pair.server).clone();
    let short = vec![0u8; parameters.hint_bytes() as usize - 1];
    let refusal = DoublePirClient::new(parameters.clone(), Arc::new(short), Kernels::detect());
    assert_eq!(refusal.err().unwrap().blame(), Blame::Corrupted);

    let view = TableView::new(pair.identity, &pair.table).unwrap();
    let setup = DoublePirSetup::new(parameters, view, Kernels::detect(), 1).unwrap();
    let refusal = setup.finish(&pair.first_hint[1..]).err().unwrap();
    assert_eq!(refusal.blame(), Blame::Corrupted);

    let mut rng = SecretRng::from_os().unwrap();
    let (_, pending) = pair.client.query(&pair.index(3), &mut rng).unwrap();
    assert_eq!(pair.client.recover(pending, &[]).err().unwrap().blame(), Blame::ApiMisuse);
}

#[test]
fn records_whose_hint_is_too_large_are_refused_with_numbers() {
    assert!(DoublePirParameters::new(&identity(1 << 20, 64)).is_ok());
    let error = DoublePirParameters::new(&identity(1 << 20, 65)).unwrap_err();
    assert_eq!(error.blame(), Blame::ApiMisuse);
    let said = error.to_string();
    for number in ["1040 MiB", "65 bytes", "1024 MiB", "64 bytes", "33 MiB"] {
        assert!(said.contains(number), "{number} is not in: {said}");
    }
    // What a server announces is held to the same.
    let refusal = DoublePirParameters::decode(&identity(1 << 20, 65), &5u64.to_le_bytes());
    assert_eq!(refusal.err().unwrap().blame(), Blame::PeerMisbehaved);
    let identity = identity(1 << 22, 1);
    for per_column in [0, (1 << 22) + 1] {
        assert!(DoublePirParameters::with_records_per_column(&identity, per_column).is_err());
    }
}

#[test]
fn layouts_below_128_bits_are_refused() {
    let identity = identity(1 << 22, 1);
    for (per_column, columns) in [(15, "279621"), ((1 << 18) + 1, "262145")] {
        let error = DoublePirParameters::with_records_per_column(&identity, per_column);
        let error = error.unwrap_err().to_string();
        assert!(error.contains(columns) && error.contains("262144"), "{error}");
        assert!(error.contains("128 bits"), "{error}");
        let announced = DoublePirParameters::decode(&identity, &per_column.to_le_bytes());
        assert_eq!(announced.err().unwrap().blame(), Blame::PeerMisbehaved);
    }
    for per_column in [16, 1 << 18] {
        let allowed = DoublePirParameters::with_records_per_column(&identity, per_column).unwrap();
        for level in allowed.encryption() {
            assert!(level.error().security_bits() >= LEAST_SECURITY_BITS);
        }
        assert!(allowed.failure_bound_log2() <= -64.0);
    }
}

#[test]
fn the_error_of_each_level_follows_from_its_own_columns() {
    // A GiB of single bytes: 65,536 columns, 16,384 records in each.
    let parameters = DoublePirParameters::new(&identity(1 << 30, 1)).unwrap();
    let [first, second] = parameters.encryption();
    assert_eq!((first.columns(), second.columns()), (1 << 16, 1 << 14));
    assert!((first.error().deviation() - 26.72).abs() < 0.01);
    assert!((second.error().deviation() - 34.84).abs() < 0.01);
    // The second level has 4100 bytes to decrypt for each byte of a record, and counts them.
    let many =
        DoublePirParameters::with_records_per_column(&identity(1 << 30, 1), 1 << 15).unwrap();
    let [first, second] = many.encryption();
    assert_eq!(first.columns(), second.columns());
    assert!(first.error().deviation() > second.error().deviation());
}

#[test]
fn the_shapes_that_are_published_get_the_layout_that_is_documented() {
    let layout = |records, record_len| {
        let parameters = DoublePirParameters::new(&identity(records, record_len)).unwrap();
        let folds = parameters.folds_first_product();
        (
            parameters.columns(),
            parameters.records_per_column(),
            folds,
            parameters.hint_bytes() >> 20,
        )
    };
    assert_eq!(layout(1 << 30, 1), (1 << 16, 1 << 14, true, 16));
    // The first level's 65,536 columns: 1 − (2^23)² / (2 · 128² · 10 · 8.45² · 65,536) · log2(e).
    let failure = DoublePirParameters::new(&identity(1 << 30, 1)).unwrap().failure_bound_log2();
    assert!((failure + 65.2).abs() < 0.1, "2^{failure}");
    assert_eq!(layout(1 << 25, 32), (1 << 16, 1 << 9, false, 512));
}

/// The noise of the second level, word by word, without access to it: the number that has to be added until the byte that is decrypted changes says how far the word
/// was from the edge.
fn noise(key: &DecryptionKey, word: u32, mask: u32) -> i32 {
    let byte = key.decrypt(word, mask);
    // The word plus `below` still decrypts to the byte, plus `above` no longer.
    let (mut below, mut above) = (0i32, 1 << 24);
    while above - below > 1 {
        let middle = (below + above) / 2;
        let same = key.decrypt(word.wrapping_add(middle as u32), mask) == byte;
        if same { below = middle } else { above = middle }
    }
    (1 << 23) - above
}

#[test]
fn noise_of_the_second_level_is_as_predicted() {
    const RECORDS: u64 = 900;
    let identity = identity(RECORDS, 1);
    let parameters = DoublePirParameters::with_records_per_column(&identity, RECORDS).unwrap();
    let deviation = parameters.encryption()[1].error().deviation();
    let pair = pair(identity, parameters);
    let words = |bytes: &[u8]| -> Vec<u32> {
        bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
    };
    let hint = words(&pair.hint);
    let mut noises = Vec::new();
    for of in 0..20 {
        let mut rng = SecretRng::from_fixed_seed([of as u8; 32]);
        let (queries, pending) = pair.client.query(&pair.index(of * 40), &mut rng).unwrap();
        let answer = pair.server.answer(Role(0), &queries).remove(0);
        let (_, key) = pending.keys();
        let mut masks = vec![0; answer.hint_rows.len()];
        Kernels::detect().words_times_vector(&hint, key.secret(), &mut masks);
        let row = &pair.first_hint[(of * 40) as usize * 4096..][..4096];
        for ((word, mask), byte) in answer.hint_rows.iter().zip(&masks).zip(row) {
            assert_eq!(key.decrypt(*word, *mask), *byte);
            noises.push(f64::from(noise(key, *word, *mask)));
        }
    }
    // The first hint's bytes are uniform: centred on 128 their mean square is (256² − 1)/12 + 1/4.
    let predicted = deviation.powi(2) * (65_535.0 / 12.0 + 0.25) * RECORDS as f64;
    let square = noises.iter().map(|x| x * x).sum::<f64>() / noises.len() as f64;
    assert!((square / predicted - 1.0).abs() < 0.06, "mean square {square}, predicted {predicted}");
    // With a margin of two deviations instead of the hundreds that there are, one in 22 would fail; the proof's bound allows more, 2·exp(−2).
    let margin = 2.0 * predicted.sqrt();
    let share = noises.iter().filter(|x| x.abs() > margin).count() as f64 / noises.len() as f64;
    assert!((0.035..0.056).contains(&share), "{share} of the noise lies beyond two deviations");
}

/// Pearson's statistic of each of the four bytes of all words, over 255 degrees of freedom in units of its standard deviation; the largest. Beyond 6 for uniform bytes less than
/// once in 10^6 times.
fn far_from_uniform(words: impl Iterator<Item = u32>) -> f64 {
    let mut counts = [[0f64; 256]; 4];
    words.for_each(|word| {
        for (counts, byte) in counts.iter_mut().zip(word.to_le_bytes()) {
            counts[usize::from(byte)] += 1.0;
        }
    });
    let statistic = |counts: &[f64; 256]| {
        let expected = counts.iter().sum::<f64>() / 256.0;
        let sum: f64 = counts.iter().map(|n| (n - expected).powi(2) / expected).sum();
        (sum - 255.0) / (2.0 * 255.0f64).sqrt()
    };
    counts.iter().map(statistic).fold(f64::MIN, f64::max)
}

/// What a server may look at: the words of queries for one record, and their differences from one query to the next, at each level, all together and at the wanted places alone.
fn suspicion(queries: &[DoublePirQuery], column: usize, record: usize) -> f64 {
    let mut worst = f64::MIN;
    for (level, wanted) in [(0, column), (1, record)] {
        let words = |query: &DoublePirQuery| {
            if level == 0 { query.column.clone() } else { query.record.clone() }
        };
        let all: Vec<Vec<u32>> = queries.iter().map(words).collect();
        let differences = all.windows(2).flat_map(|two| {
            two[0].iter().zip(&two[1]).map(|(a, b)| a.wrapping_sub(*b)).collect::<Vec<_>>()
        });
        let at_wanted = all.iter().map(|words| words[wanted]);
        for measured in [
            far_from_uniform(all.iter().flatten().copied()),
            far_from_uniform(differences),
            far_from_uniform(at_wanted),
        ] {
            worst = worst.max(measured);
        }
    }
    worst
}

#[test]
fn queries_look_uniform_and_planted_leaks_do_not() {
    const QUERIES: usize = 2_600;
    let identity = identity(24, 1);
    let parameters = DoublePirParameters::with_records_per_column(&identity, 4).unwrap();
    let pair = pair(identity, parameters.clone());
    let of = 14; // Column 3, record 2 of it.
    let honest = |seed: u8| {
        let mut rng = SecretRng::from_fixed_seed([seed; 32]);
        let query = |_| pair.client.query(&pair.index(of), &mut rng).unwrap();
        (0..QUERIES).map(query).map(|(mut queries, pending)| (queries.remove(0), pending)).collect()
    };
    let queries = |made: Vec<(DoublePirQuery, DoublePirPending)>| -> Vec<DoublePirQuery> {
        made.into_iter().map(|(query, _)| query).collect()
    };
    let honest_queries = queries(honest(1));
    assert!(suspicion(&honest_queries, 3, 2) < 6.0);

    // One level without its mask: only error and unit vector are sent.
    let unmask = |words: &mut [u32], matrix: &PublicMatrix, key: &DecryptionKey| {
        let mut rows = vec![0; words.len() * SECRET_DIMENSION];
        matrix.rows(Kernels::detect(), 0, &mut rows);
        let mut masks = vec![0; words.len()];
        Kernels::detect().words_times_vector(&rows, key.secret(), &mut masks);
        words.iter_mut().zip(masks).for_each(|(word, mask)| *word = word.wrapping_sub(mask));
    };
    for level in [0, 1] {
        let leaky = honest(2).into_iter().map(
            |(mut query, pending): (DoublePirQuery, DoublePirPending)| {
                let (first, second) = pending.keys();
                match level {
                    0 => unmask(&mut query.column, parameters.first_matrix(), first),
                    _ => unmask(&mut query.record, parameters.second_matrix(), second),
                }
                query
            },
        );
        assert!(suspicion(&leaky.collect::<Vec<_>>(), 3, 2) > 6.0, "level {level} without mask");
    }

    // A secret with a single byte of entropy in each word: the lowest bytes of the mask are zero.
    let shallow =
        honest(3).into_iter().map(|(mut query, pending): (DoublePirQuery, DoublePirPending)| {
            let (first, _) = pending.keys();
            unmask(&mut query.column, parameters.first_matrix(), first);
            let secret: Vec<u32> = first.secret().iter().map(|word| word << 24).collect();
            let mut rows = vec![0; query.column.len() * SECRET_DIMENSION];
            parameters.first_matrix().rows(Kernels::detect(), 0, &mut rows);
            let mut masks = vec![0; query.column.len()];
            Kernels::detect().words_times_vector(&rows, &secret, &mut masks);
            let words = query.column.iter_mut().zip(masks);
            words.for_each(|(word, mask)| *word = word.wrapping_add(mask));
            query
        });
    assert!(suspicion(&shallow.collect::<Vec<_>>(), 3, 2) > 6.0, "a shallow secret");

    // A secret that serves twice: the same coins for every pair of queries.
    let reused = (0..QUERIES).map(|number| {
        let mut rng = SecretRng::from_fixed_seed([(number / 2 % 251) as u8; 32]);
        pair.client.query(&pair.index(of), &mut rng).unwrap().0.remove(0)
    });
    assert!(suspicion(&reused.collect::<Vec<_>>(), 3, 2) > 6.0, "a secret reused");
}

#[test]
fn two_queries_share_no_words_and_lengths_never_depend_on_the_index() {
    let pair = default_pair(300, 2);
    let mut sent = std::collections::HashSet::new();
    for of in (0..300).flat_map(|of| [of, of]) {
        let mut rng = SecretRng::from_os().unwrap();
        let (queries, _) = pair.client.query(&pair.index(of), &mut rng).unwrap();
        let [query] = &queries[..] else { panic!("one server, one query") };
        let len = query.encode().len();
        assert_eq!(len, DoublePirQuery::encoded_len(Answerer::parameters(&pair.server)));
        for level in [&query.column, &query.record] {
            assert!(sent.insert(level.clone()), "half a query for record {of} was sent before");
        }
    }
}
