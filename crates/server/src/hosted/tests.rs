mod predecessors;

use super::*;
use privet_wire::{PartDescription, SchemeDescription};

#[test]
fn parts_are_copied_piece_by_piece_and_never_beyond_their_end() {
    let part = Part::Memory(Bytes::from_static(b"0123456789"));
    assert_eq!(part.len(), 10);
    assert_eq!(&part.copy(0, 4).unwrap()[..], b"0123");
    assert_eq!(&part.copy(8, 4).unwrap()[..], b"89");
    assert!(part.copy(10, 4).unwrap().is_empty());
    assert!(part.copy(u64::MAX, usize::MAX).unwrap().is_empty());
}

impl HostedTables {
    /// One table, which `server` serves; only its identity is known.
    pub(crate) fn of(name: &str, identity: TableIdentity, server: Arc<dyn ErasedServer>) -> Self {
        Self::with(name, identity, server, HeldDigests::Unchecked)
    }

    /// The same, but the data behind answers is checked.
    pub(crate) fn of_checked(
        name: &str,
        identity: TableIdentity,
        server: Arc<dyn ErasedServer>,
    ) -> Self {
        Self::with(name, identity, server, HeldDigests::hashed(1))
    }

    fn with(
        name: &str,
        identity: TableIdentity,
        server: Arc<dyn ErasedServer>,
        held_digests: HeldDigests,
    ) -> Self {
        let plan = server.plan().clone();
        let scheme = SchemeDescription::new(plan.clone(), &identity, None).unwrap();
        let parameter_digest = scheme.parameter_digest;
        let layout = PartDescription::new(0, *blake3::hash(&[]).as_bytes());
        let description = TableDescription::new(name, identity, layout, vec![scheme]).unwrap();
        let part = || Arc::new(Part::Memory(Bytes::new()));
        let condition = Arc::new(Condition::new(name));
        Self::of_version(Version {
            name: name.to_owned(),
            identity,
            lanes: Version::lanes(&condition, &server, &plan),
            plan,
            parameter_digest,
            server,
            layout: part(),
            hint: None,
            records: part(),
            description,
            feed: None,
            tuning: Tuning::default(),
            origin: HintOrigin::None,
            condition,
            held_digests,
            setup_file: None,
        })
    }
}
