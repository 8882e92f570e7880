//! Tables for tests, and the one test that every scheme without state must pass.

use crate::contract::{Answerer, Message, QueryMessage, Role, StatelessClient};
use privet_core::{
    Epoch, RecordIndex, SecretRng, TableChanges, TableDigest, TableId, TableIdentity, TableShape,
    TableView,
};
use proptest::strategy::Strategy;

/// The identity of a table of that shape: always the same id, so that public parameters are known.
pub fn identity(records: u64, record_len: u64) -> TableIdentity {
    let shape = TableShape::new(records, record_len).unwrap();
    TableIdentity { id: TableId([7; 16]), epoch: Epoch(0), digest: TableDigest([9; 32]), shape }
}

/// Bytes that anyone can compute: BLAKE3's output stream of a name.
pub fn public_bytes(name: &str, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(name.as_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// Looks several records up in one batch, every message through its encoding, and compares each
/// with the table.
pub fn look_up<C, A>(client: &C, servers: &[&A], table: TableView<'_>, wanted: &[u64])
where
    C: StatelessClient,
    A: Answerer<Scheme = C::Scheme>,
{
    let parameters = servers[0].parameters();
    let mut rng = SecretRng::from_os().unwrap();
    let mut queries: Vec<Vec<_>> = servers.iter().map(|_| Vec::new()).collect();
    let mut pendings = Vec::new();
    for of in wanted {
        let index = RecordIndex::new(*of, table.shape()).unwrap();
        let (of_each, pending) = client.query(&index, &mut rng).unwrap();
        assert_eq!(of_each.len(), servers.len());
        for ((role, queries), query) in (0..).zip(&mut queries).zip(of_each) {
            queries.push(query_through_its_encoding(parameters, Role(role), &query));
        }
        pendings.push(pending);
    }
    let mut answers: Vec<_> = (0..)
        .zip(servers)
        .zip(&queries)
        .map(|((role, server), queries)| server.answer(Role(role), queries).into_iter())
        .collect();
    let record_len = table.shape().record_len() as usize;
    for (of, pending) in wanted.iter().zip(pendings) {
        let answers: Vec<_> = answers
            .iter_mut()
            .map(|answers| through_its_encoding(parameters, answers.next().unwrap()))
            .collect();
        let record = client.recover(pending, &answers).unwrap();
        let expected = &table.bytes()[*of as usize * record_len..][..record_len];
        assert_eq!(*record, expected, "record {of} of {:?}", table.shape());
    }
    assert!(
        answers.iter_mut().all(|answers| answers.next().is_none()),
        "more answers than queries"
    );
}

/// A query as the server of role `role` reads it.
pub fn query_through_its_encoding<P, Q: QueryMessage<P>>(
    parameters: &P,
    role: Role,
    query: &Q,
) -> Q {
    let bytes = query.encode_query();
    assert_eq!(bytes.len(), Q::query_len(parameters, role));
    Q::decode_query(parameters, role, &bytes).unwrap()
}

fn through_its_encoding<P, M: Message<P>>(parameters: &P, message: M) -> M {
    let bytes = message.encode();
    assert_eq!(bytes.len(), M::encoded_len(parameters));
    M::decode(parameters, &bytes).unwrap()
}

/// Sequences of indices, each of which stresses one property.
#[derive(Clone, Copy, Debug)]
pub enum Sequence {
    Random,
    OneForEver,
    FewOverAndOver,
    OnePartition,
    Ascending,
}

impl Sequence {
    pub const ALL: [Sequence; 5] = [
        Sequence::Random,
        Sequence::OneForEver,
        Sequence::FewOverAndOver,
        Sequence::OnePartition,
        Sequence::Ascending,
    ];

    /// `count` indices into a table of `records` records, cut into partitions of `partition`.
    pub fn indices(
        self,
        records: u64,
        partition: u64,
        count: u64,
        rng: &mut SecretRng,
    ) -> Vec<u64> {
        let start = rng.below(records);
        let first = start / partition * partition;
        let here = partition.min(records - first);
        (0..count)
            .map(|k| match self {
                Sequence::Random => rng.below(records),
                Sequence::OneForEver => start,
                Sequence::FewOverAndOver => (start + rng.below(5)) % records,
                Sequence::OnePartition => first + rng.below(here),
                Sequence::Ascending => (start + k) % records,
            })
            .collect()
    }
}

pub fn sequences() -> impl Strategy<Value = Sequence> {
    proptest::sample::select(&Sequence::ALL[..])
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A table of shape `before` that has grown to `after`, with `edits` random edits and random new
/// records; and the changes.
pub fn changed(
    table: &[u8],
    before: TableShape,
    after: TableShape,
    edits: u64,
    rng: &mut SecretRng,
) -> (Vec<u8>, TableChanges) {
    let len = after.record_len() as usize;
    let mut next = table.to_vec();
    next.resize(after.bytes() as usize, 0);
    let edited: Vec<u64> = (0..edits).map(|_| rng.below(after.records())).collect();
    for index in edited.into_iter().chain(before.records()..after.records()) {
        rng.fill(&mut next[index as usize * len..][..len]);
    }
    let changes = TableChanges::between((before, table), (after, &next)).unwrap();
    (next, changes)
}
