//! Vectors of WebAssembly where the compiler does not find them by itself. A build has them in its
//! baseline or not at all. So there is no arm to choose at run time: the portable one uses them.

pub(crate) mod aes;
