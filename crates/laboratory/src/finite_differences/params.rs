//! Variables, degree, and how a record is stored: whole bytes, or a single bit.

use super::costs::{self, Choice, Setting};
use super::record_polynomial::{RecordPolynomial, announced};
use crate::combinations::{Ball, MOST_VARIABLES};
use privet_core::codec::Reader;
use privet_core::table::MAX_TABLE_BYTES;
use privet_core::{Error, Result, TableIdentity, TableShape};
use privet_schemes::contract::Parameters;
use std::ops::Deref;

/// A polynomial of odd degree D in m variables over F₂, with a coefficient for each record: C(m, D)
/// is at least their number, and 2·D at most m.
#[derive(Clone, Debug)]
pub struct FiniteDifferencesParameters {
    polynomial: RecordPolynomial,
    one_bit: bool,
    /// The record that a bit of value 0 stands for.
    zero: u8,
}

impl Deref for FiniteDifferencesParameters {
    type Target = RecordPolynomial;

    fn deref(&self) -> &RecordPolynomial {
        &self.polynomial
    }
}

impl FiniteDifferencesParameters {
    /// The parameters for a table: the fewest reads with at most 32 times the table's storage, or
    /// what `choice` asks for. `one_bit` says that records are single bits: bytes of value 0 or 1.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there are none.
    pub fn new(shape: TableShape, one_bit: bool, choice: &Choice) -> Result<Self> {
        let entries = |points: u64| match one_bit {
            true => Some(points.div_ceil(8)),
            false => points.checked_mul(shape.record_len()),
        };
        Self::with(shape, one_bit, costs::choose(shape.records(), 2, 2, choice, entries)?)
    }

    /// The parameters with exactly these variables and this degree.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), with the numbers, unless they suit the
    /// table.
    pub fn with(shape: TableShape, one_bit: bool, setting: Setting) -> Result<Self> {
        let Setting { servers, field, variables, degree } = setting;
        if (servers, field) != (2, 2) {
            return Err(Error::api_misuse("two servers compute over the field of two elements"));
        }
        if one_bit && shape.record_len() != 1 {
            return Err(Error::api_misuse(format!(
                "single bits are bytes of value 0 or 1, records of one byte each, not {}",
                shape.record_len()
            )));
        }
        // At least two variables, so that there are two records.
        if degree % 2 == 0 || variables < 2 || degree > variables / 2 || variables > MOST_VARIABLES
        {
            return Err(Error::api_misuse(format!(
                "the degree is odd and at most half of the variables, of which there are 2 to {MOST_VARIABLES}, not {degree} of {variables}"
            )));
        }
        let polynomial = RecordPolynomial::new(shape, setting)?;
        let parameters = Self { polynomial, one_bit, zero: 0 };
        match (1u64 << variables).checked_mul(shape.record_len()) {
            Some(bytes) if bytes <= MAX_TABLE_BYTES => Ok(parameters),
            _ => Err(Error::api_misuse(format!(
                "2^{variables} points of {} bytes are too much: the limit is {MAX_TABLE_BYTES} bytes",
                shape.record_len()
            ))),
        }
    }

    /// Whether records are single bits.
    pub fn one_bit(&self) -> bool {
        self.one_bit
    }

    /// The same, if single bits are stored as the characters `0` and `1` instead of bytes of value
    /// 0 or 1.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) unless records are single bits.
    pub fn of_digits(self) -> Result<Self> {
        match self.one_bit {
            true => Ok(Self { zero: b'0', ..self }),
            false => Err(Error::api_misuse(
                "only single bits can be digits: say that records are single bits",
            )),
        }
    }

    /// The record that a single bit of value 0 stands for; that of value 1 is the next byte.
    pub fn zero(&self) -> u8 {
        self.zero
    }

    /// Checks that records are single bits, if they must be.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if one is not.
    pub(super) fn check_single_bits(&self, records: &[u8]) -> Result<()> {
        if !self.one_bit || records.iter().all(|byte| byte ^ self.zero <= 1) {
            return Ok(());
        }
        Err(Error::api_misuse(match self.zero {
            0 => "this table's records are not single bits: a byte of it is neither 0 nor 1",
            _ => {
                "this table's records are not single bits: a byte of it is neither of the characters 0 and 1"
            }
        }))
    }

    /// Size of all points, in bytes.
    pub fn points_bytes(&self) -> u64 {
        match self.one_bit {
            true => (1u64 << self.variables()).div_ceil(8),
            false => self.shape().record_len() << self.variables(),
        }
    }

    /// Size of what is stored of all points, in bytes: at least one cache line, because they are
    /// read by lines.
    pub fn stored_bytes(&self) -> u64 {
        self.points_bytes().max(64)
    }

    /// The number of variables in which two points of one cache line of 64 bytes may differ. 0 if
    /// each point has lines of its own, or begins anywhere within one.
    pub(super) fn variables_in_line(&self) -> u32 {
        let record_len = self.shape().record_len();
        match self.one_bit {
            true => 9,
            false if record_len < 64 && record_len.is_power_of_two() => 6 - record_len.ilog2(),
            false => 0,
        }
    }

    /// How many cache lines of 64 bytes a server reads for a query. Records that do not begin with
    /// a line, such as those of 3 or 100 bytes, are counted as if each had lines of its own.
    pub fn cache_lines(&self) -> u64 {
        let low = self.variables_in_line().min(self.variables());
        let high = self.variables() - low;
        let lines = Ball::new(high, self.ball().radius().min(high)).map_or(0, |ball| ball.count());
        lines.saturating_mul(self.shape().record_len().div_ceil(64))
    }

    /// Size of a query, in bytes: a bit for each variable.
    pub(super) fn query_len(&self) -> usize {
        self.variables().div_ceil(8) as usize
    }

    /// Size of one server's answer, in bytes.
    pub fn answer_bytes(&self) -> u64 {
        match self.one_bit {
            true => self.ball().count().div_ceil(8),
            false => self.ball().count().saturating_mul(self.shape().record_len()),
        }
    }
}

impl Parameters for FiniteDifferencesParameters {
    /// Variables, degree, and 1 for single bits, or 2 if they are digits: a byte each.
    fn encode(&self) -> Vec<u8> {
        let form = u8::from(self.one_bit) + u8::from(self.zero != 0);
        vec![self.variables() as u8, self.degree() as u8, form]
    }

    fn decode(identity: &TableIdentity, bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new("the parameters of finite differences", bytes);
        let (variables, degree, form) = (reader.u8()?, reader.u8()?, reader.u8()?);
        reader.finish()?;
        if form > 2 {
            return Err(Error::invalid_message(
                "the parameters of finite differences do not say whether records are single bits",
            ));
        }
        let setting =
            Setting { servers: 2, field: 2, variables: variables.into(), degree: degree.into() };
        let parameters = Self::with(identity.shape, form > 0, setting);
        announced(match form {
            2 => parameters.and_then(Self::of_digits),
            _ => parameters,
        })
    }
}
