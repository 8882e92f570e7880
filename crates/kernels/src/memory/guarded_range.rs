//! Survives mapped files that lose their end.
//!
//! If a page of a mapped file is missing (the file was cut short, or the disk fails), the system
//! sends `SIGBUS` to a thread that accesses it, and that ends the process. A server must not end
//! because somebody copies a file over a table that it serves.
//!
//! So a mapping can be *guarded*. The handler of `SIGBUS` checks whether the address lies in a
//! guarded range. If so, it records that the range was hit, replaces the page and all later pages
//! of the range by zeros, and lets the reader go on. **The reader then gets bytes that the file did
//! not have.** So code that reads a guarded range checks afterwards whether it was
//! [hit](GuardedRange::was_hit), and discards what it read if it was.
//!
//! If the address is in no guarded range, the previous handler handles the signal.

use std::ops::Range;

/// A range of memory whose missing pages are replaced. Drop it before the memory is given back.
pub(super) struct GuardedRange(#[cfg(all(target_os = "linux", not(miri)))] &'static slots::Slot);

#[cfg(all(target_os = "linux", not(miri)))]
impl GuardedRange {
    /// Guards `range`, which begins with a page. `None` if the signal cannot be handled on this
    /// system.
    pub(super) fn new(range: Range<usize>) -> Option<Self> {
        handler::is_installed().then(|| Self(slots::take(range)))
    }

    /// Whether a page of it was missing when it was touched.
    pub(super) fn was_hit(&self) -> bool {
        self.0.was_hit()
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
impl Drop for GuardedRange {
    fn drop(&mut self) {
        slots::give_back(self.0);
    }
}

/// On other systems nothing is guarded.
#[cfg(not(all(target_os = "linux", not(miri))))]
impl GuardedRange {
    pub(super) fn new(_range: Range<usize>) -> Option<Self> {
        None
    }

    pub(super) fn was_hit(&self) -> bool {
        false
    }
}

/// All guarded ranges, in a form that a signal handler can read: a list that only grows, whose
/// places are used again. Reading takes no lock and frees nothing.
#[cfg(all(target_os = "linux", not(miri)))]
mod slots {
    use std::ops::Range;
    use std::ptr;
    use std::sync::atomic::Ordering::SeqCst;
    use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize};
    use std::sync::{Mutex, PoisonError};

    pub(super) struct Slot {
        start: AtomicUsize,
        /// 0 while nothing is guarded here. It is written last when a range is added, and first
        /// when it is removed.
        end: AtomicUsize,
        hit: AtomicBool,
        next: AtomicPtr<Slot>,
    }

    static FIRST: AtomicPtr<Slot> = AtomicPtr::new(ptr::null_mut());

    /// Places that guard nothing. The handler never reads this.
    static FREE: Mutex<Vec<&'static Slot>> = Mutex::new(Vec::new());

    impl Slot {
        pub(super) fn was_hit(&self) -> bool {
            self.hit.load(SeqCst)
        }
    }

    pub(super) fn take(range: Range<usize>) -> &'static Slot {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = free.pop().unwrap_or_else(|| {
            let slot: &'static Slot = Box::leak(Box::new(Slot {
                start: AtomicUsize::new(0),
                end: AtomicUsize::new(0),
                hit: AtomicBool::new(false),
                next: AtomicPtr::new(FIRST.load(SeqCst)),
            }));
            // No other thread adds a range: this one holds the lock.
            FIRST.store(ptr::from_ref(slot).cast_mut(), SeqCst);
            slot
        });
        slot.hit.store(false, SeqCst);
        slot.start.store(range.start, SeqCst);
        slot.end.store(range.end, SeqCst);
        slot
    }

    pub(super) fn give_back(slot: &'static Slot) {
        slot.end.store(0, SeqCst);
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(slot);
    }

    /// If `address` lies in a guarded range, records that its page is missing, and returns the end
    /// of the range. For a signal handler: it only reads and writes atomic numbers.
    pub(super) fn hit(address: usize) -> Option<usize> {
        let mut next = FIRST.load(SeqCst);
        // SAFETY: the pointers come from leaked boxes, so they are null or valid for ever.
        while let Some(slot) = unsafe { next.as_ref() } {
            let end = slot.end.load(SeqCst);
            let start = slot.start.load(SeqCst);
            // The end was the same before and after: so the start belongs to it, or to a range with
            // the same end.
            if start <= address && address < end && slot.end.load(SeqCst) == end {
                slot.hit.store(true, SeqCst);
                return Some(end);
            }
            next = slot.next.load(SeqCst);
        }
        None
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
mod handler {
    use super::slots;
    use std::ffi::{c_int, c_void};
    use std::sync::OnceLock;
    use std::{mem, ptr};

    /// The handler before, and the size of a page.
    static BEFORE: OnceLock<(libc::sigaction, usize)> = OnceLock::new();

    /// Installs the handler, once for the process.
    pub(super) fn is_installed() -> bool {
        static INSTALLED: OnceLock<bool> = OnceLock::new();
        *INSTALLED.get_or_init(|| {
            // SAFETY: all that these calls are given is valid for as long as they take. An action
            // of zeros is a valid one to be overwritten. The handler is of the type that SA_SIGINFO
            // asks for. It does nothing but what is allowed in a handler: atomic reads and writes,
            // `mmap`, `sigaction` and `raise`, which are single calls of the system. SA_ONSTACK: it
            // also runs in threads whose own stack is the problem.
            unsafe {
                let mut before: libc::sigaction = mem::zeroed();
                let page = libc::sysconf(libc::_SC_PAGESIZE);
                if page <= 0 || libc::sigaction(libc::SIGBUS, ptr::null(), &mut before) != 0 {
                    return false;
                }
                // This must be set before the handler is installed, because the handler reads it.
                let _ = BEFORE.set((before, page as usize));
                let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_bus_error;
                let mut action: libc::sigaction = mem::zeroed();
                action.sa_sigaction = handler as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                libc::sigemptyset(&mut action.sa_mask);
                libc::sigaction(libc::SIGBUS, &action, ptr::null_mut()) == 0
            }
        })
    }

    extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
        // SAFETY: `__errno_location` has no conditions and is valid in this thread. The system
        // hands a handler with SA_SIGINFO a valid `info`, and for SIGBUS its address is set unless
        // somebody sent the signal, which the code (0 or less) says.
        let (errno, address, sent) = unsafe {
            let sent = (*info).si_code <= 0;
            (*libc::__errno_location(), (*info).si_addr() as usize, sent)
        };
        if sent || !replace(address) {
            pass_on(signal, sent);
        }
        // SAFETY: as above. The interrupted code finds its error number unchanged.
        unsafe { *libc::__errno_location() = errno };
    }

    /// Puts zeros from the page with `address` on to the end of its guarded range.
    fn replace(address: usize) -> bool {
        let (Some((_, page)), Some(end)) = (BEFORE.get(), slots::hit(address)) else {
            return false;
        };
        let start = address / page * page;
        // SAFETY: from `start` to `end`, rounded up to a page, there is nothing but a part of the
        // guarded mapping: ranges begin with a page, belong to one mapping, and are given back
        // before that is. It is read-only and so is what takes its place; what is borrowed of it
        // stays readable. Readers of a guarded range must expect that its bytes change.
        let replaced = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            libc::mmap(start as *mut c_void, end - start, libc::PROT_READ, flags, -1, 0)
        };
        replaced != libc::MAP_FAILED
    }

    /// Leaves the signal to the previous handler: the access is repeated when this one returns. If
    /// somebody sent the signal, it should end the process, and it does: the handler of Rust's own
    /// runtime would let the process go on, without this handler.
    fn pass_on(signal: c_int, sent: bool) {
        let Some((before, _)) = BEFORE.get() else { return };
        // SAFETY: `before` is the action that the system itself returned for this signal; an action
        // of zeros is the default one.
        unsafe {
            match sent {
                false => libc::sigaction(signal, before, ptr::null_mut()),
                true => {
                    libc::sigaction(signal, &mem::zeroed(), ptr::null_mut());
                    libc::raise(signal)
                }
            };
        }
    }
}
