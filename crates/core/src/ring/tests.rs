//! Ring encryption and packing: known answers, each step against a direct computation, noise
//! against its formulas, failures at the predicted rate.

mod known_answers;
mod noise;
mod security;
mod steps;

use super::noise as theory;
use super::*;
use crate::SecretRng;
use privet_kernels::Kernels;
use privet_kernels::byte_matrix::TiledBytes;
use zeroize::Zeroizing;

fn kernels() -> Kernels {
    Kernels::detect()
}

/// A form of the degree at which most tests work.
const DEGREE: usize = 64;

fn small() -> Form {
    Form::insecure(DEGREE)
}

/// A byte matrix, column by column, packed under random public polynomials.
struct World {
    form: Form,
    rows: usize,
    columns: usize,
    table: Vec<u8>,
    public: PublicCoefficients,
    factors: EncryptionFactors,
    blocks: Vec<Block>,
}

struct Block {
    /// Column by column, for the rows that exist.
    matrix: Vec<u32>,
    fold: Vec<u32>,
    mask: Vec<u32>,
    norms: PackingNorms,
}

/// A query in the clear, with what the client keeps.
struct Asked {
    words: Vec<u32>,
    query_bits: u32,
    keys: PublicKeys,
    key: RingKey,
}

impl World {
    fn new(form: Form, rows: usize, columns: usize, table: Vec<u8>) -> Self {
        Self::with_columns_of("a", form, rows, columns, table)
    }

    /// Under the polynomials of that name for the columns. Those of the keys are the same for all.
    fn with_columns_of(
        name: &str,
        form: Form,
        rows: usize,
        columns: usize,
        table: Vec<u8>,
    ) -> Self {
        let sequences = [name, "packing", "fold"].map(|name| {
            PublicPolynomials::new(&crate::PublicSeed::derive("privet test", name.as_bytes()))
        });
        let public = PublicCoefficients::expand(kernels(), form, columns as u64, &sequences);
        Self::with_public(form, rows, columns, table, public)
    }

    fn with_public(
        form: Form,
        rows: usize,
        columns: usize,
        table: Vec<u8>,
        public: PublicCoefficients,
    ) -> Self {
        assert_eq!(table.len(), rows * columns);
        let packing = PackingFactors::new(kernels(), form, &public);
        let mut scratch = packing.scratch().unwrap();
        let blocks = (0..rows).step_by(form.degree).map(|first| {
            let count = form.degree.min(rows - first);
            let mut block = Block {
                matrix: vec![0; count * form.degree],
                fold: vec![0; form.degree],
                mask: vec![0; form.degree],
                norms: PackingNorms { matrix: 0.0, fold: 0.0 },
            };
            let read = |from: usize, count: usize, out: &mut Vec<u8>| {
                out.clear();
                for column in table.chunks_exact(rows) {
                    out.extend_from_slice(&column[first + from..][..count]);
                }
            };
            let mut out = BlockOut {
                matrix: &mut block.matrix,
                fold: &mut block.fold,
                mask: &mut block.mask,
            };
            block.norms = packing.pack(kernels(), count, read, &mut scratch, &mut out).unwrap();
            block
        });
        let blocks = blocks.collect();
        let factors = EncryptionFactors::new(kernels(), form, &public);
        Self { form, rows, columns, table, public, factors, blocks }
    }

    fn random(form: Form, rows: usize, columns: usize) -> Self {
        let mut table = vec![0; rows * columns];
        SecretRng::from_fixed_seed([5; 32]).fill(&mut table);
        Self::new(form, rows, columns, table)
    }

    fn column(&self, number: usize) -> &[u8] {
        &self.table[number * self.rows..][..self.rows]
    }

    fn ask(&self, column: usize, query_bits: u32, rng: &mut SecretRng) -> Asked {
        let blank = encrypt_zero(kernels(), &self.factors, &[self.columns as u64], query_bits, rng);
        let (words, keys, key) = blank.into_query(&[column as u64]);
        Asked { words, query_bits, keys, key }
    }

    /// The sums of the pass, without planes: `D·b`.
    fn table_sums(&self, asked: &Asked) -> Vec<u32> {
        let words: Vec<u32> =
            asked.words.iter().map(|word| word << (32 - asked.query_bits)).collect();
        let tiled = TiledBytes::from_columns(&self.table, self.rows, 1).unwrap();
        let mut sums = vec![0; self.rows];
        kernels().multiply(&tiled, &[&words], &mut [&mut sums], 1);
        sums
    }

    /// The vector and the sums of the whole pass.
    fn pass(&self, asked: &Asked) -> (Vec<u32>, Vec<u32>) {
        let Asked { words, query_bits, keys, .. } = asked;
        let words = pass_words(self.form, *query_bits, words, keys, self.columns);
        let mut columns = self.table.clone();
        for plane in 0..PLANES {
            for number in 0..self.form.degree {
                for block in &self.blocks {
                    let rows = block.matrix.len() / self.form.degree;
                    let column = &block.matrix[number * rows..][..rows];
                    columns.extend(column.iter().map(|word| word.to_le_bytes()[plane]));
                }
            }
        }
        let tiled = TiledBytes::from_columns(&columns, self.rows, 1).unwrap();
        let mut sums = vec![0; self.rows];
        kernels().multiply(&tiled, &[&words], &mut [&mut sums], 1);
        (words, sums)
    }

    fn answer(&self, asked: &Asked) -> Vec<u16> {
        let folding = Folding::new(self.form);
        let digits = self.blocks.iter().flat_map(|block| &block.fold);
        let digits: Vec<u8> = digits.flat_map(|digit| digit.to_le_bytes()).collect();
        let digits = folding.digits(kernels(), &digits);
        let rows = self.blocks.iter().map(|block| block.matrix.len() / self.form.degree);
        folding.symbols(kernels(), &digits, &asked.keys, &self.pass(asked).1, rows)
    }

    fn decrypt(&self, key: &RingKey, answer: &[u16]) -> Vec<u8> {
        self.decrypt_vector(key, &self.factors, 0, answer)
    }

    /// The same for a vector of a query that has several.
    fn decrypt_vector(
        &self,
        key: &RingKey,
        factors: &EncryptionFactors,
        vector: usize,
        answer: &[u16],
    ) -> Vec<u8> {
        let mut bytes = vec![0; answer.len()];
        let blocks = answer.chunks(self.form.degree).zip(bytes.chunks_mut(self.form.degree));
        for (block, (symbols, bytes)) in self.blocks.iter().zip(blocks) {
            let symbols = BlockSymbols { vector, mask: &block.mask, first_row: 0, symbols };
            key.decrypt(kernels(), factors, symbols, bytes);
        }
        bytes
    }
}
