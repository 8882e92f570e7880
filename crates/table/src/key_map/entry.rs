//! How values, or [pieces](super::pieces) of them, lie in a bucket.
//!
//! A bucket is one record of the table. Its entries follow each other from its first byte on, in
//! ascending order of their tags:
//!
//! | bytes | content |
//! |---|---|
//! | 1 to 4 | the value's length plus one, as a [variable-length number](super::number) |
//! | 8 | the key's tag, little-endian |
//! | length | the value |
//!
//! A zero where a length would stand ends the bucket, and everything after it is zero. A bucket
//! filled to its last byte has no such zero. So a bucket has one valid form, and any other is
//! refused.

use super::number;
use privet_core::{Error, Result};

const TAG_LEN: usize = 8;

/// The bytes that a value of `value_len` bytes takes in its bucket.
pub(super) fn entry_len(value_len: usize) -> u64 {
    (number::len(value_len as u64 + 1) + TAG_LEN + value_len) as u64
}

/// Appends one entry to a bucket under construction.
pub(super) fn write_entry(bucket: &mut Vec<u8>, tag: u64, value: &[u8]) {
    number::write(bucket, value.len() as u64 + 1);
    bucket.extend_from_slice(&tag.to_le_bytes());
    bucket.extend_from_slice(value);
}

/// The value tagged `tag`, if the bucket has one. Reads the whole bucket whatever it holds and
/// whether or not the tag is there.
///
/// # Errors
/// [`Blame::Integrity`](privet_core::Blame::Integrity) if `bucket` does not have the form that the
/// module describes.
pub(super) fn find_entry(bucket: &[u8], tag: u64) -> Result<Option<&[u8]>> {
    let mut found = None;
    for_each_entry(bucket, |entry_tag, value| {
        if entry_tag == tag {
            found = Some(value);
        }
    })?;
    Ok(found)
}

/// Calls `visit` with the tag and the value of each entry, in their order.
///
/// # Errors
/// [`Blame::Integrity`](privet_core::Blame::Integrity) if `bucket` does not have the form that the
/// module describes; some entries may have been visited by then.
pub(super) fn for_each_entry<'a>(
    bucket: &'a [u8],
    mut visit: impl FnMut(u64, &'a [u8]),
) -> Result<()> {
    let mut rest = bucket;
    let mut previous = None;
    while !rest.is_empty() {
        let (number, after) = number::read(rest).map_err(malformed)?;
        let Some(value_len) = number.checked_sub(1) else { break };
        let Some((entry_tag, after)) = after.split_first_chunk::<TAG_LEN>() else {
            return Err(malformed("a tag is cut off"));
        };
        let Some((value, after)) = after.split_at_checked(value_len as usize) else {
            return Err(malformed("a value is cut off"));
        };
        let entry_tag = u64::from_le_bytes(*entry_tag);
        if previous.is_some_and(|previous| previous >= entry_tag) {
            return Err(malformed("its tags are out of order"));
        }
        visit(entry_tag, value);
        previous = Some(entry_tag);
        rest = after;
    }
    if rest.iter().any(|&byte| byte != 0) {
        return Err(malformed("there are bytes after its end"));
    }
    Ok(())
}

fn malformed(how: &str) -> Error {
    Error::integrity(format!(
        "a bucket of the table is malformed ({how}): the answer was recovered wrongly, or the table and its key map do \
         not belong together"
    ))
}
