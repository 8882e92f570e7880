use super::descriptor::PADDING;
use crate::SchemeId;
use crate::contract::Role;
use crate::offline::OfflinePhase;
use crate::registry::{self, Recovered, SchemePlan, ServerOptions, Tuning, Work};
use crate::reservation::{Lookup, Prepared};
use crate::test_tables::{identity, public_bytes};
use privet_core::{Blame, Reason, RecordIndex, SecretRng, TableView};
use privet_kernels::Kernels;
use std::sync::Arc;

/// Found only by its name: nothing outside the folder names the scheme in another way.
fn toy() -> SchemeId {
    "toy".parse().unwrap()
}

#[test]
fn a_room_and_a_line_are_a_scheme_that_is_served_and_asked() {
    let identity = identity(23, 5);
    let records = public_bytes("a table", identity.shape.bytes() as usize);
    let table = TableView::new(identity, &records).unwrap();
    let tuning = Tuning::default().with(&PADDING, 7u32);
    let options = ServerOptions { kernels: Kernels::detect(), threads: 1 };
    let setup = registry::setup(toy(), table, &tuning, options).unwrap();
    let server = setup.finish(&[], &|_| {}).unwrap();

    // A client knows what was announced and no more.
    let announced = server.plan().parameters.clone();
    let plan = SchemePlan::from_announcement(toy(), &identity, &announced).unwrap();
    assert_eq!(&plan, server.plan());
    assert_eq!((plan.servers, &plan.query_lens[..], plan.answer_len), (1, &[1][..], 23 * 5 + 7));
    assert_eq!(plan.offline, OfflinePhase::Nothing);
    let nothing = Arc::new(Vec::new());
    let mut client = registry::client(plan, &identity, nothing, Kernels::detect()).unwrap();
    let mut rng = SecretRng::from_fixed_seed([1; 32]);
    for index in 0..23 {
        let wanted = RecordIndex::new(index, identity.shape).unwrap();
        let Prepared::Ready(Lookup { sendable, pending }) =
            client.prepare(&wanted, &mut rng).unwrap()
        else {
            panic!("a toy keeps no hints")
        };
        let queries: Vec<&[u8]> = sendable.queries().iter().map(|query| &query[..]).collect();
        let answer = server.answer(Role(0), &queries).remove(0).unwrap();
        let Recovered::Record(record) = client.recover(pending, &[&answer]).unwrap() else {
            panic!("a toy keeps no hints")
        };
        assert_eq!(&record[..], table.record(index).unwrap());
    }
    assert!(server.answer(Role(0), &[b"!"]).remove(0).is_err());
}

#[test]
fn it_says_what_it_is_and_what_can_be_chosen() {
    let identity = identity(23, 5);
    assert!(SchemeId::all().any(|scheme| scheme == toy()) && !toy().verifies());
    assert_eq!(toy().about().summary, "A server that answers with everything");
    let plan = registry::plan(toy(), &identity, &Tuning::default()).unwrap();
    assert_eq!(plan.words(&identity).unwrap(), "0 bytes of padding");
    assert_eq!((plan.work(&identity), plan.hints_len(&identity)), (Work::WholeTable, 0));
    // Requests for what it lacks are refused, with its name.
    let hints = registry::preparation(&plan, &identity, [0; 32], None, Kernels::detect());
    let refusal = hints.err().unwrap();
    assert_eq!(refusal.message(), "toy has another kind of offline phase");
    let version = (&plan, &identity);
    assert!(!registry::patches_downloads(version, version));
    // Its option is its own.
    let padded = Tuning::default().with(&PADDING, 3u32);
    let refusal = registry::plan(SchemeId::Dpf, &identity, &padded).err().unwrap();
    assert_eq!(refusal.blame(), Blame::ApiMisuse);
    assert_eq!(
        refusal.message(),
        "the option padding is for toy alone: leave it out, or choose toy"
    );
    assert_eq!(refusal.reason(), Some(Reason::OptionOfAnotherScheme));
    let cut = Tuning::default().with(&registry::PARTITION_RECORDS, 4u32);
    let refusal = registry::plan(toy(), &identity, &cut).err().unwrap();
    assert!(refusal.message().starts_with("toy does not cut the table into partitions"));
    // A server must not announce a value that nobody could choose.
    let announced = 65u32.to_le_bytes();
    let refusal = SchemePlan::from_announcement(toy(), &identity, &announced).err().unwrap();
    assert_eq!(refusal.blame(), Blame::PeerMisbehaved);
}
