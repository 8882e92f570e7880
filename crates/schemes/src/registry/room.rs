//! What a scheme's `descriptor.rs` takes from the registry, all at once: `use crate::registry::room::*`.

// Browsers lack a room, and with it who uses some of these.
#![cfg_attr(target_family = "wasm", allow(unused_imports))]

pub(crate) use super::descriptor::{
    About, ClientStart, HintsStart, Makeshift, Of, Registered, ServerStart,
};
pub(crate) use super::options::{OptionKind, PARTITION_RECORDS, SchemeOption, Tuning, Value};
pub(crate) use super::points::{ErasedPoints, MakesPoints};
pub(crate) use super::rehearsal::Rehearsed;
pub(crate) use super::servers::ServerHost;
pub(crate) use super::versions::ErasedPatches;
pub(crate) use super::{ServerOptions, Work};
pub(crate) use crate::contract::Role;
pub(crate) use privet_core::quantities::{bytes, count};
pub(crate) use privet_core::{Error, Result, SecretRng, TableIdentity, TableView};
pub(crate) use privet_kernels::Kernels;
pub(crate) use std::sync::Arc;

use crate::offline::HintSource;
use zeroize::Zeroizing;

use super::{ErasedClient, ErasedPreparation, ErasedSetup};

/// A server in the making.
pub(crate) type NewServer = Result<Box<dyn ErasedSetup>>;
/// A client.
pub(crate) type NewClient = Result<Box<dyn ErasedClient>>;
/// Hints in the making.
pub(crate) type NewHints = Result<Box<dyn ErasedPreparation>>;
/// What a client downloaded.
pub(crate) type Downloaded = Arc<dyn HintSource>;
/// A generation of hints, as it is written down.
pub(crate) type Generation = Zeroizing<Vec<u8>>;
