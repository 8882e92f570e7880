use super::*;
use crate::{IndexLayout, RecordLayout, TableLayout};
use data_encoding::HEXLOWER;
use privet_core::Blame;
use serde_json::Value;

const RECORD_LEN: usize = 3;

fn record(index: u64) -> Vec<u8> {
    (0..RECORD_LEN).map(|at| (index * 7 + at as u64) as u8).collect()
}

/// An authenticated table of `records` records, ready to be served.
struct Served {
    authentication: Authentication,
    shape: TableShape,
    records: Vec<Vec<u8>>,
}

impl Served {
    fn new(records: u64) -> Self {
        let mut asked = Vec::new();
        let tree = MerkleTree::over(records, |index, out| {
            asked.push(index);
            out.clear();
            out.extend(record(index));
        });
        assert!(asked.into_iter().eq(0..records), "each once, in order");
        let within = TableShape::new(records, RECORD_LEN as u64).expect("a shape");
        let served = (0..records).map(|index| {
            let mut served = record(index);
            tree.append_path(index, &mut served);
            served
        });
        Self {
            authentication: tree.authentication(),
            shape: shape_with_paths(within).expect("a shape"),
            records: served.collect(),
        }
    }

    fn verified<'s>(&self, index: u64, served: &'s [u8]) -> Result<&'s [u8]> {
        self.authentication.verified(self.shape, index, served)
    }

    fn refused(&self, index: u64, served: &[u8]) -> Error {
        let error = self.verified(index, served).expect_err("this is not that record");
        assert_eq!(error.blame(), Blame::Integrity);
        error
    }
}

/// The node over the leaves `first..first + 2^height`, computed from the definition.
fn node(records: u64, first: u64, height: u32) -> Node {
    if first >= records {
        return ZERO;
    }
    if height == 0 {
        return hasher().leaf(first, &record(first));
    }
    let half = 1 << (height - 1);
    let (left, right) = (node(records, first, height - 1), node(records, first + half, height - 1));
    hasher().parent(&left, &right)
}

#[test]
fn every_record_of_every_table_is_verified() {
    for records in (1..=40).chain([63, 64, 65, 100, 1000, 1025]) {
        let table = Served::new(records);
        let height = records.next_power_of_two().ilog2();
        assert_eq!(path_len(records), u64::from(height) * 32);
        assert_eq!(table.authentication.0, node(records, 0, height), "{records}");
        for (index, served) in (0..).zip(&table.records) {
            assert_eq!(served.len() as u64, table.shape.record_len());
            assert_eq!(table.verified(index, served).expect("that record"), record(index));
        }
    }
}

#[test]
fn a_change_of_any_bit_is_found() {
    for records in [1, 2, 3, 5, 8] {
        let table = Served::new(records);
        for (index, served) in (0..).zip(&table.records) {
            for bit in 0..served.len() * 8 {
                let mut changed = served.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                table.refused(index, &changed);
            }
        }
    }
}

/// A server that answers with another record and with the right path for that record.
#[test]
fn a_record_is_refused_in_the_place_of_another() {
    for records in [2, 3, 5, 8, 13] {
        let table = Served::new(records);
        // Also at positions without a record: paths have no bit for positions beyond the tree, but
        // leaves have.
        for index in 0..2 * records.next_power_of_two() {
            for (_, served) in (0..).zip(&table.records).filter(|(other, _)| *other != index) {
                table.refused(index, served);
            }
        }
    }
}

#[test]
fn a_path_of_another_record_is_refused() {
    let table = Served::new(8);
    for index in 0..8 {
        for other in (0..8).filter(|other| *other != index) {
            let path = &table.records[other as usize][RECORD_LEN..];
            table.refused(index, &[&record(index), path].concat());
        }
    }
}

#[test]
fn records_of_another_table_are_refused() {
    let (table, other) = (Served::new(6), Served::new(8));
    for index in 0..6 {
        table.refused(index, &other.records[index as usize]);
    }
}

/// Positions beyond the last record hold no record, and no inner node can pass as one: a smaller
/// table with the same root would have nodes for records.
#[test]
fn what_is_no_record_is_refused() {
    let table = Served::new(5);
    for index in 0..8 {
        table.refused(index, &[0; RECORD_LEN + 96]);
    }
    let pair = [node(4, 0, 1), node(4, 2, 1)];
    let two = TableShape::new(2, 64 + 32).expect("a shape");
    let root = Authentication(node(4, 0, 2));
    for (index, half) in [(0, [node(4, 0, 0), node(4, 1, 0)]), (1, [node(4, 2, 0), node(4, 3, 0)])]
    {
        let served = [half.concat(), pair[1 - index as usize].to_vec()].concat();
        assert_eq!(
            root.verified(two, index, &served).expect_err("nodes").blame(),
            Blame::Integrity
        );
    }
}

#[test]
fn lengths_are_checked_before_anything_else() {
    let table = Served::new(5);
    let served = &table.records[0];
    for wrong in [&served[..served.len() - 1], &served[..2], &[]] {
        let error = table.verified(0, wrong).expect_err("too short");
        assert_eq!(error.blame(), Blame::ApiMisuse);
    }
    let narrow = TableShape::new(5, 96).expect("a shape");
    let error =
        table.authentication.verified(narrow, 0, &[0; 96]).expect_err("no room for a record");
    assert_eq!(error.blame(), Blame::InvalidMessage);
    let widest = TableShape::new(2, privet_core::table::MAX_RECORD_LEN).expect("a shape");
    let error = shape_with_paths(widest).expect_err("too wide");
    assert!(error.message().starts_with("with a path of 32 bytes behind each record: "), "{error}");
}

/// Errors must show neither which record was asked for, nor what came.
#[test]
fn a_refusal_tells_nothing_of_the_record() {
    let table = Served::new(8);
    let messages: Vec<String> = (0..8)
        .map(|index| table.refused(index, &[0xaa; RECORD_LEN + 96]).message().to_owned())
        .collect();
    assert!(messages.iter().all(|message| *message == messages[0]));
}

#[test]
fn roots_are_read_as_they_are_written() {
    let root = TableRoot(std::array::from_fn(|at| at as u8 * 8));
    let text = root.to_string();
    assert_eq!(text.len(), 64);
    assert_eq!(text.parse::<TableRoot>().expect("a root"), root);
    assert_eq!(text.to_uppercase().parse::<TableRoot>().expect("a root"), root);
    let long = format!("{text}00");
    for wrong in ["", "00", &text[1..], &text[2..], &long, &text.replace('0', "g"), &"é".repeat(32)]
    {
        let error = wrong.parse::<TableRoot>().expect_err("no root");
        assert_eq!(error.blame(), Blame::ApiMisuse, "{wrong}");
    }
}

/// Made by an independent program: `vectors/generate_authenticated.py`.
#[test]
fn known_answers() {
    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/authenticated.json");
    let text = std::fs::read_to_string(FILE).expect("the vectors are there");
    let tables: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    assert!(tables.len() >= 5);
    for table in tables {
        let all = |name: &str| -> Vec<Vec<u8>> {
            table[name].as_array().expect("a list").iter().map(bytes).collect()
        };
        let (records, served) = (all("records"), all("served"));
        let within = TableShape::new(records.len() as u64, records[0].len() as u64);
        let tree = MerkleTree::over(records.len() as u64, |index, record| {
            record.clone_from(&records[index as usize]);
        });
        for (index, (record, served)) in (0..).zip(records.iter().zip(&served)) {
            let mut ours = record.clone();
            tree.append_path(index, &mut ours);
            assert_eq!(ours, *served);
        }
        let len = records[0].len() as u64;
        let values = RecordLayout::Index(IndexLayout::for_lengths(len, len));
        let layout = TableLayout::authenticated(tree.authentication(), values);
        assert_eq!(layout.encode(), bytes(&table["layout"]));
        let shape = shape_with_paths(within.expect("a shape")).expect("a shape");
        let root = layout.root(shape).expect("authenticated");
        assert_eq!(root.to_string(), table["root"].as_str().expect("text"));
    }
}

fn bytes(hexadecimal: &Value) -> Vec<u8> {
    HEXLOWER.decode(hexadecimal.as_str().expect("text").as_bytes()).expect("hexadecimal")
}
