//! Servers, field, variables and degree.

use super::encoding;
use super::field::{FEWEST_SERVERS, FIELDS, Field, least_field};
use crate::finite_differences::costs::{self, Choice, Setting};
use crate::finite_differences::record_polynomial::{RecordPolynomial, announced};
use privet_core::codec::Reader;
use privet_core::table::MAX_TABLE_BYTES;
use privet_core::{Error, Result, TableIdentity, TableShape};
use privet_schemes::contract::Parameters;
use std::ops::Deref;

/// A polynomial of degree D in m variables over the field of q elements, and s servers. The degree
/// in each variable is 1, and each record has a coefficient. So 3 ≤ s ≤ q, 1 ≤ D ≤ m, and C(m, D)
/// is at least the number of records.
#[derive(Clone, Debug)]
pub struct ManyServersParameters {
    polynomial: RecordPolynomial,
    servers: u32,
    field: Field,
    points: u64,
    entry_len: usize,
}

impl Deref for ManyServersParameters {
    type Target = RecordPolynomial;

    fn deref(&self) -> &RecordPolynomial {
        &self.polynomial
    }
}

impl ManyServersParameters {
    /// The parameters for a table: the fewest reads with at most 32 times the table's storage, or
    /// what `choice` asks for. The field is the smallest one with an element for each server.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if there are none.
    pub fn new(shape: TableShape, servers: u32, choice: &Choice) -> Result<Self> {
        let field = least_field(servers).ok_or_else(|| {
            Error::api_misuse(format!(
                "this scheme takes {FEWEST_SERVERS} to 13 servers, not {servers}; two servers have a scheme of their own"
            ))
        })?;
        let checked = field_for(servers, field)?;
        let entry_len = encoding::entry_len(checked, shape.record_len());
        let bytes = |entries: u64| entry_len.and_then(|len| entries.checked_mul(len));
        Self::with(shape, costs::choose(shape.records(), servers, field, choice, bytes)?)
    }

    /// The parameters with exactly this setting.
    ///
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), with the numbers, unless it suits the
    /// table.
    pub fn with(shape: TableShape, setting: Setting) -> Result<Self> {
        let Setting { servers, field: order, variables, degree } = setting;
        let field = field_for(servers, order)?;
        if degree == 0 || degree > variables {
            return Err(Error::api_misuse(format!(
                "the degree is at least 1 and at most the number of variables, not {degree} of {variables}"
            )));
        }
        let entry_len = encoding::entry_len(field, shape.record_len());
        let sizes = setting.points().zip(entry_len).and_then(|(points, entry_len)| {
            let bytes = points.checked_mul(entry_len)?;
            let entry_len = usize::try_from(entry_len).ok()?;
            (bytes <= MAX_TABLE_BYTES).then_some((points, entry_len))
        });
        let Some((points, entry_len)) = sizes else {
            return Err(Error::api_misuse(format!(
                "{order}^{variables} points of a record of {} bytes each are too much: the limit is {MAX_TABLE_BYTES} bytes",
                shape.record_len()
            )));
        };
        let polynomial = RecordPolynomial::new(shape, setting)?;
        Ok(Self { polynomial, servers, field, points, entry_len })
    }

    /// Servers that are asked, s.
    pub fn servers(&self) -> u32 {
        self.servers
    }

    /// Elements of the field, q.
    pub fn field(&self) -> u32 {
        self.field.order()
    }

    /// How many points there are, q^m.
    pub fn points(&self) -> u64 {
        self.points
    }

    /// Size of what is stored for one point, in bytes: the symbols of a record, packed.
    pub fn entry_len(&self) -> usize {
        self.entry_len
    }

    /// Size of all points, in bytes: at most 2^48.
    pub fn points_bytes(&self) -> u64 {
        self.points * self.entry_len as u64
    }

    /// Size of one server's answer, in bytes.
    pub fn answer_bytes(&self) -> u64 {
        // At most the size of all points, because the ball is a part of all words.
        self.ball().count() * self.entry_len as u64
    }

    /// How many cache lines of 64 bytes a server reads for a query. The number is exact for the
    /// point 0 and approximate for others: short entries share a line if they differ only in the
    /// lowest variables. Entries of 64 bytes and more are counted as if none shared a line. Takes
    /// as much time and memory as an answer.
    pub fn cache_lines(&self) -> u64 {
        let (field, entry_len) = (u64::from(self.field()), self.entry_len as u64);
        if entry_len >= 64 {
            // Hardly any entries share a line.
            return self.ball().count().saturating_mul(entry_len.div_ceil(64));
        }
        let strides: Vec<u64> = (0..self.variables()).map(|variable| field.pow(variable)).collect();
        let lines = self.ball().words().flat_map(|word| {
            let set = strides.iter().enumerate().filter(|(variable, _)| word >> variable & 1 == 1);
            let start = set.map(|(_, stride)| stride).sum::<u64>() * entry_len;
            start / 64..=(start + entry_len - 1) / 64
        });
        let mut lines: Vec<u64> = lines.collect();
        lines.sort_unstable();
        lines.dedup();
        lines.len() as u64
    }

    pub(super) fn packing(&self) -> Field {
        self.field
    }
}

/// The field, if it has an element for each server.
fn field_for(servers: u32, order: u32) -> Result<Field> {
    let field = Field::new(order)?;
    if !(FEWEST_SERVERS..=order).contains(&servers) {
        return Err(Error::api_misuse(format!(
            "over a field of {order} elements there are 3 to {order} servers, not {servers}; the fields have {FIELDS:?} elements, and two servers have a scheme of their own"
        )));
    }
    Ok(field)
}

impl Parameters for ManyServersParameters {
    /// Servers, field, variables, degree: a byte each.
    fn encode(&self) -> Vec<u8> {
        [self.servers(), self.field(), self.variables(), self.degree()]
            .map(|number| number as u8)
            .into()
    }

    fn decode(identity: &TableIdentity, bytes: &[u8]) -> Result<Self> {
        let mut reader =
            Reader::new("the parameters of finite differences with many servers", bytes);
        let [servers, field, variables, degree] = reader.array::<4>()?.map(u32::from);
        reader.finish()?;
        let setting = Setting { servers, field, variables, degree };
        announced(Self::with(identity.shape, setting))
    }
}
