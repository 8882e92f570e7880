//! Points that were computed before a server starts.

use crate::stored_setup::{SetupStore, StoredSetup, server_of_setup, setup_bytes, write_setup};
use privet_core::{Blame, Result, TableView};
use privet_kernels::Kernels;
use privet_kernels::memory::HugeBuffer;
use privet_schemes::contract::Role;
use privet_schemes::registry::{ErasedServer, ServerOptions, Tuning, plan, setup};
use privet_schemes::test_tables::{identity, public_bytes};
use std::sync::Mutex;

struct InMemory(Mutex<HugeBuffer<u8>>);

impl SetupStore for InMemory {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.0.lock().unwrap()[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        bytes.copy_from_slice(&self.0.lock().unwrap()[offset as usize..][..bytes.len()]);
        Ok(())
    }
}

fn options() -> ServerOptions {
    ServerOptions { kernels: Kernels::detect(), threads: 2 }
}

#[test]
fn a_server_of_written_points_answers_as_one_that_computed_them() {
    crate::register();
    let identity = identity(300, 7);
    let table = public_bytes("a table", identity.shape.bytes() as usize);
    let table = TableView::new(identity, &table).unwrap();
    let tuning = Tuning::default();
    for scheme in [crate::FINITE_DIFFERENCES, crate::FINITE_DIFFERENCES_MANY] {
        let plan = plan(scheme, &identity, &tuning).unwrap();
        let bytes = setup_bytes(&plan, &identity).unwrap();
        let setup = setup(scheme, table, &tuning, options()).unwrap();
        let computed = setup.finish(&[], &|_| {}).unwrap();
        let queries: Vec<Vec<u8>> = (0..9u64)
            .map(|point| (point * 101).to_le_bytes()[..plan.query_lens[0]].to_vec())
            .collect();
        let queries: Vec<&[u8]> = queries.iter().map(Vec::as_slice).collect();
        let answers = |server: &dyn ErasedServer| -> Vec<Vec<u8>> {
            server.answer(Role(0), &queries).into_iter().map(Result::unwrap).collect()
        };
        // Once in pieces, and once as a whole.
        for memory in [bytes / 5, bytes] {
            let store = InMemory(Mutex::new(HugeBuffer::new_zeroed(bytes as usize).unwrap()));
            write_setup(&plan, table, options(), memory, &store, &|_| {}).unwrap();
            let points = StoredSetup::from(store.0.into_inner().unwrap());
            let server = server_of_setup(plan.clone(), &identity, points, options()).unwrap();
            assert!(answers(&*server) == answers(&*computed), "{scheme}, {memory}");
        }
        let short = StoredSetup::from(HugeBuffer::new_zeroed(bytes as usize - 1).unwrap());
        let refusal = server_of_setup(plan, &identity, short, options()).err().unwrap();
        assert_eq!(refusal.blame(), Blame::Corrupted);
    }
}
