//! Stub.
use super::*;
use crate::contract::*;
use crate::offline::StreamConsumer;
use privet_core::{Error, Result, SecretRng};
use privet_kernels::Kernels;
use zeroize::Zeroizing;
/// Stub.
pub struct DummySubsetsPreparation;
impl SchemeOf for DummySubsetsPreparation { type Scheme = DummySubsets; }
fn no<T>() -> Result<T> { Err(Error::api_misuse("stub")) }
impl StreamConsumer for DummySubsetsPreparation {
    fn next_offset(&self) -> u64 { 0 }
    fn absorb(&mut self, _: u64, _: &[u8]) -> Result<()> { no() }
    fn finish(&mut self) -> Result<()> { no() }
}
impl Preparation for DummySubsetsPreparation {
    fn begin(_: DummySubsetsParameters, _: [u8; 32], _: &mut SecretRng, _: Kernels) -> Result<Self> { no() }
    fn resume(_: DummySubsetsParameters, _: [u8; 32], _: &[u8], _: Kernels) -> Result<Self> { no() }
    fn checkpoint(&self) -> Zeroizing<Vec<u8>> { Zeroizing::default() }
    fn checkpoint_offset(&self) -> u64 { 0 }
    fn generation(&self) -> Result<Zeroizing<Vec<u8>>> { no() }
}
