//! The noise of real packings against its formulas, term by term, and failures at the predicted
//! rate with a small margin.

use super::*;
use theory::Reading;

const QUERY_BITS: u32 = 24;

/// What is left of a fraction of 1 in `bits` bits.
fn fraction(number: u64, bits: u32) -> f64 {
    centred(number, bits) as f64 / 2f64.powi(bits as i32)
}

/// The sum of squares, the sum of fourth powers, and how many.
#[derive(Clone, Copy, Default)]
struct Moments {
    square: f64,
    fourth: f64,
    count: f64,
}

impl Moments {
    fn add(&mut self, number: f64) {
        self.square += number.powi(2);
        self.fourth += number.powi(4);
        self.count += 1.0;
    }

    fn variance(self) -> f64 {
        self.square / self.count
    }

    fn kurtosis(self) -> f64 {
        self.fourth / self.count / self.variance().powi(2)
    }
}

/// The noise of one query, row by row, in three parts: of the pass, of the packing (with both
/// keys), and of the rounded mask.
fn parts_of_noise(world: &World, column: usize, rng: &mut SecretRng) -> [Vec<f64>; 3] {
    let (form, asked) = (world.form, world.ask(column, QUERY_BITS, rng));
    let degree = form.degree;
    let secret: Vec<i32> = asked.key.secret().to_vec();
    let mut masks = super::super::encryption::tests_masks(kernels(), &world.factors, &secret);
    // The exact words of the row's masks: D·(a·s).
    let exact: Vec<u64> = masks.iter().flatten().copied().collect();
    let mut pass = Vec::new();
    let sums = world.table_sums(&asked);
    let mut clean = vec![0u64; world.rows];
    for (number, mask) in exact.iter().take(world.columns).enumerate() {
        for (clean, byte) in clean.iter_mut().zip(world.column(number)) {
            *clean = clean.wrapping_add(mask.wrapping_mul(u64::from(*byte)));
        }
    }
    let correction = (asked.key.error_sum(0) * 128) as u64;
    for (row, (sum, clean)) in sums.iter().zip(&clean).enumerate() {
        let wanted = u64::from(world.column(column)[row]) << DELTA_BITS;
        let noise = (u64::from(*sum) << (MODULUS_BITS - 32))
            .wrapping_sub(*clean)
            .wrapping_sub(correction)
            .wrapping_sub(wanted);
        pass.push(fraction(noise, MODULUS_BITS));
    }
    // All noise before the answer's rounding, with the mask as it is sent.
    let all = {
        let (_, sums) = world.pass(&asked);
        let answer = exact_answer(world, &asked, &sums);
        let mut all = Vec::new();
        for (block, (sums, mask)) in
            answer.chunks(degree).zip(world.blocks.iter().map(|block| &block.mask)).enumerate()
        {
            let mask: Vec<i64> =
                mask.iter().map(|word| centred(u64::from(*word), form.mask_bits)).collect();
            for (row, sum) in sums.iter().enumerate() {
                let removed = product_at(&mask, &secret, row) as u64;
                let wanted = world.column(column)[block * degree + row];
                let noise = (u64::from(*sum) << 32)
                    .wrapping_sub(removed << (64 - form.mask_bits))
                    .wrapping_sub(correction << (64 - MODULUS_BITS))
                    .wrapping_sub(u64::from(wanted) << 56);
                all.push(fraction(noise, 64));
            }
        }
        all
    };
    masks.clear();
    let packing = all.iter().zip(&pass).map(|(all, pass)| all - pass).collect();
    [pass, packing, all]
}

/// The sums of a pass with the offset and the fold taken off, before they are rounded.
fn exact_answer(world: &World, asked: &Asked, sums: &[u32]) -> Vec<u32> {
    let form = world.form;
    let total = asked.keys.packing.iter().fold(0u64, |total, word| total.wrapping_add(*word));
    let offset = (total << (63 - form.key_bits)) as u32;
    let key: Vec<i64> =
        asked.keys.fold.iter().map(|word| centred(*word, form.fold_key_bits)).collect();
    let blocks = sums.chunks(form.degree).zip(&world.blocks);
    blocks
        .flat_map(|(sums, block)| {
            let digits: Vec<i32> = block.fold.iter().map(|digit| *digit as i32).collect();
            let key = &key;
            sums.iter().enumerate().map(move |(row, sum)| {
                let folded = product_at(key, &digits, row) as u64 & low_bits(form.fold_key_bits);
                let folded = (folded >> (form.fold_key_bits - 32)) as u32;
                sum.wrapping_sub(offset).wrapping_sub(folded)
            })
        })
        .collect()
}

/// One coefficient of a product modulo `X^d + 1`.
fn product_at(a: &[i64], b: &[i32], place: usize) -> i64 {
    let degree = a.len();
    let terms = b.iter().enumerate().map(|(u, b)| {
        let other = a[(place + degree - u) % degree];
        let signed = if u <= place { other } else { other.wrapping_neg() };
        signed.wrapping_mul(i64::from(*b))
    });
    terms.fold(0, i64::wrapping_add)
}

/// Tables whose noise could differ.
fn tables() -> Vec<(&'static str, World)> {
    let (rows, columns) = (DEGREE + 7, 150);
    let of = |entry: &dyn Fn(usize) -> u8| {
        let table = (0..rows * columns).map(entry).collect();
        World::new(small(), rows, columns, table)
    };
    vec![
        ("random", World::random(small(), rows, columns)),
        ("zeros", of(&|_| 0)),
        ("255", of(&|_| 255)),
        ("equal rows", of(&|place| (place / rows * 91 % 256) as u8)),
        ("one byte in each block", of(&|place| u8::from(place % DEGREE == 9 && place < rows))),
    ]
}

#[test]
fn noise_has_the_size_of_its_formulas_on_any_table() {
    const QUERIES: usize = 40;
    for (what, world) in tables() {
        let mut rng = SecretRng::from_fixed_seed([3; 32]);
        let (mut pass, mut packing) = (Moments::default(), Moments::default());
        for query in 0..QUERIES {
            let [of_pass, of_packing, _] =
                parts_of_noise(&world, query * 31 % world.columns, &mut rng);
            of_pass.iter().for_each(|noise| pass.add(*noise));
            of_packing.iter().for_each(|noise| packing.add(*noise));
        }
        let centred_square = world.table.iter().map(|byte| (f64::from(*byte) - 128.0).powi(2));
        let mean_square = centred_square.sum::<f64>() / world.table.len() as f64;
        let predicted = theory::pass_variance(world.columns as u64, QUERY_BITS, mean_square);
        // Rows of one query share its errors. So there are about as many independent values as
        // columns and queries (6000, known to 4 %), on tables of equal rows only as many as queries
        // (known to 45 %).
        let alone = ["zeros", "255", "equal rows", "one byte in each block"].contains(&what);
        let tolerance = if alone { 0.9 } else { 0.12 };
        let share = pass.variance() / predicted;
        assert!((share - 1.0).abs() < tolerance, "{what}: the pass has {share} of its variance");
        let norms = world.blocks.iter().map(|block| block.norms);
        let largest = norms.fold([0f64; 2], |[matrix, fold], norms| {
            [matrix.max(norms.matrix), fold.max(norms.fold)]
        });
        let of_norms: f64 = theory::packing_variances(world.form, largest).iter().sum();
        let share = packing.variance() / of_norms;
        assert!(share < 1.1, "{what}: packing has {share} of the variance that is counted on");
        if what == "random" {
            let expected = theory::expected_norms(world.form);
            let predicted: f64 = theory::packing_variances(world.form, expected).iter().sum();
            let share = packing.variance() / predicted;
            assert!((share - 1.0).abs() < 0.15, "packing has {share} of its variance");
            let kurtosis = packing.kurtosis();
            assert!((2.7..3.3).contains(&kurtosis), "kurtosis {kurtosis}");
        }
    }
}

/// Each term alone: another precision makes it the only one that counts.
#[test]
fn each_term_of_the_packing_noise_is_as_predicted() {
    for (what, form, term) in [
        ("packing key", small().with_precisions([33, 35], 22, 10), 0),
        ("rounded mask", small().with_precisions([44, 35], 12, 10), 4),
    ] {
        let world = World::random(form, 8 * DEGREE, 40);
        let mut rng = SecretRng::from_fixed_seed([4; 32]);
        let mut found = Moments::default();
        for query in 0..30 {
            let [_, packing, _] = parts_of_noise(&world, query % 40, &mut rng);
            packing.iter().for_each(|noise| found.add(*noise));
        }
        let mut norms = theory::expected_norms(form);
        norms[0] = mean_norm(&world);
        let variances = theory::packing_variances(form, norms);
        let others: f64 = variances.iter().sum::<f64>() - variances[term];
        assert!(others < 0.05 * variances[term], "{what} is what counts");
        let share = found.variance() / (variances[term] + others);
        // 512 rounding errors of masks are known to 4 %.
        assert!((share - 1.0).abs() < 0.15, "{what}: {share} of its variance");
    }
}

/// ‖M_k‖² of each row.
fn row_norms(world: &World) -> Vec<f64> {
    let of_block = |block: &Block| {
        let rows = block.matrix.len() / world.form.degree;
        let squares = |row: usize| {
            let entries = block.matrix[row..].iter().step_by(rows);
            let entries = entries.map(|word| ((1i64 << 31) - i64::from(*word)) as f64);
            entries.map(|entry| entry * entry).sum()
        };
        (0..rows).map(squares).collect::<Vec<f64>>()
    };
    world.blocks.iter().flat_map(of_block).collect()
}

/// The mean ‖M_k‖² of the rows.
fn mean_norm(world: &World) -> f64 {
    row_norms(world).iter().sum::<f64>() / world.rows as f64
}

#[test]
fn failures_with_a_small_margin_are_as_predicted() {
    for (form, query_bits) in [
        (small().with_precisions([32, 35], 17, 10), QUERY_BITS),
        (small().with_precisions([44, 35], 11, 10), QUERY_BITS),
        (small(), 17),
    ] {
        let world = World::random(form, DEGREE, 64);
        let mut rng = SecretRng::from_fixed_seed([6; 32]);
        let (mut wrong, mut count) = (0u32, 0u32);
        let mut by_row = vec![0u64; DEGREE];
        for query in 0..600 {
            let column = query * 7 % 64;
            let asked = world.ask(column, query_bits, &mut rng);
            let bytes = world.decrypt(&asked.key, &world.answer(&asked));
            for (row, (byte, right)) in bytes.iter().zip(world.column(column)).enumerate() {
                count += 1;
                wrong += u32::from(byte != right);
                by_row[row] += u64::from(byte != right);
            }
        }
        assert_as_predicted(&world, query_bits, wrong, count);
        // No row fails much more often than another.
        let mean = f64::from(wrong) / DEGREE as f64;
        let most = *by_row.iter().max().unwrap() as f64;
        assert!(most < mean + 12.0 * mean.sqrt(), "one row fails {most} times, rows {mean}");
    }
}

/// Of `count` bytes, as many of each row, `wrong` were wrong.
fn assert_as_predicted(world: &World, query_bits: u32, wrong: u32, count: u32) {
    let form = world.form;
    let mean_square = world.table.iter().map(|byte| (f64::from(*byte) - 128.0).powi(2));
    let mean_square = mean_square.sum::<f64>() / world.table.len() as f64;
    let of_pass = theory::pass_variance(world.columns as u64, query_bits, mean_square);
    let [_, of_fold] = theory::expected_norms(form);
    let rates = row_norms(world).into_iter().map(|norm| {
        let variances = theory::packing_variances(form, [norm, of_fold]);
        let deviation = (variances.iter().sum::<f64>() + of_pass).sqrt();
        rate(2f64.powi(-9), deviation, form.answer_bits)
    });
    let predicted = rates.sum::<f64>() / world.rows as f64 * f64::from(count);
    let share = f64::from(wrong) / predicted;
    assert!(wrong > 100, "{wrong} wrong bytes are too few to compare");
    assert!((0.75..1.3).contains(&share), "{wrong} wrong bytes, predicted {predicted}");
}

/// A table and its masks, say: two matrices of different size, asked for under one secret with one
/// pair of keys. The bytes of each fail as often as its own columns make them.
#[test]
fn two_matrices_under_one_secret_fail_as_each_would_alone() {
    for (form, query_bits) in [
        // The errors of the keys, which both share; those of the columns, which they do not.
        (small().with_precisions([32, 35], 17, 10), QUERY_BITS),
        (small(), 17),
        // Nothing fails.
        (small(), QUERY_BITS),
    ] {
        let (rows, columns) = ([DEGREE, 2 * DEGREE + 5], [64, 20]);
        let mut bytes = vec![0; rows[1] * columns[1]];
        SecretRng::from_fixed_seed([8; 32]).fill(&mut bytes);
        let table = World::random(form, rows[0], columns[0]);
        let masks = World::with_columns_of("masks", form, rows[1], columns[1], bytes);
        let factors = EncryptionFactors::new(kernels(), form, &table.public)
            .with_vector(kernels(), &masks.public.columns);
        let mut rng = SecretRng::from_fixed_seed([9; 32]);
        let (mut wrong, mut count) = ([0; 2], [0; 2]);
        for query in 0..700 {
            let wanted = columns.map(|columns| query * 7 % columns);
            let lens = columns.map(|columns| columns as u64);
            let blank = encrypt_zero(kernels(), &factors, &lens, query_bits, &mut rng);
            let (words, keys, key) = blank.into_query(&wanted.map(|wanted| wanted as u64));
            let mut asked = Asked { words, query_bits, keys, key };
            let of_masks = asked.words.split_off(columns[0]);
            for (vector, world) in [&table, &masks].into_iter().enumerate() {
                if vector == 1 {
                    asked.words.clone_from(&of_masks);
                }
                let answer = world.answer(&asked);
                let bytes = world.decrypt_vector(&asked.key, &factors, vector, &answer);
                let right = world.column(wanted[vector]);
                let pairs = bytes.iter().zip(right);
                wrong[vector] += pairs.filter(|(byte, right)| byte != right).count() as u32;
                count[vector] += bytes.len() as u32;
            }
        }
        if (form, query_bits) == (small(), QUERY_BITS) {
            assert_eq!(wrong, [0; 2]);
            continue;
        }
        for (vector, world) in [&table, &masks].into_iter().enumerate() {
            assert_as_predicted(world, query_bits, wrong[vector], count[vector]);
        }
    }
}

/// The probability that Gaussian noise of a deviation makes a plaintext wrong that is `half` from
/// the next, over all places where its fraction may lie within a step of the answer's rounding: the
/// rounding error is uniform.
fn rate(half: f64, deviation: f64, answer_bits: u32) -> f64 {
    let step = 2f64.powi(-(answer_bits as i32));
    let steps = 200;
    (0..steps)
        .map(|k| {
            let rounding = step * ((f64::from(k) + 0.5) / f64::from(steps) - 0.5);
            (tail((half - rounding) / deviation) + tail((half + rounding) / deviation))
                / f64::from(steps)
        })
        .sum()
}

/// P(N(0, 1) ≥ x), by summing the density.
fn tail(x: f64) -> f64 {
    let step = 2e-3;
    let density = |t: f64| (-t * t / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    (0..5_000).map(|i| density(x + (f64::from(i) + 0.5) * step) * step).sum()
}

/// The rule that chooses the bits of a query's words, with the figures that are documented.
#[test]
fn query_words_have_as_many_bits_as_the_noise_needs() {
    let bits = |columns| theory::query_bits(Form::STANDARD, &[Reading { columns, bytes: 32 }]);
    let edge = |bits_: u32| {
        let (mut low, mut high) = (1u64, 1 << 24);
        while high - low > 1 {
            let middle = (low + high) / 2;
            match bits(middle) {
                Some(found) if found <= bits_ => low = middle,
                _ => high = middle,
            }
        }
        low
    };
    let edges = [24, 25, 26, 27, 28].map(edge);
    assert_eq!(edges, [2_052, 8_210, 32_840, 131_360, 525_442]);
}

#[test]
fn the_bound_is_that_of_the_documentation() {
    let form = Form::STANDARD;
    for columns in [1, 2_000, 32_768, 1 << 19] {
        for record_len in [1, 32, 4_096, 300 << 10] {
            let reading = Reading { columns, bytes: record_len };
            let bits = theory::query_bits(form, &[reading]).unwrap();
            let failure = theory::failure_bound_log2(form, bits, &[reading]);
            assert!(failure <= theory::RECORD_FAILURE_LOG2, "{columns} columns: 2^{failure}");
            let of_byte =
                theory::failure_bound_log2(form, bits, &[Reading { bytes: 1, ..reading }]);
            assert!(of_byte <= -57.0, "{columns} columns: 2^{of_byte} for a byte");
        }
    }
    let many = [Reading { columns: 1 << 40, bytes: 1 }];
    assert_eq!(theory::query_bits(form, &many), None);
}

/// Failures of all that a lookup reads are added up, and the worst of it counts.
#[test]
fn a_lookup_that_reads_two_matrices_needs_both() {
    let form = Form::STANDARD;
    let bound = |readings: &[Reading]| theory::failure_bound_log2(form, 26, readings);
    let record = Reading { columns: 32_768, bytes: 32 };
    for bytes in [32, 64, 4_352] {
        let other = Reading { bytes, ..record };
        let both = Reading { bytes: 32 + bytes, ..record };
        assert!((bound(&[record, other]) - bound(&[both])).abs() < 1e-9);
        assert!((bound(&[other, record]) - bound(&[both])).abs() < 1e-9);
    }
    // The masks of 1 GiB: their matrix has so few columns that they cost nothing.
    let masks = Reading { columns: 26, bytes: 4_352 };
    assert!(bound(&[masks]) < -80.0);
    assert!((bound(&[record, masks]) - bound(&[record])).abs() < 1e-6);
    assert_eq!(theory::query_bits(form, &[record, masks]), Some(26));
    // Too many columns anywhere are too many.
    assert_eq!(theory::query_bits(form, &[masks, Reading { columns: 1 << 40, bytes: 1 }]), None);
    assert_eq!(bound(&[]), f64::NEG_INFINITY);
}
