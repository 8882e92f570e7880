//! The entry of TAPIR in the registry, for any form.

use super::{
    Form, MerkleForm, Tapir, TapirClient, TapirParameters, TapirPreparation, TapirSetup, vectors_of,
};
use crate::contract::Parameters as _;
use crate::registry::factors::tapir_mt as fitted;
use crate::registry::room::*;
use crate::singlepass::SinglePassParameters;
use crate::singlepass::descriptor::{costs, cut, one_of_each, permutations, work};
use privet_core::commit::merkle::depth;

/// The differences between the forms, besides the commitment: as [`Registered`] says, where it has
/// the name.
pub trait RegisteredForm: Form + Sized {
    /// The properties that are the same on every table.
    const ABOUT: About;

    /// The parameters on a table.
    fn parameters(identity: &TableIdentity, tuning: &Tuning) -> Result<TapirParameters<Self>>;

    /// The parameters of a server, including what clients do not need.
    fn parameters_as(
        identity: &TableIdentity,
        announced: &[u8],
        _tuning: &Tuning,
    ) -> Result<TapirParameters<Self>> {
        TapirParameters::decode(identity, announced)
    }

    /// A description of the verification for people.
    fn words(parameters: &TapirParameters<Self>) -> String;

    /// What each step costs, in counted operations.
    fn costs(parameters: &TapirParameters<Self>) -> Costs;

    /// The work of a query.
    fn work(pass: &SinglePassParameters) -> Work;

    /// What comes back with the records, in words: `them, …`
    const WITH_A_PROOF: &'static str;
}

impl<F: RegisteredForm> Registered for Tapir<F> {
    const ABOUT: About = F::ABOUT;
    const HINTS: Option<Hints<Self::Parameters>> =
        Some(Hints::of::<TapirClient<F>, TapirPreparation<F>>());

    fn parameters(identity: &TableIdentity, tuning: &Tuning) -> Result<Self::Parameters> {
        F::parameters(identity, tuning)
    }

    fn parameters_as(
        identity: &TableIdentity,
        announced: &[u8],
        tuning: &Tuning,
    ) -> Result<TapirParameters<F>> {
        F::parameters_as(identity, announced, tuning)
    }

    fn setup(start: ServerStart<'_>, parameters: Self::Parameters) -> NewServer {
        let setup = TapirSetup::new(parameters, start.table, start.kernels)?;
        start.precomputing(setup)
    }

    fn hints_len(parameters: &Self::Parameters) -> u64 {
        parameters.state_bytes()
    }

    fn words(parameters: &Self::Parameters) -> Option<String> {
        let cut = permutations(parameters.pass());
        Some(format!("{cut}; answers are verified, {}", F::words(parameters)))
    }

    fn work(parameters: &Self::Parameters) -> Work {
        F::work(parameters.pass())
    }

    fn queries_say(parameters: &Self::Parameters, _role: Role) -> Option<String> {
        Some(one_of_each(parameters.pass(), F::WITH_A_PROOF))
    }

    fn queries_look_random(_role: Role) -> bool {
        false
    }

    fn costs(parameters: &Self::Parameters) -> Costs {
        F::costs(parameters)
    }
}

impl RegisteredForm for MerkleForm {
    const ABOUT: About = About {
        servers: 2..=2,
        verifies: true,
        commits: true,
        options: &[&PARTITION_RECORDS],
        ..About::new("SinglePass whose answers are verified by Merkle trees", 30)
    };
    const WITH_A_PROOF: &'static str = "them, each with a proof,";

    /// Cut as SinglePass would be, unless chosen otherwise.
    fn parameters(identity: &TableIdentity, tuning: &Tuning) -> Result<TapirParameters<Self>> {
        let pass = cut(identity, tuning)?;
        let commitment = Self::commitment(vectors_of(&pass)?, pass.state_bytes())?;
        TapirParameters::new(pass, commitment)
    }

    fn words(parameters: &TapirParameters<Self>) -> String {
        format!(
            "for which the root of each partition's Merkle tree and {} levels below it are kept, {} in all",
            parameters.commitment().cap_levels(),
            bytes(parameters.state_bytes())
        )
    }

    fn work(pass: &SinglePassParameters) -> Work {
        work(pass)
    }

    fn costs(parameters: &TapirParameters<Self>) -> Costs {
        let (pass, shape) = (parameters.pass(), parameters.shape());
        let (records, partitions) = (shape.records(), u64::from(pass.partitions()));
        let of_pass = costs(pass);
        let cap = u32::from(parameters.commitment().cap_levels());
        let levels = depth(u64::from(pass.partition_records())).saturating_sub(cap);
        let tree = short_hashes(2 * records) + hashed(shape.bytes());
        let ([fixed, each], [nodes, leaves]) = (fitted::ANSWER, fitted::PREPARE);
        let answer = of_pass.answer + fixed * steps(1) + each * steps(partitions);
        let [checked, digested, told] = fitted::RECOVER;
        Costs {
            setup: of_pass.setup + fitted::SETUP * tree,
            hints: Operations::default(),
            prepare: of_pass.prepare + nodes * tree + leaves * hashed(shape.bytes()),
            answer,
            answer_of_eight: answer,
            recover: of_pass.recover
                + checked * short_hashes(4 * partitions * u64::from(levels + 1))
                + digested * hashed(partitions * shape.record_len())
                + told * steps(1),
            server_bytes: 32 * (records - (records >> levels.saturating_sub(1).min(63))),
            ..of_pass
        }
    }
}
