//! Eight selections at a time, by products of bit matrices.
//!
//! Let `x` be the byte of a selection's bits for eight records, a *row group*, and `D` the 8 × 8
//! bits of one column (byte) of these records, a record in each row. The sum of the selected bytes
//! is `x · D` over the field of two elements. The instruction `gf2p8affineqb` multiplies eight
//! bytes `x` by one matrix, in each of the eight 64-bit places of a vector, so selections come in
//! eights:
//!
//! ```text
//! interleave   eight selections     their bytes for one row group side by side: a word
//! stage        piece of records     for each row group and column the eight bytes are brought together and
//!                                   their bits transposed: a matrix in each word
//! multiply     words x matrices     eight sums, one of each selection, in each word; added up in registers
//! ```
//!
//! The product is one load, one multiplication and one addition for 64 bytes of the table and eight
//! selections. Staging costs about six instructions for as many bytes, and is done once for all
//! selections.
//!
//! # Tiles
//!
//! A *tile* is the unit of staging: the matrices of a few row groups.
//!
//! - Records of up to 8 bytes (`Staging::Short`): a tile is one line, with as many whole row groups
//!   as 64 bytes of the table have. One permutation of bytes brings columns together.
//! - Longer records: a tile is eight lines. Eight *slots* of 64 bytes are read and transposed byte
//!   by byte: byte `p` of all slots becomes a matrix. A slot holds 64 columns of one record
//!   (`Staging::Rows`), or all columns of two or four neighbouring records of up to 32 bytes
//!   (`Staging::Blocks`). These neighbours go to different row groups: a row group is then every
//!   eighth record of a block of 64, and the bits of selections are transposed in the same way.
//!
//! Records of more than 64 bytes have several *segments* of 64 columns. The last one is moved back
//! until it ends with the record.

use super::{CacheLines, LINE, Shape, ThreadSums, WORD_RECORDS, xor};
use crate::dispatch::on_avx512;
use crate::dispatch::{Arm, Kernels};

/// How many selections are processed together, and how many records a row group has.
pub(crate) const EIGHT: usize = 8;

/// Records of a block, whose row groups may be transposed.
pub(crate) const BLOCK_RECORDS: usize = EIGHT * EIGHT;

/// Lines of the matrices of one piece. They are few, so that staging, which waits for memory, and
/// multiplying, which does not, overlap.
const PIECE_LINES: usize = 64;

/// The least tiles of a piece, so that sums are seldom loaded and stored. For this, a piece may
/// have only some segments of wide records. With very long records it has fewer tiles.
const PIECE_TILES: usize = 8;

/// The least distance in bytes that is prefetched ahead of staging ...
const AHEAD_BYTES: usize = 16 << 10;
/// ... and the greatest, so that prefetched lines are not evicted before use: a quarter of a
/// second-level cache.
const MOST_AHEAD_BYTES: usize = 256 << 10;

/// The most bytes of the interleaved selections of a chunk, unless they are a single eight.
const INTERLEAVED_BYTES: usize = 256 << 10;

/// Whether this way is faster than one by one. Without the instruction it never is.
pub(super) fn pays(kernels: Kernels, record_len: usize, selections: usize) -> bool {
    // One by one, the AVX-512 arm takes up to four selections of narrow records together. With long
    // records, the first selection reads memory in pieces that are too short for hardware
    // prefetching.
    let one_by_one = if record_len <= LINE {
        4
    } else if record_len <= 2048 {
        2
    } else {
        1
    };
    kernels.arm() == Arm::Avx512 && selections > one_by_one
}

/// How matrices are made; see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Staging {
    Short,
    Blocks,
    Rows,
}

/// How records of one length are staged.
struct Tiles {
    staging: Staging,
    record_len: usize,
    /// Row groups of one tile.
    groups: usize,
    /// Lines of one tile.
    lines: usize,
    /// The first column of each segment.
    segments: Vec<usize>,
    /// The row group, counted from the tile's first, of each word of a line.
    group_of_word: [u64; EIGHT],
    /// The place in 64 bytes of the table of each byte before transposition; unused for rows.
    order: [u8; LINE],
}

impl Tiles {
    fn new(record_len: usize) -> Tiles {
        if record_len <= EIGHT {
            return Tiles::short(record_len);
        }
        if record_len <= LINE / 2 {
            return Tiles::blocks(record_len);
        }
        let mut segments: Vec<usize> = (0..record_len).step_by(LINE).collect();
        if let Some(last) = segments.last_mut() {
            *last = (*last).min(record_len.saturating_sub(LINE));
        }
        Tiles {
            staging: Staging::Rows,
            record_len,
            groups: 1,
            lines: EIGHT,
            segments,
            group_of_word: [0; EIGHT],
            order: [0; LINE],
        }
    }

    fn short(record_len: usize) -> Tiles {
        let groups = EIGHT / record_len;
        let mut group_of_word = [0; EIGHT];
        let mut order = [0; LINE];
        for word in 0..groups * record_len {
            let (group, column) = (word / record_len, word % record_len);
            group_of_word[word] = group as u64;
            for row in 0..EIGHT {
                // Transposing reverses the rows.
                let record = EIGHT * group + (EIGHT - 1 - row);
                order[EIGHT * word + row] = (record * record_len + column) as u8;
            }
        }
        let (staging, lines, segments) = (Staging::Short, 1, vec![0]);
        Tiles { staging, record_len, groups, lines, segments, group_of_word, order }
    }

    fn blocks(record_len: usize) -> Tiles {
        let width = if record_len <= 16 { 16 } else { 32 };
        let groups = LINE / width;
        let mut order = [0; LINE];
        for (byte, place) in order.iter_mut().enumerate() {
            let (record, column) = (byte / width, byte % width);
            if column < record_len {
                *place = (record * record_len + column) as u8;
            }
        }
        let group_of_word = std::array::from_fn(|word| (word * groups / EIGHT) as u64);
        let (staging, lines, segments) = (Staging::Blocks, EIGHT, vec![0]);
        Tiles { staging, record_len, groups, lines, segments, group_of_word, order }
    }

    /// Records of one tile.
    fn tile_records(&self) -> usize {
        EIGHT * self.groups
    }

    /// Tiles that can only be staged together.
    fn together(&self) -> usize {
        match self.staging {
            Staging::Blocks => BLOCK_RECORDS / self.tile_records(),
            Staging::Short | Staging::Rows => 1,
        }
    }

    /// How many bytes after its own the last tile reads while staging.
    fn bytes_behind(&self) -> usize {
        let together = match self.staging {
            Staging::Short => self.tile_records(),
            Staging::Blocks => self.groups,
            Staging::Rows => 1,
        };
        LINE.saturating_sub(together * self.record_len)
    }

    /// What to prefetch while one segment of some tiles is staged: its share of later tiles, from
    /// front to back, because this order is fastest. If the cache has no room for all segments of
    /// the next tiles, only the next segments of these tiles.
    fn ahead(&self, tiles: usize, segment: usize, segments: usize) -> Ahead {
        let bytes = (tiles * self.tile_records() * self.record_len).max(AHEAD_BYTES);
        match self.staging {
            Staging::Short => Ahead { start: bytes, step: self.tile_records() * self.record_len },
            Staging::Blocks => Ahead { start: bytes, step: self.groups * self.record_len },
            Staging::Rows if bytes > MOST_AHEAD_BYTES => {
                let columns = (segments * LINE).max(AHEAD_BYTES / (tiles * EIGHT));
                Ahead { start: self.segments[segment] + columns, step: self.record_len }
            }
            Staging::Rows => {
                let step = self.record_len.div_ceil(self.segments.len());
                Ahead { start: bytes + segment * tiles * EIGHT * step, step }
            }
        }
    }

    /// The sums of selection `k` in the lines of one segment, before bytes were transposed.
    fn slot(&self, lines: &[[u8; LINE]], k: usize) -> [u8; LINE] {
        let mut slot = [0; LINE];
        for (t, line) in lines.iter().enumerate() {
            for (word, bytes) in line.as_chunks::<EIGHT>().0.iter().enumerate() {
                slot[if lines.len() == 1 { word } else { byte_of(t, word) }] = bytes[k];
            }
        }
        slot
    }

    /// Adds up the sums of the same column of one segment.
    fn add_segment(&self, segment: usize, slot: &[u8; LINE], sum: &mut [u8]) {
        let width = match self.staging {
            Staging::Short => self.record_len,
            Staging::Blocks | Staging::Rows => LINE / self.groups,
        };
        // If segments overlap, the earlier one counts.
        let first = LINE * segment;
        let skipped = first - self.segments[segment];
        let end = self.record_len.min(first + width - skipped);
        for slot in slot.chunks_exact(width).take(self.groups) {
            xor(&mut sum[first..end], &slot[skipped..]);
        }
    }
}

/// The byte of eight slots from which word `word` of line `line` is made. Bytes are transposed
/// within 16 bytes of all slots.
pub(crate) fn byte_of(line: usize, word: usize) -> usize {
    word / 2 * 16 + 2 * line + word % 2
}

/// The sums of one thread.
pub(super) struct Sums {
    kernels: Kernels,
    shape: Shape,
    tiles: Tiles,
    /// The lines of each eight selections, by segment and line: byte `8 w + k` of a line is the sum
    /// of selection `k` in word `w`.
    sums: CacheLines,
    /// Bits of one chunk, for eight selections.
    bits: Vec<u128>,
    /// Words of one chunk, for as many eights as are processed at a time.
    interleaved: Vec<u64>,
    /// Words of one eight. After them there is room to read a whole vector.
    words_of_eight: usize,
    /// The matrices of one piece, by segment, tile and line.
    matrices: CacheLines,
    /// The last records of a chunk, and zeros after them.
    last_records: Vec<u8>,
}

impl Sums {
    pub(super) fn new(kernels: Kernels, shape: Shape) -> Sums {
        let tiles = Tiles::new(shape.record_len);
        let eights = shape.selections.div_ceil(EIGHT);
        let words = shape.chunk_records.div_ceil(WORD_RECORDS);
        let words_of_eight = words * WORD_RECORDS / EIGHT + EIGHT;
        let at_a_time = (INTERLEAVED_BYTES / size_of::<u64>() / words_of_eight).clamp(1, eights);
        Sums {
            kernels,
            shape,
            sums: CacheLines::zeroed(tiles.segments.len() * tiles.lines * eights),
            bits: vec![0; words * EIGHT],
            interleaved: vec![0; words_of_eight * at_a_time],
            words_of_eight,
            matrices: CacheLines::zeroed(PIECE_LINES),
            last_records: Vec::new(),
            tiles,
        }
    }

    /// Copies those of `records` that cannot be staged in place, because staging reads whole lines.
    /// Returns the number of tiles before them and the number of their tiles.
    fn set_apart_last_records(&mut self, records: &[u8]) -> (usize, usize) {
        let (behind, together) = (self.tiles.bytes_behind(), self.tiles.together());
        let bytes = together * self.tiles.tile_records() * self.tiles.record_len;
        let whole = records.len().saturating_sub(behind) / bytes;
        let rest = &records[whole * bytes..];
        let last = rest.len().div_ceil(bytes);
        self.last_records.clear();
        self.last_records.extend_from_slice(rest);
        self.last_records.resize(last * bytes + behind, 0);
        (whole * together, last * together)
    }
}

impl ThreadSums for Sums {
    fn take_chunk(&mut self, records: &[u8], select: impl Fn(usize, &mut [u128])) {
        let words = (records.len() / self.shape.record_len).div_ceil(WORD_RECORDS);
        let words_of_eight = self.words_of_eight;
        let at_a_time = self.interleaved.len() / words_of_eight;
        let lines_of_eight = self.tiles.segments.len() * self.tiles.lines;
        let (whole_tiles, last_tiles) = self.set_apart_last_records(records);
        let transposed = self.tiles.staging == Staging::Blocks;

        for (i, sums) in self.sums.chunks_mut(lines_of_eight * at_a_time).enumerate() {
            let eights = sums.len() / lines_of_eight;
            let interleaved = &mut self.interleaved[..words_of_eight * eights];
            for (e, interleaved) in interleaved.chunks_exact_mut(words_of_eight).enumerate() {
                let first = (i * at_a_time + e) * EIGHT;
                let bits = &mut self.bits[..words * EIGHT];
                // The sums of selections that do not exist are never read.
                let selections = first..self.shape.selections.min(first + EIGHT);
                for (k, bits) in selections.zip(bits.chunks_exact_mut(words)) {
                    select(k, bits);
                }
                let interleaved = &mut interleaved[..words * WORD_RECORDS / EIGHT];
                on_avx512!(
                    self.kernels,
                    selected_xor::by_eight::interleave(bits, transposed, interleaved)
                );
            }
            let mut pass = Pass {
                kernels: self.kernels,
                tiles: &self.tiles,
                interleaved,
                words_of_eight,
                sums,
                matrices: &mut self.matrices,
            };
            pass.take(records, 0, whole_tiles);
            pass.take(&self.last_records, whole_tiles, last_tiles);
        }
    }

    fn add_to(&self, sums: &mut [&mut [u8]]) {
        let tiles = &self.tiles;
        let of_eight = self.sums.chunks_exact(tiles.segments.len() * tiles.lines);
        for (sums, of_eight) in sums.chunks_mut(EIGHT).zip(of_eight) {
            for (segment, lines) in of_eight.chunks_exact(tiles.lines).enumerate() {
                for (k, sum) in sums.iter_mut().enumerate() {
                    tiles.add_segment(segment, &tiles.slot(lines, k), sum);
                }
            }
        }
    }
}

/// The pass of some eights over a chunk.
struct Pass<'a> {
    kernels: Kernels,
    tiles: &'a Tiles,
    /// The words of all eights.
    interleaved: &'a [u64],
    words_of_eight: usize,
    /// The lines of all eights.
    sums: &'a mut [[u8; LINE]],
    matrices: &'a mut [[u8; LINE]],
}

impl Pass<'_> {
    /// Takes the first `count` tiles of `records`, which are tiles `first_tile..` of the chunk.
    fn take(&mut self, records: &[u8], first_tile: usize, count: usize) {
        let tiles = self.tiles;
        let tile_bytes = tiles.tile_records() * tiles.record_len;
        let most = PIECE_LINES / tiles.lines;
        let least = (MOST_AHEAD_BYTES / tile_bytes).clamp(1, PIECE_TILES);
        let piece_tiles = (most / tiles.segments.len()).max(least);
        let piece_segments = tiles.segments.len().min(most / piece_tiles);
        for start in (0..count).step_by(piece_tiles) {
            let piece_tiles = piece_tiles.min(count - start);
            for segments in (0..tiles.segments.len()).step_by(piece_segments) {
                let end = tiles.segments.len().min(segments + piece_segments);
                let piece = Piece {
                    records: &records[start * tile_bytes..],
                    first_group: (first_tile + start) * tiles.groups,
                    tiles: piece_tiles,
                    first_segment: segments,
                    segments: end - segments,
                };
                self.take_piece(piece);
            }
        }
    }

    fn take_piece(&mut self, piece: Piece) {
        let tiles = self.tiles;
        let lines_of_segment = piece.tiles * tiles.lines;
        let matrices = &mut self.matrices[..piece.segments * lines_of_segment];
        let columns = &tiles.segments[piece.first_segment..];
        let of_segments = matrices.chunks_exact_mut(lines_of_segment).zip(columns);
        for (segment, (out, &column)) in (piece.first_segment..).zip(of_segments) {
            let (records, record_len, order) = (piece.records, tiles.record_len, &tiles.order);
            let (kernels, groups) = (self.kernels, tiles.groups);
            let ahead = tiles.ahead(piece.tiles, segment, piece.segments);
            match tiles.staging {
                Staging::Short => {
                    let tile_bytes = tiles.tile_records() * record_len;
                    on_avx512!(
                        kernels,
                        selected_xor::by_eight::stage_short(records, tile_bytes, order, out, ahead)
                    );
                }
                Staging::Blocks => {
                    on_avx512!(
                        kernels,
                        selected_xor::by_eight::stage_blocks(
                            records, record_len, groups, order, out, ahead
                        )
                    );
                }
                Staging::Rows => on_avx512!(
                    kernels,
                    selected_xor::by_eight::stage_rows(records, record_len, column, out, ahead)
                ),
            }
        }
        let of_eights = self.sums.chunks_exact_mut(tiles.segments.len() * tiles.lines);
        for (sums, words) in of_eights.zip(self.interleaved.chunks_exact(self.words_of_eight)) {
            let words = &words[piece.first_group..];
            let sums = sums.chunks_exact_mut(tiles.lines).skip(piece.first_segment);
            for (matrices, sums) in matrices.chunks_exact(lines_of_segment).zip(sums) {
                let group_of_word = &tiles.group_of_word;
                on_avx512!(
                    self.kernels,
                    selected_xor::by_eight::multiply(
                        matrices,
                        words,
                        tiles.groups,
                        group_of_word,
                        sums
                    )
                );
            }
        }
    }
}

/// Some tiles of some segments, whose matrices fit the first-level cache.
struct Piece<'a> {
    /// The records, from its first one on.
    records: &'a [u8],
    /// Its first row group, counted from the beginning of the chunk.
    first_group: usize,
    tiles: usize,
    first_segment: usize,
    segments: usize,
}

/// What to prefetch: when the `n`-th line of a segment is staged, the line `start + n · step` bytes
/// after the first record.
// Only the vector arms prefetch.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead {
    pub(crate) start: usize,
    pub(crate) step: usize,
}
