//! The client: shares the wanted index between the servers, and adds the two sums.

use super::{Dpf, DpfAnswer, DpfParameters, DpfQuery};
use crate::contract::{Record, SchemeOf, StatelessClient, of_all};
use privet_core::dpf::Key;
use privet_core::{RecordIndex, Result, SecretRng};
use privet_kernels::Kernels;
use zeroize::Zeroizing;

/// A client of one table.
pub struct DpfClient {
    parameters: DpfParameters,
    kernels: Kernels,
}

/// Recovering a record needs nothing but the two answers.
pub struct DpfPending;

impl DpfClient {
    /// A client that needs nothing but the parameters.
    pub fn new(parameters: DpfParameters, kernels: Kernels) -> Self {
        Self { parameters, kernels }
    }
}

impl StatelessClient for DpfClient {
    type Pending = DpfPending;

    /// # Panics
    /// If `index` was made for a larger table than this.
    fn query(
        &self,
        index: &RecordIndex,
        rng: &mut SecretRng,
    ) -> Result<(Vec<DpfQuery>, DpfPending)> {
        let (table, domain) = (self.parameters.table(), self.parameters.domain());
        let keys = Key::pair(self.kernels, table, domain, index, rng);
        Ok((keys.map(|key| DpfQuery { key }).into(), DpfPending))
    }

    fn recover(&self, _pending: DpfPending, answers: &[DpfAnswer]) -> Result<Record> {
        let [one, other] = of_all("DPF-PIR", answers)?;
        let record = one.sum.iter().zip(other.sum.iter()).map(|(one, other)| one ^ other);
        Ok(Zeroizing::new(record.collect()))
    }
}

impl SchemeOf for DpfClient {
    type Scheme = Dpf;
}
