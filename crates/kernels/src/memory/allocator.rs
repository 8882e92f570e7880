//! What the system's allocator keeps of freed memory.

/// Has the allocator give every block of 1 MiB or more back to the system as soon as it is freed.
///
/// Left alone, the GNU allocator raises that bound with each large block that is freed, up to
/// 32 MiB, and each of its arenas may then keep 64 MiB of what was freed. A server that computes on
/// several threads would so hold hundreds of MiB that it does not use. A block costs a system call
/// and fresh pages instead. On other systems this does nothing.
pub fn give_back_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    // SAFETY: sets a parameter of the allocator, under the allocator's own lock. The value is one
    // that it accepts; a refusal changes nothing.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20);
    }
}
