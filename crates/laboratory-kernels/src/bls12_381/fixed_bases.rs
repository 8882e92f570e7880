//! Products of powers of bases that stay the same.

use super::exponentiation::exponent_bytes;
use super::{Exponent, G1, G1Sum};
use blst::blst_p1_affine;
use privet_kernels::memory::{HugeBuffer, MemoryError};

/// Words of a table entry, a point in affine coordinates.
const ENTRY_WORDS: usize = 12;

/// The layout of the table for each base.
///
/// An exponent of `piece_bits`·`pieces` bits is read as `pieces` numbers, each with its own base:
/// P, 2^piece_bits·P and so on. A piece is read as signed digits of `window` bits. For every such
/// base, the table has half of the multiples that a digit can name. A digit costs one addition.
/// Each bit *of a piece* costs one doubling, which all bases and pieces share. Additions at one
/// position are done together in affine coordinates, with a common division (Montgomery's trick).
/// That pays from a few hundred additions on, so few bases should have many pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableLayout {
    /// Pieces that an exponent is cut into, 1 to 32.
    pub pieces: usize,
    /// Bits of a piece, a multiple of 8.
    pub piece_bits: usize,
    /// Bits of a digit, 2 to 14.
    pub window: usize,
}

impl TableLayout {
    /// Table entries of one base.
    fn entries(&self) -> usize {
        self.pieces << (self.window - 1)
    }

    /// Bytes of the table of `bases` bases.
    pub fn bytes(&self, bases: usize) -> u64 {
        (bases * self.entries() * ENTRY_WORDS * 8) as u64
    }
}

/// Points with tables of their multiples.
pub struct FixedBases {
    layout: TableLayout,
    bases: usize,
    table: HugeBuffer<u64>,
}

impl FixedBases {
    /// Makes the tables of `bases`.
    ///
    /// # Errors
    /// [`MemoryError`] if there is no memory for them.
    ///
    /// # Panics
    /// If the layout is not as its fields demand.
    pub fn new(bases: &[G1], layout: TableLayout) -> Result<Self, MemoryError> {
        assert!(
            (1..=32).contains(&layout.pieces)
                && (2..=14).contains(&layout.window)
                && layout.piece_bits > 0
                && layout.piece_bits.is_multiple_of(8),
            "a layout that can be"
        );
        let words = bases.len().saturating_mul(layout.entries()).saturating_mul(ENTRY_WORDS);
        let mut table = HugeBuffer::new_zeroed(words)?;
        // Works in portions, so that the multiples need little memory besides the table.
        let portion = bases.chunks(256);
        for (bases, table) in portion.zip(table.chunks_mut(256 * layout.entries() * ENTRY_WORDS)) {
            fill(bases, layout, table);
        }
        Ok(Self { layout, bases: bases.len(), table })
    }

    /// Replaces a base by another.
    ///
    /// # Panics
    /// If there is none at `place`.
    pub fn replace(&mut self, place: usize, base: &G1) {
        let words = self.layout.entries() * ENTRY_WORDS;
        let layout = self.layout;
        fill(std::slice::from_ref(base), layout, &mut self.table[place * words..][..words]);
    }

    /// How many bases.
    pub fn len(&self) -> usize {
        self.bases
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.bases == 0
    }

    /// Memory of the tables, in bytes.
    pub fn resident_bytes(&self) -> u64 {
        self.layout.bytes(self.bases)
    }

    /// The product of the first bases to the power of `exponents`, in their order.
    ///
    /// # Panics
    /// If there are more exponents than bases, or an exponent does not have as many bits as all
    /// pieces.
    pub fn product<E: Exponent>(&self, exponents: &[E]) -> G1Sum {
        assert!(exponents.len() <= self.bases, "a base for each exponent");
        assert_eq!(
            E::BITS,
            self.layout.pieces * self.layout.piece_bits,
            "exponents of that length"
        );
        self.compute(&self.table, &exponent_bytes(exponents), exponents.len())
    }

    /// The product of the bases in the `places` given to the power of `exponents`. A base may occur
    /// several times.
    ///
    /// # Panics
    /// As [`product`](Self::product), and if there is no base in a place.
    pub fn product_of<E: Exponent>(&self, places: &[u32], exponents: &[E]) -> G1Sum {
        assert_eq!(places.len(), exponents.len(), "an exponent for each place");
        assert_eq!(
            E::BITS,
            self.layout.pieces * self.layout.piece_bits,
            "exponents of that length"
        );
        // The additions need the tables side by side. Copying them costs little compared with an
        // addition.
        let words = self.layout.entries() * ENTRY_WORDS;
        let mut table = Vec::with_capacity(places.len() * words);
        for place in places {
            table.extend_from_slice(&self.table[*place as usize * words..][..words]);
        }
        self.compute(&table, &exponent_bytes(exponents), exponents.len())
    }

    fn compute(&self, table: &[u64], exponents: &[u8], count: usize) -> G1Sum {
        let mut out = G1Sum::default();
        if count == 0 {
            return out;
        }
        let TableLayout { pieces, piece_bits, window } = self.layout;
        let points = count * pieces;
        assert!(table.len() >= (points << (window - 1)) * ENTRY_WORDS);
        assert!(exponents.len() >= points * piece_bits / 8);
        let exponent_list = [exponents.as_ptr(), std::ptr::null()];
        // SAFETY: a pure function of a number.
        let scratch_bytes = unsafe { blst::blst_p1s_mult_wbits_scratch_sizeof(points) };
        let mut scratch = vec![0u64; scratch_bytes.div_ceil(8)];
        // SAFETY: by the assertions, the table has 2^(window - 1) entries of twelve words for each
        // point, as `blst_p1s_mult_wbits_precompute` wrote them, and there are piece_bits / 8 bytes
        // of exponent for each, one behind the other, as the list says. An entry has the size and
        // alignment of twelve words. The scratch memory has the size that was asked for.
        unsafe {
            blst::blst_p1s_mult_wbits(
                &mut out.0,
                table.as_ptr().cast::<blst_p1_affine>(),
                window,
                points,
                exponent_list.as_ptr(),
                piece_bits,
                scratch.as_mut_ptr(),
            );
        }
        out
    }
}

/// Writes the tables of `bases`.
fn fill(bases: &[G1], layout: TableLayout, table: &mut [u64]) {
    let mut multiples = Vec::with_capacity(bases.len() * layout.pieces);
    for base in bases {
        let mut multiple = base.to_sum();
        multiples.push(multiple);
        for _ in 1..layout.pieces {
            for _ in 0..layout.piece_bits {
                multiple.double();
            }
            multiples.push(multiple);
        }
    }
    let multiples = G1Sum::all_to_affine(&multiples);
    assert_eq!(table.len(), (multiples.len() << (layout.window - 1)) * ENTRY_WORDS);
    if multiples.is_empty() {
        return;
    }
    let list = [multiples.as_ptr().cast::<blst_p1_affine>(), std::ptr::null()];
    // SAFETY: the list says, in the way of `blst`, that the points lie one behind the other; there
    // are as many as is said, at least one. By the assertion the table has room for 2^(window - 1)
    // entries of twelve words for each, which have the size and alignment of a point; any words are
    // a valid point to overwrite.
    unsafe {
        blst::blst_p1s_mult_wbits_precompute(
            table.as_mut_ptr().cast::<blst_p1_affine>(),
            layout.window,
            list.as_ptr(),
            multiples.len(),
        );
    }
}

impl std::fmt::Debug for FixedBases {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("FixedBases")
            .field("bases", &self.bases)
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}
