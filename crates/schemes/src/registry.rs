//! From a scheme's name to a server and a client with erased types. Generics end here: the layers
//! above move bytes.
//!
//! Everything that depends on the scheme comes from its descriptor, in the scheme's folder.
//! `schemes.rs` is the table of all schemes.
//!
//! The lookup that is not private has no [`SchemeId`]. It exists only in what measures,
//! `bench/plain.rs`. So no server can offer it, and nobody can make a client use it.

#[cfg(feature = "servers")]
mod choose;
mod clients;
pub(crate) mod costs;
mod descriptor;
pub(crate) mod factors;
#[cfg(feature = "servers")]
mod memory;
mod options;
mod plan;
mod rehearsal;
pub mod room;
mod schemes;
mod servers;
mod step;
mod versions;
mod work;

#[cfg(feature = "servers")]
pub use choose::{Choice, DAYS, LOOKUPS_PER_DAY, Situation, choose, choose_for, chosen, tree};
pub use clients::{Blank, BlankMaker, ErasedClient, ErasedHints, ErasedPreparation, Recovered};
pub use costs::{Arithmetic, Costs, Operations, Pass, RandomReads};
pub use descriptor::{About, Assumption};
#[cfg(feature = "servers")]
pub use memory::ServerMemory;
pub use options::{OptionKind, PARTITION_RECORDS, SchemeOption, Tuning, Value, check_options};
pub use plan::MAX_MESSAGE_LEN;
pub use plan::SchemePlan;
pub use rehearsal::Rehearsal;
pub use schemes::{Room, add_rooms};
pub use servers::{ErasedServer, ErasedSetup, Successor};
#[cfg(feature = "servers")]
pub use versions::plan_next;
pub use versions::{Version, patch_downloaded, patches_downloads};
pub use work::Work;

#[cfg(feature = "servers")]
use crate::SchemeId;
use crate::offline::HintSource;
#[cfg(feature = "servers")]
use privet_core::TableSource;
use privet_core::{Result, TableIdentity};
use privet_kernels::Kernels;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The part of the machine that a server of any scheme may use.
#[derive(Clone, Copy)]
pub struct ServerOptions {
    /// The instruction set to compute with.
    pub kernels: Kernels,
    /// Threads that share each pass over the table, at least 1.
    pub threads: usize,
}

/// The plan of a scheme on a table, before anything is computed.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), with the numbers, if the scheme does not
/// suit the table's shape, or the tuning does not suit the scheme.
#[cfg(feature = "servers")]
pub fn plan(scheme: SchemeId, identity: &TableIdentity, tuning: &Tuning) -> Result<SchemePlan> {
    check_options(Some(scheme), tuning.chosen())?;
    let plan = scheme.descriptor().plan(identity, tuning)?;
    plan.check_messages()?;
    Ok(plan)
}

/// Starts a server for `table`. The table's bytes are copied; `table` is not needed afterwards.
///
/// # Errors
/// If the scheme's proof does not cover the table's shape, or there is not enough memory.
#[cfg(feature = "servers")]
pub fn setup<'t>(
    scheme: SchemeId,
    table: impl Into<TableSource<'t>>,
    tuning: &Tuning,
    options: ServerOptions,
) -> Result<Box<dyn ErasedSetup>> {
    let table = table.into();
    setup_as(plan(scheme, &table.identity(), tuning)?, table, tuning, options)
}

/// The same with parameters that are fixed already, such as those of a table's [next
/// version](plan_next).
///
/// # Errors
/// As [`setup`], and if the plan does not belong to the table.
#[cfg(feature = "servers")]
pub fn setup_as<'t>(
    plan: SchemePlan,
    table: impl Into<TableSource<'t>>,
    tuning: &Tuning,
    options: ServerOptions,
) -> Result<Box<dyn ErasedSetup>> {
    plan.scheme.descriptor().setup(plan, table.into(), tuning, options)
}

/// Starts a client of the scheme that `plan` describes, with what it downloaded (a hint, or the
/// table itself). For schemes whose client downloads nothing, or keeps the download unchanged.
///
/// # Errors
/// If `plan` does not belong to the table, is of another kind of scheme, or what was downloaded is
/// not of the prescribed size.
pub fn client(
    plan: SchemePlan,
    identity: &TableIdentity,
    downloaded: Arc<dyn HintSource>,
    kernels: Kernels,
) -> Result<Box<dyn ErasedClient>> {
    plan.scheme.descriptor().client(plan, identity, downloaded, kernels)
}

/// Starts a client of the scheme that `plan` describes, with a generation of its own hints. For
/// schemes whose offline phase streams the table. `plan` and `identity` belong to the version of
/// the table for which the generation was prepared or condensed.
///
/// # Errors
/// If `plan` does not belong to the table or is of another kind of scheme, or the generation is not
/// of the prescribed form.
pub fn hinted_client(
    plan: SchemePlan,
    identity: &TableIdentity,
    generation: Zeroizing<Vec<u8>>,
    kernels: Kernels,
) -> Result<Box<dyn ErasedClient>> {
    plan.scheme.descriptor().hinted_client(plan, identity, generation, kernels)
}

/// Begins a generation of hints, or goes on from a checkpoint. For schemes whose offline phase
/// streams the table. `records_digest` is the BLAKE3 digest that the streamed table must have.
///
/// # Errors
/// As [`hinted_client`]; [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is no
/// entropy or no memory.
pub fn preparation(
    plan: &SchemePlan,
    identity: &TableIdentity,
    records_digest: [u8; 32],
    checkpoint: Option<&[u8]>,
    kernels: Kernels,
) -> Result<Box<dyn ErasedPreparation>> {
    plan.scheme.descriptor().preparation(plan, identity, records_digest, checkpoint, kernels)
}
