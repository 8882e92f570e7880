//! The whole entry of the toy in the registry.

use super::{Toy, ToyClient, ToyParameters, ToyServer};
use crate::contract::Message as _;
use crate::registry::room::*;

pub(super) static PADDING: SchemeOption = SchemeOption::new(
    "padding",
    OptionKind::Count { value_name: "BYTES", least: 0, most: 64 },
    "Bytes by which each answer is longer",
);

impl Registered for Toy {
    const ABOUT: About =
        About { options: &[&PADDING], ..About::new("A server that answers with everything", 200) };

    fn parameters(identity: &TableIdentity, tuning: &Tuning) -> Result<Self::Parameters> {
        ToyParameters::new(identity, tuning.count(&PADDING).unwrap_or(0))
    }

    fn setup(start: ServerStart<'_>, parameters: ToyParameters) -> NewServer {
        let mut answer = vec![0; super::WholeTable::encoded_len(&parameters)];
        start.table.copy_to(&mut answer)?;
        start.ready(ToyServer { parameters, answer })
    }

    fn client(start: ClientStart, parameters: Self::Parameters, _: Downloaded) -> NewClient {
        let client = ToyClient(parameters.shape);
        start.stateless(parameters, client)
    }

    fn words(parameters: &Self::Parameters) -> Option<String> {
        Some(format!("{} bytes of padding", parameters.padding))
    }

    fn costs(_parameters: &Self::Parameters) -> Costs {
        Costs::default()
    }
}
