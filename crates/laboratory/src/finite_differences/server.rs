//! The server: the entries around a point.

use super::points_server::{MakesPoints, PointsServer, PointsSetup, Way};
use super::update::{self, Patch};
use super::{
    FiniteDifferences, FiniteDifferencesAnswer, FiniteDifferencesParameters,
    FiniteDifferencesQuery, encoding, write_points,
};
use crate::combinations::Ball;
use crate::stored_setup::SetupStore;
use privet_core::{Result, TableChanges, TableView};
use privet_kernels::memory::HugeBuffer;
use privet_laboratory_kernels::line_reads::{
    LineBits, LineBytes, LineClass, LineQuery, LineReads, LineStep,
};
use privet_schemes::registry::ServerOptions;
use zeroize::Zeroizing;

/// The number of positions that are gathered at a time if records are not read by lines: some tens
/// of kilobytes.
const POSITIONS: usize = 4096;

/// The records of a table, and nothing computed from them yet.
pub type FiniteDifferencesSetup = PointsSetup<FiniteDifferences>;

/// The points of a table.
pub type FiniteDifferencesServer = PointsServer<FiniteDifferences>;

/// How the points around another are read.
pub enum Reads {
    /// Several lie in one cache line.
    Bytes(LineReads<LineBytes>),
    /// The same, of single bits.
    Bits(LineReads<LineBits>),
    /// Each has lines of its own, or begins anywhere within one.
    Records,
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

/// The lines of a ball in ascending order. Each line holds the points that differ in the lowest
/// `in_line` variables. A line that differs in `w` of the other variables has the points of a
/// smaller ball, with radius K − w: this is its class, and `class` makes it.
fn by_line<C: LineClass>(
    ball: &Ball,
    in_line: u32,
    class: impl Fn(&mut dyn Iterator<Item = u64>) -> C,
) -> LineReads<C> {
    let low = in_line.min(ball.variables());
    let high = ball.variables() - low;
    // A radius beyond the number of variables is the same as all of them.
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

/// Queries in the kernel's form: the place of each point, whose entry is `scale` long, and the
/// place for its answer.
fn asked<'a>(
    queries: &[FiniteDifferencesQuery],
    scale: u64,
    entries: &'a mut [Zeroizing<Vec<u8>>],
) -> Vec<LineQuery<'a>> {
    let asked = queries.iter().zip(entries);
    asked.map(|(query, out)| LineQuery { first: *query.point * scale, out }).collect()
}

impl MakesPoints for FiniteDifferences {
    type Reads = Reads;

    fn reads(parameters: &FiniteDifferencesParameters) -> Reads {
        Reads::new(parameters)
    }

    fn read(
        server: &FiniteDifferencesServer,
        queries: &[FiniteDifferencesQuery],
    ) -> Vec<FiniteDifferencesAnswer> {
        let record_len = server.parameters.shape().record_len();
        let len = server.parameters.answer_bytes() as usize;
        for query in queries {
            let place = |difference: u64| {
                let point = *query.point ^ difference;
                match server.parameters.one_bit() {
                    true => point / 8..point / 8 + 1,
                    false => point * record_len..(point + 1) * record_len,
                }
            };
            let neighbours = (0..server.parameters.variables()).map(|variable| 1 << variable);
            server
                .points
                .expect(neighbours.map(place), server.parameters.ball().words().map(place));
        }
        let mut entries = vec![Zeroizing::new(vec![0u8; len]); queries.len()];
        let inside = match &server.reads {
            Reads::Bits(reads) => {
                reads.gather(server.kernels, &server.points, &mut asked(queries, 1, &mut entries))
            }
            Reads::Bytes(reads) => reads.gather(
                server.kernels,
                &server.points,
                &mut asked(queries, record_len, &mut entries),
            ),
            Reads::Records => queries
                .iter()
                .zip(&mut entries)
                .try_for_each(|(query, out)| gather(server, *query.point, out)),
        };
        // The bits of a query's point, and of the differences, are variables only.
        assert!(inside.is_ok(), "all points around a point are points");
        entries.into_iter().map(|entries| FiniteDifferencesAnswer { entries }).collect()
    }

    fn bytes(parameters: &FiniteDifferencesParameters) -> u64 {
        parameters.stored_bytes()
    }

    fn compute(
        parameters: &FiniteDifferencesParameters,
        table: TableView<'_>,
        ServerOptions { kernels, threads }: ServerOptions,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<HugeBuffer<u8>> {
        let records = table.bytes_for(parameters.shape())?;
        encoding::encode(parameters, records, kernels, threads, progress)
    }

    fn write(
        parameters: &FiniteDifferencesParameters,
        table: TableView<'_>,
        ServerOptions { kernels, threads }: ServerOptions,
        memory: u64,
        store: &dyn SetupStore,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<()> {
        write_points(parameters, table, kernels, threads, memory, store, progress)
    }

    fn cheaper_way(parameters: &FiniteDifferencesParameters, changes: &TableChanges) -> Way {
        update::cheaper_way(parameters, changes)
    }

    fn patched(
        parameters: &FiniteDifferencesParameters,
        changes: &TableChanges,
        before: &[u8],
        threads: usize,
    ) -> Result<HugeBuffer<u8>> {
        Patch::new(parameters, changes)?.copied(before, threads)
    }
}

fn gather(
    server: &FiniteDifferencesServer,
    point: u64,
    out: &mut [u8],
) -> Result<(), privet_kernels::PositionOutOfRange> {
    let record_len = server.parameters.shape().record_len() as usize;
    let points = &server.points[..record_len << server.parameters.variables()];
    let mut differences = server.parameters.ball().words();
    for out in out.chunks_mut(POSITIONS * record_len) {
        let count = out.len() / record_len;
        let positions: Vec<u64> =
            differences.by_ref().take(count).map(|difference| point ^ difference).collect();
        server.kernels.gather_records(points, record_len, &positions, out)?;
    }
    Ok(())
}
