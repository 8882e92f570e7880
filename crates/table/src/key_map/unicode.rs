//! The canonical forms of Unicode.
//!
//! Their tables are larger than most schemes. In a page or in Node, those of the JavaScript engine
//! serve: Unicode promises that all versions agree on the characters that both know.

pub(super) use forms::{nfc, nfd};

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod forms {
    use js_sys::JsString;

    /// Letters with their accents, where there are such.
    pub(in super::super) fn nfc(text: &str) -> String {
        JsString::from(text).normalize("NFC").into()
    }

    /// Letters and accents apart.
    pub(in super::super) fn nfd(text: &str) -> String {
        JsString::from(text).normalize("NFD").into()
    }
}

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod forms {
    use unicode_normalization::UnicodeNormalization as _;

    /// Letters with their accents, where there are such.
    pub(in super::super) fn nfc(text: &str) -> String {
        text.nfc().collect()
    }

    /// Letters and accents apart.
    pub(in super::super) fn nfd(text: &str) -> String {
        text.nfd().collect()
    }
}
