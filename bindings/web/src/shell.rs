//! What JavaScript does for a client, and what it says of one.

use js_sys::{Array, Error, Object, Reflect};
use std::time::Duration;
use wasm_bindgen::prelude::*;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** Whom to ask, for which table, and how. All times are in milliseconds. */
export interface Options {
    urls: string[];
    schemes: string[];
    verified: boolean;
    insecure: boolean;
    compareStreams: boolean;
    maxDownload: number;
    inFlight: number;
    table?: string;
    root?: string;
    publisher?: string;
    digest?: string;
    atLeastEpoch?: number;
    timeout?: number;
}

/** What a client asks its worker to do. */
export interface Shell {
    /** Send the bytes to the URL, and feed what comes of it. */
    send(exchange: number, url: string, body: Uint8Array, deadline?: number): void;
    /** Nobody waits for this exchange any more. */
    abandon(exchange: number): void;
    /** Lookups can begin. */
    ready(table: Table): void;
    /** Lookups can never begin. */
    failed(error: Error): void;
    /** What a key has: its values, or none. */
    found(lookup: number, values: Uint8Array[], isList: boolean): void;
    /** A lookup failed. */
    lookupFailed(lookup: number, error: Error): void;
    /** What comes before lookups has come so far. */
    progress(what: string, done: number, total: number): void;
    /** Something that a person should know. */
    notice(text: string): void;
}

/** A table and its scheme. */
export interface Table {
    name: string;
    id: string;
    epoch: number;
    digest: string;
    records: number;
    recordLength: number;
    scheme: string;
    servers: number;
    software: string;
    isByKey: boolean;
    values?: { isRaw: boolean; columns: [string, Kind][] };
}

/** The type of a column: its name, and what it is made of. */
export type Kind =
    | ["any"] | ["null"] | ["boolean"] | ["number"] | ["text"] | ["bytes"] | ["date"]
    | ["integer", number, boolean] | ["float", number] | ["decimal", number, number]
    | ["time", number] | ["timestamp", number, string?]
    | ["list", Kind] | ["struct", [string, Kind][]] | ["map", Kind];

/** What a client did: bytes, milliseconds and a count. */
export interface Stats {
    describeSent: number;
    describeReceived: number;
    prepareSent: number;
    prepareReceived: number;
    backgroundSent: number;
    backgroundReceived: number;
    lookupSent: number;
    lookupReceived: number;
    lookups: number;
    queryTime: number;
    recoverTime: number;
    readyAfter: number;
}
"#;

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
    pub(crate) fn ready(this: &Shell, table: Object);
    #[wasm_bindgen(method)]
    pub(crate) fn failed(this: &Shell, error: Error);
    #[wasm_bindgen(method)]
    pub(crate) fn found(this: &Shell, lookup: u32, values: Array, is_list: bool);
    #[wasm_bindgen(method, js_name = lookupFailed)]
    pub(crate) fn lookup_failed(this: &Shell, lookup: u32, error: Error);
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
