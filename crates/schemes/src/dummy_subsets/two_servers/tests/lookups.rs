//! Hints never run out, and the search time stays the same.

use super::*;

#[test]
fn hints_never_run_out() {
    let mut world = World::new(200, 4);
    let mut client = world.client();
    client.queries = 100;
    // Another client's history has no repeats. In the long run, the first client's hints leave more
    // gaps.
    let mut other = world.client();
    other.queries = u64::MAX;
    let singles = u64::from(world.parameters.singles());
    // Many times as many lookups as there are hints.
    for number in 0..20 * singles {
        let index = if number % 8 > 0 { 7 } else { world.rng.below(200) };
        if client.supply().left() == 0 {
            let condensed = client.condense().unwrap();
            client = world.load(&condensed);
            client.queries = 100;
        }
        assert_eq!(&world.get(&mut client, index).unwrap()[..], world.record(index), "{number}");
        world.get(&mut other, number % 200).unwrap();
        let (work, other) = (client.table.find(index).work, other.table.find(3).work);
        assert_eq!(work, other, "after {number} lookups");
    }
}

#[test]
fn the_search_does_the_same_work_for_every_record_and_history() {
    let mut world = World::new(3000, 2);
    let (mut random, mut same) = (world.client(), world.client());
    (random.queries, same.queries) = (u64::MAX, u64::MAX);
    for round in 0..400 {
        let work = |client: &DummySubsetsTwoClient, index| client.table.find(index).work;
        let of_random = work(&random, world.rng.below(3000));
        assert_eq!(of_random, work(&random, 5), "round {round}");
        assert_eq!(of_random, work(&same, 5), "round {round}");
        for _ in 0..10 {
            let index = world.rng.below(3000);
            world.get(&mut random, index).unwrap();
            world.get(&mut same, 5).unwrap();
        }
    }
}
