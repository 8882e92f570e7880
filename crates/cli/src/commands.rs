//! One module for each command: from what was typed to what is printed.

pub(crate) mod bench;
pub(crate) mod build;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod get;
pub(crate) mod inspect;
pub(crate) mod keygen;
pub(crate) mod load;
pub(crate) mod manual;
pub(crate) mod plan;
pub(crate) mod serve;
pub(crate) mod state;
pub(crate) mod update;
