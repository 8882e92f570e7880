//! What a lookup brings.

use privet_core::Result;
use privet_table::key_map::decode_list;
use std::fmt;
use std::ops::Deref;
use zeroize::Zeroizing;

/// What was looked up: erased when dropped, and printed without its content.
///
/// It reads as the bytes of the value. In a table whose keys have several values, it reads as those of the first, and [`values`](Value::values) has all of them.
#[derive(Clone, PartialEq, Eq)]
pub struct Value {
    first: Zeroizing<Vec<u8>>,
    further: Vec<Zeroizing<Vec<u8>>>,
    is_list: bool,
}

impl Value {
    /// The only value that there can be.
    pub(super) fn single(value: Zeroizing<Vec<u8>>) -> Self {
        Self { first: value, further: Vec::new(), is_list: false }
    }

    /// The values in a list.
    ///
    /// # Errors
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if it is none.
    pub(super) fn of_list(list: &[u8]) -> Result<Self> {
        let mut values = decode_list(list)?.into_iter().map(|value| Zeroizing::new(value.to_vec()));
        // A list has at least one.
        let first = values.next().unwrap_or_default();
        Ok(Self { first, further: values.collect(), is_list: true })
    }

    /// All values of the key, in the order in which the table has them; at least one.
    pub fn values(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(&self.first).chain(&self.further).map(|value| value.as_slice())
    }

    /// Whether keys of this table have several values, also if this one has only one.
    pub fn is_list(&self) -> bool {
        self.is_list
    }
}

impl Deref for Value {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.first
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Value(..)")
    }
}
