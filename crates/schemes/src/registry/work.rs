//! The least work of a query, for any implementation of the scheme.

use privet_core::TableShape;

/// The least work of a query, for any implementation of the scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Every server reads its whole table, from beginning to end.
    WholeTable,
    /// The client has the table, and reads the record itself.
    Nothing,
    /// Servers read single records, but servers and client spend most of their time on points of a
    /// curve. There is no yardstick for that here.
    Points,
    /// Servers read cache lines of 64 bytes, spread over the data that they computed from the
    /// table.
    Lines {
        /// Lines that each server reads.
        lines: u64,
        /// Bytes that they are read from.
        from_bytes: u64,
    },
    /// Servers read single records, and the client may compute a pseudorandom function or
    /// permutation in AES blocks.
    Records {
        /// Records that each server reads.
        records: u64,
        /// The most blocks that the client computes: one for eight hints while it searches for
        /// those that contain the record, and some for each partition when it rebuilds one hint; or
        /// those of the permutation's values, on average at the end of a generation. 0 for a client
        /// that computes none.
        aes_blocks: u64,
    },
}

impl Work {
    /// How many bytes servers compute of the table and answer from, if they do not answer from the
    /// table.
    pub fn computed_bytes(self) -> Option<u64> {
        match self {
            Work::Lines { from_bytes, .. } => Some(from_bytes),
            _ => None,
        }
    }

    /// The size of single reads, and of the data that they read from: records of a table of that
    /// shape, or cache lines of the data computed from it. The yardstick of random reads has the
    /// same shape.
    pub fn reads(self, table: TableShape) -> TableShape {
        match self {
            Work::Lines { from_bytes, .. } => {
                TableShape::new(from_bytes.div_ceil(64), 64).unwrap_or(table)
            }
            _ => table,
        }
    }
}
