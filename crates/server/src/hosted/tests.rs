use super::*;

#[test]
fn parts_are_copied_piece_by_piece_and_never_beyond_their_end() {
    let part = Part::Memory(Arc::from(*b"0123456789"));
    assert_eq!(part.len(), 10);
    assert_eq!(&part.copy(0, 4)[..], b"0123");
    assert_eq!(&part.copy(8, 4)[..], b"89");
    assert!(part.copy(10, 4).is_empty());
    assert!(part.copy(u64::MAX, usize::MAX).is_empty());
}

impl HostedTables {
    /// One table, which `server` serves and of which nothing but its identity is at hand.
    pub(crate) fn of(name: &str, identity: TableIdentity, server: Arc<dyn ErasedServer>) -> Self {
        let plan = server.plan().clone();
        let scheme = SchemeDescription::new(plan.clone(), &identity, None).unwrap();
        let parameter_digest = scheme.parameter_digest;
        let layout = PartDescription::new(0, *blake3::hash(&[]).as_bytes());
        let table = TableDescription::new(name, identity, layout, vec![scheme]).unwrap();
        let hosted = HostedTable {
            name: name.to_owned(),
            identity,
            plan,
            parameter_digest,
            server,
            layout: Arc::new(Part::Memory(Arc::from([]))),
            hint: None,
            records: Arc::new(Part::Memory(Arc::from([]))),
        };
        Self {
            tables: vec![Arc::new(hosted)],
            description: ServerDescription::new("test", vec![table]).unwrap(),
            ready: Vec::new(),
            by_id: HashMap::from([(identity.id, 0)]),
        }
    }
}
