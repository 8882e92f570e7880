//! What the registry has of dummy subsets with two servers.

use super::{
    DummySubsetsTwo, DummySubsetsTwoClient, DummySubsetsTwoPreparation, DummySubsetsTwoServer,
    OFFLINE,
};
use crate::contract::Role;
use crate::dummy_subsets::DummySubsetsParameters;
use crate::dummy_subsets::descriptor::{cut, cut_in_words, halves, work};
use crate::registry::{
    About, ClientStart, ErasedClient, ErasedPreparation, ErasedSetup, HintsStart,
    PARTITION_RECORDS, Registered, Rehearsed, ServerHost, ServerStart, Tuning, Work,
};
use privet_core::quantities::count;
use privet_core::{Result, TableIdentity};
use zeroize::Zeroizing;

impl Rehearsed for DummySubsetsTwoClient {}

impl Registered for DummySubsetsTwo {
    const ABOUT: About = About {
        servers: 2..=2,
        options: &[&PARTITION_RECORDS],
        ..About::new("Dummy subsets with two servers; secret hints never run out", 110)
    };

    fn parameters(identity: &TableIdentity, tuning: &Tuning) -> Result<DummySubsetsParameters> {
        cut(identity, tuning)
    }

    fn setup(
        start: ServerStart<'_>,
        parameters: DummySubsetsParameters,
    ) -> Result<Box<dyn ErasedSetup>> {
        let server = DummySubsetsTwoServer::new(parameters, start.table, start.kernels)?;
        start.ready(server, ServerHost::preparing)
    }

    fn hinted_client(
        start: ClientStart,
        parameters: DummySubsetsParameters,
        generation: Zeroizing<Vec<u8>>,
    ) -> Result<Box<dyn ErasedClient>> {
        start.endless::<DummySubsetsTwoClient>(parameters, generation)
    }

    fn preparation(
        start: HintsStart<'_>,
        parameters: DummySubsetsParameters,
    ) -> Result<Box<dyn ErasedPreparation>> {
        start.asking::<DummySubsetsTwoPreparation>(parameters)
    }

    fn hints_len(parameters: &DummySubsetsParameters) -> u64 {
        parameters.state_bytes()
    }

    fn words(parameters: &DummySubsetsParameters) -> Option<String> {
        let singles = count(parameters.singles().into());
        Some(format!("{}; {singles} hints, replaced as they are used", cut_in_words(parameters)))
    }

    fn work(parameters: &DummySubsetsParameters) -> Work {
        work(parameters, parameters.singles().into())
    }

    fn queries_say(parameters: &DummySubsetsParameters, role: Role) -> Option<String> {
        Some(match role == OFFLINE {
            true => "Each asks for what replaces one hint: hints are numbered, and the numbers count up, whatever is looked up.".to_owned(),
            false => halves(parameters),
        })
    }

    fn queries_look_random(role: Role) -> bool {
        role != OFFLINE
    }
}
