//! The server: the entries around a point.

use super::points::{self, Points};
use super::{
    FiniteDifferences, FiniteDifferencesAnswer, FiniteDifferencesParameters,
    FiniteDifferencesQuery, encoding,
};
use crate::contract::{Answerer, Role, SchemeOf};
use privet_core::combinations::Ball;
use privet_core::{Result, TableView};
use privet_kernels::Kernels;
use privet_kernels::line_reads::{LineBits, LineBytes, LineQuery, LineReads, LineStep};
use privet_kernels::memory::HugeBuffer;
use zeroize::Zeroizing;

/// Positions that are gathered at a time where records are not read by lines: some tens of kilobytes of them.
const POSITIONS: usize = 4096;

/// The records of a table, and nothing computed from them yet.
pub struct FiniteDifferencesSetup {
    parameters: FiniteDifferencesParameters,
    records: HugeBuffer<u8>,
    kernels: Kernels,
    threads: usize,
}

/// The points of a table.
pub struct FiniteDifferencesServer {
    parameters: FiniteDifferencesParameters,
    pub(super) points: Points,
    reads: Reads,
    pub(super) kernels: Kernels,
}

/// How the points around another are read.
enum Reads {
    /// Several lie in one cache line.
    Bytes(LineReads<LineBytes>),
    /// The same, of single bits.
    Bits(LineReads<LineBits>),
    /// Each has lines of its own, or begins anywhere within one.
    Records,
}

impl FiniteDifferencesSetup {
    /// Copies `table`; the source can be dropped. `threads` of them work on the transform.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `parameters` belong to a table of another shape,
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the memory cannot be had.
    pub fn new(
        parameters: FiniteDifferencesParameters,
        table: TableView<'_>,
        kernels: Kernels,
        threads: usize,
    ) -> Result<Self> {
        let records = points::copy_of(table.bytes_for(parameters.shape())?)?;
        Ok(Self { parameters, records, kernels, threads })
    }

    /// The server. Computes all points, of which `progress` hears.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if records should be single bits and one is not,
    /// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the memory cannot be had.
    pub fn finish(self, progress: &(dyn Fn(f64) + Sync)) -> Result<FiniteDifferencesServer> {
        let Self { parameters, records, kernels, threads } = self;
        let points = encoding::encode(&parameters, &records, kernels, threads, progress)?;
        FiniteDifferencesServer::new(parameters, points.into(), kernels)
    }
}

impl Reads {
    fn new(parameters: &FiniteDifferencesParameters) -> Self {
        let (ball, in_line) = (parameters.ball(), parameters.variables_in_line());
        if parameters.one_bit() {
            return Self::Bits(by_line(ball, in_line, |low| {
                let mut mask = [0u64; 8];
                for place in low {
                    mask[(place / 64) as usize] |= 1 << (place % 64);
                }
                LineBits::new(mask)
            }));
        }
        if in_line == 0 {
            return Self::Records;
        }
        let record_len = parameters.shape().record_len();
        Self::Bytes(by_line(ball, in_line, |low| {
            let places = low.flat_map(|place| place * record_len..(place + 1) * record_len);
            LineBytes::new(&places.map(|place| place as u8).collect::<Vec<_>>())
        }))
    }
}

/// The lines of a ball in ascending order, of which each holds the points that differ in the lowest `in_line` variables. A line that differs in `w` of the others has the points of a
/// smaller ball, with radius K − w: that is its class, and `class` says what it takes.
fn by_line<C: privet_kernels::line_reads::LineClass>(
    ball: &Ball,
    in_line: u32,
    class: impl Fn(&mut dyn Iterator<Item = u64>) -> C,
) -> LineReads<C> {
    let low = in_line.min(ball.variables());
    let high = ball.variables() - low;
    // Fewer variables than a radius allow for no more than all of them.
    let words = |variables: u32, radius: u32| Ball::new(variables, radius.min(variables));
    let classes = (0..=ball.radius().min(high)).filter_map(|weight| {
        let mut inner = words(low, ball.radius() - weight).ok()?.words();
        Some(class(&mut inner))
    });
    let steps = words(high, ball.radius())
        .into_iter()
        .flat_map(|outer| outer.words())
        .map(|difference| LineStep { difference, class: difference.count_ones() as u8 });
    LineReads::new(steps, classes.collect())
}

/// Queries as the kernel takes them: the place of each point, whose entry is `scale` long, beside the place for its answer.
fn asked<'a>(
    queries: &[FiniteDifferencesQuery],
    scale: u64,
    entries: &'a mut [Zeroizing<Vec<u8>>],
) -> Vec<LineQuery<'a>> {
    let asked = queries.iter().zip(entries);
    asked.map(|(query, out)| LineQuery { first: *query.point * scale, out }).collect()
}

impl Answerer for FiniteDifferencesServer {
    // Queries that are there anyway are answered side by side, which takes a fifth less; that is not worth a wait.
    const SHARES_PASSES: bool = false;

    fn parameters(&self) -> &FiniteDifferencesParameters {
        &self.parameters
    }

    /// Both servers do the same.
    fn answer(
        &self,
        _role: Role,
        queries: &[FiniteDifferencesQuery],
    ) -> Vec<FiniteDifferencesAnswer> {
        let record_len = self.parameters.shape().record_len();
        let len = self.parameters.answer_bytes() as usize;
        for query in queries {
            let place = |difference: u64| {
                let point = *query.point ^ difference;
                match self.parameters.one_bit() {
                    true => point / 8..point / 8 + 1,
                    false => point * record_len..(point + 1) * record_len,
                }
            };
            let neighbours = (0..self.parameters.variables()).map(|variable| 1 << variable);
            self.points.expect(neighbours.map(place), self.parameters.ball().words().map(place));
        }
        let mut entries = vec![Zeroizing::new(vec![0u8; len]); queries.len()];
        let inside = match &self.reads {
            Reads::Bits(reads) => self.kernels.gather_line_bits(
                &self.points,
                reads,
                &mut asked(queries, 1, &mut entries),
            ),
            Reads::Bytes(reads) => self.kernels.gather_line_bytes(
                &self.points,
                reads,
                &mut asked(queries, record_len, &mut entries),
            ),
            Reads::Records => queries
                .iter()
                .zip(&mut entries)
                .try_for_each(|(query, out)| self.gather(*query.point, out)),
        };
        // A query's point has no more bits than there are variables, and so have the differences.
        assert!(inside.is_ok(), "all points around a point are points");
        entries.into_iter().map(|entries| FiniteDifferencesAnswer { entries }).collect()
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

impl FiniteDifferencesServer {
    /// A server of points that were computed before.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) unless there are as many as `parameters` say.
    pub fn new(
        parameters: FiniteDifferencesParameters,
        points: Points,
        kernels: Kernels,
    ) -> Result<Self> {
        points.check_len(parameters.stored_bytes())?;
        let reads = Reads::new(&parameters);
        Ok(Self { parameters, points, reads, kernels })
    }

    fn gather(&self, point: u64, out: &mut [u8]) -> Result<(), privet_kernels::PositionOutOfRange> {
        let record_len = self.parameters.shape().record_len() as usize;
        let points = &self.points[..record_len << self.parameters.variables()];
        let mut differences = self.parameters.ball().words();
        for out in out.chunks_mut(POSITIONS * record_len) {
            let count = out.len() / record_len;
            let positions: Vec<u64> =
                differences.by_ref().take(count).map(|difference| point ^ difference).collect();
            self.kernels.gather_records(points, record_len, &positions, out)?;
        }
        Ok(())
    }
}

impl SchemeOf for FiniteDifferencesServer {
    type Scheme = FiniteDifferences;
}
