//! Encodings are exact and canonical, and nothing else is accepted.

use super::*;
use privet_core::Blame;

#[test]
fn messages_that_are_none_are_refused() {
    // 10 chunks of 4 records: 10 offsets of 2 bits in 3 bytes, or 9 of them.
    let parameters = cut(37, 3, 4);
    let single = |bytes: &[u8]| PianoQuery::<SingleParity>::decode(&parameters, bytes).map(|_| ());
    let all = |bytes: &[u8]| PianoQuery::<AllParities>::decode(&parameters, bytes).map(|_| ());
    single(&[0xff, 0xff, 0x0f]).unwrap();
    all(&[0xff, 0xff, 0x03]).unwrap();
    for refused in [single(&[0, 0]), single(&[0; 4]), single(&[0, 0, 0x10]), all(&[0, 0, 0x04])] {
        assert_eq!(refused.unwrap_err().blame(), Blame::InvalidMessage);
    }
    for len in [0, 2, 4, 29, 31] {
        assert!(PianoAnswer::<SingleParity>::decode(&parameters, &vec![0; len]).is_err());
        assert!(PianoAnswer::<AllParities>::decode(&parameters, &vec![0; len]).is_err());
    }
    assert!(PianoAnswer::<SingleParity>::decode(&parameters, &[0; 3]).is_ok());
    assert!(PianoAnswer::<AllParities>::decode(&parameters, &[0; 30]).is_ok());
}

#[test]
fn parameters_are_announced_and_checked() {
    for records in [1, 2, 3, 5, 1000, 4096, 5000, 1 << 30] {
        let identity = identity(shape(records, 2));
        let parameters = PianoParameters::new(&identity).unwrap();
        let (chunks, chunk) = (parameters.chunks(), parameters.chunk_records());
        assert!(chunks >= 2 && u64::from(chunks) * u64::from(chunk) >= records);
        let again = PianoParameters::decode(&identity, &parameters.encode()).unwrap();
        assert_eq!(again.encode(), parameters.encode());
        assert_eq!(again.chunks(), chunks);
    }
    let identity_of = |records, record_len| identity(shape(records, record_len));
    for announced in [0u64, 3, 1 << 17, u64::MAX] {
        let refused = PianoParameters::decode(&identity_of(1000, 2), &announced.to_le_bytes());
        assert_eq!(refused.err().unwrap().blame(), Blame::PeerMisbehaved, "{announced}");
    }
    assert!(PianoParameters::decode(&identity_of(1000, 2), &[0; 7]).is_err());
    // What a server announces cannot make a client allocate without bound.
    for (records, record_len, chunk) in [(1 << 25, 1 << 23, 1u64 << 16), (1 << 26, 64, 1)] {
        let refused =
            PianoParameters::decode(&identity_of(records, record_len), &chunk.to_le_bytes());
        assert_eq!(refused.err().unwrap().blame(), Blame::PeerMisbehaved);
    }
}
