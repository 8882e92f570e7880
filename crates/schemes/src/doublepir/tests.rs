//! DoublePIR end to end without a network: the suite of schemes without state, known answers,
//! layouts, the noise of the second level, and what crosses the wire in all its words.

use super::*;
use crate::conformance::known::Known;
use crate::conformance::stateless::{self, Stateless, Table, by_default, stateless_suite};
use crate::contract::{Answerer, Message, Parameters, Role, Setup, StatelessClient};
use crate::test_tables::identity;
use privet_core::lwe::{
    DecryptionKey, LEAST_SECURITY_BITS, LEVEL_FAILURE_LOG2, MAX_COLUMNS, PublicMatrix,
    SECRET_DIMENSION,
};
use privet_core::{Blame, Result, SecretRng, TableIdentity, TableView};
use privet_kernels::Kernels;
use proptest::prelude::*;
use std::sync::Arc;

struct Tested;

type World = stateless::World<Tested>;

stateless_suite!(Tested);

impl Stateless for Tested {
    type Scheme = DoublePir;
    type Server = DoublePirServer;
    type Client = DoublePirClient;
    /// Records of a column.
    type Form = Option<u64>;

    // A hint has 16 MiB for each byte of a record, so cases are few and records short.
    const CASES: u32 = 12;
    const COPIES: usize = 1;
    const THREADS: &'static [usize] = &[3];

    fn tables() -> BoxedStrategy<Table<Self>> {
        let any = |records| (Just(records), 1u64..=3, (1..=records).prop_map(Some));
        (1u64..=3_000).prop_flat_map(any).boxed()
    }

    fn small() -> Vec<Table<Self>> {
        by_default(&[(1, 1), (3, 7), (2, 1), (65, 3)])
    }

    /// Both forms of the answer.
    fn kinds() -> Vec<Table<Self>> {
        vec![(12_001, 1, Some(70)), (8_401, 1, Some(4_200))]
    }

    fn parameters(identity: &TableIdentity, form: &Self::Form) -> Result<DoublePirParameters> {
        match form {
            Some(records) => DoublePirParameters::with_records_per_column(identity, *records),
            None => DoublePirParameters::new(identity),
        }
    }

    fn setup(
        parameters: &DoublePirParameters,
        _form: &Self::Form,
        table: TableView<'_>,
        kernels: Kernels,
        threads: usize,
    ) -> Result<(DoublePirServer, Vec<u8>)> {
        let setup = DoublePirSetup::new(parameters.clone(), table, kernels, threads)?;
        let precomputed = setup.precompute(&|_| ())?;
        let kept = precomputed.kept.as_bytes();
        assert_eq!(kept.len() as u64, setup.kept_len());
        Ok((setup.finish(&kept)?, precomputed.hint.as_bytes().into_owned()))
    }

    fn client(
        parameters: &DoublePirParameters,
        hint: &[u8],
        kernels: Kernels,
    ) -> Result<DoublePirClient> {
        DoublePirClient::new(parameters.clone(), Arc::new(hint.to_vec()), kernels)
    }

    fn wide() -> (privet_core::TableShape, DoublePirClient) {
        let world = World::new(300, 2);
        (world.identity.shape, world.client)
    }
}

impl World {
    fn in_columns(records: u64, record_len: u64, per_column: u64) -> Self {
        Self::of(&(records, record_len, Some(per_column)))
    }

    /// The second matrix's columns, one after the other.
    fn first_hint(&self) -> Vec<u8> {
        let view = TableView::new(self.identity, &self.table).unwrap();
        let parameters = self.parameters().clone();
        let setup = DoublePirSetup::new(parameters, view, Kernels::detect(), 1).unwrap();
        setup.precompute(&|_| ()).unwrap().kept.as_bytes().into_owned()
    }
}

proptest! {
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
        // Unless the limit for columns needs more records in each column.
        let least = records.div_ceil(MAX_COLUMNS);
        prop_assert!(parameters.kept_bytes() <= (records * record_len / 16).max(1 << 24) || per_column == least);
        let failure = parameters.failure_bound_log2();
        let of_byte = failure - (record_len as f64).log2();
        prop_assert!(failure.is_finite() && of_byte <= LEVEL_FAILURE_LOG2 + 1.0, "2^{}", failure);
        for level in parameters.encryption() {
            prop_assert!(level.error().security_bits() >= LEAST_SECURITY_BITS);
        }
        // No layout within the rule has shorter messages: neither neighbours nor halves and
        // doubles.
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
fn both_forms_of_the_answer_return_the_record() {
    for (records, record_len, per_column) in
        [(9_001, 2, 4_100), (9_001, 2, 4_101), (4_501, 3, 4_501)]
    {
        let identity = identity(records, record_len);
        let parameters =
            DoublePirParameters::with_records_per_column(&identity, per_column).unwrap();
        assert_eq!(parameters.folds_first_product(), per_column > 4_100);
        assert!(parameters.first_words() <= parameters.rows());
        World::in_columns(records, record_len, per_column).check(&[
            0,
            4_099,
            4_100,
            records - 2,
            records - 1,
        ]);
    }
}

/// `vectors/doublepir.json`: any other implementation of DoublePIR must get the same hints, query,
/// answer and record.
#[test]
fn known_answers() {
    for case in Known::cases(include_str!("../../../../vectors/doublepir.json"), 1) {
        let world = World::in_columns(
            case.number("records"),
            case.number("record_len"),
            case.number("records_per_column"),
        );
        case.assert("first_hint_blake3", &world.first_hint());
        case.assert("hint_blake3", &world.hint);
        world.check_known(&case);
    }
}

#[test]
fn what_was_kept_has_one_length() {
    let world = World::new(50, 1);
    let view = TableView::new(world.identity, &world.table).unwrap();
    let setup =
        DoublePirSetup::new(world.parameters().clone(), view, Kernels::detect(), 1).unwrap();
    let refusal = setup.finish(&world.first_hint()[1..]).err().unwrap();
    assert_eq!(refusal.blame(), Blame::Corrupted);
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
    // The same limit holds for what a server announces.
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

/// The noise of the second level, word by word, measured from outside: the number that must be
/// added until the decrypted byte changes tells how far the word was from the edge.
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
    let world = World::in_columns(RECORDS, 1, RECORDS);
    let first_hint = world.first_hint();
    let words = |bytes: &[u8]| -> Vec<u32> {
        bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
    };
    let hint = words(&world.hint);
    let mut noises = Vec::new();
    for of in 0..20 {
        let mut rng = SecretRng::from_fixed_seed([of as u8; 32]);
        let (queries, pending) = world.client.query(&world.index(of * 40), &mut rng).unwrap();
        let answer = world.servers[0].answer(Role(0), &queries).remove(0);
        let (_, key) = pending.keys();
        let mut masks = vec![0; answer.hint_rows.len()];
        Kernels::detect().words_times_vector(&hint, key.secret(), &mut masks);
        let row = &first_hint[(of * 40) as usize * 4096..][..4096];
        for ((word, mask), byte) in answer.hint_rows.iter().zip(&masks).zip(row) {
            assert_eq!(key.decrypt(*word, *mask), *byte);
            noises.push(f64::from(noise(key, *word, *mask)));
        }
    }
    // The first hint's bytes are uniform: centred on 128 their mean square is (256² − 1)/12 + 1/4.
    let predicted = deviation.powi(2) * (65_535.0 / 12.0 + 0.25) * RECORDS as f64;
    let square = noises.iter().map(|x| x * x).sum::<f64>() / noises.len() as f64;
    assert!((square / predicted - 1.0).abs() < 0.06, "mean square {square}, predicted {predicted}");
    // With a margin of two deviations instead of hundreds, one in 22 would fail. The proof's bound
    // allows more, 2·exp(−2).
    let margin = 2.0 * predicted.sqrt();
    let share = noises.iter().filter(|x| x.abs() > margin).count() as f64 / noises.len() as f64;
    assert!((0.035..0.056).contains(&share), "{share} of the noise lies beyond two deviations");
}

/// Pearson's statistic of each of the four bytes of all words, over 255 degrees of freedom in units
/// of its standard deviation; the largest. Beyond 6 for uniform bytes less than once in 10^6 times.
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

/// What a server can test: the words of queries for one record, and their differences from one
/// query to the next; at each level; all together, and only at the wanted places.
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
    let world = World::in_columns(24, 1, 4);
    let parameters = world.parameters();
    let of = 14; // Column 3, record 2 of it.
    let honest = |seed: u8| {
        let mut rng = SecretRng::from_fixed_seed([seed; 32]);
        let query = |_| world.client.query(&world.index(of), &mut rng).unwrap();
        (0..QUERIES).map(query).map(|(mut queries, pending)| (queries.remove(0), pending)).collect()
    };
    let queries = |made: Vec<(DoublePirQuery, DoublePirPending)>| -> Vec<DoublePirQuery> {
        made.into_iter().map(|(query, _)| query).collect()
    };
    let honest_queries = queries(honest(1));
    assert!(suspicion(&honest_queries, 3, 2) < 6.0);

    // One level without its mask: it sends only error and unit vector.
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

    // A secret that is used twice: the same random numbers for every pair of queries.
    let reused = (0..QUERIES).map(|number| {
        let mut rng = SecretRng::from_fixed_seed([(number / 2 % 251) as u8; 32]);
        world.client.query(&world.index(of), &mut rng).unwrap().0.remove(0)
    });
    assert!(suspicion(&reused.collect::<Vec<_>>(), 3, 2) > 6.0, "a secret reused");
}

#[test]
fn no_half_of_a_query_is_sent_twice() {
    let world = World::new(300, 2);
    let mut sent = std::collections::HashSet::new();
    let mut rng = SecretRng::from_os().unwrap();
    for of in (0..300).flat_map(|of| [of, of]) {
        let (queries, _) = world.client.query(&world.index(of), &mut rng).unwrap();
        for level in [&queries[0].column, &queries[0].record] {
            assert!(sent.insert(level.clone()), "half a query for record {of} was sent before");
        }
    }
}
