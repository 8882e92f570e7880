//! Every record of any table, and wrong tables.

use super::*;
use crate::contract::{LocalClient, Parameters};
use crate::test_tables::identity;
use privet_core::{Blame, RecordIndex};
use proptest::prelude::*;
use std::sync::Arc;

proptest! {
    #[test]
    fn any_record_of_any_shape_is_the_tables(
        records in 1u64..=300,
        record_len in 1u64..=70,
        pick in any::<u64>(),
    ) {
        let identity = identity(records, record_len);
        let table: Vec<u8> = (0..identity.shape.bytes()).map(|at| (at * 31 / 7) as u8).collect();
        let client = DownloadClient::new(DownloadParameters::new(&identity), Arc::new(table.clone())).unwrap();
        for of in [pick % records, 0, records - 1] {
            let record = client.record(&RecordIndex::new(of, identity.shape).unwrap()).unwrap();
            prop_assert_eq!(record.as_slice(), &table[(of * record_len) as usize..][..record_len as usize]);
        }
    }
}

#[test]
fn a_table_of_another_size_is_refused() {
    let parameters = DownloadParameters::new(&identity(10, 3));
    for len in [0, 29, 31] {
        let refusal =
            DownloadClient::new(parameters.clone(), Arc::new(vec![0; len])).err().unwrap();
        assert_eq!(refusal.blame(), Blame::Corrupted, "{len} bytes");
    }
}

#[test]
fn there_are_no_messages_and_no_parameters() {
    let parameters = DownloadParameters::new(&identity(10, 3));
    assert_eq!(NoMessage::encoded_len(&parameters), 0);
    assert!(NoMessage::decode(&parameters, &[]).is_err());
    assert!(parameters.encode().is_empty());
    let refusal = DownloadParameters::decode(&identity(10, 3), &[0]).err().unwrap();
    assert_eq!(refusal.blame(), Blame::InvalidMessage);
}
