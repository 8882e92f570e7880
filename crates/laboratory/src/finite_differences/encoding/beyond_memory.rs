//! Computes points that need not fit into memory: in pieces, in a store that is read and written
//! again.
//!
//! The polynomial has degree 1 in each variable. So it is a polynomial in the *high* variables,
//! whose coefficients are polynomials in the *low* ones. There is one coefficient for each set of
//! high variables. Its points form rows: one row for each point of the high variables, and each row
//! has all points of the low ones. That gives two kinds of work, which both fit into the given
//! memory:
//!
//! ```text
//! pieces   the rows in which each high variable is 0 or 1 take the truth tables of the coefficients: q^low entries
//!          each, computed in memory, and written
//! columns  of all q^high rows, the same few bytes: those of the coefficients are read, summed over the high variables, and
//!          all are written
//! ```
//!
//! A column is read in as many parts as there are coefficients, and each part lies in another place
//! of the store. If memory is small compared with the points, these parts get short. Then the high
//! variables are taken in several groups, the lowest first. Each group makes longer rows from
//! shorter ones. With parts of 64 KiB and a memory of M bytes, one group is enough for points of up
//! to M²/64 KiB (1 TiB for M = 256 MiB). Each further group allows M/64 KiB times as much.
//!
//! Both kinds of work are the transform in memory: once its entries are points, and once they are
//! columns. The forms with two servers and with many share this module; each brings the arithmetic
//! of its field.

use crate::finite_differences::points::room_to_compute;
use crate::stored_setup::SetupStore;
use privet_core::Result;
use privet_kernels::progress::ProgressReporter;
use privet_schemes::sharing::share;

/// The least length of a part of a column, if memory allows it. Reads of this length come close to
/// a disk's best speed.
pub(in crate::finite_differences) const LEAST_PART: u64 = 64 << 10;

/// How many bytes of a piece one thread writes at a time.
const PART: usize = 1 << 20;

/// Parts of columns begin at multiples of a page, if rows do.
const PAGE: u64 = 4 << 10;

/// Computes points in memory. The work on a store consists of such steps. Points are numbered `Σ_j
/// z_j · q^j`.
pub(in crate::finite_differences) trait Transform: Sync {
    /// Elements of the field, q.
    fn order(&self) -> u64;

    /// The number of variables by which the store is cut: it has q^variables entries.
    fn variables(&self) -> u32;

    /// Size of an entry, in bytes.
    fn entry_len(&self) -> u64;

    /// Overwrites `piece` with a truth table in the lowest `low` variables. It is that of the
    /// coefficient of one product: the product of the other variables that `word` names.
    fn fill(
        &self,
        word: u64,
        low: u32,
        piece: &mut [u8],
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<()>;

    /// Turns rows of coefficients into rows of values. The rows have `row_len` bytes, and their
    /// number is a power of q. Before, those that [`place_of`] names hold coefficients.
    fn sum_rows(
        &self,
        rows: &mut [u8],
        row_len: usize,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<()>;
}

/// The number of the point, or row, at which the variables of `word` are 1 and all others 0.
pub(in crate::finite_differences) fn place_of(order: u64, word: u64) -> u64 {
    (0..64 - word.leading_zeros())
        .rev()
        .fold(0, |place, variable| place * order + (word >> variable & 1))
}

/// Whether no variable of a point, or row, is more than 1: it is some word's [`place_of`].
pub(in crate::finite_differences) fn is_place(order: u64, mut number: u64) -> bool {
    while number > 0 {
        if number % order > 1 {
            return false;
        }
        number /= order;
    }
    true
}

/// How the work is cut.
pub(super) struct Cut {
    order: u64,
    variables: u32,
    /// Variables of a piece, and its bytes.
    low: u32,
    pub(super) piece_len: u64,
    /// High variables in groups, lowest first.
    pub(super) groups: Vec<Group>,
}

/// Variables that are summed over together.
pub(super) struct Group {
    variables: u32,
    /// The length of a row of this group.
    pub(super) row_len: u64,
    rows: u64,
    /// How many bytes of each row are in memory at once.
    pub(super) width: u64,
}

impl Cut {
    pub(super) fn new(transform: &dyn Transform, memory: u64, least_part: u64) -> Self {
        let (order, variables) = (transform.order(), transform.variables());
        // An entry, or one byte of a column.
        let memory = memory.max(transform.entry_len()).max(order);
        let (mut low, mut piece_len) = (0, transform.entry_len());
        while low < variables && piece_len <= memory / order {
            (low, piece_len) = (low + 1, piece_len * order);
        }
        let most = (memory / least_part.max(1)).checked_ilog(order).unwrap_or(0).max(1);
        let count = (variables - low).div_ceil(most);
        let mut row_len = piece_len;
        let groups = (0..count).map(|group| {
            let variables = (variables - low + group) / count;
            let rows = order.pow(variables);
            let width = match memory / rows {
                width if width > PAGE => width / PAGE * PAGE,
                width => width,
            };
            let group = Group { variables, row_len, rows, width: width.min(row_len) };
            row_len *= rows;
            group
        });
        Self { order, variables, low, piece_len, groups: groups.collect() }
    }

    /// Bytes that are in memory at once.
    pub(super) fn buffer_len(&self) -> u64 {
        let columns = self.groups.iter().map(|group| group.rows * group.width);
        columns.fold(self.piece_len, u64::max)
    }

    /// Where those rows of a group begin that later groups read.
    fn starts(&self, group: &Group, below: u32) -> impl Iterator<Item = u64> + use<> {
        let (order, len) = (self.order, group.row_len * group.rows);
        (0..1u64 << (self.variables - below - group.variables))
            .map(move |word| place_of(order, word) * len)
    }

    /// The work in bytes, each of which is computed and written.
    fn total(&self) -> u128 {
        let mut below = self.low;
        let mut total = u128::from(self.piece_len) << (self.variables - self.low);
        for group in &self.groups {
            below += group.variables;
            total += u128::from(group.row_len * group.rows) << (self.variables - below);
        }
        2 * total
    }
}

/// Computes all points and writes them to `store`, from byte 0 on. Besides what `transform` takes,
/// it takes no more than `memory` bytes, but at least an entry and at least q bytes.
///
/// # Errors
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory; and the
/// errors of `transform` and the store.
pub(in crate::finite_differences) fn write(
    transform: &dyn Transform,
    memory: u64,
    least_part: u64,
    threads: usize,
    store: &dyn SetupStore,
    report: &(dyn Fn(f64) + Sync),
) -> Result<()> {
    let cut = Cut::new(transform, memory, least_part);
    let mut buffer = room_to_compute(cut.buffer_len())?;
    let progress = ProgressReporter::new(cut.total(), report);

    // The buffer has room for this many bytes, and for all lengths below.
    let piece = &mut buffer[..cut.piece_len as usize];
    for word in 0..1 << (cut.variables - cut.low) {
        let work = piece.len() as u128;
        transform.fill(word, cut.low, piece, &|share| progress.within(work, share))?;
        progress.add(work);
        let start = place_of(cut.order, word) * cut.piece_len;
        share(threads, piece.chunks(PART).enumerate(), || {
            |(number, part): (usize, &[u8])| {
                store.write_at(start + (number * PART) as u64, part)?;
                progress.add(part.len() as u128);
                Ok(())
            }
        })?;
    }

    let mut below = cut.low;
    for group in &cut.groups {
        for start in cut.starts(group, below) {
            for column in (0..group.row_len).step_by(group.width as usize) {
                let width = group.width.min(group.row_len - column) as usize;
                let rows = &mut buffer[..width * group.rows as usize];
                let offset = |row: usize| start + row as u64 * group.row_len + column;
                let work = rows.len() as u128;
                let coefficients = rows
                    .chunks_exact_mut(width)
                    .enumerate()
                    .filter(|(row, _)| is_place(cut.order, *row as u64));
                share(threads, coefficients, || {
                    |(row, part): (usize, &mut [u8])| store.read_at(offset(row), part)
                })?;
                transform.sum_rows(rows, width, &|share| progress.within(work, share))?;
                progress.add(work);
                share(threads, rows.chunks_exact(width).enumerate(), || {
                    |(row, part): (usize, &[u8])| {
                        store.write_at(offset(row), part)?;
                        progress.add(part.len() as u128);
                        Ok(())
                    }
                })?;
            }
        }
        below += group.variables;
    }
    Ok(())
}
