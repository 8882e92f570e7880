//! Each step against a direct computation.

use super::*;
use crate::Blame;
use proptest::prelude::*;

/// The product modulo `X^d + 1`, the slow way, modulo 2^64.
fn schoolbook(a: &[i64], b: &[i64]) -> Vec<i64> {
    let degree = a.len();
    let mut product = vec![0i64; degree];
    for (i, a) in a.iter().enumerate().filter(|(_, a)| **a != 0) {
        for (j, b) in b.iter().enumerate() {
            let signed = if i + j < degree { *a } else { a.wrapping_neg() };
            let place = (i + j) % degree;
            product[place] = product[place].wrapping_add(signed.wrapping_mul(*b));
        }
    }
    product
}

/// `f(X^exponent)`.
fn automorphism(f: &[i64], exponent: usize) -> Vec<i64> {
    let degree = f.len();
    let mut image = vec![0; degree];
    for (i, coefficient) in f.iter().enumerate() {
        let place = i * exponent % (2 * degree);
        image[place % degree] = if place < degree { *coefficient } else { -coefficient };
    }
    image
}

/// Packs a block by the definition: the sums over automorphisms one by one. `mirrored`: the two
/// chains are not kept from mirroring each other.
fn packed_directly(world: &World, block: usize, mirrored: bool) -> Block {
    let form = world.form;
    let (degree, first) = (form.degree, block * form.degree);
    let rows = degree.min(world.rows - first);
    let masks: Vec<Vec<i64>> = (first..first + rows)
        .map(|row| {
            let mut sum = vec![0i64; degree];
            for (j, public) in world.public.columns.chunks_exact(degree).enumerate() {
                let mut bytes = vec![0; degree];
                for (i, byte) in bytes.iter_mut().enumerate() {
                    let column = j * degree + i;
                    if column < world.columns {
                        *byte = i64::from(world.column(column)[row]);
                    }
                }
                let reversed = automorphism(&bytes, 2 * degree - 1);
                let product = schoolbook(&reversed, public);
                sum.iter_mut().zip(product).for_each(|(sum, product)| {
                    *sum = sum.wrapping_add(product);
                });
            }
            let half = degree as i64 / 2;
            sum.iter()
                .map(|c| (centred(*c as u64, MODULUS_BITS) + half) >> degree.ilog2())
                .collect()
        })
        .collect();
    let power = |k: usize| {
        let mut power = vec![0; degree];
        power[k] = 1;
        power
    };
    let mut components: Vec<Vec<i64>> = (0..2 * degree)
        .map(|t| {
            let mut sum = vec![0i64; degree];
            for (k, mask) in masks.iter().enumerate().filter(|_| t % 2 == 1) {
                let moved = schoolbook(&power(k), &automorphism(mask, t));
                sum.iter_mut().zip(moved).for_each(|(sum, moved)| *sum += moved);
            }
            sum
        })
        .collect();
    // Row by row: the sum of the digits' polynomials, one for each word of the key.
    let mut matrix = vec![vec![0i64; degree]; degree];
    for sign in [1, 2 * degree - 1] {
        let mut sequence = vec![sign];
        while sequence.len() < degree / 2 {
            sequence.push(sequence.last().unwrap() * 5 % (2 * degree));
        }
        for pair in sequence.windows(2).rev() {
            let [to, from] = pair else { unreachable!() };
            let mut digits: Vec<i64> = components[*from]
                .iter()
                .map(|c| i64::from(digit(*c as u64, form.digit_bits)))
                .collect();
            if sign != 1 && *from == *sequence.last().unwrap() && !mirrored {
                digits[0] = centred((digits[0] + 1) as u64, form.digit_bits);
            }
            let product = schoolbook(&digits, &automorphism(&world.public.packing, *to));
            components[*to].iter_mut().zip(product).for_each(|(c, p)| *c = c.wrapping_sub(p));
            for (u, column) in matrix.iter_mut().enumerate() {
                let moved = schoolbook(&digits, &automorphism(&power(u), *to));
                column.iter_mut().zip(moved).for_each(|(entry, moved)| *entry += moved);
            }
        }
    }
    let fold: Vec<i64> = components[2 * degree - 1]
        .iter()
        .map(|c| i64::from(digit(*c as u64, form.fold_digit_bits)))
        .collect();
    let product = schoolbook(&fold, &world.public.fold);
    let left = components[1].iter().zip(product).map(|(c, p)| c.wrapping_sub(p) as u64);
    Block {
        mask: left.map(|c| round(c, MODULUS_BITS, form.mask_bits) as u32).collect(),
        fold: fold.iter().map(|digit| *digit as u32).collect(),
        matrix: matrix
            .iter()
            .flat_map(|column| &column[..rows])
            .map(|entry| ((1i64 << 31) - entry) as u32)
            .collect(),
        norms: PackingNorms {
            matrix: (0..rows)
                .map(|row| matrix.iter().map(|column| (column[row] as f64).powi(2)).sum::<f64>())
                .fold(0.0, f64::max),
            fold: fold.iter().map(|digit| (*digit as f64).powi(2)).sum(),
        },
    }
}

#[test]
fn packing_is_the_sum_over_all_automorphisms() {
    for (degree, rows, columns) in [(16, 16, 40), (16, 3, 1), (16, 21, 17), (32, 33, 32)] {
        let world = World::random(Form::insecure(degree), rows, columns);
        for (number, block) in world.blocks.iter().enumerate() {
            let direct = packed_directly(&world, number, false);
            let case = format!("{degree}, {rows} x {columns}, block {number}");
            assert_eq!(block.fold, direct.fold, "{case}");
            assert_eq!(block.mask, direct.mask, "{case}");
            assert_eq!(block.matrix, direct.matrix, "{case}");
            assert!((block.norms.matrix / direct.norms.matrix - 1.0).abs() < 1e-9, "{case}");
            assert_eq!(block.norms.fold, direct.norms.fold, "{case}");
        }
    }
}

#[test]
fn a_blank_is_what_the_definition_says() {
    let world = World::random(Form::insecure(16), 1, 21);
    let mut rng = SecretRng::from_fixed_seed([1; 32]);
    let mut draw = |bound: u64| (rng.below(2 * bound + 1) as i64) - bound as i64;
    let secret: Vec<i64> = (0..16).map(|_| draw(1)).collect();
    let errors: Vec<i64> = (0..21 + 32).map(|_| draw(40)).collect();
    let as_secret = Zeroizing::new(secret.iter().map(|s| *s as i32).collect::<Vec<_>>());
    let as_errors: Vec<u32> = errors.iter().map(|e| *e as i32 as u32).collect();
    let blank = Blank::with(kernels(), &world.factors, (&[21], 24), as_secret, &as_errors);
    let (words, keys, key) = blank.into_query(&[17]);
    let mut sum = 0;
    for (column, word) in words.iter().enumerate() {
        let mask = schoolbook(&world.public.columns[column / 16 * 16..][..16], &secret);
        let wanted = i64::from(column == 17) << DELTA_BITS;
        let clean = mask[column % 16] + wanted;
        let rounded = round((clean + errors[column]) as u64, 50, 24);
        assert_eq!(u64::from(*word), rounded, "word {column}");
        sum += centred((rounded << 26).wrapping_sub(clean as u64), 50);
    }
    assert_eq!(key.error_sum(0), sum);
    let form = world.form;
    for (words, public, exponent, weight, errors, bits) in [
        (&keys.packing, &world.public.packing, 5, 50 - form.digit_bits, &errors[21..37], 44),
        (&keys.fold, &world.public.fold, 31, 50 - form.fold_digit_bits, &errors[37..], 35),
    ] {
        let mask = schoolbook(public, &secret);
        let image = automorphism(&secret, exponent);
        for (number, word) in words.iter().enumerate() {
            let clean = mask[number] + errors[number] + (image[number] << weight);
            assert_eq!(*word, round(clean as u64, 50, bits), "key word {number}");
        }
    }
}

/// The secret and the sum of errors of a decryption are the same whichever way it is computed.
#[test]
fn some_rows_decrypt_as_all_do() {
    let world = World::random(Form::insecure(128), 128, 30);
    let mut rng = SecretRng::from_os().unwrap();
    let asked = world.ask(11, 26, &mut rng);
    let answer = world.answer(&asked);
    let all = world.decrypt(&asked.key, &answer);
    assert_eq!(all, world.column(11));
    let mask = &world.blocks[0].mask;
    for (first, count) in [(0, 1), (127, 1), (5, 63), (5, 64), (0, 128), (64, 64), (9, 0)] {
        let mut bytes = vec![0; count];
        let symbols = &answer[first..][..count];
        let symbols = BlockSymbols { vector: 0, mask, first_row: first, symbols };
        asked.key.decrypt(kernels(), &world.factors, symbols, &mut bytes);
        assert_eq!(bytes, all[first..][..count], "{count} rows from {first}");
    }
}

#[test]
fn rounding_wraps() {
    // The highest numbers round up to 1, which is 0. A rounding that stays below 1 fails here.
    assert_eq!(round((1 << 50) - 1, 50, 26), 0);
    assert_eq!(round((1 << 50) - (1 << 23), 50, 26), 0);
    assert_eq!(round((1 << 50) - (1 << 23) - 1, 50, 26), (1 << 26) - 1);
    assert_eq!(round(u64::MAX, 50, 26), 0, "bits above do not count");
    assert_eq!(digit((1 << 49) - 1, 23), -(1 << 22), "half rounds up to minus half");
    assert_eq!(digit(1 << 49, 23), -(1 << 22));
    assert_eq!(digit(u64::MAX, 23), 0);
    assert_eq!(centred((1 << 50) - 1, 50), -1);
}

proptest! {
    #[test]
    fn a_number_is_its_digit_and_a_small_rest(number in any::<u64>(), bits in 17u32..24) {
        let rest = number.wrapping_sub(((digit(number, bits) as i64) << (50 - bits)) as u64);
        prop_assert!(centred(rest, 50).unsigned_abs() <= 1 << (49 - bits));
    }
}

#[test]
fn public_polynomials_are_the_keystream() {
    let sequence = PublicPolynomials::new(&crate::PublicSeed::from_bytes([4; 32]));
    let two = sequence.first(kernels(), 16, 2);
    assert_eq!(sequence.first(kernels(), 32, 1), two);
    let mut words = [0; 64];
    kernels().aes128_ctr_words(&[4; 16], 0, &mut words);
    for (coefficient, pair) in two.iter().zip(words.as_chunks::<2>().0) {
        let number = u64::from(pair[0]) | u64::from(pair[1]) << 32;
        assert_eq!(*coefficient as u64 & low_bits(50), number & low_bits(50));
        assert!((-(1 << 49)..1 << 49).contains(coefficient));
    }
}

#[test]
fn secrets_are_uniform_on_three_values_and_fresh() {
    let world = World::random(small(), 1, 1);
    let mut rng = SecretRng::from_fixed_seed([2; 32]);
    let secrets: Vec<Vec<i32>> =
        (0..300).map(|_| world.ask(0, 26, &mut rng).key.secret().to_vec()).collect();
    let total = (300 * DEGREE) as f64;
    for value in [-1, 0, 1] {
        let count = secrets.iter().flatten().filter(|s| **s == value).count() as f64;
        let deviations = (count - total / 3.0) / (total * 2.0 / 9.0).sqrt();
        assert!(deviations.abs() < 5.0, "{value}: {deviations} deviations");
    }
    assert!(secrets.windows(2).all(|two| two[0] != two[1]));
}

#[test]
fn a_blank_of_another_size_is_refused() {
    let world = World::random(small(), 1, 20);
    let mut rng = SecretRng::from_os().unwrap();
    let mut blank = || encrypt_zero(kernels(), &world.factors, &[20], 26, &mut rng);
    blank().check(small(), &[20], 26).unwrap();
    for (form, lens, bits) in [
        (small(), &[19][..], 26),
        (small(), &[20], 27),
        (small(), &[20, 1], 26),
        (Form::insecure(32), &[20], 26),
    ] {
        let refusal = blank().check(form, lens, bits).unwrap_err();
        assert_eq!(refusal.blame(), Blame::ApiMisuse);
    }
}

/// Tables that are symmetric, such as those of which a block has one row. Without a counter-measure
/// both chains of key switches would be mirror images of each other.
#[test]
fn chains_of_symmetric_tables_do_not_mirror_each_other() {
    let form = Form::insecure(32);
    let [expected, _] = theory::expected_norms(form);
    let one_row = |row: usize| {
        let table = (0..20 * 40).map(|place| if place % 20 == row { 77 } else { 0 });
        World::new(form, 20, 40, table.collect())
    };
    let norm_of_row = |block: &Block, row: usize| {
        let rows = block.matrix.len() / form.degree;
        let entries = block.matrix[row..].iter().step_by(rows);
        entries.map(|word| ((1i64 << 31) - i64::from(*word)) as f64).map(|m| m * m).sum::<f64>()
    };
    for (world, row) in [
        (World::random(form, 1, 40), 0),
        (one_row(0), 0),
        (one_row(13), 13),
        (World::new(form, 21, 40, vec![255; 21 * 40]), 10),
    ] {
        let mirrored = norm_of_row(&packed_directly(&world, 0, true), row) / expected;
        let made = norm_of_row(&world.blocks[0], row) / expected;
        // 32 squares are spread by a quarter.
        assert!((1.2..3.5).contains(&mirrored), "row {row}: {mirrored} times what is expected");
        assert!(made < 0.9 * mirrored, "row {row}: {made} times what is expected");
    }
}

#[test]
fn a_packing_with_too_much_noise_is_refused() {
    for form in [Form::STANDARD, Form::insecure(64)] {
        let coefficients = vec![1; form.degree];
        let public = PublicCoefficients {
            columns: coefficients.clone(),
            packing: coefficients.clone(),
            fold: coefficients,
        };
        let factors = PackingFactors::new(kernels(), form, &public);
        let allowed = theory::expected_norms(form).map(|norm| norm * theory::norm_allowance(form));
        let norms = |[matrix, fold]: [f64; 2]| PackingNorms { matrix, fold };
        factors.check(norms(allowed)).unwrap();
        for more in [[1.001, 1.0], [1.0, 1.001]] {
            let [matrix, fold] = allowed;
            let refused = factors.check(norms([matrix * more[0], fold * more[1]]));
            assert_eq!(refused.unwrap_err().blame(), Blame::ApiMisuse);
        }
        // Entries of the matrix, of which the planes hold four bytes.
        for (entry, fits) in [((1u64 << 31) - 1, true), (1 << 31, false)] {
            for entry in [entry, entry.wrapping_neg()] {
                let mut polynomials = vec![0; form.degree * form.degree];
                polynomials[5] = entry;
                let mut matrix = vec![0; form.degree];
                let written = factors.write_matrix(1, &polynomials, &mut matrix);
                // Of one row, only the constant coefficients after the rotation count.
                assert_eq!(written.is_ok(), fits || matrix.iter().all(|word| *word == 1 << 31));
            }
        }
    }
}
