//! Memory that the hot loops run over: buffers in huge pages, and files mapped read-only.
//!
//! Why huge pages: with 4 KiB pages the address translation of one random read misses every cache
//! of translations, and random reads from a large table cost three to four times as much. Linux
//! grants 2 MiB pages transparently, but where the system's mode is `madvise` (a common default)
//! only to those who ask. [`HugeBuffer`] asks, and [`HugeBuffer::huge_page_bytes`] checks what was
//! granted.

#[cfg(not(target_family = "wasm"))]
mod file_mapping;
#[cfg(not(target_family = "wasm"))]
mod guarded_range;
mod huge_buffer;
mod little_endian;
mod transparent_huge_pages;

#[cfg(not(target_family = "wasm"))]
pub use file_mapping::{FileChanged, FileMapping, MappingError};
pub use huge_buffer::{HugeBuffer, MemoryError, Pod};
pub use little_endian::little_endian_bytes;
pub use transparent_huge_pages::{ThpMode, transparent_huge_pages};

#[cfg(test)]
pub(crate) use huge_buffer::huge_bytes_between;
#[cfg(test)]
pub(crate) use transparent_huge_pages::parse_mode;
