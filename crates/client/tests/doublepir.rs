//! DoublePIR over loopback: a hint of 16 MiB for records of one byte, fetched once, and lookups from it.

#![allow(clippy::unwrap_used)]

mod common;

use common::{indexed_by, options, serve};
use privet_client::{Client, Target, Traffic};
use privet_core::TableShape;
use privet_schemes::SchemeId;

const RECORDS: u64 = 5000;

fn byte(index: u64) -> u8 {
    (index * 31 + index / 7) as u8
}

#[tokio::test]
async fn records_are_found_with_the_hint_of_an_earlier_process() {
    let records = (0..RECORDS).map(byte).collect();
    let shape = TableShape::new(RECORDS, 1).unwrap();
    let (_server, url) = serve(vec![indexed_by(SchemeId::DoublePir, records, shape)]).await;
    let state = tempfile::tempdir().unwrap();
    let mut stored = options(&url);
    stored.state_dir = Some(state.path().to_owned());

    let first = Client::connect(stored.clone(), |_| {}).await.unwrap();
    assert_eq!(first.table().scheme.plan.offline.len(), 16 << 20);
    assert!(first.stats().prepare.down > 16 << 20);
    drop(first);
    let second = Client::connect(stored, |_| {}).await.unwrap();
    assert_eq!(second.stats().hint_was_stored, Some(true));
    assert_eq!(second.stats().prepare, Traffic::default());

    let mut before = second.stats().lookup;
    let mut costs = Vec::new();
    for index in [0, 1, 77, RECORDS / 2, 77, RECORDS - 1] {
        assert_eq!(second.get_index(index).await.unwrap().to_vec(), [byte(index)]);
        let after = second.stats().lookup;
        costs.push((after.up - before.up, after.down - before.down));
        before = after;
    }
    assert!(costs.windows(2).all(|pair| pair[0] == pair[1]), "{costs:?}");
    let plan = &second.table().scheme.plan;
    assert!(costs[0].0 as usize > plan.query_lens[0] && costs[0].1 as usize > plan.answer_len);

    let indices: Vec<_> = (0..RECORDS).step_by(400).collect();
    let targets: Vec<_> = indices.iter().map(|index| Target::index(*index)).collect();
    for (index, value) in indices.iter().zip(second.get_many(&targets).await) {
        assert_eq!(value.unwrap().unwrap().to_vec(), [byte(*index)]);
    }
}
