//! Points of finite differences apart from a server: written once to a store, and answered from
//! ever after.

use super::descriptor::{Of, Registered};
use super::servers::ServerHost;
use super::{ErasedServer, SchemePlan, ServerOptions};
use crate::SchemeId;
use crate::contract::Parameters;
use crate::finite_differences::points::{Points, PointsStore};
use crate::finite_differences::{MakesPoints, PointsServer};
use privet_core::{Error, Result, TableIdentity, TableView};
use privet_kernels::Kernels;

/// Whether servers of the scheme make points of a table, which a file can hold.
pub fn makes_points(scheme: SchemeId) -> bool {
    points_of(scheme).is_some()
}

/// Size of all points under `plan`, in bytes.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the scheme makes no points of a table; as
/// [`Parameters::decode`] if the plan does not belong to the table.
pub fn points_bytes(plan: &SchemePlan, identity: &TableIdentity) -> Result<u64> {
    of(plan)?.bytes(plan, identity)
}

/// Computes the points of `table` and writes all of them to `store`, from byte 0 on. Besides the
/// table it takes `memory` bytes, and up to one MiB for each thread; no less than one point. If the
/// points take more, they are written in pieces, some of which, or all, are read and written again.
/// `progress` hears of the share done: it never falls, and the last is 1.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the scheme makes no points of a table, or
/// records should be single bits and one is not,
/// [`Blame::Unavailable`](privet_core::Blame::Unavailable) if the memory cannot be had, beside what
/// the store says.
pub fn write_points(
    plan: &SchemePlan,
    table: TableView<'_>,
    options: ServerOptions,
    memory: u64,
    store: &dyn PointsStore,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<()> {
    of(plan)?.write(plan, table, options, memory, store, progress)
}

/// A server that answers from points that were computed before.
///
/// # Errors
/// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if there are not as many as the plan says,
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the scheme makes no points of a table; as
/// [`Parameters::decode`] if the plan does not belong to the table.
pub fn server_of_points(
    plan: SchemePlan,
    identity: &TableIdentity,
    points: Points,
    options: ServerOptions,
) -> Result<Box<dyn ErasedServer>> {
    of(&plan)?.server(plan, identity, points, options.kernels)
}

fn points_of(scheme: SchemeId) -> Option<&'static dyn ErasedPoints> {
    scheme.descriptor().ok()?.points()
}

fn of(plan: &SchemePlan) -> Result<&'static dyn ErasedPoints> {
    points_of(plan.scheme).ok_or_else(|| {
        let schemes = SchemeId::ALL.iter().filter(|scheme| makes_points(**scheme));
        let names: Vec<&str> = schemes.map(|scheme| scheme.name()).collect();
        Error::api_misuse(format!(
            "{} makes no points of a table: only {} do",
            plan.scheme,
            names.join(" and ")
        ))
    })
}

/// [`MakesPoints`] with its types erased. Plans are of this scheme.
pub(crate) trait ErasedPoints: Sync {
    fn bytes(&self, plan: &SchemePlan, identity: &TableIdentity) -> Result<u64>;
    fn write(
        &self,
        plan: &SchemePlan,
        table: TableView<'_>,
        options: ServerOptions,
        memory: u64,
        store: &dyn PointsStore,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<()>;
    fn server(
        &self,
        plan: SchemePlan,
        identity: &TableIdentity,
        points: Points,
        kernels: Kernels,
    ) -> Result<Box<dyn ErasedServer>>;
}

impl<S: MakesPoints + Registered> ErasedPoints for Of<S> {
    fn bytes(&self, plan: &SchemePlan, identity: &TableIdentity) -> Result<u64> {
        Ok(S::bytes(&S::Parameters::decode(identity, &plan.parameters)?))
    }

    fn write(
        &self,
        plan: &SchemePlan,
        table: TableView<'_>,
        options: ServerOptions,
        memory: u64,
        store: &dyn PointsStore,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<()> {
        let parameters = S::Parameters::decode(&table.identity(), &plan.parameters)?;
        S::write(&parameters, table, options, memory, store, progress)
    }

    fn server(
        &self,
        plan: SchemePlan,
        identity: &TableIdentity,
        points: Points,
        kernels: Kernels,
    ) -> Result<Box<dyn ErasedServer>> {
        let parameters = S::Parameters::decode(identity, &plan.parameters)?;
        let server = PointsServer::<S>::new(parameters, points, kernels)?;
        Ok(Box::new(ServerHost::new(plan, server).succeeding()))
    }
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

    impl PointsStore for InMemory {
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
            let bytes = points_bytes(&plan, &identity).unwrap();
            let setup = setup(scheme, table, &tuning, options()).unwrap();
            let computed = setup.finish(&[], &|_| {}).unwrap();
            let queries: Vec<Vec<u8>> = (0..9u64)
                .map(|point| (point * 101).to_le_bytes()[..plan.query_lens[0]].to_vec())
                .collect();
            let queries: Vec<&[u8]> = queries.iter().map(Vec::as_slice).collect();
            let answers = |server: &dyn ErasedServer| -> Vec<Vec<u8>> {
                server.answer(Role(0), &queries).into_iter().map(Result::unwrap).collect()
            };
            // In pieces, and in one.
            for memory in [bytes / 5, bytes] {
                let store = InMemory(Mutex::new(HugeBuffer::new_zeroed(bytes as usize).unwrap()));
                write_points(&plan, table, options(), memory, &store, &|_| {}).unwrap();
                let points = Points::from(store.0.into_inner().unwrap());
                let server = server_of_points(plan.clone(), &identity, points, options()).unwrap();
                assert!(answers(&*server) == answers(&*computed), "{scheme}, {memory}");
            }
            let short = Points::from(HugeBuffer::new_zeroed(bytes as usize - 1).unwrap());
            let refusal = server_of_points(plan, &identity, short, options()).err().unwrap();
            assert_eq!(refusal.blame(), Blame::Corrupted);
        }
    }

    #[test]
    fn schemes_without_points_say_so() {
        let identity = identity(10, 1);
        let plan = plan(SchemeId::Dpf, &identity, &Tuning::default()).unwrap();
        let store = InMemory(Mutex::new(HugeBuffer::new_zeroed(1).unwrap()));
        let table = TableView::new(identity, &[0; 10]).unwrap();
        let nothing = || Points::from(HugeBuffer::new_zeroed(0).unwrap());
        let refusals = [
            points_bytes(&plan, &identity).err().unwrap(),
            write_points(&plan, table, options(), 1, &store, &|_| {}).err().unwrap(),
            server_of_points(plan, &identity, nothing(), options()).err().unwrap(),
        ];
        assert!(refusals.iter().all(|refusal| refusal.blame() == Blame::ApiMisuse));
    }
}
