//! Every record comes back, over any shape, any cut and any sequence of queries.

use super::*;
use crate::test_tables::sequences;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn any_table_any_sequence(
        records in 1u64..=5000,
        record_len in 1u64..=300,
        sequence in sequences(),
        seed in any::<u8>(),
    ) {
        let mut world = World::new(records, record_len);
        world.rng = SecretRng::from_fixed_seed([seed; 32]);
        let mut client = world.client();
        for index in world.indices(sequence, 40) {
            prop_assert_eq!(&world.get(&mut client, index)[..], world.record(index));
        }
        world.assert_hints_fit(&client);
    }

    #[test]
    fn any_cut_of_a_table(
        records in 1u64..=3000,
        partition_records in prop_oneof![6 => 2u64..=40, 6 => 2u64..=5000, 1 => Just(1u64 << 16)],
        record_len in 1u64..=40,
        sequence in sequences(),
    ) {
        let mut world = World::with(cut(records, record_len, partition_records));
        let mut client = world.client();
        for index in world.indices(sequence, 20) {
            prop_assert_eq!(&world.get(&mut client, index)[..], world.record(index));
        }
        world.assert_hints_fit(&client);
    }
}
