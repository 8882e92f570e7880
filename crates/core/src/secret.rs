//! A wrapper for values that must not be printed, copied or left behind in memory.

use zeroize::Zeroize;

/// A secret value: overwritten with zeros when dropped, with no `Debug`, `Display`, `Clone` or
/// serialization.
///
/// Only [`Secret::expose`] gives access, so a search for that word finds every place where a secret
/// is read.
pub struct Secret<T: Zeroize>(T);

impl<T: Zeroize> Secret<T> {
    /// Takes ownership of a secret. The caller must erase other copies, if there are any.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// Reads the secret.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T: Zeroize> Drop for Secret<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}
