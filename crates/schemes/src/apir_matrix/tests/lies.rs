//! One of the servers lies. No client may ever accept a wrong record, and whether it accepts an
//! answer must not depend on the wanted record.
//!
//! [`Found`] counts the failures. Every search also runs on clients with mistakes, and must catch
//! them.

use super::*;
use privet_core::Blame;

/// Rows of four records in all small worlds here.
const ROW_RECORDS: u64 = 4;

/// How a client gets a record, or none, from two answers. There are right clients and wrong ones.
type Recover = fn(&World, u64, [&[u8]; 2]) -> Option<Record>;

/// The real client.
fn careful(world: &World, wanted: u64, answers: [&[u8]; 2]) -> Option<Record> {
    let row_records = world.parameters().row_records();
    let (row, place) = (wanted / row_records, wanted % row_records);
    let pending = ApirMatrixPending { row: Secret::new(row), place: Secret::new(place) };
    let answers = answers.map(|bytes| ApirMatrixAnswer::decode(world.parameters(), bytes).unwrap());
    match world.client.recover(pending, &answers) {
        Ok(record) => Some(record),
        Err(refusal) => {
            assert_eq!(refusal.blame(), Blame::Integrity);
            assert!(refusal.message().starts_with("one of the two servers sent a wrong answer"));
            None
        }
    }
}

/// Checks the wanted record and its path, but not the other records of the row.
fn checking_one_record(world: &World, wanted: u64, answers: [&[u8]; 2]) -> Option<Record> {
    let row_records = world.parameters().row_records();
    let record_len = world.identity.shape.record_len() as usize;
    let committed = world.row(wanted / row_records);
    let mut row = xor(answers[0], answers[1]);
    for place in (0..row_records as usize).filter(|place| *place as u64 != wanted % row_records) {
        let record = place * record_len..(place + 1) * record_len;
        row[record.clone()].copy_from_slice(&committed[record]);
    }
    careful(world, wanted, [&row, &vec![0; row.len()]])
}

/// Assumes that the padding of the last row is zero, without a check.
fn presuming_zeros(world: &World, wanted: u64, answers: [&[u8]; 2]) -> Option<Record> {
    let row_records = world.parameters().row_records();
    let first = wanted / row_records * row_records;
    let here = (world.records() - first).min(row_records) * world.identity.shape.record_len();
    let mut row = xor(answers[0], answers[1]);
    row[here as usize..world.parameters().records_len() as usize].fill(0);
    careful(world, wanted, [&row, &vec![0; row.len()]])
}

/// Checks the row, but not up to the root: it ignores the last sibling of the path.
fn checking_half_the_path(world: &World, wanted: u64, answers: [&[u8]; 2]) -> Option<Record> {
    let committed = world.row(wanted / world.parameters().row_records());
    let mut row = xor(answers[0], answers[1]);
    let last = row.len() - NODE_LEN;
    row[last..].copy_from_slice(&committed[last..]);
    careful(world, wanted, [&row, &vec![0; row.len()]])
}

/// Checks nothing.
fn believing(world: &World, wanted: u64, answers: [&[u8]; 2]) -> Option<Record> {
    let row = xor(answers[0], answers[1]);
    let record_len = world.identity.shape.record_len() as usize;
    let place = (wanted % world.parameters().row_records()) as usize;
    Some(Zeroizing::new(row[place * record_len..][..record_len].to_vec()))
}

/// The failures that must not occur.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    /// Wrong records that were accepted.
    wrong: usize,
    /// Right answers refused.
    refused: usize,
    /// Lies that some clients accept and others refuse, depending on the wanted record.
    telling: usize,
    /// Lies that all clients accept.
    unnoticed: usize,
}

impl Found {
    const NOTHING: Found = Found { wrong: 0, refused: 0, telling: 0, unnoticed: 0 };
}

/// Adds each lie to each server's answer, for clients that want each of the records, with two pairs
/// of queries for each.
fn find(world: &World, lies: &[Vec<u8>], recover: Recover) -> Found {
    let mut rng = SecretRng::from_fixed_seed([5; 32]);
    let mut found = Found::default();
    let mut lookups = Vec::new();
    for wanted in (0..world.records()).flat_map(|wanted| [wanted; 2]) {
        let queries: [_; 2] = world.queries(wanted, &mut rng);
        let answers = [0, 1].map(|server| world.answer(server, &queries[server]));
        let record = recover(world, wanted, answers.each_ref().map(Vec::as_slice));
        found.refused += usize::from(record.is_none_or(|record| *record != world.record(wanted)));
        lookups.push((wanted, answers));
    }
    for lie in lies {
        assert!(lie.iter().any(|byte| *byte != 0), "that is no lie");
        let mut accepted = 0;
        for (wanted, [one, other]) in &lookups {
            for answers in [[&xor(one, lie), other], [one, &xor(other, lie)]] {
                if let Some(record) = recover(world, *wanted, answers.map(Vec::as_slice)) {
                    accepted += 1;
                    found.wrong += usize::from(*record != world.record(*wanted));
                }
            }
        }
        match accepted {
            0 => {}
            all if all == 2 * lookups.len() => found.unnoticed += 1,
            _ => found.telling += 1,
        }
    }
    found
}

/// Every single bit.
fn bits(world: &World) -> Vec<Vec<u8>> {
    let len = world.parameters().row_len() as usize;
    let lie = |bit: usize| {
        let mut lie = vec![0; len];
        lie[bit / 8] = 1 << (bit % 8);
        lie
    };
    (0..8 * len).map(lie).collect()
}

/// Lies made for one row, in the hope that it is the wanted one. They turn it into another row,
/// wholly or in part, or change the order of its records.
fn tailored(world: &World) -> Vec<Vec<u8>> {
    let parameters = world.parameters();
    let (records_len, row_len) = (parameters.records_len() as usize, parameters.row_len() as usize);
    let rows: Vec<Vec<u8>> = (0..parameters.rows()).map(|row| world.row(row)).collect();
    let mut lies = rows.clone();
    for (number, one) in rows.iter().enumerate() {
        for other in &rows[..number] {
            let whole = xor(one, other);
            // Each sibling alone, and records alone.
            let ends = (records_len..=row_len).step_by(NODE_LEN);
            let mut start = 0;
            for end in ends {
                let mut part = vec![0; row_len];
                part[start..end].copy_from_slice(&whole[start..end]);
                lies.push(part);
                start = end;
            }
            lies.push(whole);
        }
        let mut turned = one.clone();
        turned[..records_len].rotate_left(parameters.shape().record_len() as usize);
        lies.push(xor(one, &turned));
    }
    // Equal siblings give no lie.
    lies.retain(|lie| lie.iter().any(|byte| *byte != 0));
    lies
}

fn random(world: &World, count: usize) -> Vec<Vec<u8>> {
    let len = world.parameters().row_len() as usize;
    (0..count).map(|number| public_bytes(&format!("lie {number}"), len)).collect()
}

fn all_lies(world: &World) -> Vec<Vec<u8>> {
    [bits(world), tailored(world), random(world, 100)].concat()
}

/// A table that fills its rows, one that does not, and one that lacks whole rows.
fn small_worlds() -> [World; 3] {
    [16, 14, 9].map(|records| World::in_rows(records, 2, ROW_RECORDS))
}

#[test]
fn every_lie_is_refused_whatever_is_wanted() {
    for world in small_worlds() {
        assert_eq!(find(&world, &all_lies(&world), careful), Found::NOTHING);
    }
}

#[test]
fn every_bit_is_checked_in_rows_of_any_form() {
    for (records, record_len, row_records) in
        [(1, 1, 1), (1, 100, 1), (2, 3, 2), (2, 3, 1), (5, 9, 8), (3, 1_100, 1), (6, 5, 1)]
    {
        let world = World::in_rows(records, record_len, row_records);
        assert_eq!(find(&world, &bits(&world), careful), Found::NOTHING);
    }
}

#[test]
fn clients_that_check_less_are_caught() {
    let [full, short, _] = small_worlds();
    for world in [&full, &short] {
        let found = find(world, &all_lies(world), checking_one_record);
        // Each bit of each record of a row: refused if the record is the wanted one.
        assert!(found.telling >= 64, "{found:?}");
        assert_eq!((found.refused, found.unnoticed), (0, 0));
    }
    let found = find(&short, &all_lies(&short), presuming_zeros);
    // Each bit of the last two records: accepted if these do not exist.
    assert!(found.telling >= 32, "{found:?}");
    assert_eq!((found.refused, found.wrong), (0, 0));
    // If no row lacks a record, there is no padding to assume.
    assert_eq!(find(&full, &all_lies(&full), presuming_zeros), Found::NOTHING);

    let found = find(&full, &all_lies(&full), checking_half_the_path);
    assert!(found.unnoticed >= 256, "{found:?}");
    let found = find(&full, &all_lies(&full), believing);
    assert!(found.wrong > 0, "{found:?}");
}

/// A server's lie: its answer to a query, from the right answer.
type Lie<'a> = Box<dyn Fn(u8, &[u8]) -> Vec<u8> + 'a>;

/// Lies that depend on what the server sees.
fn liars(world: &World) -> Vec<(&'static str, Lie<'_>)> {
    let parameters = world.parameters();
    let rows: Vec<Vec<u8>> = (0..parameters.rows()).map(|row| world.row(row)).collect();
    let (one, another) = (rows[1].clone(), xor(&rows[0], &rows[1]));

    let mut changed = world.table.clone();
    changed[5 * parameters.shape().record_len() as usize] ^= 1;
    let view = TableView::new(world.identity, &changed).unwrap();
    let (with_its_tree, other_root) =
        Tested::setup(parameters, &None, view, Kernels::detect(), 1).unwrap();
    assert!(other_root != world.hint);
    let kept: Vec<u8> = {
        let view = TableView::new(world.identity, &world.table).unwrap();
        let setup = ApirMatrixSetup::new(parameters.clone(), view, Kernels::detect(), 1).unwrap();
        setup.precompute(&|_| ()).unwrap().kept.as_bytes().into_owned()
    };
    let setup = ApirMatrixSetup::new(parameters.clone(), view, Kernels::detect(), 1).unwrap();
    let with_the_right_tree = setup.finish(&kept).unwrap();
    let answer_of = |server: ApirMatrixServer| {
        let parameters = parameters.clone();
        move |query: u8, _: &[u8]| {
            let query = ApirMatrixQuery::decode(&parameters, &[query]).unwrap();
            server.answer(Role(1), &[query])[0].encode()
        }
    };
    vec![
        ("a changed record, in a tree of its own", Box::new(answer_of(with_its_tree)) as Lie<'_>),
        ("a changed record, in the right tree", Box::new(answer_of(with_the_right_tree))),
        ("nothing", Box::new(|_, right| vec![0; right.len()])),
        ("another row if one is selected", {
            let selected = another.clone();
            Box::new(
                move |query, right| {
                    if query & 1 == 1 { xor(right, &selected) } else { right.to_vec() }
                },
            )
        }),
        ("one row more if their number is odd", {
            Box::new(
                move |query, right| {
                    if query.count_ones() % 2 == 1 { xor(right, &one) } else { right.to_vec() }
                },
            )
        }),
        ("the first bit, for one query of sixteen", {
            Box::new(move |query, right| {
                let mut wrong = right.to_vec();
                wrong[0] ^= u8::from(query == 6);
                wrong
            })
        }),
        ("the answer to the query before", {
            Box::new(move |query, _| world.answer(0, &[query.wrapping_sub(1) & 15]))
        }),
    ]
}

/// How often clients abort if the server of one role lies, for each wanted record and over all
/// pairs of queries; and how often they accept a wrong record.
fn aborts(world: &World, liar: usize, lie: &Lie<'_>, recover: Recover) -> (Vec<usize>, usize) {
    let mut wrong = 0;
    let aborts = (0..world.records()).map(|wanted| {
        let row = wanted / world.parameters().row_records();
        let mut aborts = 0;
        for bits in 0..1u8 << world.parameters().rows() {
            let queries = [bits, bits ^ 1 << row];
            let mut answers = [0, 1].map(|server| world.answer(server, &[queries[server]]));
            answers[liar] = lie(queries[liar], &answers[liar]);
            match recover(world, wanted, answers.each_ref().map(Vec::as_slice)) {
                None => aborts += 1,
                Some(record) => wrong += usize::from(*record != world.record(wanted)),
            }
        }
        aborts
    });
    (aborts.collect(), wrong)
}

fn all_the_same(counts: &[usize]) -> bool {
    counts.iter().all(|count| *count == counts[0])
}

#[test]
fn clients_abort_equally_often_whatever_they_want() {
    let world = World::in_rows(16, 2, ROW_RECORDS);
    for (name, lie) in liars(&world) {
        for liar in [0, 1] {
            let (aborts, wrong) = aborts(&world, liar, &lie, careful);
            assert_eq!(wrong, 0, "{name}");
            assert!(all_the_same(&aborts), "{name}: {aborts:?}");
            assert!((1..=16).contains(&aborts[0]), "{name}: {aborts:?}");
        }
    }
    // If one record is changed, a client that checks only its own record aborts if it wants that
    // one.
    for (name, lie) in &liars(&world)[1..2] {
        let (aborts, wrong) = aborts(&world, 1, lie, checking_one_record);
        assert_eq!((wrong, aborts[5]), (0, 8), "{name}");
        assert!(!all_the_same(&aborts), "{name}: {aborts:?}");
    }
}

#[test]
fn in_larger_tables_exactly_the_lies_are_refused() {
    let world = World::new(3_000, 16);
    let mut rng = SecretRng::from_fixed_seed([6; 32]);
    let row_len = world.parameters().row_len();
    let lookups: Vec<_> = (0..40)
        .map(|_| {
            let wanted = rng.below(world.records());
            let queries: [_; 2] = world.queries(wanted, &mut rng);
            (wanted, [0, 1].map(|server| world.answer(server, &queries[server])))
        })
        .collect();
    let mut refused = 0;
    for sample in 0..20_000 {
        let (wanted, answers) = &lookups[rng.below(40) as usize];
        let mut answers = answers.clone();
        let changes = rng.below(4);
        for _ in 0..changes {
            let (server, byte) = (rng.below(2) as usize, rng.below(row_len) as usize);
            answers[server][byte] ^= 1 << rng.below(8);
        }
        let right =
            xor(&answers[0], &answers[1]) == world.row(wanted / world.parameters().row_records());
        let record = careful(&world, *wanted, answers.each_ref().map(Vec::as_slice));
        assert_eq!(record.is_some(), right, "sample {sample}");
        assert!(record.is_none_or(|record| *record == world.record(*wanted)));
        refused += u32::from(!right);
    }
    assert!((14_000..16_000).contains(&refused), "{refused}");
}

#[test]
fn the_root_of_another_table_is_none() {
    let world = World::in_rows(16, 2, ROW_RECORDS);
    let mut changed = world.table.clone();
    changed[31] ^= 0x80;
    let other = World::with_table(world.identity, &Some(ROW_RECORDS), changed);
    for wanted in 0..16 {
        let row = world.row(wanted / ROW_RECORDS);
        let zeros = vec![0; row.len()];
        assert!(careful(&world, wanted, [&row, &zeros]).is_some());
        assert!(careful(&other, wanted, [&row, &zeros]).is_none());
    }
}

/// A row in the place of another is wrong even if their records are equal: the leaves are numbered.
#[test]
fn a_row_belongs_to_its_place() {
    let world = World::with_table(identity(16, 2), &Some(ROW_RECORDS), vec![7; 32]);
    for (wanted, other) in (0..16).flat_map(|wanted| (0..4).map(move |other| (wanted, other))) {
        let row = world.row(other);
        let record = careful(&world, wanted, [&row, &vec![0; row.len()]]);
        assert_eq!(record.is_some(), wanted / ROW_RECORDS == other);
    }
}
