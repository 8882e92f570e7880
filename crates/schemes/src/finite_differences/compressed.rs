//! Answers compressed by linearly homomorphic encryption: **an experiment that is not served**. It
//! shows what compression costs; `docs/tradeoff.md` has the figures.
//!
//! Of the B values in a plain answer, the client needs one sum: over those whose difference e from
//! its point is a subset of x, the record's word. That is a linear function of the answer, with the
//! secret coefficients χ(e) = \[e ⊆ x\]. It is a product: if e is cut after its k lowest variables,
//! χ(e) = χ(e₁) · χ(e₂), where e₁ are these and e₂ are the others. So the client sends, besides its
//! point, an encryption of χ(e₂) for all e₂. The server returns for each e₁ the encrypted sum over
//! e₂ of its values at e₁ ∪ e₂, times χ(e₂). The client decrypts those sums and adds up the ones of
//! e₁ ⊆ x.
//!
//! **The encryption** is that of [`privet_core::ring`], with bits as plaintexts: sums modulo 2 are
//! XORs. Each bit of each sum is a row of a matrix, whose columns are the e₂. The server packs 2048
//! rows into one ring element. [`simplepir_packed`](crate::simplepir_packed) packs its table once.
//! Here the matrix is made of the points around the query's point, and no two queries have the
//! same. So all of the packing is done for each query.
//!
//! **Who learns what.** A server sees a uniform point, as in the plain scheme, and encryptions of
//! χ(e₂). Each server's are under a secret of its own. So this assumes ring LWE in addition to two
//! servers that do not collude. The point alone still needs no assumption, but the encryptions name
//! the record to whoever breaks one of them. A server that answers wrongly makes the client recover
//! wrong bytes.
//!
//! **What it costs**, with w bits in a record, K = (D − 1)/2, and R = Σ_{i ≤ k} C(m, i) choices of
//! e₁:
//!
//! | | bytes | work |
//! |---|---|---|
//! | query, client | up to each server ⌈m/8⌉, some 12 bits for each of Σ_{i ≤ K−k} C(m − k, i) words, and 13 KiB of keys | a product of polynomials for each 2048 words |
//! | answer, each server | down some 13 bits for each of R · w bits | B random reads, B · w additions, and the packing of ⌈R · w / 2048⌉ blocks: some 10^8 multiply-adds each |
//! | recover, client | – | a product of polynomials for each block |
//!
//! [`CompressedParameters`] takes the k with the fewest bytes and the fewest bits of each number
//! with which a record comes back right, except with probability 2^-40.
//!
//! With one cut, both directions grow with the square root of B, at best: as n^0.544 for D = m/2,
//! where plain answers grow as n^0.811. To select by an encrypted vector is Kushilevitz' and
//! Ostrovsky's idea (FOCS 1997). The paper on finite differences states n^0.31 for such answers.

mod client;
mod messages;
mod params;
mod server;
#[cfg(test)]
mod tests;

pub use client::{CompressedClient, CompressedPending};
pub use messages::{CompressedAnswer, CompressedQuery};
pub use params::CompressedParameters;
pub use server::CompressedServer;
