//! The truth table of the polynomial that has the records as coefficients.
//!
//! A polynomial of degree 1 in a variable is `c₀ + z·c₁`, with polynomials c₀ and c₁ in the others.
//! For the highest variable, the truth table has q blocks. The first is the truth table of c₀; each
//! later block is the block before it plus the truth table of c₁. So both truth tables are computed
//! in the places of the first two blocks, and the others follow by addition. The same is done for
//! each of the two smaller polynomials. The words come up in ascending order, as the records do.
//!
//! Blocks that fit into the second-level cache are made there at once, in [`Planes`]. Then each
//! pass sums over several variables, h of them. It takes the same few columns of q^h rows through
//! the cache: before, 2^h of these rows hold coefficients; afterwards, all hold values. So of each
//! q^h bytes the pass reads 2^h and writes q^h, and earlier passes touch only (2/q)^h of the
//! points. Columns do not depend on each other, so threads share them.

use super::Encoding;
use super::planes::Planes;
use crate::finite_differences::encoding::beyond_memory::{
    self, LEAST_PART, Transform, is_place, place_of,
};
use crate::finite_differences::many_servers::ManyServersParameters;
use crate::stored_setup::SetupStore;
use privet_core::{Error, Result, TableView};
use privet_kernels::progress::ProgressReporter;
use privet_schemes::sharing::share;

/// Computes the truth table of the polynomial whose coefficients are the records of `table`, into
/// `points`, which it overwrites: the entry of point z stands at `Σ_j z_j · q^j` times
/// [`entry_len`](ManyServersParameters::entry_len). Up to `threads` threads work on it. `progress`
/// is called with the share done: it never falls, and the last is 1.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `parameters` belong to a table of another
/// shape, or `points` is not of [`points_bytes`](ManyServersParameters::points_bytes).
pub fn encode(
    parameters: &ManyServersParameters,
    table: TableView<'_>,
    points: &mut [u8],
    threads: usize,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<()> {
    let transform = FieldSums::new(parameters, table, threads, Sizes::OF_CACHES)?;
    if points.len() as u64 != parameters.points_bytes() {
        return Err(Error::api_misuse(format!(
            "the points take {} bytes, but there is room for {}",
            parameters.points_bytes(),
            points.len()
        )));
    }
    transform.fill(0, parameters.variables(), points, progress)
}

/// Computes all points of `table` and writes them to `store`, from byte 0 on:
/// [`points_bytes`](ManyServersParameters::points_bytes) in all. It takes `memory` bytes (at least
/// an entry, and q bytes), and about half a MiB more for each of the `threads` threads, which also
/// share reads and writes. If all points fit, each is written once. Otherwise the store is cut into
/// pieces of 1/q^h of the points. Pieces in which none of the h highest variables is more than 1, a
/// share of (2/q)^h, are written, read, and written again. The records are read once, in order,
/// without a copy. `progress` is called with the share done: it never falls, and the last is 1.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `parameters` belong to a table of another
/// shape, [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory;
/// and the store's errors.
pub fn write_points(
    parameters: &ManyServersParameters,
    table: TableView<'_>,
    threads: usize,
    memory: u64,
    store: &dyn SetupStore,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<()> {
    let transform = FieldSums::new(parameters, table, threads, Sizes::OF_CACHES)?;
    beyond_memory::write(&transform, memory, LEAST_PART, threads, store, progress)
}

/// What a thread works on at a time.
#[derive(Clone, Copy)]
pub(in crate::finite_differences::many_servers) struct Sizes {
    /// The most bytes of a block, unless an entry is longer, and of a tile.
    pub(in crate::finite_differences::many_servers) block: usize,
    /// The most rows of a tile, unless there are more elements in the field.
    pub(in crate::finite_differences::many_servers) rows: usize,
}

impl Sizes {
    /// With five symbols to a byte, a block's planes take 160 KiB, a part of a second-level cache.
    /// A tile's rows are some cache lines long, for every field.
    const OF_CACHES: Self = Self { block: 32 << 10, rows: 170 };
}

/// A truth table while it is computed.
pub(in crate::finite_differences::many_servers) struct FieldSums<'a> {
    parameters: &'a ManyServersParameters,
    encoding: Encoding,
    records: &'a [u8],
    threads: usize,
    sizes: Sizes,
    order: usize,
    entry_len: usize,
}

impl<'a> FieldSums<'a> {
    pub(in crate::finite_differences::many_servers) fn new(
        parameters: &'a ManyServersParameters,
        table: TableView<'a>,
        threads: usize,
        sizes: Sizes,
    ) -> Result<Self> {
        Ok(Self {
            parameters,
            encoding: Encoding::new(parameters),
            records: table.bytes_for(parameters.shape())?,
            threads,
            sizes,
            order: parameters.field() as usize,
            entry_len: parameters.entry_len(),
        })
    }

    /// The most variables that can be added to something of `len` bytes before it has more than
    /// `most` bytes.
    fn variables_up_to(&self, most: usize, len: usize) -> u32 {
        (most / len).checked_ilog(self.order).unwrap_or(0)
    }

    fn planes(&self, len: usize) -> Planes {
        Planes::new(self.parameters.packing(), len)
    }

    /// The records from the first word on whose variables from `low` on are those of `word`.
    fn records_from(&self, word: u64, low: u32) -> std::slice::ChunksExact<'a, u8> {
        let first = self.parameters.words().rank(word << low);
        let record_len = self.parameters.shape().record_len();
        let start = first.saturating_mul(record_len).min(self.records.len() as u64);
        self.records[start as usize..].chunks_exact(record_len as usize)
    }

    /// Writes to `block` a truth table in the lowest `low` variables. It is that of the coefficient
    /// of one product: the product of the other variables that `word` names.
    fn fill_block(&self, word: u64, low: u32, block: &mut [u8], planes: &mut Planes) {
        let mut records = self.records_from(word, low);
        let weight = self.parameters.degree().checked_sub(word.count_ones());
        let Some(weight) = weight.filter(|weight| *weight <= low && records.len() > 0) else {
            return block.fill(0);
        };
        if low == 0 {
            // An entry by itself, of any length.
            return records
                .next()
                .into_iter()
                .for_each(|record| self.encoding.write(record, block));
        }
        let mut expansion = Expansion {
            records,
            encoding: &self.encoding,
            order: self.order,
            entry: vec![0; self.entry_len],
            planes,
        };
        expansion.expand(0, block.len(), low, weight);
        planes.store(0, block);
    }

    /// Sums over all variables that number the rows, several in each pass.
    fn sum_over(
        &self,
        points: &mut [u8],
        mut row_len: usize,
        progress: &ProgressReporter<'_>,
    ) -> Result<()> {
        for variables in self.passes((points.len() / row_len).ilog(self.order)) {
            let rows = self.order.pow(variables);
            let columns = match self.sizes.block / rows {
                columns if columns > LINE => columns / LINE * LINE,
                columns => columns.max(1),
            };
            let groups = points
                .chunks_exact_mut(row_len * rows)
                .enumerate()
                .filter(|(number, _)| is_place(self.order as u64, *number as u64));
            let tiles = groups.flat_map(|(_, group)| {
                let mut rows: Vec<_> =
                    group.chunks_exact_mut(row_len).map(|row| row.chunks_mut(columns)).collect();
                std::iter::from_fn(move || {
                    rows.iter_mut().map(Iterator::next).collect::<Option<Vec<_>>>()
                })
            });
            let columns = columns.min(row_len);
            share(self.threads, tiles, || {
                let mut planes = self.planes(rows * columns);
                move |mut rows: Vec<&mut [u8]>| {
                    self.sum_tile(&mut rows, variables, &mut planes);
                    progress.add(rows.iter().map(|row| row.len() as u128).sum());
                    Ok(())
                }
            })?;
            row_len *= rows;
        }
        Ok(())
    }

    /// The variables of each pass: about equally many.
    fn passes(&self, variables: u32) -> impl Iterator<Item = u32> + use<> {
        let most = self.variables_up_to(self.sizes.rows, 1).max(1);
        let count = variables.div_ceil(most);
        (0..count).map(move |pass| (variables + pass) / count)
    }

    /// Sums some columns of q^variables rows.
    fn sum_tile(&self, rows: &mut [&mut [u8]], variables: u32, planes: &mut Planes) {
        let order = self.order as u64;
        let len = rows[0].len();
        for word in 0..1 << variables {
            let row = place_of(order, word) as usize;
            planes.load(row * len, rows[row]);
        }
        for variable in 0..variables {
            let block = len * self.order.pow(variable);
            for word in 0..1 << (variables - variable - 1) {
                planes.add_up(place_of(order, word) as usize * self.order * block, block);
            }
        }
        // The first one is unchanged.
        for (number, row) in rows.iter_mut().enumerate().skip(1) {
            planes.store(number * len, row);
        }
    }

    /// The work of summing over all variables that number the rows, in bytes.
    fn work(&self, len: u128, row_len: u128) -> u128 {
        let (order, mut row_len, mut work) = (self.order as u128, row_len, 0);
        let mut left = (len / row_len).ilog(order);
        for variables in self.passes(left) {
            row_len *= order.pow(variables);
            left -= variables;
            work += row_len << left;
        }
        work
    }
}

/// Bytes of a cache line.
const LINE: usize = 64;

impl Transform for FieldSums<'_> {
    fn order(&self) -> u64 {
        self.order as u64
    }

    fn variables(&self) -> u32 {
        self.parameters.variables()
    }

    fn entry_len(&self) -> u64 {
        self.entry_len as u64
    }

    fn fill(
        &self,
        word: u64,
        low: u32,
        piece: &mut [u8],
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<()> {
        let lowest = self.variables_up_to(self.sizes.block, self.entry_len).min(low);
        let block_len = self.entry_len * self.order.pow(lowest);
        let filled = (block_len as u128) << (low - lowest);
        let work = filled + self.work(piece.len() as u128, block_len as u128);
        let progress = ProgressReporter::new(work, progress);
        let words = word << (low - lowest)..(word + 1) << (low - lowest);
        let blocks = piece
            .chunks_exact_mut(block_len)
            .enumerate()
            .filter(|(number, _)| is_place(self.order as u64, *number as u64));
        share(self.threads, words.zip(blocks), || {
            let mut planes = self.planes(if lowest > 0 { block_len } else { 0 });
            let progress = &progress;
            move |(word, (_, block)): (u64, (usize, &mut [u8]))| {
                self.fill_block(word, lowest, block, &mut planes);
                progress.add(block.len() as u128);
                Ok(())
            }
        })?;
        self.sum_over(piece, block_len, &progress)
    }

    fn sum_rows(
        &self,
        rows: &mut [u8],
        row_len: usize,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<()> {
        let progress =
            ProgressReporter::new(self.work(rows.len() as u128, row_len as u128), progress);
        self.sum_over(rows, row_len, &progress)
    }
}

/// A block while it is computed in the cache.
struct Expansion<'a> {
    /// The records whose words have not come up yet.
    records: std::slice::ChunksExact<'a, u8>,
    encoding: &'a Encoding,
    order: usize,
    /// The last one of them, as an entry.
    entry: Vec<u8>,
    planes: &'a mut Planes,
}

impl Expansion<'_> {
    /// Writes a truth table to `len` bytes from byte `at` on. It is that of the polynomial in
    /// `variables` variables whose coefficients are the next records, one for each word of weight
    /// `weight`.
    fn expand(&mut self, at: usize, len: usize, variables: u32, weight: u32) {
        if weight > variables || self.records.len() == 0 {
            self.planes.clear(at, len);
            return;
        }
        if weight == 0 {
            // A constant: one record that depends on no variable.
            if let Some(record) = self.records.next() {
                self.encoding.write(record, &mut self.entry);
                self.planes.load(at, &self.entry);
                self.planes.repeat(at, self.entry.len(), len);
            }
            return;
        }
        let block = len / self.order;
        self.expand(at, block, variables - 1, weight);
        self.expand(at + block, block, variables - 1, weight - 1);
        self.planes.add_up(at, block);
    }
}
