//! Masks on demand.
