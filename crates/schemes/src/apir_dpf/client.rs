//! The client: shares the wanted index and a secret between the servers, adds the answers, and
//! accepts the sum if it fits the secret.

use super::{ApirDpf, ApirDpfAnswer, ApirDpfParameters, ApirDpfQuery};
use crate::contract::{Record, SchemeOf, StatelessClient, of_all};
use privet_core::dpf::Key;
use privet_core::{Error, RecordIndex, Result, Secret, SecretRng};
use privet_kernels::Kernels;
use zeroize::Zeroizing;

/// A client of one table.
pub struct ApirDpfClient {
    parameters: ApirDpfParameters,
    kernels: Kernels,
}

/// What the answers to one lookup must fit.
pub struct ApirDpfPending {
    /// The factor between a value and its tag: an element of the field that only the client knows.
    pub(super) alpha: Secret<u128>,
}

impl ApirDpfClient {
    /// A client that needs nothing but the parameters.
    pub fn new(parameters: ApirDpfParameters, kernels: Kernels) -> Self {
        Self { parameters, kernels }
    }
}

impl StatelessClient for ApirDpfClient {
    type Pending = ApirDpfPending;

    /// Draws 16 bytes from `rng` for α, little-endian, and then what [`Key::pair_with_payload`]
    /// draws.
    ///
    /// # Panics
    /// If `index` was made for a larger table than this.
    fn query(
        &self,
        index: &RecordIndex,
        rng: &mut SecretRng,
    ) -> Result<(Vec<ApirDpfQuery>, ApirDpfPending)> {
        let alpha = draw_element(rng);
        let keys = Key::pair_with_payload(
            self.kernels,
            self.parameters.table(),
            self.parameters.domain(),
            index,
            alpha.expose(),
            rng,
        );
        Ok((keys.map(|key| ApirDpfQuery { key }).into(), ApirDpfPending { alpha }))
    }

    /// # Errors
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) unless every element of the tag is α
    /// times that of the value. All are compared before anything is decided.
    fn recover(&self, pending: ApirDpfPending, answers: &[ApirDpfAnswer]) -> Result<Record> {
        let [one, other] = of_all("APIR-DPF", answers)?;
        let value = one.value.iter().zip(other.value.iter()).map(|(one, other)| one ^ other);
        let value = Zeroizing::new(value.collect::<Vec<u8>>());
        let mut expected = Zeroizing::new(vec![0; self.parameters.elements()]);
        self.kernels.tag(*pending.alpha.expose(), &value, &mut expected);
        let tags = one.tag.iter().zip(other.tag.iter()).zip(expected.iter());
        let differences = tags.map(|((one, other), expected)| one ^ other ^ expected);
        if differences.fold(0, |all, difference| all | difference) != 0 {
            return Err(Error::integrity(
                "one of the two servers sent a wrong answer, or does not hold the table that it \
                 announced: the answers do not fit the secret that this lookup was sealed with. \
                 Nothing of them was used. The client cannot know which of the two it was; ask \
                 other servers, or two of which you trust at least one",
            ));
        }
        Ok(value)
    }
}

/// A uniform element of the field.
fn draw_element(rng: &mut SecretRng) -> Secret<u128> {
    let mut bytes = Zeroizing::new([0; 16]);
    rng.fill(bytes.as_mut_slice());
    Secret::new(u128::from_le_bytes(*bytes))
}

impl SchemeOf for ApirDpfClient {
    type Scheme = ApirDpf;
}
