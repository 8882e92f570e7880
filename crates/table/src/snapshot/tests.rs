use super::*;
use crate::authentication::{MerkleTree, shape_with_paths};
use crate::key_map::{KeyMapKind, pack_as};
use crate::layout::{IndexLayout, RecordLayout};
use crate::update_log::EpochHash;
use privet_core::{Blame, Epoch, PublicSeed, TableId, TableShape};
use std::fs;
use tempfile::TempDir;

fn index_plan(records: u64, record_len: u64) -> SnapshotPlan {
    SnapshotPlan {
        id: TableId([9; 16]),
        epoch: Epoch(3),
        shape: TableShape::new(records, record_len).expect("a valid shape"),
        layout: RecordLayout::Index(IndexLayout::for_lengths(record_len, record_len)).into(),
        key_column: None,
        until_column: None,
        value_form: ValueForm::Raw("größe".into()),
        mark: None,
    }
}

/// A table by key with a stash, so that every section of the file has something in it.
fn write_keyed(path: &Path) -> SnapshotHeader {
    let pair = |number: usize| {
        let len = if number == 7 { 2000 } else { number };
        (format!("key {number}"), vec![number as u8; len])
    };
    let pairs: Vec<(String, Vec<u8>)> = (0..32).map(pair).collect();
    let packed = pack_as(KeyMapKind::Buckets, &pairs[..], PublicSeed::from_bytes([1; 32]))
        .expect("packable");
    assert_eq!(packed.key_map().stash_entries(), 1);
    let plan = SnapshotPlan {
        id: TableId([1; 16]),
        epoch: Epoch(0),
        shape: packed.key_map().shape(),
        layout: RecordLayout::Keyed(packed.key_map().clone()).into(),
        key_column: Some("name".into()),
        until_column: None,
        value_form: ValueForm::JsonColumns(vec!["a".into(), "b".into()]),
        mark: None,
    };
    let mut writer = SnapshotWriter::create(path, plan).expect("writable");
    let mut record = Vec::new();
    for bucket in 0..packed.key_map().buckets() {
        packed.write_record(&pairs[..], bucket, &mut record);
        writer.write_record(&record).expect("in order");
    }
    writer.finish().expect("complete").0
}

fn write_index(path: &Path, records: u64, record_len: u64) -> (SnapshotHeader, u64) {
    let mut writer =
        SnapshotWriter::create(path, index_plan(records, record_len)).expect("writable");
    for number in 0..records {
        writer.write_record(&vec![number as u8; record_len as usize]).expect("in order");
    }
    writer.finish().expect("complete")
}

fn names_in(directory: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(directory.path()).expect("readable");
    entries
        .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn what_is_written_is_read() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("t.privet");
    for (records, record_len) in [(1, 1), (3, 1), (1, 4096), (5, 4095), (70, 300)] {
        let (header, file_bytes) = write_index(&path, records, record_len);
        let snapshot = Snapshot::open(&path).expect("whole");
        assert_eq!(snapshot.header(), &header);
        assert_eq!(snapshot.file_bytes(), file_bytes);
        assert_eq!(snapshot.header().value_form, ValueForm::Raw("größe".into()));
        assert_eq!(snapshot.identity().epoch, Epoch(3));
        assert!(snapshot.key_map().is_none());
        let last = snapshot.view().record(records - 1).expect("there");
        assert_eq!(last, vec![(records - 1) as u8; record_len as usize]);
        let mut told = (0, 0);
        snapshot.verify(|done, total| told = (done, total)).expect("unchanged");
        assert_eq!(told, (records * record_len, records * record_len));
    }
    assert_eq!(names_in(&directory), ["t.privet"]);
}

#[test]
fn a_table_by_key_answers_from_the_mapping() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("t.privet");
    let header = write_keyed(&path);
    let snapshot = Snapshot::open(&path).expect("whole");
    assert_eq!(snapshot.header(), &header);
    assert_eq!(header.key_column.as_deref(), Some("name"));
    let key_map = snapshot.key_map().expect("by key");
    for (key, value) in
        [("key 5", Some(vec![5; 5])), ("key 7", Some(vec![7; 2000])), ("other", None)]
    {
        let records = key_map
            .candidates(key.as_bytes())
            .map(|candidate| snapshot.view().record(candidate).expect("within"));
        assert_eq!(key_map.find(key.as_bytes(), records).expect("a bucket"), value);
    }
    let downloaded = TableLayout::decode(snapshot.layout_bytes()).expect("valid");
    assert_eq!(&downloaded, snapshot.layout());
    assert_eq!(layout_digest(snapshot.layout_bytes()), header.parts.layout);
    assert_eq!(header.parts.combine(header.identity.shape), header.identity.digest);
    assert_eq!(header.parts.records, *blake3::hash(snapshot.view().bytes()).as_bytes());
}

/// An authenticated table of five records of four bytes, with paths of 96 bytes.
fn write_authenticated(path: &Path) -> SnapshotHeader {
    let within = TableShape::new(5, 4).expect("a shape");
    let write = |number: u64, record: &mut Vec<u8>| {
        record.clear();
        record.extend([number as u8; 4]);
    };
    let tree = MerkleTree::over(5, write);
    let shape = shape_with_paths(within).expect("a shape");
    let records = RecordLayout::Index(IndexLayout::for_lengths(4, 4));
    let layout = TableLayout::authenticated(tree.authentication(), records);
    let plan = SnapshotPlan { layout, ..index_plan(5, shape.record_len()) };
    let mut writer = SnapshotWriter::create(path, plan).expect("writable");
    let mut record = Vec::new();
    for number in 0..5 {
        write(number, &mut record);
        tree.append_path(number, &mut record);
        writer.write_record(&record).expect("in order");
    }
    writer.finish().expect("complete").0
}

#[test]
fn an_authenticated_table_says_so_and_what_its_root_is() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("t.privet");
    let header = write_authenticated(&path);
    let snapshot = Snapshot::open(&path).expect("whole");
    let root = TableRoot::of(header.identity.shape, header.parts.layout);
    assert_eq!(snapshot.root(), Some(root));
    assert_eq!(snapshot.layout_bytes()[..2], [2, 0]);
    for number in 0..5 {
        let served = snapshot.view().record(number).expect("within");
        let record = snapshot.layout().verified(snapshot.view().shape(), number, served);
        assert_eq!(record.expect("as written"), [number as u8; 4]);
    }
    write_index(&path, 5, 100);
    assert_eq!(Snapshot::open(&path).expect("whole").root(), None);
}

/// A layout section with right digests and wrong contents: with records too narrow for their paths,
/// of an unknown version, or cut off.
#[test]
fn impossible_authenticated_layouts_are_refused() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("t.privet");
    let header = write_authenticated(&path);
    let whole = fs::read(&path).expect("readable");
    let header_len = header.encoded_len();
    let layout = Snapshot::open(&path).expect("whole").layout_bytes().to_vec();
    let forged = |layout: &[u8], shape: TableShape| {
        let mut header = header.clone();
        header.identity.shape = shape;
        header.parts.layout = layout_digest(layout);
        header.identity.digest = header.parts.combine(shape);
        let mut bytes = header.encode(layout.len() as u64);
        assert_eq!(bytes.len(), header_len);
        bytes.extend(layout);
        bytes.resize(header::records_offset(bytes.len() as u64, false) as usize, 0);
        bytes.resize(bytes.len() + shape.bytes() as usize, 0);
        fs::write(&path, bytes).expect("writable");
        Snapshot::open(&path)
    };
    let shape = header.identity.shape;
    forged(&layout, shape).expect("a layout like any");
    let narrow = TableShape::new(5, 96).expect("a shape");
    let mut other_version = layout.clone();
    other_version[0] = 3;
    for (layout, shape) in [
        (&layout[..], narrow),
        (&other_version[..], shape),
        (&layout[..20], shape),
        (&layout[..2], shape),
        (&[&layout[..], &[0]].concat()[..], shape),
    ] {
        let error = forged(layout, shape).expect_err("impossible");
        assert_eq!(error.blame(), Blame::Corrupted, "{error}");
    }
    assert!(fs::write(&path, whole).is_ok() && Snapshot::open(&path).is_ok());
}

#[test]
fn any_damaged_byte_is_found() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("t.privet");
    for write in [write_keyed, write_authenticated] {
        write(&path);
        check_every_byte(&directory, &path);
    }
}

fn check_every_byte(directory: &TempDir, path: &Path) {
    let whole = fs::read(path).expect("readable");
    let records_start = Snapshot::open(path).expect("whole").parsed.records.start;
    let damaged_path = directory.path().join("damaged.privet");
    for position in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[position] ^= 1 << (position % 8);
        fs::write(&damaged_path, &bytes).expect("writable");
        let opened = Snapshot::open(&damaged_path);
        if position >= records_start {
            let error = opened.expect("opening does not read records").verify(|_, _| {});
            assert_eq!(error.expect_err("a changed record").blame(), Blame::Corrupted);
            continue;
        }
        let error = opened.expect_err("a changed byte before the records");
        // A file with another magic or version may well be whole; it is just not for this program.
        let blame = if position < 12 { Blame::ApiMisuse } else { Blame::Corrupted };
        assert_eq!(error.blame(), blame, "byte {position}: {error}");
        assert!(error.message().contains("damaged.privet"), "{error}");
    }
}

/// A marked table, whose mark was raised once: what each damaged byte before the records does.
#[test]
fn one_damaged_slot_leaves_a_mark_and_two_leave_none() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("t.privet");
    let first = Mark::before_the_first(Epoch(3));
    let plan = SnapshotPlan { mark: Some(first), ..index_plan(2, 3) };
    let mut writer = SnapshotWriter::create(&path, plan).expect("writable");
    for record in [b"abc", b"def"] {
        writer.write_record(record).expect("in order");
    }
    let (header, file_bytes) = writer.finish().expect("complete");
    let unmarked = directory.path().join("unmarked.privet");
    write_index(&unmarked, 2, 3);
    assert_eq!(fs::metadata(unmarked).expect("there").len() + 8192, file_bytes);
    let snapshot = Snapshot::open(&path).expect("whole");
    assert_eq!((snapshot.header(), snapshot.mark()), (&header, Some(first)));
    let second = Mark { epoch: Epoch(4), hash: EpochHash([7; 32]) };
    mark::check_can_be_raised(&path).expect("it is ours");
    mark::raise(&path, header.identity, second).expect("writable");
    assert_eq!(snapshot.mark(), Some(first), "as it was when the file was opened");
    // It is never lowered, and belongs to this table.
    mark::raise(&path, header.identity, first).expect("nothing to do");
    let other = TableIdentity { epoch: Epoch(9), ..header.identity };
    assert_eq!(mark::raise(&path, other, second).expect_err("another").blame(), Blame::Unavailable);

    let snapshot = Snapshot::open(&path).expect("whole");
    assert_eq!(snapshot.mark(), Some(second));
    let [one, two] = mark::offsets(snapshot.parsed.records.start as u64).map(|at| at as usize);
    let whole = fs::read(&path).expect("readable");
    let damaged = directory.path().join("damaged.privet");
    let opened = |positions: &[usize]| {
        let mut bytes = whole.clone();
        positions.iter().for_each(|position| bytes[*position] ^= 1 << (position % 8));
        fs::write(&damaged, bytes).expect("writable");
        Snapshot::open(&damaged)
    };
    for position in 12..snapshot.parsed.records.start {
        let opened = opened(&[position]);
        // Slots have 72 bytes. The second was written last.
        let left = match position {
            _ if (one..one + 72).contains(&position) => second,
            _ if (two..two + 72).contains(&position) => first,
            _ => {
                let error = opened.expect_err("nothing else may change");
                assert_eq!(error.blame(), Blame::Corrupted, "byte {position}: {error}");
                continue;
            }
        };
        assert_eq!(opened.expect("one slot is left").mark(), Some(left), "byte {position}");
    }
    let error = opened(&[one + 5, two + 50]).expect_err("no slot is left");
    assert!(error.message().contains("marks are unreadable"), "{error}");
}

#[test]
fn a_file_of_another_length_is_refused() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("t.privet");
    write_index(&path, 2, 3);
    let whole = fs::read(&path).expect("readable");
    let cut_path = directory.path().join("cut.privet");
    let mut lengths: Vec<usize> = (0..400).collect();
    lengths.extend([4095, 4096, 4097, whole.len() - 1]);
    for len in lengths {
        fs::write(&cut_path, &whole[..len]).expect("writable");
        let error = Snapshot::open(&cut_path).expect_err("cut off");
        assert_eq!(error.blame(), Blame::Corrupted, "{len} bytes: {error}");
    }
    for more in [1, 4096] {
        fs::write(&cut_path, [&whole[..], &vec![0; more]].concat()).expect("writable");
        let error = Snapshot::open(&cut_path).expect_err("too long");
        let message =
            format!("it should have {} bytes and has {}", whole.len(), whole.len() + more);
        assert!(error.message().contains(&message), "{error}");
    }
}

/// A header with a right checksum and wrong contents: only a faulty or malicious writer makes one.
#[test]
fn impossible_headers_are_refused() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("t.privet");
    write_index(&path, 2, 3);
    let whole = fs::read(&path).expect("readable");
    let header_len = u32::from_le_bytes(whole[12..16].try_into().expect("four bytes")) as usize;
    for field in (16..header_len - 32).step_by(4) {
        for value in [0u32, 1, u32::MAX] {
            let mut bytes = whole.clone();
            let end = (field + 4).min(header_len - 32);
            bytes[field..end].copy_from_slice(&value.to_le_bytes()[..end - field]);
            if bytes == whole {
                continue;
            }
            let checksum = *blake3::hash(&bytes[..header_len - 32]).as_bytes();
            bytes[header_len - 32..header_len].copy_from_slice(&checksum);
            fs::write(&path, &bytes).expect("writable");
            match Snapshot::open(&path) {
                Err(error) => assert_eq!(error.blame(), Blame::Corrupted, "field {field}: {error}"),
                // Id, epoch and names can be anything.
                Ok(_) => assert!(
                    (16..40).contains(&field) || field >= 176,
                    "field {field} is not checked"
                ),
            }
        }
    }
}

#[test]
fn what_is_no_snapshot_is_named() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("t.privet");
    let message = |path: &Path| Snapshot::open(path).expect_err("no snapshot").to_string();
    assert!(message(&path).contains("t.privet") && message(&path).ends_with("; build it"));
    fs::write(&path, "name,version\n").expect("writable");
    assert!(message(&path).ends_with("this is no Privet table file; build one"));
    write_index(&path, 1, 1);
    let mut bytes = fs::read(&path).expect("readable");
    bytes[8] = 3;
    fs::write(&path, bytes).expect("writable");
    assert!(message(&path).contains("has version 3, and this program reads versions 1 and 2"));
    assert_eq!(
        Snapshot::open(directory.path()).expect_err("a directory").blame(),
        Blame::Unavailable
    );
}

#[test]
fn nothing_is_left_of_an_unfinished_file() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().join("t.privet");
    fs::write(&path, "what was there before").expect("writable");
    let mut writer = SnapshotWriter::create(&path, index_plan(2, 3)).expect("writable");
    writer.write_record(b"abc").expect("the first");
    assert_eq!(names_in(&directory).len(), 2);
    drop(writer);
    assert_eq!(names_in(&directory), ["t.privet"]);

    let mut writer = SnapshotWriter::create(&path, index_plan(2, 3)).expect("writable");
    assert_eq!(writer.write_record(b"ab").expect_err("too short").blame(), Blame::ApiMisuse);
    let error = writer.finish().expect_err("records are missing");
    assert_eq!(error.message(), "only 0 of 2 records were written");
    assert_eq!(names_in(&directory), ["t.privet"]);
    assert_eq!(fs::read(&path).expect("readable"), b"what was there before");

    let mut writer = SnapshotWriter::create(&path, index_plan(1, 1)).expect("writable");
    writer.write_record(b"a").expect("the only one");
    assert_eq!(writer.write_record(b"b").expect_err("one too many").blame(), Blame::ApiMisuse);
}

#[test]
fn an_output_that_cannot_be_is_refused_at_once() {
    let directory = TempDir::new().expect("a directory");
    let create =
        |path: &Path| SnapshotWriter::create(path, index_plan(1, 1)).err().expect("impossible");
    assert_eq!(create(directory.path()).blame(), Blame::ApiMisuse);
    let error = create(&directory.path().join("no/such/t.privet"));
    assert_eq!(error.blame(), Blame::ApiMisuse);
    assert!(error.message().contains("its directory does not exist"), "{error}");

    let mut plan = index_plan(1, 1);
    plan.value_form = ValueForm::Raw("x".repeat(70_000));
    let error =
        SnapshotWriter::create(&directory.path().join("t.privet"), plan).err().expect("too long");
    assert!(error.message().contains("a column name of 70000 bytes is too long"), "{error}");
    assert!(names_in(&directory).is_empty());
}

#[cfg(unix)]
#[test]
fn the_output_has_ordinary_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let directory = TempDir::new().expect("a directory");
    let (path, ordinary) = (directory.path().join("t.privet"), directory.path().join("ordinary"));
    write_index(&path, 1, 1);
    fs::write(&ordinary, "").expect("writable");
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode();
    assert_eq!(mode(&path), mode(&ordinary));
}
