//! Pairings (the optimal ate pairing).

use super::{G1, G2};
use blst::{blst_fp, blst_fp6, blst_fp12};

/// Whether the product of the pairings e(P, Q) of all pairs is one. Every equation between products
/// of pairings can be written in this form. Costs a Miller loop for each pair, where sixteen pairs
/// share their squarings, and one final exponentiation.
pub fn pairings_cancel(pairs: &[(G1, G2)]) -> bool {
    // The pairing with infinity is one. The loop below works only for points that have coordinates.
    let finite = pairs.iter().filter(|(p, q)| !p.is_infinity() && !q.is_infinity());
    let (first, second): (Vec<G1>, Vec<G2>) = finite.copied().unzip();
    if first.is_empty() {
        return true;
    }
    let first_list = [first.as_ptr().cast(), std::ptr::null()];
    let second_list = [second.as_ptr().cast(), std::ptr::null()];
    let mut product = blst_fp12::default();
    let mut result = blst_fp12::default();
    // SAFETY: the lists say, in the way of `blst`, that the points lie one behind the other; there
    // are as many of both as is said, at least one, and the point types are transparent. The other
    // functions read one initialised number and write one or none.
    unsafe {
        blst::blst_miller_loop_n(
            &mut product,
            second_list.as_ptr(),
            first_list.as_ptr(),
            first.len(),
        );
        blst::blst_final_exp(&mut result, &product);
        blst::blst_fp12_is_one(&result)
    }
}

/// Line functions of a Miller loop: 63 doublings and 5 additions.
const LINES: usize = 68;

/// The number of doublings after each addition: from the bits of the curve's parameter,
/// 0xd201000000010000, after the first.
const DOUBLINGS: [usize; 5] = [2, 3, 9, 32, 16];

/// A point of the second group with the coefficients of its Miller loop's lines, 19 KiB, for points
/// that are paired repeatedly. This saves more than a third of the loop.
pub struct PreparedG2 {
    lines: Box<[blst_fp6; LINES]>,
    is_infinity: bool,
}

impl PreparedG2 {
    /// Computes the lines.
    pub fn new(point: &G2) -> Self {
        let mut lines = Box::new([blst_fp6::default(); LINES]);
        // SAFETY: reads one initialised point and writes 68 elements.
        unsafe { blst::blst_precompute_lines(lines.as_mut_ptr(), &point.0) };
        Self { lines, is_infinity: point.is_infinity() }
    }
}

/// [`pairings_cancel`] with prepared points. All pairs share the squarings.
pub fn prepared_pairings_cancel(pairs: &[(G1, &PreparedG2)]) -> bool {
    let finite = pairs.iter().filter(|(p, q)| !p.is_infinity() && !q.is_infinity);
    let finite: Vec<(Coordinates, &PreparedG2)> =
        finite.map(|(p, q)| (Coordinates::new(p), *q)).collect();
    // SAFETY: the function returns the address of a constant, one.
    let mut product = unsafe { *blst::blst_fp12_one() };
    let multiply_lines = |product: &mut blst_fp12, place: usize| {
        for (coordinates, prepared) in &finite {
            coordinates.multiply_line(product, &prepared.lines[place]);
        }
    };
    multiply_lines(&mut product, 0);
    let mut place = 1;
    for doublings in DOUBLINGS {
        multiply_lines(&mut product, place);
        place += 1;
        for _ in 0..doublings {
            let before = product;
            // SAFETY: reads one initialised number and writes another.
            unsafe { blst::blst_fp12_sqr(&mut product, &before) };
            multiply_lines(&mut product, place);
            place += 1;
        }
    }
    let mut result = blst_fp12::default();
    // SAFETY: change one initialised number, read one and write another, and read one.
    unsafe {
        // The curve's parameter is negative.
        blst::blst_fp12_conjugate(&mut product);
        blst::blst_final_exp(&mut result, &product);
        blst::blst_fp12_is_one(&result)
    }
}

/// The coordinates at which a line is evaluated: −2x and 2y of a point of the first group.
struct Coordinates {
    x: blst_fp,
    y: blst_fp,
}

impl Coordinates {
    fn new(point: &G1) -> Self {
        let mut out = Self { x: blst_fp::default(), y: blst_fp::default() };
        // SAFETY: the functions read initialised numbers and write one that is not among them.
        unsafe {
            blst::blst_fp_add(&mut out.x, &point.0.x, &point.0.x);
            blst::blst_fp_add(&mut out.y, &point.0.y, &point.0.y);
            let doubled = out.x;
            blst::blst_fp_cneg(&mut out.x, &doubled, true);
        }
        out
    }

    /// Multiplies `product` by a line through these coordinates.
    fn multiply_line(&self, product: &mut blst_fp12, line: &blst_fp6) {
        let mut evaluated = *line;
        let before = *product;
        // SAFETY: the functions read initialised numbers and write one that is not among them.
        unsafe {
            for (coefficient, coordinate) in [(1, &self.x), (2, &self.y)] {
                for part in 0..2 {
                    blst::blst_fp_mul(
                        &mut evaluated.fp2[coefficient].fp[part],
                        &line.fp2[coefficient].fp[part],
                        coordinate,
                    );
                }
            }
            blst::blst_fp12_mul_by_xy00z0(product, &before, &evaluated);
        }
    }
}
