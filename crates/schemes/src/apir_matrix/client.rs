//! The client: hides one row among random ones, and accepts only what leads to the root.
//!
//! No branch and no address depends on which row is wanted, or on the record's place in it.
//! Otherwise the time that recovery takes could reveal them to a server.

use super::tree::{NODE_LEN, RowTree};
use super::{ApirMatrix, ApirMatrixAnswer, ApirMatrixParameters, ApirMatrixQuery};
use crate::contract::{Record, SchemeOf, StatelessClient, of_all};
use crate::offline::{HintSource, check_len};
use privet_core::commit::merkle::Node;
use privet_core::{Error, RecordIndex, Result, Secret, SecretRng};
use privet_kernels::Kernels;
use zeroize::Zeroizing;

/// A client of one table in one epoch, with the root that its servers announced.
pub struct ApirMatrixClient {
    parameters: ApirMatrixParameters,
    root: Node,
    tree: RowTree,
}

/// What recovering one record needs: its row, and its place there.
pub struct ApirMatrixPending {
    pub(super) row: Secret<u64>,
    pub(super) place: Secret<u64>,
}

impl ApirMatrixClient {
    /// A client that reads the root from `hint`. The caller has checked that both servers announced
    /// the same root.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if the hint is not one hash, or cannot
    /// be read.
    pub fn new(
        parameters: ApirMatrixParameters,
        hint: &dyn HintSource,
        kernels: Kernels,
    ) -> Result<Self> {
        check_len("the hint", hint.len(), NODE_LEN as u64)?;
        let mut root = [0; NODE_LEN];
        hint.read_at(0, &mut root)?;
        let tree = RowTree::new(&parameters, kernels);
        Ok(Self { parameters, root, tree })
    }
}

impl StatelessClient for ApirMatrixClient {
    type Pending = ApirMatrixPending;

    /// # Panics
    /// If `index` was made for a larger table than this.
    fn query(
        &self,
        index: &RecordIndex,
        rng: &mut SecretRng,
    ) -> Result<(Vec<ApirMatrixQuery>, ApirMatrixPending)> {
        let (row, place) = self.parameters.place(index);
        let mut bits = Zeroizing::new(vec![0; self.parameters.query_len() as usize]);
        rng.fill(&mut bits);
        if let Some(last) = bits.last_mut() {
            *last &= ApirMatrixQuery::bits_of_last_byte(&self.parameters);
        }
        let mut flipped = bits.clone();
        for (number, byte) in (0..).zip(flipped.iter_mut()) {
            // A shift by a secret distance takes a time that depends on it on some machines.
            let bit = (0..8).fold(0, |bit, at| bit | (1 << at) & ones_if_equal(at, row % 8));
            *byte ^= bit & ones_if_equal(number, row / 8);
        }
        let queries = [bits, flipped].map(|bits| ApirMatrixQuery { bits });
        Ok((queries.into(), ApirMatrixPending { row: Secret::new(row), place: Secret::new(place) }))
    }

    /// # Errors
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if the row that the answers give does
    /// not lead to the root.
    fn recover(&self, pending: ApirMatrixPending, answers: &[ApirMatrixAnswer]) -> Result<Record> {
        let [one, other] = of_all("APIR-Matrix", answers)?;
        let sum = one.sum.iter().zip(other.sum.iter()).map(|(one, other)| one ^ other);
        let row = Zeroizing::new(sum.collect::<Vec<u8>>());
        let record_len = self.parameters.shape().record_len() as usize;
        let records = &row[..self.parameters.records_len() as usize];
        // Done whether the row passes or not, so that both cases take the same time.
        let record = selected(records, record_len, *pending.place.expose());
        if self.tree.root(*pending.row.expose(), &row) != self.root {
            return Err(Error::integrity(
                "one of the two servers sent a wrong answer: the two do not lead to a row of the \
                 table that both servers had announced, so nothing of them is used. That does not \
                 tell which server it was; do not ask these two again before their operators have \
                 found out",
            ));
        }
        Ok(record)
    }
}

/// The record at `place`. Reads all records, so that no address shows which.
fn selected(records: &[u8], record_len: usize, place: u64) -> Record {
    let mut selected = Zeroizing::new(vec![0; record_len]);
    for (number, record) in (0..).zip(records.chunks_exact(record_len)) {
        let mask = ones_if_equal(number, place);
        selected.iter_mut().zip(record).for_each(|(selected, byte)| *selected |= byte & mask);
    }
    selected
}

/// All bits set if two numbers are equal, and none if not.
fn ones_if_equal(one: u64, other: u64) -> u8 {
    let differ = one ^ other;
    // The sign of a number or of its opposite is set unless it is zero.
    let differ = (differ | differ.wrapping_neg()) >> 63;
    (differ as u8).wrapping_sub(1)
}

impl SchemeOf for ApirMatrixClient {
    type Scheme = ApirMatrix;
}
