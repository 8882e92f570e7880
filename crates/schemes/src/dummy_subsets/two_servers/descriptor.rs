//! The entry of dummy subsets with two servers in the registry.

use super::{
    DummySubsetsTwo, DummySubsetsTwoClient, DummySubsetsTwoPreparation, DummySubsetsTwoServer,
    OFFLINE,
};
use crate::dummy_subsets::descriptor::{cut, cut_in_words, halves, read, search, work};
use crate::registry::factors::dummy_subsets_two as fitted;
use crate::registry::room::*;

impl Registered for DummySubsetsTwo {
    const ABOUT: About = About {
        servers: 2..=2,
        options: &[&PARTITION_RECORDS],
        ..About::new("Dummy subsets with two servers; secret hints never run out", 110)
    };
    const HINTS: Option<Hints<Self::Parameters>> =
        Some(Hints::of::<DummySubsetsTwoClient, DummySubsetsTwoPreparation>());

    fn parameters(identity: &TableIdentity, tuning: &Tuning) -> Result<Self::Parameters> {
        cut(identity, tuning)
    }

    fn setup(start: ServerStart<'_>, parameters: Self::Parameters) -> NewServer {
        let server = DummySubsetsTwoServer::new(parameters, start.table, start.kernels)?;
        start.ready(server)
    }

    fn hints_len(parameters: &Self::Parameters) -> u64 {
        parameters.state_bytes()
    }

    fn words(parameters: &Self::Parameters) -> Option<String> {
        let singles = count(parameters.singles().into());
        Some(format!("{}; {singles} hints, replaced as they are used", cut_in_words(parameters)))
    }

    fn work(parameters: &Self::Parameters) -> Work {
        work(parameters, parameters.singles().into())
    }

    fn queries_say(parameters: &Self::Parameters, role: Role) -> Option<String> {
        Some(match role == OFFLINE {
            true => "Each query asks for the replacement of one hint. Hints are numbered, and the numbers count up, whatever the client looks up.".to_owned(),
            false => halves(parameters),
        })
    }

    fn queries_look_random(role: Role) -> bool {
        role != OFFLINE
    }

    fn costs(parameters: &Self::Parameters) -> Costs {
        let singles = u64::from(parameters.singles());
        let (sums, record_len) = (parameters.summed(singles), parameters.shape().record_len());
        let ([chosen, added], [drawn, kept]) = (fitted::HINTS, fitted::PREPARE);
        Costs {
            setup: fitted::SETUP * copied(parameters.shape().bytes()),
            hints: chosen * steps(sums) + added * xored(record_len * sums),
            prepare: drawn * steps(sums) + kept * xored(record_len * singles),
            query: fitted::QUERY * search(parameters, singles),
            answer: read(parameters),
            answer_of_eight: read(parameters),
            recover: fitted::RECOVER * steps(1),
            ..Costs::default()
        }
    }
}
