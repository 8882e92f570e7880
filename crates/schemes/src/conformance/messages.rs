//! Tests of parameters, for all kinds of schemes.

use crate::contract::{Message, Offline, Parameters, QueryMessage, Role};
use crate::registry::SchemePlan;
use crate::test_tables::identity;
use privet_core::{Blame, TableIdentity};
use proptest::prelude::*;

/// Parameters that a server may announce are read back, plan the sizes of all messages, and have no
/// other encoding; other bytes are refused. `announced`: whether a server may announce all of
/// `known`.
pub(crate) fn parameters_are_read_back<S: Offline>(
    known: Vec<(TableIdentity, S::Parameters)>,
    announced: bool,
) {
    for (identity, parameters) in &known {
        let bytes = parameters.encode();
        let again = S::Parameters::decode(identity, &bytes).unwrap();
        assert_eq!(again.encode(), bytes);
        let plan = SchemePlan::from_announcement(S::ID, identity, &bytes).unwrap();
        let same = if announced { parameters } else { &again };
        for parameters in [same, &again] {
            assert_eq!(plan.servers, S::servers(parameters));
            assert_eq!(plan.answer_len, S::Answer::encoded_len(parameters));
            assert_eq!(plan.offline, S::offline_phase(parameters));
            for (role, len) in (0..).map(Role).zip(&plan.query_lens) {
                assert_eq!(*len, S::Query::query_len(parameters, role));
            }
        }
        for len in (0..bytes.len() + 9).filter(|len| *len != bytes.len()) {
            let mut other = bytes.clone();
            other.resize(len, 0);
            let refusal = S::Parameters::decode(identity, &other).err().unwrap();
            assert_eq!(refusal.blame(), Blame::InvalidMessage, "{len} bytes of parameters");
        }
    }
    // Arbitrary bytes, and also those that are right for another table.
    let known: Vec<_> = known.iter().map(|(_, parameters)| parameters.encode()).collect();
    let strangers = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..20),
        prop::collection::vec(0u8..20, 0..9),
        prop::sample::select(known),
    ];
    proptest!(|(bytes in strangers, records in 1u64..=1_000_000, record_len in 1u64..=64)| {
        match S::Parameters::decode(&identity(records, record_len), &bytes) {
            Ok(parameters) => prop_assert_eq!(parameters.encode(), bytes),
            Err(refusal) => {
                let blame = refusal.blame();
                prop_assert!(matches!(blame, Blame::InvalidMessage | Blame::PeerMisbehaved));
            }
        }
    });
}
