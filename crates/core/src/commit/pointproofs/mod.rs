//! Pointproofs.
