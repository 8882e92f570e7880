//! The client's public side. It keeps the order of `order.rs`, whatever the caller does.

use super::change::{Reason, TapirChange, encode_end, encode_pass, encode_update};
use super::order::{Asked, Ended, Ready};
use super::{Form, Tapir, TapirAnswer, TapirParameters, TapirQuery, generation, planted};
use crate::contract::{HintedClient, Record, ReservationId, Reserved, SchemeOf, Supply, of_all};
use crate::singlepass::SinglePassClient;
use privet_core::commit::{Rejected, VectorCommitment};
use privet_core::hints::impossible;
use privet_core::{Error, RecordIndex, Result, SecretRng, TableDelta, TableShape};
use privet_kernels::Kernels;
use zeroize::Zeroizing;

/// A client with one generation of hints.
pub struct TapirClient<F: Form> {
    /// `None` only while a change takes place.
    standing: Option<Standing<F>>,
    /// The parameters after the last change before the end.
    parameters: TapirParameters<F>,
    supply: Supply,
}

enum Standing<F: Form> {
    Ready(Box<Ready<F>>),
    Asked(Asked<F>),
    Ended(Ended),
}

impl<F: Form> TapirClient<F> {
    fn standing(&self) -> Result<&Standing<F>> {
        self.standing.as_ref().ok_or_else(|| Error::corrupted("the hints were lost half-way"))
    }

    /// The client, if it may ask.
    ///
    /// # Errors
    /// [`Blame::Integrity`](privet_core::Blame::Integrity) if it has ended,
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse) if an answer is due.
    fn ready(&self) -> Result<&Ready<F>> {
        match self.standing()? {
            Standing::Ready(ready) => Ok(ready),
            Standing::Asked(_) => Err(Error::api_misuse(
                "TAPIR makes one lookup after the other; the one before has not been answered",
            )),
            Standing::Ended(ended) => Err(ended.reason.error()),
        }
    }

    fn hints(&self) -> Option<&SinglePassClient> {
        match self.standing.as_ref()? {
            Standing::Ready(ready) => Some(&ready.hints),
            Standing::Asked(asked) => Some(&asked.ready().hints),
            Standing::Ended(_) => None,
        }
    }

    /// The change that answers bring, whether they are right or not.
    fn settled(&self, asked: &Asked<F>, answers: [&TapirAnswer; 2]) -> Result<Zeroizing<Vec<u8>>> {
        match planted::verified(asked, answers, asked.verify(answers)?) {
            Ok(()) => asked.brought(answers).map(|change| encode_pass(&change)),
            Err(Rejected { servers }) => Ok(encode_end(Reason::Answers { servers })),
        }
    }

    /// Replaces the present standing by the result of `step`. If `step` fails, the standing is the
    /// one that it returns.
    fn step(
        &mut self,
        step: impl FnOnce(Standing<F>) -> std::result::Result<Standing<F>, (Standing<F>, Error)>,
    ) -> Result<()> {
        let before =
            self.standing.take().ok_or_else(|| Error::corrupted("the hints were lost half-way"))?;
        let (after, result) = match step(before) {
            Ok(after) => (after, Ok(())),
            Err((before, error)) => (before, Err(error)),
        };
        self.standing = Some(after);
        if let Some(hints) = self.hints() {
            self.supply = hints.supply();
        }
        result
    }
}

impl<F: Form> HintedClient for TapirClient<F> {
    const ENDLESS: bool = true;

    fn load(
        parameters: TapirParameters<F>,
        generation: Zeroizing<Vec<u8>>,
        kernels: Kernels,
    ) -> Result<Self> {
        let parts = generation::decode(&parameters, &generation)?;
        let verifier = parameters.commitment().read_verifier(parts.verifier, kernels)?;
        let pass = Zeroizing::new(parts.pass.to_vec());
        let hints = SinglePassClient::load(parameters.pass().clone(), pass, kernels)?;
        let supply = hints.supply();
        let ready = Ready { parameters: parameters.clone(), hints, verifier, later: parts.later };
        Ok(Self { standing: Some(Standing::Ready(Box::new(ready))), parameters, supply })
    }

    fn parameters(&self) -> &TapirParameters<F> {
        &self.parameters
    }

    fn reserve(&self, index: &RecordIndex, rng: &mut SecretRng) -> Result<Reserved<TapirQuery>> {
        let Reserved { id, change, queries } = self.ready()?.show(index, rng)?;
        Ok(Reserved { id, change: encode_pass(&change), queries })
    }

    fn apply(&mut self, change: &[u8]) -> Result<()> {
        match TapirChange::decode(&self.parameters, change)? {
            TapirChange::Pass(change) => self.step(|standing| match standing {
                Standing::Ready(ready) => ready
                    .ask(change)
                    .map(Standing::Asked)
                    .map_err(|(ready, error)| (Standing::Ready(ready), error)),
                Standing::Asked(asked) => asked
                    .take_in(change)
                    .map(Standing::Ready)
                    .map_err(|(asked, error)| (Standing::Asked(asked), error)),
                Standing::Ended(ended) => Err((Standing::Ended(ended), beyond_the_end())),
            }),
            TapirChange::Update(delta) => {
                let Some(Standing::Ready(ready)) = &mut self.standing else {
                    return Err(impossible("the table was updated while a lookup was open"));
                };
                ready.update(&delta)?;
                self.parameters = ready.parameters.clone();
                self.supply = ready.hints.supply();
                Ok(())
            }
            TapirChange::End(reason) => self.step(|standing| {
                let lookup = match &standing {
                    Standing::Asked(asked) => Some(asked.id()),
                    Standing::Ready(_) => None,
                    Standing::Ended(_) => return Err((standing, beyond_the_end())),
                };
                // This erases permutations and hints.
                drop(standing);
                Ok(Standing::Ended(Ended { reason, lookup }))
            }),
        }
    }

    /// The change that the answers bring. If they are wrong, this is the change that ends the
    /// client.
    fn settle(&self, id: ReservationId, answers: &[TapirAnswer]) -> Result<Zeroizing<Vec<u8>>> {
        let [first, second] = of_all("TAPIR", answers)?;
        match self.standing()? {
            Standing::Asked(asked) if asked.id() == id => self.settled(asked, [first, second]),
            _ => {
                Err(Error::api_misuse("answers were given for a lookup that does not wait for any"))
            }
        }
    }

    fn take_record(&mut self, id: ReservationId) -> Option<Result<Record>> {
        match self.standing.as_mut()? {
            Standing::Ready(ready) => ready.hints.take_record(id),
            Standing::Asked(_) => None,
            Standing::Ended(ended) => {
                ended.lookup.take_if(|lookup| *lookup == id)?;
                Some(Err(ended.reason.error()))
            }
        }
    }

    fn open(&self) -> Vec<ReservationId> {
        self.hints().map(HintedClient::open).unwrap_or_default()
    }

    fn supply(&self) -> Supply {
        self.supply
    }

    /// The answers fail the check. The change of answers that pass is computed nevertheless: both
    /// are a part of the work.
    fn settle_rehearsed(&mut self, id: ReservationId, answers: &[TapirAnswer]) -> Result<()> {
        let (Standing::Asked(asked), [first, second]) = (self.standing()?, answers) else {
            return Err(Error::api_misuse("a rehearsal settles the lookup that it has prepared"));
        };
        let proof = F::proof_in_form(self.parameters.commitment());
        let [first, second] = [first, second]
            .map(|answer| TapirAnswer { records: answer.records.clone(), proof: proof.clone() });
        debug_assert_eq!(asked.id(), id);
        // Answers of zeros pass only for a table of zeros. This does not find out which server is
        // to blame, because a successful lookup does not either.
        let _ = std::hint::black_box(asked.accepts([&first, &second])?);
        let change = encode_pass(&asked.brought([&first, &second])?);
        self.apply(&change)
    }

    fn condense(&self) -> Result<Zeroizing<Vec<u8>>> {
        let ready = self.ready()?;
        Ok(ready.written_down(&ready.hints.condense()?))
    }

    fn follows(&self, after: TableShape) -> bool {
        self.parameters.grown(after).is_ok()
    }

    fn delta_change(&self, delta: &TableDelta) -> Result<Zeroizing<Vec<u8>>> {
        self.ready()?;
        delta.check_before(self.parameters.shape())?;
        self.parameters.grown(delta.shape_after())?;
        Ok(encode_update(delta))
    }

    fn disagreement(&self) -> Option<Zeroizing<Vec<u8>>> {
        Some(encode_end(Reason::Updates))
    }

    fn ended(&self) -> Option<Error> {
        match &self.standing {
            Some(Standing::Ended(ended)) => Some(ended.reason.error()),
            _ => None,
        }
    }
}

#[cfg(any(test, feature = "testing"))]
#[allow(clippy::unwrap_used)]
impl<F: Form> TapirClient<F> {
    /// The state as a generation, used up or not.
    pub(super) fn written_down(&self) -> Zeroizing<Vec<u8>> {
        let ready = self.ready().unwrap();
        ready.written_down(&ready.hints.encoded().unwrap())
    }

    /// The queries of the open lookup, as the client computes them afterwards.
    pub(super) fn shown(&self) -> Vec<TapirQuery> {
        match self.standing.as_ref() {
            Some(Standing::Asked(asked)) => {
                asked.ready().hints.shown(asked.id()).unwrap().map(TapirQuery).into()
            }
            _ => panic!("no lookup is under way"),
        }
    }
}

fn beyond_the_end() -> Error {
    Error::corrupted("the journal of hints goes on after its end")
}

impl<F: Form> SchemeOf for TapirClient<F> {
    type Scheme = Tapir<F>;
}
