//! Mistakes that tests plant in the program. Not in the one that is shipped.

use crate::shell::{now, wait_until};
use privet_client::session::planted::{SessionFlaw, plant as plant_in_session, set_pace};
use std::cell::Cell;
use std::time::Duration;
use wasm_bindgen::prelude::*;

/// Work about keys that begin so takes longer.
const SLOW: &[u8] = b"slow";

thread_local! {
    /// By how much longer a query takes, and an answer.
    static LONGER: Cell<[Duration; 2]> = const { Cell::new([Duration::ZERO; 2]) };
}

/// Plants the mistake of this name, or none. And has work about keys that begin with `slow` take
/// longer, by so many milliseconds for a query and for an answer.
#[wasm_bindgen]
pub fn plant(flaw: Option<String>, query: f64, answer: f64) -> Result<(), js_sys::Error> {
    let flaw = match flaw.as_deref() {
        None => None,
        Some("StashNotAskedFor") => Some(SessionFlaw::StashNotAskedFor),
        Some("AsksAgainWhenNotFound") => Some(SessionFlaw::AsksAgainWhenNotFound),
        Some("SendsWhenDone") => Some(SessionFlaw::SendsWhenDone),
        Some("ReadsWithoutSlot") => Some(SessionFlaw::ReadsWithoutSlot),
        Some(_) => return Err(js_sys::Error::new("there is no such mistake")),
    };
    // It stays.
    std::mem::forget(plant_in_session(flaw));
    LONGER.set([query, answer].map(|milliseconds| Duration::from_secs_f64(milliseconds / 1e3)));
    set_pace(|work, key| {
        if key.starts_with(SLOW) {
            wait_until(now() + LONGER.get()[work as usize]);
        }
    });
    Ok(())
}
