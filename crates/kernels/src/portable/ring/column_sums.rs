//! Products of rows of bytes with fixed polynomials, by transforms of real numbers.
//!
//! Neighbouring rows lie side by side in the lanes of a vector, from the bytes to the sums. So all
//! lanes do the same, and nothing is shuffled. All is plain Rust, on arrays that a compiler keeps in
//! its vectors; each arm compiles it for its own.

use crate::ring::{ColumnFactors, EXACT_SUM, FourierRoots, PART_BITS, PARTS, Spectrum};

/// Rows whose bytes are gathered at a time: those of a cache line.
const STRIP: usize = 64;

/// Polynomials whose transforms are computed before their products are added up, so that sums are
/// loaded and stored less often. They and the sums fit into half a second-level cache.
const GROUP: usize = 4;

/// The blocks whose last levels, and products, are computed together in the first-level cache.
const BLOCK: usize = 64;

/// See [`Kernels::ring_column_sums`](crate::Kernels::ring_column_sums).
pub(crate) fn sum(
    factors: &ColumnFactors,
    columns: &[u8],
    column_len: usize,
    first_row: usize,
    sums: &mut [u64],
) {
    in_lanes::<4>(factors, columns, column_len, first_row, sums);
}

/// The same, to be compiled for the instructions of its caller, with so many rows at a time.
#[inline(always)]
pub(crate) fn in_lanes<const L: usize>(
    factors: &ColumnFactors,
    columns: &[u8],
    column_len: usize,
    first_row: usize,
    sums: &mut [u64],
) {
    let degree = factors.degree();
    let mut workspace = Workspace::<L>::new(factors, columns.len().div_ceil(column_len));
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
        let mut numbers: Vec<_> = numbers
            .map(|(re, im)| Complex { re: Lanes([*re as f64]), im: Lanes([*im as f64]) })
            .collect();
        transform(roots, 1, 0, &mut numbers);
        for (spectrum, number) in spectra.iter_mut().zip(numbers) {
            spectrum[part] = [number.re.0[0], number.im.0[0]];
        }
    }
    spectra
}

struct Workspace<const L: usize> {
    /// The bytes of a strip: for each batch of `L` rows, those of each column.
    bytes: Vec<[u8; L]>,
    /// Columns, rounded up to whole polynomials.
    columns: usize,
    /// The transforms of a group of polynomials.
    group: Vec<Complex<L>>,
    /// The sums of products, part by part.
    parts: [Vec<Complex<L>>; PARTS],
    /// The sums as integers, row by row.
    integers: Vec<[u64; L]>,
}

impl<const L: usize> Workspace<L> {
    fn new(factors: &ColumnFactors, columns: usize) -> Workspace<L> {
        let points = factors.roots().points();
        let columns = columns.next_multiple_of(factors.degree());
        Workspace {
            bytes: vec![[0; L]; columns * STRIP / L],
            columns,
            group: vec![Complex::ZERO; GROUP * points],
            parts: std::array::from_fn(|_| vec![Complex::ZERO; points]),
            integers: vec![[0; L]; factors.degree()],
        }
    }

    /// Fills `bytes` with the rows from `first_row` on.
    #[inline(always)]
    fn gather(&mut self, columns: &[u8], column_len: usize, first_row: usize) {
        let end = column_len.min(first_row + STRIP);
        for (i, column) in columns.chunks(column_len).enumerate() {
            let column = &column[first_row.min(column.len())..end.min(column.len())];
            let mut strip = [0; STRIP];
            match column.first_chunk() {
                Some(column) => strip = *column,
                None => strip[..column.len()].copy_from_slice(column),
            }
            for (batch, bytes) in strip.as_chunks::<L>().0.iter().enumerate() {
                self.bytes[batch * self.columns + i] = *bytes;
            }
        }
    }

    /// The sums of one batch of rows.
    #[inline(always)]
    fn sum_batch(&mut self, factors: &ColumnFactors, batch: usize, sums: &mut [u64]) {
        let degree = factors.degree();
        let points = degree / 2;
        let bytes = &self.bytes[batch * self.columns..][..self.columns];
        self.integers.fill([0; L]);
        let spectra = factors.spectra().chunks(EXACT_SUM * points);
        for (bytes, spectra) in bytes.chunks(EXACT_SUM * degree).zip(spectra) {
            for part in &mut self.parts {
                part.fill(Complex::ZERO);
            }
            let spectra = spectra.chunks(GROUP * points);
            for (bytes, spectra) in bytes.chunks(GROUP * degree).zip(spectra) {
                add_group(factors.roots(), bytes, spectra, &mut self.group, &mut self.parts);
            }
            for (part, numbers) in self.parts.iter_mut().enumerate() {
                transform_back(factors.roots(), 1, 0, numbers);
                let (low, high) = self.integers.split_at_mut(points);
                let shift = PART_BITS * part as u32;
                let scale = 1.0 / points as f64;
                for ((number, low), high) in numbers.iter().zip(low).zip(high) {
                    number.re.add_rounded(scale, shift, low);
                    number.im.add_rounded(scale, shift, high);
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
fn add_group<const L: usize>(
    roots: &FourierRoots,
    bytes: &[[u8; L]],
    spectra: &[Spectrum],
    group: &mut [Complex<L>],
    parts: &mut [Vec<Complex<L>>; PARTS],
) {
    let points = roots.points();
    let polynomials = bytes.len() / (2 * points);
    for (bytes, numbers) in bytes.chunks_exact(2 * points).zip(group.chunks_exact_mut(points)) {
        let (low, high) = bytes.split_at(points);
        for ((re, im), number) in low.iter().zip(high).zip(&mut *numbers) {
            *number = Complex { re: Lanes(re.map(f64::from)), im: Lanes(im.map(f64::from)) };
        }
        transform(roots, 1, 0, numbers);
    }
    let block = BLOCK.min(points);
    for first in (0..points).step_by(block) {
        for at in first..first + block {
            let mut sums: [Complex<L>; PARTS] = std::array::from_fn(|part| parts[part][at]);
            for polynomial in 0..polynomials {
                let number = group[polynomial * points + at];
                let factors = &spectra[polynomial * points + at];
                for (sum, factor) in sums.iter_mut().zip(factors) {
                    *sum = sum.add(number.conjugate().times(*factor));
                }
            }
            for (part, sum) in sums.into_iter().enumerate() {
                parts[part][at] = sum;
            }
        }
    }
}

/// From block `block` of `blocks` to its points.
#[inline(always)]
fn transform<const L: usize>(
    roots: &FourierRoots,
    blocks: usize,
    block: usize,
    numbers: &mut [Complex<L>],
) {
    let (mut blocks, mut len) = (blocks, numbers.len());
    let _ = block;
    if len.ilog2() % 2 == 1 {
        split_in_two(roots.powers(1, 0), numbers);
        (blocks, len) = (2, len / 2);
    }
    while len > 1 {
        for (block, numbers) in numbers.chunks_exact_mut(len).enumerate() {
            split_in_four(roots.powers(blocks, block), numbers);
        }
        blocks *= 4;
        len /= 4;
    }
}

#[inline(always)]
fn transform_back<const L: usize>(
    roots: &FourierRoots,
    _blocks: usize,
    _block: usize,
    numbers: &mut [Complex<L>],
) {
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
fn split_in_two<const L: usize>(powers: &[[f64; 2]; 3], numbers: &mut [Complex<L>]) {
    let (low, high) = numbers.split_at_mut(numbers.len() / 2);
    for (a, b) in low.iter_mut().zip(high) {
        let product = b.times(powers[1]);
        (*a, *b) = (a.add(product), a.sub(product));
    }
}

/// Two levels at once. `powers` are `w`, `w²` and `w³`, where `w` is the fourth root of the block's
/// constant: the four polynomials are those modulo `Z^m` minus `w`, `-w`, `iw` and `-iw`.
#[inline(always)]
fn split_in_four<const L: usize>(powers: &[[f64; 2]; 3], numbers: &mut [Complex<L>]) {
    let [w1, w2, w3] = *powers;
    let [x0, x1, x2, x3] = quarters(numbers);
    for (((x0, x1), x2), x3) in x0.iter_mut().zip(x1).zip(x2).zip(x3) {
        let [b, c, d] = [x1.times(w1), x2.times(w2), x3.times(w3)];
        let [even, odd] = [x0.add(c), x0.sub(c)];
        let [sum, difference] = [b.add(d), b.sub(d).times_i()];
        (*x0, *x1) = (even.add(sum), even.sub(sum));
        (*x2, *x3) = (odd.add(difference), odd.sub(difference));
    }
}

/// The inverse of [`split_in_two`], times 2.
#[inline(always)]
fn join_two<const L: usize>(powers: &[[f64; 2]; 3], numbers: &mut [Complex<L>]) {
    let (low, high) = numbers.split_at_mut(numbers.len() / 2);
    for (a, b) in low.iter_mut().zip(high) {
        (*a, *b) = (a.add(*b), a.sub(*b).over(powers[1]));
    }
}

/// The inverse of [`split_in_four`], times 4.
#[inline(always)]
fn join_four<const L: usize>(powers: &[[f64; 2]; 3], numbers: &mut [Complex<L>]) {
    let [w1, w2, w3] = *powers;
    let [x0, x1, x2, x3] = quarters(numbers);
    for (((x0, x1), x2), x3) in x0.iter_mut().zip(x1).zip(x2).zip(x3) {
        let [even, sum] = [x0.add(*x1), x0.sub(*x1)];
        let [odd, difference] = [x2.add(*x3), x3.sub(*x2).times_i()];
        (*x0, *x2) = (even.add(odd), even.sub(odd).over(w2));
        (*x1, *x3) = (sum.add(difference).over(w1), sum.sub(difference).over(w3));
    }
}

#[inline(always)]
fn quarters<T>(numbers: &mut [T]) -> [&mut [T]; 4] {
    let (low, high) = numbers.split_at_mut(numbers.len() / 2);
    let (x0, x1) = low.split_at_mut(low.len() / 2);
    let (x2, x3) = high.split_at_mut(high.len() / 2);
    [x0, x1, x2, x3]
}

/// Complex numbers in lanes.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Complex<const L: usize> {
    re: Lanes<L>,
    im: Lanes<L>,
}

impl<const L: usize> Complex<L> {
    const ZERO: Complex<L> = Complex { re: Lanes([0.0; L]), im: Lanes([0.0; L]) };

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Complex { re: self.re.add(other.re), im: self.im.add(other.im) }
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Complex { re: self.re.sub(other.re), im: self.im.sub(other.im) }
    }

    #[inline(always)]
    fn times(self, [re, im]: [f64; 2]) -> Self {
        Complex {
            re: self.re.times(re).sub(self.im.times(im)),
            im: self.re.times(im).add(self.im.times(re)),
        }
    }

    /// Divided by a number of absolute value 1.
    #[inline(always)]
    fn over(self, [re, im]: [f64; 2]) -> Self {
        self.times([re, -im])
    }

    #[inline(always)]
    fn times_i(self) -> Self {
        Complex { re: Lanes(self.im.0.map(|im| -im)), im: self.re }
    }

    #[inline(always)]
    fn conjugate(self) -> Self {
        Complex { re: self.re, im: Lanes(self.im.0.map(|im| -im)) }
    }
}

#[derive(Clone, Copy)]
struct Lanes<const L: usize>([f64; L]);

impl<const L: usize> Lanes<L> {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Lanes(std::array::from_fn(|lane| self.0[lane] + other.0[lane]))
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Lanes(std::array::from_fn(|lane| self.0[lane] - other.0[lane]))
    }

    #[inline(always)]
    fn times(self, factor: f64) -> Self {
        Lanes(std::array::from_fn(|lane| self.0[lane] * factor))
    }

    /// Adds the numbers times `scale`, rounded to integers, times `2^shift`. They are below 2⁵¹ in
    /// absolute value. Adding 1.5·2⁵² rounds, because there the distance of two numbers is 1.
    #[inline(always)]
    fn add_rounded(self, scale: f64, shift: u32, sums: &mut [u64; L]) {
        const ROUNDER: f64 = 6_755_399_441_055_744.0;
        for (sum, number) in sums.iter_mut().zip(self.0) {
            let rounded = (number * scale + ROUNDER).to_bits().wrapping_sub(ROUNDER.to_bits());
            *sum = sum.wrapping_add(rounded << shift);
        }
    }
}
