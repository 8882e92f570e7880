//! Scattered records, copied in plain Rust.

/// Copies the records at `positions`, which lie within the table, to `out`.
pub(crate) fn records(table: &[u8], record_len: usize, positions: &[u64], out: &mut [u8]) {
    for (out, &position) in out.chunks_exact_mut(record_len).zip(positions) {
        let start = position as usize * record_len;
        out.copy_from_slice(&table[start..start + record_len]);
    }
}
