//! Stub.
use super::*;
use crate::contract::*;
use privet_core::{Error, RecordIndex, Result, SecretRng};
use privet_kernels::Kernels;
/// Stub.
pub struct DummySubsetsClient;
impl SchemeOf for DummySubsetsClient { type Scheme = DummySubsets; }
fn no<T>() -> Result<T> { Err(Error::api_misuse("stub")) }
impl HintedClient for DummySubsetsClient {
    fn load(_: DummySubsetsParameters, _: &[u8], _: Kernels) -> Result<Self> { no() }
    fn reserve(&self, _: &RecordIndex, _: &mut SecretRng) -> Result<Reserved<DummySubsetsQuery>> { no() }
    fn apply(&mut self, _: &[u8]) -> Result<()> { no() }
    fn settle(&self, _: ReservationId, _: &[DummySubsetsAnswer]) -> Result<Vec<u8>> { no() }
    fn take_record(&mut self, _: ReservationId) -> Option<Result<Record>> { None }
    fn open(&self) -> Vec<ReservationId> { Vec::new() }
    fn supply(&self) -> Supply { Supply { used: 0, total: 0 } }
}
