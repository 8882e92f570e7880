//! A server's setup, computed apart from the server: once, into a store, from which servers answer
//! later.

use super::{SetupStore, StoredSetup};
use crate::finite_differences::FiniteDifferences;
use crate::finite_differences::many_servers::FiniteDifferencesMany;
use crate::finite_differences::points_server::{MakesPoints as _, PointsServer};
use privet_core::{Error, Result, TableIdentity, TableView};
use privet_schemes::SchemeId;
use privet_schemes::contract::{Parameters, Scheme};
use privet_schemes::registry::room::ServerHost;
use privet_schemes::registry::{ErasedServer, SchemePlan, ServerOptions};

/// Evaluates an expression with `$scheme`, the type of the plan's scheme, or refuses the scheme.
macro_rules! with_scheme {
    ($plan:expr, $scheme:ident => $result:expr) => {
        match $plan.scheme {
            crate::FINITE_DIFFERENCES => {
                type $scheme = FiniteDifferences;
                $result
            }
            crate::FINITE_DIFFERENCES_MANY => {
                type $scheme = FiniteDifferencesMany;
                $result
            }
            other => Err(Error::api_misuse(format!(
                "{other} makes no points of a table: only {} and {} do",
                crate::FINITE_DIFFERENCES,
                crate::FINITE_DIFFERENCES_MANY
            ))),
        }
    };
}

fn parameters<S: Scheme>(plan: &SchemePlan, identity: &TableIdentity) -> Result<S::Parameters> {
    S::Parameters::decode(identity, &plan.parameters)
}

/// Whether the data that servers of the scheme answer from can be computed apart from them, and
/// kept.
pub fn stores_setup(scheme: SchemeId) -> bool {
    [crate::FINITE_DIFFERENCES, crate::FINITE_DIFFERENCES_MANY].contains(&scheme)
}

/// Size of what is kept under `plan`, in bytes.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the scheme keeps nothing; as
/// [`Parameters::decode`] if the plan does not belong to the table.
pub fn setup_bytes(plan: &SchemePlan, identity: &TableIdentity) -> Result<u64> {
    with_scheme!(plan, S => Ok(S::bytes(&parameters::<S>(plan, identity)?)))
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
    with_scheme!(plan, S => {
        let parameters = parameters::<S>(plan, &table.identity())?;
        S::write(&parameters, table, options, memory, store, progress)
    })
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
    with_scheme!(plan, S => {
        let parameters = parameters::<S>(&plan, identity)?;
        let server = PointsServer::<S>::new(parameters, stored, options.kernels)?;
        Ok(Box::new(ServerHost { plan, server }))
    })
}

/// The plan of data that was computed with these `parameters` and has `len` bytes.
///
/// # Errors
/// [`Blame::Corrupted`](privet_core::Blame::Corrupted) if they are not parameters for the table, or
/// the data has another length, [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if the scheme
/// keeps nothing.
pub fn plan_of_setup(
    scheme: SchemeId,
    identity: &TableIdentity,
    parameters: &[u8],
    len: u64,
) -> Result<SchemePlan> {
    let plan = SchemePlan::from_announcement(scheme, identity, parameters).map_err(|error| {
        Error::corrupted(format!(
            "its points have parameters that {scheme} does not have on this table; compute them again"
        ))
        .caused_by(error)
    })?;
    match setup_bytes(&plan, identity)? {
        expected if expected == len => Ok(plan),
        expected => Err(Error::corrupted(format!(
            "{scheme} makes {expected} bytes of points of this table, and there are {len}; compute them again"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use privet_core::Blame;
    use privet_kernels::Kernels;
    use privet_kernels::memory::HugeBuffer;
    use privet_schemes::registry::{Tuning, plan};
    use privet_schemes::test_tables::identity;

    #[test]
    fn schemes_without_points_say_so() {
        let identity = identity(10, 1);
        let plan = plan(SchemeId::Dpf, &identity, &Tuning::default()).unwrap();
        let nothing = StoredSetup::from(HugeBuffer::new_zeroed(0).unwrap());
        let options = ServerOptions { kernels: Kernels::detect(), threads: 2 };
        let refusals = [
            setup_bytes(&plan, &identity).err().unwrap(),
            server_of_setup(plan, &identity, nothing, options).err().unwrap(),
        ];
        assert!(refusals.iter().all(|refusal| refusal.blame() == Blame::ApiMisuse));
    }
}
