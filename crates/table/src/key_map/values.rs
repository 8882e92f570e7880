//! Several values of one key, as the one value that its entry holds.
//!
//! The values follow each other, each after its length as a [variable-length
//! number](super::number). There is at least one. Either all keys of a table have lists or none
//! has: [`KeyMap::has_lists`](super::KeyMap::has_lists). Records, schemes and queries treat a list
//! as one value; a client splits it when the lookup is over.

use super::number;
use privet_core::{Error, Result};

/// The list of `values` as one value.
pub fn encode_list<V: AsRef<[u8]>>(values: impl IntoIterator<Item = V>) -> Vec<u8> {
    let mut list = Vec::new();
    for value in values {
        push_to_list(&mut list, value.as_ref());
    }
    list
}

/// Appends a value to a list, which may be empty so far.
pub(crate) fn push_to_list(list: &mut Vec<u8>, value: &[u8]) {
    number::write(list, value.len() as u64);
    list.extend_from_slice(value);
}

/// The bytes that a value of `len` bytes takes in a list.
#[cfg(feature = "files")]
pub(crate) fn listed_len(len: usize) -> usize {
    number::len(len as u64) + len
}

/// The values in a list, at least one, in their order.
///
/// # Errors
/// [`Blame::Integrity`](privet_core::Blame::Integrity) if `list` is malformed.
pub fn decode_list(list: &[u8]) -> Result<Vec<&[u8]>> {
    values_of_list(list)?.collect()
}

/// The values in a list, one after the other. Each is read when its turn comes, and nothing is
/// allocated.
///
/// # Errors
/// As [`decode_list`]: at once if the list is empty, and otherwise in place of the first malformed
/// value, after which the iterator ends.
pub fn values_of_list(list: &[u8]) -> Result<impl Iterator<Item = Result<&[u8]>>> {
    if list.is_empty() {
        return Err(malformed("it is empty"));
    }
    let mut rest = list;
    Ok(std::iter::from_fn(move || {
        let list = std::mem::take(&mut rest);
        if list.is_empty() {
            return None;
        }
        let value = first_of(list).map(|(value, after)| {
            rest = after;
            value
        });
        Some(value)
    }))
}

/// The first value of a list that is not empty, and what follows it.
fn first_of(list: &[u8]) -> Result<(&[u8], &[u8])> {
    let (len, after) = number::read(list).map_err(malformed)?;
    after.split_at_checked(len as usize).ok_or_else(|| malformed("a value is cut off"))
}

fn malformed(how: &str) -> Error {
    Error::integrity(format!(
        "a key's list of values is malformed ({how}): an answer was recovered wrongly, or the table and its key map do not \
         belong together"
    ))
}
