//! The noise of real encryptions against theory, and failures at the predicted rate once the margin is made small.

use super::*;

const ROWS: usize = 512;
const COLUMNS: usize = 1024;

fn kernels() -> Kernels {
    Kernels::detect()
}

/// A byte matrix in natural order (column by column) whose entries are `entry(coin)` of uniform coins.
fn table(entry: impl Fn(u8) -> u8) -> Vec<u8> {
    let mut bytes = vec![0; ROWS * COLUMNS];
    SecretRng::from_os().unwrap().fill(&mut bytes);
    bytes.iter_mut().for_each(|byte| *byte = entry(*byte));
    bytes
}

/// Encrypts a unit vector with errors `stretch` times as large as prescribed, multiplies, and returns (noise, wrongly decrypted bytes).
fn noises(table: &[u8], column: usize, stretch: u32) -> (Vec<f64>, usize) {
    let matrix = PublicMatrix::new(&PublicSeed::derive("privet test matrix", b"noise"));
    let mut rng = SecretRng::from_os().unwrap();
    let mut secret = Zeroizing::new(vec![0; SECRET_DIMENSION]);
    rng.fill_words(&mut secret);
    let mut errors = vec![0; COLUMNS];
    sample_errors(&mut rng, &mut errors);
    errors.iter_mut().for_each(|error| *error = error.wrapping_mul(stretch));
    let (query, key) = encrypt_with(kernels(), &matrix, column as u64, secret, &errors);

    let tiled = TiledBytes::from_columns(table, ROWS, 1).unwrap();
    let mut answer = vec![0; ROWS];
    kernels().multiply(&tiled, &[&query], &mut [&mut answer], 1);
    // D·(A·s) without a hint: the mask alone, multiplied.
    let mut mask = vec![0; COLUMNS];
    matrix.times_secret(kernels(), key.secret(), &mut mask);
    let mut masked = vec![0; ROWS];
    kernels().multiply(&tiled, &[&mask], &mut [&mut masked], 1);

    let wanted = &table[column * ROWS..][..ROWS];
    let words = || answer.iter().zip(&masked).zip(wanted);
    let noise = words().map(|((a, m), byte)| f64::from(key.noise(*a, *m, *byte))).collect();
    let wrong = words().filter(|((a, m), byte)| key.decrypt(**a, **m) != **byte).count();
    (noise, wrong)
}

/// Mean square of the noise over several encryptions, and the wrong bytes among all.
fn measure(entry: impl Fn(u8) -> u8, stretch: u32, runs: usize) -> (f64, f64, f64) {
    let (mut sum, mut square, mut wrong) = (0.0, 0.0, 0);
    for run in 0..runs {
        let table = table(&entry);
        let (noise, bad) = noises(&table, (run * 97) % COLUMNS, stretch);
        sum += noise.iter().sum::<f64>();
        square += noise.iter().map(|x| x * x).sum::<f64>();
        wrong += bad;
    }
    let count = (runs * ROWS) as f64;
    (sum / count, square / count, wrong as f64 / count)
}

/// Variance of `D − 128` for a uniform byte: (256² − 1)/12 + 1/4, as its mean is −1/2.
const UNIFORM_ENTRY: f64 = 65_535.0 / 12.0 + 0.25;

#[test]
fn noise_of_a_uniform_table_has_the_predicted_size() {
    let (mean, square, wrong) = measure(|coin| coin, 1, 40);
    let predicted = ERROR_DEVIATION.powi(2) * UNIFORM_ENTRY * COLUMNS as f64;
    // 40 independent error vectors: their own lengths spread by √(2/(40·1024)) = 0.7 %, the rows add less. Ten times that is allowed.
    assert!((square / predicted - 1.0).abs() < 0.07, "mean square {square}, predicted {predicted}");
    assert!(mean.abs() < 6.0 * (predicted / 40.0).sqrt(), "mean {mean}");
    assert_eq!(wrong, 0.0);
}

#[test]
fn noise_of_the_worst_table_stays_within_the_bound_that_the_proof_uses() {
    // Entries 0 and 255 are the farthest from 128.
    let (_, square, wrong) = measure(|coin| if coin & 1 == 1 { 255 } else { 0 }, 1, 20);
    assert!(square < 1.1 * (128.0 * ERROR_DEVIATION).powi(2) * COLUMNS as f64);
    assert_eq!(wrong, 0.0);
}

#[test]
fn without_the_centring_correction_the_noise_would_be_twice_as_large() {
    // The uncorrected noise is Σ D·e: mean square of a uniform byte is (255·511)/6.
    let raw = 255.0 * 511.0 / 6.0;
    assert!(raw / UNIFORM_ENTRY > 3.9, "which is why `decrypt` subtracts 128·Σe");
}

#[test]
fn failures_appear_at_the_predicted_rate_when_the_errors_are_stretched() {
    // Errors 120 and 170 times too large, on a table of entries 0 and 255 (mean square of D−128: 16 256.5), leave a margin of 2.7 and 1.9 deviations.
    for (stretch, runs) in [(120u32, 60), (170, 20)] {
        let deviation = ERROR_DEVIATION * f64::from(stretch);
        let (_, _, rate) = measure(|coin| if coin & 1 == 1 { 255 } else { 0 }, stretch, runs);
        let spread = deviation * (16_256.5 * COLUMNS as f64).sqrt();
        let predicted = two_sided_tail(f64::from(1 << (DELTA_BITS - 1)) / spread);
        let bound = failure_bound_log2_at(COLUMNS as u64, deviation, 128.0).exp2();
        assert!(rate <= bound, "stretch {stretch}: rate {rate}, bound {bound}");
        assert!(
            rate > predicted * 0.7 && rate < predicted * 1.4,
            "stretch {stretch}: rate {rate}, predicted {predicted}"
        );
    }
}

/// P(|N(0,1)| ≥ x), by summing the density.
fn two_sided_tail(x: f64) -> f64 {
    let step = 1e-3;
    let density = |t: f64| (-t * t / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    2.0 * (0..12_000).map(|i| density(x + (f64::from(i) + 0.5) * step) * step).sum::<f64>()
}

#[test]
fn the_bound_covers_every_allowed_width_and_refuses_the_next() {
    // 16 MiB records at the widest matrix still fail with probability below 2^-40.
    assert!(failure_bound_log2(MAX_COLUMNS) < -70.0);
    assert!(failure_bound_log2(MAX_COLUMNS) + 24.0 < -40.0);
    assert!(check_columns(MAX_COLUMNS).is_ok());
    let refusal = check_columns(MAX_COLUMNS + 1).unwrap_err().to_string();
    assert!(refusal.contains("1048577") && refusal.contains("1048576"), "{refusal}");
    assert!(check_columns(0).is_err());
}

#[test]
fn two_encryptions_of_the_same_column_share_nothing() {
    let matrix = PublicMatrix::new(&PublicSeed::derive("privet test matrix", b"fresh"));
    let mut rng = SecretRng::from_os().unwrap();
    let (first, _) = encrypt_unit_vector(kernels(), &matrix, 4096, 7, &mut rng);
    let (second, _) = encrypt_unit_vector(kernels(), &matrix, 4096, 7, &mut rng);
    let equal = first.iter().zip(&second).filter(|(a, b)| a == b).count();
    assert!(equal < 3, "{equal} of 4096 words agree; 2^-20 of a word was expected");
}

/// χ² of each of the four byte positions of `words` against the uniform distribution: 255 degrees of freedom, so a mean of 255 and a deviation of 22.6.
fn byte_chi_squares(words: &[u32]) -> [f64; 4] {
    std::array::from_fn(|position| {
        let mut counts = [0f64; 256];
        words.iter().for_each(|word| counts[usize::from(word.to_le_bytes()[position])] += 1.0);
        let expected = words.len() as f64 / 256.0;
        counts.iter().map(|count| (count - expected).powi(2) / expected).sum()
    })
}

/// Whether words look uniform to a server: every χ² within about six deviations (255 + 6·22.6, with a little room for the skew).
fn looks_uniform(words: &[u32]) -> bool {
    byte_chi_squares(words).iter().all(|chi_square| (130.0..400.0).contains(chi_square))
}

/// What a server could compare: each query alone, and the difference of two, word by word.
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
            sample_errors(&mut rng, &mut errors);
            encrypt_with(kernels(), &matrix, column(number), secret, &errors).0
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

    // A secret of which only the low bits are drawn: every word is still masked, so the words look uniform; the multiples of 2^24 give it away.
    let (alone, _) = views(&queries(
        |_| 5,
        |secret| secret.iter_mut().for_each(|word| *word = rng.next_u32() << 24),
    ));
    assert!(
        !looks_uniform(&alone),
        "a secret of 8 bits in the top byte leaves the low bytes to the error"
    );
}
