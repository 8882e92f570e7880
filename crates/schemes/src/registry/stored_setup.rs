//! A server's setup, computed apart from the server: once, into a store, from which servers answer
//! later. A scheme that supports this says so in its descriptor. The points of finite differences
//! are such a setup.

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
    scheme.descriptor().ok()?.stored_setup()
}

fn of(plan: &SchemePlan) -> Result<&'static dyn StoresSetup> {
    setup_of(plan.scheme).ok_or_else(|| {
        let schemes = SchemeId::ALL.iter().filter(|scheme| stores_setup(**scheme));
        let names: Vec<&str> = schemes.map(|scheme| scheme.name()).collect();
        Error::api_misuse(format!(
            "{} makes no points of a table: only {} do",
            plan.scheme,
            names.join(" and ")
        ))
    })
}

/// How a scheme's setup is computed apart from a server. Plans are of this scheme.
pub(crate) trait StoresSetup: Sync {
    fn bytes(&self, plan: &SchemePlan, identity: &TableIdentity) -> Result<u64>;
    fn write(
        &self,
        plan: &SchemePlan,
        table: TableView<'_>,
        options: ServerOptions,
        memory: u64,
        store: &dyn SetupStore,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<()>;
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
    use crate::contract::Role;
    use crate::registry::{Tuning, plan, setup};
    use crate::test_tables::{identity, public_bytes};
    use privet_core::Blame;
    use privet_kernels::Kernels;
    use privet_kernels::memory::HugeBuffer;
    use std::sync::Mutex;

    struct InMemory(Mutex<HugeBuffer<u8>>);

    impl SetupStore for InMemory {
        fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
            self.0.lock().unwrap()[offset as usize..][..bytes.len()].copy_from_slice(bytes);
            Ok(())
        }

        fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
            bytes.copy_from_slice(&self.0.lock().unwrap()[offset as usize..][..bytes.len()]);
            Ok(())
        }
    }

    fn options() -> ServerOptions {
        ServerOptions { kernels: Kernels::detect(), threads: 2 }
    }

    #[test]
    fn a_server_of_written_points_answers_as_one_that_computed_them() {
        let identity = identity(300, 7);
        let table = public_bytes("a table", identity.shape.bytes() as usize);
        let table = TableView::new(identity, &table).unwrap();
        let tuning = Tuning::default();
        for scheme in [SchemeId::FiniteDifferences, SchemeId::FiniteDifferencesMany] {
            let plan = plan(scheme, &identity, &tuning).unwrap();
            let bytes = setup_bytes(&plan, &identity).unwrap();
            let setup = setup(scheme, table, &tuning, options()).unwrap();
            let computed = setup.finish(&[], &|_| {}).unwrap();
            let queries: Vec<Vec<u8>> = (0..9u64)
                .map(|point| (point * 101).to_le_bytes()[..plan.query_lens[0]].to_vec())
                .collect();
            let queries: Vec<&[u8]> = queries.iter().map(Vec::as_slice).collect();
            let answers = |server: &dyn ErasedServer| -> Vec<Vec<u8>> {
                server.answer(Role(0), &queries).into_iter().map(Result::unwrap).collect()
            };
            // Once in pieces, and once as a whole.
            for memory in [bytes / 5, bytes] {
                let store = InMemory(Mutex::new(HugeBuffer::new_zeroed(bytes as usize).unwrap()));
                write_setup(&plan, table, options(), memory, &store, &|_| {}).unwrap();
                let points = StoredSetup::from(store.0.into_inner().unwrap());
                let server = server_of_setup(plan.clone(), &identity, points, options()).unwrap();
                assert!(answers(&*server) == answers(&*computed), "{scheme}, {memory}");
            }
            let short = StoredSetup::from(HugeBuffer::new_zeroed(bytes as usize - 1).unwrap());
            let refusal = server_of_setup(plan, &identity, short, options()).err().unwrap();
            assert_eq!(refusal.blame(), Blame::Corrupted);
        }
    }

    #[test]
    fn schemes_without_points_say_so() {
        let identity = identity(10, 1);
        let plan = plan(SchemeId::Dpf, &identity, &Tuning::default()).unwrap();
        let store = InMemory(Mutex::new(HugeBuffer::new_zeroed(1).unwrap()));
        let table = TableView::new(identity, &[0; 10]).unwrap();
        let nothing = || StoredSetup::from(HugeBuffer::new_zeroed(0).unwrap());
        let refusals = [
            setup_bytes(&plan, &identity).err().unwrap(),
            write_setup(&plan, table, options(), 1, &store, &|_| {}).err().unwrap(),
            server_of_setup(plan, &identity, nothing(), options()).err().unwrap(),
        ];
        assert!(refusals.iter().all(|refusal| refusal.blame() == Blame::ApiMisuse));
    }
}
