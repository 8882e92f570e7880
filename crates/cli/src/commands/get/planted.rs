//! Mistakes that tests plant in the command, to show that what leaves its connection would reveal
//! them. Compiled only for this crate's tests.

use std::sync::atomic::{AtomicBool, Ordering};

/// Printing holds up the handing in: it waits until what came before was written.
pub(super) static WAITS_FOR_THE_READER: AtomicBool = AtomicBool::new(false);

/// When the reader goes away, no more lookups begin.
pub(super) static ENDS_WITH_THE_READER: AtomicBool = AtomicBool::new(false);

/// The reader went away.
pub(super) static IS_GONE: AtomicBool = AtomicBool::new(false);

/// [`WAITS_FOR_THE_READER`]
pub(super) fn wait_while(is_unwritten: impl Fn() -> bool) {
    while WAITS_FOR_THE_READER.load(Ordering::Relaxed) && is_unwritten() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// [`ENDS_WITH_THE_READER`]
pub(super) fn is_over() -> bool {
    ENDS_WITH_THE_READER.load(Ordering::Relaxed) && IS_GONE.load(Ordering::Relaxed)
}
