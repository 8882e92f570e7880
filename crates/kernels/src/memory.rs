//! Memory for the hot loops: buffers in huge pages, and files mapped read-only.
//!
//! The reason for huge pages: with 4 KiB pages, the address translation of a random read misses
//! every translation cache, and random reads from a large table cost three to four times as much.
//! Linux gives 2 MiB pages transparently. In the mode `madvise` (a common default), it gives them
//! only to programs that ask. [`HugeBuffer`] asks, and [`HugeBuffer::huge_page_bytes`] checks what
//! the system gave.

mod allocator;
#[cfg(not(target_family = "wasm"))]
mod file_mapping;
#[cfg(not(target_family = "wasm"))]
mod guarded_range;
mod huge_buffer;
mod little_endian;
mod transparent_huge_pages;

pub use allocator::give_back_freed_memory;
#[cfg(not(target_family = "wasm"))]
pub use file_mapping::{FileChanged, FileMapping, MappingError};
pub use huge_buffer::{HugeBuffer, MemoryError, Pod};
pub use little_endian::little_endian_bytes;
pub use transparent_huge_pages::{ThpMode, transparent_huge_pages};

#[cfg(test)]
pub(crate) use huge_buffer::huge_bytes_between;
#[cfg(test)]
pub(crate) use transparent_huge_pages::parse_mode;
