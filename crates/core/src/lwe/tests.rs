//! The noise of real encryptions against theory, and failures at the predicted rate with a small
//! margin.

use super::*;

const ROWS: usize = 512;
const COLUMNS: usize = 1024;

fn kernels() -> Kernels {
    Kernels::detect()
}

/// An encryption of the unit vector whose 1 is at `column`.
fn unit_vector(
    matrix: &PublicMatrix,
    parameters: EncryptionParameters,
    column: u64,
    rng: &mut SecretRng,
) -> (Vec<u32>, DecryptionKey) {
    encrypt_zero_vector(kernels(), matrix, parameters, rng).into_unit_vector(column)
}

/// A byte matrix in natural order (column by column) whose entries are `entry(coin)` of uniform
/// coins.
fn table(entry: impl Fn(u8) -> u8) -> Vec<u8> {
    let mut bytes = vec![0; ROWS * COLUMNS];
    SecretRng::from_os().unwrap().fill(&mut bytes);
    bytes.iter_mut().for_each(|byte| *byte = entry(*byte));
    bytes
}

/// Encrypts a unit vector with errors of `width`, `stretch` times as large, multiplies, and returns
/// (noise, wrongly decrypted bytes).
fn noises(table: &[u8], column: usize, width: ErrorWidth, stretch: u32) -> (Vec<f64>, usize) {
    let columns = table.len() / ROWS;
    let matrix = PublicMatrix::new(&PublicSeed::derive("privet test matrix", b"noise"));
    let mut rng = SecretRng::from_os().unwrap();
    let mut secret = Zeroizing::new(vec![0; SECRET_DIMENSION]);
    rng.fill_words(&mut secret);
    let mut errors = vec![0; columns];
    sample_errors(kernels(), width, &mut rng, &mut errors);
    errors.iter_mut().for_each(|error| *error = error.wrapping_mul(stretch));
    let (query, key) =
        ZeroVector::with(kernels(), &matrix, secret, &errors).into_unit_vector(column as u64);
    noise_of(table, column, &matrix, &query, &key)
}

fn noise_of(
    table: &[u8],
    column: usize,
    matrix: &PublicMatrix,
    query: &[u32],
    key: &DecryptionKey,
) -> (Vec<f64>, usize) {
    let rows = table.len() / query.len();
    let tiled = TiledBytes::from_columns(table, rows, 1).unwrap();
    let mut answer = vec![0; rows];
    kernels().multiply(&tiled, &[query], &mut [&mut answer], 1);
    // D·(A·s) without a hint: the mask alone, multiplied.
    let mut mask = vec![0; query.len()];
    matrix.times_secret(kernels(), key.secret(), &mut mask);
    let mut masked = vec![0; rows];
    kernels().multiply(&tiled, &[&mask], &mut [&mut masked], 1);

    let wanted = &table[column * rows..][..rows];
    let words = || answer.iter().zip(&masked).zip(wanted);
    let noise = words().map(|((a, m), byte)| f64::from(key.noise(*a, *m, *byte))).collect();
    let wrong = words().filter(|((a, m), byte)| key.decrypt(**a, **m) != **byte).count();
    (noise, wrong)
}

/// Mean and mean square of the noise over several encryptions, and the share of wrong bytes.
fn measure(
    entry: impl Fn(u8) -> u8,
    width: ErrorWidth,
    stretch: u32,
    runs: usize,
) -> (f64, f64, f64) {
    let (mut sum, mut square, mut wrong) = (0.0, 0.0, 0);
    for run in 0..runs {
        let table = table(&entry);
        let (noise, bad) = noises(&table, (run * 97) % COLUMNS, width, stretch);
        sum += noise.iter().sum::<f64>();
        square += noise.iter().map(|x| x * x).sum::<f64>();
        wrong += bad;
    }
    let count = (runs * ROWS) as f64;
    (sum / count, square / count, wrong as f64 / count)
}

/// Variance of `D − 128` for a uniform byte: (256² − 1)/12 + 1/4, as its mean is −1/2.
const UNIFORM_ENTRY: f64 = 65_535.0 / 12.0 + 0.25;

/// Bytes that are as far from 128 as possible.
fn worst(coin: u8) -> u8 {
    if coin & 1 == 1 { 255 } else { 0 }
}

/// The mean square of `D − 128` for them.
const WORST_ENTRY: f64 = (128.0 * 128.0 + 127.0 * 127.0) / 2.0;

#[test]
fn noise_of_a_uniform_table_has_the_predicted_size() {
    for width in ERROR_WIDTHS {
        let (mean, square, wrong) = measure(|coin| coin, width, 1, 40);
        let predicted = width.deviation().powi(2) * UNIFORM_ENTRY * COLUMNS as f64;
        // 40 independent error vectors: their lengths vary by √(2/(40·1024)) = 0.7 %, and the rows
        // add less. The test allows ten times that.
        let share = square / predicted;
        assert!((share - 1.0).abs() < 0.07, "mean square {square}, predicted {predicted}");
        assert!(mean.abs() < 6.0 * (predicted / 40.0).sqrt(), "mean {mean}");
        assert_eq!(wrong, 0.0);
    }
}

#[test]
fn noise_of_the_worst_table_stays_within_the_bound_that_the_proof_uses() {
    for width in ERROR_WIDTHS {
        let (_, square, wrong) = measure(worst, width, 1, 20);
        assert!(square < 1.1 * (128.0 * width.deviation()).powi(2) * COLUMNS as f64);
        assert_eq!(wrong, 0.0);
    }
}

#[test]
fn noise_at_the_edge_of_each_width_leaves_the_margin() {
    const RECORD: usize = 32;
    for row in security()["columns"].as_array().unwrap().iter().filter(|row| edge(row)) {
        let columns = row["columns"].as_u64().unwrap();
        let parameters = EncryptionParameters::new(columns, 1).unwrap();
        let mut bytes = vec![0; RECORD * columns as usize];
        SecretRng::from_os().unwrap().fill(&mut bytes);
        bytes.iter_mut().for_each(|byte| *byte = worst(*byte));
        let matrix = PublicMatrix::new(&PublicSeed::derive("privet test matrix", b"edge"));
        let (mut square, runs) = (0.0, 3);
        for run in 0..runs {
            let mut rng = SecretRng::from_os().unwrap();
            let column = (columns - 1) / (run + 1);
            let (query, key) = unit_vector(&matrix, parameters, column, &mut rng);
            let (noise, wrong) = noise_of(&bytes, column as usize, &matrix, &query, &key);
            assert_eq!(wrong, 0, "{columns} columns");
            square += noise.iter().map(|x| x * x).sum::<f64>();
        }
        let spread = (square / (runs as usize * RECORD) as f64).sqrt();
        let predicted = parameters.error().deviation() * (WORST_ENTRY * columns as f64).sqrt();
        // 96 values whose spread is known to 7 %.
        assert!((0.6..1.4).contains(&(spread / predicted)), "{spread}, predicted {predicted}");
        // 2^-65 by the bound is a margin of 9.5 deviations.
        let margin = f64::from(1 << (DELTA_BITS - 1)) / predicted;
        assert!(margin > 9.5, "{columns} columns leave {margin} deviations");
    }
}

/// Whether a row of the published table is the widest matrix for some width, or for all.
fn edge(row: &serde_json::Value) -> bool {
    let columns = row["columns"].as_u64().unwrap();
    let edges = [38_672, 65_742, 131_485, MAX_COLUMNS];
    row["decryptions"] == 1 && edges.contains(&columns)
}

#[test]
fn without_the_centring_correction_the_noise_would_be_twice_as_large() {
    // The uncorrected noise is Σ D·e: mean square of a uniform byte is (255·511)/6.
    let raw = 255.0 * 511.0 / 6.0;
    assert!(raw / UNIFORM_ENTRY > 3.9, "which is why `decrypt` subtracts 128·Σe");
}

#[test]
fn failures_of_stretched_errors_are_as_predicted() {
    // Errors so large that on the worst table, a margin of about 2.7 and 1.9 deviations is left.
    for width in ERROR_WIDTHS {
        for (deviations, runs) in [(2.7, 60), (1.9, 20)] {
            let spread =
                |stretch: f64| width.deviation() * stretch * (WORST_ENTRY * COLUMNS as f64).sqrt();
            let margin = f64::from(1 << (DELTA_BITS - 1));
            let stretch = (margin / deviations / spread(1.0)).round();
            let (_, _, rate) = measure(worst, width, stretch as u32, runs);
            let predicted = two_sided_tail(margin / spread(stretch));
            let bound = failure_bound_log2(COLUMNS as u64, width.deviation() * stretch).exp2();
            assert!(rate <= bound, "stretch {stretch}: rate {rate}, bound {bound}");
            assert!(
                rate > predicted * 0.7 && rate < predicted * 1.4,
                "stretch {stretch}: rate {rate}, predicted {predicted}"
            );
        }
    }
}

/// P(|N(0,1)| ≥ x), by summing the density.
fn two_sided_tail(x: f64) -> f64 {
    let step = 1e-3;
    let density = |t: f64| (-t * t / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    2.0 * (0..12_000).map(|i| density(x + (f64::from(i) + 0.5) * step) * step).sum::<f64>()
}

/// `vectors/lwe_security.json`, as `vectors/estimate_lwe.py` wrote it.
fn security() -> serde_json::Value {
    serde_json::from_str(include_str!("../../../../vectors/lwe_security.json")).unwrap()
}

#[test]
fn widths_and_their_security_are_those_of_the_estimate() {
    let security = security();
    assert_eq!(security["dimension"], SECRET_DIMENSION);
    assert_eq!(security["modulus_bits"], 32);
    assert_eq!(security["base_deviation"], 8.45);
    assert_eq!(security["least_security_bits"], LEAST_SECURITY_BITS);
    assert_eq!(security["level_failure_log2"], LEVEL_FAILURE_LOG2);
    assert_eq!(security["max_columns"], MAX_COLUMNS);
    // The script's result for Kyber512 equals the one that the lattice estimator publishes.
    let kyber = &security["kyber512"];
    assert_eq!((&kyber["usvp"]["block"], &kyber["usvp"]["dimension"]), (&406.into(), &998.into()));
    assert!((kyber["usvp"]["bits"].as_f64().unwrap() - 143.8).abs() < 0.05);
    assert!((kyber["bdd"]["bits"].as_f64().unwrap() - 140.3).abs() < 0.1);

    let errors = security["errors"].as_array().unwrap();
    assert_eq!(errors.len(), ERROR_WIDTHS.len());
    for (error, width) in errors.iter().zip(ERROR_WIDTHS) {
        let number = |name: &str| error[name].as_f64().unwrap();
        assert_eq!(error["weights"], serde_json::json!(width.weights()));
        assert!((number("deviation") - width.deviation()).abs() < 1e-5);
        assert_eq!(number("security_bits"), width.security_bits());
        for attack in ["usvp", "bdd"] {
            assert!(error[attack]["bits"].as_f64().unwrap() >= width.security_bits(), "{attack}");
        }
    }
    assert!(ERROR_WIDTHS[0].security_bits() >= 145.0, "what up to 2^15 columns get");
    assert!(ERROR_WIDTHS[3].security_bits() >= LEAST_SECURITY_BITS);
    assert!(ERROR_WIDTHS[4].security_bits() < LEAST_SECURITY_BITS, "something to refuse");
}

#[test]
fn columns_choose_the_published_error_or_are_refused() {
    for row in security()["columns"].as_array().unwrap() {
        let [columns, decryptions] = ["columns", "decryptions"].map(|n| row[n].as_u64().unwrap());
        let chosen = EncryptionParameters::new(columns, decryptions);
        if row["refused"] == true {
            assert!(chosen.is_err(), "{columns} columns");
            continue;
        }
        let chosen = chosen.unwrap();
        assert_eq!(row["weights"], serde_json::json!(chosen.error().weights()), "{columns}");
        assert!((row["failure_log2"].as_f64().unwrap() - chosen.failure_log2()).abs() < 0.01);
    }
    // Between the rows: takes the widest error that fits; the next wider one does not.
    for columns in (1..=MAX_COLUMNS).step_by(509).chain([38_672, 38_673, 65_742, 65_743]) {
        let chosen = EncryptionParameters::new(columns, 1).unwrap();
        assert!(chosen.error().security_bits() >= LEAST_SECURITY_BITS);
        assert!(failure_bound_log2(columns, chosen.error().deviation()) <= LEVEL_FAILURE_LOG2);
        let place = ERROR_WIDTHS.iter().position(|width| *width == chosen.error()).unwrap();
        if let Some(wider) = place.checked_sub(1).map(|wider| ERROR_WIDTHS[wider]) {
            assert!(failure_bound_log2(columns, wider.deviation()) > LEVEL_FAILURE_LOG2);
        }
    }
}

#[test]
fn parameters_below_128_bits_cannot_be_made() {
    let refusal = |columns, decryptions, error| {
        let error = EncryptionParameters::with_error(columns, decryptions, error).unwrap_err();
        assert_eq!(error.blame(), crate::Blame::ApiMisuse);
        error.to_string()
    };
    // Too narrow to be safe, however few the columns.
    for columns in [1, 1_000, MAX_COLUMNS] {
        let said = refusal(columns, 1, ERROR_WIDTHS[4]);
        assert!(said.contains("8.45") && said.contains("125 bits"), "{said}");
    }
    // Too wide to decrypt, because of one column too many or of too many bytes that must be right.
    let said = refusal(38_673, 1, ERROR_WIDTHS[0]);
    assert!(said.contains("34.84") && said.contains("38673 columns"), "{said}");
    assert!(EncryptionParameters::with_error(38_672, 1, ERROR_WIDTHS[0]).is_ok());
    refusal(38_672, 4_100, ERROR_WIDTHS[0]);
    // Too many columns for any.
    for columns in [0, MAX_COLUMNS + 1, u64::MAX] {
        let said = refusal(columns, 1, ERROR_WIDTHS[3]);
        assert!(said.contains("1 to 262144") && said.contains("more records into"), "{said}");
        assert!(EncryptionParameters::new(columns, 1).is_err());
    }
    // Too many bytes for any safe error.
    assert!(EncryptionParameters::new(MAX_COLUMNS, 1 << 20).is_err());
}

#[test]
fn two_encryptions_of_the_same_column_share_nothing() {
    let matrix = PublicMatrix::new(&PublicSeed::derive("privet test matrix", b"fresh"));
    let mut rng = SecretRng::from_os().unwrap();
    let parameters = EncryptionParameters::new(4096, 1).unwrap();
    let (first, _) = unit_vector(&matrix, parameters, 7, &mut rng);
    let (second, _) = unit_vector(&matrix, parameters, 7, &mut rng);
    let equal = first.iter().zip(&second).filter(|(a, b)| a == b).count();
    assert!(equal < 3, "{equal} of 4096 words agree; 2^-20 of a word was expected");
}

/// χ² of each of the four byte positions of `words` against the uniform distribution: 255 degrees
/// of freedom, so a mean of 255 and a deviation of 22.6.
fn byte_chi_squares(words: &[u32]) -> [f64; 4] {
    std::array::from_fn(|position| {
        let mut counts = [0f64; 256];
        words.iter().for_each(|word| counts[usize::from(word.to_le_bytes()[position])] += 1.0);
        let expected = words.len() as f64 / 256.0;
        counts.iter().map(|count| (count - expected).powi(2) / expected).sum()
    })
}

/// Whether words look uniform to a server: every χ² is within about six deviations (255 + 6·22.6,
/// with a little room for the skew).
fn looks_uniform(words: &[u32]) -> bool {
    byte_chi_squares(words).iter().all(|chi_square| (130.0..400.0).contains(chi_square))
}

/// The data that a server could compare: each query alone, and the difference of two queries, word
/// by word.
fn views(queries: &[Vec<u32>]) -> (Vec<u32>, Vec<u32>) {
    let difference = |pair: &[Vec<u32>]| -> Vec<u32> {
        pair[0].iter().zip(&pair[1]).map(|(a, b)| a.wrapping_sub(*b)).collect()
    };
    (queries.concat(), queries.windows(2).flat_map(difference).collect())
}

/// Sixteen queries for columns that `column` names, their secrets drawn by `draw`.
fn queries(column: impl Fn(usize) -> u64, mut draw: impl FnMut(&mut [u32])) -> Vec<Vec<u32>> {
    let matrix = PublicMatrix::new(&PublicSeed::derive("privet test matrix", b"views"));
    let mut rng = SecretRng::from_os().unwrap();
    (0..16)
        .map(|number| {
            let mut secret = Zeroizing::new(vec![0; SECRET_DIMENSION]);
            draw(&mut secret);
            let mut errors = vec![0; 8192];
            sample_errors(kernels(), ERROR_WIDTHS[0], &mut rng, &mut errors);
            ZeroVector::with(kernels(), &matrix, secret, &errors).into_unit_vector(column(number)).0
        })
        .collect()
}

#[test]
fn a_server_sees_uniform_words_whatever_is_asked() {
    let mut rng = SecretRng::from_os().unwrap();
    type Sequence = (&'static str, fn(usize) -> u64);
    let sequences: [Sequence; 3] = [
        ("one column for ever", |_| 5),
        ("ascending", |number| number as u64),
        ("first and last", |number| (number as u64 % 2) * 8191),
    ];
    for (name, column) in sequences {
        let (alone, differences) = views(&queries(column, |secret| rng.fill_words(secret)));
        assert!(looks_uniform(&alone), "{name}: {:?}", byte_chi_squares(&alone));
        assert!(
            looks_uniform(&differences),
            "{name}, differences: {:?}",
            byte_chi_squares(&differences)
        );
    }
}

#[test]
fn planted_leaks_are_caught() {
    let mut rng = SecretRng::from_os().unwrap();
    let (alone, _) = views(&queries(|_| 5, |secret| secret.fill(0)));
    assert!(!looks_uniform(&alone), "a query without its mask passed for uniform");

    let mut once = vec![0; SECRET_DIMENSION];
    rng.fill_words(&mut once);
    let reused = queries(|number| number as u64, |secret| secret.copy_from_slice(&once));
    let (_, differences) = views(&reused);
    assert!(looks_uniform(&reused[0]), "one query of a reused secret looks uniform alone");
    assert!(!looks_uniform(&differences), "a secret used for two queries passed");

    // A secret of which only the low bits are drawn: every word is still masked, so the words look
    // uniform; the multiples of 2^24 give it away.
    let (alone, _) = views(&queries(
        |_| 5,
        |secret| secret.iter_mut().for_each(|word| *word = rng.next_u32() << 24),
    ));
    assert!(
        !looks_uniform(&alone),
        "a secret of 8 bits in the top byte leaves the low bytes to the error"
    );
}
