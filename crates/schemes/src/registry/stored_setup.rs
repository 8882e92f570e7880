//! A server's setup, computed apart from the server: once, into a store, from which servers answer
//! later. A scheme that supports this says so in its descriptor.

use super::{ErasedServer, SchemePlan, ServerOptions};
use crate::SchemeId;
#[cfg(doc)]
use crate::contract::Parameters;
use crate::stored_setup::{SetupStore, StoredSetup};
use privet_core::{Error, Result, TableIdentity, TableView};
use privet_kernels::Kernels;

/// Whether the data that servers of the scheme answer from can be computed apart from them, and
/// kept.
pub fn stores_setup(scheme: SchemeId) -> bool {
    setup_of(scheme).is_some()
}

/// Size of what is kept under `plan`, in bytes.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the scheme keeps nothing; as
/// [`Parameters::decode`] if the plan does not belong to the table.
pub fn setup_bytes(plan: &SchemePlan, identity: &TableIdentity) -> Result<u64> {
    of(plan)?.bytes(plan, identity)
}

/// Computes the data that servers of `table` answer from, and writes all of it to `store`, from
/// byte 0 on. Besides the table, that takes `memory` bytes, and up to one MiB for each thread. If
/// the data has more bytes than `memory`, it is written in pieces, and some or all of them are read
/// and written again. `progress` is called with the share done: it never falls, and the last is 1.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the scheme keeps nothing, or records must
/// be single bits and one is not, [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there
/// is not enough memory; and the store's errors.
pub fn write_setup(
    plan: &SchemePlan,
    table: TableView<'_>,
    options: ServerOptions,
    memory: u64,
    store: &dyn SetupStore,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<()> {
    of(plan)?.write(plan, table, options, memory, store, progress)
}

/// A server that answers from what was computed before.
///
/// # Errors
/// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if it does not have as many bytes as the
/// plan says, [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the scheme keeps nothing; as
/// [`Parameters::decode`] if the plan does not belong to the table.
pub fn server_of_setup(
    plan: SchemePlan,
    identity: &TableIdentity,
    stored: StoredSetup,
    options: ServerOptions,
) -> Result<Box<dyn ErasedServer>> {
    of(&plan)?.server(plan, identity, stored, options.kernels)
}

fn setup_of(scheme: SchemeId) -> Option<&'static dyn StoresSetup> {
    scheme.descriptor().stored_setup()
}

fn of(plan: &SchemePlan) -> Result<&'static dyn StoresSetup> {
    setup_of(plan.scheme).ok_or_else(|| {
        let schemes = SchemeId::all().filter(|scheme| stores_setup(*scheme));
        let names: Vec<&str> = schemes.map(SchemeId::name).collect();
        let others = match names[..] {
            [] => String::new(),
            _ => format!(": only {} do", names.join(" and ")),
        };
        Error::api_misuse(format!("{} makes no points of a table{others}", plan.scheme))
    })
}

/// How a scheme's setup is computed apart from a server. Plans are of this scheme.
pub trait StoresSetup: Sync {
    /// As [`setup_bytes`].
    ///
    /// # Errors
    /// As there.
    fn bytes(&self, plan: &SchemePlan, identity: &TableIdentity) -> Result<u64>;

    /// As [`write_setup`].
    ///
    /// # Errors
    /// As there.
    fn write(
        &self,
        plan: &SchemePlan,
        table: TableView<'_>,
        options: ServerOptions,
        memory: u64,
        store: &dyn SetupStore,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<()>;

    /// As [`server_of_setup`].
    ///
    /// # Errors
    /// As there.
    fn server(
        &self,
        plan: SchemePlan,
        identity: &TableIdentity,
        stored: StoredSetup,
        kernels: Kernels,
    ) -> Result<Box<dyn ErasedServer>>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{Tuning, plan};
    use crate::test_tables::identity;
    use privet_core::Blame;
    use privet_kernels::Kernels;
    use privet_kernels::memory::HugeBuffer;

    struct Nowhere;

    impl SetupStore for Nowhere {
        fn write_at(&self, _offset: u64, _bytes: &[u8]) -> Result<()> {
            unreachable!("nothing is written")
        }

        fn read_at(&self, _offset: u64, _bytes: &mut [u8]) -> Result<()> {
            unreachable!("nothing is read")
        }
    }

    fn options() -> ServerOptions {
        ServerOptions { kernels: Kernels::detect(), threads: 2 }
    }

    #[test]
    fn schemes_without_points_say_so() {
        let identity = identity(10, 1);
        let plan = plan(SchemeId::Dpf, &identity, &Tuning::default()).unwrap();
        let table = TableView::new(identity, &[0; 10]).unwrap();
        let nothing = || StoredSetup::from(HugeBuffer::new_zeroed(0).unwrap());
        let refusals = [
            setup_bytes(&plan, &identity).err().unwrap(),
            write_setup(&plan, table, options(), 1, &Nowhere, &|_| {}).err().unwrap(),
            server_of_setup(plan, &identity, nothing(), options()).err().unwrap(),
        ];
        assert!(refusals.iter().all(|refusal| refusal.blame() == Blame::ApiMisuse));
    }
}
