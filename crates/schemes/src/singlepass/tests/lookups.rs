//! Every record comes back, over any shape, any cut and any sequence of queries.

use super::*;
use proptest::prelude::*;

/// Sequences of indices that stress one thing each.
#[derive(Clone, Copy, Debug)]
enum Sequence {
    Random,
    OneForEver,
    OnePartition,
    Ascending,
}

impl Sequence {
    fn indices(self, world: &mut World, count: u64) -> Vec<u64> {
        let records = world.parameters.shape().records();
        let start = world.rng.below(records);
        let partition = u64::from(world.parameters.partition_records());
        let first = start / partition * partition;
        let here = partition.min(records - first);
        (0..count)
            .map(|k| match self {
                Sequence::Random => world.rng.below(records),
                Sequence::OneForEver => start,
                Sequence::OnePartition => first + world.rng.below(here),
                Sequence::Ascending => (start + k) % records,
            })
            .collect()
    }
}

fn sequences() -> impl Strategy<Value = Sequence> {
    prop_oneof![
        Just(Sequence::Random),
        Just(Sequence::OneForEver),
        Just(Sequence::OnePartition),
        Just(Sequence::Ascending)
    ]
}

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
        for index in sequence.indices(&mut world, 40) {
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
        for index in sequence.indices(&mut world, 20) {
            prop_assert_eq!(&world.get(&mut client, index)[..], world.record(index));
        }
        world.assert_hints_fit(&client);
    }
}
