//! Clients with hints of their own, of any scheme and from any source. Their hints last as long as
//! the test runs.

use crate::common::*;
use privet_core::{RecordIndex, SecretRng};
use privet_kernels::Kernels;
use privet_schemes::contract::Role;
use privet_schemes::registry::{self, ErasedClient, ErasedPreparation, Recovered};
use privet_schemes::reservation::{Journal, JournalEntry, Lookup, Prepared};
use privet_wire::{AnswerRequest, TableDescription};

/// The hints of a new client, before anything was received for them.
pub(crate) fn begin_preparation(
    table: &TableDescription,
    digest: [u8; 32],
) -> Box<dyn ErasedPreparation> {
    let plan = &table.schemes[0].plan;
    registry::preparation(plan, &table.identity, digest, None, Kernels::detect()).unwrap()
}

pub(crate) struct HintedClient {
    table: TableDescription,
    scheme: Box<dyn ErasedClient>,
    rng: SecretRng,
}

struct NoCrashes;

impl Journal for NoCrashes {
    fn append_and_sync(&mut self, _: &[JournalEntry<'_>]) -> privet_core::Result<()> {
        Ok(())
    }
}

impl HintedClient {
    /// With the hints of a preparation that has received everything.
    pub(crate) fn new(
        table: &TableDescription,
        mut preparation: Box<dyn ErasedPreparation>,
    ) -> Self {
        preparation.finish().unwrap();
        let generation = preparation.generation().unwrap();
        let plan = table.schemes[0].plan.clone();
        let scheme =
            registry::hinted_client(plan, &table.identity, generation, Kernels::detect()).unwrap();
        Self { table: table.clone(), scheme, rng: SecretRng::from_os().unwrap() }
    }

    /// Looks one record up, each server in its role, and compares it with what the table has there.
    pub(crate) async fn check(&mut self, servers: &mut [Stub], index: u64) {
        let shape = self.table.identity.shape;
        let wanted = RecordIndex::new(index, shape).unwrap();
        let Prepared::Reserved(reservation) = self.scheme.prepare(&wanted, &mut self.rng).unwrap()
        else {
            panic!("queries of this scheme have to be reserved");
        };
        let Lookup { sendable, pending } = reservation.commit(&mut NoCrashes).unwrap();
        assert_eq!(sendable.queries().len(), servers.len());
        let mut answers = Vec::new();
        for ((role, query), server) in (0..).zip(sendable.queries()).zip(servers) {
            let request = AnswerRequest {
                table: self.table.identity.id,
                epoch: self.table.identity.epoch,
                parameter_digest: self.table.schemes[0].parameter_digest,
                role: Role(role),
                query: query.clone().into(),
            };
            answers.push(ask(server, request).await.unwrap().answer);
        }
        let answers: Vec<&[u8]> = answers.iter().map(|answer| &answer[..]).collect();
        let recovered = self.scheme.recover(pending, &answers).unwrap();
        let Recovered::Settled { record: Some(record), .. } = recovered else {
            panic!("nothing else is under way that this lookup would have to wait for");
        };
        let len = shape.record_len() as usize;
        let all = records(shape.bytes() as usize, self.table.identity.id.0[0]);
        let expected = &all[index as usize * len..][..len];
        assert_eq!(&record.unwrap()[..], expected, "record {index} of {}", self.table.name);
    }
}
