//! Where differences are cut, with how many bits numbers are sent, and what that costs.

use crate::contract::{Message, table_seed};
use crate::finite_differences::{FiniteDifferencesParameters, FiniteDifferencesQuery};
use privet_core::combinations::{Ball, binomial};
use privet_core::ring::noise::{RECORD_FAILURE_LOG2, bits_failure_bound_log2};
use privet_core::ring::{Form, PublicCoefficients, PublicPolynomials};
use privet_core::{Error, Result, TableIdentity};
use privet_kernels::Kernels;

/// Digits for both keys. A bit is right with much more noise than a byte, so they may be shorter
/// than a byte's, and then the keys' words are shorter too.
const DIGIT_BITS: [u32; 2] = [16, 11];

/// A word of the fold key has so many bits fewer than one of the packing key: its digits have five
/// bits fewer, and there is one of them instead of 2046 (2^5.5 times the deviation).
const FOLD_KEY_LESS: u32 = 11;

/// Parameters of the plain scheme, and how its answers are compressed.
#[derive(Clone, Debug)]
pub struct CompressedParameters {
    plain: FiniteDifferencesParameters,
    form: Form,
    query_bits: u32,
    /// All e₁.
    rows: Ball,
    /// All e₂, moved down by k: their variables are above the k lowest.
    columns: Ball,
    polynomials: [PublicPolynomials; 3],
}

impl CompressedParameters {
    /// Compresses answers of the plain scheme such that a lookup moves the fewest bytes.
    ///
    /// # Errors
    /// As [`with_cut`](Self::with_cut), if all cuts are refused.
    pub fn new(identity: &TableIdentity, plain: FiniteDifferencesParameters) -> Result<Self> {
        Self::with_form(identity, plain, None, Form::STANDARD)
    }

    /// The same with differences cut after their `cut` lowest variables, from 0 to K.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if `cut` is larger, or the noise of so
    /// many columns would make records wrong too often.
    pub fn with_cut(
        identity: &TableIdentity,
        plain: FiniteDifferencesParameters,
        cut: u32,
    ) -> Result<Self> {
        Self::with_form(identity, plain, Some(cut), Form::STANDARD)
    }

    /// The same in a ring of another degree, which tests have.
    pub(super) fn with_form(
        identity: &TableIdentity,
        plain: FiniteDifferencesParameters,
        cut: Option<u32>,
        form: Form,
    ) -> Result<Self> {
        let cuts = cut.map_or(0..=plain.ball().radius(), |cut| cut..=cut);
        let of_cut = |cut| Self::of_cut(identity, &plain, cut, form);
        let all = cuts.map(of_cut).collect::<Result<Vec<_>>>()?;
        let found = all.into_iter().flatten().min_by_key(Self::moved_bytes);
        found.ok_or_else(|| {
            Error::api_misuse("so many points cannot be compressed: the noise would be too large")
        })
    }

    /// With the precisions that move the fewest bytes. `None` if none suffice.
    fn of_cut(
        identity: &TableIdentity,
        plain: &FiniteDifferencesParameters,
        cut: u32,
        form: Form,
    ) -> Result<Option<Self>> {
        let (variables, radius) = (plain.variables(), plain.ball().radius());
        let Some(rest) = radius.checked_sub(cut) else {
            return Err(Error::api_misuse(format!(
                "differences have at most {radius} variables and cannot be cut after {cut}"
            )));
        };
        let polynomials = [
            "privet 2026-11 compressed finite-differences columns",
            "privet 2026-11 compressed finite-differences packing key",
            "privet 2026-11 compressed finite-differences fold key",
        ]
        .map(|purpose| PublicPolynomials::new(&table_seed(purpose, identity)));
        let found = Self {
            plain: plain.clone(),
            form,
            query_bits: 0,
            rows: Ball::new(variables, cut)?,
            columns: Ball::new(variables - cut, rest)?,
            polynomials,
        };
        let (columns, bits) = (found.columns.count(), found.bits_read());
        let right = |form: Form, query_bits| {
            bits_failure_bound_log2(form, query_bits, columns, bits) <= RECORD_FAILURE_LOG2
        };
        let form = form.with_digits(DIGIT_BITS);
        let keys = (28..=50).map(|bits| [bits, bits - FOLD_KEY_LESS]);
        let precisions = keys.flat_map(|keys| {
            (6..=17).flat_map(move |mask| {
                (2..=8).map(move |answer| form.with_precisions(keys, mask, answer))
            })
        });
        let enough = precisions.filter_map(|form| {
            let query_bits = (8..=32).find(|bits| right(form, *bits))?;
            Some(Self { form, query_bits, ..found.clone() })
        });
        Ok(enough.min_by_key(Self::moved_bytes))
    }

    /// The parameters of the plain scheme.
    pub fn plain(&self) -> &FiniteDifferencesParameters {
        &self.plain
    }

    /// The numbers of the ring encryption.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Bits of a query's word.
    pub fn query_bits(&self) -> u32 {
        self.query_bits
    }

    /// k: after how many of its lowest variables a difference is cut.
    pub fn cut(&self) -> u32 {
        self.rows.radius()
    }

    /// How many words a query has: one for each e₂.
    pub fn query_words(&self) -> u64 {
        self.columns.count()
    }

    /// How many bits an answer encrypts: a record's for each e₁.
    pub fn answer_symbols(&self) -> u64 {
        self.rows.count().saturating_mul(self.record_bits())
    }

    /// How many blocks these are packed in.
    pub fn blocks(&self) -> u64 {
        self.answer_symbols().div_ceil(self.form.degree() as u64)
    }

    /// Bytes that go to each server.
    pub fn query_bytes(&self) -> u64 {
        let keys = self.form.key_bits().map(u64::from).iter().sum::<u64>();
        let words = self.query_words().saturating_mul(self.query_bits.into());
        let point = FiniteDifferencesQuery::encoded_len(&self.plain) as u64;
        point + (words + keys * self.form.degree() as u64).div_ceil(8)
    }

    /// Bytes that come from each server.
    pub fn answer_bytes(&self) -> u64 {
        self.answer_bits().div_ceil(8)
    }

    pub(super) fn answer_bits(&self) -> u64 {
        let masks = self.blocks().saturating_mul(8 * self.form.mask_bytes());
        let symbols = self.answer_symbols().saturating_mul(self.form.answer_bits().into());
        masks.saturating_add(symbols)
    }

    /// Bytes that a lookup moves, to and from both servers.
    pub fn moved_bytes(&self) -> u64 {
        self.query_bytes().saturating_add(self.answer_bytes()).saturating_mul(2)
    }

    /// log2 of a bound on the probability that a recovered record is wrong.
    pub fn failure_bound_log2(&self) -> f64 {
        let (columns, bits) = (self.columns.count(), self.bits_read());
        bits_failure_bound_log2(self.form, self.query_bits, columns, bits)
    }

    /// What a server computes for a query, besides its random reads: additions, or multiplications
    /// each with an addition, in the transforms as in the sums. As packing is written, with
    /// transforms of radix 2.
    pub fn multiply_adds(&self) -> u64 {
        let degree = self.form.degree() as u64;
        let (half_levels, levels) = (u64::from((degree / 2).ilog2()), u64::from(degree.ilog2()));
        let polynomials = self.query_words().div_ceil(degree);
        // A complex multiplication is four real ones. A fixed polynomial has three parts.
        let of_row = polynomials * degree * (half_levels + 6) + 3 * degree * half_levels;
        // Both ring transforms; and for each key switch six transforms and three products.
        let of_block = degree * degree * levels + (degree - 1) * (3 * levels + 3) * degree;
        let of_points = self.plain.ball().count().saturating_mul(self.record_bits());
        let of_rows = self.answer_symbols().saturating_mul(of_row + degree);
        of_points.saturating_add(of_rows).saturating_add(self.blocks().saturating_mul(of_block))
    }

    /// Bits of a record.
    pub(super) fn record_bits(&self) -> u64 {
        match self.plain.one_bit() {
            true => 1,
            false => 8 * self.plain.shape().record_len(),
        }
    }

    /// How many bits a client reads of both answers: those of all e₁ ⊆ x.
    fn bits_read(&self) -> u64 {
        let of_weight = |weight| binomial(self.plain.degree(), weight).unwrap_or(u128::MAX);
        let subsets: u128 = (0..=self.cut()).map(of_weight).sum();
        u64::try_from(2 * subsets * u128::from(self.record_bits())).unwrap_or(u64::MAX)
    }

    /// All e₁, in the order of an answer.
    pub(super) fn lows(&self) -> impl Iterator<Item = u64> {
        self.rows.words()
    }

    /// All e₂, in the order of a query.
    pub(super) fn highs(&self) -> impl Iterator<Item = u64> {
        let cut = self.cut();
        self.columns.words().map(move |word| word << cut)
    }

    /// The columns that are summed up for the row `low`, each with the difference e₁ ∪ e₂. Each
    /// difference occurs once, in the row of its k lowest variables.
    pub(super) fn differences(&self, low: u64) -> impl Iterator<Item = (usize, u64)> {
        let full = low.count_ones() == self.cut();
        let above = u64::BITS - low.leading_zeros();
        let is_cut = move |high: u64| high == 0 || (full && high.trailing_zeros() >= above);
        let highs = self.highs().enumerate();
        highs.filter(move |(_, high)| is_cut(*high)).map(move |(column, high)| (column, low | high))
    }

    /// The public polynomials of the columns and the keys.
    pub(super) fn public(&self, kernels: Kernels) -> PublicCoefficients {
        PublicCoefficients::expand(kernels, self.form, self.query_words(), &self.polynomials)
    }
}
