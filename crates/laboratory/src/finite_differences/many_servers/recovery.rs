//! Hermite interpolation: the coefficient of each entry in the record.

use super::ManyServersParameters;
use super::field::Field;
use crate::combinations::binomial;

/// The record is the sum, over all servers b and all sets U of at most K variables of the record's
/// word, of [`coefficient`](Self::coefficient)(b, |U|) times the entry at `z_b + 1_U`.
pub(super) struct Recovery {
    /// One for each server and each number of variables from 0 to K.
    coefficients: Vec<u32>,
    orders: usize,
}

impl Recovery {
    pub(super) fn new(parameters: &ManyServersParameters) -> Self {
        let (field, degree) = (parameters.packing(), parameters.degree());
        let orders = parameters.ball().radius() + 1;
        let weights = hermite_weights(field, parameters.servers(), orders, degree);
        let mut coefficients = Vec::with_capacity(weights.len());
        for of_server in weights.chunks(orders as usize) {
            for size in 0..orders {
                // A derivative of order k is a sum over the sets T of k variables of the word. A
                // set U counts in it with its sign, once for each of the C(D − u, k − u) sets T
                // that contain it.
                let terms = (size..orders).map(|order| {
                    let sets = residue(field, binomial(degree - size, order - size));
                    let sets = match (order - size) % 2 {
                        0 => sets,
                        _ => field.difference(0, sets),
                    };
                    field.product(of_server[order as usize], sets)
                });
                coefficients.push(terms.sum::<u32>() % field.order());
            }
        }
        Self { coefficients, orders: orders as usize }
    }

    pub(super) fn coefficient(&self, server: usize, size: usize) -> u32 {
        self.coefficients[server * self.orders + size]
    }
}

/// The weights w with which `Σ_b Σ_k w[b][k] · g^[k](b)` is the coefficient of t^`degree` in every
/// polynomial g of degree below `servers · orders`, for k below `orders`. g^[k] is the Hasse
/// derivative of order k, which takes t^j to C(j, k)·t^(j−k). The weights of one server stand
/// together, in the order of k.
///
/// Each power of t gives an equation: the sum is 1 for t^`degree` and 0 for all others. There is
/// exactly one solution, because the points are different elements of the field.
pub(super) fn hermite_weights(field: Field, servers: u32, orders: u32, degree: u32) -> Vec<u32> {
    let conditions = servers * orders;
    let equation = |power: u32| {
        let derivatives = (0..servers).flat_map(|point| {
            (0..orders).map(move |order| match power.checked_sub(order) {
                Some(rest) => {
                    let chosen = residue(field, binomial(power, order));
                    (0..rest).fold(chosen, |value, _| field.product(value, point))
                }
                None => 0,
            })
        });
        derivatives.chain([u32::from(power == degree)]).collect()
    };
    solve(field, (0..conditions).map(equation).collect())
}

/// Solves linear equations that have exactly one solution, by Gaussian elimination. A row has the
/// factors of all unknowns, and then the constant.
fn solve(field: Field, mut rows: Vec<Vec<u32>>) -> Vec<u32> {
    for column in 0..rows.len() {
        let Some(pivot) = (column..rows.len()).find(|row| rows[*row][column] != 0) else {
            unreachable!("values and derivatives at different points determine a polynomial")
        };
        rows.swap(column, pivot);
        let inverse = field.inverse(rows[column][column]);
        let pivot: Vec<u32> =
            rows[column].iter().map(|value| field.product(*value, inverse)).collect();
        for row in &mut rows {
            let factor = row[column];
            for (value, of_pivot) in row.iter_mut().zip(&pivot) {
                *value = field.difference(*value, field.product(factor, *of_pivot));
            }
        }
        rows[column] = pivot;
    }
    rows.into_iter().filter_map(|row| row.last().copied()).collect()
}

/// A number modulo q. The numbers here are binomials of less than a hundred elements, which fit
/// into 128 bits.
fn residue(field: Field, number: Option<u128>) -> u32 {
    (number.unwrap_or_default() % u128::from(field.order())) as u32
}
