//! The outcome of a lookup.

use privet_core::Result;
use privet_table::key_map::values_of_list;
use std::fmt;
use std::ops::Deref;
use zeroize::Zeroizing;

/// The value that was looked up: erased when dropped, and printed without its content.
///
/// It dereferences to the bytes of the value. In a table whose keys have several values, these are
/// the first value's bytes, and [`values`](Value::values) has all of them.
#[derive(Clone, PartialEq, Eq)]
pub struct Value {
    /// The value, or a checked list of values.
    bytes: Zeroizing<Vec<u8>>,
    is_list: bool,
}

impl Value {
    /// Makes a value of `bytes`: the value itself, or the list of values that they hold.
    ///
    /// # Errors
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if they should hold a list and do not.
    pub(super) fn read(bytes: Zeroizing<Vec<u8>>, is_list: bool) -> Result<Self> {
        if is_list {
            for value in values_of_list(&bytes)? {
                value?;
            }
        }
        Ok(Self { bytes, is_list })
    }

    /// All values of the key, in the order in which the table has them; at least one.
    pub fn values(&self) -> impl Iterator<Item = &[u8]> {
        let alone = (!self.is_list).then_some(self.bytes.as_slice());
        let listed = self.is_list.then(|| values_of_list(&self.bytes)).into_iter().flatten();
        // All of them are there: the list was checked.
        alone.into_iter().chain(listed.flatten().flatten())
    }

    /// Whether keys of this table can have several values, even if this key has only one.
    pub fn is_list(&self) -> bool {
        self.is_list
    }
}

impl Deref for Value {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.values().next().unwrap_or_default()
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Value(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_core::Blame;
    use privet_table::key_map::encode_list;

    fn read(bytes: &[u8], is_list: bool) -> Result<Value> {
        Value::read(Zeroizing::new(bytes.to_vec()), is_list)
    }

    #[test]
    fn a_value_reads_as_its_bytes_and_a_list_as_its_first() {
        for bytes in [&b""[..], b"value"] {
            let value = read(bytes, false).unwrap();
            assert_eq!((&*value, value.is_list()), (bytes, false));
            assert_eq!(value.values().collect::<Vec<_>>(), [bytes]);
        }
        for values in [&[&b"a"[..]][..], &[b"", b"b"], &[b"one", &[7; 300], b""]] {
            let value = read(&encode_list(values), true).unwrap();
            assert_eq!((&*value, value.is_list()), (values[0], true));
            assert_eq!(value.values().collect::<Vec<_>>(), values);
        }
    }

    #[test]
    fn what_is_no_list_is_refused_and_nothing_of_it_is_told() {
        for bytes in [&b""[..], b"\x05four", b"\x01a\x02b", b"\xff"] {
            assert_eq!(read(bytes, true).unwrap_err().blame(), Blame::Integrity, "{bytes:?}");
        }
    }
}
