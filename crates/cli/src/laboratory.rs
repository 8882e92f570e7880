//! What the command knows of the laboratory's schemes, and the commands for study: curves of the
//! tradeoff, figures of papers, and what schemes need beside a table. Other parts use these
//! modules, and name none of the laboratory's schemes themselves.

pub(crate) mod examples;
pub(crate) mod inspect_points;
pub(crate) mod papers;
pub(crate) mod points;
mod points_file;
pub(crate) mod reference_string;
pub(crate) mod setup;
#[cfg(test)]
mod tests;
pub(crate) mod tradeoff;
