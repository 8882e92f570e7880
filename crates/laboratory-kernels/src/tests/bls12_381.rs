//! The wrappers of `blst`, against the group laws and single powers.

use super::Numbers;
use crate::bls12_381::{
    FixedBases, G1, G1Sum, G2, G2Sum, PreparedG2, Scalar, ScalarSum, TableLayout, add_products,
    multi_exponentiation, multi_exponentiation_g2, pairings_cancel, prepared_pairings_cancel,
};

/// r − 1, the largest scalar, little-endian:
/// 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000000.
const LARGEST: [u64; 4] =
    [0xffff_ffff_0000_0000, 0x53bd_a402_fffe_5bfe, 0x3339_d808_09a1_d805, 0x73ed_a753_299d_7d48];

fn little_endian(digits: [u64; 4]) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (out, digit) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(digits) {
        *out = digit.to_le_bytes();
    }
    bytes
}

fn largest() -> Scalar {
    Scalar::from_bytes(&little_endian(LARGEST)).expect("r - 1 is below r")
}

fn scalar(numbers: &mut Numbers) -> Scalar {
    match numbers.below(8) {
        0 => Scalar::ZERO,
        1 => largest(),
        _ => {
            let mut bytes = [0; 48];
            bytes.copy_from_slice(&numbers.bytes(48));
            Scalar::from_uniform(&bytes)
        }
    }
}

fn weight(numbers: &mut Numbers) -> u128 {
    match numbers.below(8) {
        0 => 0,
        1 => u128::MAX,
        _ => u128::from(numbers.next()) << 64 | u128::from(numbers.next()),
    }
}

/// Some points, infinity and an inverse pair among them.
fn points(numbers: &mut Numbers, count: usize) -> Vec<G1> {
    let mut points: Vec<G1> =
        (0..count).map(|_| G1::generator().to_sum().power(&scalar(numbers)).to_affine()).collect();
    if count > 3 {
        points[1] = G1::infinity();
        points[3] = points[2].negated();
    }
    points
}

fn product_of_powers(points: &[G1], exponents: &[Scalar]) -> G1 {
    let mut product = G1Sum::default();
    for (point, exponent) in points.iter().zip(exponents) {
        product.add(&point.to_sum().power(exponent));
    }
    product.to_affine()
}

#[test]
fn scalars_are_numbers_modulo_the_order() {
    assert_eq!(largest() + Scalar::ONE, Scalar::ZERO);
    assert_eq!(Scalar::ZERO - Scalar::ONE, largest());
    assert_eq!(largest() * largest(), Scalar::ONE);
    let mut order = LARGEST;
    order[0] += 1;
    assert_eq!(Scalar::from_bytes(&little_endian(order)), None);
    assert_eq!(Scalar::from_bytes(&[255; 32]), None);
    let mut uniform = [0; 48];
    uniform[..32].copy_from_slice(&little_endian(order));
    assert_eq!(Scalar::from_uniform(&uniform), Scalar::ZERO);
    // 2^384 - 1 = (2^128)^3 - 1.
    let two_128 = Scalar::from(u128::MAX) + Scalar::ONE;
    assert_eq!(Scalar::from_uniform(&[255; 48]), two_128 * two_128 * two_128 - Scalar::ONE);
    let mut numbers = Numbers(1);
    for _ in 0..50 {
        let (a, b) = (scalar(&mut numbers), scalar(&mut numbers));
        assert_eq!(Scalar::from_bytes(&a.to_bytes()), Some(a));
        assert_eq!((a + b) * (a - b), a * a - b * b);
        assert_eq!(a * a.inverse(), if a.is_zero() { Scalar::ZERO } else { Scalar::ONE });
    }
}

#[test]
fn sums_of_products_are_exact() {
    let mut numbers = Numbers(2);
    let mut sums = vec![ScalarSum::default(); 9];
    let mut expected = vec![Scalar::ZERO; 9];
    for _ in 0..300 {
        let weight = weight(&mut numbers);
        let scalars: Vec<Scalar> = (0..9).map(|_| scalar(&mut numbers)).collect();
        add_products(&mut sums, weight, &scalars);
        for (expected, scalar) in expected.iter_mut().zip(&scalars) {
            *expected = *expected + Scalar::from(weight) * *scalar;
        }
    }
    assert_eq!(sums.iter().map(ScalarSum::reduce).collect::<Vec<_>>(), expected);
    // The largest carries there can be.
    let mut sum = ScalarSum::default();
    for _ in 0..1 << 12 {
        sum.add_product(u128::MAX, &largest());
    }
    let minus = Scalar::ZERO - Scalar::from(u128::MAX);
    assert_eq!(sum.reduce(), Scalar::from(1u128 << 12) * minus);
}

#[test]
fn encodings_are_the_standard_ones() {
    let generator = G1::generator();
    let hex: String = generator.compress().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        hex,
        "97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb"
    );
    assert_eq!(format!("{:?}", G2::generator())[..20], *"G2(93e02b6052719f607");
    let mut numbers = Numbers(3);
    for _ in 0..10 {
        let exponent = scalar(&mut numbers);
        let point = generator.to_sum().power(&exponent).to_affine();
        assert_eq!(G1::from_compressed(&point.compress()), Some(point));
        assert_eq!(G1::from_uncompressed_of_our_own(&point.to_uncompressed()), Some(point));
        let point = G2::generator().to_sum().power(&exponent).to_affine();
        assert_eq!(G2::from_compressed(&point.compress()), Some(point));
        assert_eq!(G2::from_uncompressed_of_our_own(&point.to_uncompressed()), Some(point));
    }
    assert_eq!(G1::from_compressed(&G1::infinity().compress()), Some(G1::infinity()));
    assert_eq!(G2::from_compressed(&G2::infinity().compress()), Some(G2::infinity()));
    let all = [G1Sum::default(), generator.to_sum(), G1Sum::default()];
    assert_eq!(G1Sum::all_to_affine(&all), [G1::infinity(), generator, G1::infinity()]);
    assert!(G1Sum::all_to_affine(&[]).is_empty());
}

#[test]
fn only_the_one_encoding_of_an_element_of_the_group_is_read() {
    let good = G1::generator().compress();
    // The other sign gives the inverse. Without the mark of a compressed point, the bytes are not a
    // point. Infinity has only zeros after its mark.
    let changed = |at: usize, mask: u8| {
        let mut bytes = good;
        bytes[at] ^= mask;
        bytes
    };
    assert_eq!(G1::from_compressed(&changed(0, 0x20)), Some(G1::generator().negated()));
    assert_eq!(G1::from_compressed(&changed(0, 0x80)), None);
    assert_eq!(G1::from_compressed(&changed(0, 0x40)), None);
    let mut infinity = G1::infinity().compress();
    infinity[47] = 1;
    assert_eq!(G1::from_compressed(&infinity), None);
    assert_eq!(G1::from_compressed(&[0xff; 48]), None);
    // x = p, which is not the canonical 0.
    let mut prime = [0u8; 48];
    prime.copy_from_slice(&hex(
        "9a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab",
    ));
    assert_eq!(G1::from_compressed(&prime), None);

    // About half of the points with small coordinates are on the curve, and hardly any are in the
    // group.
    let mut on_curve = 0;
    for x in 1..40u8 {
        let mut bytes = [0; 48];
        (bytes[0], bytes[47]) = (0x80, x);
        assert_eq!(G1::from_compressed(&bytes), None);
        let mut point = blst::blst_p1_affine::default();
        // SAFETY: reads 48 bytes and writes one point.
        let outcome = unsafe { blst::blst_p1_uncompress(&mut point, bytes.as_ptr()) };
        on_curve += usize::from(outcome == blst::BLST_ERROR::BLST_SUCCESS);
        let mut bytes = [0; 96];
        (bytes[0], bytes[95]) = (0x80, x);
        assert_eq!(G2::from_compressed(&bytes), None);
    }
    assert!(on_curve > 10, "{on_curve} points were refused for the group alone");

    // Uncompressed: a point off the curve, and the mark of the other encoding.
    let mut bytes = G1::generator().to_uncompressed();
    bytes[95] ^= 1;
    assert_eq!(G1::from_uncompressed_of_our_own(&bytes), None);
    bytes[..48].copy_from_slice(&good);
    assert_eq!(G1::from_uncompressed_of_our_own(&bytes), None);
}

fn hex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).expect("a digit") as u8;
    text.as_bytes().as_chunks::<2>().0.iter().map(|[a, b]| digit(*a) << 4 | digit(*b)).collect()
}

#[test]
fn products_of_powers_are_the_product_of_the_powers() {
    let mut numbers = Numbers(4);
    // Around the sizes at which `blst` changes its method.
    for count in [0, 1, 2, 3, 31, 32, 33, 70] {
        let points = points(&mut numbers, count);
        let exponents: Vec<Scalar> = (0..count).map(|_| scalar(&mut numbers)).collect();
        let weights: Vec<u128> = (0..count).map(|_| weight(&mut numbers)).collect();
        let weights_as_scalars: Vec<Scalar> = weights.iter().copied().map(Scalar::from).collect();
        let expected = product_of_powers(&points, &exponents);
        assert_eq!(multi_exponentiation(&points, &exponents).to_affine(), expected);
        let expected = product_of_powers(&points, &weights_as_scalars);
        assert_eq!(multi_exponentiation(&points, &weights).to_affine(), expected);
    }
    let base = G2::generator().to_sum();
    let exponents: Vec<Scalar> = (0..5).map(|_| scalar(&mut numbers)).collect();
    let powers: Vec<G2> = exponents.iter().map(|e| base.power(e).to_affine()).collect();
    let mut expected = G2Sum::default();
    powers.iter().for_each(|power| expected.add_affine(power));
    let ones = [Scalar::ONE; 5];
    assert_eq!(multi_exponentiation_g2(&powers, &ones).to_affine(), expected.to_affine());
}

#[test]
fn fixed_bases_give_the_same_products() {
    let mut numbers = Numbers(5);
    for (pieces, piece_bits) in [(1, 256), (4, 64), (8, 32), (16, 16), (32, 8)] {
        for window in [2, 5, 8, 9] {
            let count = 1 + numbers.below(6);
            let bases = points(&mut numbers, count);
            let layout = TableLayout { pieces, piece_bits, window };
            let mut tables = FixedBases::new(&bases, layout).expect("memory");
            assert_eq!((tables.len(), tables.is_empty()), (count, false));
            let exponents: Vec<Scalar> = (0..count).map(|_| scalar(&mut numbers)).collect();
            for some in [count, count / 2, 0] {
                let expected = product_of_powers(&bases[..some], &exponents[..some]);
                assert_eq!(tables.product(&exponents[..some]).to_affine(), expected, "{layout:?}");
            }
            let places: Vec<u32> = (0..count).map(|_| numbers.below(count) as u32).collect();
            let chosen: Vec<G1> = places.iter().map(|place| bases[*place as usize]).collect();
            let expected = product_of_powers(&chosen, &exponents);
            assert_eq!(tables.product_of(&places, &exponents).to_affine(), expected);

            let mut bases = bases;
            bases[count - 1] = points(&mut numbers, 1)[0];
            tables.replace(count - 1, &bases[count - 1]);
            let expected = product_of_powers(&bases, &exponents);
            assert_eq!(tables.product(&exponents).to_affine(), expected);
        }
    }
    // More bases than in one portion, and than the most additions that are done together.
    let bases = points(&mut numbers, 300);
    let layout = TableLayout { pieces: 16, piece_bits: 8, window: 2 };
    let tables = FixedBases::new(&bases, layout).expect("memory");
    let weights: Vec<u128> = (0..300).map(|_| weight(&mut numbers)).collect();
    let expected = multi_exponentiation(&bases, &weights).to_affine();
    assert_eq!(tables.product(&weights).to_affine(), expected);
}

/// Both ways to compute it.
fn cancel(pairs: &[(G1, G2)]) -> bool {
    let prepared: Vec<PreparedG2> = pairs.iter().map(|(_, q)| PreparedG2::new(q)).collect();
    let pairs_of_prepared: Vec<_> = pairs.iter().map(|(p, _)| *p).zip(&prepared).collect();
    let outcome = pairings_cancel(pairs);
    assert_eq!(prepared_pairings_cancel(&pairs_of_prepared), outcome);
    outcome
}

#[test]
fn pairings_are_bilinear_and_not_degenerate() {
    let mut numbers = Numbers(6);
    let (p, q) = (G1::generator(), G2::generator());
    assert!(!cancel(&[(p, q)]));
    assert!(cancel(&[]));
    assert!(cancel(&[(G1::infinity(), q), (p, G2::infinity())]));
    // More than the sixteen that share squarings, and one of each kind that is left out.
    let mut pairs = vec![(G1::infinity(), q), (p, G2::infinity())];
    let mut total = Scalar::ZERO;
    for _ in 0..20 {
        let (a, b) = (scalar(&mut numbers), scalar(&mut numbers));
        pairs.push((p.to_sum().power(&a).to_affine(), q.to_sum().power(&b).to_affine()));
        total = total + a * b;
    }
    pairs.push((p.to_sum().power(&total).to_affine().negated(), q));
    assert!(cancel(&pairs));
    pairs[10].0 = p.to_sum().power(&Scalar::from(5)).to_affine();
    assert!(!cancel(&pairs));
}
