//! What an operator sees: counts, sizes, durations and statuses. Nothing here depends on what a
//! query asks for.

mod endpoint;
mod metrics;
pub(crate) mod overload;
mod probe;

pub(crate) use endpoint::{Endpoint, Health};
pub(crate) use metrics::{Metrics, OpenGuard};
pub(crate) use probe::Probe;
