//! Points that are computed beyond memory equal those that are computed in memory.

use super::beyond_memory::{self, Cut, LEAST_PART, Transform};
use super::{SubsetSums, encode};
use crate::finite_differences::FiniteDifferencesParameters;
use crate::finite_differences::costs::Setting;
use crate::stored_setup::SetupStore;
use privet_core::{Blame, Error, Result};
use privet_kernels::Kernels;
use privet_schemes::test_tables::{identity, public_bytes};
use proptest::prelude::*;
use std::sync::Mutex;

/// A store in memory that panics unless each byte is written before it is read, read once, and
/// written a second time only after it was read.
pub(in crate::finite_differences) struct WatchfulStore {
    state: Mutex<State>,
    /// Which call fails, the first being 1.
    failing: Option<usize>,
}

struct State {
    bytes: Vec<u8>,
    /// `Some(true)` if the byte was written and not read since.
    fresh: Vec<Option<bool>>,
    calls: usize,
}

impl WatchfulStore {
    pub(in crate::finite_differences) fn new(len: u64, failing: Option<usize>) -> Self {
        // What was there before must not matter.
        let (bytes, fresh) = (vec![0xee; len as usize], vec![None; len as usize]);
        Self { state: Mutex::new(State { bytes, fresh, calls: 0 }), failing }
    }

    /// All bytes. Each must have been written, and none may have been read last: otherwise its sums
    /// were not written.
    pub(in crate::finite_differences) fn into_bytes(self) -> Vec<u8> {
        let state = self.state.into_inner().unwrap();
        assert!(state.fresh.iter().all(|fresh| *fresh == Some(true)));
        state.bytes
    }

    /// One more call, on a part.
    fn call(
        &self,
        offset: u64,
        len: usize,
        from: &[Option<bool>],
        to: bool,
        copy: impl FnOnce(&mut [u8]),
    ) -> Result<()> {
        let mut state = self.state.lock().unwrap();
        state.calls += 1;
        if Some(state.calls) == self.failing {
            return Err(Error::unavailable("call number so and so fails"));
        }
        let part = offset as usize..offset as usize + len;
        let fresh = &mut state.fresh[part.clone()];
        assert!(len > 0 && fresh.iter().all(|fresh| from.contains(fresh)), "{part:?}");
        fresh.fill(Some(to));
        copy(&mut state.bytes[part]);
        Ok(())
    }
}

impl SetupStore for WatchfulStore {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let from = [None, Some(false)];
        self.call(offset, bytes.len(), &from, true, |part| part.copy_from_slice(bytes))
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let (from, len) = ([Some(true)], bytes.len());
        self.call(offset, len, &from, false, |part| bytes.copy_from_slice(part))
    }
}

/// What `transform` writes to a store of so many bytes, and the progress that it reports.
pub(in crate::finite_differences) fn written(
    transform: &dyn Transform,
    memory: u64,
    least_part: u64,
    threads: usize,
    store: &dyn SetupStore,
) -> (Result<()>, Vec<f64>) {
    let heard = Mutex::new(Vec::new());
    let report = |share| heard.lock().unwrap().push(share);
    let outcome = beyond_memory::write(transform, memory, least_part, threads, store, &report);
    (outcome, heard.into_inner().unwrap())
}

/// More threads than this work in no test.
const MOST_THREADS: usize = 3;

/// Each call of the store fails once, and the error comes back each time, until all calls succeed.
pub(in crate::finite_differences) fn every_call_fails_once(
    write: impl Fn(&WatchfulStore) -> Result<()>,
    len: u64,
) -> usize {
    for failing in 1.. {
        let store = WatchfulStore::new(len, Some(failing));
        let outcome = write(&store);
        let calls = store.state.lock().unwrap().calls;
        match outcome {
            Err(error) => {
                assert_eq!(error.blame(), Blame::Unavailable);
                assert_eq!(error.to_string(), "call number so and so fails");
                // The other threads finish their present item, and begin nothing new.
                assert!(calls < failing + MOST_THREADS);
            }
            Ok(()) => {
                assert_eq!(calls, failing - 1);
                return calls;
            }
        }
    }
    unreachable!("there are only so many calls")
}

fn setting(variables: u32, degree: u32) -> Setting {
    Setting { servers: 2, field: 2, variables, degree }
}

/// Parameters, and the records of a table.
fn world(
    variables: u32,
    degree: u32,
    missing: u64,
    record_len: u64,
    one_bit: bool,
) -> (FiniteDifferencesParameters, Vec<u8>) {
    let setting = setting(variables, degree);
    let records = setting.capacity().saturating_sub(missing).max(1);
    let shape = identity(records, record_len).shape;
    let mut table = public_bytes("a table", shape.bytes() as usize);
    if one_bit {
        table.iter_mut().for_each(|byte| *byte &= 1);
    }
    (FiniteDifferencesParameters::with(shape, one_bit, setting).unwrap(), table)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn points_in_a_store_are_those_in_memory(
        variables in 2u32..=12,
        degree in prop::sample::select(&[1, 3, 5][..]),
        missing in 0u64..10,
        record_len in 1u64..=5,
        one_bit: bool,
        memory in prop_oneof![0u64..200, 0u64..30_000],
        least_part in 1u64..=100,
        threads in prop::sample::select(&[1, 3][..]),
    ) {
        let degree = if 2 * degree > variables { 1 } else { degree };
        let record_len = if one_bit { 1 } else { record_len };
        let (parameters, table) = world(variables, degree, missing, record_len, one_bit);
        let kernels = Kernels::detect();
        let expected = encode(&parameters, &table, kernels, 1, &|_| {}).unwrap();
        let sums = SubsetSums::new(&parameters, &table, kernels, threads).unwrap();
        let store = WatchfulStore::new(parameters.stored_bytes(), None);
        let heard = Mutex::new(Vec::new());
        sums.write(memory, least_part, &store, &|share| heard.lock().unwrap().push(share)).unwrap();
        prop_assert_eq!(store.into_bytes(), &expected[..]);
        let heard = heard.into_inner().unwrap();
        prop_assert!(heard.is_sorted() && heard.last() == Some(&1.0), "{:?}", heard);
    }

    #[test]
    fn no_more_memory_is_taken_than_was_given(
        variables in 2u32..=34,
        record_len in 1u64..=5000,
        memory: u64,
        bits in 0u32..50,
        least_part in 1u64..=LEAST_PART,
    ) {
        let (parameters, table) = world(variables, 1, 0, record_len, false);
        let sums = SubsetSums::new(&parameters, &table, Kernels::detect(), 1).unwrap();
        let memory = memory >> (63 - bits);
        let cut = Cut::new(&sums, memory, least_part);
        prop_assert!(cut.buffer_len() <= memory.max(record_len).max(2));
        let points = parameters.points_bytes();
        // All in one piece if that fits; otherwise pieces of the greatest allowed length.
        prop_assert_eq!(cut.groups.is_empty(), cut.piece_len == points);
        prop_assert!(cut.piece_len == points || 2 * cut.piece_len > memory);
        for group in &cut.groups {
            prop_assert!(group.width >= 1 && group.width <= group.row_len);
            // If there is memory for two parts, parts have the right length, up to rounding to
            // whole pages.
            if memory >= 2 * least_part && group.width < group.row_len {
                prop_assert!(group.width + (4 << 10) > least_part);
            }
        }
    }
}

#[test]
fn little_memory_takes_several_groups_of_variables_and_much_takes_one() {
    let (parameters, table) = world(30, 1, 0, 1, false);
    let sums = SubsetSums::new(&parameters, &table, Kernels::detect(), 1).unwrap();
    let groups = |memory| Cut::new(&sums, memory, LEAST_PART).groups.len();
    // 1 GiB: memory for 2^4, 2^7 and 2^14 parts, for pieces of 20, 23 and 30 variables.
    assert_eq!([20, 23, 30].map(|log| groups(1 << log)), [3, 1, 0]);
}

#[test]
fn a_store_that_fails_at_any_call_is_heard() {
    let (parameters, table) = world(7, 3, 4, 3, false);
    for threads in [1, 3] {
        let sums = SubsetSums::new(&parameters, &table, Kernels::detect(), threads).unwrap();
        let write = |store: &WatchfulStore| sums.write(50, 10, store, &|_| {});
        let calls = every_call_fails_once(write, parameters.stored_bytes());
        assert!(calls > 50, "{calls}");
    }
}

#[test]
fn bytes_that_are_no_bits_are_refused() {
    let (parameters, mut table) = world(6, 3, 0, 1, true);
    table[7] = 2;
    let refusal = SubsetSums::new(&parameters, &table, Kernels::detect(), 1).err().unwrap();
    assert_eq!(refusal.blame(), Blame::ApiMisuse);
}
