//! How many parts a key map has, and where values are cut.
//!
//! With one part a record is at least as wide as the longest value that the stash need not hold:
//! *V* bytes, say. With *p* parts it need only be *V*/*p* wide, and the hint of the single-server
//! schemes is smaller by as much. The answers to one lookup take about *V* bytes in either case.
//! But queries are *p* times as many, and so is what a server adds up for them, and a client with
//! single-use hints uses *p* of them.
//!
//! So unless the user says how many, there is one, and more are not even considered while *V* is
//! below √*E*, for *E* bytes of entries, or 4 KiB: what is gained below is little. Beyond, parts
//! are doubled, up to [`MOST_PARTS`], as long as each doubling saves a quarter of the cost that
//! `placement.rs` states.
//!
//! Pieces have *V*/*p* bytes, so that *V* is just what the parts can hold, but no value is cut that
//! takes less than a quarter of √*E*, or than 128 bytes: cutting costs 9 to 18 bytes for each
//! piece. A value longer than *V* is cut into pieces that are longer, and they go to the stash if
//! the records are not wide enough for them.

use super::entry::entry_len;
use super::packing::{PackOptions, Pairs, hash_all, payload_lens};
use super::pieces::{MOST_PARTS, Parts};
use super::placement::{Plan, StashLimits};
use privet_core::PublicSeed;

/// No records narrower than this are divided.
const WIDE: u64 = 4096;

/// No value shorter than this is cut.
const SHORTEST_CUT: usize = 128;

/// What a doubling must leave of the cost, at most.
const LEFT_BY_DOUBLING: f64 = 0.75;

/// What a table would be with one part.
pub(super) struct Undivided {
    /// How wide its records would be, about.
    pub(super) record_len: u64,
}

/// The parts for these pairs, and what they are chosen over: nothing if the number was given, or is
/// one.
pub(super) fn choose<P: Pairs + ?Sized>(
    options: &PackOptions,
    pairs: &P,
    seed: PublicSeed,
) -> (Parts, Option<Undivided>) {
    let whole = StashLimits::of(payload_lens(pairs, Parts::ONE));
    let entry_bytes: u64 = payload_lens(pairs, Parts::ONE).map(entry_len).sum();
    let root = (entry_bytes as f64).sqrt();
    let cut = |number: u8| {
        let shortest = SHORTEST_CUT.max((root / 4.0) as usize);
        let piece_len = whole.longest_in_buckets.div_ceil(number.into()).max(shortest);
        // There is no length to cut at where there is one part.
        Parts::new(number, piece_len as u32).unwrap_or(Parts::ONE)
    };
    if let Some(number) = options.parts {
        return (cut(number), None);
    }
    if whole.narrowest_bucket() <= WIDE.max(root as u64) {
        return (Parts::ONE, None);
    }
    let rehearse = |parts: Parts| {
        let limits = StashLimits::of(payload_lens(pairs, parts));
        let items = hash_all(pairs, parts, seed).ok()?;
        Some(Plan::by_rehearsal(options.kind, parts.number(), &items, &limits))
    };
    let Some(undivided) = rehearse(Parts::ONE) else { return (Parts::ONE, None) };
    let (mut chosen, mut cost) = (Parts::ONE, undivided.hoped_cost());
    for number in (1..=MOST_PARTS.ilog2()).map(|doublings| 1 << doublings) {
        let Some(plan) = rehearse(cut(number)) else { break };
        if plan.hoped_cost() > cost * LEFT_BY_DOUBLING {
            break;
        }
        (chosen, cost) = (cut(number), plan.hoped_cost());
    }
    let undivided = (chosen != Parts::ONE).then_some(Undivided { record_len: undivided.width });
    (chosen, undivided)
}
