//! The server: the truth table, of which each query reads a ball.

use super::{
    FiniteDifferencesMany, ManyServersAnswer, ManyServersParameters, ManyServersQuery, encode,
};
use crate::contract::{Answerer, Role, SchemeOf};
use crate::finite_differences::points::{Points, copy_of, room_for};
use privet_core::{Result, TableIdentity, TableView};
use privet_kernels::Kernels;
use privet_kernels::memory::HugeBuffer;
use zeroize::Zeroizing;

/// How many entries are read at a time: enough that reads overlap, and few enough that their positions stay in cache.
const BATCH: usize = 4096;

/// Of so many entries one is looked for, to see whether they are in memory.
const SAMPLED: usize = 128;

/// The records of a table, and nothing computed from them yet.
pub struct ManyServersSetup {
    parameters: ManyServersParameters,
    identity: TableIdentity,
    records: HugeBuffer<u8>,
    kernels: Kernels,
    threads: usize,
}

/// The truth table of a polynomial, laid out for answering.
pub struct ManyServersServer {
    parameters: ManyServersParameters,
    pub(super) points: Points,
    /// How many points there are between neighbours in each variable: q^j.
    strides: Vec<u64>,
    pub(super) kernels: Kernels,
}

impl ManyServersSetup {
    /// Copies `table`; the source can be dropped. `threads` of them compute the points.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `parameters` belong to a table of another shape,
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the memory cannot be had.
    pub fn new(
        parameters: ManyServersParameters,
        table: TableView<'_>,
        kernels: Kernels,
        threads: usize,
    ) -> Result<Self> {
        let records = copy_of(table.bytes_for(parameters.shape())?)?;
        Ok(Self { parameters, identity: table.identity(), records, kernels, threads })
    }

    /// The server. Computes all points, of which `progress` hears.
    ///
    /// # Errors
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the memory cannot be had.
    pub fn finish(self, progress: &(dyn Fn(f64) + Sync)) -> Result<ManyServersServer> {
        let Self { parameters, identity, records, kernels, threads } = self;
        let mut points = room_for(parameters.points_bytes())?;
        let table = TableView::new(identity, &records)?;
        encode(&parameters, table, &mut points, threads, progress)?;
        drop(records);
        ManyServersServer::new(parameters, points.into(), kernels)
    }
}

impl ManyServersServer {
    /// A server of the points that [`encode`] computed.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) unless `points` is of [`points_bytes`](ManyServersParameters::points_bytes).
    pub fn new(
        parameters: ManyServersParameters,
        points: Points,
        kernels: Kernels,
    ) -> Result<Self> {
        points.check_len(parameters.points_bytes())?;
        let field = u64::from(parameters.field());
        let strides = (0..parameters.variables()).map(|variable| field.pow(variable)).collect();
        Ok(Self { parameters, points, strides, kernels })
    }

    /// How far it is from a point to the next one in each variable. A coordinate of q − 1 goes round to 0, which is back: modulo 2^64.
    fn steps(&self, point: u64) -> Vec<u64> {
        let field = u64::from(self.parameters.field());
        let step = |stride: &u64| match point / stride % field {
            last if last == field - 1 => (last * stride).wrapping_neg(),
            _ => *stride,
        };
        self.strides.iter().map(step).collect()
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

impl Answerer for ManyServersServer {
    const SHARES_PASSES: bool = false;

    fn parameters(&self) -> &ManyServersParameters {
        &self.parameters
    }

    /// All servers do the same: which of them this is, the query need not say.
    fn answer(&self, _role: Role, queries: &[ManyServersQuery]) -> Vec<ManyServersAnswer> {
        queries.iter().map(|query| self.answer_one(query)).collect()
    }

    fn resident_bytes(&self) -> u64 {
        self.points.resident_bytes()
    }

    fn huge_page_bytes(&self) -> Option<u64> {
        self.points.huge_page_bytes()
    }

    fn held(&self) -> Vec<&[u8]> {
        vec![&self.points]
    }

    fn check_held(&self) -> Result<()> {
        self.points.check_unchanged()
    }
}

impl SchemeOf for ManyServersServer {
    type Scheme = FiniteDifferencesMany;
}
