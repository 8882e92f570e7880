//! The entry of finite differences with three or more servers in the registry.

use super::{FEWEST_SERVERS, FiniteDifferencesMany, ManyServersClient, ManyServersParameters};
use crate::finite_differences::costs::Choice;
use crate::finite_differences::{ANSWER_LIMIT, DEGREE, STORAGE_LIMIT, VARIABLES, points_server};
use privet_schemes::registry::room::*;

/// How many servers are asked.
pub static SERVERS: SchemeOption = SchemeOption::new(
    "servers",
    OptionKind::Count { value_name: "S", least: 3, most: 13 },
    "How many servers a client asks; default: 3. The more servers, the fewer points each reads, \
     and the more storage each needs",
);

impl Registered for FiniteDifferencesMany {
    const ABOUT: About = About {
        assumes: Assumption::Nothing,
        servers: 3..=13,
        options: &[&STORAGE_LIMIT, &ANSWER_LIMIT, &VARIABLES, &DEGREE, &SERVERS],
        ..About::new("Finite differences with more servers: the more, the less each reads", 60)
    };

    fn parameters(identity: &TableIdentity, tuning: &Tuning) -> Result<Self::Parameters> {
        let servers = tuning.count(&SERVERS).unwrap_or(FEWEST_SERVERS);
        ManyServersParameters::new(identity.shape, servers, &Choice::of(tuning))
    }

    fn setup(start: ServerStart<'_>, parameters: Self::Parameters) -> NewServer {
        points_server::start::<Self>(start, parameters)
    }

    fn client(
        start: ClientStart,
        parameters: Self::Parameters,
        _downloaded: Downloaded,
    ) -> NewClient {
        let client = ManyServersClient::new(parameters.clone())?;
        start.stateless(parameters, client)
    }

    fn words(parameters: &Self::Parameters) -> Option<String> {
        Some(format!(
            "a polynomial of degree {} in {} variables over {} elements, {} of its values on each of {} servers, of which each sends {} for a lookup",
            parameters.degree(),
            parameters.variables(),
            parameters.field(),
            bytes(parameters.points_bytes()),
            parameters.servers(),
            count(parameters.ball().count())
        ))
    }

    fn work(parameters: &Self::Parameters) -> Work {
        Work::Lines { lines: parameters.cache_lines(), from_bytes: parameters.points_bytes() }
    }

    fn queries_look_random(_role: Role) -> bool {
        false
    }

    fn costs(parameters: &Self::Parameters) -> Costs {
        let points = parameters.points_bytes();
        // Exact numbers of lines take as long as an answer.
        let lines = parameters.ball().count() * (parameters.entry_len() as u64).div_ceil(64);
        let answer =
            1.5 * random_reads(lines + 50, 64, points) + 1.1 * steps(parameters.answer_bytes());
        Costs {
            setup: 63.0 * xored(points),
            query: steps(1_000),
            answer,
            answer_of_eight: answer,
            recover: 0.8 * steps(u64::from(parameters.servers()) * parameters.answer_bytes()),
            server_bytes: points.saturating_sub(parameters.shape().bytes()),
            ..Costs::default()
        }
    }
}
