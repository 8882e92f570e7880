//! The server: the truth table, of which each query reads a ball.

use super::{FiniteDifferencesMany, ManyServersAnswer, ManyServersParameters, ManyServersQuery};
use crate::contract::{Answerer, Role, SchemeOf};
use crate::finite_differences::points::Points;
use privet_core::{Error, Result};
use privet_kernels::Kernels;
use zeroize::Zeroizing;

/// How many entries are read at a time: enough that reads overlap, and few enough that their positions stay in cache.
const BATCH: usize = 4096;

/// The truth table of a polynomial, laid out for answering.
pub struct ManyServersServer {
    parameters: ManyServersParameters,
    points: Points,
    /// How many points there are between neighbours in each variable: q^j.
    strides: Vec<u64>,
    kernels: Kernels,
}

impl ManyServersServer {
    /// A server of the points that [`encode`](super::encode) computed.
    ///
    /// # Errors
    /// [`Blame::Corrupted`](privet_core::Blame::Corrupted) unless `points` is of [`points_bytes`](ManyServersParameters::points_bytes).
    pub fn new(
        parameters: ManyServersParameters,
        points: Points,
        kernels: Kernels,
    ) -> Result<Self> {
        if points.len() as u64 != parameters.points_bytes() {
            return Err(Error::corrupted(format!(
                "the points take {} bytes, {} are there: they belong to another table, or the file is damaged; compute them again",
                parameters.points_bytes(),
                points.len()
            )));
        }
        let field = u64::from(parameters.field());
        let strides = (0..parameters.variables()).map(|variable| field.pow(variable)).collect();
        Ok(Self { parameters, points, strides, kernels })
    }

    /// How far it is from a point to the next one in each variable. A coordinate of q − 1 goes round to 0, which is back: modulo 2^64.
    fn steps(&self, point: u64) -> Vec<u64> {
        let field = u64::from(self.parameters.field());
        let step = |stride: &u64| match point / stride % field {
            last if last == field - 1 => (last * stride).wrapping_neg(),
            _ => *stride,
        };
        self.strides.iter().map(step).collect()
    }

    fn answer_one(&self, query: &ManyServersQuery) -> ManyServersAnswer {
        let (ball, entry_len) = (self.parameters.ball(), self.parameters.entry_len());
        let steps = self.steps(*query.point);
        let mut positions = ball.words().map(|word| {
            let (mut position, mut left) = (*query.point, word);
            while left != 0 {
                position = position.wrapping_add(steps[left.trailing_zeros() as usize]);
                left &= left - 1;
            }
            position
        });
        let mut entries = Zeroizing::new(vec![0; ball.count() as usize * entry_len]);
        for out in entries.chunks_mut(BATCH * entry_len) {
            let batch: Vec<u64> = positions.by_ref().take(out.len() / entry_len).collect();
            let gathered = self.kernels.gather_records(&self.points, entry_len, &batch, out);
            debug_assert!(gathered.is_ok(), "each coordinate stays in the field");
        }
        ManyServersAnswer { entries }
    }
}

impl Answerer for ManyServersServer {
    const SHARES_PASSES: bool = false;

    fn parameters(&self) -> &ManyServersParameters {
        &self.parameters
    }

    /// All servers do the same: which of them this is, the query need not say.
    fn answer(&self, _role: Role, queries: &[ManyServersQuery]) -> Vec<ManyServersAnswer> {
        queries.iter().map(|query| self.answer_one(query)).collect()
    }

    fn resident_bytes(&self) -> u64 {
        self.points.len() as u64
    }

    fn huge_page_bytes(&self) -> Option<u64> {
        self.points.huge_page_bytes()
    }
}

impl SchemeOf for ManyServersServer {
    type Scheme = FiniteDifferencesMany;
}
