//! What a server says of itself takes a client little more memory than its own length.
//!
//! One test, because a process has one count of what is allocated.

use peak_alloc::PeakAlloc;
use privet_core::Blame;
use privet_wire::prost::Message as _;
use privet_wire::{PROTOCOL_VERSION, ServerDescription, proto};

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// A field of a message: its number, and its bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut len = bytes.len();
    while len >= 0x80 {
        out.push(len as u8 | 0x80);
        len >>= 7;
    }
    out.push(len as u8);
    out.extend(bytes);
    out
}

#[test]
fn descriptions_are_counted_before_memory_is_taken_for_what_they_list() {
    let many = |number| field(number, &[]).repeat(2_000_000);
    let version = [8, PROTOCOL_VERSION as u8].to_vec();
    for (what, bytes) in [
        ("tables than 1024", many(3)),
        ("schemes than 32", field(3, &many(8))),
        ("earlier versions than 3", field(3, &many(10))),
        ("schemes than 32", field(3, &field(10, &many(8)))),
        ("earlier versions than 0", field(3, &field(10, &many(10)))),
    ] {
        let bytes = [version.clone(), bytes].concat();
        let before = ALLOCATED.current_usage();
        ALLOCATED.reset_peak_usage();
        let error = ServerDescription::decode(&bytes).expect_err(what);
        let taken = ALLOCATED.peak_usage() - before;
        assert_eq!(error.blame(), Blame::InvalidMessage);
        assert_eq!(error.message(), format!("the server lists more {what}"));
        assert!(taken < 1 << 16, "{what}: {taken} bytes for {}", bytes.len());
        // Of another version, nothing is known but the version.
        let later = [&bytes[..], &[8, 9]].concat();
        let error = ServerDescription::decode(&later).expect_err("another");
        assert!(error.message().contains("speaks version 9"), "{error}");
    }
    let decoded = |bytes: &[u8]| ServerDescription::decode(bytes).map_err(|error| error.blame());
    let empty =
        proto::DescribeResponse { protocol_version: PROTOCOL_VERSION, ..Default::default() };
    assert_eq!(decoded(&empty.encode_to_vec()).map(|described| described.tables.len()), Ok(0));
    assert_eq!(decoded(&[version, vec![0x1a, 5]].concat()).err(), Some(Blame::InvalidMessage));
}
