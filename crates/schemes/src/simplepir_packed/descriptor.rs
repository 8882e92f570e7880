//! The entry of packed SimplePIR in the registry.

use super::packing::BLOCK_BYTES;
use super::{
    Masks, SimplePirPacked, SimplePirPackedClient, SimplePirPackedParameters, SimplePirPackedSetup,
};
use crate::registry::factors::simplepir_packed as fitted;
use crate::registry::room::*;

/// Masks on demand.
pub static MASKS_ON_DEMAND: SchemeOption = SchemeOption::new(
    "masks-on-demand",
    OptionKind::Flag,
    "Send the mask of its record with each answer, instead of all masks to each client beside its \
     first lookup: for clients that keep nothing. A first lookup then moves fewer bytes on tables of \
     64 MiB and more (167 KiB instead of 232 for 1 GiB), and every lookup is more work (a seventh \
     for 1 GiB, a third for 128 MiB)",
);

impl Registered for SimplePirPacked {
    const ABOUT: About = About {
        assumes: Assumption::RingLwe,
        queries_first: true,
        options: &[&MASKS_ON_DEMAND],
        ..About::new("One server, ring learning with errors, a small hint, short messages", 85)
    };

    fn parameters(identity: &TableIdentity, tuning: &Tuning) -> Result<Self::Parameters> {
        let on_demand = tuning.has(&MASKS_ON_DEMAND);
        let masks = if on_demand { Masks::OnDemand } else { Masks::Downloaded };
        SimplePirPackedParameters::with_masks(identity, masks)
    }

    fn setup(start: ServerStart<'_>, parameters: Self::Parameters) -> NewServer {
        let (table, kernels, threads) = (start.table, start.kernels, start.threads);
        let setup = SimplePirPackedSetup::new(parameters, table, kernels, threads)?;
        start.precomputing(setup)
    }

    fn client(
        start: ClientStart,
        parameters: Self::Parameters,
        downloaded: Downloaded,
    ) -> NewClient {
        let client = SimplePirPackedClient::new(parameters.clone(), downloaded, start.kernels)?;
        start.ahead(parameters, client)
    }

    fn costs(parameters: &Self::Parameters) -> Costs {
        let (bytes, blocks) = (parameters.pass_bytes(), parameters.blocks());
        let answer =
            |[read, multiplied]: [f64; 2]| read * pass(bytes) + multiplied * byte_products(bytes);
        let of = |[fixed, each]: [f64; 2], count| fixed * steps(1) + each * steps(count);
        Costs {
            setup: blocks as f64 * of(fitted::SETUP, parameters.columns()),
            prepare: fitted::PREPARE * steps(1),
            query: of(fitted::QUERY, parameters.query_words()),
            answer: answer(fitted::ANSWER),
            answer_of_eight: answer(fitted::ANSWER_OF_EIGHT),
            recover: of(fitted::RECOVER, parameters.shape().record_len()),
            server_bytes: parameters.kept_bytes() + parameters.hint_bytes(),
            thread_bytes: BLOCK_BYTES + 64 * parameters.columns(),
            ..Costs::default()
        }
    }

    fn words(parameters: &Self::Parameters) -> Option<String> {
        match parameters.masks() {
            Masks::Downloaded => None,
            Masks::OnDemand => Some("each answer brings the mask of its record".to_owned()),
        }
    }
}
