//! Bytes from outside: anything that is not an encoding is refused with an error.

use super::*;
use privet_core::Blame;
use proptest::prelude::*;

#[test]
fn parameters_say_how_the_table_is_cut_and_committed_to() {
    let merkle = parameters::<MerkleForm>(1000, 8, 64);
    assert_eq!(merkle.encode(), [64, 0, 0, 0, 0, 0, 0, 0, 4]);
    let decoded = TapirParameters::<MerkleForm>::decode(&identity(1000, 8), &merkle.encode());
    assert_eq!(decoded.unwrap().encode(), merkle.encode());
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    let refused = |bytes: &[u8]| {
        TapirParameters::<MerkleForm>::decode(&identity(1000, 8), bytes).err().unwrap().blame()
    };
    // Partitions of one record, of too many, more levels than a tree has.
    for (records, levels) in [(1u64, 0u8), (1 << 17, 0), (64, 7), (64, 255)] {
        let bytes = [&records.to_le_bytes()[..], &[levels]].concat();
        assert_eq!(refused(&bytes), Blame::PeerMisbehaved);
    }
    let good = parameters::<MerkleForm>(1000, 8, 64).encode();
    for len in 0..good.len() {
        assert!(TapirParameters::<MerkleForm>::decode(&identity(1000, 8), &good[..len]).is_err());
    }
    let long = [&good[..], &[0]].concat();
    assert!(TapirParameters::<MerkleForm>::decode(&identity(1000, 8), &long).is_err());
}

#[test]
fn a_server_cannot_make_clients_hold_memory_beyond_reason() {
    // Whole trees over 2^27 records are 4 GiB.
    let levels = |levels: u8| {
        let bytes = [&(1u64 << 16).to_le_bytes()[..], &[levels]].concat();
        TapirParameters::<MerkleForm>::decode(&identity(1 << 27, 8), &bytes).map(|_| ())
    };
    levels(15).unwrap();
    assert_eq!(levels(16).unwrap_err().blame(), Blame::PeerMisbehaved);
}

proptest! {
    #[test]
    fn any_bytes_are_an_answer_or_an_error(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        cut in 0usize..200,
    ) {
        let parameters = parameters::<MerkleForm>(30, 3, 6);
        let len = <TapirAnswer as Message<_>>::encoded_len(&parameters);
        let mut bytes = bytes;
        if cut > 100 { bytes.resize(len, 7); }
        let decoded: Result<TapirAnswer> = Message::decode(&parameters, &bytes);
        match decoded {
            Ok(answer) => {
                prop_assert_eq!(bytes.len(), len);
                prop_assert_eq!(Message::<TapirParameters<MerkleForm>>::encode(&answer), bytes);
            }
            Err(error) => {
                prop_assert_ne!(bytes.len(), len);
                prop_assert_eq!(error.blame(), Blame::InvalidMessage);
            }
        }
    }
}
