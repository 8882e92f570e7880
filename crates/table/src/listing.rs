//! The values that lie in a table, without the keys that they belong to: for whoever has the file
//! and wants to see what is in it.

use crate::key_map::decode_list;
use crate::layout::{RecordLayout, TableLayout};
use privet_core::{Result, TableShape};

/// The first `count` values of a table, in the order of its records, and then of its stash; fewer
/// if there are fewer. `read` gives the record with a number below `shape`'s, as it is served.
///
/// In a table by key, values lie in no order that anybody chose, and the values of one key count
/// one by one.
///
/// # Errors
/// - [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if values lie in several parts: without
///   their keys nobody can put them together.
/// - [`Blame::Integrity`](privet_core::Blame::Integrity) if the table is damaged.
/// - Whatever `read` fails with.
pub fn first_values(
    layout: &TableLayout,
    shape: TableShape,
    count: u64,
    mut read: impl FnMut(u64) -> Result<Vec<u8>>,
) -> Result<Vec<Vec<u8>>> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let mut values = Vec::new();
    for number in 0..shape.records() {
        if values.len() >= count {
            break;
        }
        let served = read(number)?;
        let record = layout.verified(shape, number, &served)?;
        match layout.records() {
            RecordLayout::Index(index) => values.push(index.value_in(record)?.to_vec()),
            RecordLayout::Keyed(map) => {
                for value in map.values_in(record)? {
                    add(&mut values, map.has_lists(), value)?;
                }
            }
        }
    }
    if let RecordLayout::Keyed(map) = layout.records()
        && values.len() < count
    {
        for value in map.stashed_values()? {
            add(&mut values, map.has_lists(), value)?;
        }
    }
    values.truncate(count);
    Ok(values)
}

/// Adds a value, or the values of a list.
fn add(values: &mut Vec<Vec<u8>>, is_list: bool, value: &[u8]) -> Result<()> {
    match is_list {
        true => values.extend(decode_list(value)?.into_iter().map(<[u8]>::to_vec)),
        false => values.push(value.to_vec()),
    }
    Ok(())
}
