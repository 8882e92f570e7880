//! One server lies. No client ever accepts a wrong record, and whether a client rejects an answer
//! does not depend on the index. The same campaigns run against clients with a planted mistake in
//! their verification, and must detect all of them.

use super::*;
use privet_core::Blame;

/// Two elements; the second is padded.
const RECORD_LEN: u64 = 20;
const RECORDS: u64 = 16;
const VALUE_BITS: usize = 8 * RECORD_LEN as usize;
const ANSWER_BITS: usize = VALUE_BITS + 2 * 128;

/// A client's result from two answers: a record, or nothing.
type Verification = fn(&World, u128, &[Vec<u8>; 2]) -> Option<Vec<u8>>;

fn as_it_is(world: &World, alpha: u128, answers: &[Vec<u8>; 2]) -> Option<Vec<u8>> {
    match world.recover(alpha, answers) {
        Ok(record) => Some(record.to_vec()),
        Err(refusal) => {
            assert_eq!(refusal.blame(), Blame::Integrity);
            None
        }
    }
}

/// The value, and for each element the difference between its tag and the right tag.
fn opened(world: &World, alpha: u128, answers: &[Vec<u8>; 2]) -> (Vec<u8>, Vec<u128>) {
    let sum: Vec<u8> = answers[0].iter().zip(&answers[1]).map(|(one, other)| one ^ other).collect();
    let (value, tag) = sum.split_at(world.identity.shape.record_len() as usize);
    let mut differences = vec![0; world.parameters().elements()];
    Kernels::detect().tag(alpha, value, &mut differences);
    for (difference, element) in differences.iter_mut().zip(tag.as_chunks().0) {
        *difference ^= u128::from_le_bytes(*element);
    }
    (value.to_vec(), differences)
}

/// Mistakes that a client could make. With each of them, it accepts some lies.
const MISTAKES: [(&str, Verification); 6] = [
    ("nothing is verified", |world, alpha, answers| Some(opened(world, alpha, answers).0)),
    ("only the first element is", |world, alpha, answers| {
        let (value, differences) = opened(world, alpha, answers);
        (differences[0] == 0).then_some(value)
    }),
    ("only the last element is", |world, alpha, answers| {
        let (value, differences) = opened(world, alpha, answers);
        (differences.last() == Some(&0)).then_some(value)
    }),
    ("only as many bytes of the tag as the value has", |world, alpha, answers| {
        let (value, differences) = opened(world, alpha, answers);
        let mut bytes = differences.iter().flat_map(|difference| difference.to_le_bytes());
        bytes.by_ref().take(value.len()).all(|byte| byte == 0).then_some(value)
    }),
    ("differences may make up for each other", |world, alpha, answers| {
        let (value, differences) = opened(world, alpha, answers);
        (differences.iter().fold(0, |all, one| all ^ one) == 0).then_some(value)
    }),
    ("any record of the table will do", |world, alpha, answers| {
        let (value, _) = opened(world, alpha, answers);
        world.table.chunks(value.len()).any(|record| record == value).then_some(value)
    }),
];

/// Wrong answers of a server that knows its key and the table.
enum Lie {
    /// The truth with one bit flipped.
    Flipped(usize),
    /// The truth with the same bit of both elements' tags flipped.
    FlippedInBothTags(usize),
    /// The truth XORed with the difference of two records: an error made for clients that want the
    /// first.
    Exchanged(u64, u64),
    /// The truth with an error in the value, and the error in the tag that would fit if α were that
    /// number.
    Guessed(u128),
    /// The answer from a table in which one record is different.
    OtherRecord(u64),
    /// The answer from a table in which two records have changed places.
    Swapped(u64, u64),
    /// The answer under a key with one flipped bit.
    OtherKey(usize),
    /// The truth about an earlier lookup of the same record.
    Replayed,
    /// All zeros.
    Nothing,
}

fn all_lies(query_bits: usize) -> Vec<Lie> {
    let records = 0..RECORDS;
    let mut lies: Vec<Lie> = (0..ANSWER_BITS).map(Lie::Flipped).collect();
    lies.extend((0..128).map(Lie::FlippedInBothTags));
    lies.extend(records.clone().flat_map(|one| {
        (0..RECORDS).filter(move |other| *other != one).map(move |other| Lie::Exchanged(one, other))
    }));
    lies.extend([0, 1, 2, u128::MAX].map(Lie::Guessed));
    lies.extend(records.clone().map(Lie::OtherRecord));
    lies.extend(records.skip(1).map(|other| Lie::Swapped(0, other)));
    // The last bits of the byte before the final word are not used. A key that has them set is
    // refused.
    lies.extend(
        (0..query_bits).filter(|bit| !matches!(query_bits - 1 - bit, 128..136)).map(Lie::OtherKey),
    );
    lies.extend([Lie::Replayed, Lie::Nothing]);
    lies
}

impl Lie {
    /// The server's answer. `truth` is the right one for `query`.
    fn told(
        &self,
        world: &World,
        liar: usize,
        query: &[u8],
        truth: &[u8],
        earlier: &[u8],
    ) -> Vec<u8> {
        let mut told = truth.to_vec();
        let record = |of: u64| world.record(of);
        let of_table = |table: &[u8]| {
            let server = server_of(world.identity, table, 1);
            server.answer(Role(liar as u8), &[world.query(query)]).remove(0).encode()
        };
        match *self {
            Lie::Flipped(bit) => told[bit / 8] ^= 1 << (bit % 8),
            Lie::FlippedInBothTags(bit) => {
                for tag in [VALUE_BITS, VALUE_BITS + 128] {
                    told[(tag + bit) / 8] ^= 1 << (bit % 8);
                }
            }
            Lie::Exchanged(one, other) => {
                let errors = record(one).iter().zip(record(other)).map(|(one, other)| one ^ other);
                told.iter_mut().zip(errors).for_each(|(byte, error)| *byte ^= error);
            }
            Lie::Guessed(alpha) => {
                let error: Vec<u8> = (1..=RECORD_LEN as u8).collect();
                let mut tag = [0; 2];
                Kernels::detect().tag(alpha, &error, &mut tag);
                let tag = tag.into_iter().flat_map(u128::to_le_bytes);
                let errors = error.iter().copied().chain(tag);
                told.iter_mut().zip(errors).for_each(|(byte, error)| *byte ^= error);
            }
            Lie::OtherRecord(of) => {
                let mut table = world.table.clone();
                table[(of * RECORD_LEN) as usize + 3] ^= 0x40;
                told = of_table(&table);
            }
            Lie::Swapped(one, other) => {
                let len = RECORD_LEN as usize;
                let mut table = world.table.clone();
                table[one as usize * len..][..len].copy_from_slice(record(other));
                table[other as usize * len..][..len].copy_from_slice(record(one));
                told = of_table(&table);
            }
            Lie::OtherKey(bit) => {
                let mut query = query.to_vec();
                query[bit / 8] ^= 1 << (bit % 8);
                told = world.answer(liar, &query);
            }
            Lie::Replayed => told.copy_from_slice(earlier),
            Lie::Nothing => told.fill(0),
        }
        told
    }
}

/// The result of a campaign.
struct Outcome {
    /// How often a wrong record was accepted.
    wrong: usize,
    /// For each lie, how often it was accepted, by index.
    believed: Vec<Vec<usize>>,
}

impl Outcome {
    /// Whether every lie was rejected. Then the index cannot matter.
    fn is_safe(&self) -> bool {
        self.wrong == 0 && self.believed.iter().flatten().all(|believed| *believed == 0)
    }

    /// Whether the number of refusals of some lie tells indices apart.
    fn shows_the_index(&self) -> bool {
        self.believed.iter().any(|by_index| by_index.iter().any(|count| *count != by_index[0]))
    }
}

/// Every lie of each server about every index, with fresh random numbers each time. A lie that
/// turns out to be the truth is not counted: a flipped bit of a key may be one that this server
/// does not use.
fn campaign(world: &World, verification: Verification, lies: &[Lie], coins: usize) -> Outcome {
    let mut rng = SecretRng::from_os().unwrap();
    let mut outcome = Outcome { wrong: 0, believed: vec![vec![0; RECORDS as usize]; lies.len()] };
    let mut told = 0;
    for index in 0..RECORDS {
        for _ in 0..coins {
            let mut look_up = || {
                let (queries, pending) = world.lookup(index, &mut rng);
                let answers = [0, 1].map(|server| world.answer(server, &queries[server]));
                (queries, *pending.alpha.expose(), answers)
            };
            let ((_, _, earlier), (queries, alpha, truth)) = (look_up(), look_up());
            let record = verification(world, alpha, &truth).expect("the truth is believed");
            assert_eq!(record, world.record(index));
            for (lie, believed) in lies.iter().zip(&mut outcome.believed) {
                for liar in [0, 1] {
                    let mut answers = truth.clone();
                    let (query, earlier) = (&queries[liar], &earlier[liar]);
                    answers[liar] = lie.told(world, liar, query, &truth[liar], earlier);
                    if answers[liar] == truth[liar] {
                        continue;
                    }
                    told += 1;
                    if let Some(record) = verification(world, alpha, &answers) {
                        believed[index as usize] += 1;
                        outcome.wrong += usize::from(record != world.record(index));
                    }
                }
            }
        }
    }
    let most = 2 * coins * RECORDS as usize * lies.len();
    assert!(told > most / 4 * 3, "only {told} of {most} were lies");
    outcome
}

fn world() -> World {
    World::new(RECORDS, RECORD_LEN)
}

#[test]
fn no_lie_is_believed_whatever_the_index() {
    let world = world();
    let lies = all_lies(8 * ApirDpfQuery::encoded_len(world.parameters()));
    assert!(lies.len() > 1_000);
    let outcome = campaign(&world, as_it_is, &lies, 3);
    assert!(outcome.is_safe() && !outcome.shows_the_index());
}

#[test]
fn many_coins_make_no_difference() {
    let world = world();
    let mut lies = vec![Lie::Replayed, Lie::Nothing, Lie::FlippedInBothTags(5)];
    lies.extend((0..RECORDS).map(Lie::OtherRecord));
    lies.extend((1..RECORDS).map(|other| Lie::Exchanged(0, other)));
    let outcome = campaign(&world, as_it_is, &lies, 100);
    assert!(outcome.is_safe());
}

#[test]
fn every_planted_mistake_is_found_out() {
    let world = world();
    let lies = all_lies(8 * ApirDpfQuery::encoded_len(world.parameters()));
    for (mistake, verification) in MISTAKES {
        let outcome = campaign(&world, verification, &lies, 1);
        assert!(!outcome.is_safe(), "{mistake}: not found out");
    }
    // This is what a liar wants: an error made for one index shows whether the client wants it.
    let (_, any_record_will_do) = MISTAKES[5];
    let outcome = campaign(&world, any_record_will_do, &lies, 1);
    assert!(outcome.shows_the_index() && outcome.wrong > 0);
}

/// Only the secret protects the client: a liar who knows it can replace the wanted record by any
/// other.
#[test]
fn whoever_knows_the_secret_can_forge() {
    let world = world();
    let mut rng = SecretRng::from_os().unwrap();
    for index in 0..RECORDS {
        let (queries, pending) = world.lookup(index, &mut rng);
        let alpha = *pending.alpha.expose();
        let mut answers = [0, 1].map(|server| world.answer(server, &queries[server]));
        let truth = answers[0].clone();
        answers[0] = Lie::Guessed(alpha).told(&world, 0, &queries[0], &truth, &truth);
        let forged = as_it_is(&world, alpha, &answers).expect("a forgery under the right secret");
        assert_ne!(forged, world.record(index));
        answers[0] = Lie::Guessed(alpha ^ 1).told(&world, 0, &queries[0], &truth, &truth);
        assert_eq!(as_it_is(&world, alpha, &answers), None);
    }
}

#[test]
fn either_servers_answer_counts_bit_for_bit_at_any_width() {
    let mut rng = SecretRng::from_os().unwrap();
    for record_len in [1, 15, 16, 17, 48, 70] {
        let world = World::new(5, record_len);
        for index in [0, 3, 4] {
            let (queries, pending) = world.lookup(index, &mut rng);
            let truth = [0, 1].map(|server| world.answer(server, &queries[server]));
            let alpha = *pending.alpha.expose();
            assert_eq!(as_it_is(&world, alpha, &truth).unwrap(), world.record(index));
            for liar in [0, 1] {
                for bit in 0..8 * truth[liar].len() {
                    let mut answers = truth.clone();
                    answers[liar][bit / 8] ^= 1 << (bit % 8);
                    assert_eq!(as_it_is(&world, alpha, &answers), None, "bit {bit} of {liar}");
                }
            }
        }
    }
}

/// One record of a larger table is different at server 1. Lookups of that record and of others have
/// the same result: all are rejected.
#[test]
fn a_record_that_differs_spoils_every_lookup_alike() {
    const LARGE: u64 = 1_000;
    const LOOKUPS: u64 = 10_000;
    let mut world = World::new(LARGE, 16);
    let different = 357;
    let mut table = world.table.clone();
    table[different as usize * 16] ^= 1;
    world.servers[1] = server_of(world.identity, &table, 1);
    let mut rng = SecretRng::from_os().unwrap();
    let mut refusals = |index_of: &dyn Fn(u64) -> u64| {
        let refused = (0..LOOKUPS).filter(|lookup| {
            let (queries, pending) = world.lookup(index_of(*lookup), &mut rng);
            let answers = [0, 1].map(|server| world.answer(server, &queries[server]));
            as_it_is(&world, *pending.alpha.expose(), &answers).is_none()
        });
        refused.count() as u64
    };
    assert_eq!(refusals(&|_| different), LOOKUPS);
    assert_eq!(refusals(&|lookup| (different + 1 + lookup % (LARGE - 1)) % LARGE), LOOKUPS);
}

#[test]
fn a_refusal_says_whose_fault_it_may_be_and_no_more() {
    let world = world();
    let mut rng = SecretRng::from_os().unwrap();
    let mut messages = std::collections::HashSet::new();
    for index in 0..RECORDS {
        let (queries, pending) = world.lookup(index, &mut rng);
        let mut answers = [0, 1].map(|server| world.answer(server, &queries[server]));
        answers[(index % 2) as usize][0] ^= 1;
        let refusal = world.recover(*pending.alpha.expose(), &answers).err().unwrap();
        assert_eq!(refusal.blame(), Blame::Integrity);
        assert!(refusal.message().contains("one of the two servers"));
        messages.insert(refusal.message().to_owned());
    }
    assert_eq!(messages.len(), 1);
}
