//! Everything that a scheme's `descriptor.rs` uses of the registry: `use crate::registry::room::*`,
//! or `privet_schemes::…` in other crates.

pub use super::costs::{
    Costs, Operations, aes_blocks, byte_products, copied, hashed, pass, point_products,
    random_reads, short_hashes, started, steps, xored,
};
pub use super::descriptor::{About, Assumption, ClientStart, Hints, Of, Registered, ServerStart};
pub use super::options::{OptionKind, PARTITION_RECORDS, SchemeOption, Tuning, Value};
pub use super::servers::ServerHost;
pub use super::versions::ErasedPatches;
pub use super::{ServerOptions, Work};
pub use crate::contract::Role;
pub use privet_core::quantities::{bytes, count};
pub use privet_core::{Error, Reason, Result, SecretRng, TableIdentity};
pub use std::sync::Arc;

use crate::offline::HintSource;
use zeroize::Zeroizing;

use super::{ErasedClient, ErasedPreparation, ErasedSetup};

/// A server that is starting.
pub type NewServer = Result<Box<dyn ErasedSetup>>;
/// A client.
pub type NewClient = Result<Box<dyn ErasedClient>>;
/// Hints in preparation.
pub type NewHints = Result<Box<dyn ErasedPreparation>>;
/// What a client downloaded.
pub type Downloaded = Arc<dyn HintSource>;
/// A generation of hints, as it is written down.
pub type Generation = Zeroizing<Vec<u8>>;
