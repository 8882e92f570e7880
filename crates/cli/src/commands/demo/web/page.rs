//! The files of the page, which `scripts/check-demo.sh` makes.

/// A file, compressed by gzip.
pub(super) struct File {
    pub(super) path: &'static str,
    pub(super) kind: &'static str,
    pub(super) bytes: &'static [u8],
}

/// All files of the page; none in a program that was built without them.
#[cfg(not(feature = "page"))]
pub(super) const FILES: &[File] = &[];

#[cfg(feature = "page")]
pub(super) const FILES: &[File] = &[
    file("/", "text/html; charset=utf-8", built!("index.html.gz")),
    file("/style.css", "text/css; charset=utf-8", built!("style.css.gz")),
    file("/page.js", "text/javascript; charset=utf-8", built!("page.js.gz")),
    file("/worker.js", "text/javascript; charset=utf-8", built!("worker.js.gz")),
    file("/icon.svg", "image/svg+xml", built!("icon.svg.gz")),
    file("/privet.wasm", "application/wasm", built!("privet.wasm.gz")),
];

#[cfg(feature = "page")]
const fn file(path: &'static str, kind: &'static str, bytes: &'static [u8]) -> File {
    File { path, kind, bytes }
}

#[cfg(feature = "page")]
macro_rules! built {
    ($name:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/web/demo/", $name))
    };
}
#[cfg(feature = "page")]
use built;
