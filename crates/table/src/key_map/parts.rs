//! How many parts a key map has, and where values are cut.
//!
//! With one part, a record is at least as wide as the longest value that the stash need not hold,
//! *V* bytes. With *p* parts it need only be *V*/*p* bytes wide, and the hint of the single-server
//! schemes is smaller by as much. The answers to one lookup take about *V* bytes in either case.
//! But there are *p* times as many queries, so a server adds up *p* times as much for them, and a
//! client with single-use hints uses *p* of them.
//!
//! So unless the user chooses the number, there is one part. More are considered only if *V* is
//! above both √*E*, for *E* bytes of entries, and 4 KiB: below that, little is gained. The number
//! is then doubled, up to [`MOST_PARTS`], as long as each doubling saves a quarter of the cost that
//! `placement.rs` states.
//!
//! Pieces have *V*/*p* bytes, so that the parts can just hold *V*. But a value is not cut if it has
//! less than a quarter of √*E* bytes, or less than 128: cutting costs 9 to 18 bytes for each piece.
//! A value longer than *V* is cut into longer pieces, which go to the stash if the records are not
//! wide enough for them.

use super::entry::entry_len;
use super::packing::{PackOptions, Pairs, hash_all, payload_lens};
use super::pieces::{MOST_PARTS, Parts};
use super::placement::{Plan, StashLimits};
use privet_core::PublicSeed;

/// No records narrower than this are divided.
const WIDE: u64 = 4096;

/// No value shorter than this is cut.
const SHORTEST_CUT: usize = 128;

/// A doubling must bring the cost down to this part of it, or lower.
const LEFT_BY_DOUBLING: f64 = 0.75;

/// What a table would be with one part.
pub(super) struct Undivided {
    /// About how wide its records would be.
    pub(super) record_len: u64,
}

/// The parts for these pairs, and what the table would be with one part: `None` if the number was
/// given, or is one.
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
        // With one part, values are not cut, so there is no such length.
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
        Some(Plan::by_rehearsal(options.kind, parts.number(), &items, &limits, 1.0))
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
