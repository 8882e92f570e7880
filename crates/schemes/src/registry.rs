//! From a scheme's name to a server and a client whose types are erased. Generics end here: the layers above move bytes.

mod clients;
mod plan;
mod points;
mod rehearsal;
mod servers;
mod step;
mod tapir;
mod versions;

pub use clients::{ErasedClient, ErasedHints, ErasedPreparation, Recovered};
pub(crate) use plan::MAX_MESSAGE_LEN;
pub use plan::SchemePlan;
pub use points::{points_bytes, server_of_points, write_points};
pub use rehearsal::Rehearsal;
pub(crate) use rehearsal::Rehearsed;
pub use servers::{ErasedServer, ErasedSetup, Successor};
pub use versions::{patch_downloaded, patches_downloads, plan_next};

use crate::SchemeId;
use crate::apir_dpf::{ApirDpf, ApirDpfClient, ApirDpfParameters, ApirDpfServer};
use crate::apir_matrix::{ApirMatrix, ApirMatrixClient, ApirMatrixParameters, ApirMatrixSetup};
use crate::contract::{HintedClient, Parameters, ParametersOf, Preparation};
use crate::doublepir::{DoublePir, DoublePirClient, DoublePirParameters, DoublePirSetup};
use crate::download::{Download, DownloadClient, DownloadParameters};
use crate::dpf::{Dpf, DpfClient, DpfParameters, DpfServer};
use crate::dummy_subsets::two_servers::{
    DummySubsetsTwo, DummySubsetsTwoClient, DummySubsetsTwoPreparation, DummySubsetsTwoServer,
};
use crate::dummy_subsets::{
    DummySubsets, DummySubsetsClient, DummySubsetsParameters, DummySubsetsPreparation,
    DummySubsetsServer,
};
use crate::finite_differences::many_servers::{
    FEWEST_SERVERS, FiniteDifferencesMany, ManyServersClient, ManyServersParameters,
    ManyServersSetup,
};
use crate::finite_differences::{
    FiniteDifferences, FiniteDifferencesClient, FiniteDifferencesParameters,
    FiniteDifferencesSetup, costs,
};
use crate::offline::{HintSource, OfflinePhase};
use crate::piano::{
    AllParities, AnswerForm, Piano, PianoAllParities, PianoClient, PianoParameters,
    PianoPreparation, PianoServer, SingleParity,
};
use crate::simplepir::{SimplePir, SimplePirClient, SimplePirParameters, SimplePirServer};
use crate::singlepass::{
    SinglePass, SinglePassClient, SinglePassParameters, SinglePassPreparation, SinglePassServer,
};
use crate::tapir::{
    Form, MerkleForm, Tapir, TapirClient, TapirParameters, TapirPreparation, TapirSetup,
};
use clients::{HintedHost, LocalHost, PreparationHost, StatelessHost};
use privet_core::{Error, Result, SecretRng, TableIdentity, TableView};
use privet_kernels::Kernels;
use servers::{FetchedHost, Ready, ServerHost, SetupHost};
use std::sync::Arc;
use zeroize::Zeroizing;
#[cfg(not(target_family = "wasm"))]
use {crate::tapir::PointproofsForm, privet_core::commit::pointproofs::ReferenceString};

/// What a user may choose about a scheme beyond its name. What is not chosen follows from the table's shape.
#[derive(Clone, Debug, Default)]
pub struct Tuning {
    /// Records in a partition (or chunk), for schemes that cut the table into such.
    pub partition_records: Option<u64>,
    /// What TAPIR-PP commits with.
    #[cfg(not(target_family = "wasm"))]
    pub reference_string: Option<Arc<ReferenceString>>,
    /// Whether a server of TAPIR-PP computes all openings before it starts, so that its answers take the less work.
    pub precompute_openings: bool,
    /// How many servers are asked, for schemes with three or more: three, unless it is said.
    pub servers: Option<u32>,
    /// Variables and degree of finite differences, or limits that they keep.
    pub finite_differences: costs::Choice,
    /// Whether finite differences pack records of one byte, of value 0 or 1, as single bits.
    pub one_bit: bool,
    /// Whether those are the characters `0` and `1` instead.
    pub digits: bool,
}

/// What a server of any scheme may use of the machine.
#[derive(Clone, Copy)]
pub struct ServerOptions {
    /// The instruction set to compute with.
    pub kernels: Kernels,
    /// Threads that share each pass over the table, at least 1.
    pub threads: usize,
}

/// The scheme that suits a table when the user says `auto`.
///
/// A download, if the whole table is no more than the hint that SimplePIR's clients would receive before their first query: then they may as well have the table, and
/// ask nothing ever after. That is so for tables up to 16 MiB, and for somewhat larger ones of records that are longer than 4096·√N for N bytes. Otherwise SimplePIR, whose
/// clients never receive the table and keep nothing secret. What needs two servers is never chosen: whether there is a second one that does not collude, only the user knows.
pub fn choose(identity: &TableIdentity) -> SchemeId {
    match SimplePirParameters::new(identity) {
        Ok(parameters) if parameters.hint_bytes() >= identity.shape.bytes() => SchemeId::Download,
        // If it is too large for SimplePIR, that has to be said, and not by offering it whole.
        _ => SchemeId::SimplePir,
    }
}

/// What a scheme comes to on a table, before anything is computed.
///
/// # Errors
/// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), with the numbers, if the scheme does not suit the table's shape, or the tuning does not suit the scheme.
pub fn plan(scheme: SchemeId, identity: &TableIdentity, tuning: &Tuning) -> Result<SchemePlan> {
    let cuts_partitions = matches!(
        scheme,
        SchemeId::DummySubsets
            | SchemeId::DummySubsetsTwo
            | SchemeId::Piano
            | SchemeId::PianoAllParities
            | SchemeId::SinglePass
            | SchemeId::TapirMerkle
            | SchemeId::TapirPointproofs
    );
    if tuning.partition_records.is_some() && !cuts_partitions {
        return Err(Error::api_misuse(format!(
            "{scheme} does not cut the table into partitions, so their size cannot be chosen"
        )));
    }
    if tuning.servers.is_some() && scheme != SchemeId::FiniteDifferencesMany {
        return Err(Error::api_misuse(format!(
            "the number of servers of {scheme} cannot be chosen"
        )));
    }
    if (tuning.one_bit || tuning.digits) && scheme != SchemeId::FiniteDifferences {
        return Err(Error::api_misuse(format!("{scheme} does not pack single bits")));
    }
    let subsets = || match tuning.partition_records {
        Some(records) => DummySubsetsParameters::with_partition_records(identity.shape, records),
        None => DummySubsetsParameters::new(identity.shape),
    };
    let piano = || match tuning.partition_records {
        Some(records) => PianoParameters::with_chunk_records(identity, records),
        None => PianoParameters::new(identity),
    };
    let plan = match scheme {
        SchemeId::SimplePir => SchemePlan::of::<SimplePir>(&SimplePirParameters::new(identity)?),
        SchemeId::DoublePir => SchemePlan::of::<DoublePir>(&DoublePirParameters::new(identity)?),
        SchemeId::Dpf => SchemePlan::of::<Dpf>(&DpfParameters::new(identity)),
        SchemeId::DummySubsets => SchemePlan::of::<DummySubsets>(&subsets()?),
        SchemeId::SinglePass => SchemePlan::of::<SinglePass>(&match tuning.partition_records {
            Some(records) => SinglePassParameters::with_partition_records(identity.shape, records)?,
            None => SinglePassParameters::new(identity.shape)?,
        }),
        SchemeId::Piano => SchemePlan::of::<Piano>(&piano()?),
        SchemeId::PianoAllParities => SchemePlan::of::<PianoAllParities>(&piano()?),
        SchemeId::DummySubsetsTwo => SchemePlan::of::<DummySubsetsTwo>(&subsets()?),
        SchemeId::Download => SchemePlan::of::<Download>(&DownloadParameters::new(identity)),
        SchemeId::TapirMerkle => {
            SchemePlan::of::<Tapir<MerkleForm>>(&tapir::with_merkle(identity.shape, tuning)?)
        }
        #[cfg(not(target_family = "wasm"))]
        SchemeId::TapirPointproofs => SchemePlan::of::<Tapir<PointproofsForm>>(
            &tapir::with_pointproofs(identity.shape, tuning)?,
        ),
        #[cfg(target_family = "wasm")]
        SchemeId::TapirPointproofs => return Err(not_in_this_build(scheme)),
        SchemeId::ApirDpf => SchemePlan::of::<ApirDpf>(&ApirDpfParameters::new(identity)),
        SchemeId::ApirMatrix => SchemePlan::of::<ApirMatrix>(&ApirMatrixParameters::new(identity)),
        SchemeId::FiniteDifferences => {
            let Tuning { one_bit, digits, finite_differences: choice, .. } = tuning;
            let parameters = FiniteDifferencesParameters::new(identity.shape, *one_bit, choice)?;
            SchemePlan::of::<FiniteDifferences>(&match digits {
                true => parameters.of_digits()?,
                false => parameters,
            })
        }
        SchemeId::FiniteDifferencesMany => {
            SchemePlan::of::<FiniteDifferencesMany>(&ManyServersParameters::new(
                identity.shape,
                tuning.servers.unwrap_or(FEWEST_SERVERS),
                &tuning.finite_differences,
            )?)
        }
    };
    plan.check_messages()?;
    Ok(plan)
}

/// Starts a server for `table`. The table's bytes are copied; `table` is not needed afterwards.
///
/// # Errors
/// If the scheme's proof does not cover the table's shape, or the memory cannot be had.
pub fn setup(
    scheme: SchemeId,
    table: TableView<'_>,
    tuning: &Tuning,
    options: ServerOptions,
) -> Result<Box<dyn ErasedSetup>> {
    setup_as(plan(scheme, &table.identity(), tuning)?, table, tuning, options)
}

/// The same with parameters that are fixed already, as those of a table's [next version](plan_next).
///
/// # Errors
/// As [`setup`], and if the plan does not belong to the table.
pub fn setup_as(
    plan: SchemePlan,
    table: TableView<'_>,
    tuning: &Tuning,
    options: ServerOptions,
) -> Result<Box<dyn ErasedSetup>> {
    let ServerOptions { kernels, threads } = options;
    let identity = table.identity();
    // A reference string is all that is needed of it here, and browsers have none.
    #[cfg(target_family = "wasm")]
    let _ = tuning;
    Ok(match plan.scheme {
        SchemeId::SimplePir => {
            let parameters = SimplePirParameters::decode(&identity, &plan.parameters)?;
            let setup = SimplePirServer::new(parameters, table, kernels, threads)?;
            Box::new(SetupHost::new(plan, setup))
        }
        SchemeId::DoublePir => {
            let parameters = DoublePirParameters::decode(&identity, &plan.parameters)?;
            let setup = DoublePirSetup::new(parameters, table, kernels, threads)?;
            Box::new(SetupHost::new(plan, setup))
        }
        SchemeId::Dpf => {
            let server = DpfServer::new(DpfParameters::new(&identity), table, kernels, threads)?;
            Box::new(Ready::at_once(ServerHost::new(plan, server)))
        }
        SchemeId::DummySubsets => {
            let parameters = DummySubsetsParameters::decode(&identity, &plan.parameters)?;
            let server = DummySubsetsServer::new(parameters, table, kernels)?;
            Box::new(Ready::at_once(ServerHost::new(plan, server)))
        }
        SchemeId::Piano => piano_setup::<SingleParity>(plan, table, kernels)?,
        SchemeId::PianoAllParities => piano_setup::<AllParities>(plan, table, kernels)?,
        SchemeId::DummySubsetsTwo => {
            let parameters = DummySubsetsParameters::decode(&identity, &plan.parameters)?;
            let server = DummySubsetsTwoServer::new(parameters, table, kernels)?;
            Box::new(Ready::at_once(ServerHost::new(plan, server).preparing()))
        }
        SchemeId::SinglePass => {
            let parameters = SinglePassParameters::decode(&identity, &plan.parameters)?;
            let server = SinglePassServer::new(parameters, table, kernels)?;
            Box::new(Ready::at_once(ServerHost::new(plan, server).preparing()))
        }
        SchemeId::Download => Box::new(Ready::at_once(FetchedHost { plan })),
        SchemeId::TapirMerkle => {
            let parameters = TapirParameters::decode(&identity, &plan.parameters)?;
            tapir_setup::<MerkleForm>(plan, parameters, table, kernels)?
        }
        #[cfg(not(target_family = "wasm"))]
        SchemeId::TapirPointproofs => {
            let parameters = tapir::with_pointproofs_as(&plan, identity.shape, tuning)?;
            tapir_setup(plan, parameters, table, kernels)?
        }
        #[cfg(target_family = "wasm")]
        SchemeId::TapirPointproofs => return Err(not_in_this_build(plan.scheme)),
        SchemeId::ApirDpf => {
            let parameters = ApirDpfParameters::new(&identity);
            let server = ApirDpfServer::new(parameters, table, kernels, threads)?;
            Box::new(Ready::at_once(ServerHost::new(plan, server)))
        }
        SchemeId::ApirMatrix => {
            let parameters = ApirMatrixParameters::new(&identity);
            let setup = ApirMatrixSetup::new(parameters, table, kernels, threads)?;
            Box::new(SetupHost::new(plan, setup))
        }
        SchemeId::FiniteDifferences => {
            let parameters = FiniteDifferencesParameters::decode(&identity, &plan.parameters)?;
            let setup = FiniteDifferencesSetup::new(parameters, table, kernels, threads)?;
            Box::new(Ready::after(plan, |plan, progress| {
                Ok(Box::new(ServerHost::new(plan, setup.finish(progress)?).succeeding()))
            }))
        }
        SchemeId::FiniteDifferencesMany => {
            let parameters = ManyServersParameters::decode(&identity, &plan.parameters)?;
            let setup = ManyServersSetup::new(parameters, table, kernels, threads)?;
            Box::new(Ready::after(plan, |plan, progress| {
                Ok(Box::new(ServerHost::new(plan, setup.finish(progress)?).succeeding()))
            }))
        }
    })
}

fn tapir_setup<F: Form>(
    plan: SchemePlan,
    parameters: TapirParameters<F>,
    table: TableView<'_>,
    kernels: Kernels,
) -> Result<Box<dyn ErasedSetup>> {
    // Clients of TAPIR-MT stream the table itself, which any copy of it will do for.
    let lends = matches!(plan.offline, OfflinePhase::StreamShuffled { .. });
    let setup = SetupHost::new(plan, TapirSetup::new(parameters, table, kernels)?);
    Ok(Box::new(match lends {
        true => setup.with(|server| server.streaming().succeeding()),
        false => setup.with(ServerHost::succeeding),
    }))
}

fn piano_setup<F: AnswerForm>(
    plan: SchemePlan,
    table: TableView<'_>,
    kernels: Kernels,
) -> Result<Box<dyn ErasedSetup>> {
    let parameters = PianoParameters::decode(&table.identity(), &plan.parameters)?;
    let server = PianoServer::<F>::new(parameters, table, kernels)?;
    Ok(Box::new(Ready::at_once(ServerHost::new(plan, server).streaming())))
}

/// Starts a client of the scheme that `plan` describes, with what it downloaded (a hint, or the table itself): for schemes whose offline phase is nothing or is kept as
/// it is.
///
/// # Errors
/// If `plan` does not belong to the table, is of another kind of scheme, or what was downloaded is not of the prescribed size.
pub fn client(
    plan: SchemePlan,
    identity: &TableIdentity,
    downloaded: Arc<dyn HintSource>,
    kernels: Kernels,
) -> Result<Box<dyn ErasedClient>> {
    Ok(match plan.scheme {
        SchemeId::SimplePir => {
            let parameters = SimplePirParameters::decode(identity, &plan.parameters)?;
            let client = SimplePirClient::new(parameters.clone(), downloaded, kernels)?;
            Box::new(StatelessHost { plan, parameters, client })
        }
        SchemeId::DoublePir => {
            let parameters = DoublePirParameters::decode(identity, &plan.parameters)?;
            let client = DoublePirClient::new(parameters.clone(), downloaded, kernels)?;
            Box::new(StatelessHost { plan, parameters, client })
        }
        SchemeId::Dpf => {
            let parameters = DpfParameters::decode(identity, &plan.parameters)?;
            let client = DpfClient::new(parameters.clone(), kernels);
            Box::new(StatelessHost { plan, parameters, client })
        }
        SchemeId::ApirDpf => {
            let parameters = ApirDpfParameters::decode(identity, &plan.parameters)?;
            let client = ApirDpfClient::new(parameters.clone(), kernels);
            Box::new(StatelessHost { plan, parameters, client })
        }
        SchemeId::ApirMatrix => {
            let parameters = ApirMatrixParameters::decode(identity, &plan.parameters)?;
            let client = ApirMatrixClient::new(parameters.clone(), &*downloaded, kernels)?;
            Box::new(StatelessHost { plan, parameters, client })
        }
        SchemeId::FiniteDifferences => {
            let parameters = FiniteDifferencesParameters::decode(identity, &plan.parameters)?;
            let client = FiniteDifferencesClient::new(parameters.clone());
            Box::new(StatelessHost { plan, parameters, client })
        }
        SchemeId::FiniteDifferencesMany => {
            let parameters = ManyServersParameters::decode(identity, &plan.parameters)?;
            let client = ManyServersClient::new(parameters.clone())?;
            Box::new(StatelessHost { plan, parameters, client })
        }
        SchemeId::Download => {
            let parameters = DownloadParameters::decode(identity, &plan.parameters)?;
            Box::new(LocalHost { plan, client: DownloadClient::new(parameters, downloaded)? })
        }
        _ => return Err(other_kind(plan.scheme)),
    })
}

/// Starts a client of the scheme that `plan` describes, with a generation of hints of its own: for schemes whose offline phase streams the table. `plan` and `identity` are of the version of the table that
/// the generation was prepared for, or condensed at.
///
/// # Errors
/// If `plan` does not belong to the table or is of another kind of scheme, or the generation is not of the prescribed form.
pub fn hinted_client(
    plan: SchemePlan,
    identity: &TableIdentity,
    generation: Zeroizing<Vec<u8>>,
    kernels: Kernels,
) -> Result<Box<dyn ErasedClient>> {
    match plan.scheme {
        SchemeId::DummySubsets => {
            let parameters = DummySubsetsParameters::decode(identity, &plan.parameters)?;
            let client = DummySubsetsClient::load(parameters, generation, kernels)?;
            Ok(Box::new(HintedHost::new(plan, *identity, client)))
        }
        SchemeId::DummySubsetsTwo => {
            let parameters = DummySubsetsParameters::decode(identity, &plan.parameters)?;
            let client = DummySubsetsTwoClient::load(parameters, generation, kernels)?;
            Ok(Box::new(HintedHost::endless(plan, *identity, client)))
        }
        SchemeId::SinglePass => {
            let parameters = SinglePassParameters::decode(identity, &plan.parameters)?;
            let client = SinglePassClient::load(parameters, generation, kernels)?;
            Ok(Box::new(HintedHost::endless(plan, *identity, client)))
        }
        SchemeId::Piano => piano_client::<SingleParity>(plan, identity, generation, kernels),
        SchemeId::PianoAllParities => {
            piano_client::<AllParities>(plan, identity, generation, kernels)
        }
        SchemeId::TapirMerkle => tapir_client::<MerkleForm>(plan, identity, generation, kernels),
        #[cfg(not(target_family = "wasm"))]
        SchemeId::TapirPointproofs => {
            tapir_client::<PointproofsForm>(plan, identity, generation, kernels)
        }
        _ => Err(other_kind(plan.scheme)),
    }
}

fn tapir_client<F: Form>(
    plan: SchemePlan,
    identity: &TableIdentity,
    generation: Zeroizing<Vec<u8>>,
    kernels: Kernels,
) -> Result<Box<dyn ErasedClient>> {
    let parameters = TapirParameters::<F>::decode(identity, &plan.parameters)?;
    let client = TapirClient::load(parameters, generation, kernels)?;
    Ok(Box::new(HintedHost::endless(plan, *identity, client).verifying()))
}

fn piano_client<F: AnswerForm>(
    plan: SchemePlan,
    identity: &TableIdentity,
    generation: Zeroizing<Vec<u8>>,
    kernels: Kernels,
) -> Result<Box<dyn ErasedClient>> {
    let parameters = PianoParameters::decode(identity, &plan.parameters)?;
    let client = PianoClient::<F>::load(parameters, generation, kernels)?;
    Ok(Box::new(HintedHost::new(plan, *identity, client)))
}

/// Begins a generation of hints, or goes on from a checkpoint: for schemes whose offline phase streams the table. `records_digest` is the BLAKE3 digest that the
/// streamed table must have.
///
/// # Errors
/// As [`hinted_client`]; [`Blame::Unavailable`](privet_core::Blame::Unavailable) if there is no entropy or no memory.
pub fn preparation(
    plan: &SchemePlan,
    identity: &TableIdentity,
    records_digest: [u8; 32],
    checkpoint: Option<&[u8]>,
    kernels: Kernels,
) -> Result<Box<dyn ErasedPreparation>> {
    let start = Start { records_digest, checkpoint, kernels };
    match plan.scheme {
        SchemeId::DummySubsets => {
            let parameters = DummySubsetsParameters::decode(identity, &plan.parameters)?;
            let preparation = start.preparation::<DummySubsetsPreparation>(parameters)?;
            Ok(Box::new(PreparationHost::streaming(preparation)))
        }
        SchemeId::DummySubsetsTwo => {
            let parameters = DummySubsetsParameters::decode(identity, &plan.parameters)?;
            let preparation = start.preparation::<DummySubsetsTwoPreparation>(parameters)?;
            Ok(Box::new(PreparationHost::asking(preparation, plan.offline.len())))
        }
        SchemeId::SinglePass => {
            let parameters = SinglePassParameters::decode(identity, &plan.parameters)?;
            let preparation = start.preparation::<SinglePassPreparation>(parameters)?;
            Ok(Box::new(PreparationHost::asking(preparation, plan.offline.len())))
        }
        SchemeId::Piano => start.piano_preparation::<SingleParity>(plan, identity),
        SchemeId::PianoAllParities => start.piano_preparation::<AllParities>(plan, identity),
        SchemeId::TapirMerkle => start.tapir_preparation::<MerkleForm>(plan, identity),
        #[cfg(not(target_family = "wasm"))]
        SchemeId::TapirPointproofs => start.tapir_preparation::<PointproofsForm>(plan, identity),
        _ => Err(other_kind(plan.scheme)),
    }
}

/// How a generation is begun, whatever its scheme.
struct Start<'a> {
    records_digest: [u8; 32],
    checkpoint: Option<&'a [u8]>,
    kernels: Kernels,
}

impl Start<'_> {
    fn preparation<P: Preparation>(&self, parameters: ParametersOf<P>) -> Result<P> {
        match self.checkpoint {
            Some(checkpoint) => {
                P::resume(parameters, self.records_digest, checkpoint, self.kernels)
            }
            None => {
                let mut rng = SecretRng::from_os()?;
                P::begin(parameters, self.records_digest, &mut rng, self.kernels)
            }
        }
    }

    fn tapir_preparation<F: Form>(
        &self,
        plan: &SchemePlan,
        identity: &TableIdentity,
    ) -> Result<Box<dyn ErasedPreparation>> {
        let parameters = TapirParameters::<F>::decode(identity, &plan.parameters)?;
        let preparation = self.preparation::<TapirPreparation<F>>(parameters)?;
        Ok(Box::new(PreparationHost::streaming(preparation)))
    }

    fn piano_preparation<F: AnswerForm>(
        &self,
        plan: &SchemePlan,
        identity: &TableIdentity,
    ) -> Result<Box<dyn ErasedPreparation>> {
        let parameters = PianoParameters::decode(identity, &plan.parameters)?;
        let preparation = self.preparation::<PianoPreparation<F>>(parameters)?;
        Ok(Box::new(PreparationHost::streaming(preparation)))
    }
}

#[cfg(target_family = "wasm")]
fn not_in_this_build(scheme: SchemeId) -> Error {
    Error::api_misuse(format!("{scheme} is not a part of Privet for browsers"))
}

fn other_kind(scheme: SchemeId) -> Error {
    Error::api_misuse(format!("{scheme} has another kind of offline phase"))
}
