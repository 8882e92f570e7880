//! Every way to lie that we can think of. No wrong record is ever returned, and a client that has
//! ended stays so.

use super::*;
use privet_core::Blame;

/// The outcome of a lookup that gets these answers.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// A record, and it is right.
    Right,
    /// The end, and which servers were named.
    Ended([bool; 2]),
    /// The answers could not even be read; the lookup stays open.
    Refused(Blame),
}

/// A lookup that is tried with many lies. Each attempt begins with the client right after its
/// query.
struct Attempt<'a, F: TestForm> {
    world: &'a World<F>,
    generation: &'a Zeroizing<Vec<u8>>,
    /// Changes before this lookup's.
    before: Vec<Zeroizing<Vec<u8>>>,
    reserved: &'a Reserved<TapirQuery>,
    wanted: u64,
}

impl<F: TestForm> Attempt<'_, F> {
    fn client(&self) -> TapirClient<F> {
        let mut client = self.world.load(self.generation);
        self.before.iter().for_each(|change| client.apply(change).unwrap());
        client.apply(&self.reserved.change).unwrap();
        client
    }

    fn outcome(&self, answers: &[Vec<u8>; 2]) -> Outcome {
        let Self { world, reserved, wanted, .. } = *self;
        let answers = match world.decoded(answers) {
            Ok(answers) => answers,
            Err(error) => return Outcome::Refused(error.blame()),
        };
        let mut client = self.client();
        let change = client.settle(reserved.id, &answers).unwrap();
        client.apply(&change).unwrap();
        match client.take_record(reserved.id).expect("the lookup is settled") {
            Ok(record) => {
                assert_eq!(&record[..], world.record(wanted), "a wrong record was told");
                assert!(client.ended().is_none());
                Outcome::Right
            }
            Err(error) => {
                assert_eq!(error.blame(), Blame::Integrity);
                assert_eq!(client.ended().unwrap().message(), error.message());
                let mut rng = SecretRng::from_fixed_seed([1; 32]);
                let refused = client.reserve(&world.index(wanted), &mut rng);
                assert_eq!(refused.err().unwrap().blame(), Blame::Integrity);
                assert_eq!(client.open(), []);
                // Later changes have no effect.
                assert!(client.apply(&change).is_err());
                assert!(client.apply(&reserved.change).is_err());
                let named = ["the first server's", "the second server's", "neither server's"]
                    .map(|name| error.message().starts_with(name));
                Outcome::Ended(match named {
                    [true, false, false] => [true, false],
                    [false, true, false] => [false, true],
                    [false, false, true] => [true, true],
                    other => panic!("{error} names {other:?}"),
                })
            }
        }
    }
}

/// A flipped bit of either answer, in any place and for any record, ends the client and names the
/// server.
pub fn every_bit<F: TestForm>(mut world: World<F>, coins: u8, step: usize) {
    let records = world.parameters.shape().records();
    for coins in 0..coins {
        world.rng = SecretRng::from_fixed_seed([coins; 32]);
        for wanted in 0..records {
            let generation = world.generation();
            let reserved = world.reserve(&mut world.load(&generation), wanted).unwrap();
            let (world, generation, reserved) = (&world, &generation, &reserved);
            let attempt = Attempt { world, generation, before: Vec::new(), reserved, wanted };
            let honest = world.answer_bytes(reserved);
            assert_eq!(attempt.outcome(&honest), Outcome::Right);
            for server in 0..2 {
                let bits = 0..honest[server].len() * 8;
                for bit in bits.skip((wanted as usize + usize::from(coins)) % step).step_by(step) {
                    let mut answers = honest.clone();
                    answers[server][bit / 8] ^= 1 << (bit % 8);
                    let ended = Outcome::Ended([server == 0, server == 1]);
                    assert_eq!(attempt.outcome(&answers), ended);
                }
            }
        }
    }
}

#[test]
fn every_flipped_bit_ends_it_with_merkle_trees() {
    every_bit(World::<MerkleForm>::cut(16, 2, 4), 6, 1);
}

/// Answers that are true for something else.
pub fn true_of_something_else<F: TestForm>(mut world: World<F>) {
    let records = world.parameters.shape().records();
    let mut edited = world.records.clone();
    edited.iter_mut().for_each(|byte| *byte ^= 1);
    let other_table = server(&world.parameters, &edited);
    let (mut met, mut replays) = (0, 0);
    for wanted in 0..records {
        let generation = world.generation();
        let mut client = world.load(&generation);
        let earlier = world.reserve(&mut client, (wanted + 1) % records).unwrap();
        let replayed = world.answer_bytes(&earlier);
        let before = vec![earlier.change.clone(), world.settle(&mut client, &earlier)];
        let reserved = world.reserve(&mut client, wanted).unwrap();
        let (world, generation, reserved) = (&world, &generation, &reserved);
        let attempt = Attempt { world, generation, before, reserved, wanted };
        let honest = world.answer_bytes(reserved);
        let stale = answers_of(&other_table, &world.parameters, reserved);
        let record_bytes = world.parameters.pass().answer_len();
        for server in 0..2 {
            let ended = Outcome::Ended([server == 0, server == 1]);
            let mut check = |answer: Vec<u8>| {
                let mut answers = honest.clone();
                if answer == answers[server] {
                    return false;
                }
                answers[server] = answer;
                assert_eq!(attempt.outcome(&answers), ended);
                met += 1;
                true
            };
            // Another version of the table, with its own proofs.
            assert!(check(stale[server].clone()));
            // The records of the one with the proofs of the other.
            let mixed = |records: &[u8], proof: &[u8]| {
                [&records[..record_bytes], &proof[record_bytes..]].concat()
            };
            assert!(check(mixed(&honest[server], &stale[server])));
            assert!(check(mixed(&stale[server], &honest[server])));
            // An earlier answer, and the other server's answer.
            replays += usize::from(check(replayed[server].clone()));
            replays += usize::from(check(honest[1 - server].clone()));
            // The right proof of a record at another offset: what an honest server answers to
            // another query.
            let mut query = reserved.queries[server].clone();
            for offset in &mut query.0.offsets {
                *offset = (*offset + 1) % world.parameters.pass().partition_records() as u16;
            }
            let other = world.server.answer(Role(server as u8), &[query]).remove(0);
            check(Message::<TapirParameters<F>>::encode(&other));
            // All zeros, all ones.
            assert!(check(vec![0; honest[server].len()]));
            assert!(check(vec![255; honest[server].len()]));
        }
        // Both lie.
        assert_eq!(attempt.outcome(&stale), Outcome::Ended([true, true]));
        // Bytes that are no answer: the client's state does not change, and the true answers still
        // work.
        for server in 0..2 {
            for len in [0, 1, record_bytes, honest[server].len() - 1, honest[server].len() + 1] {
                let mut answers = honest.clone();
                answers[server].resize(len, 0);
                assert_eq!(attempt.outcome(&answers), Outcome::Refused(Blame::InvalidMessage));
            }
        }
        assert_eq!(attempt.outcome(&honest), Outcome::Right);
    }
    assert!(met > 8 * records && replays > records as usize, "{met} {replays}");
}

#[test]
fn what_is_true_of_something_else_ends_it_with_merkle_trees() {
    true_of_something_else(World::<MerkleForm>::cut(16, 3, 4));
}

/// A stream that differs from the announcement makes no hints, whatever is wrong with it.
pub fn every_byte_of_the_stream<F: TestForm>(mut world: World<F>) {
    let stream = world.stream();
    for at in 0..stream.len() {
        let mut changed = stream.clone();
        changed[at] ^= 1 << (at % 8);
        let mut preparation = world.preparation();
        preparation.absorb(0, &changed).unwrap();
        assert_eq!(preparation.finish().unwrap_err().blame(), Blame::Integrity);
        assert_eq!(preparation.generation().unwrap_err().blame(), Blame::ApiMisuse);
    }
    let mut short = world.preparation();
    short.absorb(0, &stream[..stream.len() - 1]).unwrap();
    assert_eq!(short.finish().unwrap_err().blame(), Blame::PeerMisbehaved);
    let mut long = world.preparation();
    let more = [&stream[..], &[0]].concat();
    assert_eq!(long.absorb(0, &more).unwrap_err().blame(), Blame::PeerMisbehaved);
}

#[test]
fn a_stream_that_was_not_announced_makes_no_hints() {
    every_byte_of_the_stream(World::<MerkleForm>::cut(16, 3, 4));
}
