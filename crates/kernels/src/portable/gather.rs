//! Scattered records, in plain Rust.

/// Copies the records at `positions`, which lie within the table, to `out`.
pub(crate) fn records(table: &[u8], record_len: usize, positions: &[u64], out: &mut [u8]) {
    for (out, &position) in out.chunks_exact_mut(record_len).zip(positions) {
        let start = position as usize * record_len;
        out.copy_from_slice(&table[start..start + record_len]);
    }
}

/// XORs one of `others` onto each record at `positions`, which lie within the table.
pub(crate) fn scatter_xor(records: &mut [u8], record_len: usize, positions: &[u32], others: &[u8]) {
    for (other, &position) in others.chunks_exact(record_len).zip(positions) {
        let record = &mut records[position as usize * record_len..][..record_len];
        record.iter_mut().zip(other).for_each(|(byte, other)| *byte ^= other);
    }
}
