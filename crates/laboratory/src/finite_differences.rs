//! Finite differences: two servers that do not collude. Privacy rests on no assumption, and the
//! client has no state. The table is preprocessed so that a query reads a small part of it.
//!
//! The table is a polynomial over the field of two elements. It has m variables, and record i is
//! the coefficient of the product of those D variables that the i-th m-bit word of weight D names;
//! all other coefficients are zero. The servers hold the polynomial's value at all 2^m *points*.
//! For record i with word x, the client sends a uniform point r to one server and r ⊕ x to the
//! other. Each server returns the values at all points that differ from its own in at most K = (D −
//! 1)/2 variables. Both answers together contain the values at the 2^D points r ⊕ e with e ⊆ x. If
//! e has at most K variables, the point is in the first answer. Otherwise it is in the second, as
//! (r ⊕ x) ⊕ (x ∖ e). The sum of these values is the D-th finite difference in the directions of x.
//! For a polynomial of degree D, this is the coefficient: no other term is left.
//!
//! **Who learns what.** Each server learns that a query was made, and when. The point that it gets
//! is uniform over all 2^m points, whatever the index: r is drawn uniformly, and r ↦ r ⊕ x is a
//! bijection. That needs no assumption, and no computing power helps, except for the random
//! numbers: they come from ChaCha20 under a key from the operating system, and are as good as that.
//! **An attacker who sees both points knows the index.** A server that answers wrongly makes the
//! client recover wrong bytes; the client does not notice.
//!
//! **What it costs**, with B = Σ_{i ≤ K} C(m, i) points in the ball:
//!
//! | | bytes | work |
//! |---|---|---|
//! | preprocessing | 2^m · record_len of memory on each server | m/2 XORs for each point, in two or three passes over memory |
//! | query, client | ⌈m/8⌉ up to each server | – |
//! | answer, each server | B · record_len down | B random reads, of which those that differ in the lowest variables share cache lines |
//! | recover, client | – | 2^D XORs of records |
//! | edits, each server | – | all points are copied, and 2^(m−D) of them XORed for each record that changes; or all computed anew, if that takes less: from some hundred edits on |
//! | state | – | – |
//!
//! More variables allow a smaller degree. That takes more storage and fewer reads ([`costs`]).
//! Records of a single bit are packed, eight points to a byte.
//!
//! **From paper to function** (Henzinger, Ragavan: *Two-Server Private Information Retrieval in
//! Sublinear Time and Quasilinear Space*, EUROCRYPT 2026):
//!
//! | paper | here |
//! |---|---|
//! | encoding of indices, combinatorial numbers | [`crate::combinations::FixedWeight`] |
//! | preprocessing: evaluation at all points | [`PointsSetup::finish`], [`privet_laboratory_kernels::subset_sums`] |
//! | query, answer, recovery | [`FiniteDifferencesClient`], [`FiniteDifferencesServer`] |

mod client;
pub mod costs;
mod descriptor;
mod encoding;
pub mod many_servers;
mod messages;
mod params;
pub mod points;
pub(crate) mod points_server;
mod record_polynomial;
mod server;
#[cfg(test)]
mod tests;
mod update;

pub use client::{FiniteDifferencesClient, FiniteDifferencesPending};
pub use descriptor::{ANSWER_LIMIT, DEGREE, DIGITS, ONE_BIT, STORAGE_LIMIT, VARIABLES};
pub use encoding::write_points;
pub use messages::{FiniteDifferencesAnswer, FiniteDifferencesQuery};
pub use params::FiniteDifferencesParameters;
pub use points_server::{MakesPoints, PointsServer, PointsSetup, Way};
pub use record_polynomial::RecordPolynomial;
pub use server::{FiniteDifferencesServer, FiniteDifferencesSetup};

use privet_schemes::SchemeId;
use privet_schemes::contract::{Offline, Scheme};
use privet_schemes::offline::OfflinePhase;

/// The scheme's types, without a state.
pub struct FiniteDifferences;

impl Scheme for FiniteDifferences {
    const ID: SchemeId = SchemeId::named("finite-differences");
    type Parameters = FiniteDifferencesParameters;
    type Query = FiniteDifferencesQuery;
    type Answer = FiniteDifferencesAnswer;

    fn servers(_parameters: &FiniteDifferencesParameters) -> usize {
        2
    }
}

impl Offline for FiniteDifferences {
    fn offline_phase(_parameters: &FiniteDifferencesParameters) -> OfflinePhase {
        OfflinePhase::Nothing
    }
}
