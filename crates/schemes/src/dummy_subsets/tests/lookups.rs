//! Failures are as rare as the formula says, and no server sees them.

use super::*;

#[test]
fn no_hint_contains_the_record_as_often_as_the_formula_says() {
    let shape = TableShape::new(400, 1).unwrap();
    let cut = DummySubsetsParameters::with_partition_records(shape, 16).unwrap();
    // 64 hints are the fewest: here they correspond to λ_hint = 3.
    let parameters = cut.with_hint_security(3).unwrap();
    let expected = parameters.failure_probability();
    assert!((0.05..0.25).contains(&expected), "{expected}");
    let mut world = World::with(parameters);
    let (mut failed, mut asked) = (0, 0);
    for _ in 0..200 {
        // Fresh hints each time: failures of one generation are not independent.
        let client = world.client();
        for index in [0, 1, 17, 399] {
            let index = world.index(index);
            asked += 1;
            failed += u32::from(client.table.find(index.expose()).choose(&mut world.rng).is_none());
        }
    }
    let rate = f64::from(failed) / f64::from(asked);
    let deviation = (expected / f64::from(asked)).sqrt();
    assert!((rate - expected).abs() < 6.0 * deviation, "{rate} observed, {expected} expected");
}

#[test]
fn a_lookup_without_a_hint_sends_a_cover_and_fails() {
    let shape = TableShape::new(4000, 2).unwrap();
    let cut = DummySubsetsParameters::with_partition_records(shape, 64).unwrap();
    let mut world = World::with(cut.with_hint_security(1).unwrap());
    let mut client = world.client();
    let (mut found, mut failed) = (0, 0);
    for index in 0..30 {
        let reserved = world.reserve(&mut client, index * 131).unwrap();
        match world.tell(&mut client, &reserved).unwrap() {
            Ok(record) => {
                found += 1;
                assert_eq!(&record[..], world.record(index * 131));
            }
            Err(error) => {
                failed += 1;
                assert_eq!(error.blame(), Blame::Selective);
            }
        }
    }
    assert!(failed > 5 && found > 3, "{failed} failed, {found} found");
    assert_eq!(client.supply().used, 30, "a failure uses up as much as a success");
}
