use super::{Numbers, all_kernels};
use crate::ring::{
    ColumnFactors, Products, Residues, RingTransform, SMALL_COEFFICIENTS, ring_dft_place,
};

/// Degrees from a single vector to the highest, and those between at which arms change their ways.
const DEGREES: [usize; 6] = [16, 32, 64, 128, 256, 2048];

/// The product modulo `X^d + 1`, the slow way.
fn schoolbook(a: &[i128], b: &[i128]) -> Vec<i128> {
    let degree = a.len();
    let mut product = vec![0i128; degree];
    for (i, a) in a.iter().enumerate().filter(|(_, a)| **a != 0) {
        for (j, b) in b.iter().enumerate() {
            let sign = if i + j < degree { 1 } else { -1 };
            product[(i + j) % degree] += sign * a * b;
        }
    }
    product
}

/// Integers up to `bound` in absolute value, with the extremes among them.
fn integers(numbers: &mut Numbers, len: usize, bound: i64) -> Vec<i64> {
    let integer = |n: u64| match n >> 61 {
        0 => [0, 1, -1, bound, -bound, bound - 1, 1 - bound][n as usize % 7],
        _ => ((i128::from(n as i64) * i128::from(bound)) >> 63) as i64,
    };
    (0..len).map(|_| integer(numbers.next())).collect()
}

fn wide(integers: &[i64]) -> Vec<i128> {
    integers.iter().map(|integer| i128::from(*integer)).collect()
}

fn words(integers: &[i128]) -> Vec<u64> {
    integers.iter().map(|integer| *integer as u64).collect()
}

#[test]
fn products_are_those_of_the_schoolbook() {
    let mut numbers = Numbers(1);
    for degree in DEGREES {
        let transform = RingTransform::new(degree);
        // The pairs of bounds reach the largest results that are exact, 2⁸⁸.
        let log = degree.ilog2();
        let bounds = [(62, 25 - log), (50, 37 - log), (1, 62), (8, 62)];
        for (a_bits, b_bits) in bounds {
            let [a, b] =
                [a_bits, b_bits].map(|bits| integers(&mut numbers, degree, (1 << bits) - 1));
            let expected = words(&schoolbook(&wide(&a), &wide(&b)));
            for kernels in all_kernels() {
                let [mut a_residues, mut b_residues] = [0, 1].map(|_| Residues::zeroed(degree));
                let mut products = Products::zeroed(degree);
                kernels.ring_forward(&transform, &a, &mut a_residues);
                kernels.ring_forward(&transform, &b, &mut b_residues);
                kernels.ring_multiply(&transform, &a_residues, &b_residues, &mut products);
                let mut product = vec![7; degree];
                kernels.ring_inverse(&transform, &mut products, &mut product);
                let case = format!("{}: {degree}, {a_bits} and {b_bits} bits", kernels.arm());
                assert!(product == expected, "{case}");
            }
        }
    }
}

#[test]
fn the_largest_results_are_exact() {
    // Every coefficient of the factors at its extreme, with signs that make one coefficient of the
    // product as large as it can be, on either side.
    let degree = 2048;
    let transform = RingTransform::new(degree);
    for (a_value, b_value) in [(1i64 << 62, 1i64 << 15), (-(1 << 62), 1 << 15), (i64::MIN, -16384)]
    {
        let a = vec![a_value; degree];
        let b: Vec<i64> = (0..degree).map(|i| if i == 0 { b_value } else { -b_value }).collect();
        let expected = words(&schoolbook(&wide(&a), &wide(&b)));
        for kernels in all_kernels() {
            let [mut x, mut y] = [0, 1].map(|_| Residues::zeroed(degree));
            kernels.ring_forward(&transform, &a, &mut x);
            kernels.ring_forward(&transform, &b, &mut y);
            let mut products = Products::zeroed(degree);
            kernels.ring_multiply(&transform, &x, &y, &mut products);
            let mut product = vec![0; degree];
            kernels.ring_inverse(&transform, &mut products, &mut product);
            assert!(product == expected, "{}: {a_value} and {b_value}", kernels.arm());
        }
    }
}

#[test]
fn residues_are_values_at_the_roots_in_every_arm() {
    let mut numbers = Numbers(2);
    let field = |word: usize, degree: usize| {
        [
            (1_073_692_673u64, 77_672_603u64),
            (1_073_668_097, 742_249_336),
            (1_073_655_809, 680_437_621),
        ][word / degree]
    };
    let power = |base: u64, exponent: usize, prime: u64| {
        (0..exponent).fold(1, |product, _| product * base % prime)
    };
    for degree in DEGREES {
        let transform = RingTransform::new(degree);
        let coefficients: Vec<i64> = (0..degree).map(|_| numbers.next() as i64).collect();
        let mut all: Vec<Residues> = Vec::new();
        for kernels in all_kernels() {
            let mut residues = Residues::zeroed(degree);
            kernels.ring_forward(&transform, &coefficients, &mut residues);
            all.push(residues);
        }
        for residues in &all {
            assert_eq!(residues.words(), all[0].words(), "degree {degree}");
        }
        for word in [0, 1, degree - 1, degree, 2 * degree + 3, 3 * degree - 2] {
            let (prime, root) = field(word, degree);
            let order = 2 * ring_dft_place(word % degree, degree) + 1;
            let root = power(root, 4096 / (2 * degree) * order, prime);
            let value = coefficients.iter().rev().fold(0u64, |value, coefficient| {
                let coefficient = coefficient.rem_euclid(prime as i64) as u64;
                (value * root + coefficient) % prime
            });
            assert_eq!(u64::from(all[0].words()[word]), value, "degree {degree}, word {word}");
        }
    }
}

#[test]
fn small_coefficients_have_the_same_residues() {
    let mut numbers = Numbers(3);
    for degree in DEGREES {
        let transform = RingTransform::new(degree);
        let wide = integers(&mut numbers, degree, i64::from(SMALL_COEFFICIENTS) - 1);
        let small: Vec<i32> = wide.iter().map(|integer| *integer as i32).collect();
        for kernels in all_kernels() {
            let [mut expected, mut residues] = [0, 1].map(|_| Residues::zeroed(degree));
            kernels.ring_forward(&transform, &wide, &mut expected);
            kernels.ring_forward_small(&transform, &small, &mut residues);
            assert_eq!(residues.words(), expected.words(), "{}: {degree}", kernels.arm());
        }
    }
}

#[test]
fn products_add_up() {
    let mut numbers = Numbers(4);
    for degree in DEGREES {
        let transform = RingTransform::new(degree);
        let pairs: Vec<[Vec<i64>; 2]> = (0..5)
            .map(|_| [30, 40].map(|bits| integers(&mut numbers, degree, 1 << bits)))
            .collect();
        let mut expected = vec![0i128; degree];
        for [a, b] in &pairs {
            for (sum, product) in expected.iter_mut().zip(schoolbook(&wide(a), &wide(b))) {
                *sum += product;
            }
        }
        for kernels in all_kernels() {
            let mut products = Products::zeroed(degree);
            for [a, b] in &pairs {
                let [mut x, mut y] = [0, 1].map(|_| Residues::zeroed(degree));
                kernels.ring_forward(&transform, a, &mut x);
                kernels.ring_forward(&transform, b, &mut y);
                kernels.ring_multiply_add(&transform, &x, &y, &mut products);
            }
            let mut sum = vec![0; degree];
            kernels.ring_inverse(&transform, &mut products, &mut sum);
            assert!(sum == words(&expected), "{}: {degree}", kernels.arm());
        }
    }
}

/// `f(X^exponent)`, coefficient by coefficient.
fn automorphism(exponent: usize, f: &[i64]) -> Vec<i64> {
    let degree = f.len();
    let mut image = vec![0; degree];
    for (i, coefficient) in f.iter().enumerate() {
        let place = i * exponent % (2 * degree);
        let sign = if place < degree { 1 } else { -1 };
        image[place % degree] = sign * coefficient;
    }
    image
}

#[test]
fn automorphisms_act_on_coefficients_and_permute_slots() {
    let mut numbers = Numbers(5);
    for degree in DEGREES {
        let transform = RingTransform::new(degree);
        let f = integers(&mut numbers, degree, 1 << 50);
        for exponent in [1, 3, 5, degree - 1, degree + 1, 2 * degree - 1, 5 * degree + 7] {
            let expected = automorphism(exponent, &f);
            for kernels in all_kernels() {
                let mut image = vec![7; degree];
                let coefficients: Vec<u64> = f.iter().map(|c| *c as u64).collect();
                kernels.ring_automorphism(exponent, &coefficients, &mut image);
                assert!(image == words(&wide(&expected)), "{degree}, {exponent}");

                let [mut x, mut y, mut permuted] = [0, 1, 2].map(|_| Residues::zeroed(degree));
                kernels.ring_forward(&transform, &f, &mut x);
                kernels.ring_forward(&transform, &expected, &mut y);
                kernels.ring_permute(&transform, exponent, &x, &mut permuted);
                assert_eq!(permuted.words(), y.words(), "{degree}, {exponent}");
            }
        }
    }
}

#[test]
fn the_transform_of_polynomials_is_the_sum_of_rotations() {
    let mut numbers = Numbers(6);
    let shapes = [
        (16, 1),
        (16, 2),
        (16, 4),
        (16, 8),
        (16, 16),
        (16, 32),
        (32, 64),
        (64, 32),
        (128, 128),
        (2048, 2),
        (2048, 8),
    ];
    for (degree, count) in shapes {
        let inputs: Vec<u64> = (0..degree * count).map(|_| numbers.next()).collect();
        let step = 2 * degree / count;
        for kernels in all_kernels() {
            let mut outputs = inputs.clone();
            kernels.ring_dft(degree, &mut outputs);
            for number in 0..count {
                let mut expected = vec![0u64; degree];
                for (v, input) in inputs.chunks_exact(degree).enumerate() {
                    for (i, coefficient) in input.iter().enumerate() {
                        let place = (i + step * number * v) % (2 * degree);
                        let sum = &mut expected[place % degree];
                        *sum = match place < degree {
                            true => sum.wrapping_add(*coefficient),
                            false => sum.wrapping_sub(*coefficient),
                        };
                    }
                }
                let output = &outputs[ring_dft_place(number, count) * degree..][..degree];
                let case = format!("{}: {count} of degree {degree}", kernels.arm());
                assert!(output == expected, "{case}, output {number}");
            }
        }
    }
}

#[test]
fn all_arms_transform_the_largest_block_alike() {
    // At a single place other than zero all outputs are known: a rotation each.
    let (degree, count) = (2048, 2048);
    for kernels in all_kernels() {
        let mut polynomials = vec![0u64; degree * count];
        let (input, coefficient) = (1234, 567);
        polynomials[input * degree + coefficient] = 3;
        kernels.ring_dft(degree, &mut polynomials);
        for number in 0..count {
            let place = (coefficient + 2 * number * input) % (2 * degree);
            let output = &polynomials[ring_dft_place(number, count) * degree..][..degree];
            let value = if place < degree { 3 } else { 3u64.wrapping_neg() };
            assert_eq!(output[place % degree], value, "{}: {number}", kernels.arm());
            assert_eq!(output.iter().filter(|word| **word != 0).count(), 1);
        }
    }
}

/// `D(X⁻¹)`.
fn reversed(bytes: &[u8]) -> Vec<i128> {
    let degree = bytes.len();
    let mut polynomial = vec![0; degree];
    for (i, byte) in bytes.iter().enumerate() {
        polynomial[(degree - i) % degree] = if i == 0 { 1 } else { -1 } * i128::from(*byte);
    }
    polynomial
}

fn column_sum(factors: &[i64], degree: usize, row: &[u8]) -> Vec<u64> {
    let mut sum = vec![0i128; degree];
    for (bytes, factor) in row.chunks(degree).zip(factors.chunks_exact(degree)) {
        let mut padded = bytes.to_vec();
        padded.resize(degree, 0);
        for (sum, product) in sum.iter_mut().zip(schoolbook(&reversed(&padded), &wide(factor))) {
            *sum += product;
        }
    }
    words(&sum)
}

#[test]
fn column_sums_are_those_of_the_schoolbook() {
    let mut numbers = Numbers(7);
    // Degree, polynomials, columns, bytes of a column, first row, rows; and bytes missing at the
    // end.
    let shapes = [
        (16, 1, 16, 1, 0, 1, 0),
        (16, 2, 20, 19, 0, 19, 3),
        (16, 9, 129, 200, 3, 150, 0),
        (16, 70, 1120, 13, 5, 20, 12),
        (32, 5, 150, 70, 63, 12, 0),
        (64, 3, 192, 9, 0, 16, 0),
        (128, 130, 16_640, 3, 0, 2, 1),
        (256, 2, 300, 5, 0, 8, 0),
        (2048, 2, 3000, 100, 90, 12, 50),
    ];
    for (degree, polynomials, count, column_len, first_row, rows, missing) in shapes {
        let factors = integers(&mut numbers, polynomials * degree, 1 << 50);
        let columns = numbers.bytes(count * column_len - missing);
        let column_factors = ColumnFactors::new(degree, &factors);
        let byte = |row: usize, column: usize| match row < column_len {
            true => columns.get(column * column_len + row).copied().unwrap_or(0),
            false => 0,
        };
        let expected: Vec<u64> = (first_row..first_row + rows)
            .flat_map(|row| {
                let row: Vec<u8> = (0..count).map(|column| byte(row, column)).collect();
                column_sum(&factors, degree, &row)
            })
            .collect();
        for kernels in all_kernels() {
            let mut sums = vec![7; rows * degree];
            kernels.ring_column_sums(&column_factors, &columns, column_len, first_row, &mut sums);
            assert!(sums == expected, "{}: {rows} rows of degree {degree}", kernels.arm());
        }
    }
}

#[test]
fn the_largest_column_sums_are_exact() {
    // As many polynomials as are summed without rounding, all bytes 255, all factors at an extreme,
    // with signs that add up in coefficient 0.
    let (degree, polynomials) = (2048, 65);
    for (value, part) in [(1i64 << 50, 0), (65_535 | 65_535 << 17, 0), (-65_536, 0)] {
        let factor: Vec<i64> = vec![value + part; degree * polynomials];
        let columns = vec![255; degree * polynomials];
        let factors = ColumnFactors::new(degree, &factor);
        // In coefficient k of one product, k + 1 terms have one sign and the others the other.
        let expected: Vec<u64> = (0..degree as i128)
            .map(|k| {
                let ones = degree as i128 - 2 * (degree as i128 - 1 - k);
                // D(X⁻¹) is 1 - X - X² - …: the constant term counts the other way.
                let terms = 2 - ones;
                (255 * i128::from(value) * terms * polynomials as i128) as u64
            })
            .collect();
        for kernels in all_kernels() {
            let mut sums = vec![0; degree];
            kernels.ring_column_sums(&factors, &columns, 1, 0, &mut sums);
            assert!(sums == expected, "{}: {value}", kernels.arm());
        }
    }
}

#[test]
#[should_panic(expected = "the degree is a power of two between 16 and 2048")]
fn other_degrees_are_refused() {
    RingTransform::new(4096);
}

#[test]
#[should_panic(expected = "coefficients have at most 51 bits")]
fn factors_of_too_many_bits_are_refused() {
    let mut factors = [0; 16];
    factors[3] = (1 << 50) + 1;
    ColumnFactors::new(16, &factors);
}
