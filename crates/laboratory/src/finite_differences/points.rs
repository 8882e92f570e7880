//! Memory for the points of a table, and for computing them.

use privet_core::{Error, Reason, Result};
use privet_kernels::memory::HugeBuffer;

/// Memory for `bytes` bytes of points.
///
/// # Errors
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
pub(super) fn room_for(bytes: u64) -> Result<HugeBuffer<u8>> {
    zeroed(bytes).map_err(|error| {
        Error::unavailable(format!(
            "no memory for {bytes} bytes of points; compute them into a file, or choose a form that takes less storage, if there is one"
        ))
        .because(Reason::PointsExceedMemory)
        .caused_by(error)
    })
}

/// Memory for computing points that go to a store.
///
/// # Errors
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is not enough memory.
pub(super) fn room_to_compute(bytes: u64) -> Result<HugeBuffer<u8>> {
    zeroed(bytes).map_err(|error| {
        Error::unavailable(format!("no memory of {bytes} bytes to compute in; allow less"))
            .caused_by(error)
    })
}

fn zeroed(bytes: u64) -> Result<HugeBuffer<u8>, privet_kernels::memory::MemoryError> {
    HugeBuffer::new_zeroed(usize::try_from(bytes).unwrap_or(usize::MAX))
}
