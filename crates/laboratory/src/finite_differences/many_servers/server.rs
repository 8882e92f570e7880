//! The server: a truth table. Each query reads a ball of it.

use super::update::{self, Patch};
use super::{
    FiniteDifferencesMany, ManyServersAnswer, ManyServersParameters, ManyServersQuery, encode,
    write_points,
};
use crate::finite_differences::points::room_for;
use crate::finite_differences::points_server::{MakesPoints, PointsServer, PointsSetup, Way};
use crate::stored_setup::SetupStore;
use privet_core::{Result, TableChanges, TableView};
use privet_kernels::memory::HugeBuffer;
use privet_schemes::registry::ServerOptions;
use zeroize::Zeroizing;

/// How many entries are read at a time: enough for reads to overlap, and few enough for their
/// positions to stay in the cache.
const BATCH: usize = 4096;

/// One entry of so many is checked, to see whether they are in memory.
const SAMPLED: usize = 128;

/// The records of a table, and nothing computed from them yet.
pub type ManyServersSetup = PointsSetup<FiniteDifferencesMany>;

/// The truth table of a polynomial, laid out for answering.
pub type ManyServersServer = PointsServer<FiniteDifferencesMany>;

impl ManyServersServer {
    /// The distance from a point to the next one in each variable. A coordinate of q − 1 goes round
    /// to 0; that distance is negative, modulo 2^64.
    fn steps(&self, point: u64) -> Vec<u64> {
        let field = u64::from(self.parameters.field());
        let step = |stride: &u64| match point / stride % field {
            last if last == field - 1 => (last * stride).wrapping_neg(),
            _ => *stride,
        };
        self.reads.iter().map(step).collect()
    }

    fn answer_one(&self, query: &ManyServersQuery) -> ManyServersAnswer {
        let (ball, entry_len) = (self.parameters.ball(), self.parameters.entry_len());
        let steps = self.steps(*query.point);
        let mut positions = ball.words().map(|word| {
            let (mut position, mut left) = (*query.point, word);
            while left != 0 {
                position = position.wrapping_add(steps[left.trailing_zeros() as usize]);
                left &= left - 1;
            }
            position
        });
        let mut entries = Zeroizing::new(vec![0; ball.count() as usize * entry_len]);
        for out in entries.chunks_mut(BATCH * entry_len) {
            let batch: Vec<u64> = positions.by_ref().take(out.len() / entry_len).collect();
            let len = entry_len as u64;
            let place = |place: &u64| place * len..(place + 1) * len;
            self.points.expect(batch.iter().step_by(SAMPLED).map(place), batch.iter().map(place));
            let gathered = self.kernels.gather_records(&self.points, entry_len, &batch, out);
            // Each coordinate stays in the field.
            assert!(gathered.is_ok(), "all points around a point are points");
        }
        ManyServersAnswer { entries }
    }
}

impl MakesPoints for FiniteDifferencesMany {
    /// How many points there are between neighbours in each variable: q^j.
    type Reads = Vec<u64>;

    fn reads(parameters: &ManyServersParameters) -> Vec<u64> {
        let field = u64::from(parameters.field());
        (0..parameters.variables()).map(|variable| field.pow(variable)).collect()
    }

    fn read(server: &ManyServersServer, queries: &[ManyServersQuery]) -> Vec<ManyServersAnswer> {
        queries.iter().map(|query| server.answer_one(query)).collect()
    }

    fn bytes(parameters: &ManyServersParameters) -> u64 {
        parameters.points_bytes()
    }

    fn compute(
        parameters: &ManyServersParameters,
        table: TableView<'_>,
        ServerOptions { threads, .. }: ServerOptions,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<HugeBuffer<u8>> {
        let mut points = room_for(parameters.points_bytes())?;
        encode(parameters, table, &mut points, threads, progress)?;
        Ok(points)
    }

    fn write(
        parameters: &ManyServersParameters,
        table: TableView<'_>,
        ServerOptions { threads, .. }: ServerOptions,
        memory: u64,
        store: &dyn SetupStore,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<()> {
        write_points(parameters, table, threads, memory, store, progress)
    }

    fn cheaper_way(parameters: &ManyServersParameters, changes: &TableChanges) -> Way {
        update::cheaper_way(parameters, changes.len())
    }

    fn patched(
        parameters: &ManyServersParameters,
        changes: &TableChanges,
        before: &[u8],
        threads: usize,
    ) -> Result<HugeBuffer<u8>> {
        Patch::new(parameters, changes).copied(before, threads)
    }
}
