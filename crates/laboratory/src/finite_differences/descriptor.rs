//! The entry of finite differences with two servers in the registry, and the options of both forms.

use super::costs::Choice;
use super::{
    FiniteDifferences, FiniteDifferencesClient, FiniteDifferencesParameters, points_server,
};
use privet_schemes::registry::room::*;

/// How many bytes all points may have.
pub static STORAGE_LIMIT: SchemeOption = SchemeOption::new(
    "storage-limit",
    OptionKind::Amount { value_name: "BYTES" },
    "The most bytes that each server may make of the table, such as 2^30; default: 32 times the \
     table. More storage means fewer reads and shorter answers",
);

/// How many bytes an answer may have.
pub static ANSWER_LIMIT: SchemeOption = SchemeOption::new(
    "answer-limit",
    OptionKind::Amount { value_name: "BYTES" },
    "The most bytes of an answer. Servers take the least storage that allows it",
);

/// How many variables there are.
pub static VARIABLES: SchemeOption = SchemeOption {
    conflicts_with: &["storage-limit", "answer-limit"],
    ..SchemeOption::new(
        "variables",
        OptionKind::Count { value_name: "M", least: 2, most: 48 },
        "Exactly this number of variables, with the degree at which servers read the least",
    )
};

/// The degree.
pub static DEGREE: SchemeOption = SchemeOption {
    requires: Some("variables"),
    ..SchemeOption::new(
        "degree",
        OptionKind::Count { value_name: "D", least: 1, most: 24 },
        "Exactly this degree; with two servers, an odd number of at most half the variables",
    )
};

/// Whether records of one byte, of value 0 or 1, are packed as single bits.
pub static ONE_BIT: SchemeOption = SchemeOption::new(
    "one-bit",
    OptionKind::Flag,
    "Records are bytes of value 0 or 1, and are stored as single bits",
);

/// Whether these records are the characters `0` and `1` instead.
pub static DIGITS: SchemeOption = SchemeOption {
    requires: Some("one-bit"),
    ..SchemeOption::new(
        "digits",
        OptionKind::Flag,
        "With records of single bits: these are the characters 0 and 1",
    )
};

impl Choice {
    /// The choice that the operator's options make.
    pub(super) fn of(tuning: &Tuning) -> Self {
        Self {
            variables: tuning.count(&VARIABLES),
            degree: tuning.count(&DEGREE),
            storage_limit: tuning.number(&STORAGE_LIMIT),
            answer_limit: tuning.number(&ANSWER_LIMIT),
        }
    }
}

impl From<Choice> for Tuning {
    fn from(choice: Choice) -> Self {
        Self::default()
            .with_some(&VARIABLES, choice.variables)
            .with_some(&DEGREE, choice.degree)
            .with_some(&STORAGE_LIMIT, choice.storage_limit)
            .with_some(&ANSWER_LIMIT, choice.answer_limit)
    }
}

impl Registered for FiniteDifferences {
    const ABOUT: About = About {
        assumes: Assumption::Nothing,
        servers: 2..=2,
        options: &[&STORAGE_LIMIT, &ANSWER_LIMIT, &VARIABLES, &DEGREE, &ONE_BIT, &DIGITS],
        ..About::new(
            "Two servers that read little of a larger table, privacy without an assumption",
            50,
        )
    };

    fn parameters(
        identity: &TableIdentity,
        tuning: &Tuning,
    ) -> Result<FiniteDifferencesParameters> {
        let (one_bit, choice) = (tuning.has(&ONE_BIT), Choice::of(tuning));
        let parameters = FiniteDifferencesParameters::new(identity.shape, one_bit, &choice)?;
        match tuning.has(&DIGITS) {
            true => parameters.of_digits(),
            false => Ok(parameters),
        }
    }

    fn setup(start: ServerStart<'_>, parameters: Self::Parameters) -> NewServer {
        points_server::start::<Self>(start, parameters)
    }

    fn client(
        start: ClientStart,
        parameters: Self::Parameters,
        _downloaded: Downloaded,
    ) -> NewClient {
        let client = FiniteDifferencesClient::new(parameters.clone());
        start.stateless(parameters, client)
    }

    fn words(parameters: &Self::Parameters) -> Option<String> {
        Some(format!(
            "a polynomial of degree {} in {} variables, {} of its values on each server, of which {} are sent for a lookup",
            parameters.degree(),
            parameters.variables(),
            bytes(parameters.points_bytes()),
            count(parameters.ball().count())
        ))
    }

    fn work(parameters: &Self::Parameters) -> Work {
        Work::Lines { lines: parameters.cache_lines(), from_bytes: parameters.stored_bytes() }
    }

    fn queries_look_random(_role: Role) -> bool {
        false
    }

    fn costs(parameters: &Self::Parameters) -> Costs {
        let points = parameters.points_bytes();
        let answer = 2.3 * random_reads(parameters.cache_lines() + 50, 64, points)
            + 1.4 * steps(parameters.answer_bytes());
        Costs {
            setup: 2.5 * copied(points) + 6.0 * xored(points),
            prepare: started(),
            query: steps(6_000),
            answer,
            answer_of_eight: answer,
            recover: 0.9 * steps(parameters.answer_bytes()),
            server_bytes: points.saturating_sub(parameters.shape().bytes()),
            ..Costs::default()
        }
    }
}
