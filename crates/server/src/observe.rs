//! What an operator sees: counts, sizes, durations and statuses. Nothing here depends on what a
//! query asks for.

mod endpoint;
mod metrics;
pub(crate) mod overload;

pub(crate) use endpoint::{Endpoint, Health};
pub(crate) use metrics::{Metrics, Open};
