//! Products of rows of bytes with fixed polynomials, by transforms of real numbers.
//!
//! Neighbouring rows lie side by side in the lanes of a vector, from the bytes to the sums. So all
//! lanes do the same, and nothing is shuffled. The algorithm is written once, for any kind of
//! [`Lanes`]; each arm has its own.

use crate::ring::{ColumnFactors, EXACT_SUM, FourierRoots, PART_BITS, PARTS, Spectrum};

/// Rows whose bytes are gathered at a time: those of a cache line.
const STRIP: usize = 64;

/// Columns whose bytes are gathered at a time.
const COLUMNS: usize = 16;

/// Polynomials whose transforms are computed before their products are added up, so that sums are
/// loaded and stored less often. They and the sums fit into half a second-level cache.
const GROUP: usize = 4;

/// See [`Kernels::ring_column_sums`](crate::Kernels::ring_column_sums).
pub(crate) fn sum(
    factors: &ColumnFactors,
    columns: &[u8],
    column_len: usize,
    first_row: usize,
    sums: &mut [u64],
) {
    // SAFETY: arrays need no instructions.
    unsafe { in_lanes::<[f64; 4], 4>(factors, columns, column_len, first_row, sums) };
}

/// The same, to be compiled for the instructions of its caller, with so many rows at a time.
///
/// # Safety
///
/// The processor has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn in_lanes<V: Lanes<L>, const L: usize>(
    factors: &ColumnFactors,
    columns: &[u8],
    column_len: usize,
    first_row: usize,
    sums: &mut [u64],
) {
    let degree = factors.degree();
    // SAFETY: as the caller says.
    let zero = unsafe { V::from_bytes(&[0; L]) };
    let mut workspace = Workspace::new(factors, columns.len().div_ceil(column_len), zero);
    for (strip, sums) in sums.chunks_mut(STRIP * degree).enumerate() {
        let first_row = first_row + strip * STRIP;
        workspace.gather(columns, column_len, first_row);
        for (batch, sums) in sums.chunks_mut(L * degree).enumerate() {
            if first_row + batch * L < column_len {
                workspace.sum_batch(factors, batch, sums);
            } else {
                sums.fill(0);
            }
        }
    }
}

/// The spectra of the parts of a polynomial.
pub(crate) fn spectrum(roots: &FourierRoots, polynomial: &[i64]) -> Vec<Spectrum> {
    let points = roots.points();
    let mut spectra = vec![[[0.0; 2]; PARTS]; points];
    let mut rest = polynomial.to_vec();
    for part in 0..PARTS {
        let mut lowest = rest.clone();
        if part + 1 < PARTS {
            for (rest, lowest) in rest.iter_mut().zip(&mut lowest) {
                *lowest = *rest << (64 - PART_BITS) >> (64 - PART_BITS);
                *rest = (*rest - *lowest) >> PART_BITS;
            }
        }
        let (low, high) = lowest.split_at(points);
        let numbers = low.iter().zip(high);
        let mut numbers: Vec<_> =
            numbers.map(|(re, im)| Complex { re: [*re as f64], im: [*im as f64] }).collect();
        transform(roots, 1, 0, &mut numbers);
        for (spectrum, number) in spectra.iter_mut().zip(numbers) {
            spectrum[part] = [number.re[0], number.im[0]];
        }
    }
    spectra
}

struct Workspace<V, const L: usize> {
    zero: Complex<V>,
    /// The bytes of a strip: for each batch of `L` rows, those of each column.
    bytes: Vec<[u8; L]>,
    /// From one batch to the next: the columns, rounded up to whole polynomials, and a few.
    pitch: usize,
    /// The transforms of a group of polynomials.
    group: Vec<Complex<V>>,
    /// The sums of products, part by part.
    parts: [Vec<Complex<V>>; PARTS],
    /// The sums as integers, row by row.
    integers: Vec<[u64; L]>,
}

impl<V: Lanes<L>, const L: usize> Workspace<V, L> {
    #[inline(always)]
    fn new(factors: &ColumnFactors, columns: usize, zero: V) -> Workspace<V, L> {
        let zero = Complex { re: zero, im: zero };
        let points = factors.roots().points();
        let columns = columns.next_multiple_of(factors.degree());
        // One step of `gather` more, so that not all batches fall into the same places of a cache.
        let pitch = columns + COLUMNS;
        Workspace {
            zero,
            bytes: vec![[0; L]; pitch * STRIP / L],
            pitch,
            group: vec![zero; GROUP * points],
            parts: std::array::from_fn(|_| vec![zero; points]),
            integers: vec![[0; L]; factors.degree()],
        }
    }

    /// Fills `bytes` with the rows from `first_row` on.
    #[inline(always)]
    fn gather(&mut self, columns: &[u8], column_len: usize, first_row: usize) {
        let rows = first_row.min(column_len)..column_len.min(first_row + STRIP);
        let pitch = self.pitch;
        for (i, columns) in columns.chunks(COLUMNS * column_len).enumerate() {
            let mut strips = [[0; STRIP]; COLUMNS];
            for (column, strip) in columns.chunks(column_len).zip(&mut strips) {
                let column = &column[rows.start.min(column.len())..rows.end.min(column.len())];
                match column.first_chunk() {
                    Some(column) => *strip = *column,
                    None => strip[..column.len()].copy_from_slice(column),
                }
            }
            for (batch, bytes) in self.bytes.chunks_exact_mut(pitch).enumerate() {
                let bytes = &mut bytes[i * COLUMNS..][..COLUMNS];
                for (bytes, strip) in bytes.iter_mut().zip(&strips) {
                    *bytes = strip.as_chunks().0[batch];
                }
            }
        }
    }

    /// The sums of one batch of rows.
    #[inline(always)]
    fn sum_batch(&mut self, factors: &ColumnFactors, batch: usize, sums: &mut [u64]) {
        let degree = factors.degree();
        let points = degree / 2;
        let bytes = &self.bytes[batch * self.pitch..][..self.pitch - COLUMNS];
        self.integers.fill([0; L]);
        let spectra = factors.spectra().chunks(EXACT_SUM * points);
        for (bytes, spectra) in bytes.chunks(EXACT_SUM * degree).zip(spectra) {
            for part in &mut self.parts {
                part.fill(self.zero);
            }
            let spectra = spectra.chunks(GROUP * points);
            for (bytes, spectra) in bytes.chunks(GROUP * degree).zip(spectra) {
                add_group(factors.roots(), bytes, spectra, &mut self.group, &mut self.parts);
            }
            for (part, numbers) in self.parts.iter_mut().enumerate() {
                transform_back(factors.roots(), numbers);
                let (low, high) = self.integers.split_at_mut(points);
                let shift = PART_BITS * part as u32;
                let scale = 1.0 / points as f64;
                for ((number, low), high) in numbers.iter().zip(low).zip(high) {
                    add_rounded(number.re.to_array(), scale, shift, low);
                    add_rounded(number.im.to_array(), scale, shift, high);
                }
            }
        }
        for (lane, sums) in sums.chunks_exact_mut(degree).enumerate() {
            for (sum, integers) in sums.iter_mut().zip(&self.integers) {
                *sum = integers[lane];
            }
        }
    }
}

/// Adds the products of a group of polynomials.
#[inline(always)]
fn add_group<V: Lanes<L>, const L: usize>(
    roots: &FourierRoots,
    bytes: &[[u8; L]],
    spectra: &[Spectrum],
    group: &mut [Complex<V>],
    parts: &mut [Vec<Complex<V>>; PARTS],
) {
    let points = roots.points();
    let polynomials = bytes.len() / (2 * points);
    let group = &mut group[..polynomials * points];
    for (bytes, numbers) in bytes.chunks_exact(2 * points).zip(group.chunks_exact_mut(points)) {
        split_bytes(roots, bytes, numbers);
    }
    let block_len = points / first_blocks(points);
    for (block, at) in (0..points).step_by(block_len).enumerate() {
        for numbers in group.chunks_exact_mut(points) {
            let numbers = &mut numbers[at..at + block_len];
            transform(roots, first_blocks(points), block, numbers);
        }
        for at in at..at + block_len {
            let mut sums: [Complex<V>; PARTS] = std::array::from_fn(|part| parts[part][at]);
            for (numbers, spectra) in group.chunks_exact(points).zip(spectra.chunks_exact(points)) {
                for (sum, factor) in sums.iter_mut().zip(&spectra[at]) {
                    *sum = sum.plus_conjugate_times(numbers[at], *factor);
                }
            }
            for (part, sum) in parts.iter_mut().zip(sums) {
                part[at] = sum;
            }
        }
    }
}

/// The blocks after the levels of [`split_bytes`].
#[inline(always)]
fn first_blocks(points: usize) -> usize {
    if points >= 16 { 16 } else { 1 }
}

/// The first four levels, if there are so many, on the way from bytes to numbers.
#[inline(always)]
fn split_bytes<V: Lanes<L>, const L: usize>(
    roots: &FourierRoots,
    bytes: &[[u8; L]],
    numbers: &mut [Complex<V>],
) {
    let (low, high) = bytes.split_at(numbers.len());
    let number = |at: usize| {
        // SAFETY: there are values of `V`, the numbers.
        unsafe { Complex { re: V::from_bytes(&low[at]), im: V::from_bytes(&high[at]) } }
    };
    if first_blocks(numbers.len()) == 1 {
        for (at, to) in numbers.iter_mut().enumerate() {
            *to = number(at);
        }
        return;
    }
    let len = numbers.len() / 16;
    for at in 0..len {
        let mut block: [Complex<V>; 16] = std::array::from_fn(|i| number(at + i * len));
        split_in_four(roots.powers(1, 0), &mut block);
        for (i, quarter) in block.chunks_exact_mut(4).enumerate() {
            split_in_four(roots.powers(4, i), quarter);
        }
        for (i, number) in block.iter().enumerate() {
            numbers[at + i * len] = *number;
        }
    }
}

/// From block `block` of `blocks` to its points.
#[inline(always)]
fn transform<V: Lanes<L>, const L: usize>(
    roots: &FourierRoots,
    mut blocks: usize,
    mut block: usize,
    numbers: &mut [Complex<V>],
) {
    let mut len = numbers.len();
    if len.ilog2() % 2 == 1 {
        split_in_two(roots.powers(blocks, block), numbers);
        (blocks, block, len) = (2 * blocks, 2 * block, len / 2);
    }
    while len > 1 {
        for (i, numbers) in numbers.chunks_exact_mut(len).enumerate() {
            split_in_four(roots.powers(blocks, block + i), numbers);
        }
        (blocks, block, len) = (4 * blocks, 4 * block, len / 4);
    }
}

/// The inverse of a transform of all points, times their number.
#[inline(always)]
fn transform_back<V: Lanes<L>, const L: usize>(roots: &FourierRoots, numbers: &mut [Complex<V>]) {
    // The levels in pairs, the reverse of the pairs on the way forth; the roots fit any pairs.
    let mut len = 4;
    while len <= numbers.len() {
        let blocks = numbers.len() / len;
        for (block, numbers) in numbers.chunks_exact_mut(len).enumerate() {
            join_four(roots.powers(blocks, block), numbers);
        }
        len *= 4;
    }
    if numbers.len().ilog2() % 2 == 1 {
        join_two(roots.powers(1, 0), numbers);
    }
}

/// From a polynomial modulo `Z^2m - c²` to those modulo `Z^m - c` and `Z^m + c`.
#[inline(always)]
fn split_in_two<V: Lanes<L>, const L: usize>(powers: &[[f64; 2]; 3], numbers: &mut [Complex<V>]) {
    let (low, high) = numbers.split_at_mut(numbers.len() / 2);
    for (a, b) in low.iter_mut().zip(high) {
        let product = b.times(powers[1]);
        (*a, *b) = (a.add(product), a.sub(product));
    }
}

/// Two levels at once. `powers` are `w`, `w²` and `w³`, where `w` is the fourth root of the block's
/// constant: the four polynomials are those modulo `Z^m` minus `w`, `-w`, `iw` and `-iw`.
#[inline(always)]
fn split_in_four<V: Lanes<L>, const L: usize>(powers: &[[f64; 2]; 3], numbers: &mut [Complex<V>]) {
    let [w1, w2, w3] = *powers;
    let [x0, x1, x2, x3] = quarters(numbers);
    for (((x0, x1), x2), x3) in x0.iter_mut().zip(x1).zip(x2).zip(x3) {
        let [b, c, d] = [x1.times(w1), x2.times(w2), x3.times(w3)];
        let [even, odd] = [x0.add(c), x0.sub(c)];
        let [sum, difference] = [b.add(d), b.sub(d)];
        (*x0, *x1) = (even.add(sum), even.sub(sum));
        (*x2, *x3) = (odd.add_i(difference), odd.sub_i(difference));
    }
}

/// The inverse of [`split_in_two`], times 2.
#[inline(always)]
fn join_two<V: Lanes<L>, const L: usize>(powers: &[[f64; 2]; 3], numbers: &mut [Complex<V>]) {
    let (low, high) = numbers.split_at_mut(numbers.len() / 2);
    for (a, b) in low.iter_mut().zip(high) {
        (*a, *b) = (a.add(*b), a.sub(*b).over(powers[1]));
    }
}

/// The inverse of [`split_in_four`], times 4.
#[inline(always)]
fn join_four<V: Lanes<L>, const L: usize>(powers: &[[f64; 2]; 3], numbers: &mut [Complex<V>]) {
    let [w1, w2, w3] = *powers;
    let [x0, x1, x2, x3] = quarters(numbers);
    for (((x0, x1), x2), x3) in x0.iter_mut().zip(x1).zip(x2).zip(x3) {
        let [even, sum] = [x0.add(*x1), x0.sub(*x1)];
        let [odd, difference] = [x2.add(*x3), x2.sub(*x3)];
        (*x0, *x2) = (even.add(odd), even.sub(odd).over(w2));
        (*x1, *x3) = (sum.sub_i(difference).over(w1), sum.add_i(difference).over(w3));
    }
}

#[inline(always)]
fn quarters<T>(numbers: &mut [T]) -> [&mut [T]; 4] {
    let (low, high) = numbers.split_at_mut(numbers.len() / 2);
    let (x0, x1) = low.split_at_mut(low.len() / 2);
    let (x2, x3) = high.split_at_mut(high.len() / 2);
    [x0, x1, x2, x3]
}

/// Real numbers in the lanes of a vector, one for each of `L` rows.
///
/// A value exists only where the processor has the instructions of the type, since whoever makes
/// one vouches for it. So methods of a value are safe.
pub(crate) trait Lanes<const L: usize>: Copy {
    /// # Safety
    ///
    /// The processor has the instructions of the type.
    unsafe fn from_bytes(bytes: &[u8; L]) -> Self;

    fn add(self, other: Self) -> Self;

    fn sub(self, other: Self) -> Self;

    fn times(self, factor: f64) -> Self;

    /// `sum + self · factor`.
    fn times_plus(self, factor: f64, sum: Self) -> Self;

    fn to_array(self) -> [f64; L];
}

/// Rows in an array, for a compiler to find instructions for.
impl<const L: usize> Lanes<L> for [f64; L] {
    #[inline(always)]
    unsafe fn from_bytes(bytes: &[u8; L]) -> Self {
        bytes.map(f64::from)
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        std::array::from_fn(|lane| self[lane] + other[lane])
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        std::array::from_fn(|lane| self[lane] - other[lane])
    }

    #[inline(always)]
    fn times(self, factor: f64) -> Self {
        self.map(|number| number * factor)
    }

    #[inline(always)]
    fn times_plus(self, factor: f64, sum: Self) -> Self {
        sum.add(self.times(factor))
    }

    #[inline(always)]
    fn to_array(self) -> [f64; L] {
        self
    }
}

/// Complex numbers in lanes.
#[derive(Clone, Copy)]
struct Complex<V> {
    re: V,
    im: V,
}

impl<V> Complex<V> {
    #[inline(always)]
    fn add<const L: usize>(self, other: Self) -> Self
    where
        V: Lanes<L>,
    {
        Complex { re: self.re.add(other.re), im: self.im.add(other.im) }
    }

    #[inline(always)]
    fn sub<const L: usize>(self, other: Self) -> Self
    where
        V: Lanes<L>,
    {
        Complex { re: self.re.sub(other.re), im: self.im.sub(other.im) }
    }

    /// `self + i · other`.
    #[inline(always)]
    fn add_i<const L: usize>(self, other: Self) -> Self
    where
        V: Lanes<L>,
    {
        Complex { re: self.re.sub(other.im), im: self.im.add(other.re) }
    }

    /// `self - i · other`.
    #[inline(always)]
    fn sub_i<const L: usize>(self, other: Self) -> Self
    where
        V: Lanes<L>,
    {
        Complex { re: self.re.add(other.im), im: self.im.sub(other.re) }
    }

    #[inline(always)]
    fn times<const L: usize>(self, [re, im]: [f64; 2]) -> Self
    where
        V: Lanes<L>,
    {
        Complex {
            re: self.im.times_plus(-im, self.re.times(re)),
            im: self.im.times_plus(re, self.re.times(im)),
        }
    }

    /// Divided by a number of absolute value 1.
    #[inline(always)]
    fn over<const L: usize>(self, [re, im]: [f64; 2]) -> Self
    where
        V: Lanes<L>,
    {
        Complex {
            re: self.im.times_plus(im, self.re.times(re)),
            im: self.re.times_plus(-im, self.im.times(re)),
        }
    }

    /// The sum, and the conjugate of another number times a factor.
    #[inline(always)]
    fn plus_conjugate_times<const L: usize>(self, other: Self, [re, im]: [f64; 2]) -> Self
    where
        V: Lanes<L>,
    {
        Complex {
            re: other.im.times_plus(im, other.re.times_plus(re, self.re)),
            im: other.im.times_plus(-re, other.re.times_plus(im, self.im)),
        }
    }
}

/// Adds the numbers times `scale`, rounded to integers, times `2^shift`. They are below 2⁵¹ in
/// absolute value. Adding 1.5·2⁵² rounds, because there the distance of two numbers is 1.
#[inline(always)]
fn add_rounded<const L: usize>(numbers: [f64; L], scale: f64, shift: u32, sums: &mut [u64; L]) {
    const ROUNDER: f64 = 6_755_399_441_055_744.0;
    for (sum, number) in sums.iter_mut().zip(numbers) {
        let rounded = (number * scale + ROUNDER).to_bits().wrapping_sub(ROUNDER.to_bits());
        *sum = sum.wrapping_add(rounded << shift);
    }
}
