//! What bounds a query from below, whoever implements the scheme.

use privet_core::TableShape;

/// What bounds a query from below, whoever implements the scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Every server reads its whole table, from the beginning to the end.
    WholeTable,
    /// The client has the table, and reads the record itself.
    Nothing,
    /// Servers read single records, but most of their time and the client's goes into points of a
    /// curve, for which there is no yardstick here.
    Points,
    /// Servers read cache lines of 64 bytes, from all over what they made of the table.
    Lines {
        /// Lines that each server reads.
        lines: u64,
        /// Bytes that they are read from.
        from_bytes: u64,
    },
    /// Servers read single records, and the client may compute a pseudorandom function in AES
    /// blocks.
    Records {
        /// Records that each server reads.
        records: u64,
        /// Blocks that the client computes, at most: one for eight hints while it looks for those
        /// that contain the record, and some for each partition when it takes one of them apart. 0
        /// for a client that computes none.
        aes_blocks: u64,
    },
}

impl Work {
    /// What single reads are of, and from how much: the records of a table of that shape, or cache
    /// lines of what was made of it. The yardstick of random reads has the same shape.
    pub fn reads(self, table: TableShape) -> TableShape {
        match self {
            Work::Lines { from_bytes, .. } => {
                TableShape::new(from_bytes.div_ceil(64), 64).unwrap_or(table)
            }
            _ => table,
        }
    }
}
