//! The server: the shuffled table in memory. A query reads one record of each chunk, or two.
//!
//! The table's id decides the order ([`privet_core::permutation`]), so it stays the same in all of
//! the table's epochs. The server keeps only the shuffled copy, and streams it to clients in that
//! order.

use super::{AnswerForm, PianoAnswer, PianoParameters, PianoQuery, PianoScheme};
use crate::contract::Message as _;
use crate::laid_out::zeroed;
use crate::record_server::{NamesRecords, RecordServer};
use privet_core::hints::xor;
use privet_core::{PIECE_BYTES, Result, TableSource};
use privet_kernels::memory::HugeBuffer;
use std::marker::PhantomData;

/// Records are copied in batches of about this many bytes: few enough to stay in the second-level
/// cache, and enough that prefetching seldom has to start again.
const BATCH_BYTES: usize = 1 << 16;

/// Records in shuffled order, padded with zero records to whole chunks.
pub type PianoServer<F> = RecordServer<PianoScheme<F>>;

impl<F: AnswerForm> NamesRecords for PianoScheme<F> {
    fn lay_out(parameters: &PianoParameters, table: TableSource<'_>) -> Result<HugeBuffer<u8>> {
        table.check_shape(parameters.shape())?;
        let record_len = parameters.record_len();
        let chunk_bytes = parameters.cut().partition_bytes();
        let mut records = zeroed(u64::from(parameters.chunks()) * chunk_bytes)?;
        let order = parameters.permutation().tabulate();
        let mut index = 0;
        table.pieces((PIECE_BYTES / record_len).max(1) * record_len, |_, piece| {
            for record in piece.chunks_exact(record_len) {
                let place = order.position_of(index) as usize * record_len;
                records[place..][..record_len].copy_from_slice(record);
                index += 1;
            }
            Ok(())
        })?;
        Ok(records)
    }

    fn answer(server: &PianoServer<F>, query: &PianoQuery<F>) -> PianoAnswer<F> {
        let parameters = &server.parameters;
        let mut parities = vec![0; PianoAnswer::<F>::encoded_len(parameters)];
        if F::REPLACES_THE_WANTED {
            let positions =
                (0..).zip(&query.offsets).map(|(chunk, at)| server.position(chunk, *at));
            let positions: Vec<u64> = positions.collect();
            let record_len = parameters.record_len();
            let gathered =
                server.kernels.gather_xor(&server.records, record_len, &positions, &mut parities);
            debug_assert!(gathered.is_ok(), "every chunk lies within the padded table");
        } else {
            server.possible_parities(&query.offsets, &mut parities);
        }
        PianoAnswer { parities, form: PhantomData }
    }

    fn streamed(server: &PianoServer<F>) -> Option<&[u8]> {
        Some(&server.records[..server.parameters.shape().bytes() as usize])
    }
}

impl<F: AnswerForm> PianoServer<F> {
    /// For each chunk, the XOR of the records that `offsets` name if that chunk is left out
    /// (`PossibleParities` of the paper). If chunk `k` is left out, offset `j` is for chunk `j` if
    /// `j < k`, and for chunk `j + 1` otherwise. So from one chunk to the next, a single offset
    /// moves to another chunk.
    fn possible_parities(&self, offsets: &[u16], parities: &mut [u8]) {
        let record_len = self.parameters.record_len();
        // Computes all relative to the first, which is the XOR of every offset's record in the
        // *next* chunk and so is known last.
        let mut first_parity = vec![0; record_len];
        let (mut parity, mut rest) = parities.split_at_mut(record_len);
        let batch = batch(2 * record_len);
        let mut found = vec![0; 2 * batch.min(offsets.len()) * record_len];
        for (number, offsets) in offsets.chunks(batch).enumerate() {
            let first = (number * batch) as u64;
            let positions = (first..).zip(offsets).map(|(chunk, offset)| {
                [self.position(chunk, *offset), self.position(chunk + 1, *offset)]
            });
            let positions: Vec<[u64; 2]> = positions.collect();
            let positions = positions.as_flattened();
            let found = &mut found[..positions.len() * record_len];
            let gathered = self.kernels.gather_records(&self.records, record_len, positions, found);
            debug_assert!(gathered.is_ok(), "every chunk lies within the padded table");
            for pair in found.chunks_exact(2 * record_len) {
                let (here, next) = pair.split_at(record_len);
                let (moved, after) = rest.split_at_mut(record_len);
                xor_of(moved, parity, here, next);
                xor(&mut first_parity, next);
                (parity, rest) = (moved, after);
            }
        }
        parities.chunks_exact_mut(record_len).for_each(|parity| xor(parity, &first_parity));
    }

    fn position(&self, chunk: u64, offset: u16) -> u64 {
        chunk << self.parameters.offset_bits() | u64::from(offset)
    }
}

/// How many pieces of `len` bytes make a batch.
fn batch(len: usize) -> usize {
    (BATCH_BYTES / len).max(1)
}

/// The XOR of three records, with each byte written once. In two steps, the second would wait for
/// the first to reach memory.
#[inline]
fn xor_of(out: &mut [u8], a: &[u8], b: &[u8], c: &[u8]) {
    let (pieces, rest) = out.as_chunks_mut();
    let ((a, last_a), (b, last_b), (c, last_c)) = (a.as_chunks(), b.as_chunks(), c.as_chunks());
    for (((piece, a), b), c) in pieces.iter_mut().zip(a).zip(b).zip(c) {
        let sum = u128::from_ne_bytes(*a) ^ u128::from_ne_bytes(*b) ^ u128::from_ne_bytes(*c);
        *piece = sum.to_ne_bytes();
    }
    for (((out, a), b), c) in rest.iter_mut().zip(last_a).zip(last_b).zip(last_c) {
        *out = a ^ b ^ c;
    }
}
