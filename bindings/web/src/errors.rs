//! Privet's errors for JavaScript, where the name of an error's blame chooses its class. And what
//! remains of an error that ends the program.

use privet_core::Error;
use std::cell::RefCell;
use std::panic;
use wasm_bindgen::prelude::*;

/// An error whose name is its blame's.
pub(crate) fn thrown(error: &Error) -> js_sys::Error {
    let thrown = js_sys::Error::new(&error.to_string());
    thrown.set_name(error.blame().name());
    thrown
}

thread_local! {
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Has [`place_of_panic`] know where the program ended.
pub(crate) fn note_panics() {
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        PLACE.with_borrow_mut(|known| *known = place.unwrap_or_default());
    }));
}

/// Where in the sources the program ended, if it has panicked. What it said then may contain what
/// was looked up, so nobody hears of that.
#[wasm_bindgen(js_name = placeOfPanic)]
pub fn place_of_panic() -> String {
    PLACE.with_borrow(Clone::clone)
}
