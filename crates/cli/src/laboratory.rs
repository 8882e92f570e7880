//! What the command knows of the laboratory's schemes, and the commands that are about them. No
//! other part of it names one.

pub(crate) mod examples;
pub(crate) mod inspect_points;
pub(crate) mod papers;
pub(crate) mod reference_string;
pub(crate) mod schemes;
pub(crate) mod setup;
pub(crate) mod tradeoff;
