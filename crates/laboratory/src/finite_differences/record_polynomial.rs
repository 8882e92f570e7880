//! The common part of both forms' parameters: the polynomial that holds the records.

use super::costs::Setting;
use crate::combinations::{Ball, FixedWeight};
use privet_core::{Error, Result, TableShape};

/// A polynomial of degree D in m variables with a coefficient for each record.
#[derive(Clone, Debug)]
pub struct RecordPolynomial {
    shape: TableShape,
    words: FixedWeight,
    ball: Ball,
}

impl RecordPolynomial {
    /// # Errors
    /// [`Blame::ApiMisuse`](privet_core::Blame::ApiMisuse), with the numbers, unless it has a
    /// coefficient for each record.
    pub(super) fn new(shape: TableShape, setting: Setting) -> Result<Self> {
        let Setting { variables, degree, .. } = setting;
        if setting.capacity() < shape.records() {
            return Err(Error::api_misuse(format!(
                "a polynomial of degree {degree} in {variables} variables holds {} records, the table has {}",
                setting.capacity(),
                shape.records()
            )));
        }
        let words = FixedWeight::new(variables, degree)?;
        Ok(Self { shape, words, ball: Ball::new(variables, setting.radius())? })
    }

    /// The table's shape.
    pub fn shape(&self) -> TableShape {
        self.shape
    }

    /// Variables, m.
    pub fn variables(&self) -> u32 {
        self.words.variables()
    }

    /// Degree, D.
    pub fn degree(&self) -> u32 {
        self.words.weight()
    }

    /// The words whose coefficients are the records, in order.
    pub fn words(&self) -> &FixedWeight {
        &self.words
    }

    /// The sets of variables in which a point that a server reads may differ from the query's
    /// point.
    pub fn ball(&self) -> &Ball {
        &self.ball
    }
}

/// Turns an error in `parameters`, which a server announced, into one that blames the server.
pub(super) fn announced<P>(parameters: Result<P>) -> Result<P> {
    parameters.map_err(|error| {
        Error::peer_misbehaved("the server announced a polynomial that does not suit the table")
            .caused_by(error)
    })
}
