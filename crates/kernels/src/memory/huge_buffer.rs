//! Zeroed, aligned buffers in huge pages.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// The size from which a buffer is placed in huge pages, and the size of one: 2 MiB.
const HUGE_PAGE: usize = 2 << 20;

/// The alignment of smaller buffers in bytes: one cache line, one AVX-512 vector.
const LINE: usize = 64;

/// The error when there is not enough memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// More bytes than this machine can address.
    #[error("{elements} elements of {element_bytes} bytes exceed the address space")]
    TooLarge {
        /// The number of elements asked for.
        elements: usize,
        /// The size of one in bytes.
        element_bytes: usize,
    },
    /// The system refused.
    #[error("the system refused {bytes} bytes of memory")]
    Refused {
        /// The number of bytes asked for.
        bytes: usize,
    },
}

mod sealed {
    pub trait Sealed {}
}

/// Element types of a [`HugeBuffer`]: plain integers, for which zero bytes are a valid value and
/// which need no drop.
///
/// Sealed: `u8`, `u16`, `u32` and `u64`.
pub trait Pod: sealed::Sealed + Copy + Send + Sync + 'static {}

macro_rules! pod {
    ($($integer:ty),*) => {$(
        impl sealed::Sealed for $integer {}
        impl Pod for $integer {}
    )*};
}
pod!(u8, u16, u32, u64);

/// A zeroed buffer of fixed length, aligned to at least 64 bytes.
///
/// From 2 MiB on, on Linux, it is aligned to 2 MiB and asks for huge pages, with an inaccessible
/// guard region on both sides. The system provides pages when they are first written, so a buffer
/// costs no memory before it is filled. On a system that overcommits, success here does not
/// guarantee that the memory exists.
pub struct HugeBuffer<T: Pod> {
    // Dangling (and never read) when `len` is 0.
    start: NonNull<T>,
    len: usize,
    origin: Origin,
}

/// How the memory was allocated, and so how it is given back.
enum Origin {
    Nothing,
    Allocator(Layout),
    #[cfg(all(target_os = "linux", not(miri)))]
    Mapping {
        reserved: NonNull<libc::c_void>,
        reserved_bytes: usize,
    },
}

// SAFETY: the buffer owns its memory exclusively, like a `Box<[T]>`, and `T` is Send.
unsafe impl<T: Pod> Send for HugeBuffer<T> {}
// SAFETY: a shared reference gives only shared access to the elements, and `T` is Sync.
unsafe impl<T: Pod> Sync for HugeBuffer<T> {}

impl<T: Pod> HugeBuffer<T> {
    /// A buffer of `len` elements, all zero.
    ///
    /// # Errors
    ///
    /// [`MemoryError`] when the size exceeds the address space or the system refuses. Never aborts.
    pub fn new_zeroed(len: usize) -> Result<HugeBuffer<T>, MemoryError> {
        let too_large = MemoryError::TooLarge { elements: len, element_bytes: size_of::<T>() };
        let Some(bytes) = len.checked_mul(size_of::<T>()) else { return Err(too_large) };
        // Slices may not exceed isize::MAX bytes; some room is left for alignment and guards.
        if bytes > isize::MAX as usize - 4 * HUGE_PAGE {
            return Err(too_large);
        }
        if bytes == 0 {
            return Ok(HugeBuffer { start: NonNull::dangling(), len: 0, origin: Origin::Nothing });
        }
        #[cfg(all(target_os = "linux", not(miri)))]
        if bytes >= HUGE_PAGE {
            let (start, origin) = map_huge(bytes)?;
            return Ok(HugeBuffer { start: start.cast(), len, origin });
        }
        let Ok(layout) = Layout::from_size_align(bytes, LINE) else { return Err(too_large) };
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(start).ok_or(MemoryError::Refused { bytes })?;
        Ok(HugeBuffer { start: start.cast(), len, origin: Origin::Allocator(layout) })
    }

    /// How many bytes of the buffer lie in huge pages at this moment, as `/proc/self/smaps` says.
    /// `None` if that is unknown (another operating system, no `/proc`, a buffer below 2 MiB).
    /// Pages that are not written yet do not count as huge, so ask after filling.
    pub fn huge_page_bytes(&self) -> Option<usize> {
        #[cfg(all(target_os = "linux", not(miri)))]
        if let Origin::Mapping { .. } = self.origin {
            let first = self.start.addr().get();
            let smaps = std::fs::read_to_string("/proc/self/smaps").ok()?;
            return huge_bytes_between(&smaps, first, first + size_of_val::<[T]>(self));
        }
        None
    }
}

/// Reserves address space with room for alignment, and opens the 2 MiB-aligned middle of it for
/// reading and writing. The rest on both sides stays inaccessible. It is a guard, and it keeps the
/// kernel from merging the buffer with a neighbour, so that `smaps` reports on exactly this buffer.
#[cfg(all(target_os = "linux", not(miri)))]
fn map_huge(bytes: usize) -> Result<(NonNull<libc::c_void>, Origin), MemoryError> {
    let usable_bytes = bytes.next_multiple_of(HUGE_PAGE);
    let reserved_bytes = usable_bytes + 2 * HUGE_PAGE;
    // SAFETY: a fresh anonymous mapping at an address of the kernel's choice touches no existing
    // memory.
    let reserved = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            reserved_bytes,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if reserved == libc::MAP_FAILED {
        return Err(MemoryError::Refused { bytes });
    }
    let Some(reserved) = NonNull::new(reserved) else { return Err(MemoryError::Refused { bytes }) };
    let origin = Origin::Mapping { reserved, reserved_bytes };
    // At least one page of guard in front: up to 2 MiB of it.
    let skip = HUGE_PAGE - reserved.addr().get() % HUGE_PAGE;
    // SAFETY: skip <= HUGE_PAGE, so [skip, skip + usable_bytes) lies within the reservation.
    let start = unsafe { reserved.cast::<u8>().add(skip) }.cast::<libc::c_void>();
    // SAFETY: the range lies within our own reservation, which nobody else knows of yet.
    let opened =
        unsafe { libc::mprotect(start.as_ptr(), usable_bytes, libc::PROT_READ | libc::PROT_WRITE) };
    if opened != 0 {
        release(&origin);
        return Err(MemoryError::Refused { bytes });
    }
    // SAFETY: as above. A refusal leaves ordinary pages, which `huge_page_bytes` will show.
    unsafe { libc::madvise(start.as_ptr(), usable_bytes, libc::MADV_HUGEPAGE) };
    Ok((start, origin))
}

/// Returns a mapping to the system.
#[cfg(all(target_os = "linux", not(miri)))]
fn release(origin: &Origin) {
    if let Origin::Mapping { reserved, reserved_bytes } = origin {
        // SAFETY: exactly the range that `mmap` returned; callers do not touch it afterwards.
        unsafe { libc::munmap(reserved.as_ptr(), *reserved_bytes) };
    }
}

/// The sum of `AnonHugePages` over the mappings in `smaps` that overlap the addresses `first..end`;
/// `None` if there is none.
#[cfg_attr(any(not(target_os = "linux"), miri), allow(dead_code))]
pub(crate) fn huge_bytes_between(smaps: &str, first: usize, end: usize) -> Option<usize> {
    let mut inside = false;
    let mut total = None;
    for line in smaps.lines() {
        let mut words = line.split_whitespace();
        let Some(head) = words.next() else { continue };
        if let Some((low, high)) = head.split_once('-')
            && let (Ok(low), Ok(high)) =
                (usize::from_str_radix(low, 16), usize::from_str_radix(high, 16))
        {
            inside = low < end && first < high;
        } else if inside && head == "AnonHugePages:" {
            let kilobytes: usize = words.next()?.parse().ok()?;
            total = Some(total.unwrap_or(0) + kilobytes * 1024);
        }
    }
    total.map(|bytes: usize| bytes.min(end - first))
}

impl<T: Pod> Deref for HugeBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `start` is aligned and points to `len` initialised (zeroed at birth) elements
        // that the buffer owns, or `len` is 0 and `start` is dangling but aligned.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Pod> DerefMut for HugeBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Pod> Drop for HugeBuffer<T> {
    fn drop(&mut self) {
        match &self.origin {
            Origin::Nothing => {}
            // SAFETY: allocated by `alloc_zeroed` with this very layout, and not used after this.
            Origin::Allocator(layout) => unsafe { dealloc(self.start.as_ptr().cast(), *layout) },
            #[cfg(all(target_os = "linux", not(miri)))]
            mapping => release(mapping),
        }
    }
}

impl<T: Pod> std::fmt::Debug for HugeBuffer<T> {
    // Shows only the length: tables are large, and their contents may not belong in a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HugeBuffer").field("len", &self.len).finish_non_exhaustive()
    }
}
