//! Finite differences with three or more servers: no assumption, no hint, no state. The more
//! servers there are, the fewer points each of them reads.
//!
//! The records are the coefficients of a polynomial in m variables over the field of q elements, q
//! a prime of at least the number of servers s. Each record has a word of weight D, and its
//! coefficient belongs to the product of that word's variables:
//!
//! `F(z) = Σ_i record_i · Π_{j ∈ supp(x_i)} z_j`
//!
//! A record has many *symbols* (elements of the field), so F is really many polynomials, all
//! evaluated at the same points. Each server holds the truth table of F, one *entry* for each of
//! the q^m points ([`encode`]). To learn coefficient x, the client draws r uniform in F_q^m, and
//! asks server b, which is 0 to s − 1, about the point `z_b = r + b·x`. The server returns the
//! entries at `z_b + 1_U` for all sets U of at most K = ⌊D/s⌋ variables.
//!
//! **Why that is enough.** On the line through r in the direction of x, `g(t) = F(r + t·x)` has
//! degree D. Its highest coefficient is the record: a product gives the power t^D only if all its D
//! variables are those of x. F has degree 1 in each variable, so differences are derivatives. With
//! Hasse derivatives (which, unlike ordinary ones, do not vanish when their order reaches q),
//!
//! `g^[k](b) = Σ_{T ⊆ supp(x), |T| = k} Σ_{U ⊆ T} (−1)^{k − |U|} · F(z_b + 1_U)`
//!
//! Values and derivatives up to order K at s different points are s·(K + 1) ≥ D + 1 conditions,
//! which Hermite interpolation solves for the coefficient of t^D, over any field with s elements.
//! Each U of u variables is in C(D − u, k − u) sets T. So the record is a fixed combination of the
//! entries with U ⊆ supp(x). Its coefficients, one for each server and each size of U, are computed
//! once.
//!
//! **Who learns what.** Each server learns that a query was made, and when. It learns exactly
//! nothing of the index, whatever it can compute. For fixed b and x, the map r ↦ r + b·x is a
//! bijection of F_q^m, so the point that a server sees is uniform for every index. (What remains is
//! the bias of [`SecretRng::below`](privet_core::SecretRng::below), under q·2^-128 for each
//! coordinate, and the security of the generator behind it.) **Any two servers that share their
//! queries know the index**: the difference of their points is a multiple of x. All servers must
//! hold the same table in the same epoch, or every answer is noise. The client learns the record.
//!
//! A server that answers wrongly makes the client recover wrong bytes, and the client does not
//! notice. It reports no error even if the symbols are not those of any record. Whether they are
//! can depend on the index, because altering an entry that the index does not use has no effect. A
//! client that failed would show the server whether its change had an effect.
//!
//! **What it costs**, with t symbols to a record, packed p to a byte, that is `entry_len = ⌈t/p⌉`:
//!
//! | | bytes | work |
//! |---|---|---|
//! | truth table, once, each server | q^m · entry_len | about (q − 1)/(q − 2) additions of a packed byte for each byte of it |
//! | query, client | 8 up to each server | 2·m words of randomness |
//! | answer, each server | Σ_{k ≤ K} C(m, k) · entry_len down | as many scattered reads |
//! | recover, client | – | s · Σ_{k ≤ K} C(D, k) entries added up |
//! | edits, each server | – | all points are copied, and for each record that changes a share of ((q−1)/q)^D of them added to; or all computed anew, if that takes less: from a few edits on |
//!
//! | q | p | t for 16 bytes | entry_len for 1, 16, 32 bytes |
//! |---|---|---|---|
//! | 3 | 5 | 81 | 2, 17, 33 |
//! | 5 | 3 | 56 | 2, 19, 38 |
//! | 7 | 2 | 46 | 2, 23, 46 |
//! | 11 | 2 | 38 | 2, 19, 38 |
//! | 13 | 2 | 35 | 2, 18, 35 |
//!
//! **From paper to function** (Henzinger, Ragavan: *Two-Server Private Information Retrieval in
//! Sublinear Time and Quasilinear Space*, EUROCRYPT 2026, carried over to more servers):
//!
//! | | here |
//! |---|---|
//! | preprocessing of the table | [`encode`] |
//! | query, recovery | [`ManyServersClient`]'s [`StatelessClient`](privet_schemes::contract::StatelessClient) |
//! | answer | [`ManyServersServer`]'s [`Answerer::answer`](privet_schemes::contract::Answerer::answer) |

mod client;
mod descriptor;
mod encoding;
mod field;
mod messages;
mod params;
mod recovery;
mod server;
#[cfg(test)]
mod tests;
mod update;

pub use client::{ManyServersClient, ManyServersPending};
pub use descriptor::SERVERS;
pub use encoding::{encode, write_points};
pub use field::{FEWEST_SERVERS, FIELDS, least_field};
pub use messages::{ManyServersAnswer, ManyServersQuery};
pub use params::ManyServersParameters;
pub use server::{ManyServersServer, ManyServersSetup};

use privet_schemes::SchemeId;
use privet_schemes::contract::{Offline, Scheme};
use privet_schemes::offline::OfflinePhase;

/// The scheme's types, without a state.
pub struct FiniteDifferencesMany;

impl Scheme for FiniteDifferencesMany {
    const ID: SchemeId = SchemeId::named("finite-differences-many");
    type Parameters = ManyServersParameters;
    type Query = ManyServersQuery;
    type Answer = ManyServersAnswer;

    fn servers(parameters: &ManyServersParameters) -> usize {
        parameters.servers() as usize
    }
}

impl Offline for FiniteDifferencesMany {
    fn offline_phase(_parameters: &ManyServersParameters) -> OfflinePhase {
        OfflinePhase::Nothing
    }
}
