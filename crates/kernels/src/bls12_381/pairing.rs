//! Pairings.

use super::{G1, G2};
use blst::blst_fp12;

/// Whether the product of the pairings e(P, Q) of all pairs is one: the form that every equation between products of pairings can be given. Costs a Miller loop for each
/// pair, with squarings in common for sixteen, and one final exponentiation.
pub fn pairings_cancel(pairs: &[(G1, G2)]) -> bool {
    // The pairing with infinity is one, and the loop below is made for points that have coordinates.
    let finite = pairs.iter().filter(|(p, q)| !p.is_infinity() && !q.is_infinity());
    let (first, second): (Vec<G1>, Vec<G2>) = finite.copied().unzip();
    if first.is_empty() {
        return true;
    }
    let first_list = [first.as_ptr().cast(), std::ptr::null()];
    let second_list = [second.as_ptr().cast(), std::ptr::null()];
    let mut product = blst_fp12::default();
    let mut result = blst_fp12::default();
    // SAFETY: the lists say, in the way of `blst`, that the points lie one behind the other; there are as many of both as is said, at least one, and the point types are transparent.
    // The other functions read one initialised number and write one or none.
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
