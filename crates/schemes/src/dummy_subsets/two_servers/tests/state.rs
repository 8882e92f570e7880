//! Invalid hints and messages.

use super::*;

#[test]
fn hints_that_make_no_sense_are_refused() {
    let mut world = World::new(60, 3);
    let generation = world.generation();
    let layout = generation::Layout::new(&world.parameters);
    let corrupted = |hints: &[u8], what: &str| {
        assert_eq!(world.try_load(hints).err().unwrap().blame(), Blame::Corrupted, "{what}");
    };
    let mut twice = generation.to_vec();
    let hint = privet_core::hints::LiveHint { id: 3, cutoff: 9, above: false, extra: None };
    layout.put(&mut twice, 5, hint);
    corrupted(&twice, "two rows with one id");
    let mut beyond = generation.to_vec();
    layout.put(&mut beyond, 5, privet_core::hints::LiveHint { extra: Some(60), id: 5, ..hint });
    corrupted(&beyond, "a record beyond the table");
    let mut early = generation.to_vec();
    early[20..24].copy_from_slice(&3u32.to_le_bytes());
    corrupted(&early, "ids that are yet to come");
}

#[test]
fn messages_of_another_form_are_refused() {
    let mut world = World::new(500, 3);
    let client = world.client();
    let index = world.index(5);
    let queries = client.reserve(&index, &mut world.rng).unwrap().queries;
    for (role, query) in (0u8..).zip(&queries) {
        let bytes = query.encode_query();
        let other = TwoServersQuery::decode_query(&world.parameters, Role(1 - role), &bytes);
        assert_eq!(other.err().unwrap().blame(), Blame::InvalidMessage);
    }
    let request = world.preparation().next_request().unwrap().to_vec();
    let mut odd = request.clone();
    odd[16] = 4;
    let mut high = request.clone();
    high[16..20].copy_from_slice(&0xffff_fff8u32.to_le_bytes());
    for wrong in [&request[1..], &odd, &high] {
        let refused = HintsRequest::decode(&world.parameters, wrong);
        assert_eq!(refused.err().unwrap().blame(), Blame::InvalidMessage);
    }
}
