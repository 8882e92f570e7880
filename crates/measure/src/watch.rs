//! How people see what is under way.

/// Called with what begins, and how much of it there is.
pub type Watch<'w> = &'w dyn Fn(&str, Amount) -> Watched;

/// Called with how much is done. It is dropped when that is all.
pub type Watched = Box<dyn Fn(u64) + Sync>;

/// How much there is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Nobody knows.
    Unknown,
    /// A thousand parts.
    Thousandths,
    /// So many bytes.
    Bytes(u64),
}

/// Where nobody watches.
pub fn unwatched(_what: &str, _amount: Amount) -> Watched {
    Box::new(|_done| ())
}
