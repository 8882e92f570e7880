//! What JavaScript does for a client, and what it says of one.

use js_sys::{Array, Date, Error, Object, Reflect};
use privet_client::conductor::Moment;
use std::time::Duration;
use wasm_bindgen::prelude::*;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"import type { Options, Shell } from "../types.js";"#;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(typescript_type = "Options")]
    pub type Options;

    #[wasm_bindgen(method, getter)]
    pub(crate) fn urls(this: &Options) -> Vec<String>;
    #[wasm_bindgen(method, getter)]
    pub(crate) fn schemes(this: &Options) -> Vec<String>;
    #[wasm_bindgen(method, getter)]
    pub(crate) fn verified(this: &Options) -> bool;
    #[wasm_bindgen(method, getter)]
    pub(crate) fn insecure(this: &Options) -> bool;
    #[wasm_bindgen(method, getter, js_name = acceptNewTable)]
    pub(crate) fn accept_new_table(this: &Options) -> bool;
    #[wasm_bindgen(method, getter, js_name = compareStreams)]
    pub(crate) fn compare_streams(this: &Options) -> bool;
    #[wasm_bindgen(method, getter, js_name = maxDownload)]
    pub(crate) fn max_download(this: &Options) -> f64;
    #[wasm_bindgen(method, getter, js_name = inFlight)]
    pub(crate) fn in_flight(this: &Options) -> u32;
    #[wasm_bindgen(method, getter)]
    pub(crate) fn table(this: &Options) -> Option<String>;
    #[wasm_bindgen(method, getter)]
    pub(crate) fn root(this: &Options) -> Option<String>;
    #[wasm_bindgen(method, getter)]
    pub(crate) fn publisher(this: &Options) -> Option<String>;
    #[wasm_bindgen(method, getter)]
    pub(crate) fn digest(this: &Options) -> Option<String>;
    #[wasm_bindgen(method, getter, js_name = atLeastEpoch)]
    pub(crate) fn at_least_epoch(this: &Options) -> Option<f64>;
    #[wasm_bindgen(method, getter)]
    pub(crate) fn timeout(this: &Options) -> Option<f64>;

    #[wasm_bindgen(typescript_type = "Shell")]
    pub type Shell;

    #[wasm_bindgen(method)]
    pub(crate) fn send(
        this: &Shell,
        exchange: u32,
        url: &str,
        body: Vec<u8>,
        deadline: Option<f64>,
    );
    #[wasm_bindgen(method)]
    pub(crate) fn abandon(this: &Shell, exchange: u32);
    #[wasm_bindgen(method)]
    pub(crate) fn keep(this: &Shell, name: &str, part: &[u8]);
    #[wasm_bindgen(method)]
    pub(crate) fn remove(this: &Shell, name: &str);
    #[wasm_bindgen(method)]
    pub(crate) fn pin(this: &Shell, name: &str);
    #[wasm_bindgen(method)]
    pub(crate) fn ready(this: &Shell, table: Object);
    #[wasm_bindgen(method)]
    pub(crate) fn failed(this: &Shell, error: Error);
    #[wasm_bindgen(method)]
    pub(crate) fn found(this: &Shell, lookup: u32, values: Array, is_list: bool);
    #[wasm_bindgen(method, js_name = lookupFailed)]
    pub(crate) fn lookup_failed(this: &Shell, lookup: u32, error: Error);
    #[wasm_bindgen(method)]
    pub(crate) fn refreshed(this: &Shell, call: u32, epoch: f64);
    #[wasm_bindgen(method, js_name = refreshFailed)]
    pub(crate) fn refresh_failed(this: &Shell, call: u32, error: Error);
    #[wasm_bindgen(method)]
    pub(crate) fn progress(this: &Shell, what: &str, done: f64, total: f64);
    #[wasm_bindgen(method)]
    pub(crate) fn notice(this: &Shell, text: &str);

    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn milliseconds() -> f64;
}

/// The time since the worker began. Browsers show it in steps, of 0.1 to 100 ms.
pub(crate) fn now() -> Duration {
    Duration::from_secs_f64(milliseconds() / 1e3)
}

/// The time by both clocks.
pub(crate) fn moment() -> Moment {
    Moment { running: now(), wall: Duration::from_secs_f64(Date::now() / 1e3) }
}

/// Does nothing until a moment.
pub(crate) fn wait_until(moment: Duration) {
    while now() < moment {
        std::hint::spin_loop();
    }
}

pub(crate) fn in_milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// An object with these properties.
pub(crate) fn object<const N: usize>(properties: [(&str, JsValue); N]) -> Object {
    let object = Object::new();
    for (name, value) in properties {
        // A new object takes every property.
        let _ = Reflect::set(&object, &name.into(), &value);
    }
    object
}
