//! Schemes for study: each is correct, tested and can be served, and none is advised to take first.
//!
//! A program that has them calls [`register`] when it starts. No crate of the product depends on
//! this one but the command and the package for Python, so whoever embeds a client or a server, or
//! builds for browsers, leaves these schemes out.
//!
//! | module | what it holds |
//! |---|---|
//! | [`combinations`] | words of given weight in ascending order, and Hamming balls |
//! | [`pointproofs`] | vector commitments: 48 bytes prove one record of each of many vectors, given a trusted reference string |
//! | [`stored_setup`] | points that were computed before a server starts |
//! | `measured` | what measurements and plans have to know of these schemes |
//! | [`tapir_pp`] | TAPIR with Pointproofs: two servers that do not collude, one of which may lie |
//! | [`finite_differences`] | two servers that do not collude; each reads a small part of a preprocessed table; privacy without an assumption; nothing kept |

pub mod combinations;
pub mod finite_differences;
mod measured;
pub mod pointproofs;
pub mod stored_setup;
pub mod tapir_pp;
#[cfg(test)]
mod tests;

use finite_differences::FiniteDifferences;
use finite_differences::many_servers::FiniteDifferencesMany;
use privet_schemes::SchemeId;
use privet_schemes::contract::Scheme;
use privet_schemes::registry::{self, Room};
use privet_schemes::tapir::Tapir;
use tapir_pp::PointproofsForm;

pub use measured::{is_in_browsers, point_products, zero_bit};
pub use tapir_pp::{completed, missing_string};

/// TAPIR with Pointproofs. For use after [`register`].
pub const TAPIR_PP: SchemeId = tapir_pp::ID;
/// Finite differences with two servers. For use after [`register`].
pub const FINITE_DIFFERENCES: SchemeId = FiniteDifferences::ID;
/// Finite differences with three or more servers. For use after [`register`].
pub const FINITE_DIFFERENCES_MANY: SchemeId = FiniteDifferencesMany::ID;

const ROOMS: &[Room] = &[
    Room::of::<Tapir<PointproofsForm>>(),
    Room::of::<FiniteDifferences>(),
    Room::of::<FiniteDifferencesMany>(),
];

/// Makes the schemes of this crate known to the registry. May be called again.
pub fn register() {
    registry::add_rooms(ROOMS);
}

/// All schemes, after [`register`].
pub fn all() -> impl Iterator<Item = SchemeId> + Clone {
    register();
    SchemeId::all()
}
